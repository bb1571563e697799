"""commands.py - commands that must fail with the right status and harm nothing else."""
import struct

import bad
import nvme
import sqe
from nvme import INVALID_FIELD, INVALID_LOG, INVALID_NS, INVALID_OPCODE, LBA_RANGE, MISSING_FUSED
from nvme import SGL_LENGTH, SGL_OFFSET, SGL_TYPE, SUCCESS
from tap import case

ANY_SGL_ERROR = (SGL_TYPE, INVALID_FIELD, 0x0D)
ALL_NS = 0xFFFFFFFF

# name, command, length of data in, status
ADMIN = [
    *[(f"opcode {op:#x}", sqe.Sqe(op), 0, INVALID_OPCODE)
      for op in (0x00, 0x01, 0x03, 0x04, 0x05, 0x07, 0x0D, 0x15, 0x7E, 0xC0, 0xFF)],
    *[(f"Identify CNS {cns:#x}", sqe.identify(cns, 1), 4096, INVALID_FIELD)
      for cns in (0x0B, 0x14, 0x15, 0x16, 0x3F, 0xC0, 0xFF)],
    ("Identify namespace 0", sqe.identify(0, 0), 4096, (INVALID_NS, INVALID_FIELD)),
    ("Identify descriptors of namespace 0", sqe.identify(3, 0), 4096, (INVALID_NS, INVALID_FIELD)),
    ("Identify descriptors of all namespaces", sqe.identify(3, ALL_NS), 4096,
     (INVALID_NS, INVALID_FIELD)),
    ("Identify active list from FFFFFFFEh", sqe.identify(2, ALL_NS - 1), 4096, INVALID_NS),
    ("Identify active list from FFFFFFFFh", sqe.identify(2, ALL_NS), 4096, INVALID_NS),
    *[(f"Identify CNS {cns:#x} of an unknown command set", sqe.identify(cns, 1, csi=0xFF), 4096,
       (INVALID_FIELD, 0x12B, 0x12C)) for cns in (5, 6, 7)],
    ("Identify with 512 bytes of room", sqe.identify(1), 512, (SGL_LENGTH, INVALID_FIELD)),
    ("Identify without room", sqe.identify(1), 0, (SGL_LENGTH, SGL_TYPE, INVALID_FIELD)),
    *[(f"Get Log Page {lid:#x}", sqe.get_log(lid, 512), 512, INVALID_LOG)
      for lid in (0x3F, 0x7E, 0xC0, 0xFF)],
    ("Get Log Page at an odd offset", sqe.get_log(2, 512, 2), 512, INVALID_FIELD),
    ("Get Log Page beyond its end", sqe.get_log(2, 512, 1 << 40), 512, INVALID_FIELD),
    ("Get Log Page just beyond its end", sqe.get_log(3, 512, 516), 512, INVALID_FIELD),
    ("Get Log Page with less room than it asks for", sqe.get_log(2, 512), 256,
     (SGL_LENGTH, INVALID_FIELD)),
    ("Get Log Page of 16 GiB", sqe.Sqe(sqe.GET_LOG, dw10=2 | 0xFFFF << 16, dw11=0xFFFF), 512,
     (SGL_LENGTH, INVALID_FIELD)),
    *[(f"Get Features {fid:#x}", sqe.get_features(fid), 0, INVALID_FIELD)
      for fid in (0x00, 0x7F, 0xC0, 0xFF)],
    *[(f"Set Features {fid:#x}", sqe.set_features(fid), 0, INVALID_FIELD)
      for fid in (0x00, 0x7F, 0xC0, 0xFF)],
    ("Get Features with SELECT 7", sqe.get_features(7, sel=7), 0, INVALID_FIELD),
    ("Set Features: 65536 queues", sqe.set_features(7, 0xFFFFFFFF), 0, INVALID_FIELD),
    ("Set Features: save what is not saveable", sqe.set_features(7, 0x00010001, save=1), 0,
     nvme.NOT_SAVEABLE),
    ("Set Features: timestamp without data", sqe.set_features(0x0E), 0,
     (SGL_LENGTH, SGL_TYPE, INVALID_FIELD)),
    ("Set Features: AEN configuration of one namespace", sqe.set_features(0x0B, 0, nsid=1), 0,
     (0x10F, INVALID_FIELD, SUCCESS)),
    ("fused", sqe.Sqe(sqe.KEEP_ALIVE, fuse=1), 0, (INVALID_FIELD, MISSING_FUSED, SUCCESS)),
    ("PRP instead of SGL", sqe.identify(1, psdt=0), 4096, INVALID_FIELD),
    ("PSDT 3", sqe.identify(1, psdt=3), 4096, INVALID_FIELD),
]


