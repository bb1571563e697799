#!/usr/bin/python3
"""target_features.py - Get and Set Features round trips, and the log pages."""
import pathlib
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import tap
import weft
from fixture import connect, with_host, with_target
from nvme import INVALID_FIELD, INVALID_LOG, pattern

ERROR_RECOVERY, VWC, QUEUES, AEN, TIMESTAMP, KATO, BEHAVIOR = 5, 6, 7, 0x0B, 0x0E, 0x0F, 0x16
DEFAULT, CAPABILITIES = 1, 3
CC, CSTS = 0x14, 0x1C
SUPPORTED = (ERROR_RECOVERY, VWC, QUEUES, AEN, TIMESTAMP, KATO, BEHAVIOR)


@with_host("feature: number of queues")
def _(t, ctrl):
    granted = ctrl.set_feature(QUEUES, 0x00030003).dw0
    assert granted & 0xFFFF >= 3 and granted >> 16 >= 3
    assert ctrl.get_feature(QUEUES).dw0 == granted
    for qid in range(1, 5):
        ctrl.open(qid)


@with_host("feature: number of queues, an absurd wish is cut down")
def _(t, ctrl):
    granted = ctrl.set_feature(QUEUES, 0xFFFEFFFE).dw0
    assert 3 <= granted & 0xFFFF <= 0xFFFE
    ctrl.set_feature(QUEUES, 0xFFFF, want=INVALID_FIELD)


@with_host("feature: number of queues, not while one of them is connected")
def _(t, ctrl):
    granted, queue = ctrl.set_feature(QUEUES, 0x00030003).dw0, ctrl.open(1)
    assert ctrl.set_feature(QUEUES, 0x00070007, want=nvme.SEQUENCE_ERROR).dnr
    assert ctrl.get_feature(QUEUES).dw0 == granted
    ctrl.open(4)
    queue.do(sqe.disconnect())
    ctrl.set_feature(QUEUES, 0x00070007, want=nvme.SEQUENCE_ERROR)
    ctrl.queues[-1].do(sqe.disconnect())
    assert ctrl.set_feature(QUEUES, 0x00070007).dw0 == 0x00070007


