#!/usr/bin/python3
"""target_takeover.py - a new process takes over a running target, and hosts notice nothing."""
import contextlib
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command
import nvme
import pdu
import sqe
import tap
import weft
from apart import Mount, requires_mounts
from fixture import connect, in_background, with_host, with_target
from nvme import ANA_INACCESSIBLE, COMPARE_FAILURE, SUCCESS, pattern
from takeover import end_unharmed, kill

TAKEOVERS = int(os.environ.get("TAKEOVERS", 20))
AEN, TIMESTAMP, KATO, BEHAVIOR, TEMPERATURE, WRITE_CACHE = 0x0B, 0x0E, 0x0F, 0x16, 4, 6
ERRORS, CHANGED, ANA_LOG, DISCOVERY_LOG = 1, 4, 0x0C, 0x70
NS_CHANGED, LOG_CHANGED = (2, 0, CHANGED), (2, 0xF0, DISCOVERY_LOG)
STORES = ["mem:64M", "file:{dir}/a.img,size=64M"]


@contextlib.contextmanager
def takeover_begun(t):
    """Inside, the old process hands over; at the end the new one serves."""
    said_before = t.log.read_text().count("prepares to take over")
    old, t.process = t.process, t.spawn("--takeover")
    weft.wait_until(lambda: t.log.read_text().count("prepares to take over") > said_before,
                    "the takeover to begin")
    time.sleep(0.1)         # it stands still soon after; and if it did not yet, all must work, too
    yield
    assert old.wait(30) == 0, t.log.read_text()
    weft.wait_until(lambda: t.answer()["pid"] == t.process.pid, "the new process to answer")


@with_host("a host goes on, again and again: data, SQHD, ids, statistics", 120, ns=STORES)
def _(t, ctrl):
    queue, other = ctrl.open(depth=7), ctrl.open(flow=False, depth=64)
    disks = [ctrl.disk(1, queue), ctrl.disk(2, other)]
    head = queue.connected.sqhd
    for number in range(TAKEOVERS):
        t.takeover()
        for nsid, disk in enumerate(disks, 1):
            if number:
                assert disk.read(8, 8) == pattern(number * 10 + nsid, 8 * disk.block)
            disk.write(0, pattern(number, disk.block), capsule=True)
            disk.write(8, pattern(number * 10 + 10 + nsid, 8 * disk.block), capsule=False)
            assert disk.read(0) == pattern(number, disk.block)
        cqe = queue.do(sqe.Sqe(sqe.FLUSH, 1))
        assert cqe.sqhd == (head + 3 + (1 if not number else 2)) % 7, (cqe.sqhd, head)
        head = cqe.sqhd
        assert ctrl.get(nvme.CSTS) == 1
    shown = t.controllers()
    assert [c["cntlid"] for c in shown] == [ctrl.cntlid] and shown[0]["queues"] == 2
    assert shown[0]["writes"] == 4 * TAKEOVERS, shown
    assert "connected" not in t.log.read_text().split("took over")[-1]


@with_host("a write before it is flushed by a shutdown after it", ns=["mem:16M,error=flush:100%"])
def _(t, ctrl):
    disk = ctrl.disk(1)
    disk.write(0, bytes(disk.block))
    t.takeover()
    ctrl.set(nvme.CC, nvme.CC_ENABLE | 1 << 14)
    ctrl.until(lambda: ctrl.get(nvme.CSTS) >> 2 & 3 == 2, "CSTS.SHST = 2")
    assert "flush failed" in t.log.read_text()


@with_host("with digests", host=dict(hdgst=True, ddgst=True, hpda=3, maxr2t=2), ns=STORES)
def _(t, ctrl):
    for number in range(5):
        for nsid in (1, 2):
            disk = ctrl.disk(nsid)
            disk.write(8, pattern(number, 200 * 4096), capsule=False)
            t.takeover()
            assert disk.read(8, 200) == pattern(number, 200 * 4096)


