#!/usr/bin/python3
"""target_cluster_join.py - a target that serves others joins a cluster in doubt: nobody waits for that but who asked.

Node 1 was killed, and its lock would not show where node 2 joins: so its line is watched, and until then it may live.
A mount that stands still keeps the join from ending."""
import contextlib
import pathlib
import signal
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import sqe
import tap
import weft
from apart import Apart
from cluster import OPTIMIZED, UNTIL_S, ana, newest_slot
from fixture import connect, refused

OTHER = "nqn.2026-11.io.weft:other"
LINES_AT, LINE = 4096, struct.Struct("<IIQ")        # checksum, stage, incarnation
JOINING, MEMBER, LEFT = 1, 2, 3


def stage(cluster, node):
    """What a node's line in the state file says."""
    with (cluster.shared / "state").open("rb") as file:
        file.seek(LINES_AT + 64 * (node - 1))
        return LINE.unpack(file.read(LINE.size))[1]


def config(cluster):
    there = cluster.dir_of(2)
    return dict(nqn=weft.NQN, state=f"file:{there}/state", cluster={"node": 2, "of": 2},
                namespaces=[{"backend": f"file:{there}/a,size=16M"}])


def begin_to_join(cluster, target):
    """Call what this returns for the answer."""
    answer = target.ask("subsystem-add", **config(cluster))
    weft.wait_until(lambda: stage(cluster, 2) == JOINING, "node 2 to be in doubt", UNTIL_S)
    return answer


@contextlib.contextmanager
def standing_still(cluster):
    """Nothing of node 2's mount is answered inside, and so a join under way does not end."""
    process = cluster.mounts[2].process
    process.send_signal(signal.SIGSTOP)
    try:
        assert stage(cluster, 2) == JOINING, "the join was over before the mount stood still"
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def in_doubt(name, limit_s=60):
    """body(cluster, a target that serves another subsystem): node 1 of the cluster was killed."""
    def add(body):
        @tap.case(name, limit_s)
        def _():
            with contextlib.closing(Apart()) as cluster:
                cluster.start_alone(1)
                cluster.until(1, [2, 0])
                cluster.nodes[1].kill9()
                with weft.Target(ns=["mem:16M"], nqn=OTHER) as target:
                    body(cluster, target)
        return body
    return add


def has(target, nqn):
    return any(s["nqn"] == nqn for s in target.ctl("status")["subsystems"])


@in_doubt("hosts and control calls are answered before the join ends")
def _(cluster, target):
    with connect(target, kato=120000) as ctrl:
        answer = begin_to_join(cluster, target)
        with standing_still(cluster):
            assert not has(target, weft.NQN) and has(target, OTHER)
            ctrl.admin.do(sqe.Sqe(sqe.KEEP_ALIVE))
            ctrl.identify(1)
            with connect(target) as another:
                another.disk().read(0)
            target.ctl("namespace-add", backend="mem:16M")
            assert stage(cluster, 2) == JOINING
        assert answer() == {"nqn": weft.NQN}
    assert stage(cluster, 2) == MEMBER
    with connect(target, nqn=weft.NQN) as ctrl:
        weft.wait_until(lambda: ana(ctrl, 1) == OPTIMIZED, "the group to come", UNTIL_S)
        ctrl.disk().read(0)


@in_doubt("a member that lives unseen: the call is refused, and nothing is left of it")
def _(cluster, target):
    cluster.nodes[1].start()
    fds = target.fds()
    for _ in range(2):
        assert "node 1 lives" in refused(target, "subsystem-add", **config(cluster))
        assert not has(target, weft.NQN)
        weft.wait_until(lambda: target.fds() == fds, "descriptors to be closed")
        assert stage(cluster, 2) == LEFT, stage(cluster, 2)
    cluster.nodes[1].stop()
    target.ctl("subsystem-add", **config(cluster))


@in_doubt("a target that is told to stop does not wait for the join, and is no member")
def _(cluster, target):
    session = newest_slot(cluster.shared / "state")[2]
    begin_to_join(cluster, target)
    target.stop()
    assert stage(cluster, 2) == LEFT and newest_slot(cluster.shared / "state")[2] == session


@in_doubt("no takeover while a join is under way: it is said, and the join goes on")
def _(cluster, target):
    answer = begin_to_join(cluster, target)
    assert target.spawn("--takeover").wait(UNTIL_S) == 1
    assert "takeover given up: a call over the control socket is still under way" in target.log.read_text()
    answer()
    assert target.answer()["pid"] == target.process.pid and has(target, weft.NQN)


@in_doubt("what has changed meanwhile counts: the name is taken, or a UUID is")
def _(cluster, target):
    uuid = "6a1c7b1e-5d3f-4c1a-9a52-0d6f5c0f7e11"
    wanted = config(cluster)
    wanted["namespaces"][0]["uuid"] = uuid
    for change, undo, why in (
            (("subsystem-add", dict(nqn=weft.NQN)), ("subsystem-remove", dict(nqn=weft.NQN)), "already"),
            (("namespace-add", dict(nqn=OTHER, nsid=7, backend="mem:16M", uuid=uuid)),
             ("namespace-remove", dict(nqn=OTHER, nsid=7)), uuid)):
        answer = target.ask("subsystem-add", **wanted)
        weft.wait_until(lambda: stage(cluster, 2) == JOINING, "node 2 to be in doubt", UNTIL_S)
        with standing_still(cluster):
            target.ctl(change[0], **change[1])
        try:
            answer()
            raise AssertionError("it was accepted")
        except weft.CtlError as err:
            assert why in str(err), err
        target.ctl(undo[0], **undo[1])
        assert not has(target, weft.NQN)
        weft.wait_until(lambda: stage(cluster, 2) == LEFT, "node 2 to leave", UNTIL_S)
        cluster.start_alone(1)                      # as before: it may live
        cluster.nodes[1].kill9()


sys.exit(tap.run())
