#!/usr/bin/python3
"""target_live.py - the configuration changes while hosts are working."""
import pathlib
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import tap
import weft
from fixture import connect, in_background, refused, with_host, with_target
from nvme import INVALID_NS, LBA_RANGE, pattern

AEN, CHANGED, ANA_LOG = 0x0B, 4, 0x0C
NS_CHANGED, ANA_CHANGED = (2, 0, CHANGED), (2, 3, ANA_LOG)
ANA, CCR = 0x800, 0x100000
ALICE = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-00000000a11c"
OTHER = "nqn.2026-11.io.weft:other"


def listen_for_changes(ctrl):
    ctrl.set_feature(AEN, 0x100)
    ctrl.log(CHANGED, 4096)
    return ctrl.aer()


def changed(ctrl, aer):
    """Wait for the event; the namespaces that the log then names."""
    assert ctrl.event(aer) == NS_CHANGED
    log = struct.unpack("<1024I", ctrl.log(CHANGED, 4096))
    assert ctrl.log(CHANGED, 4096) == bytes(4096), "reading the log clears it"
    return [nsid for nsid in log if nsid]


def active(ctrl):
    return [nsid for nsid in struct.unpack("<1024I", ctrl.identify(2)) if nsid]


def size_of(ctrl, nsid):
    disk = ctrl.disk(nsid)
    return disk.blocks * disk.block


@with_host("namespace-add: hosts are told and can use it")
def _(t, ctrl):
    aer = listen_for_changes(ctrl)
    added = t.ctl("namespace-add", nqn=t.nqn, backend="mem:32M")
    assert added["nsid"] == 2 and added["uuid"]
    assert changed(ctrl, aer) == [2] and active(ctrl) == [1, 2]
    disk = ctrl.disk(2)
    disk.write(0, pattern(1, disk.block))
    assert disk.read(0) == pattern(1, disk.block) and size_of(ctrl, 2) == 32 << 20


@with_host("namespace-add: the nsid and uuid that were asked for")
def _(t, ctrl):
    uuid = "11111111-2222-3333-4444-555555555555"
    added = t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M", nsid=9, uuid=uuid)
    assert added == {"nsid": 9, "uuid": uuid} and active(ctrl) == [1, 9]
    refused(t, "namespace-add", nqn=t.nqn, backend="mem:16M", nsid=9)


@with_target("namespace-add: a uuid is given once, in whatever subsystem")
def _(t):
    uuid = "11111111-2222-3333-4444-555555555555"
    t.ctl("subsystem-add", nqn=OTHER, allow_any_host=True)
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M", uuid=uuid)
    for nqn, same in ((t.nqn, uuid), (OTHER, uuid), (OTHER, uuid.upper()),
                      (OTHER, t.subsystem()["namespaces"][0]["uuid"])):
        assert "uuid" in refused(t, "namespace-add", nqn=nqn, backend="mem:16M", uuid=same)
    t.ctl("namespace-add", nqn=OTHER, backend="mem:16M", uuid=uuid[:-1] + "6")
    t.ctl("namespace-remove", nqn=t.nqn, nsid=2)
    t.ctl("namespace-add", nqn=OTHER, backend="mem:16M", uuid=uuid)


@with_target("namespace-add: a uuid that nobody gave is given once, too", ns=["mem:16M"])
def _(t):
    derived = t.subsystem()["namespaces"][0]["uuid"]
    t.ctl("namespace-remove", nqn=t.nqn, nsid=1)
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:32M", nsid=7, uuid=derived)
    assert "uuid" in refused(t, "namespace-add", nqn=t.nqn, backend="mem:16M", nsid=1)
    t.ctl("namespace-remove", nqn=t.nqn, nsid=7)
    assert t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M", nsid=1)["uuid"] == derived


@with_host("namespace-resize: hosts are told; what is within keeps its data",
           ns=["mem:64M", "file:{dir}/a.img,size=64M"])
def _(t, ctrl):
    for nsid in (1, 2):
        disk = ctrl.disk(nsid)
        disk.write(7, pattern(7, disk.block))
        for size, given in ((128 << 20, "128M"), (32 << 20, 32 << 20)):
            aer = listen_for_changes(ctrl)
            t.ctl("namespace-resize", nqn=t.nqn, nsid=nsid, size=given, shrink=True)
            assert changed(ctrl, aer) == [nsid] and size_of(ctrl, nsid) == size
            disk = ctrl.disk(nsid)
            disk.read(disk.blocks - 1)
            disk.read(disk.blocks, want=LBA_RANGE)
            assert disk.read(7) == pattern(7, disk.block)


@with_host("namespace-remove: hosts are told, I/O gets Invalid Namespace", ns=["mem:16M"] * 2)
def _(t, ctrl):
    disk, keep = ctrl.disk(2), ctrl.disk(1)
    aer = listen_for_changes(ctrl)
    t.ctl("namespace-remove", nqn=t.nqn, nsid=2)
    assert changed(ctrl, aer) == [2] and active(ctrl) == [1]
    disk.read(0, want=INVALID_NS)
    keep.read(0)
    refused(t, "namespace-remove", nqn=t.nqn, nsid=2)


