#!/usr/bin/python3
"""target_io.py - data goes in and the same data comes out, on every backend, by every way."""
import itertools
import os
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import pdu
import sqe
import tap
from fixture import connect, in_background, with_host, with_target
from nvme import COMPARE_FAILURE, FAILED_FUSED, SIZE_LIMIT, SUCCESS, pattern

BACKENDS = ["mem:32M,block=4096", "mem:16M,block=512", "file:{dir}/a.img,size=32M,block=4096",
            "file:{dir}/b.img,size=16M,block=512"]


def with_disks(name):
    """Register body(disk) as a case that runs on every backend."""
    def add(body):
        @with_host(name, ns=BACKENDS)
        def _(t, ctrl):
            for nsid, spec in enumerate(BACKENDS, 1):
                try:
                    body(ctrl.disk(nsid))
                except Exception as err:
                    raise AssertionError(f"on {spec}") from err
        return body
    return add


def round_trip(disk, slba, count, capsule=None):
    data = pattern(slba << 16 | count, count * disk.block)
    disk.write(slba, data, capsule=capsule)
    assert disk.read(slba, count) == data, f"blocks {slba}+{count}"


def transfer(hdgst, ddgst, hpda, maxr2t):
    ic = dict(hdgst=hdgst, ddgst=ddgst, hpda=hpda, maxr2t=maxr2t)

    @with_host("transfers: " + " ".join(f"{k}={int(v)}" for k, v in ic.items()), host=ic)
    def _(t, ctrl):
        disk = ctrl.disk()
        assert (disk.queue.hdgst, disk.queue.ddgst) == (hdgst, ddgst), "digests not granted"
        most = (ctrl.mdts or 1 << 20) // disk.block
        for slba, count in ((0, 1), (1, 2), (7, 3), (100, 8), (131, 17), (512, most)):
            round_trip(disk, slba, count)
        round_trip(disk, 3, 1, capsule=False)
        round_trip(disk, disk.blocks - 1, 1)


for digests in itertools.product((False, True), repeat=2):
    for alignment in ((0, 0), (0, 7), (3, 1), (31, 7)):
        transfer(*digests, *alignment)


@with_disks("sizes and offsets")
def _(disk):
    for count in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65):
        for slba in (0, 1, 7, disk.blocks - count):
            round_trip(disk, slba, count)


@with_host("the largest in-capsule write, and one block more through R2T")
def _(t, ctrl):
    disk = ctrl.disk()
    most = ctrl.icd // disk.block
    if most:
        round_trip(disk, 0, most, capsule=True)
    round_trip(disk, 0, most + 1, capsule=False)