@with_host("events: a request that waits, one that is due, one that was told", ns=["mem:16M"])
def _(t, ctrl):
    ctrl.set_feature(AEN, 0x100)
    aer = ctrl.aer()
    t.takeover()
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M")
    assert ctrl.event(aer) == NS_CHANGED
    t.ctl("namespace-remove", nqn=t.nqn, nsid=2)        # masked: not told before the log is read
    t.takeover()
    aers = [ctrl.aer() for _ in range(4)]
    t.takeover()
    assert struct.unpack("<1024I", ctrl.log(CHANGED, 4096))[:2] == (2, 0)
    assert ctrl.event(aers[0]) == NS_CHANGED, "the removal"
    ctrl.admin.do(sqe.abort(0, aers[1]))
    ctrl.admin.wait(aers[1], nvme.ABORT_REQUESTED)


@with_host("features, the error log, host behavior, the time", ns=["mem:16M"])
def _(t, ctrl):
    start = 1_700_000_000_000
    ctrl.set_feature(TEMPERATURE, 0x123)
    ctrl.set_feature(KATO, 90_000)
    ctrl.set_feature(BEHAVIOR, out=b"\1" + bytes(511))
    ctrl.set_feature(TIMESTAMP, out=struct.pack("<Q", start))
    ctrl.admin.do(sqe.Sqe(0x42), want=nvme.INVALID_OPCODE)
    before = ctrl.log(ERRORS, 4096)
    t.takeover()
    assert ctrl.get_feature(TEMPERATURE).dw0 == 0x123 and ctrl.get_feature(KATO).dw0 == 90_000
    assert ctrl.get_feature(BEHAVIOR, 512).data[0] == 1
    raw = ctrl.get_feature(TIMESTAMP, 8).data
    assert start <= int.from_bytes(raw[:6], "little") < start + 60_000 and raw[6] == 2
    assert ctrl.log(ERRORS, 4096) == before and struct.unpack_from("<Q", before)[0] == 1


@with_host("an error log that has wrapped", ns=["mem:16M"])
def _(t, ctrl):
    entries = ctrl.id[262] + 1
    for number in range(entries + 3):
        ctrl.admin.do(sqe.Sqe(0x42, number), want=nvme.INVALID_OPCODE)
    before = ctrl.log(ERRORS, 64 * entries)
    counts = [struct.unpack_from("<Q", before, at)[0] for at in range(0, len(before), 64)]
    assert counts == list(range(entries + 3, 3, -1)), counts
    t.takeover()
    assert ctrl.log(ERRORS, 64 * entries) == before
    ctrl.admin.do(sqe.Sqe(0x42), want=nvme.INVALID_OPCODE)
    assert ctrl.log(ERRORS, 64 * entries)[64:] == before[:-64]


@tap.case("a write cache that the host turned off stays off, one that is on stays on")
def _():
    requires_mounts()
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Mount(folder)) as mount:
        with open(f"{folder}/never-durable", "wb") as file:
            file.truncate(16 << 20)
        with weft.Target(ns=[f"file:{mount.dir}/never-durable"]) as t, connect(t) as ctrl:
            disk = ctrl.disk()
            for cache, want in ((0, nvme.WRITE_FAULT), (1, SUCCESS)):
                ctrl.set_feature(WRITE_CACHE, cache)
                disk.zero(0, 1, want=want)
                t.takeover()
                disk.zero(0, 1, want=want)


def told(ctrl):
    """What a host can read of its controller and of the way to its namespaces."""
    return [ctrl.identify(1), ctrl.identify(0, 1), ctrl.log(ANA_LOG, 4096, rae=1)]


