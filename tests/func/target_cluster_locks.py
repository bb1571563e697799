#!/usr/bin/python3
"""target_cluster_locks.py - members whose file system does not share locks: at most one of them serves."""
import contextlib
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import weft
from apart import Apart
from cluster import OPTIMIZED, UNTIL_S, ana, is_stopped
from fixture import connect, refused
from nvme import ANA_LOSS, pattern
from resv import Host

PERSISTENT_LOSS = 4


def apart(name, limit_s=120):
    """body(cluster): nothing is started yet."""
    def add(body):
        @tap.case(name, limit_s)
        def _():
            with contextlib.closing(Apart()) as cluster:
                try:
                    body(cluster)
                except Exception:
                    cluster.tell()
                    raise
        return body
    return add


def serves_both(cluster, node):
    groups = [0, 0]
    groups[node - 1] = 2
    cluster.until(node, groups)


@apart("a member whose lock does not show lives: who joins is refused, and the member serves on")
def _(cluster):
    one = cluster.start_alone(1)
    serves_both(cluster, 1)
    with connect(one) as ctrl:
        disk = ctrl.disk()
        for number in range(3):
            why = cluster.refused(2)
            assert str(cluster.dir_of(2) / "state") in why and "node 1 lives" in why, why
            assert "does not share locks" in why, why
            disk.write(0, pattern(number, disk.block))
            assert disk.read(0) == pattern(number, disk.block)
        assert [ana(ctrl, g) for g in (1, 2)] == [OPTIMIZED] * 2
    assert "served elsewhere" not in one.log.read_text()
    assert not one.subsystem()["lost"]


@apart("another process is the same node, where locks do not show: who comes second is refused")
def _(cluster):
    one = cluster.start_alone(1)
    serves_both(cluster, 1)
    text = one.config.read_text().replace(str(cluster.dir_of(1)), str(cluster.dir_of(2)))
    cluster.nodes[2] = weft.Target(config=text.split("\n", 1)[1].replace(
        f":{one.addr[1]}", f":{weft.free_port()}"))
    assert "that is node 1" in cluster.refused(2)
    assert cluster.groups(1) == [2, 0] and not one.subsystem()["lost"]


def is_decided(target):
    return target.process.poll() is not None or " ready" in target.log.read_text()


@apart("two that start at once where locks do not show: one at most serves")
def _(cluster):
    for _ in range(3):
        targets = [cluster.launch(node) for node in (1, 2)]
        weft.wait_until(lambda t=targets: all(is_decided(target) for target in t), "both", UNTIL_S)
        alive = [t for t in targets if t.process.poll() is None]
        assert len(alive) <= 1, "both serve"
        for target in alive:
            target.stop()


@apart("a member that stood still while another took its place stops to serve, for good, and says why")
def _(cluster):
    one = cluster.start_alone(1)
    serves_both(cluster, 1)
    with connect(one) as ctrl, Host(one, 1) as host:
        disk = ctrl.disk()
        disk.write(0, pattern(1, disk.block))
        one.process.send_signal(signal.SIGSTOP)
        weft.wait_until(lambda: is_stopped(one), "node 1 to stand still")
        two = cluster.start_alone(2)                # it cannot know better
        serves_both(cluster, 2)
        one.process.send_signal(signal.SIGCONT)
        weft.wait_until(lambda: one.subsystem()["lost"], "node 1 to find out", UNTIL_S)
        assert [ana(ctrl, g) for g in (1, 2)] == [PERSISTENT_LOSS] * 2
        disk.write(0, pattern(2, disk.block), want=ANA_LOSS)
        disk.read(0, want=ANA_LOSS)
        host.register(want=ANA_LOSS)
    with connect(one) as ctrl, connect(two) as other:
        assert ana(ctrl, 1) == PERSISTENT_LOSS      # a controller that comes later, too
        there = other.disk()
        there.write(1, pattern(3, there.block))
        assert there.read(0) == pattern(1, there.block)
    said = [line for line in one.log.read_text().splitlines() if " error: " in line]
    assert len(said) == 1 and "serves nothing" in said[0] and "state" in said[0], said
    assert "start it again" in refused(one, "move", node=1) and "start it again" in refused(one, "drain")
    heir = one.spawn("--takeover")                  # nor does another process go on with it
    assert heir.wait(UNTIL_S) == 1 and "not a member" in one.log.read_text()
    assert one.subsystem()["lost"]
    assert cluster.groups(2) == [0, 2] and not two.subsystem()["lost"]
    one.stop()
    assert "node 2 lives" in cluster.refused(1)
    two.kill9()
    cluster.start_alone(1)                          # it has watched node 2's line: nobody writes it
    serves_both(cluster, 1)


sys.exit(tap.run())
