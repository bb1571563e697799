#!/usr/bin/python3
"""host_bench_loss.py - weft bench with a target that is killed under it, comes back, or does not."""
import contextlib
import json
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import tap
import target
import weft
from bench import FAILED, FILE_NS, OK, loaded, running, told, uri
from cluster import INACCESSIBLE, OPTIMIZED, with_cluster
from command import interrupt_twice, messages, on_terminal
from fixture import with_target
from weft import Target, wait_until


def steady(backend):
    """A target that comes back on its port."""
    return Target(config=f'listen: [ "nvme+tcp://127.0.0.1:{weft.free_port()}" ]\n'
                         f'subsystems:\n  - nqn: {weft.NQN}\n    allow_any_host: true\n'
                         f'    namespaces: [ {{ backend: "{backend}", block: 4096 }} ]\n')


def restart(t, times, count=100):
    """Under load, and again when it has come back to that."""
    for _ in range(times):
        loaded(t, count)
        t.kill9()
        t.start()
    loaded(t)


LONG = 600      # s: the test ends the load
MANY = 2000     # more than in the first 10 ms, which bench does not count


@contextlib.contextmanager
def verifying(t, *args, words="loss_timeout=10m"):
    with running(uri(t, words), "--write-ok", "--verify", "--time", LONG, "--json",
                 *args) as process:
        yield process
        process.send_signal(signal.SIGINT)


@tap.case("verify across kill -9 and restart: nothing lost, no false alarm", limit_s=200)
def _():
    for args in (["--rw", "randrw", "--strict"], ["--rw", "randwrite", "--bs", "64k", "--jobs", 2]):
        with steady("file:{dir}/a.img,size=64M") as t:
            with verifying(t, "--size", "16M", *args) as process:
                restart(t, 4)
            assert process.returncode == OK, process.stderr_text
            report = json.loads(process.stdout_text)
            assert report["reconnects"] >= 1 and not report["failed"], report["failures"]
            assert not report["verify"]["wrong"] and not report["verify"]["unreadable"]
            tap.diag(f"{report['write']['ios']} writes, {report['reconnects']} reconnects")


@tap.case("memory does not survive a restart, and that is what it says", limit_s=100)
def _():
    with steady("mem:64M") as t:
        with verifying(t, "--rw", "randrw", "--size", "4M") as process:
            restart(t, 1, 3000)         # and some flushes, which memory does not keep either
        assert process.returncode == FAILED
        last = process.stderr_text.splitlines()[-1]
        assert "after a reconnect" in last and "mem:" in last, process.stderr_text


@tap.case("a target that goes away is told, and that it is back", limit_s=100)
def _():
    with steady("file:{dir}/a.img,size=64M") as t:
        plot = t.dir / "plot.svg"
        with running(uri(t), "--time", LONG, "--json", "--plot", plot) as process:
            restart(t, 1, 10 * MANY)
            told(process, "connected again to ")
            process.send_signal(signal.SIGINT)
        assert process.returncode == OK, process.stderr_text
        lost, again = messages(process.stderr_text)[:2]
        assert lost.startswith(f"weft bench: connection lost to {uri(t)}: "), lost
        assert lost.endswith("; reconnecting") and again == f"weft bench: connected again to {uri(t)}"
        report = json.loads(process.stdout_text)
        loss = report["losses"][0]
        assert loss["path"] == f"nvme+tcp://127.0.0.1:{t.addr[1]}" and loss["why"] in lost, loss
        assert 0 < loss["at_s"] < loss["at_s"] + loss["seconds"] < report["seconds"], loss
        drawn, count, times = plot.read_text(), len(report["losses"]), report["reconnects"]
        assert drawn.count('class="loss"') == 2 * count + 1, "two panels, one legend"
        assert "path lost" in drawn
        assert f"{times} reconnect{'s' * (times > 1)}<" in drawn, "and not 1 reconnects"


@with_cluster("one of two paths that is lost: told, with why, and that it is back", limit_s=100)
def _(cluster, one, two):
    plain = f"nvme+tcp://127.0.0.1:{{}}/{weft.NQN}"
    both = ",".join(plain.format(node.addr[1]) for node in (one, two)) + "?loss_timeout=10m"
    address = f"127.0.0.1:{one.addr[1]}"
    with running(both, "--ns", 1, "--time", LONG, "--json") as process:
        wait_until(two.controllers, "the bench to connect")
        loaded(one)
        one.kill9()
        told(process, f"path lost: {address}: ")
        cluster.start(1)
        told(process, f"path back: {address}")
        process.send_signal(signal.SIGINT)
    assert process.returncode == OK, process.stderr_text
    assert re.search(rf"^weft bench: path lost: {address}: .+\n(.+\n)*"
                     rf"weft bench: path back: {address}, after [\d.]+ s$", process.stderr_text,
                     re.M), process.stderr_text
    loss = json.loads(process.stdout_text)["losses"][0]
    assert address in loss["path"] and loss["why"] and loss["seconds"] > 0, loss


ANA = """
subsystems:
  - nqn: nqn.2026-11.io.weft:test
    allow_any_host: true
    namespaces: [ { nsid: 1, backend: "mem:16M", ana_group: 7 } ]
"""


@with_target("a path that becomes inaccessible under load is lost, too", config=ANA)
def _(t):
    def state(word):
        t.ctl("ana-set", nqn=t.nqn, rules=[dict(group=7, state=word)])

    with running(uri(t), "--time", LONG, "--json") as process:
        loaded(t)
        state("inaccessible")
        told(process, "path lost: ")
        state("optimized")
        told(process, "path back: ")
        process.send_signal(signal.SIGINT)
    assert process.returncode == OK, process.stderr_text
    loss = json.loads(process.stdout_text)["losses"][0]
    assert loss["why"] in ("inaccessible (ANA group 7)", "change (ANA group 7)"), loss
    assert loss["seconds"] > 0, loss
    lost, back = messages(process.stderr_text)[:2]
    assert lost.startswith(f"weft bench: path lost: 127.0.0.1:{t.addr[1]}: "), lost
    assert back.startswith(f"weft bench: path back: 127.0.0.1:{t.addr[1]}, after "), back


