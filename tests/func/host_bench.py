#!/usr/bin/python3
"""host_bench.py - weft bench against weft serve: what it reports, that it finds every kind of damage to
the data, and that it finds none where there is none, with the target killed under it."""
import contextlib
import json
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import weft
from command import on_terminal
from fixture import in_background, with_target
from weft import Target, wait_until

OK, FAILED, USAGE = 0, 1, 2
MODES = ["read", "write", "rw", "randread", "randwrite", "randrw"]
BLOCK = 4096
FILE_NS = "file:{dir}/a.img,size=64M,block=4096"
URI = "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.weft:x"
HOST = "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-cdef-0123-456789abcdef"


def uri(t, words="nsid=1"):
    host, port = t.addr
    return f"nvme+tcp://{host}:{port}/{t.nqn}?{words}"


def bench(*args, env=None):
    return subprocess.run([weft.BINARY, "bench", *map(str, args)], stdin=subprocess.DEVNULL,
                          text=True, capture_output=True, timeout=100,
                          env=env and {"PATH": "/usr/bin", **env})


def said(result, code, *words):
    assert result.returncode == code, f"exit status {result.returncode}: {result.stderr}"
    assert not weft.SANITIZER.search(result.stderr), result.stderr
    last = (result.stderr.strip().splitlines() or [""])[-1]
    for word in words:
        assert word in last, f"no {word!r} in the last line: {last!r}"


def measured(t, *args, code=OK, words="nsid=1"):
    """The JSON of a short run."""
    result = bench(uri(t, words), "--time", "500ms", "--json", *args)
    said(result, code)
    report = json.loads(result.stdout)
    assert report["ok"] == (code == OK), report["why"]
    return report