@with_host("paths: ANA states, change counts, port ids, the controller's instance", ns=["mem:16M"])
def _(t, ctrl):
    disk = ctrl.disk()
    t.ctl("ana-set", nqn=t.nqn, rules=[dict(group=1, state="inaccessible", portid=1)])
    before = told(ctrl)
    t.takeover()
    assert told(ctrl) == before
    disk.read(0, want=ANA_INACCESSIBLE)
    with connect(t, hostid=bytes(range(50, 66))) as other:
        other.disk().read(0, want=ANA_INACCESSIBLE)
    t.ctl("ana-set", nqn=t.nqn, rules=[], replace=True)
    disk.read(0)
    assert told(ctrl)[2][:8] != before[2][:8], "the change count moved"


@with_target("discovery: a connection that waits for news, and the generation counter")
def _(t):
    with connect(t, nqn=nvme.DISCOVERY, kato=60_000) as ctrl:
        ctrl.set_feature(AEN, 1 << 31)
        generation = struct.unpack_from("<Q", ctrl.log(DISCOVERY_LOG, 1024))[0]
        aer = ctrl.aer()
        t.takeover()
        assert struct.unpack_from("<Q", ctrl.log(DISCOVERY_LOG, 1024))[0] == generation
        t.ctl("listener-add", listen=weft.ANY_PORT)
        assert ctrl.event(aer) == LOG_CHANGED
        assert struct.unpack_from("<Q", ctrl.log(DISCOVERY_LOG, 1024))[0] == generation + 1
        t.takeover()
        assert len(t.ctl("status")["listeners"]) == 2


@with_host("a host without I/O queues; the ids of the next ones go on")
def _(t, ctrl):
    t.takeover()
    ctrl.identify(1)
    with connect(t, hostid=bytes(range(50, 66))) as other:
        assert other.cntlid == ctrl.cntlid + 1
        other.disk().read(0)


@with_target("keep-alive goes on: a host that fell silent is let go of")
def _(t):
    with connect(t, kato=15_000) as ctrl:
        t.takeover()
        assert t.controllers()[0]["kato_ms"] == 15_000
        weft.wait_until(lambda: not t.controllers(), "the controller to end")
        ctrl.admin.expect_closed()


@with_host("a host that owes data when it begins; what it sends meanwhile is not lost", ns=STORES)
def _(t, ctrl):
    for nsid in (1, 2):
        queue = ctrl.open(maxr2t=3)
        disk = ctrl.disk(nsid, queue)
        queue.hold = True
        owed = queue.submit(disk.command(sqe.WRITE, 0, 200), pattern(1, 200 * 4096), capsule=False)
        r2ts = [queue.next_r2t()]
        with takeover_begun(t):
            queue.hold = False
            inside = queue.submit(disk.command(sqe.WRITE, 512, 1), pattern(2, 4096), capsule=True)
            later = queue.submit(disk.command(sqe.WRITE, 600, 9), pattern(3, 9 * 4096),
                                 capsule=False)
            flush = queue.submit(sqe.Sqe(sqe.FLUSH, nsid))
            for r2t in r2ts + queue.r2ts:
                queue.answer(r2t)
            queue.r2ts = []
            queue.wait(owed)
        for cid in (inside, later, flush):
            queue.wait(cid)
        assert disk.read(0, 200) == pattern(1, 200 * 4096)
        assert disk.read(512) == pattern(2, 4096) and disk.read(600, 9) == pattern(3, 9 * 4096)


@with_host("the same with digests, and data in two halves", host=dict(hdgst=True, ddgst=True))
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    queue.hold = True
    owed = queue.submit(disk.command(sqe.WRITE, 0, 16), pattern(1, 65536), capsule=False)
    r2t = queue.next_r2t()
    raw = queue.encode(pdu.H2CDATA, pdu.h2cdata(r2t.cccid, r2t.ttag, 0, 65536), pattern(1, 65536),
                       flags=pdu.LAST)
    inside = queue.submit(disk.command(sqe.WRITE, 512, 1), pattern(2, 4096), capsule=True)
    queue.send(raw[:30000])
    with takeover_begun(t):
        queue.send(raw[30000:])
        queue.hold = False
        queue.wait(owed)
    queue.wait(inside)
    assert disk.read(0, 16) == pattern(1, 65536) and disk.read(512) == pattern(2, 4096)


