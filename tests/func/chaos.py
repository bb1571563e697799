#!/usr/bin/python3
"""chaos.py - two hosts on two targets that are one subsystem, while everything fails at random.

    weft bench --verify --strict, twice   each host on blocks of its own: lost, stale, torn writes
    lib/turns.py                          both hosts in turns on the same blocks: each other's, too
    this                                  one failure after the other, in an order that the seed decides

    chaos.py [--failures N] [--seed N] [CASE]

The same seed is the same order of failures, with the same pauses; when within them an I/O is under way is
the machine's business."""
import argparse
import contextlib
import json
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import borrow
import command
import tap
import weft
from cluster import Cluster
from turns import SIZE, Turns, content, generations

MIB = 1 << 20
HOSTS = ["6c9a2f0e-3b7d-4d53-9d0c-6a1f5c1e7b01", "6c9a2f0e-3b7d-4d53-9d0c-6a1f5c1e7b02"]
# Silence is noticed soon, and nothing is given up.
WORDS = "kato=2s&loss_timeout=10m&reconnect_delay_max=500ms"
PLACES = [(nsid, (8 + number) * MIB) for number in range(2) for nsid in (1, 2)]
KINDS = ["kill", "stall", "stall_host", "cut", "move", "drain", "leave", "takeover"]
END_S = 120


def uri(cluster, host, more=""):
    nqn = f"hostnqn=nqn.2014-08.org.nvmexpress:uuid:{HOSTS[host]}&hostid={HOSTS[host]}"
    return ",".join(f"nvme+tcp://127.0.0.1:{t.addr[1]}/{t.nqn}?{WORDS}&{nqn}{more}"
                    for t in cluster.nodes.values())