@with_host("events: one until the log is read, then the next")
def _(t, ctrl):
    aer = listen_for_changes(ctrl)
    for nsid in (2, 3, 4):
        t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M", nsid=nsid)
    assert changed(ctrl, aer) == [2, 3, 4]
    aer = ctrl.aer()
    t.ctl("namespace-remove", nqn=t.nqn, nsid=3)
    assert changed(ctrl, aer) == [3]


@with_host("events: of what the host has enabled, and of nothing else")
def _(t, ctrl):
    for nsid, enabled, want in ((2, 0x100 | CCR, NS_CHANGED), (3, ANA | CCR, ANA_CHANGED)):
        ctrl.set_feature(AEN, enabled)
        aers = [ctrl.aer() for _ in range(3)]
        t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M", nsid=nsid)
        t.ctl("ana-set", nqn=t.nqn, rules=[dict(group=1, state="non-optimized")])
        t.ctl("ana-set", nqn=t.nqn, rules=[], replace=True)
        assert ctrl.event(aers.pop(0)) == want
        for log in (CHANGED, ANA_LOG):          # so that a second one is told
            ctrl.log(log, 4096)
        for aer in aers:
            ctrl.admin.do(sqe.abort(0, aer))
            if not ctrl.admin.requests[aer].cqe.status:
                assert ctrl.event(aer) == want


@with_host("events: RAE leaves the log as it is")
def _(t, ctrl):
    aer = listen_for_changes(ctrl)
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M")
    assert ctrl.event(aer) == NS_CHANGED
    for rae in (1, 1, 0):
        assert struct.unpack_from("<I", ctrl.log(CHANGED, 4096, rae=rae))[0] == 2
    assert ctrl.log(CHANGED, 4096) == bytes(4096)


@with_host("events: one that comes before its request waits for it")
def _(t, ctrl):
    ctrl.set_feature(AEN, 0x100)
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M")
    assert changed(ctrl, ctrl.aer()) == [2]


@with_host("events: every controller gets its own")
def _(t, ctrl):
    with connect(t) as other:
        waiting = [(c, listen_for_changes(c)) for c in (ctrl, other)]
        t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M")
        for c, aer in waiting:
            assert changed(c, aer) == [2]


@with_host("a write in flight to a namespace that goes", ns=["mem:16M"] * 2)
def _(t, ctrl):
    disk, queue = ctrl.disk(2), ctrl.queues[0]
    queue.hold = True
    cid = queue.submit(disk.command(sqe.WRITE, 0, 1), bytes(disk.block), capsule=False)
    r2t = queue.next_r2t()
    with in_background(lambda: t.ctl("namespace-remove", nqn=t.nqn, nsid=2)):
        ctrl.until(lambda: active(ctrl) == [1], "removal")
        queue.sock.settimeout(1)
        try:
            queue.wait(cid, INVALID_NS)         # it may end at once ...
        except TimeoutError:
            queue.answer(r2t)                   # ... or when its data has come
            queue.wait(cid, (INVALID_NS, nvme.SUCCESS))
    queue.do(sqe.Sqe(sqe.FLUSH, 1))


@with_host("data that comes when its namespace was replaced is refused, and the new one stays as it is",
           ns=["mem:16M"] * 2)
def _(t, ctrl):
    disk, queue = ctrl.disk(2), ctrl.open()
    new, old = pattern(1, disk.block), bytes(disk.block)
    sent = [(disk.command(sqe.WRITE, 0, 1), new), (disk.command(sqe.COMPARE, 0, 1), old),
            (sqe.dsm(2, 1), sqe.dsm_ranges([(9, 1)])), (sqe.copy(2, 1, 1), sqe.copy_ranges([(9, 1)])),
            (sqe.Sqe(sqe.RESV_REGISTER, 2), bytes(8) + struct.pack("<Q", 1)),
            (disk.command(sqe.COMPARE, 2, 1, fuse=1), old), (disk.command(sqe.WRITE, 2, 1, fuse=2), new)]
    queue.hold = True
    cids = [queue.submit(command, data, capsule=False) for command, data in sent]
    r2ts = [queue.next_r2t() for _ in cids]
    t.ctl("namespace-remove", nqn=t.nqn, nsid=2)
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M", nsid=2)
    disk.write(9, new)
    for r2t in r2ts:
        queue.answer(r2t)
    for cid in cids[:-1]:
        assert queue.wait(cid, INVALID_NS).dnr
    queue.wait(cids[-1], nvme.FAILED_FUSED)
    assert disk.read(0, 9) == bytes(9 * disk.block) and disk.read(9) == new
    disk.write(0, new)                          # nobody has registered


@with_host("memory that was read stays until it has left, when its namespace goes meanwhile",
           host=dict(rcvbuf=64 << 10), ns=["mem:16M"] * 2)
