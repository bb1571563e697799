#!/usr/bin/python3
"""target_cluster_trouble.py - somebody spoils the state file of a cluster, or stops a member for long."""
import fcntl
import os
import pathlib
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import ofd
import sqe
import tap
import weft
from cluster import INACCESSIBLE, OPTIMIZED, UNTIL_S, ana, forge, start_all, with_cluster
from command import on_terminal
from fixture import connect, in_background, refused
from nvme import ANA_INACCESSIBLE, RESERVATION_CONFLICT, pattern
from resv import EA, Host

MORE_THAN_ALL = 40 << 20


def spoil(path, how):
    with path.open("rb+") as file:
        if how == "cut":
            file.truncate(0)
        elif how == "zeroes":
            file.write(bytes(MORE_THAN_ALL))
        else:
            file.write(os.urandom(1 << 20))
            file.seek((16 << 20) + (64 << 10))
            file.write(os.urandom(1 << 20))


for how in ("cut", "zeroes", "noise"):
    @with_cluster(f"the state is spoilt ({how}) while groups move and hosts reserve: members repair it")
    def _(cluster, one, two, how=how):
        with Host(one, 1) as here:
            here.register()
            here.acquire(EA)
        with connect(one) as first, connect(two) as second:
            for number in range(6):
                to = 2 - number % 2
                spoil(cluster.shared / "state", how)
                one.ctl("move", group=1, node=to)
                states = [ana(ctrl, 1) for ctrl in (first, second)]
                assert states == ([OPTIMIZED, INACCESSIBLE] if to == 1 else
                                  [INACCESSIBLE, OPTIMIZED]), states
        assert "is gone" not in one.log.read_text() + two.log.read_text()
        two.kill9()
        cluster.until(1, [2, 0])
        cluster.start(2)                            # it finds a file that can be read
        with Host(one, 2) as other:
            assert other.holders() == [1]
            other.disk.read(0, want=RESERVATION_CONFLICT)


@with_cluster("another file is in its place: who starts on it serves nothing that others have")
def _(cluster, one, two):
    state, away = cluster.shared / "state", cluster.shared / "away"
    two.kill9()
    weft.wait_until(lambda: not cluster.cluster(1)["members"][1]["alive"], "node 2 to be gone")
    state.rename(away)
    two.start()                                     # with a state of its own: node 1 is not in it
    assert not cluster.cluster(2)["members"][0]["alive"]
    with connect(one) as first, connect(two) as second:
        disk = first.disk()
        for number in range(20):
            disk.write(0, pattern(number, disk.block))
            assert [ana(second, g) for g in (1, 2)] == [INACCESSIBLE] * 2
        second.open()
        second.queues[0].do(disk.command(sqe.READ, 0, 1), length=disk.block,
                            want=ANA_INACCESSIBLE)
        with Host(one, 1) as host:
            host.register(want=nvme.INTERNAL)       # nobody would find it later
        assert "another file is in its place" in one.log.read_text()
        one.kill9()
        cluster.until(2, [0, 2])
        assert ana(second, 1) == OPTIMIZED
        there = second.disk()
        assert there.read(0) == pattern(19, there.block)


@with_cluster("a member that has another state file serves nothing, and says what holds its storage")
def _(cluster, one, two):
    two.stop()
    two.config.write_text(two.config.read_text().replace("/state", "/other"))
    two.start()
    weft.wait_until(lambda: two.log.read_text().count("is not served") == 2, "a warning of each", UNTIL_S)
    said = two.log.read_text()
    for nsid, name in ((1, "a"), (2, "b")):
        assert (f"namespace {nsid} is not served: another process has file:{cluster.shared}/{name},"
                "size=16M open as node 1") in said, said
    assert f"another file than file:{cluster.shared}/other" in said, said
    assert [ns["held_by_node"] for ns in two.subsystem()["namespaces"]] == [1, 1]
    assert "held_by_node" not in one.subsystem()["namespaces"][0]
    _, table = on_terminal("ctl", "--control", two.control, "status")
    assert table.count("NOT SERVED: a process that is no member has it open as node 1") == 2, table
    one.kill9()
    cluster.until(2, [0, 2])
    assert "held_by_node" not in two.subsystem()["namespaces"][0]


