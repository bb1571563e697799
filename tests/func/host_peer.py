#!/usr/bin/python3
"""host_peer.py - the scripted target proves itself: Python's host on Python's target.

What fails here is a fault of the tests, not of Weft."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import structures
import tap
from target import Target, normally

# name, words of the target, what the host asks for in its ICReq
WAYS = [
    ("plain", {}, {}),
    ("digests", {}, dict(hdgst=True, ddgst=True)),
    ("header digest alone", {}, dict(hdgst=True)),
    ("padding both ways", dict(cpda=31), dict(hpda=31)),
    ("small pieces", dict(piece=512, r2t_piece=512, maxh2c=4096), dict(maxr2t=3)),
    ("no data in the capsule", dict(icd=0), {}),
    ("four R2Ts at once", dict(r2t_piece=1000, r2ts_open=4, icd=0), dict(maxr2t=3)),
    ("segments of 7 bytes", dict(accepted=lambda conn: setattr(conn, "segment", 7)), {}),
]


def way(name, words, ic, flow):
    @tap.case(f"{name}, {'with' if flow else 'without'} SQ flow control")
    def _():
        with Target(success=not flow, **words) as t, nvme.Controller(t.addr, t.nqn, **ic) as ctrl:
            disk = ctrl.disk(queue=ctrl.open(flow=flow))
            assert disk.read(0, 64) == t.namespaces[1].data[:32768]
            disk.write(8, nvme.pattern(3, 16384))
            assert disk.read(8, 32) == nvme.pattern(3, 16384)
            disk.read(disk.blocks, want=nvme.LBA_RANGE)


for row in WAYS:
    for flow in (True, False):
        way(*row, flow)


@tap.case("an asynchronous event, a log, features")
def _():
    with Target() as t, nvme.Controller(t.addr, t.nqn) as ctrl:
        cid = ctrl.aer()
        assert ctrl.set_feature(7, 0x00FF00FF).dw0 == 0x00070007
        t.changed = [1]
        t.event(2, 0, 4)
        assert ctrl.event(cid) == (2, 0, 4)
        assert ctrl.log(4, 4096)[:8] == b"\1\0\0\0\0\0\0\0"
        ctrl.admin.do(sqe.Sqe(sqe.KEEP_ALIVE))


@tap.case("the discovery log in pieces")
def _():
    entries = [structures.entry("nqn.a", 4420), structures.entry("nqn.b", 4421)]
    with Target(log=structures.DiscoveryLog(entries)) as t, \
            nvme.Controller(t.addr, nvme.DISCOVERY) as ctrl:
        whole = b"".join(ctrl.log(0x70, 1024, at) for at in (0, 1024, 2048))
        assert whole == t.log.encode() and whole[8] == 2


@tap.case("a replaced step, and the original behind it")
def _():
    def read(conn, cmd):
        if cmd.slba == 5:
            return conn.complete(cmd, nvme.LBA_RANGE)
        return normally(conn, "read", cmd)

    with Target(read=read) as t, nvme.Controller(t.addr, t.nqn) as ctrl:
        disk = ctrl.disk()
        disk.read(5, want=nvme.LBA_RANGE)
        assert disk.read(4) == t.namespaces[1].data[2048:2560]


@tap.case("a host's fault is noticed")
def _():
    try:
        with Target() as t, nvme.Controller(t.addr, t.nqn) as ctrl:
            queue = ctrl.open()
            queue.send_pdu(nvme.pdu.H2CDATA, nvme.pdu.h2cdata(0, 99, 0, 4), b"abcd")
            queue.expect_closed()
    except AssertionError as err:
        assert "unknown tag" in str(err)
    else:
        raise AssertionError("it was not")


sys.exit(tap.run())