def wrong_admin(name, command, length, want):
    @case(f"admin: {name}")
    def _():
        with bad.admin() as queue:
            cid = queue.submit(command, length=length)
            bad.refused(queue, cid, want, dnr=1 if isinstance(want, int) else None)
            queue.ctrl.identify(1)


for row in ADMIN:
    wrong_admin(*row)


@case("admin: more Asynchronous Event Requests than AERL")
def _():
    with bad.controller() as ctrl:
        for _ in range(ctrl.id[259] + 1):
            ctrl.aer()
        bad.refused(ctrl.admin, ctrl.aer(), nvme.AER_LIMIT, dnr=None)


@case("admin: Set Features: host identifier")
def _():
    with bad.controller() as ctrl:
        ctrl.set_feature(0x81, 1, bytes(16),
                         want=(nvme.SEQUENCE_ERROR, INVALID_FIELD, nvme.NOT_CHANGEABLE))


@case("admin: Abort of what does not exist")
def _():
    with bad.admin() as queue:
        for sqid, cid in ((0, 0x1234), (1, 0), (0xFFFF, 0xFFFF)):
            cqe = queue.do(sqe.abort(sqid, cid), want=(SUCCESS, INVALID_FIELD, 0x101))
            assert cqe.status or cqe.dw0 & 1, "it says it aborted something"


