#!/usr/bin/python3
"""target_ccr.py - Cross-Controller Reset: whom it ends, whom it does not, and who may ask."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import tap
from ccr import CCR, CCR_LOG, IRS, OP_DENIED, RMC, Instance, reset
from fixture import connect, with_host, with_target
from nvme import INVALID_FIELD, INVALID_OPCODE, SUCCESS, pattern

ALICE = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-00000000a11c"
OTHER = "nqn.2026-11.io.weft:other"


@with_host("Identify: CIU, CIRN, CCRL, CQT, the notice, the effects")
def _(t, ctrl):
    raw = ctrl.identify(1)
    assert raw[135] and any(raw[136:144]) and raw[1807]
    assert struct.unpack_from("<H", raw, 386)[0] > 0, "CQT"
    assert struct.unpack_from("<I", raw, 92)[0] & 1 << 20, "OAES"
    assert struct.unpack_from("<I", ctrl.log(5, 4096), 4 * CCR)[0] & 1
    with connect(t) as other:
        assert Instance(ctrl).cirn != Instance(other).cirn


@with_host("an instance lasts until the controller is enabled anew")
def _(t, ctrl):
    before = Instance(ctrl)
    assert Instance(ctrl).key() == before.key()
    ctrl.set(nvme.CC, 0)
    ctrl.until(lambda: not ctrl.get(nvme.CSTS) & 1, "reset")
    ctrl.enable()
    after = Instance(ctrl)
    assert after.cntlid == before.cntlid and after.ciu != before.ciu and after.cirn != before.cirn


@with_host("the named controller ends, with its queues; the others go on")
def _(t, ctrl):
    with connect(t) as lost, connect(t) as stays:
        queue = lost.open()
        disk = ctrl.disk()
        assert reset(ctrl, *Instance(lost).key()) == IRS
        queue.expect_closed()
        lost.admin.expect_closed()
        assert sorted(c["cntlid"] for c in t.controllers()) == sorted([ctrl.cntlid, stays.cntlid])
        disk.write(0, pattern(1, disk.block))
        stays.disk().read(0)


@with_host("what is over already is over: gone, reset, or another one's number by now")
def _(t, ctrl):
    with connect(t) as lost:
        named = Instance(lost)
    ctrl.until(lambda: len(t.controllers()) == 1, "end")
    assert reset(ctrl, *named.key()) == IRS
    with connect(t) as lost:
        named = Instance(lost)
        lost.set(nvme.CC, 0)
        lost.until(lambda: not lost.get(nvme.CSTS) & 1, "reset")
        lost.enable()
        assert reset(ctrl, *named.key()) == IRS
        now = Instance(lost)
        for wrong in ((now.cntlid, now.ciu ^ 1, now.cirn), (now.cntlid, now.ciu, now.cirn ^ 1)):
            assert reset(ctrl, *wrong) == IRS
        lost.disk().read(0)                     # nobody touched it


@with_host("never itself, nor a number that no controller has")
def _(t, ctrl):
    itself = Instance(ctrl)
    reset(ctrl, *itself.key(), want=INVALID_FIELD)
    reset(ctrl, 0, 1, 1, want=INVALID_FIELD)
    reset(ctrl, 0xFFFF, 1, 1, want=INVALID_FIELD)
    ctrl.disk().read(0)


@with_host("never another host's, by name or by id")
def _(t, ctrl):
    for host in (dict(hostnqn=ALICE), dict(hostid=bytes(range(2, 18)))):
        with connect(t, **host) as alice:
            reset(ctrl, *Instance(alice).key(), want=OP_DENIED)
            alice.disk().read(0)
            reset(alice, *Instance(ctrl).key(), want=OP_DENIED)
    ctrl.disk().read(0)


@with_target("never another subsystem's, nor one of the discovery service")
def _(t):
    t.ctl("subsystem-add", nqn=OTHER, allow_any_host=True, namespaces=[{"backend": "mem:16M"}])
    with connect(t) as ctrl, connect(t, nqn=OTHER) as there, connect(t, nqn=OTHER) as second, \
            connect(t, nqn=nvme.DISCOVERY) as discovery:
        # The same number may be somebody here: it is the instance that counts.
        reset(ctrl, *Instance(second).key(), want=(SUCCESS, INVALID_FIELD))
        there.disk().read(0)
        second.disk().read(0)
        reset(discovery, *Instance(ctrl).key(), want=INVALID_OPCODE)
        ctrl.disk().read(0)


@with_host("a command that owes data goes with its controller")
def _(t, ctrl):
    with connect(t) as lost:
        disk = lost.disk()
        before = disk.read(0)
        disk.queue.hold = True
        disk.queue.submit(disk.command(sqe.WRITE, 0, 1), pattern(1, disk.block), capsule=False)
        disk.queue.next_r2t()
        assert reset(ctrl, *Instance(lost).key()) == IRS
        disk.queue.expect_closed()
    assert ctrl.disk().read(0) == before


@with_host("the log page: nothing while every reset ends at once; RMC")
def _(t, ctrl):
    with connect(t) as lost:
        reset(ctrl, *Instance(lost).key())
    for lsp in (0, RMC):
        assert ctrl.log(CCR_LOG, 512, lsp=lsp) == bytes(512)


@with_host("100 controllers come and are reset under load", limit_s=120)
def _(t, ctrl):
    disk = ctrl.disk()
    for i in range(100):
        with connect(t) as lost:
            theirs = lost.disk()
            for at in range(8):
                theirs.queue.submit(theirs.command(sqe.WRITE, at, 1), pattern(i, disk.block))
            assert reset(ctrl, *Instance(lost).key()) == IRS
            after = [disk.read(at) for at in range(8)]
            lost.close()
        assert [disk.read(at) for at in range(8)] == after, "a late write"


sys.exit(tap.run())
