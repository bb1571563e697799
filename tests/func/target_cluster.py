#!/usr/bin/python3
"""target_cluster.py - several targets serve one subsystem: who serves what, and what they agree on."""
import contextlib
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import discovery
import nvme
import resv
import sqe
import tap
import weft
from cluster import (ANA_LOG, INACCESSIBLE, OPTIMIZED, UNTIL_S, ana, state_keys, storage_of,
                     with_cluster)
from command import on_terminal
from fixture import connect, in_background, refused
from nvme import ANA_INACCESSIBLE, RESERVATION_CONFLICT, pattern
from resv import EA, EVENT, WERO, Host


@with_cluster("members are one subsystem: identities, controller ids, who serves what")
def _(cluster, one, two):
    with connect(one) as first, connect(two) as second:
        assert first.id[4:24] == second.id[4:24], "serial number"
        for nsid in (1, 2):
            assert first.identify(3, nsid) == second.identify(3, nsid), "identifiers"
        assert first.cntlid < 0x7FF8 <= second.cntlid
        weft.wait_until(lambda: ana(first, 2) == OPTIMIZED, "node 1 to serve", UNTIL_S)
        assert [ana(first, g) for g in (1, 2)] == [OPTIMIZED] * 2
        assert [ana(second, g) for g in (1, 2)] == [INACCESSIBLE] * 2
        first.disk().write(0, pattern(1, 4096))
        second.open()
        disk = first.disk()
        second.queues[0].do(disk.command(sqe.READ, 0, 1), length=4096, want=ANA_INACCESSIBLE)
    assert cluster.groups(1) == cluster.groups(2) == [2, 0]
    assert cluster.cluster(2)["node"] == 2 and cluster.cluster(2)["of"] == 2
    for node, here in ((one, "optimized"), (two, "inaccessible")):
        members = node.subsystem()["cluster"]["members"]
        assert [m["ana_groups"] for m in members] == [[1, 2], []], members
        groups = node.subsystem()["cluster"]["groups"]
        state = "ours" if node is one else "elsewhere"
        assert groups == [dict(ana_group=g, owner=1, next=0, state=state) for g in (1, 2)], groups
        port, = node.subsystem()["ports"]
        assert port["portid"] == node.ctl("status")["listeners"][0]["portid"], port
        assert port["ana"] == [dict(ana_group=g, state=here) for g in (1, 2)], port
        _, table = on_terminal("ctl", "--control", node.control, "status")
        assert "of 2: 1 serves groups 1-2, 2 serves none" in table, table
        assert f"port {port['portid']}: {here} 1-2" in table, table


@with_cluster("move: a group goes to another member, and hosts are told")
def _(cluster, one, two):
    with connect(one) as first, connect(two) as second:
        for ctrl in (first, second):
            ctrl.set_feature(0x0B, 1 << 11)
        disk = first.disk(2)
        disk.write(0, pattern(7, disk.block))
        aers = [ctrl.aer() for ctrl in (first, second)]
        one.ctl("move", group=2, node=2)
        for ctrl, aer in zip((first, second), aers):
            assert ctrl.event(aer) == (2, 3, ANA_LOG)
        cluster.until(1, [1, 1])
        assert [ana(first, g) for g in (1, 2)] == [OPTIMIZED, INACCESSIBLE]
        assert [ana(second, g) for g in (1, 2)] == [INACCESSIBLE, OPTIMIZED]
        disk.read(0, want=ANA_INACCESSIBLE)
        there = second.disk(2)
        assert there.read(0) == pattern(7, there.block)
        there.write(0, pattern(8, there.block))
        two.ctl("move", node=1)
        assert disk.read(0) == pattern(8, disk.block)
    assert f"node 3: the cluster of {one.nqn} has 2 nodes" in refused(one, "move", node=3)
    refused(one, "move", group=1)
    assert f"group 7: no namespace of {one.nqn} is in it" in refused(one, "move", group=7, node=2)
    assert cluster.groups(1) == [2, 0]