# On an I/O queue: name, opcode or command, length of data in, status
IO = [
    *[(f"opcode {op:#x}", sqe.Sqe(op, 1), 0, INVALID_OPCODE)
      for op in (0x03, 0x06, 0x12, 0x18, 0x1D, 0x7E, 0xC0, 0xFF)],
    *[(f"Read of namespace {nsid:#x}", sqe.blocks(sqe.READ, nsid, 0, 1), 4096, INVALID_NS)
      for nsid in (0, 99, 0xFFFFFFFE)],
    ("Read of all namespaces", sqe.blocks(sqe.READ, ALL_NS, 0, 1), 4096,
     (INVALID_NS, INVALID_FIELD)),
    ("Flush of namespace 0", sqe.Sqe(sqe.FLUSH, 0), 0, INVALID_NS),
    ("Flush of namespace 99", sqe.Sqe(sqe.FLUSH, 99), 0, INVALID_NS),
    ("Verify of namespace 99", sqe.blocks(sqe.VERIFY, 99, 0, 1), 0, INVALID_NS),
    ("Write Zeroes to namespace 99", sqe.blocks(sqe.WRITE_ZEROES, 99, 0, 1), 0, INVALID_NS),
    ("Write Zeroes to all namespaces", sqe.blocks(sqe.WRITE_ZEROES, ALL_NS, 0, 1), 0,
     (INVALID_NS, INVALID_FIELD)),
    ("FUSE 3", sqe.blocks(sqe.READ, 1, 0, 1, fuse=3), 4096, INVALID_FIELD),
    ("PRP instead of SGL", sqe.blocks(sqe.READ, 1, 0, 1, psdt=0), 4096, INVALID_FIELD),
    ("PSDT 3", sqe.blocks(sqe.READ, 1, 0, 1, psdt=3), 4096, INVALID_FIELD),
    *[(f"Read with PRINFO {prinfo:#x}", sqe.blocks(sqe.READ, 1, 0, 1, bits=prinfo << 26), 4096,
       (SUCCESS, INVALID_FIELD, nvme.INVALID_PI)) for prinfo in (0x8, 0x1, 0xF)],
    ("lone second of a fused pair", sqe.blocks(sqe.WRITE_ZEROES, 1, 0, 1, fuse=2), 0,
     (MISSING_FUSED, INVALID_FIELD)),
    *[(f"Read with SGL type {kind:#x}", sqe.blocks(sqe.READ, 1, 0, 1, sgl=sqe.sgl(0, 4096, kind)),
       4096, ANY_SGL_ERROR)
      for kind in (0x00, 0x0F, 0x10, 0x20, 0x30, 0x40, 0x50, 0x5B, 0x60, 0xF0, 0xFF)],
    ("Read into the capsule", sqe.blocks(sqe.READ, 1, 0, 1, sgl=sqe.sgl_capsule(4096)), 4096,
     (*ANY_SGL_ERROR, SGL_OFFSET, SGL_LENGTH)),
    ("Read with no room", sqe.blocks(sqe.READ, 1, 0, 1), 0, (SGL_LENGTH, *ANY_SGL_ERROR)),
    ("Read with too little room", sqe.blocks(sqe.READ, 1, 0, 2), 4, SGL_LENGTH),
    ("Write of an SGL that is too short", sqe.blocks(sqe.WRITE, 1, 0, 8), 512, SGL_LENGTH),
    ("Write from the capsule without data",
     sqe.blocks(sqe.WRITE, 1, 0, 1, sgl=sqe.sgl_capsule(4096)), 0,
     (SGL_LENGTH, SGL_OFFSET, *ANY_SGL_ERROR)),
    ("DSM without ranges", sqe.dsm(1, 1), 0, (SGL_LENGTH, *ANY_SGL_ERROR)),
    ("Copy without ranges", sqe.copy(1, 0, 1), 0, (SGL_LENGTH, *ANY_SGL_ERROR)),
    *[(f"{name} without data", sqe.Sqe(op, 1), 0, (SGL_LENGTH, *ANY_SGL_ERROR))
      for name, op in (("Reservation Register", sqe.RESV_REGISTER),
                       ("Reservation Acquire", sqe.RESV_ACQUIRE),
                       ("Reservation Release", sqe.RESV_RELEASE))],
]


def wrong_io(name, command, length, want):
    @case(f"I/O: {name}")
    def _():
        with bad.io() as queue:
            queue.hold = True
            cid = queue.submit(command, length=length)
            bad.refused(queue, cid, want, dnr=1 if isinstance(want, int) else None)
            bad.usable(queue)


for row in IO:
    wrong_io(*row)


@case("I/O: Write with SGL length 0xFFFFFFFF is asked for its data alone")
def _():
    with bad.io() as queue:
        data = bytes(queue.disk.block)
        command = queue.disk.command(sqe.WRITE, 0, 1, sgl=sqe.sgl_transport(0xFFFFFFFF))
        queue.do(command, data, capsule=False)
        bad.usable(queue)