@with_host("writes whose data was not asked for yet are asked for theirs by the new process")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.open(depth=64)
    data = [pattern(i, 32 * disk.block) for i in range(24)]
    queue.hold = True
    cids = [queue.submit(disk.command(sqe.WRITE, 32 * i, 32), d, capsule=False)
            for i, d in enumerate(data)]
    queue.do(sqe.Sqe(sqe.FLUSH, 1))
    assert len(queue.r2ts) < len(cids)
    with takeover_begun(t):
        while queue.r2ts:
            queue.answer(queue.r2ts.pop(0))
        queue.hold = False
    for cid in cids:
        queue.wait(cid)
    for i, d in enumerate(data):
        assert disk.read(32 * i, 32) == d, i


@with_host("Copies under way are done first, by the old process",
           ns=["mem:256M", "file:{dir}/a.img,size=256M"])
def _(t, ctrl):
    step = (8 << 20) // 4096
    for nsid in (1, 2):
        disk = ctrl.disk(nsid)
        for at in range(0, step, 256):
            disk.write(at, pattern(at, 1 << 20))
        copies = [disk.queue.submit(sqe.copy(nsid, number * step, 1), sqe.copy_ranges([(0, step)]))
                  for number in range(1, 9)]
        t.takeover()
        for cid in copies:
            disk.queue.wait(cid)
        for number in range(1, 9):
            for at in range(0, step, 256):
                assert disk.read(number * step + at, 256) == pattern(at, 1 << 20)


@with_host("half a capsule before, half of it after")
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    for at in (1, 7, 8, 40, 72, 100, 3000):
        sent = []
        queue.send, whole = sent.append, queue.send
        cid = queue.submit(disk.command(sqe.WRITE, at, 1), pattern(at, 4096), capsule=True)
        queue.send = whole
        queue.send(sent[0][:at])
        t.takeover()
        queue.send(sent[0][at:])
        queue.wait(cid)
        assert disk.read(at) == pattern(at, 4096)


@with_host("half a fused pair before, half of it while it happens")
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    disk.write(5, pattern(5, 4096))
    for old, want in ((pattern(5, 4096), SUCCESS), (pattern(9, 4096), COMPARE_FAILURE)):
        first = queue.submit(disk.command(sqe.COMPARE, 5, 1, fuse=1), old)
        with takeover_begun(t):
            second = queue.submit(disk.command(sqe.WRITE, 5, 1, fuse=2), pattern(6, 4096))
            assert queue.wait(first, None).status == want
            queue.wait(second, None)
    assert disk.read(5) == pattern(6, 4096)


@with_target("a connection that is not set up yet, one that is not connected yet")
def _(t):
    with nvme.Conn(t.addr) as fresh, nvme.Queue(t.addr) as ready:
        fresh.send(pdu.encode(pdu.ICREQ, pdu.icreq())[:50])
        t.takeover()
        fresh.send(pdu.encode(pdu.ICREQ, pdu.icreq())[50:])
        assert fresh.recv_pdu().type == pdu.ICRESP
        ready.connect(t.nqn)


@with_host("many connections", 120)
def _(t, ctrl):
    queues = [ctrl.open(depth=8) for _ in range(100)]
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(nvme.Conn(t.addr)) for _ in range(200)]
        for _ in range(3):
            t.takeover()
            for queue in queues:
                queue.do(sqe.Sqe(sqe.FLUSH, 1))
        assert len(idle) == 200


