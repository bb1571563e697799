#!/usr/bin/python3
"""host_bench.py - weft bench against weft serve: what it reports, and what it refuses."""
import json
import os
import pathlib
import re
import signal
import sys
import time
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import target
from bench import BLOCK, FAILED, FILE_NS, OK, USAGE, bench, loaded, measured, running, said, uri
from command import messages, run
from fixture import with_target
from weft import ANY_PORT, wait_until

MODES = ["read", "write", "rw", "randread", "randwrite", "randrw"]
URI = "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.weft:x"
HOST = "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-cdef-0123-456789abcdef"


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
    assert counters.keys() == {"posted", "completed", "copied_bytes"}, counters
    assert steady.keys() == {"copied_bytes"}, "what RDMA counts has no place over TCP"
    assert steady["copied_bytes"] <= counters["copied_bytes"], (steady, counters)


@with_target("every mode, as JSON", ns=["mem:64M,block=4096"])
def _(t):
    for mode in MODES:
        check_mode(t, mode)


@with_target("I/O that fails is told in one line, with the first failure", ns=["mem:1M,error=read:100%"])
def _(t):
    result = run("bench", uri(t), "--time", "200ms")
    line, = messages(result.stderr)
    assert result.returncode == FAILED, result
    assert re.match(r"weft bench: \d+ I/Os failed, the first of them: Read of 4096 bytes at \d+: ", line), line


@with_target("jobs, queues, depth, warm-up, digests", ns=["mem:64M,block=512"])
def _(t):
    report = measured(t, "--rw", "randrw", "--write-ok", "--jobs", 2, "--queues", 2, "--depth", 64,
                      "--warmup", "200ms", "--bs", "16k", words="hdgst=1&ddgst=1")
    assert report["read"]["ios"] and report["write"]["ios"]
    assert report["target"]["nsid"] == 1 and report["target"]["block_size"] == 512
    assert report["config"]["warmup"] == 0.2
    assert report["config"]["hdgst"] and report["config"]["ddgst"]
    assert report["seconds"] == round(report["seconds"], 6), report["seconds"]
    assert abs(report["read"]["ios"] / report["seconds"] / report["read"]["iops"] - 1) < 1e-6, report


@tap.case("what is read during --warmup is not counted")
def _():
    with target.Target() as t:
        result = bench(t.uri(nsid=1), "--warmup", "1s", "--time", "100ms", "--depth", 1, "--json")
        said(result, OK)
        served = sum(name == "read" for _, name in t.commands)
        assert 0 < json.loads(result.stdout)["read"]["ios"] < served, (result.stdout, served)


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


@with_target("all paths are named, without their words", extra=["--listen", ANY_PORT])
def _(t):
    one, two = [f"{l['uri']}/{t.nqn}" for l in t.ctl("status")["listeners"]]
    result = bench(f"{one}?hdgst=1,{two}?queues=1", "--time", "50ms")
    said(result, OK)
    assert f"{one},{two}?nsid=1" in result.stdout, result.stdout


@with_target("the same --seed is the same run", ns=["mem:64M,block=4096"])
def _(t):
    for verify in ([], ["--verify"]):
        report = measured(t, "--rw", "randwrite", "--write-ok", "--seed", 7, *verify)
        assert report["config"]["seed"] == 7, report["config"]


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
    with running(uri(t), "--time", 600, "--rate", 1000, "--depth", 4, "--json") as process:
        loaded(t, 500)
        t.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        t.process.send_signal(signal.SIGCONT)
        loaded(t, 3000)
        process.send_signal(signal.SIGINT)
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
        assert not messages(result.stderr), result.stderr


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
    for path in (precious, "/dev/null", t.dir, "plot", "plot.png", ".svg"):
        said(bench(URI, "--plot", path), USAGE, "--plot draws SVG", f'not "{path}"')
    assert precious.read_text() == "precious"
    folder = t.dir / "folder.svg"
    folder.mkdir()
    said(bench(uri(t), "--plot", folder), FAILED, "folder.svg is there, and is not a regular file")
    said(bench(URI, "--plot", t.dir / "new.svg"), FAILED)
    assert not list(t.dir.glob("new.svg*")), "a run that failed leaves a plot"


@with_target("Ctrl-C: the report of what was done", ns=["mem:64M,block=4096"])
def _(t):
    with running(uri(t), "--time", 600, "--json") as process:
        loaded(t, 20000)                # more than in the first 10 ms, which bench does not count
        process.send_signal(signal.SIGINT)
    assert process.returncode == OK, process.stderr_text
    report = json.loads(process.stdout_text)
    assert report["stopped"] and report["read"]["ios"] and report["seconds"] < 600


def threads(process):
    """Their names and CPUs; the first is the main one. That which looks on is left out."""
    tasks = sorted(pathlib.Path(f"/proc/{process.pid}/task").iterdir(), key=lambda x: int(x.name))
    found = [((x / "comm").read_text().strip(), os.sched_getaffinity(int(x.name))) for x in tasks]
    return [each for each in found if each[0] != "weft-waiting"]


@with_target("jobs stay on their CPUs, and the connection's thread on its own",
             ns=["mem:64M,block=4096"])
def _(t):
    every = sorted(os.sched_getaffinity(0))
    if len(every) < 2:
        tap.skip("there is only one CPU")
    first, second = every[:2]
    with running(uri(t, f"nsid=1&cpus={second}"), "--cpus", f"{first},{second}", "--jobs", 3,
                 "--time", 60, "--json") as process:
        wait_until(lambda: len(threads(process)) == 5, "the jobs")
        wait_until(lambda: all(len(cpus) == 1 for _, cpus in threads(process)[1:]), "their CPUs")
        main, home, *jobs = threads(process)
        process.send_signal(signal.SIGINT)
    assert main[1] == set(every), "the main thread was left behind"
    assert home == ("weft-host", {second}), home
    assert [cpus for _, cpus in jobs] == [{first}, {second}, {first}], jobs
    assert json.loads(process.stdout_text)["config"]["cpus"] in (f"{first},{second}",
                                                                f"{first}-{second}")


# --- how it refuses ------------------------------------------------------------------------------

# arguments, words of the last line
WRONG_USAGE = [
    ([], ["URI"]),
    ([URI, "stray"], ["stray"]),
    ([URI, "--rw", "sideways"], ["sideways", "randrw"]),
    ([URI, "--rw", "write"], ["--write-ok"]),
    ([URI, "--rw", "randrw", "--mix", 0], ["--write-ok"]),
    ([URI, "--rw", "randwrite", "--verify"], ["--write-ok"]),
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
    ([URI, "--cpus", "many"], ["--cpus", "such as 0-3,5"]),
    ([URI, "--cpus", "1023"], ["--cpus", "may use"]),
    ([URI + "?cpus=none"], ["cpus=", "such as 0-3,5"]),
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
    (["--offset", "4k", "--size", "64M"], ["64 MiB"]),
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
    said(bench(uri(t, "cpus=1022-1023")), FAILED, "cpus=1022-1023: this process may use none")
    said(bench(uri(t).split("/nqn")[0]), FAILED, "discover")
    said(bench(URI), FAILED)


sys.exit(tap.run())