# With data in the capsule: name, command from a Disk, bytes sent, status
WITH_DATA = [
    ("SGL offset beyond the capsule",
     lambda d: d.command(sqe.WRITE, 0, 1, sgl=sqe.sgl_capsule(d.block, 1 << 20)), None,
     (SGL_OFFSET, INVALID_FIELD)),
    ("SGL offset 2^64-1",
     lambda d: d.command(sqe.WRITE, 0, 1, sgl=sqe.sgl_capsule(d.block, (1 << 64) - 1)), None,
     (SGL_OFFSET, INVALID_FIELD)),
    ("SGL ends beyond the capsule",
     lambda d: d.command(sqe.WRITE, 0, 1, sgl=sqe.sgl_capsule(d.block, 4)), None,
     (SGL_OFFSET, SGL_LENGTH, INVALID_FIELD)),
    ("SGL longer than the capsule",
     lambda d: d.command(sqe.WRITE, 0, 2, sgl=sqe.sgl_capsule(2 * d.block)), None,
     (SGL_OFFSET, SGL_LENGTH, INVALID_FIELD)),
    ("SGL shorter than the blocks", lambda d: d.command(sqe.WRITE, 0, 1), 64,
     (SGL_LENGTH, INVALID_FIELD)),
    ("DSM with fewer ranges than it says", lambda d: sqe.dsm(d.nsid, 2), 16,
     (SGL_LENGTH, INVALID_FIELD)),
    ("Copy with fewer ranges than it says", lambda d: sqe.copy(d.nsid, 0, 2), 32,
     (SGL_LENGTH, INVALID_FIELD)),
    ("Copy with an unknown descriptor format", lambda d: sqe.copy(d.nsid, 0, 1, fmt=15), 32,
     INVALID_FIELD),
    ("Write to namespace 99", lambda d: sqe.blocks(sqe.WRITE, 99, 0, 1), None, INVALID_NS),
    ("Compare with namespace 0", lambda d: sqe.blocks(sqe.COMPARE, 0, 0, 1), None, INVALID_NS),
    ("Write with FUSE 3", lambda d: d.command(sqe.WRITE, 0, 1, fuse=3), None, INVALID_FIELD),
    ("lone fused Write", lambda d: d.command(sqe.WRITE, 0, 1, fuse=2), None, MISSING_FUSED),
    ("Read as the second of a pair", lambda d: d.command(sqe.READ, 0, 1, fuse=2), None,
     (MISSING_FUSED, INVALID_FIELD, *ANY_SGL_ERROR)),
]


def wrong_with_data(name, command, size, want):
    @case(f"I/O: {name}")
    def _():
        with bad.io() as queue:
            data = bytes(queue.disk.block if size is None else size)
            cid = queue.submit(command(queue.disk), data, capsule=True)
            bad.refused(queue, cid, want, dnr=None)
            bad.usable(queue)


for row in WITH_DATA:
    wrong_with_data(*row)

# slba as a function of the size in blocks, count
RANGES = [
    ("the first block beyond", lambda size: size, 1),
    ("across the end", lambda size: size - 1, 2),
    ("slba 2^63", lambda size: 1 << 63, 1),
    ("slba 2^64-1", lambda size: (1 << 64) - 1, 1),
    ("slba plus nlb overflows", lambda size: (1 << 64) - 1, 2),
    ("slba in bytes overflows", lambda size: 1 << 52, 1),
]
OPCODES = [("Read", sqe.READ, 1, 0), ("Write", sqe.WRITE, 0, 1), ("Compare", sqe.COMPARE, 0, 1),
           ("Write Zeroes", sqe.WRITE_ZEROES, 0, 0), ("Verify", sqe.VERIFY, 0, 0)]


def out_of_range(name, slba, count, verb, opcode, data_in, data_out):
    @case(f"{verb}: {name}")
    def _():
        with bad.io() as queue:
            disk, queue.hold = queue.disk, True
            size = count * disk.block
            cid = queue.submit(disk.command(opcode, slba(disk.blocks), count),
                               bytes(size * data_out), size * data_in)
            bad.refused(queue, cid, LBA_RANGE)
            bad.usable(queue)


for range_row in RANGES:
    for op_row in OPCODES:
        out_of_range(*range_row, *op_row)


@case("DSM and Copy: out of range")
def _():
    with bad.io() as queue:
        disk = queue.disk
        for slba, count in ((disk.blocks, 1), (disk.blocks - 1, 2), ((1 << 64) - 1, 2)):
            disk.deallocate([(slba, count)], want=(LBA_RANGE, SUCCESS))
            disk.copy(0, [(slba, count)], want=LBA_RANGE)
            disk.copy(slba, [(0, count)], want=LBA_RANGE)


