#!/usr/bin/python3
"""failures.py - a failure names its cause: what tests/run makes of programs that fail, hang and die,
and what of targets that do."""
import importlib.machinery
import importlib.util
import pathlib
import signal
import subprocess
import sys
import tempfile

LIB = pathlib.Path(__file__).resolve().parents[1] / "lib"
sys.path.insert(0, str(LIB))

import stalls
import tap
import weft
from fixture import connect, with_target

RUN = LIB.parent / "run"
BROKEN = pathlib.Path(weft.BINARY).parent / "tests" / "unit" / "broken"


def load_run():
    """tests/run as a module, its logs elsewhere."""
    loader = importlib.machinery.SourceFileLoader("run", str(RUN))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
    sys.modules["run"] = module
    loader.exec_module(module)
    return module


run = load_run()


def result_of(*argv, limit_s=20, **env):
    """What tests/run says of a program: its Result."""
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        run.LOGS = pathlib.Path(folder)
        program = run.Program("a/program", list(map(str, argv)), env=env, limit_s=limit_s, build="")
        return run.run(program, "")


def python(text, **more):
    return result_of(sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(LIB)!r})\n{text}",
                     **more)


def told(result, *lines):
    """Every one of these, in their order."""
    rest = iter(result.details)
    for line in lines:
        assert any(line in said for said in rest), f"{line!r} is not told: {result.details}"


# ---- TAP

OUTPUTS = [
    ("the case that ran when the time was up", "1..2\n# running a\nok 1 - a\n# running b\n", None,
     (1, 1), ["ended by the time limit of 20 s after 1 cases, in: b"]),
    ("all of them, when several run", "1..3\n# running a\n# running b\n# running c\nok 1 - b\n", None,
     (1, 1), ["in: a; c"]),
    ("nothing of a case that was skipped", "1..1\n# running a\nok 1 - a # SKIP no wind\n", None,
     (0, 1), ["after 1 cases"]),
    ("the signal that a program died of, and where", "1..2\n# running a\nok 1 - a\n# running b\n# x\n",
     -signal.SIGSEGV, (1, 1), ["planned 2 cases, ran 1; status SIGSEGV, in: b", "# x"]),
    ("what is said before a failure, and behind it",
     "1..2\n# running a\n# 1\nok 1 - a\n# 2\n# running b\n# 3\nnot ok 2 - b\n# 4\n", 1,
     (1, 1), ["not ok 2 - b", "# 3", "# 4"]),
    ("cases that were not run, once", "1..9\n# running a\nnot ok 1 - a\nBail out! 8 were not run\n", 1,
     (0, 2), ["not ok 1 - a", "Bail out! 8 were not run"]),
]


def reads(name, text, status, counts, lines):
    @tap.case(f"tests/run tells {name}")
    def _():
        result = run.Result()
        run.read_tap(text, status, run.Program("a/program", limit_s=20), result)
        assert (result.passed, result.failed) == counts, result
        assert len(result.details) == len(lines), result.details
        told(result, *lines)


for row in OUTPUTS:
    reads(*row)


@tap.case("the time limit of a program names the case")
def _():
    result = python("import tap, time\n"
                    "tap.case('quick')(lambda: None)\n"
                    "tap.case('it hangs')(lambda: time.sleep(60))\n"
                    "sys.exit(tap.run())", limit_s=20)
    told(result, "time limit of 20 s after 1 cases, in: it hangs")


# ---- rows of tables

def of_broken(name, word, *lines):
    @tap.case(name)
    def _():
        if not BROKEN.exists():
            tap.skip("the unit tests are not built (libcmocka-dev)")
        told(result_of(BROKEN, word, limit_s=5, CMOCKA_MESSAGE_OUTPUT="TAP"), *lines)


of_broken("a failure names the row of its table", "",
          "not ok 1 - a_row_fails", "# in the row table[1]: bad",
          "not ok 2 - a_row_of_a_row_fails", "# in the row table[1]: bad", "# in the row inner[1]",
          "not ok 3 - behind_a_table", "broken.c:")
of_broken("… an abort, too", "abort", "SIGABRT, in: a_row_ends_the_program",
          "# in the row table[1]: bad")
of_broken("… and the time limit", "hang", "in: a_row_hangs", "# in the row table[1]: bad")


# ---- machines that stand still

class Stalled:
    """What stalls.Watch says, made up."""
    def __init__(self, said):
        self.said = said

    def since(self, start):
        return self.said


