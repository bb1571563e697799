#!/usr/bin/python3
"""target_takeover_cluster.py - a member of a cluster is taken over, and the others notice nothing."""
import contextlib
import fcntl
import os
import pathlib
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command
import nvme
import ofd
import resv
import sqe
import tap
import weft
from cluster import INACCESSIBLE, OPTIMIZED, UNTIL_S, ana, with_cluster
from fixture import connect, in_background, with_target
from nvme import ANA_INACCESSIBLE, INTERNAL, RESERVATION_CONFLICT, pattern
from resv import EA, EVENT, SHARE, WERO, Host, made_up
from takeover import FAILURES, Heir, end_unharmed, kill, outcome, said

TAKEOVERS = int(os.environ.get("TAKEOVERS", 10))
ANA_EVENTS, LINES_AT, LINE = 1 << 11, 4096, 64


def incarnation(cluster, node):
    """How often somebody has joined as this node, as the state file has it."""
    raw = (cluster.shared / "state").read_bytes()
    return struct.unpack_from("<Q", raw, LINES_AT + (node - 1) * LINE + 8)[0]


def seen(cluster):
    """What all members together have seen: who joined, who serves, who went, what moved."""
    joined = [incarnation(cluster, node) for node in cluster.nodes]
    logs = "".join(t.log.read_text() for t in cluster.nodes.values())
    return joined, cluster.groups(1), logs.count("is gone"), logs.count("is served")


@contextlib.contextmanager
def unnoticed(cluster):
    """Inside, nobody goes and nobody comes, and no group moves."""
    before = seen(cluster)
    yield
    assert seen(cluster) == before, (before, seen(cluster))


def one_group_each(one, cluster):
    one.ctl("move", group=2, node=2)
    cluster.until(1, [1, 1])
    cluster.until(2, [1, 1])


@with_cluster("both members are taken over, again and again, while hosts write", limit_s=240)
def _(cluster, one, two):
    one_group_each(one, cluster)
    loads = [command.start("bench", command.uri(t, nsid=nsid), "--write-ok", "--verify", "--strict",
                           "--rw", "randrw", "--bs", "4k", "--depth", "8", "--time", "300")
             for nsid, t in enumerate((one, two), 1)]
    try:
        weft.wait_until(lambda: one.controllers() and two.controllers(), "the load to connect")
        with unnoticed(cluster):
            for number in range(TAKEOVERS):
                (two if number % 3 == 2 else one).takeover()
                assert cluster.groups(1) == cluster.groups(2) == [1, 1]
        end_unharmed(loads)
    finally:
        kill(loads)


@with_cluster("groups move before and after: hosts are told, through old connections")
def _(cluster, one, two):
    with connect(one) as first, connect(two) as second:
        disk = first.disk(2)
        disk.write(0, pattern(1, 4096))
        for number in range(3):
            for ctrl in (first, second):
                ctrl.set_feature(0x0B, ANA_EVENTS)
            aers = [ctrl.aer() for ctrl in (first, second)]
            one.takeover()
            two.takeover()
            (one, two)[number % 2].ctl("move", group=2, node=2 - number % 2)
            for ctrl, aer in zip((first, second), aers):
                assert ctrl.event(aer)[2] == 0x0C
            there, gone = (second, first) if number % 2 == 0 else (first, second)
            weft.wait_until(lambda: ana(there, 2) == OPTIMIZED, "the group to come", UNTIL_S)
            weft.wait_until(lambda: ana(gone, 2) == INACCESSIBLE, "the group to go", UNTIL_S)
        disk.read(0, want=ANA_INACCESSIBLE)


@with_cluster("a member that was drained stays so, and takes groups again when it is told")
def _(cluster, one, two):
    one.ctl("drain")
    one.takeover()
    assert cluster.cluster(1)["members"][0]["draining"] and cluster.groups(1) == [0, 2]
    two.takeover()
    assert cluster.cluster(2)["members"][0]["draining"]
    one.ctl("undrain")
    two.ctl("drain")
    cluster.until(1, [2, 0])


@with_cluster("not while a drain is under way: it is said, and the drain goes on")
def _(cluster, one, two):
    cluster.pause(2)
    try:
        with in_background(lambda: one.ctl("drain")):
            said(one, "served elsewhere")
            new = one.spawn("--takeover")
            assert new.wait(30) == 1
            said(one, "takeover given up: a call over the control socket is still under way")
            cluster.resume(2)
    finally:
        cluster.resume(2)
    cluster.until(1, [0, 2])
    one.takeover()
    two.ctl("move", node=2)


