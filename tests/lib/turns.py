"""turns.py - two hosts that take turns on the same blocks, each a process with libweft.

    host 1: finds n, writes n+1 ── n+1 ──▶ host 2: finds n+1, writes n+2 ── n+2 ──▶ host 1 …

The word goes to the other when the write was acknowledged. So whoever reads must find exactly what the word
says, and a late copy of an older write, which lands on a newer one, is found by the next one who looks.
A host has several pairs of turns under way, each on a queue and on blocks of its own."""
import ctypes
import multiprocessing
import os
import pathlib
import struct
import threading

import weft

BLOCK, BLOCKS = 4096, 16
SIZE = BLOCK * BLOCKS


def content(pair, generation):
    """Every block says where it belongs and which generation it is, all over."""
    return b"".join(struct.pack("<IIQ", pair, number, generation) * (BLOCK // 16)
                    for number in range(BLOCKS))


def generations(data):
    """What the blocks say of themselves."""
    return [struct.unpack_from("<IIQ", data, at)[2] for at in range(0, SIZE, BLOCK)]


def wrong(pair, generation, data):
    """What is not as it should be, in words; empty if nothing is."""
    if data == content(pair, generation):
        return ""
    return f"pair {pair}: generation {generation} was acknowledged, " \
           f"its blocks hold {generations(data)}"


class Library:
    """libweft, as much of it as is needed here."""

    def __init__(self):
        self.lib = ctypes.CDLL(str(pathlib.Path(weft.BINARY).parent / "libweft.so"))

    def call(self, name, *args):
        err = ctypes.create_string_buffer(512)
        if getattr(self.lib, name)(*args, err) < 0:
            raise OSError(f"{name}: {err.value.decode()}")

    def open(self, name, *args):
        out = ctypes.c_void_p()
        self.call(name, *args, ctypes.byref(out))
        return out


class Pair:
    """One host's half of a pair: a queue, a namespace, an offset."""

    def __init__(self, lib, ctrl, number, nsid, offset):
        self.lib, self.number, self.offset = lib, number, ctypes.c_uint64(offset)
        self.ns = lib.open("weft_ns_open", ctrl, nsid)
        self.queue = lib.open("weft_queue_open", ctrl)

    def write(self, generation):
        self.lib.call("weft_write", self.queue, self.ns, content(self.number, generation),
                      ctypes.c_size_t(SIZE), self.offset, 0)

    def check(self, generation):
        data = ctypes.create_string_buffer(SIZE)
        self.lib.call("weft_read", self.queue, self.ns, data, ctypes.c_size_t(SIZE), self.offset)
        problem = wrong(self.number, generation, data.raw)
        assert not problem, problem

    def play(self, word, enough):
        """Until it is enough, or the other one has ended."""
        while (generation := word.recv()) is not None:
            if generation:
                self.check(generation)
            if enough.is_set():
                break
            self.write(generation + 1)
            self.check(generation + 1)
            word.send(generation + 1)
        return generation


def play_host(uri, places, words, enough, report):
    """The body of a host's process: all its pairs. Reports (turns, problems)."""
    lib, turns, problems = Library(), [], []
    ctrl = lib.open("weft_connect", uri.encode(), None)

    def run(pair, word):
        try:
            turns.append(pair.play(word, enough) or 0)
        except (AssertionError, OSError) as problem:
            problems.append(str(problem))
        word.send(None)                         # the other one has nobody to wait for any more

    pairs = [Pair(lib, ctrl, number, *place) for number, place in enumerate(places)]
    threads = [threading.Thread(target=run, args=them) for them in zip(pairs, words)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.send((sum(turns), problems))
    os._exit(0)                                 # nothing of the library's has to be put away


class Turns:
    """Two hosts, by their URIs; places are (nsid, offset), one for each pair."""

    def __init__(self, uris, places):
        pipes = [multiprocessing.Pipe() for _ in places]
        self.enough, self.reports, self.processes = multiprocessing.Event(), [], []
        for mine, uri in enumerate(uris):
            ours, theirs = multiprocessing.Pipe()
            words = [pipe[mine] for pipe in pipes]
            process = multiprocessing.Process(target=play_host, daemon=True,
                                              args=(uri, places, words, self.enough, theirs))
            process.start()
            self.reports.append(ours)
            self.processes.append(process)
        for first, second in pipes:
            second.send(0)                      # the first host begins
            first.close()
            second.close()

    def pids(self):
        return [process.pid for process in self.processes]

    def ended(self):
        """A host has nothing more to do, for whatever reason."""
        return any(report.poll() for report in self.reports)

    def finish(self, limit_s):
        """How many turns were taken, of all pairs; it fails if any host found what it should not."""
        self.enough.set()
        turns, problems = 0, []
        for report, process in zip(self.reports, self.processes):
            assert report.poll(limit_s), "a host that takes turns hangs"
            more, found = report.recv() if process.exitcode in (None, 0) else \
                (0, [f"a host that takes turns ended with status {process.exitcode}"])
            turns, problems = turns + more, problems + found
        assert not problems, "\n".join(problems)
        return turns

    def close(self):
        for process in self.processes:
            process.kill()
            process.join()
