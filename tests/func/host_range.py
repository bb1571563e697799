#!/usr/bin/python3
"""host_range.py - weft zero, weft trim, weft compare: ranges, what is refused, what controllers do."""
import json
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import target as scripted
import tap
import weft
from command import FAILED, USAGE, as_json, done, fails, run, start, text, uri
from fixture import with_target
from nvme import pattern

K, M = 1024, 1 << 20
NOWHERE = f"nvme+tcp://127.0.0.1:1/{weft.NQN}"
TWO = dict(ns=["mem:8M,block=512", "mem:16M,block=4096"])

# arguments, words of the one line on standard error
WRONG_USAGE = [
    (["zero"], ["expected one URI"]),
    (["trim", NOWHERE], ["which range?", "--all"]),
    (["zero", NOWHERE, "--offset", "0"], ["which range?"]),
    (["zero", NOWHERE, "--length", "4K"], ["which range?"]),
    (["zero", NOWHERE, "--all", "--offset", "0"], ["--all does not go"]),
    (["trim", NOWHERE, "--all", "--length", "4K"], ["--all does not go"]),
    (["trim", NOWHERE, "--offset", "0", "--length", "0"], ["--length 0"]),
    (["trim", NOWHERE, "--offset", "0", "--length", "4KB"], ["--length", "write 4K"]),
    (["trim", NOWHERE, "--all", "--deac"], ["--deac"]),
    (["zero", "x", "--all"], ["expected nvme+tcp://"]),
    (["compare"], ["expected one URI"]),
    (["compare", "-i", NOWHERE, NOWHERE], ["-i takes a file"]),
    (["compare", NOWHERE, "--offset", "-1"], ["--offset"]),
]


@tap.case("wrong usage is told in one line, with exit status 2")
def _():
    for args, words in WRONG_USAGE:
        fails(*args, code=USAGE, words=words)


@with_target("zero: a range and no more, all of it, as JSON", **TWO)
def _(t):
    data = pattern(1, 8 * M)
    done("write", uri(t, 1), stdin=data)
    assert text("zero", uri(t, 1), "--offset", "1M", "--length", "2M").startswith(
        "zeroed 2 MiB at 1048576 in ")
    want = data[:M] + bytes(2 * M) + data[3 * M:]
    assert done("read", uri(t, 1), "--length", "8M") == want
    got = as_json("zero", uri(t, 1), "--offset", 512, "--length", 512, "--deac")
    assert (got["destination"], got["offset"], got["bytes"], got["flushed"]) == (
        uri(t, 1), 512, 512, True), got
    assert done("read", uri(t, 1), "--length", "1M") == data[:512] + bytes(512) + data[1024:M]
    assert done("zero", "-q", uri(t), "--ns", 1, "--all") == b""
    assert done("read", uri(t, 1), "--length", "8M") == bytes(8 * M)


@with_target("trim: a range and no more; deallocated blocks of this target read as zeroes", **TWO)
def _(t):
    data = pattern(2, 16 * M)
    done("write", uri(t, 2), stdin=data)
    assert as_json("trim", uri(t, 2), "--offset", "4M", "--length", "8M")["bytes"] == 8 * M
    assert done("read", uri(t, 2), "--length", "16M") == data[:4 * M] + bytes(8 * M) + data[12 * M:]
    done("trim", uri(t, 2), "--all")
    assert done("read", uri(t, 2), "--length", "16M") == bytes(16 * M)


# arguments beyond the URI of namespace 2 (16 MiB in blocks of 4096), words
REFUSED = [
    (["--offset", "512", "--length", "4K"], ["--offset 512 is not a multiple", "4096"]),
    (["--offset", "4K", "--length", "5000"], ["--length 5000 is not a multiple"]),
    (["--offset", "16M", "--length", "4K"], ["goes beyond the end", "16 MiB (16777216 bytes)"]),
    (["--offset", "0", "--length", "17M"], ["goes beyond the end"]),
    (["--offset", "1P", "--length", "4K"], ["is beyond the end"]),
]


@with_target("what is refused, and changes nothing", **TWO)
def _(t):
    data = pattern(3, 16 * M)
    done("write", uri(t, 2), stdin=data)
    for args, words in REFUSED:
        for command in ("zero", "trim"):
            fails(command, uri(t, 2), *args, words=words)
        fails("compare", uri(t, 2), *args, stdin=data, words=words[:1])
    for command in ("zero", "trim"):
        fails(command, uri(t), "--all", words=["which namespace?"])
    assert done("read", uri(t, 2), "--length", "16M") == data