def over_mdts(verb, opcode, data_in, data_out):
    @case(f"{verb}: more than MDTS")
    def _():
        with bad.controller() as ctrl:
            disk, queue = ctrl.disk(), ctrl.queues[0]
            size = (ctrl.mdts or 65536 * disk.block) + disk.block
            if size // disk.block > 65536:
                return
            queue.hold = True
            cid = queue.submit(disk.command(opcode, 0, size // disk.block),
                               bytes(size * data_out), size * data_in)
            bad.refused(queue, cid, INVALID_FIELD)
            assert not queue.r2ts, "data solicited beyond MDTS"
            bad.usable(queue)


for op_row in OPCODES[:3]:
    over_mdts(*op_row)


@case("Copy: more ranges and more blocks than the namespace takes")
def _():
    with bad.controller() as ctrl:
        disk = ctrl.disk()
        mssrl, mcl, msrc = struct.unpack_from("<HIB", ctrl.identify(0, 1), 74)
        if msrc < 255:
            disk.copy(0, [(0, 1)] * (msrc + 2), want=(nvme.SIZE_LIMIT, INVALID_FIELD))
        if mssrl < min(disk.blocks, 65535):
            disk.copy(0, [(0, mssrl + 1)], want=(nvme.SIZE_LIMIT, INVALID_FIELD))
        assert mcl >= mssrl


@case("fused: lone first is aborted when another command follows")
def _():
    with bad.io() as queue:
        disk = queue.disk
        first = queue.submit(disk.command(sqe.COMPARE, 0, 1, fuse=1), bytes(disk.block))
        bad.usable(queue)
        bad.refused(queue, first, MISSING_FUSED, dnr=None)


@case("fused: two firsts")
def _():
    with bad.io() as queue:
        disk, block = queue.disk, bytes(queue.disk.block)
        ids = [queue.submit(disk.command(sqe.COMPARE, 0, 1, fuse=1), block) for _ in range(2)]
        bad.usable(queue)
        for cid in ids:
            bad.refused(queue, cid, MISSING_FUSED, dnr=None)


@case("fused: first, then the connection closes")
def _():
    with bad.io() as queue:
        queue.submit(queue.disk.command(sqe.COMPARE, 0, 1, fuse=1), bytes(queue.disk.block))


# The pair's (opcode, slba, count) twice; the allowed statuses of each
PAIRS = [
    ("different starts", (sqe.COMPARE, 0, 1), (sqe.WRITE, 1, 1)),
    ("different lengths", (sqe.COMPARE, 0, 1), (sqe.WRITE, 0, 2)),
    ("write and compare", (sqe.WRITE, 0, 1), (sqe.COMPARE, 0, 1)),
    ("two writes", (sqe.WRITE, 0, 1), (sqe.WRITE, 0, 1)),
]


def wrong_pair(name, first, second):
    @case(f"fused: {name}")
    def _():
        with bad.io() as queue:
            disk = queue.disk
            before = disk.read(0, 2)
            ids = [queue.submit(disk.command(*part, fuse=fuse), b"\xEE" * part[2] * disk.block)
                   for fuse, part in ((1, first), (2, second))]
            bad.usable(queue)
            for cid in ids:
                bad.refused(queue, cid, (INVALID_FIELD, nvme.FAILED_FUSED, MISSING_FUSED), dnr=None)
            assert disk.read(0, 2) == before, "a refused pair changed data"


for row in PAIRS:
    wrong_pair(*row)


@case("fused: first and second in different namespaces")
def _():
    with bad.io() as queue:
        disk, block = queue.disk, bytes(queue.disk.block)
        first = queue.submit(disk.command(sqe.COMPARE, 0, 1, fuse=1), block)
        second = queue.submit(sqe.blocks(sqe.WRITE, 99, 0, 1, fuse=2), block)
        bad.usable(queue)
        queue.wait(first, (INVALID_FIELD, INVALID_NS, nvme.FAILED_FUSED, MISSING_FUSED))
        queue.wait(second, (INVALID_FIELD, INVALID_NS, nvme.FAILED_FUSED, MISSING_FUSED))