@contextlib.contextmanager
def running(*args):
    """A run in the background; its end is waited for when the block ends."""
    process = subprocess.Popen([weft.BINARY, "bench", *map(str, args)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
        process.stdout_text, process.stderr_text = process.communicate(timeout=90)
        assert not weft.SANITIZER.search(process.stderr_text), process.stderr_text
    finally:
        process.kill()
        process.wait()


# --- what it reports ----------------------------------------------------------------------------


def check_latency(op):
    latency, steps = op["latency_ns"], list(op["latency_ns"]["percentiles"].values())
    assert latency["min"] <= steps[0] and steps[-1] <= latency["max"], latency
    assert steps == sorted(steps), steps
    assert sum(count for _, _, count in latency["histogram"]) == op["ios"]
    assert latency["histogram"][0][0] <= latency["min"]


def check_mode(t, mode):
    report = measured(t, "--rw", mode, "--write-ok", "--depth", 8, "--size", "8M")
    reads, writes = report["read"]["ios"], report["write"]["ios"]
    assert bool(reads) == (mode not in ("write", "randwrite")), report["read"]
    assert bool(writes) == (mode not in ("read", "randread")), report["write"]
    for op in report["read"], report["write"]:
        assert op["bytes"] == op["ios"] * BLOCK
        if op["ios"]:
            check_latency(op)
    assert report["config"]["rw"] == mode and report["failed"] == 0 and not report["failures"]
    assert sum(p["reads"] for p in report["series"]) <= reads
    assert report["cpu"]["us_per_io"] > 0 and report["verify"] is None
    counters, steady = report["counters"], report["steady"]
    assert counters["completed"] >= reads + writes and counters["posted"] >= reads + writes
    assert not counters["registrations"] and not steady["registrations"], counters
    assert steady["copied_bytes"] <= counters["copied_bytes"], (steady, counters)


@with_target("every mode, as JSON", ns=["mem:64M,block=4096"])
def _(t):
    for mode in MODES:
        check_mode(t, mode)


@with_target("jobs, queues, depth, warm-up, digests", ns=["mem:64M,block=512"])
def _(t):
    report = measured(t, "--rw", "randrw", "--write-ok", "--jobs", 2, "--queues", 2, "--depth", 64,
                      "--warmup", "200ms", "--bs", "16k", words="hdgst=1&ddgst=1")
    assert report["read"]["ios"] and report["write"]["ios"]
    assert report["target"]["nsid"] == 1 and report["target"]["block_size"] == 512
    assert report["config"]["warmup"] == 0.2
    assert report["config"]["hdgst"] and report["config"]["ddgst"]
    assert report["seconds"] == round(report["seconds"], 3), report["seconds"]


@with_target("the options of a connection, as the other commands have them", ns=["mem:64M,block=512"],
             extra=["--allow", HOST])
def _(t):
    said(bench(uri(t), "--time", "50ms"), FAILED, "not allowed")
    said(bench(uri(t), "--timeout", "0"), USAGE, "--timeout")
    plot = t.dir / "plot.svg"
    for option, words in (("--hdgst", "header digest"), ("--ddgst", "data digest")):
        result = bench(uri(t), "--time", "50ms", "--hostnqn", HOST, option, "--timeout", "5s", "--plot", plot)
        said(result, OK)
        assert words in result.stdout and words in plot.read_text(), result.stdout


@with_target("depth= is the queue's limit, and the report says so", ns=["mem:64M,block=4096"])
def _(t):
    result = bench(uri(t, "nsid=1&depth=8"), "--time", "50ms", "--depth", 32)
    said(result, OK)
    assert "depth 8 of 32 (the queue's limit)" in result.stdout, result.stdout
    report = measured(t, "--depth", 32, "--queues", 2, words="nsid=1&depth=8")
    assert (report["depth"], report["config"]["depth"], report["target"]["queue_depth"]) == (16, 32, 8)
    assert measured(t, "--depth", 32)["depth"] == 32
    assert measured(t, "--depth", 60000, "--bs", "4k")["depth"] < 60000


@with_target("the mix is kept", ns=["mem:64M,block=4096"])
def _(t):
    report = measured(t, "--rw", "randrw", "--mix", 90, "--write-ok")
    reads, writes = report["read"]["ios"], report["write"]["ios"]
    assert reads > 4 * writes > 0, (reads, writes)


@with_target("a rate is not exceeded", ns=["mem:64M,block=4096"])
def _(t):
    report = measured(t, "--rate", 1000, "--jobs", 2)
    assert 0 < report["read"]["ios"] <= 1000 * report["config"]["time"] + 2, report["read"]["ios"]


@with_target("what a rate demands and the target cannot do is told", ns=["mem:64M,block=4096"])
def _(t):
    result = bench(uri(t), "--time", "300ms", "--depth", 1, "--rate", "5M")
    said(result, OK)
    assert "the rate was not reached" in result.stdout, result.stdout


@with_target("a rate that is far out of reach is accounted for in full", ns=["mem:64M,block=4096"])
def _(t):
    report = measured(t, "--depth", 1, "--rate", "200M")
    due = 200e6 * report["config"]["time"]
    assert abs(report["unstarted"] + report["read"]["ios"] - due) < due / 100, report["unstarted"]


@with_target("a stall is seen by all I/Os that were due meanwhile", ns=["mem:64M,block=4096"])
def _(t):
    with running(uri(t), "--time", 2, "--rate", 1000, "--depth", 4, "--json") as process:
        wait_until(t.controllers, "the bench to connect")
        time.sleep(0.5)
        t.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        t.process.send_signal(signal.SIGCONT)
    read = json.loads(process.stdout_text)["read"]
    slow = sum(count for low, _, count in read["latency_ns"]["histogram"] if low > 100e6)
    assert slow > 500, f"only {slow} of {read['ios']} I/Os saw it"


@with_target("writes stay within the region", ns=[FILE_NS])
def _(t):
    measured(t, "--rw", "randwrite", "--write-ok", "--offset", "1M", "--size", "2M", "--jobs", 3)
    data = (t.dir / "a.img").read_bytes()
    assert not any(data[:1 << 20]) and not any(data[3 << 20:]), "written outside"
    assert any(data[1 << 20:3 << 20])


@with_target("flushes are counted", ns=[FILE_NS])
def _(t):
    report = measured(t, "--rw", "write", "--write-ok", "--flush-every", 16)
    assert 0 < report["flush"]["ios"] <= report["write"]["ios"] / 16 + 1, report["flush"]["ios"]


@with_target("a table for people, 80 columns, blocks or ASCII", ns=["mem:64M,block=4096"])
def _(t):
    for locale, bar in ("C", "#"), ("C.UTF-8", "█"):
        result = bench(uri(t), "--rw", "randrw", "--write-ok", "--verify", "--time", "500ms",
                       env={"LC_ALL": locale})
        said(result, OK)
        for word in "IOPS", "MiB/s", "p99.999", "read", "write", "CPU", "verified", bar:
            assert word in result.stdout, f"no {word}:\n{result.stdout}"
        assert result.stdout.isascii() == (locale == "C")
        assert max(map(len, result.stdout.splitlines()[1:])) <= 80, result.stdout
        assert not result.stderr, result.stderr


@with_target("the plot is SVG and says the conditions", ns=["mem:64M,block=4096"])
def _(t):
    plot = t.dir / "plot.svg"
    measured(t, "--rw", "randrw", "--write-ok", "--plot", plot, words="nsid=1&depth=64")
    root = xml.etree.ElementTree.parse(plot).getroot()
    text = " ".join(root.itertext())
    for word in "randrw", "4 KiB", "depth 32", t.nqn, "99.999 %", "IOPS", "MiB/s":
        assert word in text, word
    assert "depth=64" not in text, "words of the URI are not for reports"
    said(bench(uri(t), "--plot", t.dir / "nowhere" / "plot.svg"), FAILED, "nowhere/plot.svg")
    measured(t, "--plot", plot)
    assert "randread" in plot.read_text(), "an older plot is replaced"
    precious = t.dir / "precious.txt"
    precious.write_text("precious")
    for path in (precious, "/dev/null", t.dir):
        said(bench(uri(t), "--plot", path), FAILED, "is there, and no plot")
    assert precious.read_text() == "precious"
    said(bench(URI, "--plot", t.dir / "new.svg"), FAILED)
    assert not list(t.dir.glob("new.svg*")), "a run that failed leaves a plot"


@with_target("Ctrl-C: the report of what was done", ns=["mem:64M,block=4096"])
def _(t):
    with running(uri(t), "--time", 60, "--json") as process:
        wait_until(t.controllers, "the bench to connect")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
    assert process.returncode == OK, process.stderr_text
    report = json.loads(process.stdout_text)
    assert report["stopped"] and report["read"]["ios"] and report["seconds"] < 50


# --- how it refuses ------------------------------------------------------------------------------

# arguments, words of the last line
WRONG_USAGE = [
    ([], ["URI"]),
    ([URI, "stray"], ["stray"]),
    ([URI, "--rw", "sideways"], ["sideways", "randrw"]),
    ([URI, "--rw", "write"], ["--write-ok"]),
    ([URI, "--rw", "randrw", "--mix", 0], ["--write-ok"]),
    ([URI, "--mix", 50], ["--mix"]),
    ([URI, "--mix", 101], ["--mix"]),
    ([URI, "--depth", 0], ["--depth"]),
    ([URI, "--depth", 2, "--queues", 3], ["--queues"]),
    ([URI, "--bs", "4kb"], ["4kb"]),
    ([URI, "--bs", "1"], ["from 512 to 64M"]),
    ([URI, "--bs", "65M"], ["from 512 to 64M"]),
    ([URI, "--depth", 65536], ["from 1 to 65535"]),
    ([URI, "--time", "1001h"], ["from 1ms to 1000h"]),
    ([URI, "--ns", 0], ["--ns"]),
    (["disk.img"], ["expected nvme+tcp://", '"disk.img"']),
    ([URI, "--time", "soon"], ["soon"]),
    ([URI, "--time", 0], ["--time"]),
    ([URI, "--rate", "-1"], ["--rate"]),
    ([URI, "--verify"], ["--seed"]),
    ([URI, "--strict"], ["--verify"]),
    ([URI, "--dept", 5, "--frob"], ["--frob"]),
]


@tap.case("wrong usage")
def _():
    for args, words in WRONG_USAGE:
        result = bench(*args)
        said(result, USAGE, *words)
        assert len(result.stderr.splitlines()) == 1, result.stderr
    assert bench("--help").stdout.startswith("usage: weft bench")


# arguments, words of the last line; the namespace has 64 MiB
REFUSED = [
    (["--bs", "1k"], ["4096"]),
    (["--offset", "512"], ["4096"]),
    (["--offset", "64M"], ["64 MiB"]),
    (["--size", "1G"], ["64 MiB"]),
    (["--size", "8k", "--jobs", 3], ["too small"]),
    (["--jobs", 200, "--queues", 200, "--depth", 200], ["queues"]),
]


@with_target("what cannot be is refused before the first I/O",
             ns=["mem:64M,block=4096", "mem:64M,block=4096,ro"])
def _(t):
    said(bench(uri(t, "hdgst=0")), FAILED, "which namespace?", "has 1, 2: add &nsid=N")
    for args, words in REFUSED:
        said(bench(uri(t), "--time", "100ms", *args), FAILED, *words)
    said(bench(uri(t, "nsid=2"), "--rw", "write", "--write-ok"), FAILED, "read-only")
    said(bench(uri(t, "nsid=7")), FAILED, "7")
    said(bench(uri(t).split("/nqn")[0]), FAILED, "discover")
    said(bench(URI), FAILED)


# --- verifying ------------------------------------------------------------------------------------


def verified(t, *args, **kw):
    report = measured(t, "--write-ok", "--verify", *args, **kw)
    return report["verify"]


@with_target("verify: nothing wrong where nothing is", limit_s=120,
             ns=["mem:64M,block=512", "file:{dir}/a.img,size=64M,block=4096"])
def _(t):
    for args in (["--rw", "randrw"], ["--rw", "write", "--size", "1M"], ["--rw", "rw", "--jobs", 2],
                 ["--rw", "randwrite", "--bs", "16k", "--size", "512k", "--queues", 2],
                 ["--rw", "randrw", "--bs", "256k", "--depth", 4, "--size", "2M"],
                 ["--rw", "randrw", "--depth", 64, "--size", "64k"]):
        for words in "nsid=1", "nsid=2&ddgst=1":
            found = verified(t, *args, words=words)
            assert found["checked"] and not found["wrong"] and not found["unreadable"], found


def blocks_of(path):
    data = path.read_bytes()
    return [data[i:i + BLOCK] for i in range(0, len(data), BLOCK)]


def generation(block):
    return struct.unpack_from("<Q", block, 24)[0]


class Image:
    """The file under a namespace, changed behind the target's back."""

    def __init__(self, t):
        self.path, self.targets = t.dir / "a.img", range(3, 60, 4)

    def put(self, offset, data):
        with open(self.path, "r+b", buffering=0) as file:
            file.seek(offset)
            file.write(data)

    def read(self, index):
        with open(self.path, "rb", buffering=0) as file:
            file.seek(index * BLOCK)
            return file.read(BLOCK)

    def wait_written(self, least=1):
        wait_until(lambda: all(generation(self.read(i)) >= least for i in range(64)),
                   "every block to be written")

    def flip(self):
        for i in self.targets:
            self.put(i * BLOCK + 1000, bytes([self.read(i)[1000] ^ 1]))

    def move(self):
        for i in self.targets:
            self.put(i * BLOCK, self.read(i + 1))

    def restore(self):
        """Old copies, of blocks that have been written again since."""
        old = {i: self.read(i) for i in self.targets}
        for i, block in old.items():
            wait_until(lambda i=i, b=block: generation(self.read(i)) > generation(b), "a new write")
            self.put(i * BLOCK, block)

    def tear(self):
        for i in self.targets:
            self.put(i * BLOCK + BLOCK // 2, bytes(BLOCK // 2))

    def strange(self):
        for i in self.targets:
            self.put(i * BLOCK, b"somebody else's data" * 204 + b"!" * 16)

    def zero(self):
        for i in self.targets:
            self.put(i * BLOCK, bytes(BLOCK))


DAMAGE = [
    ("flip", "corrupt block", "byte 1000 is not as written"),
    ("move", "misplaced", "holds what was written at"),
    ("restore", "lost write", "was acknowledged"),
    ("tear", "torn write", "are zeroes"),
    ("strange", "foreign data", "nothing that this run wrote"),
    ("zero", "zeroes", "was acknowledged"),
]


def damage_case(how, kind, words):
    @with_target(f"verify finds and names: {kind}", ns=[FILE_NS], limit_s=100)
    def _(t):
        image = Image(t)
        with running(uri(t), "--rw", "randrw", "--mix", 90, "--write-ok", "--verify", "--size",
                     64 * BLOCK, "--rate", 2000, "--time", 4, "--json") as process:
            image.wait_written()
            getattr(image, how)()
        assert process.returncode == FAILED, process.stderr_text
        found = json.loads(process.stdout_text)["verify"]
        assert found["found"][kind] == found["wrong"] >= 1, found["found"]
        assert found["problems"][0]["offset"] // BLOCK in image.targets, found["problems"]
        assert re.search(f"^weft bench: {kind} at [0-9]+: .*{words}", process.stderr_text, re.M), \
            process.stderr_text
        assert "not as written" in process.stderr_text.splitlines()[-1], process.stderr_text


for damage in DAMAGE:
    damage_case(*damage)


@with_target("verify: one block of a larger write", ns=[FILE_NS])
def _(t):
    image = Image(t)
    with running(uri(t), "--rw", "randrw", "--mix", 90, "--write-ok", "--verify", "--bs", "16k",
                 "--size", 64 * BLOCK, "--rate", 1000, "--time", 4, "--json") as process:
        image.wait_written()
        image.restore()
    assert process.returncode == FAILED, process.stderr_text
    assert json.loads(process.stdout_text)["verify"]["found"]["torn write"], process.stderr_text


@with_target("verify what an earlier run left", ns=[FILE_NS])
def _(t):
    image = Image(t)
    region = ["--size", 64 * BLOCK, "--seed", 7]
    verified(t, "--rw", "write", *region)
    again = measured(t, "--rw", "read", "--verify", *region)["verify"]
    assert not again["wrong"] and not again["not_of_this_run"], again
    said(bench(uri(t), "--rw", "read", "--verify", "--time", "100ms", "--seed", 8), FAILED, "--seed 8")
    image.flip()
    again = measured(t, "--rw", "read", "--verify", *region, code=FAILED)["verify"]
    assert again["found"]["corrupt block"] == len(image.targets), again["found"]


# --- a target that comes and goes ------------------------------------------------------------------


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def steady(backend):
    """A target that comes back on its port."""
    return Target(config=f'listen: [ "nvme+tcp://127.0.0.1:{free_port()}" ]\n'
                         f'subsystems:\n  - nqn: {weft.NQN}\n    allow_any_host: true\n'
                         f'    namespaces: [ {{ backend: "{backend}", block: 4096 }} ]\n')


def restart(t, times, pause):
    for _ in range(times):
        time.sleep(pause)
        t.kill9()
        t.start()


def across_restarts(t, *args, seconds=4, words="loss_timeout=60s"):
    with running(uri(t, words), "--write-ok", "--verify", "--time", seconds, "--json",
                 *args) as process:
        wait_until(t.controllers, "the bench to connect")
        yield process
    yield process


@tap.case("verify across kill -9 and restart: nothing lost, no false alarm", limit_s=200)
def _():
    for args in (["--rw", "randrw", "--strict"], ["--rw", "randwrite", "--bs", "64k", "--jobs", 2]):
        with steady("file:{dir}/a.img,size=64M") as t:
            run = across_restarts(t, "--size", "16M", *args)
            process = next(run)
            restart(t, 4, 0.6)
            next(run)
            assert process.returncode == OK, process.stderr_text
            report = json.loads(process.stdout_text)
            assert report["reconnects"] >= 1 and not report["failed"], report["failures"]
            assert not report["verify"]["wrong"] and not report["verify"]["unreadable"]
            tap.diag(f"{report['write']['ios']} writes, {report['reconnects']} reconnects")


@tap.case("memory does not survive a restart, and that is what it says", limit_s=100)
def _():
    with steady("mem:64M") as t:
        run = across_restarts(t, "--rw", "randrw", "--size", "4M")
        process = next(run)
        restart(t, 1, 1.5)
        next(run)
        assert process.returncode == FAILED
        last = process.stderr_text.splitlines()[-1]
        assert "after a reconnect" in last and "mem:" in last, process.stderr_text


@tap.case("a target that goes away is told, and that it is back", limit_s=100)
def _():
    with steady("file:{dir}/a.img,size=64M") as t:
        with running(uri(t), "--time", 4, "--json") as process:
            wait_until(t.controllers, "the bench to connect")
            restart(t, 1, 1)
        assert process.returncode == OK, process.stderr_text
        lost, again = process.stderr_text.splitlines()
        assert lost.startswith(f"weft bench: connection lost to {uri(t)}: "), lost
        assert lost.endswith("; reconnecting") and again == f"weft bench: connected again to {uri(t)}"


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


@tap.case("Ctrl-C while the target is gone: the second one reports without what is in flight",
          limit_s=100)
def _():
    for args in ([], ["--rw", "randrw", "--write-ok", "--verify", "--flush-every", 0]):
        with steady("file:{dir}/a.img,size=64M") as t:
            with running(uri(t), "--time", 60, "--depth", 8, "--json", *args) as process:
                wait_until(t.controllers, "the bench to connect")
                time.sleep(0.7)
                t.kill9()
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
                while "Ctrl-C reports without them" not in process.stderr.readline():
                    assert process.poll() is None, "it did not wait"
                process.send_signal(signal.SIGINT)
            assert interrupted(process)["read"]["ios"]
            t.start()


@tap.case("Ctrl-C when the time is over and the target gone: one is enough", limit_s=100)
def _():
    with steady("file:{dir}/a.img,size=64M") as t:
        with running(uri(t), "--time", 2, "--depth", 8, "--json") as process:
            wait_until(t.controllers, "the bench to connect")
            time.sleep(0.7)
            t.kill9()
            while "Ctrl-C reports without them" not in process.stderr.readline():
                assert process.poll() is None, "it did not wait"
            process.send_signal(signal.SIGINT)
        interrupted(process)
        t.start()


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
        def go_away():
            wait_until(t.controllers, "the bench to connect")
            time.sleep(0.5)
            t.kill9()
            time.sleep(1.5)
            t.start()

        with in_background(go_away):
            code, shown = on_terminal("bench", uri(t), "--time", 4)
        assert code == OK and re.search(r"\r +[0-9.]+ s  reconnecting\x1b", shown), shown
        assert "0 IOPS" not in re.split("reconnecting", shown)[1], shown


@tap.case("a target that does not come back: failed I/Os are counted and explained", limit_s=100)
def _():
    with steady("file:{dir}/a.img,size=64M") as t:
        run = across_restarts(t, "--rw", "randrw", "--size", "4M", words="loss_timeout=1s", seconds=3)
        process = next(run)
        time.sleep(1)
        t.kill9()
        next(run)
        assert process.returncode == FAILED
        report = json.loads(process.stdout_text)
        assert report["failed"] == sum(f["count"] for f in report["failures"]) > 0
        assert all(f["first"] and f["errno"] for f in report["failures"]), report["failures"]
        assert report["verify"]["unreadable"] and not report["verify"]["wrong"], report["verify"]


@with_target("a namespace that shrinks: the error's kind and its first sentence", ns=[FILE_NS])
def _(t):
    with running(uri(t), "--time", 3, "--json") as process:
        wait_until(t.controllers, "the bench to connect")
        time.sleep(0.5)
        t.ctl("namespace-resize", nsid=1, size="1M", shrink=True)
    assert process.returncode == FAILED, process.stderr_text
    report = json.loads(process.stdout_text)
    assert report["failures"][0]["first"] and report["read"]["ios"], report["failures"]
    assert report["failures"][0]["op"] == "read"


sys.exit(tap.run())
