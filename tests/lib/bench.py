"""bench.py - weft bench, run for a while against a target, and its report."""
import contextlib
import json
import os
import subprocess

import weft

OK, FAILED, USAGE = 0, 1, 2
BLOCK = 4096
FILE_NS = "file:{dir}/a.img,size=64M,block=4096"


def uri(t, words="nsid=1"):
    host, port = t.addr
    return f"nvme+tcp://{host}:{port}/{t.nqn}?{words}"


def bench(*args, env=None):
    return subprocess.run([weft.BINARY, "bench", *map(str, args)], stdin=subprocess.DEVNULL,
                          text=True, capture_output=True, timeout=100,
                          env=env and {"PATH": "/usr/bin", **env})


def said(result, code, *words):
    assert result.returncode == code, f"exit status {result.returncode}: {result.stderr}"
    assert not weft.SANITIZER.search(result.stderr), result.stderr
    last = (result.stderr.strip().splitlines() or [""])[-1]
    for word in words:
        assert word in last, f"no {word!r} in the last line: {last!r}"


def measured(t, *args, code=OK, words="nsid=1"):
    """The JSON of a short run."""
    result = bench(uri(t, words), "--time", "500ms", "--json", *args)
    said(result, code)
    report = json.loads(result.stdout)
    assert report["ok"] == (code == OK), report["why"]
    return report


@contextlib.contextmanager
def running(*args):
    """A run in the background; its end is waited for when the block ends."""
    process = subprocess.Popen([weft.BINARY, "bench", *map(str, args)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.heard = ""
    try:
        yield process
        process.stdout_text, rest = process.communicate(timeout=90)
        process.stderr_text = process.heard + rest
        assert not weft.SANITIZER.search(process.stderr_text), process.stderr_text
    finally:
        process.kill()
        process.wait()


def told(process, words):
    """Waits for a message with these words; nothing behind it is read."""
    while words not in process.heard.rpartition("\n")[2]:
        char = os.read(process.stderr.fileno(), 1).decode(errors="replace")
        assert char, f"no {words!r} in {process.heard}"
        process.heard += char
    while not process.heard.endswith("\n"):
        process.heard += os.read(process.stderr.fileno(), 1).decode(errors="replace")


def loaded(t, count=1):
    """Waits until the target has had so many I/Os of the hosts that are connected."""
    weft.wait_until(lambda: sum(c["reads"] + c["writes"] for c in t.controllers()) >= count,
                    "the load", timeout=90)


def verified(t, *args, **kw):
    report = measured(t, "--write-ok", "--verify", *args, **kw)
    return report["verify"]