class Bench:
    """A host on a namespace of its own, until it is told that it is enough."""

    def __init__(self, cluster, host, seed):
        self.process = command.start(
            "bench", uri(cluster, host, f"&nsid={host + 1}"), "--rw", "randrw", "--mix", 50,
            "--write-ok", "--verify", "--strict", "--size", "4M", "--bs", "8k", "--depth", 16,
            "--rate", 2000, "--time", "2h", "--interval", "10s", "--seed", seed + host, "--json")

    def pids(self):
        return [self.process.pid]

    def finish(self, limit_s):
        """Its report: nothing failed, and everything was as it was written."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=limit_s)
        assert self.process.returncode == 0, err.decode()
        report = json.loads(out)
        assert report["ok"] and report["verify"]["checked"], report["why"]
        assert not report["verify"]["wrong"] and not report["verify"]["unreadable"], report["verify"]
        return report

    def close(self):
        self.process.kill()
        self.process.wait()


class Chaos:
    """Every method is a failure. All is well again when it returns, but nobody waits until hosts know."""

    def __init__(self, cluster, hosts, seed):
        self.cluster, self.hosts, self.rng = cluster, hosts, random.Random(seed)
        self.done, self.given_up = {kind: 0 for kind in KINDS}, 0

    def pause(self, *lengths_s):
        time.sleep(self.rng.choice(lengths_s))

    def kill(self, node):
        self.cluster.nodes[node].kill9()
        self.pause(0, 0.05, 0.5)
        self.cluster.start(node)

    def stall(self, node):
        self.stall_process(self.cluster.nodes[node].process.pid)

    def stall_host(self, _node):
        pids = [pid for host in self.hosts for pid in host.pids()]
        self.stall_process(self.rng.choice(pids))

    def stall_process(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.pause(0.01, 0.1, 0.5, 3)
        os.kill(pid, signal.SIGCONT)

    def cut(self, node):
        """All connections of a node, or about half of them."""
        every = self.rng.random() < 0.5
        try:
            socks = borrow.connections(self.cluster.nodes[node].process.pid)
        except PermissionError as why:
            tap.skip(str(why))
        for number, sock in enumerate(socks):
            if every or number % 2:
                borrow.reset(sock)
            sock.close()

    def move(self, node):
        self.cluster.nodes[node].ctl("move", group=self.rng.choice((1, 2)), node=node)

    def rid(self, node):
        """Of its groups; refused while the other one, which has just come back, is not seen to be."""
        def accepted():
            try:
                self.cluster.nodes[node].ctl("drain")
            except weft.CtlError as why:
                assert "other member" in str(why), why
                return False
            return True
        weft.wait_until(accepted, "a drain", END_S)

    def drain(self, node):
        self.rid(node)
        self.pause(0, 0.1)
        self.cluster.nodes[node].ctl("undrain")

    def leave(self, node):
        self.rid(node)
        self.cluster.nodes[node].stop()
        self.pause(0, 0.1)
        self.cluster.start(node)

    def takeover(self, node):
        """One that is given up has changed nothing: a host that was stalled may owe data for too long."""
        target = self.cluster.nodes[node]
        old, heir = target.process, target.spawn("--takeover")
        weft.wait_until(lambda: old.poll() is not None or heir.poll() is not None, "a takeover", END_S)
        if old.poll() is None:
            self.given_up += 1
            tap.diag([line for line in target.log.read_text().splitlines() if "takeover" in line][-1])
        else:
            assert old.returncode == 0, target.log.read_text()
            target.process = heir
        weft.wait_until(lambda: target.answer()["pid"] == target.process.pid, "an answer")

    def happen(self):
        kind, node = self.rng.choice(KINDS), self.rng.choice((1, 2))
        tap.diag(f"{sum(self.done.values())}: {kind} {node}")
        getattr(self, kind)(node)
        self.done[kind] += 1
        self.pause(0, 0.02, 0.1, 0.3)


def run(cluster, failures, seed):
    with contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(contextlib.closing(Bench(cluster, n, seed))) for n in (0, 1)]
        uris = [uri(cluster, host) for host in (0, 1)]
        hosts.append(stack.enter_context(contextlib.closing(Turns(uris, PLACES))))
        chaos = Chaos(cluster, hosts, seed)
        for _ in range(failures):
            chaos.happen()
        turns, reports = hosts[2].finish(END_S), [host.finish(END_S) for host in hosts[:2]]
    tap.diag(f"seed {seed}, {failures} failures: {chaos.done}, takeovers given up: {chaos.given_up}")
    tap.diag(f"{turns} turns; bench: {[r['verify']['checked'] for r in reports]} blocks checked")
    assert turns and all(r["reconnects"] for r in reports), "the hosts noticed nothing"


def words():
    parser = argparse.ArgumentParser(description="Two hosts, two targets, failures at random.")
    parser.add_argument("--failures", type=int, default=40, help="how many (40)")
    parser.add_argument("--seed", type=int, default=1, help="of their order (1)")
    args, sys.argv[1:] = parser.parse_known_args()      # the rest chooses cases
    return args


def whole(data):
    """It, if it is one of the generations that were written."""
    return data if generations(data)[0] and data == content(0, generations(data)[0]) else None


@tap.case("hosts that take turns find an old write that comes back")
def _():
    with contextlib.closing(Cluster()) as cluster:
        for node in (1, 2):
            cluster.start(node)
        hosts = Turns([uri(cluster, host) for host in (0, 1)], PLACES[:1])
        with contextlib.closing(hosts), open(cluster.shared / "a", "r+b", buffering=0) as file:
            at = file.fileno(), PLACES[0][1]
            old = weft.wait_until(lambda: whole(os.pread(at[0], SIZE, at[1])), "a turn")
            weft.wait_until(lambda: os.pwrite(at[0], old[:SIZE // 2], at[1]) and hosts.ended(),
                            "somebody to notice", END_S)
            try:
                hosts.finish(END_S)
            except AssertionError as found:
                assert "was acknowledged" in str(found), found
            else:
                raise AssertionError("nobody noticed")


def main():
    args = words()

    @tap.case(f"no lost, stale or torn write: {args.failures} failures, seed {args.seed}",
              limit_s=120 + 4 * END_S + 5 * args.failures)
    def _():
        begin = time.monotonic()
        with contextlib.closing(Cluster()) as cluster:
            for node in (1, 2):
                cluster.start(node)
            run(cluster, args.failures, args.seed)
        tap.diag(f"it took {time.monotonic() - begin:.0f} s, {os.cpu_count()} CPUs, load average "
                 f"{os.getloadavg()[0]:.1f}")
    return tap.run()


sys.exit(main())