def _(t, ctrl):
    disk = ctrl.disk(2, ctrl.open(depth=64))
    reads = [(i * 32, 32) for i in range(40)]   # 5 MiB: more than fits a socket
    for slba, count in reads:
        disk.write(slba, pattern(slba, count * disk.block))
    cids = [disk.queue.submit(disk.command(sqe.READ, slba, count), length=count * disk.block)
            for slba, count in reads]
    weft.wait_until(lambda: t.controllers()[0]["reads"] == len(reads), "the reads to begin")
    removed = t.ask("namespace-remove", nqn=t.nqn, nsid=2)
    ctrl.until(lambda: active(ctrl) == [1], "removal")
    for cid, (slba, count) in zip(cids, reads):
        assert disk.queue.wait(cid).data == pattern(slba, count * disk.block), slba
    removed()


def read_until_gone(disk):
    """Keep 32 reads in flight until the namespace is gone, and then drain them."""
    flying, gone = set(), False
    while flying or not gone:
        while not gone and len(flying) < 32:
            flying.add(disk.queue.submit(disk.command(sqe.READ, len(flying), 1),
                                         length=disk.block))
        cid = disk.queue.wait_any()
        flying.discard(cid)
        gone |= disk.queue.wait(cid, (nvme.SUCCESS, INVALID_NS)).status == INVALID_NS


@with_host("a namespace goes under load, others never notice",
           ns=["mem:16M", "mem:16M", "file:{dir}/a.img,size=16M"])
def _(t, ctrl):
    keep = ctrl.disk(1, ctrl.open())
    for nsid in (2, 3):
        disk = ctrl.disk(nsid, ctrl.open())
        with in_background(lambda: read_until_gone(disk)):
            for i in range(100):
                keep.write(i, pattern(i, keep.block))
            t.ctl("namespace-remove", nqn=t.nqn, nsid=nsid)
        assert all(keep.read(i) == pattern(i, keep.block) for i in range(100))


@with_target("a host that is not on the list, if by a letter or for want of a name, gets nothing")
def _(t):
    t.ctl("subsystem-add", nqn=OTHER, hosts=[ALICE], namespaces=[{"nsid": 1, "backend": "mem:16M"}])
    for name in (nvme.HOSTNQN, "", ALICE[:-1], ALICE + "0", ALICE.upper(), OTHER):
        with nvme.Queue(t.addr) as queue:
            assert queue.connect(OTHER, hostnqn=name, want=nvme.CONNECT_HOST).dnr, name
    with connect(t, nqn=OTHER, hostnqn=ALICE) as alice, connect(t, hostnqn="") as nobody:
        alice.disk().read(0)
        nobody.disk().read(0)                   # where any host may


@with_target("host-refuse ends that host's associations only")
def _(t):
    t.ctl("subsystem-add", nqn=OTHER, hosts=[ALICE, nvme.HOSTNQN],
          namespaces=[{"nsid": 1, "backend": "mem:16M"}])
    with connect(t, nqn=OTHER, hostnqn=ALICE) as alice, connect(t, nqn=OTHER) as stays:
        queue = alice.open()
        t.ctl("host-refuse", nqn=OTHER, host=ALICE)
        queue.expect_closed()
        alice.admin.expect_closed()
        stays.disk().read(0)
    with nvme.Queue(t.addr) as queue:
        queue.connect(OTHER, hostnqn=ALICE, want=nvme.CONNECT_HOST)
    t.ctl("host-allow", nqn=OTHER, host=ALICE)
    with connect(t, nqn=OTHER, hostnqn=ALICE) as alice:
        alice.disk().read(0)


@with_target("subsystem-add and subsystem-remove")
def _(t):
    t.ctl("subsystem-add", nqn=OTHER, allow_any_host=True,
          namespaces=[{"backend": "mem:16M"}, {"backend": "mem:32M", "nsid": 4}])
    refused(t, "subsystem-add", nqn=OTHER)
    with connect(t, nqn=OTHER) as ctrl, connect(t) as stays:
        assert active(ctrl) == [1, 4]
        t.ctl("subsystem-remove", nqn=OTHER)
        ctrl.admin.expect_closed()
        stays.disk().read(0)
    with nvme.Queue(t.addr) as queue:
        queue.connect(OTHER, want=nvme.CONNECT_PARAM)
    refused(t, "subsystem-remove", nqn=OTHER)


@with_host("listener-add and listener-remove")
def _(t, ctrl):
    uri = t.ctl("listener-add", listen=weft.ANY_PORT)["listen"]
    addr = weft.address(uri)
    assert addr[1] not in (0, t.addr[1])
    with nvme.Controller(addr, t.nqn) as there:
        there.disk().read(0)
    t.ctl("listener-remove", listen=uri)
    try:
        socket.create_connection(addr, 5).close()
        raise AssertionError("the listener is still there")
    except ConnectionRefusedError:
        pass
    ctrl.disk().read(0)
    refused(t, "listener-remove", listen=uri)


@with_target("listener-add: a port that is taken")
def _(t):
    refused(t, "listener-add", listen=f"nvme+tcp://127.0.0.1:{t.addr[1]}")


sys.exit(tap.run())