def lacks(cluster, node):
    """Which namespaces each member lacks, as this one sees it."""
    return [m["lacks"] for m in cluster.cluster(node)["members"]]


@with_cluster("a member that lacks a namespace: both say so, until it has it")
def _(cluster, one, two):
    assert lacks(cluster, 1) == lacks(cluster, 2) == [[], []]
    two.stop()
    config = two.config.read_text()
    two.config.write_text("".join(line for line in config.splitlines(True) if "/b," not in line))
    cluster.start(2)
    for node, target in ((1, one), (2, two)):
        weft.wait_until(lambda n=node: lacks(cluster, n) == [[], [2]], "node 2 lacks it", UNTIL_S)
        here = " (this one)" if node == 2 else ""
        said = target.log.read_text()
        assert f"node 2{here} has no namespace 2, which node 1 has; hosts lose it" in said, said
        _, table = on_terminal("ctl", "--control", target.control, "status")
        assert "2 serves none, LACKS namespace 2" in table, table
    two.ctl("namespace-add", backend=f"file:{cluster.shared}/b,size=16M", ana_group=2)
    for node in (1, 2):
        weft.wait_until(lambda n=node: lacks(cluster, n) == [[], []], "node 2 has it", UNTIL_S)
    one.ctl("namespace-remove", nsid=2)
    weft.wait_until(lambda: lacks(cluster, 2) == [[2], []], "node 1 lacks it", UNTIL_S)
    one.kill9()
    weft.wait_until(lambda: lacks(cluster, 2) == [[], []], "who is gone lacks nothing", UNTIL_S)


def other_sizes(cluster, node):
    """Of each member, as this one sees it: the sizes of namespaces about which members differ."""
    return [{ns["nsid"]: ns["size"] for ns in m["other_sizes"]} for m in cluster.cluster(node)["members"]]


@with_cluster("a namespace that was resized on one member only: who asked for it is told, all say so")
def _(cluster, one, two):
    assert other_sizes(cluster, 1) == other_sizes(cluster, 2) == [{}, {}]
    only = "on node {} only; each member of a cluster has its own namespaces: call the others too"
    warnings = one.ctl("namespace-resize", nsid=2, size="32M")["warnings"]
    assert any(f"namespace 2 is resized {only.format(1)}" in w for w in warnings), warnings
    for node, target in ((1, one), (2, two)):
        weft.wait_until(lambda n=node: other_sizes(cluster, n) == [{2: 32 << 20}, {2: 16 << 20}],
                        "sizes to differ", UNTIL_S)
        here = [" (this one)" if n == node else "" for n in (1, 2)]
        said = target.log.read_text()
        assert f"namespace 2 has 16M on node 2{here[1]} and 32M on node 1{here[0]}" in said, said
        _, table = on_terminal("ctl", "--control", target.control, "status")
        assert "1 serves groups 1-2, OTHER SIZE namespace 2 (32M)" in table, table
        assert "2 serves none, OTHER SIZE namespace 2 (16M)" in table, table
    warnings = two.ctl("namespace-resize", nsid=2, size="32M").get("warnings", [])
    assert not any("each member" in w for w in warnings), warnings
    for node in (1, 2):
        weft.wait_until(lambda n=node: other_sizes(cluster, n) == [{}, {}], "one size", UNTIL_S)


@with_cluster("a namespace that is added to one member, or removed: who asked for it is told")
def _(cluster, one, two):
    def warned(target, method, done, **params):
        warnings = target.ctl(method, **params).get("warnings", [])
        return any(f"namespace 3 is {done} on node" in w for w in warnings)

    backend = f"file:{cluster.shared}/c,size=16M"
    assert warned(one, "namespace-add", "added", backend=backend, nsid=3)
    weft.wait_until(lambda: lacks(cluster, 2) == [[], [3]], "node 2 to lack it", UNTIL_S)
    assert not warned(two, "namespace-add", "added", backend=backend, nsid=3)
    weft.wait_until(lambda: lacks(cluster, 1) == [[], []], "node 2 to have it", UNTIL_S)
    assert warned(one, "namespace-remove", "removed", nsid=3)
    weft.wait_until(lambda: lacks(cluster, 2) == [[3], []], "node 1 to lack it", UNTIL_S)
    assert not warned(two, "namespace-remove", "removed", nsid=3)