@with_host("feature: keep alive timeout, rounded up to the granularity", host=dict(kato=30_000))
def _(t, ctrl):
    unit = 100 * struct.unpack_from("<H", ctrl.id, 320)[0]
    assert ctrl.get_feature(KATO).dw0 == 30_000 and 30_000 % unit == 0
    for value in (60_000, 60_001, 60_000 + unit - 1, 60_000 + unit, 60_001 + unit, 0):
        ctrl.set_feature(KATO, value)
        assert ctrl.get_feature(KATO).dw0 == -(-value // unit) * unit, value
    with connect(t, kato=30_001) as other:
        assert other.get_feature(KATO).dw0 == 30_000 + unit


@with_target("feature: a keep alive timeout of 1 ms is one")
def _(t):
    with nvme.Queue(t.addr) as queue:
        queue.connect(t.nqn, kato=1)
        queue.expect_closed()


@with_host("feature: asynchronous event configuration belongs to one controller")
def _(t, ctrl):
    with connect(t) as other:
        before = other.get_feature(AEN).dw0
        for value in (0x100, 0):
            ctrl.set_feature(AEN, value)
            assert ctrl.get_feature(AEN).dw0 == value
        assert other.get_feature(AEN).dw0 == before


@with_host("feature: host behavior support")
def _(t, ctrl):
    assert ctrl.get_feature(BEHAVIOR, 512).data[0] == 0
    ctrl.set_feature(BEHAVIOR, out=b"\1".ljust(512, b"\0"))
    assert ctrl.get_feature(BEHAVIOR, 512).data[0] == 1
    ctrl.set_feature(BEHAVIOR, out=b"\2".ljust(512, b"\0"), want=(INVALID_FIELD, nvme.SUCCESS))


@with_host("feature: volatile write cache", ns=["file:{dir}/a.img,size=16M"])
def _(t, ctrl):
    if not ctrl.id[525] & 1:
        return ctrl.get_feature(VWC, want=INVALID_FIELD)
    for value in (0, 1):
        ctrl.set_feature(VWC, value)
        assert ctrl.get_feature(VWC).dw0 & 1 == value
    ctrl.disk().write(0, bytes(ctrl.disk().block))


@with_host("feature: timestamp")
def _(t, ctrl):
    start = 1_700_000_000_000
    ctrl.set_feature(TIMESTAMP, out=struct.pack("<Q", start))
    raw = ctrl.get_feature(TIMESTAMP, 8).data
    now = int.from_bytes(raw[:6], "little")
    assert start <= now < start + 60_000 and raw[6] >> 1 & 7 == 1
    weft.wait_until(lambda: ctrl.get_feature(TIMESTAMP, 8).data[:6] != raw[:6], "it to go on")


def since_reset(ctrl):
    """The timestamp of a controller whose host has set none."""
    raw = ctrl.get_feature(TIMESTAMP, 8).data
    assert raw[6] >> 1 & 7 == 0, "origin: a controller level reset"
    return int.from_bytes(raw[:6], "little")


@with_target("feature: timestamp counts from the controller's reset until a host sets it")
def _(t):
    began = time.monotonic()
    with connect(t) as ctrl:
        assert since_reset(ctrl) <= (time.monotonic() - began) * 1000 + 1
        ctrl.set_feature(TIMESTAMP, out=struct.pack("<Q", 1_700_000_000_000))
        began = time.monotonic()
        ctrl.set(CC, 0)
        ctrl.until(lambda: not ctrl.get(CSTS) & 1, "the reset to end")
        ctrl.enable()
        assert since_reset(ctrl) <= (time.monotonic() - began) * 1000 + 1


@with_host("feature: error recovery")
def _(t, ctrl):
    ctrl.set_feature(ERROR_RECOVERY, 50, nsid=1)
    assert ctrl.get_feature(ERROR_RECOVERY, nsid=1).dw0 & 0xFFFF == 50


@with_host("feature: host identifier is the one of Connect")
def _(t, ctrl):
    raw = ctrl.get_feature(0x81, 16, dw11=1, want=(nvme.SUCCESS, INVALID_FIELD))
    assert raw.status or raw.data == nvme.HOSTID


@with_host("features: default, saved and capabilities")
def _(t, ctrl):
    ctrl.set_feature(ERROR_RECOVERY, 50, nsid=1)
    assert ctrl.get_feature(ERROR_RECOVERY, nsid=1, sel=DEFAULT).dw0 == 0
    assert ctrl.get_feature(AEN, sel=CAPABILITIES).dw0 & 5 == 4, "changeable, not saveable"


@with_host("features: unknown ones")
def _(t, ctrl):
    for fid in (0, 3, 0x7F, 0x90, 0xC0, 0xFF):
        assert ctrl.get_feature(fid, want=INVALID_FIELD).dnr
        assert ctrl.set_feature(fid, want=INVALID_FIELD).dnr


@with_host("log 00: supported log pages")
def _(t, ctrl):
    raw = struct.unpack("<256I", ctrl.log(0, 1024))
    for lid in (0, 1, 2, 3, 4, 5, 0x12):
        assert raw[lid] & 1, f"log page {lid:#x}"
    for lid in (0x0D, 0x7F, 0xC0):
        assert not raw[lid] & 1 and ctrl.log(lid, 512, want=INVALID_LOG) == b""
    assert not raw[0x70] & 1, "an I/O controller has no discovery log"


def newest_error(ctrl):
    count, sqid, cid, _, _, lba, nsid = struct.unpack_from("<QHHHHQI", ctrl.log(1, 64))
    assert count
    return sqid, cid, lba, nsid


@with_host("log 01: errors, with an LBA where the command has one")
def _(t, ctrl):
    queue, far = ctrl.disk().queue, dict(dw10=0x89ABCDEF, dw11=0x1234567)
    for opcode in (sqe.READ, sqe.WRITE, sqe.COMPARE, sqe.WRITE_ZEROES, sqe.VERIFY):
        cqe = queue.do(sqe.Sqe(opcode, 9, **far), want=nvme.INVALID_NS)
        assert newest_error(ctrl) == (1, cqe.cid, 0x123456789ABCDEF, 9), hex(opcode)
    for opcode in (sqe.FLUSH, sqe.DSM, sqe.COPY, sqe.RESV_REPORT, sqe.RESV_REGISTER, 0x7E):
        cqe = queue.do(sqe.Sqe(opcode, 9, **far), want=(nvme.INVALID_NS, nvme.INVALID_OPCODE))
        assert newest_error(ctrl) == (1, cqe.cid, 0, 9), hex(opcode)
    cqe = ctrl.admin.do(sqe.Sqe(0x7E, 9, **far), want=nvme.INVALID_OPCODE)
    assert newest_error(ctrl) == (0, cqe.cid, 0, 9)


def smart(ctrl):
    raw = ctrl.log(2, 512, nsid=0xFFFFFFFF)
    return [int.from_bytes(raw[at:at + 16], "little") for at in (64, 80)]


@with_host("log 02: health counts commands")
def _(t, ctrl):
    reads, writes = smart(ctrl)
    disk = ctrl.disk()
    for _ in range(10):
        disk.write(0, disk.read(0))
    assert smart(ctrl) == [reads + 10, writes + 10]
    assert ctrl.log(2, 512)[0] == 0, "no critical warning"


def units_read(ctrl):
    return int.from_bytes(ctrl.log(2, 512, nsid=0xFFFFFFFF)[32:48], "little")


@with_host("log 02: Compare and Verify count as reading", ns=["mem:16M", "file:{dir}/a.img,size=16M"])
def _(t, ctrl):
    queue = ctrl.open()
    for nsid in (1, 2):
        disk = ctrl.disk(nsid, queue)
        count = 1 + 512000 // disk.block                 # blocks that are more than a data unit
        reads, writes = smart(ctrl)
        units = units_read(ctrl)
        disk.verify(0, count)
        assert units_read(ctrl) > units, (nsid, "Verify")
        assert smart(ctrl) == [reads + 1, writes], (nsid, "Verify")
        units = units_read(ctrl)
        for at in range(0, count, 8):
            disk.compare(at, bytes(8 * disk.block))
        disk.compare(0, pattern(1, disk.block), want=nvme.COMPARE_FAILURE)
        compares = len(range(0, count, 8)) + 1
        assert units_read(ctrl) > units, (nsid, "Compare")
        assert smart(ctrl) == [reads + 1 + compares, writes], (nsid, "Compare")
        pair = disk.compare_and_write(0, bytes(disk.block), pattern(1, disk.block))
        assert pair == (0, 0) and smart(ctrl) == [reads + 2 + compares, writes + 1], (nsid, pair)
        disk.verify(1 << 40, 1, want=nvme.LBA_RANGE)
        disk.compare(1 << 40, bytes(disk.block), want=nvme.LBA_RANGE)
        assert smart(ctrl) == [reads + 2 + compares, writes + 1], "what was refused does not count"


@with_host("log 03: firmware slot")
def _(t, ctrl):
    raw = ctrl.log(3, 512)
    assert raw[0] & 7 == 1 and raw[8:16] == ctrl.id[64:72]


@with_host("log 04: no namespace has changed")
def _(t, ctrl):
    assert ctrl.log(4, 4096) == bytes(4096)


# opcodes that the effects log must and must not claim
ADMIN = ((0x02, 0x06, 0x08, 0x09, 0x0A, 0x0C, 0x18), (0x00, 0x01, 0x0D, 0x80, 0xC0))
IO = ((0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0C, 0x0D, 0x0E, 0x11, 0x15, 0x19),
      (0x04, 0x7E, 0xC0))


@with_host("log 05: effects, and they are true")
def _(t, ctrl):
    effects = struct.unpack("<512I", ctrl.log(5, 2048))
    for base, (there, absent) in ((0, ADMIN), (256, IO)):
        assert all(effects[base + op] & 1 for op in there)
        assert not any(effects[base + op] & 1 for op in absent)
    for op in (sqe.WRITE, sqe.WRITE_ZEROES, sqe.DSM, sqe.COPY):
        assert effects[256 + op] & 2, f"LBCC of opcode {op:#x}"
    unclaimed = next(op for op in range(0x20, 0x7F) if not effects[op] & 1)
    ctrl.admin.do(sqe.Sqe(unclaimed), want=nvme.INVALID_OPCODE)


@with_host("log 09: endurance group")
def _(t, ctrl):
    groups = struct.unpack_from("<H", ctrl.id, 340)[0]
    if groups:
        ctrl.log(9, 512, lsi=1)
    ctrl.log(9, 512, lsi=groups + 1, want=(INVALID_FIELD, INVALID_LOG))


@with_host("log 12: features, and they are true")
def _(t, ctrl):
    features = struct.unpack("<256I", ctrl.log(0x12, 1024))
    assert all(features[fid] & 1 for fid in SUPPORTED if fid != VWC or ctrl.id[525] & 1)
    for fid in range(256):
        cqe = ctrl.get_feature(fid, 4096, nsid=1, want=None)
        assert bool(features[fid] & 1) or cqe.status == INVALID_FIELD, f"feature {fid:#x}"


@with_host("log 70: only on a discovery controller")
def _(t, ctrl):
    ctrl.log(0x70, 1024, want=INVALID_LOG)


@with_host("log pages in pieces")
def _(t, ctrl):
    for lid, size, piece in ((0, 1024, 4), (3, 512, 64), (5, 4096, 252), (0x12, 1024, 100)):
        whole = ctrl.log(lid, size)
        parts = b"".join(ctrl.log(lid, min(piece, size - at), at)
                         for at in range(0, size, piece))
        assert parts == whole, f"log page {lid:#x} in pieces of {piece}"


sys.exit(tap.run())