@with_cluster("drain: everything goes to others, and nothing comes back before undrain", of=3)
def _(cluster, one, two, three):
    with connect(one) as ctrl:
        one.ctl("drain")
        assert cluster.groups(1)[0] == 0 and sum(cluster.groups(1)) == 2
        assert cluster.cluster(1)["members"][0]["draining"]
        assert ana(ctrl, 1) == ana(ctrl, 2) == INACCESSIBLE
    two.kill9()
    cluster.until(3, [0, 0, 2])
    said = refused(three, "drain")                  # the only other one drains
    assert "all other members that are there are drained" in said and "undrain" in said, said
    weft.wait_until(lambda: not cluster.cluster(3)["members"][2]["draining"], "no drain")
    said = refused(three, "move", node=1)
    assert "node 1 is drained" in said and "undrain" in said, said
    assert "node 2 is not there" in refused(three, "move", node=2)
    one.ctl("undrain")
    three.ctl("drain")
    assert cluster.groups(1) == [2, 0, 0]
    three.ctl("undrain")


@with_cluster("a killed member's groups are served by another; it comes back and serves none")
def _(cluster, one, two):
    with connect(one) as ctrl:
        disk = ctrl.disk()
        disk.write(0, pattern(5, disk.block))
    one.kill9()
    cluster.until(2, [0, 2])
    with connect(two) as ctrl:
        disk = ctrl.disk()
        assert disk.read(0) == pattern(5, disk.block)
        disk.write(0, pattern(6, disk.block))
        cluster.start(1)
        assert cluster.groups(1) == [0, 2]
        two.ctl("move", node=1)
    with connect(one) as ctrl:
        disk = ctrl.disk()
        assert disk.read(0) == pattern(6, disk.block)


@with_cluster("the last one that stops leaves its groups to the first that starts")
def _(cluster, one, two):
    one.stop()
    cluster.until(2, [0, 2])
    two.stop()
    cluster.start(2)
    cluster.until(2, [0, 2])
    two.kill9()
    cluster.start(1)
    cluster.until(1, [2, 0])


def serving(cluster):
    """A controller of the member that serves group 1, and its disk."""
    for target in cluster.nodes.values():
        if target.process.poll() is not None:
            continue
        ctrl = connect(target)
        if ana(ctrl, 1) == OPTIMIZED:
            return ctrl, ctrl.disk()
        ctrl.close()
    return None