@with_target("what changed while it ran goes along: a size, an identity, a listener", ns=STORES)
def _(t):
    def shown():
        return [{k: v for k, v in ns.items() if k != "used"} for ns in t.subsystem()["namespaces"]]

    t.ctl("namespace-resize", nqn=t.nqn, nsid=1, size="96M")
    before, listeners = shown(), t.ctl("status")["listeners"]
    t.takeover()
    assert shown() == before and t.ctl("status")["listeners"] == listeners
    t.ctl("namespace-resize", nqn=t.nqn, nsid=1, size="128M")
    assert shown()[0]["size"] == 128 << 20


@with_target("the file stays locked, and the socket of the control stays", ns=STORES)
def _(t):
    inode = t.control.stat().st_ino
    t.takeover()
    t.takeover()
    assert t.control.stat().st_ino == inode
    other = command.run("serve", "--listen", weft.ANY_PORT, "--control", t.dir / "other",
                        "--ns", f"file:{t.dir}/a.img")
    assert other.returncode == 1 and "in use" in other.stderr, other.stderr


def bench(t, nsid, *words):
    return command.start("bench", command.uri(t, nsid=nsid), "--write-ok", "--verify", "--strict",
                         "--time", "300", *words)


def taken_over(t):
    """False: refused, since a disk of a busy machine kept a command for longer than the limit."""
    old, new = t.process, t.spawn("--takeover")
    weft.wait_until(lambda: old.poll() is not None or new.poll() is not None, "one of both to end",
                    60)
    if old.poll() is None:
        assert "storage has commands in hand" in t.log.read_text(), t.log.read_text()
        return False
    assert old.returncode == 0, t.log.read_text()
    t.process = new
    weft.wait_until(lambda: t.answer()["pid"] == new.pid, "the new process to answer")
    return True


LOADS = (("--rw", "randrw", "--bs", "4k", "--depth", "32"),
         ("--rw", "randrw", "--bs", "64k", "--depth", "8", "--hdgst", "--ddgst"),
         ("--rw", "randwrite", "--bs", "512k", "--depth", "4"))


@with_target(f"{TAKEOVERS} takeovers under verified load", 300,
             ns=["mem:64M", "file:{dir}/a.img,size=64M", "mem:64M"])
def _(t):
    loads = [bench(t, nsid, *words) for nsid, words in enumerate(LOADS, 1)]
    try:
        weft.wait_until(lambda: len(t.controllers()) == len(LOADS), "the load to connect")
        done = sum(taken_over(t) for _ in range(TAKEOVERS))
        assert done, "every takeover was refused"
        tap.diag(f"{done} takeovers")
        end_unharmed(loads)
    finally:
        kill(loads)


@tap.case("the service manager is told who is who")
def _():
    with weft.tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(f"{folder}/notify")
        notify.settimeout(20)
        with weft.Target(env={"NOTIFY_SOCKET": f"{folder}/notify"}) as t:
            assert notify.recv(4096) == b"READY=1"
            t.takeover()
            assert {notify.recv(4096) for _ in range(2)} == \
                {b"READY=1", f"MAINPID={t.process.pid}".encode()}


@with_target("--detach returns when the new process serves")
def _(t):
    old = t.process
    done = subprocess.run([*t.argv(), "--takeover", "--detach"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
                          check=False)
    assert done.returncode == 0 and old.wait(20) == 0
    pid = t.ctl("status")["pid"]
    assert pid != old.pid
    t.process = t.spawn("--takeover")       # one of ours again, to be ended as usual
    weft.wait_until(lambda: t.answer()["pid"] == t.process.pid, "the next one to answer")


@with_host("load goes on while a takeover waits for a host that is slow to send", ns=["mem:16M"])
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    queue.hold = True
    owed = queue.submit(disk.command(sqe.WRITE, 0, 16), bytes(65536), capsule=False)
    r2t = queue.next_r2t()

    def others():
        with connect(t, hostid=bytes(range(50, 66))) as other:
            for at in range(50):
                other.disk().write(at, pattern(at, 4096))

    with takeover_begun(t), in_background(others):
        queue.answer(r2t)
    queue.wait(owed)


sys.exit(tap.run())