@with_target("a read-only namespace", ns=["mem:1M,ro"])
def _(t):
    for command in ("zero", "trim"):
        fails(command, uri(t), "--all", words=["read-only"])
    assert "equal" in text("compare", uri(t), stdin=bytes(M))


@with_target("compare: equal, and the block of the first difference", **TWO)
def _(t):
    data = pattern(4, 8 * M)
    path = t.dir / "data"
    path.write_bytes(data)
    done("write", uri(t, 1), stdin=data)
    assert text("compare", uri(t, 1), "-i", path) == "8 MiB at 0 are equal\n"
    assert as_json("compare", uri(t, 1), "--offset", "1M", "--length", "1M", stdin=data[M:]) == {
        "source": "standard input", "destination": uri(t, 1), "offset": M, "bytes": M,
        "padding": 0, "equal": True}
    for at in (0, 511, 512, M - 1, M, 3 * M + 77777, 8 * M - 1):
        wrong = bytearray(data)
        wrong[at] ^= 1
        fails("compare", "-q", uri(t, 1), stdin=wrong,
              sentence=f"weft compare: {uri(t, 1)} differs from standard input: the first difference "
                       f"is in the block at {at - at % 512}")
    result = run("compare", "--json", uri(t, 1), stdin=data[:M] + bytes(M))
    found = json.loads(result.stdout)
    assert result.returncode == FAILED and not found["equal"] and found["differs_at"] == M, found
    assert found["bytes"] == M, found


@with_target("compare --pad: what write --pad wrote, to the end of the last block", **TWO)
def _(t):
    data = os.urandom(M + 5000)
    text("write", uri(t, 2), "--pad", "--offset", "4K", stdin=data)
    for more in ([], ["--length", len(data)]):
        args = ["compare", uri(t, 2), "--pad", "--offset", "4K", *more]
        said = text(*args, stdin=data)
        assert said.endswith(f" at 4096 are equal; 3.1 KiB from {4096 + len(data)} on are zeroes, to "
                             "the end of the block\n"), said
        found = as_json(*args, stdin=data)
        assert (found["bytes"], found["padding"], found["equal"]) == (len(data), 3192, True), found
    text("write", uri(t, 2), "--offset", 4 * K + M + 4 * K, stdin=data[M + 4 * K:] + bytes(3191) + b"x")
    fails("compare", uri(t, 2), "--pad", "--offset", "4K", stdin=data,
          words=[f"the first difference is in the block at {4 * K + M + 4 * K}"])
    text("compare", uri(t, 2), "--pad", "--offset", "4K", stdin=data[:M])
    fails("compare", uri(t, 2), "--pad", "--offset", 15 * M, stdin=bytes(M + 1),
          words=["goes beyond the end"])
    assert text("compare", uri(t, 2), "--pad") == "0 bytes at 0 are equal\n"


@with_target("compare: input that is short, long, or ends inside a block", **TWO)
def _(t):
    fails("compare", uri(t, 2), stdin=bytes(5000), words=["ended after 4.9 KiB (5000 bytes), inside", "--pad"])
    fails("compare", uri(t, 2), "--length", "8K", stdin=bytes(4096), words=["ended after 4096 of 8192"])
    fails("compare", uri(t, 2), stdin=bytes(16 * M + 4096), words=["goes beyond the end"])
    fails("compare", uri(t, 2), "-i", "/nonexistent", words=["/nonexistent: No such file"])
    fails("compare", uri(t, 2), "-i", "/", words=["/: Is a directory"])
    assert "4 KiB at 0 are equal" in text("compare", uri(t, 2), "--length", "4K", stdin=bytes(5000))
    assert text("compare", uri(t, 2)) == "0 bytes at 0 are equal\n"


def onceless(offset, fmt):
    """Identify Controller with bytes taken out."""
    def step(conn, cns, nsid):
        data = bytearray(scripted.normally(conn, "identified", cns, nsid) or b"")
        if cns == 1:
            data[offset:offset + len(fmt)] = fmt
        return data or None
    return step


@tap.case("a controller that cannot")
def _():
    with scripted.Target(identified=onceless(520, b"\0\0")) as t:
        for args in (["zero", "--all"], ["trim", "--all"], ["compare"]):
            fails(*args, uri(t), stdin=bytes(512), words=["the controller does not support it"])