def stalled_run(said, text):
    """Result of a program of TEXT that is told how often it ran, and how often that was."""
    with tempfile.NamedTemporaryFile("w+", prefix="weft-") as count:
        run.watch = Stalled(said)
        try:
            result = python(f"count = open({count.name!r}, 'a+'); count.write('x'); count.flush()\n"
                            f"times = len(open({count.name!r}).read())\nprint('1..1')\n{text}")
        finally:
            run.watch = None
        return result, len(count.read())


ONCE_LATE = "print('ok 1 - a' if times > 1 else 'not ok 1 - a'); sys.exit(times < 2)"
ALWAYS = "print('not ok 1 - a'); sys.exit(1)"


@tap.case("what fails while a CPU stood still is run once more, and the report says so")
def _():
    result, times = stalled_run("CPU 1 stood still for 59 s", ONCE_LATE)
    assert (result.passed, result.failed, times) == (1, 0, 2), result
    assert "CPU 1 stood still for 59 s" in result.remarks[0], result.remarks
    assert result.remarks[1:] == ["  not ok 1 - a"], result.remarks


@tap.case("… and fails, if it fails again")
def _():
    result, times = stalled_run("CPU 1 stood still for 59 s", ALWAYS)
    assert (result.failed, times) == (1, 2), result


@tap.case("without a stall it fails at once")
def _():
    result, times = stalled_run(None, ONCE_LATE)
    assert (result.failed, times, result.remarks) == (1, 1, []), result


@tap.case("a stall is told for as long as a run overlaps it, and lateness of a busy machine is none")
def _():
    watch = stalls.Watch(cpus=())
    watch.note(100.0, 100.0 + stalls.STALL_S / 2, 0)
    assert watch.since(0) is None
    watch.note(200.0, 259.25, 1)
    assert watch.since(199) == watch.since(259) == "CPU 1 stood still for 59 s", watch.stalls
    assert watch.since(260) is None


# ---- targets that die

SHARED = """
import os, signal, fixture, nvme, tap, weft

def serves():
    with fixture.connect(t) as ctrl:
        ctrl.disk().read(0)

def dies():
    os.kill(t.process.pid, signal.SIGSEGV)
    serves()

for name, body in dict(first=serves, second=dies, third=serves, fourth=serves).items():
    tap.case(name)(body)
with weft.Target() as t:
    status = tap.run()
sys.exit(status)
"""


@tap.case("a target that cases share dies: told once, with the signal and its last lines")
def _():
    result = python(SHARED)
    assert (result.passed, result.failed) == (1, 2), result
    told(result, "not ok 2 - second", "target died: SIGSEGV, last lines:", "listening on",
         "Bail out! 2 cases were not run")
    assert str(result.details).count("SIGSEGV") == 1, result.details


@tap.case("a target of a case's own dies: the next case has another")
def _():
    result = python("import os, signal, fixture, tap\n"
                    "@fixture.with_target('first')\n"
                    "def _(t):\n"
                    "    os.kill(t.process.pid, signal.SIGABRT)\n"
                    "    fixture.connect(t)\n"
                    "fixture.with_target('second')(lambda t: fixture.connect(t))\n"
                    "sys.exit(tap.run())")
    assert (result.passed, result.failed) == (1, 1), result
    told(result, "not ok 1 - first", "target died: SIGABRT, last lines:")


# ---- signals

@tap.case("what a test starts does not inherit that signals are ignored")
def _():
    text = ("import signal, subprocess, sys\n"
            f"sys.path.insert(0, {str(LIB)!r})\n"
            "import tap\n"
            "print(subprocess.run(['grep', 'SigIgn', '/proc/self/status'], check=True,"
            " capture_output=True, text=True).stdout.split()[1])\n"
            "signal.raise_signal(signal.SIGHUP)\n")      # this one still ignores it
    done = subprocess.run(["sh", "-c", 'trap "" HUP INT QUIT TERM USR1; exec "$@"', "sh",
                           sys.executable, "-c", text],
                          capture_output=True, text=True, check=True)
    ours = (1 << 31) - 1        # not those that libc keeps for itself
    assert int(done.stdout, 16) & ours == 0, done.stdout


@with_target("SIGINT ends a target that a test started")
def _(t):
    with connect(t) as ctrl:
        ctrl.disk().read(0)
    assert t.finish(signal.SIGINT) == 0


sys.exit(tap.run())
