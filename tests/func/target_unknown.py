#!/usr/bin/python3
"""target_unknown.py - what a peer may cost that nobody knows: before Connect, and as one of the
discovery service's, which everybody may use."""
import contextlib
import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import pdu
import sqe
import tap
import weft
from fixture import connect, with_host, with_target
from nvme import CONNECT_BUSY, CONNECT_PARAM, DISCOVERY, pattern

ONE_CPU = ["--cpus", "0"]       # one reactor: everybody shares it
UNKNOWN_MAX = 1024
OTHER = dict(hostnqn="nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-0000000000c4",
             hostid=bytes(range(33, 49)))
THIRD = dict(hostnqn="nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-0000000000c5",
             hostid=bytes(range(34, 50)))
KAT_INVALID = 0x1A

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def limited(most, who=f"hosts: [ {nvme.HOSTNQN}, {OTHER['hostnqn']}, {THIRD['hostnqn']} ]"):
    return f"""max_queues: {most}
subsystems:
  - nqn: {weft.NQN}
    {who}
    namespaces: [ {{ nsid: 1, backend: "mem:16M" }} ]
"""


def reactors(t, key):
    return sum(r[key] for r in t.ctl("status")["reactors"])


def unknown_are(t, count):
    weft.wait_until(lambda: reactors(t, "unknown") == count, f"{count} connections without Connect")


def owing(stack, t, count, **ic):
    """Connections that have sent a Connect, and owe its data."""
    for _ in range(count):
        queue = stack.enter_context(nvme.Queue(t.addr, **ic))
        queue.send_pdu(pdu.CMD, sqe.connect().encode(0, sqe.sgl_transport(1024)))
        yield queue


# ---- before Connect

@with_host("600 that owe the data of their Connect have no buffer of a host's", 120, extra=ONE_CPU)
def _(t, ctrl):
    disk = ctrl.disk()
    with contextlib.ExitStack() as stack:
        queues = list(owing(stack, t, 600))
        unknown_are(t, 600)
        for seed in range(20):
            disk.write(0, pattern(seed, 131072))
            assert disk.read(0, 32) == pattern(seed, 131072)
            disk.write(0, pattern(seed, 1 << 20))
        assert reactors(t, "unknown") == 600 and not reactors(t, "displaced")
        asked = queues[0].recv_pdu()
        assert asked.type == pdu.R2T and asked.length == 1024, asked
    unknown_are(t, 0)


@with_target("a flood from one address takes its own places", 120, extra=ONE_CPU)
def _(t):
    with contextlib.ExitStack() as stack:
        patient = stack.enter_context(nvme.Queue(t.addr, source="127.0.0.2"))
        flood = [stack.enter_context(nvme.Conn(t.addr)) for _ in range(UNKNOWN_MAX + 100)]
        weft.wait_until(lambda: reactors(t, "displaced") == 101, "101 to have gone")
        unknown_are(t, UNKNOWN_MAX)
        for conn in flood[:101]:
            conn.expect_closed()
        patient.connect(t.nqn)
        with connect(t, **OTHER) as ctrl:
            assert ctrl.disk().read(0) == bytes(4096)
    assert "connections without Connect: closing one" in t.log.read_text()


@with_target("who was let in is no longer counted, who is refused still is")
def _(t):
    with connect(t) as ctrl, nvme.Queue(t.addr) as refused:
        ctrl.open()
        refused.connect("nqn.2026-11.io.weft:none", want=CONNECT_PARAM)
        unknown_are(t, 1)
    unknown_are(t, 0)


# ---- a takeover does not wait for them

@with_host("a takeover with connections that owe the data of their Connect")
def _(t, ctrl):
    disk = ctrl.disk()
    disk.write(0, pattern(1, 4096))
    with contextlib.ExitStack() as stack:
        queues = list(owing(stack, t, 3))
        for queue in queues:
            assert queue.recv_pdu().type == pdu.R2T
        still = stack.enter_context(nvme.Queue(t.addr))
        t.takeover()
        for queue in queues:
            queue.expect_closed()
        still.connect(t.nqn, **OTHER)
        assert disk.read(0) == pattern(1, 4096)


@with_host("a takeover with hosts of the discovery service that owe data, or do not read")
def _(t, ctrl):
    disk = ctrl.disk()
    disk.write(0, pattern(1, 4096))
    with connect(t, nqn=DISCOVERY) as owes, connect(t, nqn=DISCOVERY) as still:
        owes.admin.send_pdu(pdu.CMD, sqe.set_features(0x16).encode(7, sqe.sgl_transport(512)))
        assert owes.admin.recv_pdu().type == pdu.R2T
        t.takeover()
        owes.admin.expect_closed()
        still.get(nvme.CSTS)
        assert disk.read(0) == pattern(1, 4096)


@with_host("a takeover between the two of a fused pair, behind commands that wait")
def _(t, ctrl):
    queue = ctrl.open()
    disk = ctrl.disk(queue=queue)
    old, new = pattern(1, 4096), pattern(2, 4096)
    disk.write(0, old)
    first = queue.submit(disk.command(sqe.COMPARE, 0, 1, fuse=1), old)
    ctrl.get(nvme.CSTS)
    t.takeover()
    second = queue.submit(disk.command(sqe.WRITE, 0, 1, fuse=2), new)
    queue.wait(first)
    queue.wait(second)
    assert disk.read(0) == new
    assert disk.compare_and_write(0, new, old) == (0, 0)


# ---- the discovery service's queues

def discover(stack, t, count, **kw):
    """Controllers of the discovery service, as many as it lets in."""
    for _ in range(count):
        with contextlib.suppress(nvme.Failed):
            yield stack.enter_context(connect(t, nqn=DISCOVERY, enable=False, **kw))