@tap.case("commands are no longer than the controller takes; a failure tells how far it came")
def _():
    big = {1: scripted.Namespace(b"\xff" * (40 * M))}
    with scripted.Target(namespaces=big) as t:
        assert as_json("zero", uri(t), "--all")["bytes"] == 40 * M
        assert t.commands.count((1, "write_zeroes")) == 2, t.commands.count((1, "write_zeroes"))
        assert not any(big[1].data) and t.commands.count((1, "flush")) == 1

    def refuse(conn, cmd):
        conn.complete(cmd, nvme.LBA_RANGE)
    with scripted.Target(write_zeroes=refuse, dsm=refuse) as t:
        fails("zero", uri(t), "--all", words=["Write Zeroes of 1048576 bytes at 0"])
        fails("trim", uri(t), "--all", words=["Deallocate of 1048576 bytes at 0"])


class Blank(scripted.Namespace):
    blocks = 192 * M >> 12              # more than weft erases at once; nobody reads them


class PowerCut:
    """A target that loses its power, and what it has not flushed, with the second command that erases
    after a flush; so many times. What is erased counts in MiB."""
    WORDS = dict(reconnect_delay="20ms", reconnect_delay_max="50ms")
    SIZE = Blank.blocks * 4096 // M

    def __init__(self, cuts, vwc=7):
        self.cuts, self.since_flush = cuts, 0
        self.volatile, self.cached, self.durable = bool(vwc), set(), set()
        self.target = scripted.Target(namespaces={1: Blank(b"", shift=12)}, vwc=vwc, write_zeroes=self.erase,
                                      dsm=self.erase, flush=self.flush)

    def erase(self, conn, cmd):
        first, blocks = cmd.slba, cmd.count
        if cmd.out:                     # a range of Dataset Management
            _, blocks, first = struct.unpack_from("<IIQ", cmd.out)
        erased = range(first * 4096 // M, (first + blocks) * 4096 // M)
        self.since_flush += 1
        if self.cuts and self.since_flush == 2:
            self.cuts -= 1
            self.cached.clear()
            for one in list(conn.target.connections):
                one.close()
            return
        (self.cached if self.volatile else self.durable).update(erased)
        conn.complete(cmd)

    def flush(self, conn, cmd):
        self.durable |= self.cached
        self.since_flush = 0
        conn.complete(cmd)

    def is_erased(self):
        return self.durable == set(range(self.SIZE))


@tap.case("zero and trim start over when a volatile cache may have been lost on the way")
def _():
    for command in "zero", "trim":
        cut = PowerCut(1)
        with cut.target as t:
            got = run(command, uri(t, **cut.WORDS), "--all")
            assert got.returncode == 0, got.stderr
            assert cut.is_erased(), f"{command}: {cut.SIZE - len(cut.durable)} MiB are left"
            assert "the connection was lost on the way" in got.stderr, got.stderr


@tap.case("… and fail when it is lost every time; without a volatile cache nothing is lost")
def _():
    cut = PowerCut(10000)
    with cut.target as t:
        fails("zero", uri(t, **cut.WORDS), "--all", words=["the connection was lost", "volatile cache",
                                                           "not known"])
    cut = PowerCut(1, vwc=0)
    with cut.target as t:
        assert run("zero", uri(t, **cut.WORDS), "--all").stderr == ""
        assert cut.is_erased() and t.commands.count((1, "flush")) == 1


@tap.case("compare: a controller that says everything differs, or changes its mind")
def _():
    with scripted.Target(compare=lambda conn, cmd: conn.complete(cmd, nvme.COMPARE_FAILURE)) as t:
        fails("compare", uri(t), stdin=bytes(M), words=["block at 0"])
    answers = []

    def first_only(conn, cmd):
        answers.append(cmd)
        conn.complete(cmd, 0 if len(answers) > 1 else nvme.COMPARE_FAILURE)
    with scripted.Target(compare=first_only) as t:
        fails("compare", uri(t), stdin=bytes(M), words=[f"block at {M - 512}"])
        assert len(answers) <= 13, len(answers)


@with_target("standard output that is full is told", **TWO)
def _(t):
    for args in (["zero", uri(t, 1), "--all", "--json"], ["compare", uri(t, 1)],
                 ["log", "smart", uri(t)], ["feature", "get", "kato", uri(t)],
                 ["resv", "report", uri(t, 1)]):
        with open("/dev/full", "wb") as full:
            process = start(*args, stdout=full)
            err = process.communicate(timeout=30)[1].decode()
        assert process.returncode == FAILED and "No space left on device" in err, (args, err)


sys.exit(tap.run())
