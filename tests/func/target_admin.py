#!/usr/bin/python3
"""target_admin.py - Abort, Asynchronous Event Request, Keep Alive."""
import contextlib
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import tap
import weft
from fixture import connect, with_host, with_target


def abort(ctrl, sqid, cid):
    """True when the controller says that it aborted the command."""
    return ctrl.admin.do(sqe.abort(sqid, cid)).dw0 & 1 == 0


@with_host("Abort: a write that waits for its data")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.queues[0]
    before = disk.read(0, 4)
    queue.hold = True
    cid = queue.submit(disk.command(sqe.WRITE, 0, 4), b"\xAA" * 4 * disk.block, capsule=False)
    queue.next_r2t()
    assert abort(ctrl, 1, cid)
    queue.wait(cid, nvme.ABORT_REQUESTED)
    queue.hold = False
    assert disk.read(0, 4) == before
    disk.write(0, nvme.pattern(1, disk.block), capsule=False)


@with_host("Abort: data that the host has sent meanwhile is taken, and goes nowhere")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.queues[0]
    data = nvme.pattern(1, 64 * disk.block)
    queue.hold = True
    cid = queue.submit(disk.command(sqe.WRITE, 0, 64), data, capsule=False)
    r2t = queue.next_r2t()
    assert abort(ctrl, 1, cid)
    queue.answer(r2t)
    queue.wait(cid, nvme.ABORT_REQUESTED)
    queue.hold = False
    assert disk.read(0, 64) == bytes(len(data))
    for slba in range(4):           # its place in the queue is free again, and what it owed forgotten
        disk.write(slba * 64, data, capsule=False)


@with_host("Abort: one write among several")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.queues[0]
    queue.hold = True
    ids = [queue.submit(disk.command(sqe.WRITE, i, 1), nvme.pattern(i, disk.block), capsule=False)
           for i in range(8)]
    r2ts = [queue.next_r2t() for _ in ids]
    assert abort(ctrl, 1, ids[3])
    for r2t in r2ts:
        if r2t.cccid != ids[3]:
            queue.answer(r2t)
    for i, cid in enumerate(ids):
        queue.wait(cid, nvme.ABORT_REQUESTED if i == 3 else nvme.SUCCESS)


@with_host("Abort: an Asynchronous Event Request")
def _(t, ctrl):
    cid = ctrl.aer()
    assert abort(ctrl, 0, cid)
    ctrl.admin.wait(cid, nvme.ABORT_REQUESTED)


@with_host("Abort: a command that has completed")
def _(t, ctrl):
    cqe = ctrl.disk().flush()
    assert not abort(ctrl, 1, cqe.cid)


@with_host("Asynchronous Event Requests wait, and others pass them")
def _(t, ctrl):
    ids = [ctrl.aer() for _ in range(ctrl.id[259] + 1)]
    ctrl.identify(1)
    assert all(ctrl.admin.requests[cid].cqe is None for cid in ids)


@with_target("Keep Alive: silence ends the association")
def _(t):
    ctrl = connect(t, kato=500)
    queue = ctrl.open()
    queue.expect_closed()
    ctrl.admin.expect_closed()
    ctrl.close()
    weft.wait_until(lambda: not t.controllers(), "the controller to go")


@with_target("Keep Alive: a target that was stopped hears what its hosts said meanwhile")
def _(t):
    """Of so many hosts, the timers of some come before what they have said."""
    def stopped_for_long():
        t.process.send_signal(signal.SIGSTOP)
        time.sleep(10.5)

    with contextlib.ExitStack() as stack:
        ctrls = [stack.enter_context(connect(t, kato=10_000)) for _ in range(40)]
        stopped_for_long()
        t.process.send_signal(signal.SIGCONT)
        time.sleep(0.1)     # this timeout still remembered the commands of the connect
        stopped_for_long()
        cids = [ctrl.admin.submit(sqe.Sqe(sqe.KEEP_ALIVE)) for ctrl in ctrls]
        t.process.send_signal(signal.SIGCONT)
        for ctrl, cid in zip(ctrls, cids):
            ctrl.admin.wait(cid)


@with_target("Keep Alive: an association without a timeout stays")
def _(t):
    with connect(t, kato=0) as quiet, connect(t, kato=500) as other:
        other.admin.expect_closed()
        quiet.identify(1)


def outlives_its_timeout(t, begin):
    """A controller whose only signs of life are the commands of `begin(ctrl)` is still there after
    three of its timeouts. A try in which this process itself fell asleep for too long proves
    nothing and is repeated, with more time."""
    for kato_s in (1, 1, 2, 4, 8):
        with connect(t, kato=kato_s * 1000) as ctrl:
            talk, started = begin(ctrl), time.monotonic()
            last, longest = started, 0
            try:
                while last - started < 3.5 * kato_s:
                    time.sleep(kato_s / 10)
                    talk()
                    now = time.monotonic()
                    last, longest = now, max(longest, now - last)
                return
            except (nvme.Closed, OSError):
                longest = max(longest, time.monotonic() - last)
                if longest < kato_s / 2:
                    raise
    raise AssertionError("the machine is too busy: this test never got to speak in time")


@with_target("Keep Alive: the command")
def _(t):
    outlives_its_timeout(t, lambda ctrl: lambda: ctrl.admin.do(sqe.Sqe(sqe.KEEP_ALIVE)))


@with_target("Keep Alive: I/O alone is enough (TBKAS)")
def _(t):
    def begin(ctrl):
        disk = ctrl.disk()
        return lambda: disk.read(0)
    outlives_its_timeout(t, begin)


@with_target("Keep Alive: admin commands alone are enough (TBKAS)")
def _(t):
    outlives_its_timeout(t, lambda ctrl: lambda: ctrl.get_feature(7))


@with_host("Keep Alive: Set Features turns it on")
def _(t, ctrl):
    ctrl.set_feature(0x0F, 500)
    ctrl.admin.expect_closed()


sys.exit(tap.run())