@tap.case("… also when the first I/O finds it so")
def _():
    def read(conn, cmd):
        conn.target.ana = {7: INACCESSIBLE}
        conn.complete(cmd, nvme.ANA_INACCESSIBLE, dnr=0)

    with target.Target(ana={7: OPTIMIZED}, read=read) as t:
        with running(t.uri(nsid=1), "--warmup", LONG) as process:
            told(process, f"path lost: 127.0.0.1:{t.addr[1]}: inaccessible (ANA group 7)")
            process.kill()


def interrupted(process, *words):
    """It ends with a report of what was measured."""
    assert process.returncode == FAILED, process.stderr_text
    for word in words:
        assert word in process.stderr_text, f"no {word!r}: {process.stderr_text}"
    assert process.stderr_text.splitlines()[-1] == \
        "weft bench: stopped before 8 I/Os in flight had ended", process.stderr_text
    report = json.loads(process.stdout_text)
    assert report["left_in_flight"] == 8 and report["stopped"] and not report["ok"], report["why"]
    return report


class Leaving(target.Target):
    """… with 8 I/Os in hand, after so many that it has answered; and does not come back."""

    def __init__(self, answers):
        self.answers, self.held, self.gone = answers, 0, False
        super().__init__(read=self.io("read"), write=self.io("write"),
                         accepted=lambda conn: self.gone and conn.reset())

    def io(self, name):
        def step(conn, cmd):
            self.answers -= 1
            if self.answers >= 0:
                return target.normally(conn, name, cmd)
            self.held += 1
            if self.held == 8:
                self.gone = True
                for each in self.connections:
                    each.close()
        return step


@contextlib.contextmanager
def left_by(answers, *args):
    with Leaving(answers) as t, running(t.uri(nsid=1, loss_timeout="10m"), "--depth", 8, "--json",
                                        *args) as process:
        told(process, "connection lost to ")
        yield process


@tap.case("Ctrl-C while the target is gone: the second one reports without what is in flight",
          limit_s=100)
def _():
    for args in ([], ["--rw", "randrw", "--write-ok", "--verify", "--flush-every", 0]):
        with left_by(MANY, "--time", LONG, *args) as process:
            interrupt_twice(process)                # the second is an echo of the first
            told(process, "Ctrl-C reports without them")
            time.sleep(1.2)                         # the next is none
            assert process.poll() is None, "two signals at once were taken for two"
            process.send_signal(signal.SIGINT)
        assert interrupted(process)["read"]["ios"]


@tap.case("Ctrl-C when the time is over and the target gone: one is enough", limit_s=100)
def _():
    with left_by(0, "--time", 1) as process:
        told(process, "Ctrl-C reports without them")
        process.send_signal(signal.SIGINT)
    interrupted(process)


@with_target("the live line fits a narrow terminal", ns=[FILE_NS])
def _(t):
    for columns in (80, 30):
        code, shown = on_terminal("bench", uri(t), "--time", 1, columns=columns)
        live = [part for part in shown.replace("\x1b[K", "").split("\r")
                if " s  " in part and "\n" not in part]
        assert code == OK and live and max(map(len, live)) < columns, live


@tap.case("the live line says that it reconnects", limit_s=100)
def _():
    with steady("file:{dir}/a.img,size=64M") as t:
        steps = iter([("IOPS", 1, t.kill9), ("reconnecting", 3, t.start),
                      ("connected again", 1, lambda: None)])
        wanted = [next(steps)]

        def look(process, shown):
            words, times, act = wanted[0]
            if shown.count(words) < times:
                return
            act()
            wanted[0] = next(steps, None) or ("\0", 1, None)
            if words == "connected again":
                process.send_signal(signal.SIGINT)

        code, shown = on_terminal("bench", uri(t), "--time", LONG, look=look)
        assert code == OK and re.search(r"\r +[0-9.]+ s  reconnecting\x1b", shown), shown
        assert not re.search(r"\b0 IOPS", shown.split("reconnecting")[1]), shown


@tap.case("a target that does not come back: failed I/Os are counted and explained", limit_s=100)
def _():
    with steady("file:{dir}/a.img,size=64M") as t:
        with running(uri(t, "loss_timeout=1s"), "--write-ok", "--verify", "--rw", "randrw", "--size",
                     "4M", "--time", LONG, "--json") as process:
            loaded(t, 100)
            t.kill9()
        assert process.returncode == FAILED
        report = json.loads(process.stdout_text)
        assert report["failed"] == sum(f["count"] for f in report["failures"]) > 0
        assert all(f["first"] and f["errno"] for f in report["failures"]), report["failures"]
        assert report["verify"]["unreadable"] and not report["verify"]["wrong"], report["verify"]


@with_target("a namespace that shrinks: the error's kind and its first sentence", ns=[FILE_NS])
def _(t):
    with running(uri(t), "--time", LONG, "--json") as process:
        loaded(t, 10 * MANY)
        t.ctl("namespace-resize", nsid=1, size="1M", shrink=True)
    assert process.returncode == FAILED, process.stderr_text
    report = json.loads(process.stdout_text)
    assert report["failures"][0]["first"] and report["read"]["ios"], report["failures"]
    assert report["failures"][0]["op"] == "read"


sys.exit(tap.run())