@with_cluster("20 times the member that serves is killed: nothing that was answered is lost", limit_s=120)
def _(cluster, *_nodes):
    size = 64 << 10
    for number in range(20):
        ctrl, disk = weft.wait_until(lambda: serving(cluster), "somebody to serve", UNTIL_S)
        with ctrl:
            if number:
                assert disk.read(0, size // disk.block) == pattern(number - 1, size)
            disk.write(0, pattern(number, size))
            late = disk.command(sqe.WRITE, 4096, 1)
            ctrl.queues[0].submit(late, pattern(99, disk.block))        # it may still be on its way
            victim = next(n for n, t in cluster.nodes.items() if t.addr == ctrl.addr)
            cluster.nodes[victim].kill9()
        cluster.start(victim)


@with_cluster("a dead member's group is not served while something of it is left with the storage")
def _(cluster, one, two):
    fd = storage_of(one, "a")           # as an operation would be that its kernel has not ended
    try:
        one.kill9()
        cluster.until(2, [1, 1])
        with connect(two) as ctrl:
            for _ in range(20):
                assert [ana(ctrl, g) for g in (1, 2)] == [INACCESSIBLE, OPTIMIZED]
            refused(two, "namespace-add", backend=f"file:{cluster.shared}/a", nsid=7)
            refused(two, "move", group=2, node=1)   # which nobody has to wait for
            refused(two, "drain")
            os.close(fd)
            fd = -1
            cluster.until(2, [0, 2])
            assert ana(ctrl, 1) == OPTIMIZED
    finally:
        if fd >= 0:
            os.close(fd)


@with_cluster("who should take a dead member's groups is stopped: another one does", of=3)
def _(cluster, one, two, three):
    cluster.pause(2)                                # both would be its
    one.kill9()
    cluster.until(3, [0, 0, 2])
    with connect(three) as ctrl:
        disk = ctrl.disk()
        disk.write(0, pattern(1, disk.block))
        cluster.resume(2)
        for _ in range(20):
            disk.write(0, pattern(2, disk.block))
        cluster.until(2, [0, 0, 2])                 # it has to read that first
        assert cluster.groups(3) == [0, 0, 2]
        cluster.start(1)


@with_cluster("a target that waits for another one can be stopped")
def _(cluster, one, _two):
    def drain():
        with contextlib.suppress(weft.CtlError, ValueError):        # refused, or hung up upon
            one.ctl("drain")
    cluster.pause(2)
    with in_background(drain):
        weft.wait_until(lambda: "served elsewhere" in one.log.read_text(), "the drain to begin")
        one.stop()
    cluster.resume(2)


# ---- discovery

def listed(target):
    """(address, port id) of every entry that this member's discovery service shows."""
    with connect(target, nqn=nvme.DISCOVERY) as ctrl:
        entries = discovery.read_log(ctrl)[1]
    assert all(e.subnqn == target.nqn for e in entries)
    return {((e.traddr, int(e.trsvcid)), e.portid) for e in entries}


@with_cluster("every member's discovery service tells of all of them, and when that changes")
def _(cluster, one, two):
    both = {(one.addr, 1), (two.addr, 1001)}
    for target in (one, two):
        weft.wait_until(lambda t=target: listed(t) == both, "both to be listed")
    with connect(two, nqn=nvme.DISCOVERY, kato=60_000) as ctrl:
        ctrl.set_feature(0x0B, 1 << 31)
        generation, _ = discovery.read_log(ctrl)
        aer = ctrl.aer()
        added = one.ctl("listener-add", listen=weft.ANY_PORT)["listen"]
        assert ctrl.event(aer) == discovery.NOTICE
        now, entries = discovery.read_log(ctrl)
        assert now != generation and {e.portid for e in entries} == {1, 2, 1001}
        aer = ctrl.aer()
        one.ctl("listener-remove", listen=added)
        assert ctrl.event(aer) == discovery.NOTICE
    assert listed(two) == both
    one.ctl("listener-add", listen=weft.ANY_PORT + "?portid=1001")
    weft.wait_until(lambda: "port id 1001 is also that of" in two.log.read_text(), "the warning")


@with_cluster("a member that is gone stays listed, until all are gone")
def _(cluster, one, two):
    both = {(one.addr, 1), (two.addr, 1001)}
    weft.wait_until(lambda: listed(two) == both, "both to be listed")
    one.kill9()
    cluster.until(2, [0, 2])
    assert listed(two) == both
    two.stop()
    cluster.start(2)
    weft.wait_until(lambda: listed(two) == {(two.addr, 1001)}, "itself alone")


# ---- reservations

@with_cluster("a reservation holds for every member")
def _(cluster, one, two):
    with Host(one, 1) as here, Host(one, 2) as other:
        here.register()
        here.acquire(EA)
        other.disk.read(0, want=RESERVATION_CONFLICT)
        one.ctl("move", node=2)
    with Host(two, 1) as here, Host(two, 2) as other:
        assert other.holders() == [1]
        other.disk.read(0, want=RESERVATION_CONFLICT)
        here.disk.read(0)
        here.release(EA, resv.CLEAR)
        two.ctl("move", node=1)
    with Host(one, 2) as other:
        assert other.registrants() == []
        other.disk.read(0)


@with_cluster("a host is told by the member that it is connected to")
def _(cluster, one, two):
    with Host(one, 1) as here, Host(one, 2) as victim, connect(two, hostid=victim.id) as there:
        here.register()
        victim.register()
        aer = there.aer()
        here.acquire(WERO, resv.PREEMPT, prkey=2, want=nvme.SUCCESS)
        assert there.event(aer) == EVENT
        assert there.log(resv.LOG, 64)[8] == resv.REG_PREEMPTED


def remove_all(target):
    """Whoever has no namespace sweeps their records."""
    for nsid in 1, 2:
        target.ctl("namespace-remove", nsid=nsid)


def resv_records(cluster):
    return [key for key in state_keys(cluster.shared / "state") if key.startswith("resv/")]


@with_cluster("who has no namespace leaves its record to others: a host is told what it says", of=3)
def _(cluster, one, two, three):
    with Host(one, 1) as here, Host(one, 2) as victim, connect(two, hostid=victim.id) as there:
        here.register()
        victim.register()
        aer = there.aer()
        cluster.pause(2)
        cid = here.queue.submit(sqe.Sqe(sqe.RESV_RELEASE, 1, dw10=resv.CLEAR), struct.pack("<Q", 1))
        weft.wait_until(lambda: here.registrants() == [], "it to be seen by who lives", UNTIL_S)
        remove_all(three)
        cluster.resume(2)
        here.queue.wait(cid)
        assert there.event(aer) == EVENT
        assert there.log(resv.LOG, 64)[8] == resv.RESV_PREEMPTED


@with_cluster("… and its generation goes on; the last of them sweeps it")
def _(cluster, one, two):
    with Host(one, 1) as host:
        host.register()
        host.unregister()
        assert host.report().generation == 2
        remove_all(two)
        host.register()
        assert host.report().generation == 3
        host.unregister()
    two.kill9()
    weft.wait_until(lambda: not cluster.cluster(1)["members"][1]["alive"], "node 2 to go", UNTIL_S)
    remove_all(one)
    weft.wait_until(lambda: not resv_records(cluster), "the record to go", UNTIL_S)


@with_cluster("a change is answered when every member that lives has taken it in")
def _(cluster, one, two):
    with Host(one, 1) as host:
        cluster.pause(2)
        cid = host.queue.submit(sqe.Sqe(sqe.RESV_REGISTER, 1), struct.pack("<QQ", 0, 1))
        for _ in range(50):
            assert host.registrants() in ([], [1])
            host.disk.write(0, bytes(host.disk.block))
        assert host.queue.requests[cid].cqe is None, "answered while node 2 could not know of it"
        cluster.resume(2)
        host.queue.wait(cid)
        cluster.pause(2)
        cid = host.queue.submit(sqe.Sqe(sqe.RESV_ACQUIRE, 1, dw10=EA << 8), struct.pack("<QQ", 1, 0))
        for _ in range(50):
            host.disk.write(0, bytes(host.disk.block))
        assert host.queue.requests[cid].cqe is None
        two.kill9()                                 # one that is gone need not
        host.queue.wait(cid)


@with_cluster("reservations that do not persist end with the last member, not with the first")
def _(cluster, one, two):
    with Host(one, 1) as host:
        host.register()
    one.kill9()
    cluster.until(2, [0, 2])
    with Host(two, 2) as host:
        assert host.registrants() == [1]
    cluster.start(1)
    two.kill9()
    cluster.until(1, [2, 0])
    with Host(one, 2) as host:
        assert host.registrants() == [1]
    one.kill9()
    cluster.start(1)
    cluster.until(1, [2, 0])
    with Host(one, 2) as host:
        assert host.registrants() == []


# ---- who may not

@with_cluster("others stay out: the same number, a target that is alone, storage that is not shared")
def _(cluster, one, _two):
    nqn = "nqn.2026-11.io.weft:other"
    state = f"file:{cluster.shared}/state"

    def refuses(words, **subsys):
        try:
            one.ctl("subsystem-add", nqn=nqn, **subsys)
        except weft.CtlError as err:
            assert words in str(err), err
        else:
            raise AssertionError(subsys)
    refuses("another process has it open as node 2", state=state, cluster={"node": 2, "of": 2})
    refuses("another process has it open", state=state)
    refuses("in use", namespaces=[{"backend": f"file:{cluster.shared}/a"}])
    refuses("need a state in common", cluster={"node": 1, "of": 2})
    refuses("not storage that", state=state, cluster={"node": 1, "of": 2},
            namespaces=[{"backend": "mem:1M"}])
    refused(one, "namespace-add", backend="mem:1M")
    refused(one, "namespace-add", backend=f"file:{cluster.shared}/a")
    added = one.ctl("namespace-add", backend=f"file:{cluster.shared}/c,size=1M")
    assert added["nsid"] == 3


@with_cluster("a node that is started twice: the second says where the first is, and ends")
def _(_cluster, one, _two):
    text, host = one.config.read_text(), "nvme+tcp://{}:{}".format(*one.addr)
    elsewhere = (text.replace(host, weft.ANY_PORT)
                 .replace(f"control: {one.control}", f"control: {one.control}.2"))
    no_storage = "".join(line for line in elsewhere.splitlines(True) if "backend" not in line)
    for number, config in enumerate((text, elsewhere, no_storage.replace("namespaces:", ""))):
        path = one.dir / f"again{number}.yaml"
        path.write_text(config)
        result = subprocess.run([weft.BINARY, "serve", "-c", path], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=60)
        last = result.stderr.splitlines()[-1]
        assert result.returncode == 1, result.stderr
        assert last.startswith(f"weft serve: {one.nqn}: node 1 of this cluster is running already, "
                               f"and listens on {host}; stop that one"), last


@with_cluster("who takes storage of others for something else is refused: two would serve it at once")
def _(cluster, one, two):
    backend = f"file:{cluster.shared}/c,size=1M"
    one.ctl("namespace-add", backend=backend, nsid=3, ana_group=2)

    for words, ns in (("another member has it in ANA group 2, here it is in ANA group 1", dict(nsid=3)),
                      ("another member has it as another namespace", dict(nsid=4, ana_group=2)),
                      ("another member has it as another namespace",
                       dict(nsid=3, ana_group=2, block=512)),
                      ("another member has it as another namespace",
                       dict(nsid=3, ana_group=2, uuid="11111111-2222-3333-4444-555555555555"))):
        try:
            two.ctl("namespace-add", backend=backend, **ns)
        except weft.CtlError as err:
            assert words in str(err), err
        else:
            raise AssertionError(f"{ns} was accepted")
    try:
        two.ctl("namespace-add", backend=f"file:{cluster.shared}/d,size=1M", nsid=3, ana_group=2)
    except weft.CtlError as err:
        assert "another member has another file as namespace 3" in str(err), err
    else:
        raise AssertionError("another file was accepted")
    two.ctl("namespace-add", backend=backend, nsid=3, ana_group=2)
    for target in (one, two):
        target.ctl("namespace-remove", nsid=3)
    two.ctl("namespace-add", backend=f"file:{cluster.shared}/d,size=1M", nsid=3, ana_group=1)
    one.ctl("namespace-add", backend=f"file:{cluster.shared}/d,size=1M", nsid=3)


@with_cluster("a member whose configuration has another group, or another file, does not start")
def _(cluster, one, two):
    two.stop()
    one.takeover()                                  # what it says is said on
    text = two.config.read_text()
    for was, becomes, words in (
            ("ana_group: 2", "ana_group: 3",
             "another member has it in ANA group 2, here it is in ANA group 3"),
            ("/b,size=16M", "/other,size=16M", "another member has another file as namespace 2")):
        two.config.write_text(text.replace(was, becomes))
        assert two.spawn().wait(30) == 1
        last = two.log.read_text().splitlines()[-1]
        assert words in last, last
    two.config.write_text(text)
    two.start()


@with_cluster("a list of hosts is one member's, and who changes it is told so")
def _(_cluster, one, two):
    host = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-00000000a11c"
    for method, params in (("host-refuse", dict(host="any")), ("host-allow", dict(host=host)),
                           ("host-refuse", dict(host=host))):
        warnings = one.ctl(method, nqn=one.nqn, **params)["warnings"]
        assert f"{one.nqn}: this changed the list of hosts of node 1 only; each member of a cluster " \
            "has its own: call the others too" in warnings, (method, warnings)
    assert two.subsystem()["allow_any_host"]


@with_cluster("ana-set that leaves a group without any path: the member that serves it says so")
def _(_cluster, one, two):
    rules = [dict(group=1, state="inaccessible")]
    assert "no port gives access to group 1 now" in one.ctl("ana-set", rules=rules)["warnings"][0]
    assert two.ctl("ana-set", rules=rules) == {}


@tap.case("drain and move where there is no cluster")
def _():
    with weft.Target() as t:
        refused(t, "drain")
        refused(t, "undrain")
        refused(t, "move", node=1)


sys.exit(tap.run())
