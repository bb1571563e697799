#!/usr/bin/python3
"""target_resv.py - reservations, through controllers of several hosts."""
import contextlib
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import resv
import sqe
import tap
import weft
from cluster import state_keys
from fixture import with_target
from nvme import (FAILED_FUSED, HOSTID_FORMAT, INTERNAL, INVALID_FIELD, INVALID_NS, NOT_SAVEABLE,
                  PREEMPT_ABORTED, RESERVATION_CONFLICT, SGL_LENGTH, SUCCESS, pattern)
from resv import EAAR, EARO, EA, EVENT, SHARE, TYPES, WE, WEAR, WERO, Host, made_up

CONFIG = """subsystems:
  - nqn: nqn.2026-11.io.weft:test
    state: "file:{dir}/state"
    namespaces: [ { backend: "mem:16M" }, { backend: "file:{dir}/disk,size=16M" } ]
"""
MDTS = 1 << 20
READ_OK, WRITE_OK = 1, 2
# Who may do what while a registrant holds it: holder, registrant, anybody.
ACCESS = {
    WE: (3, 1, 1), EA: (3, 0, 0), WERO: (3, 3, 1), EARO: (3, 3, 0), WEAR: (3, 3, 1),
    EAAR: (3, 3, 0),
}


def with_hosts(name, count, nsid=1, **target):
    """body(target, host 1, …): each of them is connected, none registered."""
    def add(body):
        @with_target(name, **target)
        def _(t):
            with contextlib.ExitStack() as stack:
                body(t, *(stack.enter_context(Host(t, n + 1, nsid=nsid)) for n in range(count)))
        return body
    return add


def reads(host, want):
    block = bytes(host.disk.block)
    host.disk.read(0, want=want)
    host.disk.verify(0, 1, want=want)
    host.disk.compare(0, block, want=want)


def writes(host, want):
    block = bytes(host.disk.block)
    host.disk.write(0, block, want=want)
    host.disk.write(0, block * 16, want=want)       # more than fits the capsule
    host.disk.zero(0, 1, want=want)
    host.disk.deallocate([(0, 1)], want=want)
    host.disk.copy(0, [(0, 1)], want=want)
    host.disk.flush(want=want)
    first, second = host.disk.compare_and_write(0, block, block)
    assert (second == SUCCESS) == (want == SUCCESS) and second in (want, 0x09), (first, second)


def check_access(host, may, rtype):
    try:
        reads(host, SUCCESS if may & READ_OK else RESERVATION_CONFLICT)
        writes(host, SUCCESS if may & WRITE_OK else RESERVATION_CONFLICT)
    except Exception as err:
        raise AssertionError(f"host {host.key}, type {rtype}, may {may}") from err


for backend in (1, 2):
    @with_hosts(f"every type, every command, namespace {backend}: holder, registrant, anybody", 3,
                nsid=backend, config=CONFIG)
    def _(_t, holder, registrant, anybody):
        holder.register()
        registrant.register()
        for rtype in TYPES:
            holder.acquire(rtype)
            for host, may in zip((holder, registrant, anybody), ACCESS[rtype]):
                check_access(host, may, rtype)
            assert holder.report().rtype == rtype
            assert holder.holders() == ([1, 2] if rtype >= WEAR else [1])
            holder.release(rtype)
            check_access(anybody, 3, rtype)


@with_hosts("what Identify says: every type; through a loss of power only where there is a place", 1)
def _(_t, host):
    assert struct.unpack_from("<H", host.ctrl.id, 520)[0] & 1 << 5
    assert host.ctrl.identify(0, 1)[31] == 0xFE and host.ctrl.identify(8, 1)[2] == 0xFE


@with_hosts("what Identify says with a place for it", 1, config=CONFIG)
def _(_t, host):
    assert host.ctrl.identify(0, 1)[31] == 0xFF and host.ctrl.identify(8, 1)[2] == 0xFF


@with_hosts("two controllers of one host are one registrant", 1)
def _(t, first):
    with Host(t, 1) as second:
        first.register()
        second.register()
        assert first.registrants() == [1]
        first.acquire(EA)
        second.acquire(EA)
        writes(second, SUCCESS)
        second.release(EA)
        assert first.report().rtype == 0
        second.unregister()
        first.unregister(want=RESERVATION_CONFLICT)


@with_hosts("a registration outlives its connection", 2)
def _(t, host, other):
    host.register()
    host.acquire(EA)
    host.close()
    reads(other, RESERVATION_CONFLICT)
    with Host(t, 1) as back:
        writes(back, SUCCESS)
        assert back.holders() == [1]