@with_host("several R2Ts are outstanding, no more than MAXR2T allows", host=dict(maxr2t=7))
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.queues[0]
    data = pattern(9, ctrl.mdts or 1 << 20)
    queue.hold = True
    cid = queue.submit(disk.command(sqe.WRITE, 0, len(data) // disk.block), data, capsule=False)
    asked = 0
    while asked < len(data):
        r2t = queue.next_r2t()
        asked += r2t.length
        queue.answer(r2t)
    queue.wait(cid)
    queue.hold = False
    assert disk.read(0, len(data) // disk.block) == data


@with_host("a host that owes a MiB is asked for more when it has sent some", host=dict(maxr2t=0))
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.open(depth=64)
    part = 32
    data = [pattern(i, part * disk.block) for i in range(24)]
    queue.hold = True
    cids = [queue.submit(disk.command(sqe.WRITE, i * part, part), d, capsule=False)
            for i, d in enumerate(data)]
    queue.do(sqe.Sqe(sqe.FLUSH, 1))  # passes those that wait
    assert len(queue.r2ts) == (1 << 20) // len(data[0]), len(queue.r2ts)
    for _ in cids:
        queue.answer(queue.next_r2t())
    for cid in cids:
        queue.wait(cid)
    for i, d in enumerate(data):
        assert disk.read(i * part, part) == d, i


@with_host("when a large write's data has come, all that waited behind it are asked for theirs at once")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.open(depth=64)
    most, small = (1 << 20) // disk.block, 24
    queue.hold = True
    large = queue.submit(disk.command(sqe.WRITE, 0, most), bytes(1 << 20), capsule=False)
    cids = [queue.submit(disk.command(sqe.WRITE, slba, 1), bytes(disk.block), capsule=False)
            for slba in range(small)]
    queue.do(sqe.Sqe(sqe.FLUSH, 1))                 # all have arrived
    assert len(queue.r2ts) == 1, "more is asked for than a MiB"
    queue.answer(queue.next_r2t())
    queue.wait(large)
    queue.do(sqe.Sqe(sqe.FLUSH, 1))
    assert len(queue.r2ts) == small, len(queue.r2ts)
    while queue.r2ts:
        queue.answer(queue.r2ts.pop(0))
    for cid in cids:
        queue.wait(cid)


@with_host("writes that wait to be asked for their data end with their queue")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.open(depth=64)
    queue.hold = True
    for _ in range(40):
        queue.submit(disk.command(sqe.WRITE, 0, 32), bytes(32 * disk.block), capsule=False)
    queue.do(sqe.Sqe(sqe.FLUSH, 1))
    queue.answer(queue.next_r2t())
    queue.reset()
    disk.read(0, 1)


READS = [(i * 32, 32) for i in range(40)]      # 5 MiB: more than is copied ahead, or fits a socket


@with_host("reads with digests wait while copies of others leave: all come, each with its data",
           host=dict(ddgst=True))
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.open(depth=64, ddgst=True)
    for slba, count in READS:
        disk.write(slba, pattern(slba, count * disk.block))
    cids = [queue.submit(disk.command(sqe.READ, slba, count), length=count * disk.block)
            for slba, count in READS]
    owing = queue.submit(disk.command(sqe.WRITE, 4000, 32), pattern(1, 32 * disk.block),
                         capsule=False)     # passes those that wait
    for cid, (slba, count) in zip(cids, READS):
        assert queue.wait(cid).data == pattern(slba, count * disk.block), slba
    queue.wait(owing)
    assert disk.read(4000, 32) == pattern(1, 32 * disk.block)


@with_host("nothing that waits comes between the two of a fused pair",
           host=dict(ddgst=True, rcvbuf=64 << 10))
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.open(depth=64)
    old, new = pattern(1, disk.block), pattern(2, disk.block)
    disk.write(4000, old)
    cids = [queue.submit(disk.command(sqe.READ, slba, count), length=count * disk.block)
            for slba, count in READS]
    first = queue.submit(disk.command(sqe.COMPARE, 4000, 1, fuse=1), old)
    queue.wait(cids.pop(0))     # so that one of those that wait could run
    second = queue.submit(disk.command(sqe.WRITE, 4000, 1, fuse=2), new)
    for cid in (first, second, *cids):
        queue.wait(cid)
    assert disk.read(4000) == new


@with_host("a fused pair runs together while writes wait for their turn, however its data comes")
def _(t, ctrl):
    disk = ctrl.disk()
    old, new = pattern(1, disk.block), pattern(2, disk.block)
    for first_inside, second_inside in itertools.product((False, True), repeat=2):
        queue = ctrl.open(depth=64)
        disk.write(4000, old)
        queue.hold = True
        cids = [queue.submit(disk.command(sqe.WRITE, 32 * i, 32), bytes(32 * disk.block), capsule=False)
                for i in range(40)]
        cids += [queue.submit(disk.command(sqe.COMPARE, 4000, 1, fuse=1), old, capsule=first_inside),
                 queue.submit(disk.command(sqe.WRITE, 4000, 1, fuse=2), new, capsule=second_inside)]
        queue.do(sqe.Sqe(sqe.FLUSH, 1))             # all have arrived
        queue.hold = False
        while queue.r2ts:
            queue.answer(queue.r2ts.pop(0))
        for cid in reversed(cids):
            queue.wait(cid)
        assert disk.read(4000) == new


@with_host("reads with digests that wait end with their queue")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.open(depth=64, ddgst=True)
    for slba, count in READS:
        queue.submit(disk.command(sqe.READ, slba, count), length=count * disk.block)
    queue.pump()
    queue.reset()
    disk.read(0, 1)


@with_host("small H2CData PDUs fill an R2T")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.queues[0]
    queue.maxh2c = 512
    round_trip(disk, 0, 8, capsule=False)


@with_disks("many commands in flight, any order, against a model")
def _(disk):
    rng, queue = random.Random(disk.nsid), disk.queue
    model = {}
    for turn in range(20):
        flying = {}
        for slba in rng.sample(range(256), 64):
            if rng.random() < 0.5:
                model[slba] = pattern(turn << 32 | slba, disk.block)
                cid = queue.submit(disk.command(sqe.WRITE, slba, 1), model[slba],
                                   capsule=rng.random() < 0.5 and disk.block <= queue.icd)
                flying[cid] = None
            elif slba in model:
                cid = queue.submit(disk.command(sqe.READ, slba, 1), length=disk.block)
                flying[cid] = model[slba]
        for cid, want in flying.items():
            cqe = queue.wait(cid)
            assert want is None or cqe.data == want


@with_disks("Read of what was never written is zeroes")
def _(disk):
    assert disk.read(disk.blocks // 2, 8) == bytes(8 * disk.block)


@with_disks("Flush, of one namespace and of all")
def _(disk):
    disk.write(0, pattern(1, disk.block))
    disk.flush()
    disk.queue.do(sqe.Sqe(sqe.FLUSH, 0xFFFFFFFF), want=(SUCCESS, nvme.INVALID_NS))


@with_disks("FUA")
def _(disk):
    data = pattern(2, 4 * disk.block)
    disk.write(0, data, bits=sqe.FUA)
    assert disk.read(0, 4, bits=sqe.FUA) == data
    disk.zero(0, 4, bits=sqe.FUA)


@with_disks("Compare")
def _(disk):
    data = pattern(3, 8 * disk.block)
    disk.write(10, data)
    disk.compare(10, data)
    for at in (0, disk.block, len(data) - 1):
        other = bytearray(data)
        other[at] ^= 1
        disk.compare(10, bytes(other), want=COMPARE_FAILURE)
    assert disk.read(10, 8) == data


@with_disks("Compare: a difference in any piece of a long one")
def _(disk):
    data = pattern(3, 512 << 10)
    disk.write(10, data)
    disk.compare(10, data)
    for at in range(0, len(data), 128 << 10):
        for byte in (at, at + (128 << 10) - 1):
            other = bytearray(data)
            other[byte] ^= 1
            disk.compare(10, bytes(other), want=COMPARE_FAILURE)


@with_disks("Write Zeroes")
def _(disk):
    data = pattern(4, 16 * disk.block)
    for bits in (0, sqe.DEAC):
        disk.write(0, data)
        disk.zero(3, 10, bits=bits)
        assert disk.read(0, 16) == data[:3 * disk.block] + bytes(10 * disk.block) + \
            data[13 * disk.block:]
    disk.zero(0, min(disk.blocks, 65536))
    assert disk.read(0, 16) == bytes(16 * disk.block)


@with_disks("Dataset Management: deallocated blocks read as zeroes, others stay")
def _(disk):
    data = pattern(5, 32 * disk.block)
    disk.write(0, data)
    disk.deallocate([(1, 2), (8, 8), (31, 1)])
    want = bytearray(data)
    for slba, count in ((1, 2), (8, 8), (31, 1)):
        want[slba * disk.block:(slba + count) * disk.block] = bytes(count * disk.block)
    assert disk.read(0, 32) == want


@with_disks("Dataset Management: 256 ranges, and attributes that are only hints")
def _(disk):
    disk.write(0, pattern(6, disk.block))
    disk.deallocate([(i * 2, 1) for i in range(256)])
    assert disk.read(0) == bytes(disk.block)
    disk.write(0, pattern(6, disk.block))
    disk.queue.do(sqe.dsm(disk.nsid, 1, attributes=3), sqe.dsm_ranges([(0, 1)]))
    assert disk.read(0) == pattern(6, disk.block)


@with_host("Dataset Management: its limits", ns=["mem:256M,block=512", "file:{dir}/a.img,size=256M,block=512"])
def _(t, ctrl):
    most = struct.unpack_from("<Q", ctrl.identify(6), 8)[0]
    for nsid in 1, 2:
        disk = ctrl.disk(nsid)
        assert disk.blocks > most
        data = pattern(7, disk.block)
        for ranges in ([(0, disk.blocks)], [(0, 8), (8, 0), (8, most - 8), (most, 8)]):
            for slba in (0, most - 1, most):
                disk.write(slba, data)
            disk.deallocate(ranges)
            assert disk.read(0) == disk.read(most - 1) == bytes(disk.block)
            assert disk.read(most) == data, "what goes beyond the limit stays"


@with_disks("Dataset Management and Copy: a range beyond the end, whichever it is, and nothing is done")
def _(disk):
    data = pattern(6, 4 * disk.block)
    disk.write(0, data)
    disk.zero(8, 4)
    for beyond in ((disk.blocks, 1), (disk.blocks - 1, 2), ((1 << 64) - 1, 2)):
        for at in range(4):
            ranges = [(slba, 1) for slba in range(4)]
            ranges[at] = beyond
            assert disk.deallocate(ranges, want=nvme.LBA_RANGE).dnr
            assert disk.copy(8, ranges, want=nvme.LBA_RANGE).dnr
    for to in (disk.blocks, disk.blocks - 3, (1 << 64) - 1):
        disk.copy(to, [(8, 4)], want=nvme.LBA_RANGE)
    assert disk.read(0, 4) == data and disk.read(8, 4) == bytes(4 * disk.block)
    disk.read(disk.blocks - 3, 3)


@with_disks("Verify")
def _(disk):
    disk.verify(0, 64)
    disk.verify(disk.blocks - 1, 1)


@with_disks("Copy: several ranges into one")
def _(disk):
    data = pattern(7, 32 * disk.block)
    disk.write(0, data)
    ranges = [(0, 4), (10, 2), (31, 1), (5, 1)]
    disk.copy(100, ranges)
    want = b"".join(data[s * disk.block:(s + n) * disk.block] for s, n in ranges)
    assert disk.read(100, 8) == want and disk.read(0, 32) == data


@with_host("Copy: 128 ranges, 16 MiB each, 64 MiB in all, and no more", ns=["null:1G,block=512"])
def _(t, ctrl):
    disk, most = ctrl.disk(), (16 << 20) // 512
    for ranges, want in (([(0, most)], SUCCESS), ([(0, most + 1)], SIZE_LIMIT),
                         ([(0, 1)] * 128, SUCCESS), ([(0, 1)] * 129, SIZE_LIMIT),
                         ([(0, most)] * 4, SUCCESS), ([(0, most)] * 4 + [(0, 1)], SIZE_LIMIT)):
        disk.copy(0, ranges, want=want)


@with_host("storage that ends early: Verify and Copy look at every piece, and say where",
           ns=["file:{dir}/cut.img,size=16M,block=4096"])
def _(t, ctrl):
    disk, there = ctrl.disk(), 255
    disk.write(0, pattern(9, there * disk.block))
    os.truncate(t.dir / "cut.img", there * disk.block)
    disk.verify(0, there)
    assert disk.queue.do(disk.command(sqe.VERIFY, 0, there + 1), want=None).status
    assert not disk.copy(10, [(0, 10)], want=None).status
    for first in range(3):              # DW0: the first range that is not copied whole
        ranges = [(0, 1)] * first + [(there, 1), (0, 1)]
        cqe = disk.copy(20, ranges, want=None)
        assert cqe.status and cqe.dw0 == first, cqe


@with_disks("Compare and Write: the pair does both or neither")
def _(disk):
    old, new, other = (pattern(seed, disk.block) for seed in (1, 2, 3))
    disk.write(5, old)
    assert disk.compare_and_write(5, other, new) == (COMPARE_FAILURE, FAILED_FUSED)
    assert disk.read(5) == old
    assert disk.compare_and_write(5, old, new) == (SUCCESS, SUCCESS)
    assert disk.read(5) == new


@with_disks("Compare and Write: one that fell with the other may be retried where the other may")
def _(disk):
    old, new = pattern(1, disk.block), pattern(2, disk.block)
    disk.write(5, old)
    for slba, times, status in ((5, 1, COMPARE_FAILURE), (disk.blocks, 1, nvme.LBA_RANGE),
                                (5, 9, nvme.AWU_EXCEEDED)):
        pair = {cqe.status: cqe.dnr for cqe in disk.pair(slba, new * times, new * times)}
        assert pair == {status: 1, FAILED_FUSED: 1}, (status, pair)


@with_disks("Compare and Write: with data through R2T")
def _(disk):
    icd, disk.queue.icd = disk.queue.icd, 0
    old, new = pattern(1, disk.block), pattern(2, disk.block)
    disk.write(5, old)
    assert disk.compare_and_write(5, new, old) == (COMPARE_FAILURE, FAILED_FUSED)
    assert disk.compare_and_write(5, old, new) == (SUCCESS, SUCCESS)
    assert disk.read(5) == new
    disk.queue.icd = icd


def increment(disk, times):
    """Add to the counter in block 0 by compare-and-write, again until nobody interferes."""
    done = 0
    while done < times:
        old = disk.read(0)
        new = struct.pack("<Q", struct.unpack_from("<Q", old)[0] + 1) + old[8:]
        statuses = disk.compare_and_write(0, old, new)
        assert statuses in ((SUCCESS, SUCCESS), (COMPARE_FAILURE, FAILED_FUSED)), statuses
        done += statuses == (SUCCESS, SUCCESS)


@with_host("Compare and Write: four queues increment one counter", ns=BACKENDS)
def _(t, ctrl):
    for nsid in range(1, len(BACKENDS) + 1):
        disks = [ctrl.disk(nsid, ctrl.open()) for _ in range(4)]
        with in_background(lambda: increment(disks[0], 50)), \
                in_background(lambda: increment(disks[1], 50)), \
                in_background(lambda: increment(disks[2], 50)):
            increment(disks[3], 50)
        assert struct.unpack_from("<Q", disks[0].read(0))[0] == 200


WRITES_REFUSED = (nvme.WRITE_PROTECTED, nvme.READ_ONLY)


@with_host("a read-only namespace", ns=["mem:16M,ro"])
def _(t, ctrl):
    disk = ctrl.disk()
    assert ctrl.identify(0, 1)[99] & 1, "NSATTR: write protected"
    disk.read(0)
    disk.flush()
    disk.write(0, bytes(disk.block), want=WRITES_REFUSED)
    disk.write(0, bytes(disk.block), capsule=False, want=WRITES_REFUSED)
    disk.zero(0, 1, want=WRITES_REFUSED)
    disk.deallocate([(0, 1)], want=WRITES_REFUSED)
    disk.copy(8, [(0, 1)], want=WRITES_REFUSED)
    assert disk.compare_and_write(0, *[bytes(disk.block)] * 2) == (FAILED_FUSED, nvme.WRITE_PROTECTED)
    shown = t.subsystem()["namespaces"][0]
    assert not shown["write_errors"], "storage was asked, and had to refuse it"


@with_host("the null backend takes and gives", ns=["null:1T"])
def _(t, ctrl):
    disk = ctrl.disk()
    assert disk.blocks * disk.block == 1 << 40
    disk.write(disk.blocks - 8, pattern(1, 8 * disk.block))
    assert len(disk.read(disk.blocks - 8, 8)) == 8 * disk.block
    disk.flush()
    disk.zero(0, 65536)
    disk.deallocate([(0, 1 << 20)])


@with_target("direct I/O", ns=["null:1M,nsid=9"])
def _(t):
    path = t.dir / "direct.img"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT))
    except OSError as err:
        tap.skip(f"no O_DIRECT here: {err.strerror}")
    t.ctl("namespace-add", nqn=t.nqn, backend=f"file:{path},size=32M,direct")
    with connect(t) as ctrl:
        disk = ctrl.disk()
        for slba, count in ((0, 1), (1, 3), (64, 64), (disk.blocks - 1, 1)):
            round_trip(disk, slba, count)
            round_trip(disk, slba, count, capsule=False)
        disk.flush()
        disk.zero(64, 8)
        assert disk.read(64, 8) == bytes(8 * disk.block)
        data = disk.read(64, 64)
    assert path.read_bytes()[64 * disk.block:128 * disk.block] == data


@with_target("a file keeps its contents over a restart", ns=["file:{dir}/a.img,size=32M"])
def _(t):
    with connect(t) as ctrl:
        disk = ctrl.disk()
        data = pattern(8, 16 * disk.block)
        disk.write(40, data)
    assert (t.dir / "a.img").stat().st_blocks * 512 < 8 << 20, "the file is not sparse"
    t.stop()
    t.start()
    with connect(t) as ctrl:
        assert ctrl.disk().read(40, 16) == data


@with_host("C2HData carries its flags rightly", host=dict(maxr2t=0))
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.queues[0]
    count = (ctrl.mdts or 1 << 20) // disk.block
    cid = queue.submit(disk.command(sqe.READ, 0, count), length=count * disk.block)
    flags = []
    while queue.requests[cid].cqe is None:
        got = queue.pump()
        if got.type == pdu.C2HDATA:
            flags.append(got.flags)
    assert not any(f & pdu.LAST for f in flags[:-1]) and flags[-1] & pdu.LAST
    assert not any(f & pdu.SUCCESS for f in flags), "success flag under SQ flow control"


sys.exit(tap.run())
