#!/usr/bin/python3
"""target_cluster_reset.py - a host ends a controller of another member, which it cannot reach."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import ccr
import sqe
import tap
import weft
from ccr import CCR_LOG, IRS, OP_DENIED, Instance, reset
from cluster import UNTIL_S, state_keys, storage_of, with_cluster
from fixture import connect
from nvme import INVALID_FIELD, pattern

CCR_IN_PROGRESS, CCR_LIMIT = 0x13F, 0x141


def unanswered(ctrl, cid):
    """The controller had its retry_epoch."""
    for _ in range(20):
        ctrl.identify(1)
    assert ctrl.admin.requests[cid].cqe is None
    return True


def requests(cluster):
    return [key for key in state_keys(cluster.shared / "state") if key.startswith("reset/")]


def until_forgotten(cluster):
    weft.wait_until(lambda: not requests(cluster), "the requests to go", UNTIL_S)


@with_cluster("the named controller ends, with its queues; nobody else's")
def _(cluster, one, two):
    with connect(one) as lost, connect(one) as stays, connect(two) as through:
        queue, named = lost.open(), Instance(lost)
        for wrong in ((named.cntlid, named.ciu ^ 1, named.cirn),
                      (named.cntlid, named.ciu, named.cirn ^ 1)):
            assert reset(through, *wrong) == IRS
        queue.do(sqe.Sqe(sqe.FLUSH, 1))             # another instance: nobody touched it
        assert reset(through, *named.key()) == IRS
        queue.expect_closed()
        lost.admin.expect_closed()
        stays.disk().read(0)
        assert [c["cntlid"] for c in one.controllers()] == [stays.cntlid]
        assert reset(through, *named.key()) == IRS  # it is over
        assert reset(stays, *Instance(through).key()) == IRS
    until_forgotten(cluster)


@with_cluster("never another host's, nor a number that no member gives")
def _(_cluster, one, two):
    with connect(one) as theirs, connect(two, hostid=bytes(range(2, 18))) as through:
        disk = theirs.disk()
        reset(through, *Instance(theirs).key(), want=OP_DENIED)
        disk.read(0)
        for cntlid in (0, 0xFFEF, 0xFFFF, through.cntlid):
            reset(through, cntlid, 1, 1, want=INVALID_FIELD)


@with_cluster("a write that was under way lands before the answer, or never")
def _(_cluster, one, two):
    with connect(one) as lost, connect(one) as reader, connect(two) as through:
        disk, size = lost.disk(), 64 << 10
        before = reader.disk().read(0, size // disk.block)
        disk.queue.hold = True                      # silence: the data does not come through
        disk.queue.submit(disk.command(sqe.WRITE, 0, size // disk.block), pattern(1, size))
        late = disk.queue.next_r2t()
        assert reset(through, *Instance(lost).key()) == IRS
        disk.queue.hold = False
        try:
            disk.queue.answer(late)
        except OSError:
            pass                                    # the connection is gone
        disk.queue.expect_closed()
        assert reader.disk().read(0, size // disk.block) == before


@with_cluster("a member that stands still is waited for: one at a time, four in all; its death will do")
def _(cluster, one, two):
    lost = [connect(one) for _ in range(5)]
    named = [Instance(ctrl) for ctrl in lost]
    with connect(two) as through:
        cluster.pause(1)
        asked = [through.admin.submit(ccr.command(*n.key())) for n in named[:4]]
        reset(through, *named[0].key(), want=CCR_IN_PROGRESS)
        reset(through, *named[4].key(), want=CCR_LIMIT)
        assert all(unanswered(through, cid) for cid in asked)
        one.kill9()
        for cid in asked:
            assert through.admin.wait(cid).dw0 == IRS
        assert reset(through, *named[4].key()) == IRS
    cluster.start(1)
    until_forgotten(cluster)
    for ctrl in lost:
        ctrl.close()


@with_cluster("it takes long: told so, an entry of the log, an event at its end")
def _(cluster, one, two):
    with connect(one) as lost, connect(two) as through:
        through.set_feature(0x0B, 1 << 20)
        aer, named = through.aer(), Instance(lost)
        cluster.pause(1)
        assert reset(through, *named.key()) == 0
        entry = through.log(CCR_LOG, 16)[8:]
        assert (entry[0] | entry[1] << 8, entry[2], entry[6]) == (named.cntlid, named.ciu, 0)
        cluster.resume(1)
        assert through.event(aer) == (2, 0xF4, CCR_LOG)
        assert through.log(CCR_LOG, 16)[14] == 1, "over"


@with_cluster("the member that was asked dies: what it asked for is done or not, and forgotten")
def _(cluster, one, two):
    with connect(one) as lost:
        through = connect(two)
        cluster.pause(1)
        through.admin.submit(ccr.command(lost.cntlid, 1, 1))
        weft.wait_until(lambda: requests(cluster), "the request")
        two.kill9()
        cluster.resume(1)
        cluster.until(1, [2, 0])
        lost.disk().read(0)                         # another instance was named
    cluster.start(2)
    until_forgotten(cluster)


@with_cluster("a member that is gone: its controllers are over when storage has nothing of it")
def _(cluster, one, two):
    fd = storage_of(one, "b")
    try:
        with connect(one) as lost, connect(two) as through:
            named = Instance(lost)
            one.kill9()
            cluster.until(2, [1, 1])
            cid = through.admin.submit(ccr.command(*named.key()))
            assert unanswered(through, cid)
            os.close(fd)
            fd = -1
            assert through.admin.wait(cid).dw0 == IRS
    finally:
        if fd >= 0:
            os.close(fd)


sys.exit(tap.run())