@with_cluster("not while a reservation waits for a member that is stopped: it is said")
def _(cluster, one, _two):
    with Host(one, 1) as host:
        cluster.pause(2)
        try:
            state = cluster.shared / "state"
            before = state.read_bytes()
            cid = host.queue.submit(sqe.Sqe(sqe.RESV_REGISTER, 1), struct.pack("<QQ", 0, 1))
            weft.wait_until(lambda: state.read_bytes() != before, "the change to be written")
            assert one.spawn("--takeover").wait(30) == 1
            said(one, "does not come to rest: a reservation is being changed")
        finally:
            cluster.resume(2)
        host.queue.wait(cid)
        one.takeover()
        assert host.registrants() == [1]


@with_cluster("a takeover that fails, at each step: the old member goes on", limit_s=120)
def _(cluster, one, two):
    one_group_each(one, cluster)
    with Host(one, 1) as host, Host(one, 2) as other, connect(two) as there:
        host.register()
        host.acquire(EA)
        for number, fails in enumerate(FAILURES, 1):
            with unnoticed(cluster), Heir(one) as heir:
                fails(heir)
            weft.wait_until(lambda: one.log.read_text().count("takeover given up") == number,
                            f"{fails.__name__} to be given up")
            host.disk.write(0, pattern(number, 4096))
            other.disk.read(0, want=RESERVATION_CONFLICT)
            other.register(resv.REPLACE, iekey=1)       # in common: node 2 has to agree
            assert other.registrants() == [1, 2]
        assert ana(there, 2) == OPTIMIZED
        two.ctl("move", node=1)
    cluster.until(2, [2, 0])


@with_cluster("kill -9 of the new process, later each time: unnoticed until it is too late", limit_s=120)
def _(cluster, one, _two):
    one_group_each(one, cluster)
    before = seen(cluster)
    with connect(one) as ctrl:
        disk = ctrl.disk()
        for number in range(40):
            new = one.spawn("--takeover")
            time.sleep(0.001 * 1.3 ** number)
            new.kill()
            new.wait()
            if weft.wait_until(lambda: outcome(one), "the old process to go on, or to end") == "ended":
                break
            disk.write(0, pattern(number, 4096))
            assert seen(cluster) == before, (before, seen(cluster))
    assert one.process.returncode == 0, f"the old process: {one.process.returncode}"
    tap.diag(f"it is too late after {1.3 ** number:.0f} ms")
    cluster.until(2, [0, 2])


@with_cluster("what another member changes meanwhile waits, and then binds")
def _(cluster, one, two):
    one_group_each(one, cluster)
    with Host(two, 1, nsid=2) as host:
        with Heir(one) as heir:
            heir.prepare()
            heir.freeze()
            cid = host.queue.submit(sqe.Sqe(sqe.RESV_REGISTER, 2), struct.pack("<QQ", 0, 1))
            for _ in range(50):
                host.disk.write(0, bytes(host.disk.block))
            assert host.queue.requests[cid].cqe is None, "answered while node 1 stood still"
        host.queue.wait(cid)
        with in_background(one.takeover):
            for rtype in (EA, WERO) * 5:
                host.acquire(rtype)
                host.release(rtype)
        assert host.registrants() == [1]
        one.takeover()
        host.acquire(EA)
        two.ctl("move", node=1)
    with Host(one, 1, nsid=2) as host, Host(one, 2, nsid=2) as other:
        host.disk.read(0)
        other.disk.read(0, want=RESERVATION_CONFLICT)


@with_cluster("what storage is taken for stays said, also when somebody else says otherwise")
def _(cluster, one, two):
    two.stop()
    with (cluster.shared / "a").open("rb+") as file:
        ofd.lock(file, fcntl.F_RDLCK, ofd.SAID_AT)
        one.takeover()
        assert ofd.held(file, ofd.SAID_AT, ofd.SAID)


@with_cluster("a member that dies meanwhile is missed afterwards")
def _(cluster, one, two):
    one_group_each(one, cluster)
    with Heir(one) as heir:
        heir.prepare()
        heir.freeze()
        two.kill9()
    cluster.until(1, [2, 0])
    cluster.start(2)
    one.takeover()
    two.kill9()
    weft.wait_until(lambda: not cluster.cluster(1)["members"][1]["alive"], "node 2 to be gone")


