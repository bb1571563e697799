#!/usr/bin/python3
"""target_queues.py - queues and associations: flow control, depth, reset, shutdown, hosts."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import tap
import weft
from fixture import connect, with_host, with_target

FLUSH = sqe.FLUSH
DEEP = """depth: 65535
subsystems:
  - nqn: %s
    allow_any_host: true
    namespaces:
      - { nsid: 1, backend: "mem:64M" }
""" % weft.NQN
OTHER = dict(hostnqn="nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-0000000000b2",
             hostid=bytes(range(101, 117)))


@with_host("sqhd advances with every command and wraps")
def _(t, ctrl):
    queue = ctrl.open(depth=5)
    head = queue.connected.sqhd
    for _ in range(23):
        cqe = queue.do(sqe.Sqe(FLUSH, 1))
        assert cqe.sqhd == (head + 1) % 5, f"sqhd {cqe.sqhd} after {head}"
        assert cqe.sqid == 1
        head = cqe.sqhd


@with_host("sqhd of the admin queue wraps too", host=dict(depth=33))
def _(t, ctrl):
    heads = [ctrl.get_feature(7).sqhd for _ in range(70)]
    assert all(b == (a + 1) % 33 for a, b in zip(heads, heads[1:])), heads


@with_host("a full queue: every entry but one in flight, again and again")
def _(t, ctrl):
    queue = ctrl.open(depth=16)
    for _ in range(10):
        for cid in [queue.submit(sqe.Sqe(FLUSH, 1)) for _ in range(15)]:
            queue.wait(cid)


@with_host("no SQ flow control: Connect answers FFFFh, reads end in the success flag")
def _(t, ctrl):
    queue = ctrl.open(flow=False)
    assert queue.connected.sqhd == 0xFFFF
    disk = ctrl.disk()
    disk.write(0, nvme.pattern(1, disk.block))
    cqe = queue.do(disk.command(sqe.READ, 0, 1), length=disk.block)
    assert cqe.data == nvme.pattern(1, disk.block) and cqe.sqhd is None


@with_host("no SQ flow control: a read that fails still gets its completion")
def _(t, ctrl):
    disk = ctrl.disk(queue=ctrl.open(flow=False))
    disk.read(disk.blocks, want=nvme.LBA_RANGE)


@with_host("SQ flow control: a read has its own completion")
def _(t, ctrl):
    disk = ctrl.disk()
    cqe = disk.queue.do(disk.command(sqe.READ, 0, 1), length=disk.block)
    assert cqe.sqhd is not None


@with_host("default depth suits Linux")
def _(t, ctrl):
    assert (ctrl.get(nvme.CAP, 8) & 0xFFFF) + 1 >= 128
    queue = ctrl.open(depth=128)
    for cid in [queue.submit(sqe.Sqe(FLUSH, 1)) for _ in range(127)]:
        queue.wait(cid)


@with_host("the deepest queue: 65,535 entries, in flight together", config=DEEP)
def _(t, ctrl):
    assert ctrl.get(nvme.CAP, 8) & 0xFFFF == 65534
    queue = ctrl.open(depth=65535)
    queue.hold, block = True, ctrl.disk().block
    ids = [queue.submit(sqe.blocks(sqe.WRITE, 1, i, 1), nvme.pattern(i, block), capsule=False)
           for i in range(1000)]
    plain = [queue.submit(sqe.Sqe(FLUSH, 1)) for _ in range(20_000)]
    for cid in plain:
        queue.wait(cid)
    for _ in ids:
        queue.answer(queue.next_r2t())
    for cid in ids:
        queue.wait(cid)
    assert ctrl.disk().read(999) == nvme.pattern(999, block)


@with_host("every granted queue works at once, in any order")
def _(t, ctrl):
    granted = min(ctrl.set_feature(7, 0x003F003F).dw0 & 0xFFFF, 63) + 1
    for qid in range(granted, 0, -1):
        ctrl.open(qid)
    for queue in ctrl.queues:
        queue.do(sqe.Sqe(FLUSH, 1))


@with_host("Disconnect deletes an I/O queue, which can be made again")
def _(t, ctrl):
    for _ in range(3):
        queue = ctrl.open(1)
        queue.do(sqe.Sqe(FLUSH, 1))
        queue.do(sqe.disconnect())
        queue.close()
    ctrl.identify(1)


@with_host("CC.EN = 0 resets: I/O queues end, the admin queue stays, and it starts again")
def _(t, ctrl):
    queue = ctrl.open(1)
    aer = ctrl.aer()
    ctrl.set(nvme.CC, 0)
    ctrl.until(lambda: ctrl.get(nvme.CSTS) & 1 == 0, "CSTS.RDY = 0")
    queue.expect_closed()
    ctrl.admin.requests.pop(aer)
    ctrl.enable()
    ctrl.open(1).do(sqe.Sqe(FLUSH, 1))


@with_host("reset with writes that wait for data")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.queues[0]
    queue.hold = True
    for i in range(8):
        queue.submit(disk.command(sqe.WRITE, i, 1), bytes(disk.block), capsule=False)
        queue.next_r2t()
    ctrl.set(nvme.CC, 0)
    queue.expect_closed()
    ctrl.enable()
    assert ctrl.disk(queue=ctrl.open(1)).read(0) == bytes(disk.block)


@with_host("CC.SHN shuts down: CSTS.SHST says complete")
def _(t, ctrl):
    disk = ctrl.disk()
    disk.write(0, bytes(disk.block))
    for notification in (1, 2):
        ctrl.set(nvme.CC, nvme.CC_ENABLE | notification << 14)
        ctrl.until(lambda: ctrl.get(nvme.CSTS) >> 2 & 3 == 2, "CSTS.SHST = 2")


@with_host("after a shutdown, a reset brings it back")
def _(t, ctrl):
    ctrl.set(nvme.CC, nvme.CC_ENABLE | 1 << 14)
    ctrl.until(lambda: ctrl.get(nvme.CSTS) >> 2 & 3 == 2, "CSTS.SHST = 2")
    ctrl.set(nvme.CC, 0)
    ctrl.until(lambda: ctrl.get(nvme.CSTS) & 1 == 0, "CSTS.RDY = 0")
    ctrl.enable()
    ctrl.disk(queue=ctrl.open(1)).read(0)


@with_host("several hosts and associations share a namespace")
def _(t, ctrl):
    with connect(t, **OTHER) as second, connect(t) as third:
        disks = [c.disk() for c in (ctrl, second, third)]
        for i, disk in enumerate(disks):
            disk.write(i, nvme.pattern(i, disk.block))
        for disk in disks:
            assert all(disk.read(i) == nvme.pattern(i, disk.block) for i in range(3))
        shown = {(c["cntlid"], c["hostnqn"]) for c in t.controllers()}
        assert shown == {(ctrl.cntlid, nvme.HOSTNQN), (third.cntlid, nvme.HOSTNQN),
                         (second.cntlid, OTHER["hostnqn"])}


@with_target("controller ids are unique, and all go")
def _(t):
    ctrls = [connect(t) for _ in range(50)]
    assert len({c.cntlid for c in ctrls}) == 50
    for ctrl in ctrls:
        ctrl.close()
    weft.wait_until(lambda: not t.controllers(), "the controllers to go")


@with_host("status shows the queues of a controller")
def _(t, ctrl):
    for _ in range(3):
        ctrl.open()
    assert t.controllers()[0]["queues"] in (3, 4)       # with or without the admin queue
    assert sum(r["queues"] for r in t.ctl("status")["reactors"]) == 4


sys.exit(tap.run())