@with_cluster("a drain that cannot begin is taken back: who asked for it is told, and nothing waits on")
def _(cluster, one, two):
    state, away = cluster.shared / "state", cluster.shared / "away"
    state.rename(away)
    with in_background(lambda: refused(one, "drain")):
        weft.wait_until(lambda: "cannot be changed in its state" in one.log.read_text(), "the drain")
        one.ctl("undrain")
    away.rename(state)
    one.ctl("move", group=2, node=2)
    assert cluster.groups(1) == [1, 1]


def takes_state(file):
    try:
        ofd.lock(file, fcntl.F_RDLCK, ofd.STATE_AT)
    except BlockingIOError:
        return False
    return True


@with_cluster("somebody has the state locked for long: who waits for it says so, once, and goes on afterwards")
def _(cluster, one, two):
    with (cluster.shared / "state").open("rb") as file:     # to read is enough
        weft.wait_until(lambda: takes_state(file), "no member to be at it")
        answer = one.ask("move", group=2, node=2)
        weft.wait_until(lambda: "does not go on" in one.log.read_text(), "node 1 to say so")
        assert cluster.groups(1) == [2, 0]
    answer()
    assert cluster.groups(1) == [1, 1] and one.log.read_text().count("does not go on") == 1


@with_cluster("who may only read the storage locks a dead member's bytes: its groups are taken all the same")
def _(cluster, one, two):
    with (cluster.shared / "a").open("rb") as file, connect(two) as second:
        cluster.pause(2)
        with in_background(lambda: ofd.wait(file, fcntl.F_RDLCK, ofd.STATE_AT + 1)):
            one.kill9()                             # which had it locked until now
        cluster.resume(2)
        cluster.until(2, [0, 2])
        assert [ana(second, g) for g in (1, 2)] == [OPTIMIZED] * 2


@with_cluster("storage that every user may open is warned of")
def _(cluster, one, two):
    image = cluster.shared / "b"
    two.stop()
    assert "every user" not in two.log.read_text()
    image.chmod(0o644)
    cluster.start(2)
    warnings = [line for line in two.log.read_text().splitlines() if "every user may open it" in line]
    assert len(warnings) == 1 and f"chmod o= {image}" in warnings[0], warnings


@with_cluster("a reset that lies under another controller's key is not run after for ever")
def _(cluster, one, two):
    for target in (one, two):
        target.stop()
    reset = struct.pack("<4BHxxQQ16s224s", 1, 1, 2, 0, 9, 5, 1, b"id", b"nqn")
    forge(cluster.shared / "state", "reset/7", reset)
    start_all(cluster)
    one.takeover()                                  # not while a record is being written
    one.ctl("move", group=2, node=2)
    assert cluster.groups(1) == [1, 1]


@with_cluster("a member that stood still for long serves on: nobody took anything from it")
def _(cluster, one, two):
    with connect(one) as first, connect(two) as second:
        disk = first.disk()
        cluster.pause(1)
        time.sleep(2.5)                             # node 2 looks once a second
        assert cluster.groups(2) == [2, 0]
        assert [ana(second, g) for g in (1, 2)] == [INACCESSIBLE] * 2
        cluster.resume(1)
        disk.write(0, pattern(3, disk.block))
        assert [ana(first, g) for g in (1, 2)] == [OPTIMIZED] * 2
        two.ctl("move", node=2)
        disk.write(0, pattern(4, disk.block), want=ANA_INACCESSIBLE)
        there = second.disk()
        assert there.read(0) == pattern(3, there.block)


sys.exit(tap.run())
