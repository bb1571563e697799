#!/usr/bin/python3
"""host_bench_matrix.py - bench/run: what it reads off a client, when a run counts, what comes of it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "lib"), str(ROOT / "bench" / "lib")]

import clients
import distance
import machine
import rounds
import section
import tap

LIKE_PERF = """\
Device Information                     :       IOPS      MiB/s    Average        min        max
TCP (addr:127.0.0.1 subnqn:x:y) NSID 1 :   20249.60      79.10    1574.78      52.03  655256.00
========================================================
Total                                  :   20249.60      79.10    1574.78      52.03  655256.00
"""
PERCENTILES = """
 50.00000% :   184.320us
 99.00000% :  4285.046us
 99.90000% :  6000.000us
 99.99000% : 658183.089us
"""


def side(ios, mean=0, p50=0, p99=0, p9999=0):
    return {"ios": ios, "iops": ios, "latency_ns": {
        "mean": mean, "percentiles": {"50": p50, "99": p99, "99.99": p9999}}}


def like_weft(read, write):
    return json.dumps({"read": read, "write": write, "cpu": {"us_per_io": 1.5}})


TEXTS = [
    ("text with percentiles", LIKE_PERF + PERCENTILES, {
        "iops": 20249.6, "mean_us": 1574.78, "p50_us": 184.32, "p99_us": 4285.046,
        "p9999_us": 658183.089}),
    ("text without percentiles", LIKE_PERF, {
        "iops": 20249.6, "mean_us": 1574.78, "p50_us": None, "p99_us": None, "p9999_us": None}),
    ("JSON of reads", like_weft(side(10, 2000, 1000, 3000, 9000), side(0)), {
        "iops": 10, "mean_us": 2, "p50_us": 1, "p99_us": 3, "p9999_us": 9, "cpu_us": 1.5}),
    ("JSON of both", like_weft(side(30, 1000, 1000, 5000, 6000), side(10, 5000, 2000, 3000, 9000)), {
        "iops": 40, "mean_us": 2, "p50_us": 2, "p99_us": 5, "p9999_us": 9, "cpu_us": 1.5}),
]


def reads(text, want):
    got = clients.Other("x", "true").read(text)
    assert got == want, got


for _name, _text, _want in TEXTS:
    tap.case(_name)(lambda text=_text, want=_want: reads(text, want))


@tap.case("text without a total")
def _():
    try:
        clients.Other("x", "true").read("it did not connect")
    except clients.Failed as why:
        assert "it did not connect" in str(why)
    else:
        raise AssertionError("it has numbers")


# ---- who else was at work

OURS, THEIRS, KERNEL = 10, 11, 12
WORK = [                # busy, stolen; of that ours, theirs, the kernel's; a word of why
    ("only ours", 2.0, 0.0, 1.99, 0.0, 0.0, ""),
    ("the kernel's, for ours", 2.0, 0.0, 1.0, 0.0, 1.0, ""),
    ("somebody else's", 2.0, 0.0, 1.5, 0.5, 0.0, "most by other"),
    ("of somebody who has ended", 2.0, 0.0, 1.5, 0.0, 0.0, "ended"),
    ("stolen", 1.0, 0.1, 1.0, 0.0, 0.0, "stolen"),
]


def moment(at, busy=0.0, stolen=0.0, ours=0.0, theirs=0.0, kernel=0.0):
    made = machine.Moment.__new__(machine.Moment)
    made.time, made.busy_s, made.stolen_s, made.here_s = at, busy, stolen, 0.0
    made.processes = {OURS: machine.Process("ours", ours, False),
                      THEIRS: machine.Process("other", theirs, False),
                      KERNEL: machine.Process("kernel", kernel, True)}
    return made


def judged(word, *spent):
    why = machine.disturbance(moment(0.0), moment(1.0, *spent), {OURS})
    assert word in why if word else why == "", why


for _name, *_spent, _word in WORK:
    tap.case(f"CPU time: {_name}")(lambda word=_word, spent=_spent: judged(word, *spent))


DISTANCES = [           # nanoseconds, one look after the other; is it far at last?
    ("as ever", [50, 52, 55], False),
    ("moved", [50, 52, 330], True),
    ("moved and back", [50, 330, 60], False),
    ("nearer than ever", [330, 50], False),
]


def moved(looks, far):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "distance"
        script.write_text("#!/bin/sh\necho $1\n")
        script.chmod(0o755)
        cpus = distance.Distance(script)
        for ns in looks:
            cpus.command = [str(script), str(ns)]
            why = cpus.far()
    assert bool(why) == far, why


for _name, *_row in DISTANCES:
    tap.case(f"distance of CPUs: {_name}")(lambda row=_row: moved(*row))


# ---- rounds

def turn(marks):
    """Runs once for each of @marks, and then without."""
    left = list(marks)
    return rounds.Turn("t", {"a": lambda: {"iops": 1, "disturbed": left.pop(0) if left else ""}})


MARKS = [
    ("nothing happened", [], 0, False),
    ("once", ["x"], 0, False),
    ("as often as it is repeated", ["x"] * rounds.REPEATS, 0, False),
    ("always", ["x"] * (rounds.REPEATS + 1), 1, True),
]


class Still:
    """CPUs that are where they are."""
    def settle(self):
        pass

    def wait_until_near(self):
        pass

    def far(self):
        return ""


def visited(marks, marked, inconclusive):
    rounds.PAUSE_S, rounds.CPUS = 0, Still()
    one = turn(marks)
    rounds.measure([one], 1)
    assert len(one.told) == 1 and len(one.marks) == marked, one
    assert rounds.inconclusive([one]) == inconclusive


for _name, *_row in MARKS:
    tap.case(f"disturbed: {_name}")(lambda row=_row: visited(*row))


@tap.case("each round has another first one")
def _():
    order, rounds.CPUS = [], Still()
    runs = {who: (lambda w=who: order.append(w) or {"iops": 1, "disturbed": ""}) for who in "abc"}
    rounds.measure([rounds.Turn("t", runs)], 2)
    assert "".join(order) == "abcbca", order


@tap.case("a ratio is the median of the rounds' own")
def _():
    one = rounds.Turn("t", {})
    one.told = [{"a": {"iops": a}, "b": {"iops": b}} for a, b in ((10, 10), (40, 20), (90, 10))]
    assert one.ratio("a", "b") == 2 and one.median("a", "iops") == 40


BARS = [(1.2, "≥", 1.2, True), (1.1, "≥", 1.2, False), (0.8, "≤", 0.8, True),
        (0.9, "≤", 0.8, False), (None, "≥", 1, None)]


@tap.case("bars")
def _():
    for value, sign, limit, met in BARS:
        assert section.Bar("x", value, sign, limit).met is met, (value, sign, limit)


# ---- all of it

@tap.case("a short run", limit_s=200)
def _():
    if len(os.sched_getaffinity(0)) < 2:
        tap.skip("it takes two CPUs")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([ROOT / "bench" / "run", "matrix", "--cases",
                               "mem-4k-mix,null-128k-read", "--rounds", "1", "--time", "0.1",
                               "--size", "16M", "--output", folder, "--also", "two=--engine epoll"],
                              capture_output=True, text=True, check=False)
        written = sorted(path.name for path in pathlib.Path(folder).iterdir())
    tap.diag(done.stderr)
    assert "| 4 KiB 70/30 mix, depth 32 |" in done.stdout, done.stdout
    assert "| null: 128 KiB read, depth 32 |" in done.stdout, done.stdout
    assert "| weft | weft on two | bare |" in done.stdout, done.stdout
    if done.returncode == 3:
        assert "No conclusion" in done.stdout and not written, written
    else:
        assert done.returncode == 0 and written == ["RESULTS.md", "results.json", "results.svg"]


sys.exit(tap.run())