@with_hosts("Report: generation, keys, and what does not fit", 3)
def _(t, *hosts):
    for host in hosts:
        host.register()
    hosts[0].acquire(WE)
    report = hosts[2].report()
    assert report.generation == 3 and report.rtype == WE and not report.ptpl
    assert report.hosts == {bytes([n] * 16): (n, n == 1) for n in (1, 2, 3)}
    assert len(hosts[2].report(64 + 2 * 64).hosts) == 2
    shown = t.subsystem()["namespaces"][0]
    assert (shown["reservation"], shown["registrants"]) == ("write exclusive", 3)
    hosts[2].register(resv.REPLACE, nrkey=77)
    report = hosts[2].report(MDTS)
    assert report.generation == 4 and report.hosts[bytes([3] * 16)] == (77, False)
    hosts[1].register(resv.REPLACE, nrkey=0)        # as Linux unregisters
    assert bytes([2] * 16) not in hosts[1].report().hosts


@with_hosts("Report: the form without room for the identifier, a part of it, too long", 1)
def _(_t, host):
    def report(dw10, dw11, length, want, nsid=1):
        host.queue.do(sqe.Sqe(sqe.RESV_REPORT, nsid, dw10=dw10, dw11=dw11), length=length, want=want)
    report(1023, 0, 4096, HOSTID_FORMAT)
    report(0xFFFFFFFF, 1, 4096, INVALID_FIELD)
    report(1023, 1, 64, SGL_LENGTH)
    report(15, 1, 64, SUCCESS)
    host.register()
    whole = host.queue.do(sqe.Sqe(sqe.RESV_REPORT, 1, dw10=31, dw11=1), length=128).data
    for length in (4, 8, 60, 68, 124):
        part = host.queue.do(sqe.Sqe(sqe.RESV_REPORT, 1, dw10=length // 4 - 1, dw11=1), length=length)
        assert part.data == whole[:length]
    report(15, 1, 64, INVALID_NS, nsid=2)


@with_hosts("wrong commands are refused and change nothing", 1)
def _(_t, host):
    host.register()
    before = host.report()
    host.register(3, want=INVALID_FIELD)
    host.register(nrkey=0, want=RESERVATION_CONFLICT)
    host.register(cptpl=1, want=INVALID_FIELD)
    host.register(cptpl=3, want=INVALID_FIELD)      # there is no place for it
    host.acquire(0, want=INVALID_FIELD)
    host.acquire(7, want=INVALID_FIELD)
    host.acquire(WE, 3, want=INVALID_FIELD)
    host.acquire(WE, crkey=99, want=RESERVATION_CONFLICT)
    host.command(sqe.RESV_RELEASE, 2, (host.key,), INVALID_FIELD)
    host.command(sqe.RESV_RELEASE, 1 << 3, (host.key,), INVALID_FIELD)
    host.queue.do(sqe.Sqe(sqe.RESV_REGISTER, 1), bytes(8), want=SGL_LENGTH)
    host.queue.do(sqe.Sqe(sqe.RESV_REGISTER, 9), bytes(16), want=INVALID_NS)
    host.queue.do(sqe.Sqe(sqe.RESV_ACQUIRE, 0xFFFFFFFF), bytes(16), want=INVALID_NS)
    assert host.report() == before


# ---- notifications

def no_event(host, aer):
    """An event would have come in front of this answer."""
    host.ctrl.get_feature(0x0F)
    assert host.ctrl.admin.requests[aer].cqe is None


@with_hosts("preempted hosts are told, once, on each of their controllers", 2)
def _(t, host, victim):
    with Host(t, 2) as again:
        for each in (host, victim):
            each.register()
        victim.acquire(WE)
        aers = [each.ctrl.aer() for each in (victim, again, host)]
        host.acquire(WE, resv.PREEMPT, prkey=2)
        for each, aer in ((victim, aers[0]), (again, aers[1])):
            assert each.ctrl.event(aer) == EVENT
            assert each.notice(rae=1) == (1, resv.REG_PREEMPTED, 0, 1)
            assert each.notice() == (1, resv.REG_PREEMPTED, 0, 1)
            assert each.notice() == (0, 0, 0, 0)
        no_event(host, aers[2])
        assert host.registrants() == [1] and host.holders() == [1]


@with_hosts("released and cleared reservations are told; pages come one by one", 3)
def _(_t, host, other, third):
    for each in (host, other, third):
        each.register()
    host.acquire(WERO)
    aer = other.ctrl.aer()
    host.release(WERO)
    host.acquire(EAAR)
    host.release(EAAR)
    host.release(EAAR, resv.CLEAR)
    assert other.ctrl.event(aer) == EVENT
    aer = other.ctrl.aer()
    assert other.notice() == (1, resv.RELEASED, 2, 1)
    assert other.ctrl.event(aer) == EVENT               # more of them are there
    assert other.notice() == (2, resv.RELEASED, 1, 1)
    assert other.notice() == (3, resv.RESV_PREEMPTED, 0, 1)
    assert other.notice().type == 0
    assert third.notice().type == resv.RELEASED
    assert host.notice().type == 0 and host.registrants() == []


@with_hosts("what is masked is not told", 2)
def _(_t, host, other):
    for each in (host, other):
        each.register()
    other.ctrl.set_feature(resv.MASK, 1 << resv.RELEASED, nsid=1)
    assert other.ctrl.get_feature(resv.MASK, nsid=1).dw0 == 1 << resv.RELEASED
    host.acquire(WERO)
    host.release(WERO)
    assert other.notice().type == 0
    other.ctrl.set_feature(resv.MASK, 0, nsid=0xFFFFFFFF)
    assert other.ctrl.get_feature(resv.MASK, nsid=1).dw0 == 0
    host.acquire(WERO)
    host.release(WERO)
    assert other.notice().type == resv.RELEASED
    other.ctrl.set_feature(resv.MASK, 1, nsid=1, want=INVALID_FIELD)
    other.ctrl.set_feature(resv.MASK, 2, nsid=5, want=INVALID_NS)
    other.ctrl.get_feature(resv.MASK, nsid=0xFFFFFFFF, want=INVALID_NS)
    other.ctrl.set_feature(resv.MASK, 2, nsid=1, save=1, want=NOT_SAVEABLE)


@with_hosts("a mask for all namespaces is one for every one that there can be", 1,
            ns=["mem:16M", "mem:16M,nsid=9", "mem:16M,nsid=1024"])
def _(t, host):
    for mask in (1 << resv.RELEASED, 0, 1 << resv.REG_PREEMPTED):
        host.ctrl.set_feature(resv.MASK, mask, nsid=0xFFFFFFFF)
        assert [host.ctrl.get_feature(resv.MASK, nsid=n).dw0 for n in (1, 9, 1024)] == [mask] * 3
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M", nsid=500)
    assert host.ctrl.get_feature(resv.MASK, nsid=500).dw0 == mask


@with_hosts("a host that does not read its log: it is bounded, and the count tells what is lost", 2)
def _(_t, host, other):
    host.register()
    other.register()
    for _ in range(70):
        host.acquire(WERO)
        host.release(WERO)
    assert other.notice() == (1, resv.RELEASED, 63, 1)
    for count in range(2, 65):
        assert other.notice().count == count
    assert other.notice().type == 0
    host.acquire(WERO)
    host.release(WERO)
    assert other.notice().count == 71


# ---- preempt and abort

@with_hosts("Preempt and Abort ends what the host has under way, and nobody else's", 3)
def _(_t, host, victim, bystander):
    for each in (host, victim, bystander):
        each.register()
    host.acquire(WERO)
    size = 256 << 10
    held, asked = {}, {}
    for each in (victim, bystander):
        each.queue.hold = True
        command = each.disk.command(sqe.WRITE, 0, size // each.disk.block)
        held[each] = each.queue.submit(command, pattern(each.key, size))
        asked[each] = each.queue.next_r2t()
    host.acquire(WERO, resv.PREEMPT_ABORT, prkey=2)
    victim.queue.wait(held[victim], PREEMPT_ABORTED)
    bystander.queue.hold = False
    bystander.queue.answer(asked[bystander])
    bystander.queue.wait(held[bystander])
    assert host.disk.read(0, size // host.disk.block) == pattern(3, size)
    victim.disk.write(0, bytes(victim.disk.block), want=RESERVATION_CONFLICT)


@with_hosts("Preempt and Abort ends a fused pair of which one half is not here yet", 2)
def _(_t, host, victim):
    for each in (host, victim):
        each.register()
    host.acquire(WERO)
    old, new, queue = bytes(host.disk.block), pattern(2, host.disk.block), victim.queue
    for late in (sqe.COMPARE, sqe.WRITE):
        victim.register(want=None)
        queue.hold = True
        pair = [queue.submit(victim.disk.command(opcode, 0, 1, fuse=fuse), data,
                             capsule=opcode != late)
                for opcode, fuse, data in ((sqe.COMPARE, 1, old), (sqe.WRITE, 2, new))]
        queue.next_r2t()
        host.acquire(WERO, resv.PREEMPT_ABORT, prkey=2)
        statuses = sorted(queue.wait(cid, None).status for cid in pair)
        assert statuses == sorted((PREEMPT_ABORTED, FAILED_FUSED)), (late, statuses)
        queue.hold = False
        assert host.disk.read(0) == old


# ---- shares

@with_hosts("one name has 64 registrants of a namespace, and others find room", 1, config=CONFIG)
def _(t, other):
    with made_up(t, SHARE + 1) as (late, *hosts):
        for host in hosts:
            host.register()
        late.register(want=INTERNAL)
        late.register(resv.REPLACE, iekey=1, want=INTERNAL)
        hosts[0].register(resv.REPLACE, nrkey=5)        # has its registration already
        other.register()
        with made_up(t, 1, nsid=2) as (elsewhere,):
            elsewhere.register()
        hosts[1].unregister()
        late.register()
        assert len(other.report(MDTS).hosts) == SHARE + 1


@with_target("whose registrants they are persists with them", config=CONFIG)
def _(t):
    with made_up(t, SHARE) as hosts:
        for host in hosts:
            host.register(cptpl=3)
    t.kill9()
    t.start()
    with made_up(t, SHARE + 1) as (*_, late), Host(t, 1) as other:
        late.register(want=INTERNAL)
        other.register()


@with_hosts("what hosts left behind is cleared by any host, or as one of them where there is no room", 1)
def _(t, host):
    with made_up(t, 2) as gone:
        for each in gone:
            each.register(nrkey=0xABC)
        gone[0].key = 0xABC
        gone[0].acquire(EA)
    host.register()
    host.release(EA, resv.CLEAR)
    assert host.registrants() == []
    with made_up(t, 1) as (gone,):
        gone.register(nrkey=0xABC)
    (number,), (key, _) = host.registrants(), *host.report().hosts.values()
    with Host(t, number, key, nqn="nqn.2026-11.io.weft:operator") as one_of_them:
        one_of_them.release(EA, resv.CLEAR)
    assert host.registrants() == []


# ---- power

@with_hosts("PTPL: what persists is there after kill -9, what does not is not", 2, config=CONFIG)
def _(t, host, other):
    host.register(cptpl=3)
    other.register()
    host.acquire(EA)
    assert host.report().ptpl == 1
    with Host(t, 1, nsid=2) as second:
        second.register(cptpl=2)
        second.acquire(EA)
    before = host.report()
    t.kill9()
    t.start()
    with Host(t, 1) as host, Host(t, 2) as other, Host(t, 2, nsid=2) as second:
        assert host.report() == before
        reads(other, RESERVATION_CONFLICT)
        writes(host, SUCCESS)
        assert second.registrants() == [] and second.report().rtype == 0
        writes(second, SUCCESS)
        host.register(resv.UNREGISTER, cptpl=2)
        assert other.registrants() == [2]
    t.finish(15)
    t.start()
    with Host(t, 1) as host:
        assert host.registrants() == []


@with_hosts("Reservation Persistence as a feature", 1, config=CONFIG)
def _(_t, host):
    assert host.ctrl.get_feature(resv.PERSIST, nsid=1).dw0 == 0
    host.ctrl.set_feature(resv.PERSIST, 1, nsid=1)
    assert host.ctrl.get_feature(resv.PERSIST, nsid=1).dw0 == 1 and host.report().ptpl == 1
    host.register(cptpl=2)
    assert host.ctrl.get_feature(resv.PERSIST, nsid=1).dw0 == 0
    host.ctrl.set_feature(resv.PERSIST, 2, nsid=1, want=INVALID_FIELD)
    for nsid in (7, 0, 0xFFFFFFFF):                 # one namespace, not all of them
        host.ctrl.set_feature(resv.PERSIST, 1, nsid=nsid, want=INVALID_NS)
        host.ctrl.get_feature(resv.PERSIST, nsid=nsid, want=INVALID_NS)
    assert host.ctrl.get_feature(resv.PERSIST, nsid=1).dw0 == 0


@with_hosts("Reservation Persistence stays, while its namespace is away and nobody is registered", 1,
            config=CONFIG)
def _(t, host):
    uuid = t.subsystem()["namespaces"][0]["uuid"]
    host.ctrl.set_feature(resv.PERSIST, 1, nsid=1)
    t.ctl("namespace-remove", nsid=1)
    host.ctrl.set_feature(resv.PERSIST, 1, nsid=2)  # behind what the removal had to write
    t.ctl("namespace-add", nsid=1, backend="mem:16M", uuid=uuid)
    assert host.ctrl.get_feature(resv.PERSIST, nsid=1).dw0 == 1
    host.register()
    host.acquire(WE)
    t.stop()
    t.start()
    with Host(t, 1) as again:
        assert again.registrants() == [1]


@with_hosts("Reservation Persistence without a place for it", 1)
def _(_t, host):
    host.ctrl.set_feature(resv.PERSIST, 1, nsid=1, want=INVALID_FIELD)
    host.ctrl.set_feature(resv.PERSIST, 0, nsid=1)
    assert host.ctrl.get_feature(resv.PERSIST, nsid=1).dw0 == 0


# ---- while things change

@with_hosts("a namespace that comes back has its reservation; another one has not", 2, config=CONFIG)
def _(t, host, other):
    uuid = t.subsystem()["namespaces"][0]["uuid"]
    host.register()
    host.acquire(EA)
    t.ctl("namespace-remove", nsid=1)
    host.register(want=INVALID_NS)
    t.ctl("namespace-add", nsid=1, backend="mem:16M", uuid=uuid)
    assert other.holders() == [1]
    reads(other, RESERVATION_CONFLICT)
    t.ctl("namespace-remove", nsid=1)
    t.ctl("namespace-add", nsid=1, backend="mem:16M",
          uuid="11111111-2222-3333-4444-555555555555")
    assert other.registrants() == []


@with_hosts("a record stays while it says something, wherever its namespace is", 1, config=CONFIG)
def _(t, host):
    def records():
        return len([key for key in state_keys(t.dir / "state") if key.startswith("resv/")])

    uuid = t.subsystem()["namespaces"][0]["uuid"]

    def comes_back():
        t.ctl("namespace-add", nsid=1, backend="mem:16M", uuid=uuid)

    host.register(cptpl=3)
    t.ctl("namespace-remove", nsid=1)
    t.stop()
    t.start()                                       # with its namespace, as configured
    with Host(t, 1) as again:
        assert again.registrants() == [1]
        again.unregister()
        assert records() == 1, "it persists"
        again.ctrl.set_feature(resv.PERSIST, 0, nsid=1)
        t.ctl("namespace-remove", nsid=1)
        weft.wait_until(lambda: records() == 0, "the record to go")
        comes_back()
        again.register()
        t.ctl("namespace-remove", nsid=1)
        comes_back()
        assert again.registrants() == [1] and records() == 1
        t.ctl("namespace-remove", nsid=1)
    t.config.write_text(t.config.read_text().split("    namespaces:")[0])
    t.stop()
    t.start()                                       # without it; it did not persist
    weft.wait_until(lambda: records() == 0, "the record to go")


@with_target("many hosts, many commands at once: each is answered, the end is one of their orders")
def _(t):
    hosts = [Host(t, n + 1) for n in range(16)]
    try:
        for _round in range(5):
            held = [(h, h.queue.submit(sqe.Sqe(sqe.RESV_REGISTER, 1, dw10=0),
                                       struct.pack("<QQ", h.key, h.key))) for h in hosts]
            for host, cid in held:
                host.queue.wait(cid)
            held = [(h, h.queue.submit(sqe.Sqe(sqe.RESV_ACQUIRE, 1, dw10=EA << 8),
                                       struct.pack("<QQ", h.key, 0))) for h in hosts]
            won = [h for h, cid in held if h.queue.wait(cid, None).status == SUCCESS]
            assert len(won) == 1 and hosts[0].holders() == [won[0].key]
            won[0].release(EA, resv.CLEAR)
        assert hosts[0].registrants() == []
    finally:
        for host in hosts:
            host.close()


@with_target("the state's file: in use, not ours, damaged", config=CONFIG)
def _(t):
    spec = f"file:{t.dir}/state"
    for state, words in ((spec, "another process has it open, and"),
                         (f"file:{t.dir}/weft.yaml", "not a state file"),
                         ("file:relative", "begins with /")):
        try:
            t.ctl("subsystem-add", nqn="nqn.2026-11.io.weft:other", state=state)
        except weft.CtlError as err:
            assert words in str(err), err
        else:
            raise AssertionError(state)
    assert t.subsystem()["state"] == spec
    t.ctl("save", path=f"{t.dir}/saved.yaml")
    assert spec in (t.dir / "saved.yaml").read_text()


sys.exit(tap.run())