def closed(ctrl):
    """The controller was closed from the other end."""
    return ctrl.admin.expect_closed() == []


@with_target("anonymous controllers leave half of the queues, and the rest when hosts need it", 120,
             config=limited(20))
def _(t):
    with contextlib.ExitStack() as stack:
        crowd = list(discover(stack, t, 30))
        assert len(crowd) == 10, f"{len(crowd)} of the discovery service"
        host = stack.enter_context(connect(t))
        for _ in range(14):             # with the admin queue three quarters: its share
            host.open()
        other = stack.enter_context(connect(t, **OTHER))
        for _ in range(4):
            other.open()
        weft.wait_until(lambda: t.ctl("status")["queues"] ==
                        {"max": 20, "taken": 20, "discovery": 0}, "the last of them to be gone")
        for ctrl in crowd:
            assert closed(ctrl)
        assert host.disk().read(0) == bytes(4096)


@with_target("the newest of the address with most yields, the others stay", config=limited(20))
def _(t):
    with contextlib.ExitStack() as stack:
        quiet = list(discover(stack, t, 2, source="127.0.0.2"))
        crowd = list(discover(stack, t, 30))
        assert len(quiet) == 2 and len(crowd) == 8
        late, = discover(stack, t, 1, source="127.0.0.3")
        assert closed(crowd[-1])
        assert not list(discover(stack, t, 1)), "the crowd gets more than its share"
        for ctrl in (*quiet, *crowd[:-1], late):
            ctrl.get(nvme.CSTS)


@with_target("300 of the discovery service do not keep an allowed host out", 120,
             config=limited(300))
def _(t):
    with contextlib.ExitStack() as stack:
        crowd = list(discover(stack, t, 300))
        assert len(crowd) == 150, f"{len(crowd)} of the discovery service"
        host = stack.enter_context(connect(t))
        assert host.disk().read(0) == bytes(4096)


@with_target("a host has three quarters of the queues at most", config=limited(20))
def _(t):
    with connect(t) as first, connect(t) as again:
        for _ in range(13):
            first.open()
        again.open(want=CONNECT_BUSY)
        with connect(t, **OTHER) as other, connect(t, **THIRD) as third:
            other.open()
            third.open()
            assert other.disk().read(0) == third.disk().read(0) == bytes(4096)


@with_target("where any host may connect, those of an address have three quarters together",
             config=limited(20, "allow_any_host: true"))
def _(t):
    with contextlib.ExitStack() as stack:
        for number in range(15):
            stack.enter_context(connect(t, hostnqn=f"nqn.2026-11.io.weft:made-up-{number}"))
        with nvme.Queue(t.addr) as queue:
            queue.connect(t.nqn, hostnqn="nqn.2026-11.io.weft:one-more", want=CONNECT_BUSY)
        other = stack.enter_context(connect(t, source="127.0.0.2"))
        for _ in range(4):
            other.open()
        assert other.disk().read(0) == bytes(4096)
    with connect(t) as ctrl:            # and what they have left is theirs again
        ctrl.open()


ANY = "nqn.2026-11.io.weft:any"
MIXED = limited(64) + f"""  - nqn: {ANY}
    allow_any_host: true
    namespaces: [ {{ nsid: 1, backend: "mem:16M" }} ]
"""


def take_all(stack, t, nqn, **kw):
    """As many controllers as it gets, each with its admin queue."""
    for count in range(65):
        try:
            stack.enter_context(connect(t, nqn=nqn, **kw))
        except nvme.Failed as e:
            assert e.cqe.status == CONNECT_BUSY, f"status {e.cqe.status:#x}"
            return count


@with_target("a named host that comes as one that nobody named, too, leaves queues to others", config=MIXED)
def _(t):
    made_up = dict(nqn=ANY, hostnqn="nqn.2026-11.io.weft:made-up")
    for first, then, most in (dict(nqn=weft.NQN), made_up, (48, 0)), (made_up, dict(nqn=weft.NQN), (48, 8)):
        with contextlib.ExitStack() as stack:
            got = take_all(stack, t, **first), take_all(stack, t, **then)
            assert got == most, f"{got} queues"
            other = stack.enter_context(connect(t, source="127.0.0.2", **OTHER))
            for _ in range(7):
                other.open()
            assert other.disk().read(0) == bytes(4096)
            weft.wait_until(lambda: t.ctl("status")["queues"]["taken"] == sum(most) + 8, "the queues' count")
        weft.wait_until(lambda: not t.ctl("status")["queues"]["taken"], "the queues to go")


@with_target("a discovery controller cannot ask for a keep-alive of days, nor for none")
def _(t):
    with nvme.Queue(t.addr) as queue:
        cqe = queue.connect(DISCOVERY, kato=0xFFFFFFFF, want=CONNECT_PARAM)
        assert cqe.dw0 & 0x1FFFF == 48, f"invalid parameter at {cqe.dw0:#x}"
        queue.connect(DISCOVERY, kato=600_000)
    with connect(t, nqn=DISCOVERY) as ctrl:
        ctrl.set_feature(0x0F, 0xFFFFFFFF, want=KAT_INVALID)
        ctrl.set_feature(0x0F, 0)
        assert ctrl.get_feature(0x0F).dw0 == 120_000


@with_target("data of the discovery service: what it says is the most is the most")
def _(t):
    with connect(t, nqn=DISCOVERY) as ctrl:
        assert ctrl.mdts == 131072
        assert len(ctrl.log(0x70, 131072)) == 131072
        ctrl.log(0x70, 131072 + 4, want=nvme.INVALID_FIELD)


sys.exit(tap.run())
