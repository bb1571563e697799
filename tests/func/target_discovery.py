#!/usr/bin/python3
"""target_discovery.py - discovery: who sees what, in one read or in pieces, and changes."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import tap
import weft
from discovery import LOG, NOTICE, read_log, text
from fixture import connect, with_host, with_target

ALICE = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-00000000a11c"
BOB = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-000000000b0b"
PRIVATE = "nqn.2026-11.io.weft:private"


def discover(t, hostnqn=nvme.HOSTNQN):
    with connect(t, nqn=nvme.DISCOVERY, hostnqn=hostnqn) as ctrl:
        return {e.subnqn for e in read_log(ctrl)[1]}


def with_discovery(name, **target):
    return with_host(name, host=dict(nqn=nvme.DISCOVERY, kato=60_000), **target)


@with_discovery("it is a discovery controller")
def _(t, ctrl):
    assert ctrl.id[111] == 2, "CNTRLTYPE"
    assert text(ctrl.id[768:1024]) == nvme.DISCOVERY
    assert struct.unpack_from("<I", ctrl.id, 92)[0] >> 31 == 1, "OAES: discovery log changes"
    assert ctrl.id[261] & 4, "LPA: extended data"


@with_discovery("an entry says where and what")
def _(t, ctrl):
    entries = read_log(ctrl)[1]
    assert len(entries) == 1
    e = entries[0]
    assert (e.trtype, e.adrfam, e.cntlid) == (3, 1, 0xFFFF)
    assert (e.subnqn, e.traddr, e.trsvcid) == (t.nqn, t.addr[0], str(t.addr[1]))
    assert e.asqsz >= 32


@with_discovery("what the entry says can be connected to")
def _(t, ctrl):
    e = read_log(ctrl)[1][0]
    with nvme.Controller((e.traddr, int(e.trsvcid)), e.subnqn) as io:
        io.disk().read(0)


@with_discovery("the log in pieces of any size is the log", extra=["--listen", weft.ANY_PORT])
def _(t, ctrl):
    numrec = struct.unpack_from("<Q", ctrl.log(LOG, 16), 8)[0]
    size = 1024 * (1 + numrec)
    whole = ctrl.log(LOG, size)
    for piece in (16, 100, 512, 1024, 1028, size - 4):
        parts = [ctrl.log(LOG, min(piece, size - at), at) for at in range(0, size, piece)]
        assert b"".join(parts) == whole, f"pieces of {piece}"


@with_discovery("the generation counter moves with what this host can see")
def _(t, ctrl):
    before, _ = read_log(ctrl)
    assert read_log(ctrl)[0] == before, "it moved by itself"
    t.ctl("subsystem-add", nqn=PRIVATE, allow_any_host=True)
    after, entries = read_log(ctrl)
    assert after != before and {e.subnqn for e in entries} == {t.nqn, PRIVATE}
    t.ctl("subsystem-remove", nqn=PRIVATE)
    assert read_log(ctrl)[0] not in (before, after)


@with_target("a host sees only what it may use")
def _(t):
    t.ctl("subsystem-add", nqn=PRIVATE, hosts=[ALICE])
    assert discover(t, ALICE) == {t.nqn, PRIVATE}
    assert discover(t, BOB) == {t.nqn}
    t.ctl("host-allow", nqn=PRIVATE, host=BOB)
    assert discover(t, BOB) == {t.nqn, PRIVATE}
    t.ctl("host-refuse", nqn=PRIVATE, host=ALICE)
    assert discover(t, ALICE) == {t.nqn}


@with_target("a host that may not use a subsystem is refused by it")
def _(t):
    t.ctl("subsystem-add", nqn=PRIVATE, hosts=[ALICE],
          namespaces=[{"nsid": 1, "backend": "mem:16M"}])
    with nvme.Queue(t.addr) as queue:
        assert queue.connect(PRIVATE, hostnqn=BOB, want=nvme.CONNECT_HOST).dnr
    with connect(t, nqn=PRIVATE, hostnqn=ALICE) as ctrl:
        ctrl.disk().read(0)


@with_target("--allow keeps others out", extra=["--allow", ALICE])
def _(t):
    assert discover(t, ALICE) == {t.nqn}
    assert discover(t, BOB) == set()
    with nvme.Queue(t.addr) as queue:
        queue.connect(t.nqn, hostnqn=BOB, want=nvme.CONNECT_HOST)


# What happens, as calls of the control socket
CHANGES = [
    ("a subsystem comes", [("subsystem-add", dict(nqn=PRIVATE, allow_any_host=True))]),
    ("a subsystem goes", [("subsystem-add", dict(nqn=PRIVATE, allow_any_host=True)),
                          ("subsystem-remove", dict(nqn=PRIVATE))]),
    ("the host is allowed", [("subsystem-add", dict(nqn=PRIVATE, hosts=[BOB])),
                             ("host-allow", dict(nqn=PRIVATE, host=nvme.HOSTNQN))]),
    ("a listener comes", [("listener-add", dict(listen=weft.ANY_PORT))]),
]


def change_event(name, calls):
    @with_discovery(f"persistent discovery: an event when {name}")
    def _(t, ctrl):
        *before, last = calls
        for method, params in before:
            t.ctl(method, **params)
        ctrl.set_feature(0x0B, 1 << 31)
        generation, _ = read_log(ctrl)
        aer = ctrl.aer()
        t.ctl(last[0], **last[1])
        assert ctrl.event(aer) == NOTICE
        assert read_log(ctrl)[0] != generation


for row in CHANGES:
    change_event(*row)


@with_discovery("persistent discovery: only events that were asked for, the next after a read")
def _(t, ctrl):
    ctrl.set_feature(0x0B, 0)
    aer = ctrl.aer()
    t.ctl("subsystem-add", nqn=PRIVATE, allow_any_host=True)
    ctrl.identify(1)
    assert ctrl.admin.requests[aer].cqe is None
    ctrl.set_feature(0x0B, 1 << 31)
    read_log(ctrl)
    t.ctl("subsystem-remove", nqn=PRIVATE)
    assert ctrl.event(aer) == NOTICE
    read_log(ctrl)
    aer = ctrl.aer()
    t.ctl("subsystem-add", nqn=PRIVATE, allow_any_host=True)
    assert ctrl.event(aer) == NOTICE


@with_discovery("what a discovery controller does not do")
def _(t, ctrl):
    with nvme.Queue(t.addr) as queue:
        queue.connect(nvme.DISCOVERY, qid=1, cntlid=ctrl.cntlid, want=nvme.CONNECT_PARAM)
    ctrl.identify(0, 1, want=(nvme.INVALID_FIELD, nvme.INVALID_NS, nvme.INVALID_OPCODE))
    for opcode in (0x01, 0x0D, 0xC0):
        ctrl.admin.do(nvme.sqe.Sqe(opcode), want=nvme.INVALID_OPCODE)


@with_target("100 discoveries leave nothing behind")
def _(t):
    before = t.fds()
    for _ in range(100):
        assert discover(t) == {t.nqn}
    weft.wait_until(lambda: t.fds() <= before, "the descriptors to be closed")
    weft.wait_until(lambda: not t.controllers(), "the controllers to go")


sys.exit(tap.run())
