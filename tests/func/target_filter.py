#!/usr/bin/python3
"""target_filter.py - filters: namespaces that are slow or fail, as their SPEC says."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import sqe
import tap
import weft
from fixture import connect, refused, with_host, with_target
from nvme import READ_ERROR, SUCCESS, WRITE_FAULT, pattern

FILE, MEM = "file:{dir}/a.img,size=16M", "mem:16M"
FAILS = "error=write:100%+flush:100%"


def media_errors(ctrl):
    return struct.unpack_from("<Q", ctrl.log(2, 512, nsid=0xFFFFFFFF), 160)[0]


def namespace(t, nsid=1):
    return next(ns for ns in t.subsystem()["namespaces"] if ns["nsid"] == nsid)


def backend(t, nsid=1):
    return namespace(t, nsid)["backend"].replace(str(t.dir), "{dir}")


def statuses(disk, count):
    """Of so many writes."""
    data = bytes(disk.block)
    return [disk.write(0, data, want=(SUCCESS, WRITE_FAULT)).status for _ in range(count)]


def overtaken_by(disk, command, length):
    """How many writes are answered, one after the other, while a command waits that came before them."""
    cid, rounds = disk.queue.submit(command, length=length), 0
    while disk.queue.requests[cid].cqe is None:
        disk.write(1, bytes(disk.block))
        rounds += 1
    disk.queue.wait(cid)
    return rounds


# ---- what a host sees

@with_host("an error is told, counted and logged as storage's own", ns=[f"{FILE},{FAILS}", f"{MEM},{FAILS}"])
def _(t, ctrl):
    for nsid, plain in ((1, FILE), (2, MEM)):
        disk, before = ctrl.disk(nsid), media_errors(ctrl)
        assert not disk.write(0, pattern(1, disk.block), want=WRITE_FAULT).dnr
        disk.flush(want=WRITE_FAULT)
        disk.zero(1, 1)
        disk.deallocate([(1, 1)])
        disk.copy(1, [(2, 1)], want=WRITE_FAULT)
        assert disk.read(0) == bytes(disk.block), "what failed was written"
        ns = namespace(t, nsid)
        assert (ns["read_errors"], ns["write_errors"]) == (0, 3), ns
        assert media_errors(ctrl) - before == 3
        assert backend(t, nsid) == f"{plain},{FAILS}"
        words = f"namespace {nsid}, {plain},{FAILS}: write of {disk.block} bytes at 0 failed: Input/output"
        assert words.replace("{dir}", str(t.dir)) in t.log.read_text(), t.last_lines()


@with_host("memory is not read past its filter", ns=[f"{MEM},error=read:100%"])
def _(t, ctrl):
    disk = ctrl.disk()
    disk.write(0, pattern(1, disk.block))
    disk.read(0, want=READ_ERROR)
    disk.compare(0, pattern(1, disk.block), want=READ_ERROR)
    disk.verify(0, 1, want=READ_ERROR)


@tap.case("the same writes fail in every run, others with another seed")
def _():
    runs = []
    for seed in ("", "+seed:0", "+seed:1"):
        with weft.Target(ns=[f"null:16M,error=write:1/4{seed}"]) as t, connect(t) as ctrl:
            runs.append(statuses(ctrl.disk(), 200))
    assert runs[0] == runs[1] != runs[2]
    assert all(20 < run.count(WRITE_FAULT) < 80 for run in runs), runs


@with_host("a delay: other commands overtake", ns=[f"{FILE},delay=read:1s", f"{MEM},delay=read:1s+flush:2s"])
def _(t, ctrl):
    for nsid in (1, 2):
        disk = ctrl.disk(nsid)
        assert overtaken_by(disk, disk.command(sqe.READ, 0, 1), disk.block) > 3
    assert overtaken_by(disk, sqe.Sqe(sqe.FLUSH, disk.nsid), 0) > 3


# ---- all that is done with a namespace

@with_host("resized, saved, started again", ns=[f"{FILE},delay=1ms,error=flush:100%",
                                               f"{MEM},delay=write:1ms"])
def _(t, ctrl):
    filters = ("delay=1ms,error=flush:100%", "delay=write:1ms")
    uuids = [namespace(t, nsid)["uuid"] for nsid in (1, 2)]
    for nsid in (1, 2):
        t.ctl("namespace-resize", nqn=t.nqn, nsid=nsid, size="32M")
        assert backend(t, nsid) == f"{(FILE, MEM)[nsid - 1].replace('16M', '32M')},{filters[nsid - 1]}"
        disk = ctrl.disk(nsid)
        assert disk.blocks * disk.block == 32 << 20
        disk.write(disk.blocks - 1, pattern(nsid, disk.block))
        assert disk.read(disk.blocks - 1) == pattern(nsid, disk.block)
    t.ctl("save", path=str(t.dir / "saved.yaml"))
    t.stop()
    t.config = t.dir / "saved.yaml"
    t.start()
    assert [namespace(t, nsid)["uuid"] for nsid in (1, 2)] == uuids
    assert backend(t, 2) == f"mem:32M,{filters[1]}"
    with connect(t) as again:
        disk = again.disk()
        disk.flush(want=WRITE_FAULT)
        assert disk.read(disk.blocks - 1) == pattern(1, disk.block)


@with_host("added and removed while hosts are served")
def _(t, ctrl):
    words = refused(t, "namespace-add", nqn=t.nqn, backend="mem:1M,delay=5")
    assert 'key "delay" cannot be "5"; expected a time such as 5ms' in words, words
    words = refused(t, "namespace-add", nqn=t.nqn, backend="mem:1M,error=writes:1%")
    assert 'key "error" cannot be "writes:1%"; expected a rate such as 1%' in words, words
    added = t.ctl("namespace-add", nqn=t.nqn, backend="mem:1M,delay=write:1s", nsid=9)
    assert added["nsid"] == 9, added
    disk = ctrl.disk(9)
    command = disk.command(sqe.WRITE, 0, 1)
    cid = disk.queue.submit(command, pattern(1, disk.block))
    disk.flush()                                    # the write was there before it, and waits
    t.ctl("namespace-remove", nqn=t.nqn, nsid=9)
    disk.queue.wait(cid)


@with_host("a takeover waits for what waits, and goes on", ns=[f"{FILE},delay=write:1s", f"{MEM},{FAILS}"])
def _(t, ctrl):
    disk, failing = ctrl.disk(), ctrl.disk(2)
    cid = disk.queue.submit(disk.command(sqe.WRITE, 0, 1), pattern(1, disk.block))
    disk.flush()
    t.takeover()
    disk.queue.wait(cid)
    assert disk.read(0) == pattern(1, disk.block)
    failing.write(0, bytes(failing.block), want=WRITE_FAULT)
    assert backend(t) == f"{FILE},delay=write:1s" and backend(t, 2) == f"{MEM},{FAILS}"
    assert "from now on it has" not in t.log.read_text()


def yaml(*backends):
    return f"subsystems:\n  - nqn: {weft.NQN}\n    allow_any_host: true\n    namespaces:\n" + \
        "".join(f'      - {{ backend: "{spec}" }}\n' for spec in backends)


@with_target("a takeover with other filters: they are the new ones, and hosts stay",
             config=yaml(MEM, f"{FILE},{FAILS}"))
def _(t):
    with connect(t) as ctrl:
        memory, disk = ctrl.disk(), ctrl.disk(2)
        memory.write(0, pattern(1, memory.block))
        disk.write(0, bytes(disk.block), want=WRITE_FAULT)
        t.write_config(yaml(f"{MEM},error=read:100%", FILE))
        t.takeover()
        memory.read(0, want=READ_ERROR)
        disk.write(0, pattern(2, disk.block))
        t.write_config(yaml(MEM, FILE))
        t.takeover()
        assert memory.read(0) == pattern(1, memory.block)
        assert disk.read(0) == pattern(2, disk.block)
    text = t.log.read_text()
    for words in ("1: from now on it has delay=none, error=read:100%",
                  "2: from now on it has delay=none, error=none", "1: from now on it has delay=none, error=none"):
        assert text.count(f"{t.nqn} namespace {words}\n") == 1, text


sys.exit(tap.run())
