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

AEN, CHANGED = 0x0B, 4
NS_CHANGED = (2, 0, CHANGED)
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
