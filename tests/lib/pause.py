"""pause.py - bench/pause at work: an application that notes how long it waits.

    with App("nvme+tcp://…,nvme+tcp://…") as app:
        app.look()              what it saw since the last look

Leaving the block ends it, and fails if an I/O had failed or data was wrong."""
import contextlib
import json
import pathlib
import subprocess
import time

import weft

LOOK_S = 0.02


class App:
    """bench/pause at work: what it sees, from one look to the next."""
    BINARY = pathlib.Path(weft.BINARY).parent / "bench" / "pause"

    def __init__(self, uri, depth=32, wrap=()):
        self.argv = [*wrap, str(self.BINARY), "--depth", str(depth), uri]

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        return self

    def look(self):
        """What was seen since the last look."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"pause ended: {self.process.stderr.read()}"
        return json.loads(line)

    def watch(self):
        """What is seen in a while of which we take no CPU; None, if something held I/O up."""
        self.look()
        time.sleep(LOOK_S)
        seen = self.look()
        return seen if seen["ios"] and not seen["stalls"] else None

    def gather(self, enough, limit_s):
        """All that is seen from now on, until that is enough or time is up."""
        end, seen = time.monotonic() + limit_s, self.look()
        while not enough(seen) and time.monotonic() < end:
            time.sleep(LOOK_S)
            seen = merge(seen, self.look())
        return seen

    def until(self, enough, limit_s=60):
        seen = self.gather(enough, limit_s)
        assert enough(seen), f"timed out: {seen}"
        return seen

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        try:
            code = self.process.wait(60)
            assert kind or code == 0, f"pause: {self.process.stderr.read()}"
        finally:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdout, self.process.stderr):
                stream.close()


def merge(a, b):
    """One window out of two that follow each other."""
    most = {key: max(a[key], b[key]) for key in ("longest_ns", "gap_ns", "over_ns")}
    sums = {key: a[key] + b[key] for key in ("ios", "sum_ns", "stalls", "switches")}
    return most | sums | {"known_ns": a["known_ns"] or b["known_ns"], "live": b["live"]}
