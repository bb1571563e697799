#!/usr/bin/python3
"""host_waiting.py - no path to a namespace, or nobody who answers: every command says so while it
waits, and why; goes on when there is one; and gives up in the end."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import weft
from command import FAILED, OK, fails, messages, run, start, text, uri
from fixture import with_target
from target import Silence, Target, normally

M = 1 << 20
CLOSED = """
listen: [ "nvme+tcp://127.0.0.1:0", "nvme+tcp://127.0.0.1:0" ]
subsystems:
  - nqn: nqn.2026-11.io.weft:test
    allow_any_host: true
    namespaces: [ { nsid: 1, backend: "mem:16M", ana_group: 7 } ]
    ana: [ { group: 7, state: inaccessible } ]
"""


def closed(t):
    return f"127.0.0.1:{t.addr[1]} inaccessible (ANA group 7)"


def waiting(command, t, limit=""):
    """The line that tells of the closed namespace."""
    return re.compile(rf"weft {command}: waiting \d+ s for a path to namespace 1: "
                      rf"127\.0\.0\.1:{t.addr[1]} inaccessible \(ANA group 7\){re.escape(limit)}$")


def open_up(t, state="optimized"):
    t.ctl("ana-set", nqn=t.nqn, rules=[dict(group=7, state=state)])


COMMANDS = [
    ["read", "URI", "--length", "4K"],
    ["write", "URI"],
    ["cp", "URI", "-"],
    ["cp", "-", "URI"],
    ["bench", "URI", "--time", "60"],
    ["bench", "URI", "--time", "60", "--rw", "randrw", "--write-ok", "--verify"],
]


def begin(args, place):
    """With a block to read from its standard input."""
    process = start(*[place if word == "URI" else word for word in args], "--timeout", "60s",
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    process.stdin.write(bytes(4096))
    process.stdin.close()
    return process


def told(process, line):
    """Reads its messages up to one that matches."""
    said = []
    for text_ in process.stderr:
        said.append(text_.decode().rstrip("\n"))
        if line.search(said[-1]):
            return said
    raise AssertionError(f"no {line.pattern!r} in {said}")


@with_target("an inaccessible namespace: told, with why and how long, and given up in the end",
             config=CLOSED, limit_s=120)
def _(t):
    begun = [(args[0], begin(args, uri(t, 1, loss_timeout="20s"))) for args in COMMANDS]
    for command, process in begun:
        said = told(process, waiting(command, t, "; I/O fails after 20 s (fast_io_fail)"))
        said += process.stderr.read().decode().splitlines()
        assert process.wait(60) == FAILED, (command, said)
        assert f"no path could be used for 20 s (fast_io_fail): {closed(t)}" in said[-1], said


@with_target("an inaccessible namespace that opens up: it goes on, and says so", config=CLOSED,
             limit_s=120)
def _(t):
    for args in COMMANDS:
        open_up(t, "inaccessible")
        process = begin(args, uri(t, 1, loss_timeout="2m"))
        told(process, waiting(args[0], t, "; I/O fails after 120 s (fast_io_fail)"))
        open_up(t)
        if args[0] == "bench":          # the others may be through before that is seen
            told(process, re.compile(r"^weft bench: there is a path again, after [\d.]+ s$"))
            process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(60) == OK, rest


@with_target("how long: loss_timeout, or what fast_io_fail says", config=CLOSED)
def _(t):
    for words, limit in (({}, 30), ({"loss_timeout": "5m"}, 300), ({"fast_io_fail": "47s"}, 47)):
        process = start("read", uri(t, 1, **words), "--length", "4K", "--timeout", "60s")
        told(process, waiting("read", t, f"; I/O fails after {limit} s (fast_io_fail)"))
        process.kill()
    process = start("read", uri(t, 1, fast_io_fail=0), "--length", "4K", "--timeout", "60s")
    told(process, waiting("read", t))
    process.kill()


@with_target("-q says nothing of it", config=CLOSED, limit_s=120)
def _(t):
    place = uri(t, 1, loss_timeout="20s")
    begun = [start(*args, "--timeout", "60s")
             for args in (["cp", "-q", place, "-"], ["read", "-q", place, "--length", "4K"])]
    for process in begun:
        _, err = process.communicate(timeout=90)
        assert process.returncode == FAILED and err.startswith(b"weft "), err
        assert b"waiting" not in err and err.count(b"\n") == 1, err


@with_target("looking at an inaccessible namespace does not wait", config=CLOSED)
def _(t):
    for args in (["id", uri(t, 1)], ["ls", uri(t, 1)], ["ls", uri(t, nqn="")]):
        result = run(*args)
        assert result.returncode == OK and not messages(result.stderr), (args, result.stderr)
        assert "for a path" not in result.stderr, result.stderr
    assert "inaccessible" in text("ls", uri(t, 1))


@with_target("two paths that lead nowhere: both are named", config=CLOSED)
def _(t):
    other = [weft.address(each["uri"])[1] for each in t.ctl("status")["listeners"]][1]
    both = f"{uri(t, 1)},nvme+tcp://127.0.0.1:{other}/{t.nqn}"
    process = start("read", both, "--length", "4K", "--timeout", "60s")
    told(process, re.compile(rf"127\.0\.0\.1:{t.addr[1]} inaccessible \(ANA group 7\), "
                             rf"127\.0\.0\.1:{other} inaccessible \(ANA group 7\); I/O fails"))
    process.kill()


@tap.case("somebody listens and says nothing: every command says that it waits", limit_s=120)
def _():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"nvme+tcp://127.0.0.1:{mute.getsockname()[1]}"
        begun = []
        for args in (["discover"], ["discover", "--no-referrals"], ["ls"], ["id"],
                     ["read", "--length", "4K"], ["write"], ["bench"]):
            where = place + ("" if args[0] in ("discover", "ls") else f"/{weft.NQN}")
            begun.append((args[0], where, start(*args, where, "--timeout", "20s")))
        for command, where, process in begun:
            told(process, re.compile(rf"^weft {command}: waiting \d+ s for a connection to "
                                     rf"{re.escape(where)}; it is given up after 20 s "
                                     r"\(--timeout\)$"))
            assert process.wait(60) == FAILED, command


@with_target("storage that is slow, also to shut down: told, and what is asked of it",
             config=CLOSED.replace("inaccessible", "optimized").replace("mem:16M", "mem:16M,delay=3s"))
def _(t):
    block = t.dir / "block"
    block.write_bytes(bytes(4096))
    begun = [(args[0], what, start(*args, "--timeout", "60s", stdout=subprocess.DEVNULL))
             for what, *args in (("Read", "read", uri(t, 1), "--length", "4K"),
                                 ("Write", "write", uri(t, 1), "-i", block),
                                 ("Compare", "compare", uri(t, 1), "-i", block),
                                 ("Write Zeroes", "zero", uri(t, 1), "--all"),
                                 ("I/O", "bench", uri(t, 1), "--time", "2", "--json"))]
    for command, what, process in begun:
        address = f"127.0.0.1:{t.addr[1]}"
        told(process, re.compile(rf"^weft {command}: waiting \d+ s for an answer to {what}: {address}; "
                                 r"it is aborted after 30 s \(io_timeout\)$"))
        assert process.wait(60) == OK, command
    # A shutdown flushes what was written and not flushed.
    process = start("bench", uri(t, 1), "--rw", "randwrite", "--write-ok", "--time", "2", "--json",
                    "--timeout", "60s", stdout=subprocess.DEVNULL)
    told(process, re.compile(r"^weft bench: waiting \d+ s for the controller to shut down: "
                             rf"nvme\+tcp://{address}/.*; it is given up after 60 s \(--timeout\)$"))
    assert process.wait(60) == OK
    for command in ("compare", "write"):            # the last line says why it failed
        fails(command, uri(t, 1), "-i", "/dev/zero", "--length", "32M", words=["goes beyond the end"])
    quiet = start("read", "-q", uri(t, 1), "--length", "4K", "-o", t.dir / "out")
    assert (quiet.wait(60), quiet.stderr.read()) == (OK, b"")


def says_no_more(conn, _cmd):
    raise Silence


@tap.case("a target that lets in and then says nothing: every command says that it waits")
def _():
    with Target(identify=says_no_more) as t:
        for command in ("id", "ls", "read", "mount"):
            more = {"read": ["--length", "4K"], "mount": [tempfile.mkdtemp()]}.get(command, [])
            process = start(command, t.uri(), *more, "--timeout", "5s", stdout=subprocess.DEVNULL)
            told(process, re.compile(rf"^weft {command}: waiting \d+ s for .*127\.0\.0\.1:{t.addr[1]}"))
            assert process.wait(60) == FAILED, command
    answered = []

    def not_again(conn, cmd):
        answered.append(cmd)
        if len(answered) > 2:           # two are of the set-up
            raise Silence
        return normally(conn, "identify", cmd)

    with Target(identify=not_again) as t:
        process = start("id", t.uri(admin_timeout="5s"), stdout=subprocess.DEVNULL)
        told(process, re.compile(rf"^weft id: waiting \d+ s for an answer: 127\.0\.0\.1:{t.addr[1]}$"))
        process.kill()


@tap.case("a target that is gone: told while it waits, and that it is back", limit_s=120)
def _():
    config = CLOSED.replace("nvme+tcp://127.0.0.1:0", f"nvme+tcp://127.0.0.1:{weft.free_port()}", 1)
    config = config.replace("mem:16M", "file:{dir}/a,size=16M")
    with weft.Target(config=config.replace("inaccessible", "optimized")) as t:
        copy = start("cp", "-", uri(t, 1, loss_timeout="2m"), "--timeout", "60s",
                     stdin=subprocess.PIPE)
        copy.stdin.write(b"x" * 2 * M)
        copy.stdin.flush()
        weft.wait_until(lambda: any(c["writes"] for c in t.controllers()), "it to copy")
        t.kill9()
        copy.stdin.write(bytes(M))
        copy.stdin.close()
        said = told(copy, re.compile(r"weft cp: waiting \d+ s for a path to namespace 1: 127\.0\.0\.1:"
                                     rf"{t.addr[1]} reconnecting: .*; I/O fails after 120 s "
                                     r"\(fast_io_fail\)"))
        assert any(line.startswith("weft cp: connection lost to ") for line in said), said
        t.start()
        rest = copy.stderr.read()
        assert copy.wait(60) == OK, rest


@with_target("a mount whose namespace is inaccessible: told when somebody waits for it",
             config=CLOSED, limit_s=90)
def _(t):
    if not os.path.exists("/dev/fuse"):
        tap.skip("there is no /dev/fuse")
    directory = t.dir / "mnt"
    directory.mkdir()
    mount = start("mount", "-f", uri(t), directory)
    try:
        weft.wait_until(lambda: os.path.ismount(directory), "the mount")
        got = []
        reader = threading.Thread(target=lambda: got.append((directory / "ns1").read_bytes()))
        reader.start()
        told(mount, waiting("mount", t, "; I/O fails after 600 s (fast_io_fail)"))
        open_up(t)
        told(mount, re.compile("weft mount: there is a path again, after "))
        reader.join(60)
        assert got and len(got[0]) == 16 * M
    finally:
        mount.send_signal(signal.SIGTERM)
        mount.wait(30)


@tap.case("the end names what is the matter now, not an earlier loss")
def _():
    config = CLOSED.replace("inaccessible", "optimized")
    config = config.replace("127.0.0.1:0", f"127.0.0.1:{weft.free_port()}", 1)
    with weft.Target(config=config) as t, \
            start("bench", uri(t, 1, fast_io_fail="10s"), "--time", "600",
                  stdout=subprocess.DEVNULL) as bench:
        weft.wait_until(lambda: any(c["reads"] for c in t.controllers()), "bench to read")
        t.kill9()
        t.start()
        told(bench, re.compile("connected again|there is a path again"))
        open_up(t, "inaccessible")
        said = bench.stderr.read().decode().splitlines()
        assert bench.wait(60) == FAILED, said
    assert said[-1].endswith(f"no path could be used for 10 s (fast_io_fail): {closed(t)}"), said


@with_target("… and of several paths, what each of them said last",
             config=CLOSED.replace("inaccessible", "optimized"))
def _(t):
    place = f"{uri(t, 1, fast_io_fail='2s')},{uri(t, 1, host='localhost')}"
    with start("bench", place, "--time", "600", stdout=subprocess.DEVNULL) as bench:
        weft.wait_until(lambda: any(c["reads"] for c in t.controllers()), "bench to read")
        t.kill9()
        said = bench.stderr.read().decode().splitlines()
        assert bench.wait(60) == FAILED, said
    assert said[-1].count(f":{t.addr[1]} reconnecting: ") == 2, said
    assert said[-1].count("Connection refused") == 2, said


@with_target("nobody is there: the limit that is told is the one that ends it")
def _(t):
    with start("bench", uri(t, 1, loss_timeout="2s"), "--time", "60", stdout=subprocess.DEVNULL) as bench:
        weft.wait_until(lambda: any(c["reads"] for c in t.controllers()), "bench to read")
        t.kill9()
        said = told(bench, re.compile(r"waiting \d+ s for a path to namespace 1: .*; I/O fails after 2 s "
                                      r"\(fast_io_fail\)$"))
        said += bench.stderr.read().decode().splitlines()
        assert bench.wait(60) == FAILED, said
    assert not any("(loss_timeout)" in line for line in said), said


# --- weft ctl -------------------------------------------------------------------------------------

@with_target("weft ctl: a target that hangs is told of, and a look at it is given up")
def _(t):
    t.process.send_signal(signal.SIGSTOP)
    try:
        for method in ("status", "methods"):
            fails("ctl", "--control", t.control, "--timeout", "1500ms", method,
                  sentence=f"weft ctl: {t.control}: the target has not answered for 1500 ms "
                           "(--timeout); is its process stopped, or does it hang?")
        fails("ctl", "--control", t.control, "--timeout", "1s", "save", "path=/nonexistent/x",
              sentence=f"weft ctl: {t.control}: the target has not answered for 1 s (--timeout); "
                       "it may still carry save out")
        looks = start("ctl", "--control", t.control, "status")
        told(looks, re.compile(rf"^weft ctl: waiting \d+ s for an answer of the target at "
                               rf"{re.escape(str(t.control))}; it is given up after 10 s "
                               rf"\(--timeout\)$"))
        assert looks.wait(60) == FAILED
    finally:
        t.process.send_signal(signal.SIGCONT)
    fails("ctl", "--timeout", "soon", "status", code=2,
          words=['--timeout: expected a time such as 500ms or 5s, got "soon"'])


@tap.case("weft ctl: the limit is for the whole answer, also if a byte of it comes now and then")
def _():
    with tempfile.TemporaryDirectory() as folder, \
            socket.create_server(f"{folder}/control.sock", family=socket.AF_UNIX) as listener, \
            start("ctl", "--control", f"{folder}/control.sock", "--timeout", "1s", "status") as asks:
        conn = listener.accept()[0]
        with conn, contextlib.suppress(BrokenPipeError):
            for _ in range(600):
                conn.sendall(b" ")
                time.sleep(0.1)
        said = asks.stderr.read().decode()
        assert "the target has not answered for 1 s (--timeout)" in said, said
        assert asks.wait(60) == FAILED


@with_target("weft ctl: a change has no limit of its own, and says that it waits")
def _(t):
    t.process.send_signal(signal.SIGSTOP)
    changes = start("ctl", "--control", t.control, "namespace-add", "backend=mem:1M", "nsid=9")
    try:
        told(changes, re.compile(rf"^weft ctl: waiting \d+ s for an answer of the target at "
                                 rf"{re.escape(str(t.control))}$"))
    finally:
        t.process.send_signal(signal.SIGCONT)
    assert changes.wait(60) == OK
    assert any(ns["nsid"] == 9 for ns in t.subsystem()["namespaces"])


sys.exit(tap.run())