@with_cluster("the new process must be the same member, with the same state", limit_s=90)
def _(cluster, one, two):
    text = one.config.read_text()
    for old, new, words in (
            ("node: 1, of: 2", "node: 2, of: 2", "the running one is node 1 of 2"),
            ("node: 1, of: 2", "node: 1, of: 3", "the running one is node 1 of 2"),
            ("cluster: { node: 1, of: 2 }", "", "the running one is node 1 of 2"),
            ("/state", "/other", "the running one has its state in file:")):
        assert old in text, text
        one.config.write_text(text.replace(old, new))
        assert one.spawn("--takeover").wait(30) == 1
        said(one, f"takeover failed: {one.nqn}: {words}")
    one.config.write_text(text)
    with unnoticed(cluster):
        one.takeover()


# ---- reservations: with state in a file, and where it is the process's own

WITH_STATE = f"""subsystems:
  - nqn: {weft.NQN}
    state: "file:{{dir}}/state"
    namespaces: [ {{ backend: "mem:16M" }}, {{ backend: "mem:16M" }} ]
"""


def both(name):
    """Registers body(target) for a target with a state file and for one without."""
    def add(body):
        with_target(f"{name}, in a file", config=WITH_STATE)(body)
        with_target(f"{name}, in memory", ns=["mem:16M", "mem:16M"])(body)
        return body
    return add


@both("a reservation holds: registrants, keys, holder, type, generation")
def _(t):
    with Host(t, 1) as holder, Host(t, 2) as other, Host(t, 3) as stranger:
        holder.register(nrkey=0xABCDEF)
        holder.key = 0xABCDEF
        other.register()
        holder.acquire(EA)
        before = holder.report()
        for _ in range(3):
            t.takeover()
            assert holder.report() == before and before.generation == 2
            for host in (other, stranger):
                host.disk.read(0, want=RESERVATION_CONFLICT)
            holder.disk.write(0, pattern(1, 4096))
        stranger.acquire(EA, want=RESERVATION_CONFLICT)
        holder.release(EA)
        t.takeover()
        stranger.disk.read(0)
        assert stranger.registrants() == [1, 2] and not stranger.holders()


@both("whose registrants they are goes along: one name has its share, and no more")
def _(t):
    with made_up(t, SHARE + 1) as (late, *hosts), Host(t, 1) as other:
        for host in hosts:
            host.register()
        t.takeover()
        late.register(want=INTERNAL)
        other.register()


@tap.case("whether it persists goes along, and it does")
def _():
    with weft.Target(config=WITH_STATE) as t:
        with Host(t, 1) as host, Host(t, 2) as other:
            host.register(cptpl=3)
            other.ctrl.set_feature(resv.MASK, 0, nsid=1)
            t.takeover()
            assert host.report().ptpl == 1
            host.acquire(EA)
        t.stop()
        t.start()
        with Host(t, 2) as other:
            assert other.holders() == [1]


@both("what hosts are still to be told is told: events, pages, masks")
def _(t):
    with Host(t, 1) as host, Host(t, 2) as victim, Host(t, 3) as deaf:
        for one in (host, victim, deaf):
            one.register()
        deaf.ctrl.set_feature(resv.MASK, 1 << resv.REG_PREEMPTED, nsid=1)
        host.acquire(WERO)
        waiting = victim.ctrl.aer()
        t.takeover()
        host.acquire(WERO, resv.PREEMPT, prkey=2)
        host.acquire(WERO, resv.PREEMPT, prkey=3)
        assert victim.ctrl.event(waiting) == EVENT
        victim.register()
        host.release(WERO)                          # a second page, not told of yet
        t.takeover()
        first, second = victim.notice(), victim.notice()
        assert (first.count, first.type, first.more, first.nsid) == (1, resv.REG_PREEMPTED, 1, 1)
        assert (second.count, second.type, second.more) == (2, resv.RELEASED, 0)
        assert victim.ctrl.event(victim.ctrl.aer()) == EVENT
        assert deaf.notice().count == 0 and deaf.ctrl.get_feature(resv.MASK, nsid=1).dw0 == 2


@with_cluster("a notice that another member caused is told once, by the next process")
def _(cluster, one, two):
    with Host(one, 1) as host, Host(one, 2) as victim, connect(two, hostid=victim.id) as there:
        host.register()
        victim.register()
        host.acquire(WERO, resv.PREEMPT, prkey=2)
        weft.wait_until(lambda: there.log(resv.LOG, 64, rae=1)[8], "the page")
        two.takeover()
        assert there.event(there.aer()) == EVENT
        page = struct.unpack_from("<QBB", there.log(resv.LOG, 64))
        assert page == (1, resv.REG_PREEMPTED, 0), page
        assert not any(there.log(resv.LOG, 64)[:9])


sys.exit(tap.run())
