#!/usr/bin/python3
"""cli.py - how `weft serve` fails and ends: exit status, and a last line that says why."""
import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import tap
import weft
from fixture import connect, refused, with_target

OK, FAILED, USAGE = 0, 1, 2


def weft_run(*args):
    return subprocess.run([weft.BINARY, *map(str, args)], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=30)


def serve(*args):
    """`weft serve` with arguments that must make it fail before it serves."""
    with tempfile.TemporaryDirectory() as tmp:
        return weft_run("serve", "--control", pathlib.Path(tmp, "control.sock"), *args)


def said(result, code, *words):
    """It exited with `code` (one, or any of several) and its last line has these words."""
    codes = code if isinstance(code, tuple) else (code,)
    assert result.returncode in codes, f"exit status {result.returncode}: {result.stderr}"
    assert not weft.SANITIZER.search(result.stderr), result.stderr
    last = result.stderr.strip().splitlines()[-1] if result.stderr.strip() else ""
    for word in words:
        assert str(word).lower() in last.lower(), f"no {word!r} in the last line: {last!r}"


WRONG_USAGE = [
    [], ["frobnicate"], ["--frobnicate"], ["serve", "--frobnicate"], ["serve", "--listen"],
    ["serve", "--engine", "kqueue"], ["serve", "stray"], ["serve", "--cpus"], ["serve", "-c"],
    ["serve", "-x"], ["serve", "--poll=1"], ["ctl", "--jsn", "status"], ["version", "-j"],
    ["serve", "--ns", "mem:1M", "--allow", nvme.HOSTNQN, "--allow-any-host"],
    ["serve", "--ns", "mem:1M", "--check"],
]


def wrong_usage(args):
    @tap.case("wrong usage: weft " + " ".join(args))
    def _():
        result = weft_run(*args)
        said(result, USAGE)
        assert len(result.stderr.splitlines()) == 1 or not args, result.stderr


for args in WRONG_USAGE:
    wrong_usage(args)

HELP = ["serve", "ctl", "discover", "ls", "id", "read", "write", "cp", "bench", "version"]


@tap.case("every command has --help that fits a terminal of 80 columns")
def _():
    for args in [["--help"]] + [[command, "--help"] for command in HELP]:
        result = weft_run(*args)
        said(result, OK)
        wide = [line for line in result.stdout.splitlines() if len(line) > 80]
        assert not wide and "usage: weft" in result.stdout, (args, wide)


@tap.case("standard output that is full: exit status 1, and a word about it")
def _():
    for args in (["--help"], ["--version"], ["version"], ["version", "--json"], ["help", "cp"],
                 *([command, "--help"] for command in HELP)):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([weft.BINARY, *args], stdout=full, stderr=subprocess.PIPE,
                                    text=True, timeout=30, check=False)
        said(result, FAILED, "weft", "standard output: No space left on device")
        assert len(result.stderr.splitlines()) == 1, result.stderr


@with_target("standard output that is full: weft ctl")
def _(t):
    with open("/dev/full", "wb") as full:
        result = subprocess.run([weft.BINARY, "ctl", "--control", t.control, "status"], stdout=full,
                                stderr=subprocess.PIPE, text=True, timeout=30, check=False)
    said(result, FAILED, "weft ctl: standard output: No space left on device")


@tap.case("weft umount")
def _():
    said(weft_run("umount", "/tmp"), USAGE, 'unmount with "fusermount3 -u DIR"')


# arguments, what is meant
MEANT = [
    (["srve"], "weft serve"),
    (["serve", "--nss", "mem:1M"], "--ns"),
    (["serve", "--listn=x"], "--listen"),
    (["ctl", "--jsn"], "--json"),
]


@tap.case("did you mean …?")
def _():
    for args, meant in MEANT:
        said(weft_run(*args), USAGE, f"did you mean {meant}?".replace("weft serve", '"weft serve"'))


# arguments of serve, words of the last line
WRONG_VALUES = [
    (["--ns", "floppy:1"], ["floppy"]),
    (["--ns", "mem:"], ["mem"]),
    (["--ns", "mem:0"], ["mem:0"]),
    (["--ns", "mem:12Q"], ["12Q"]),
    (["--ns", "mem:1M,block=1000"], ["block"]),
    (["--ns", "mem:1M,colour=red"], ["colour"]),
    (["--ns", "mem:1M,nsid=0"], ["nsid"]),
    (["--ns", "mem:1M,uuid=1234"], ["uuid"]),
    (["--ns", "mem:1M,nsid=3", "--ns", "mem:1M,nsid=3"], ["two --ns have nsid 3"]),
    (["--ns", "mem:1GiB"], ["write 1G"]),
    (["--ns", "file:/nonexistent/dir/a.img,size=1M"], ["/nonexistent/dir/a.img"]),
    (["--ns", "block:/dev/nonexistent"], ["/dev/nonexistent"]),
    (["--ns", "block:/dev/null"], ["/dev/null"]),
    (["--ns", "mem:1M", "--listen", "ftp://127.0.0.1"], ["ftp"]),
    (["--ns", "mem:1M", "--listen", "nvme+tcp://127.0.0.1:99999"], ["99999"]),
    (["--ns", "mem:1M", "--listen", "nvme+tcp://127.0.0.1:0", "--nqn", "not an nqn"], ["nqn"]),
    (["--ns", "mem:1M", "--listen", "nvme+tcp://127.0.0.1:0", "--cpus", "zero"], ["cpus"]),
    (["--ns", "mem:1M", "--listen", "nvme+tcp://127.0.0.1:0", "--cpus", "4095"], ["4095"]),
]


def wrong_value(args, words):
    @tap.case("refused: weft serve " + " ".join(args))
    def _():
        said(serve(*args), (FAILED, USAGE), *words)


for row in WRONG_VALUES:
    wrong_value(*row)

SUBSYSTEM = "subsystems:\n  - nqn: nqn.2026-11.io.weft:a\n    allow_any_host: true\n"

# YAML, the line in error, a word of it
WRONG_CONFIG = [
    ("listen: 5\n", 1, "listen"),
    ("# comment\nlisten: [ nonsense ]\n", 2, "listen"),
    ("lisen: []\n", 1, "lisen"),
    ("listen: [\n", None, ""),
    ("depth: 0\n", 1, "depth"),
    ("depth: 65536\n", 1, "depth"),
    ("depth: deep\n", 1, "depth"),
    ("cpus: [ x ]\n", 1, "cpus"),
    ("subsystems:\n  - nqn: hello world\n", 2, "nqn"),
    ("subsystems:\n  - allow_any_host: true\n", None, "nqn"),
    ("subsystems:\n  - nqn: nqn.2026-11.io.weft:a\n    allow_any_host: maybe\n", 3,
     "allow_any_host"),
    (SUBSYSTEM + "    colour: red\n", 4, "colour"),
    (SUBSYSTEM + "    namespaces:\n      - { nsid: 1 }\n", 5, "backend"),
    (SUBSYSTEM + '    namespaces:\n      - { nsid: 0, backend: "mem:1M" }\n', 5, "nsid"),
    (SUBSYSTEM + '    namespaces:\n      - { nsid: 1, backend: "floppy:1M" }\n', 5, "backend"),
    (SUBSYSTEM + '    namespaces:\n      - { nsid: 1, backend: "mem:1M", block: 1000 }\n', 5,
     "block"),
    (SUBSYSTEM + '    namespaces:\n      - { nsid: 1, backend: "mem:1M" }\n'
     '      - { nsid: 1, backend: "mem:1M" }\n', 6, "nsid"),
    (SUBSYSTEM + "  - nqn: nqn.2026-11.io.weft:a\n", 4, "nqn"),
]


def wrong_config(text, line, field):
    @tap.case(f"configuration: {text.strip().splitlines()[-1].strip()} (line {line}, {field})")
    def _():
        with tempfile.TemporaryDirectory() as tmp:
            path = pathlib.Path(tmp, "weft.yaml")
            path.write_text(text)
            said(weft_run("serve", "-c", path), FAILED,
                 f"{path}:{line}:" if line else path, field)


for row in WRONG_CONFIG:
    wrong_config(*row)


@tap.case("configuration: no such file")
def _():
    said(weft_run("serve", "-c", "/nonexistent/weft.yaml"), FAILED, "/nonexistent/weft.yaml")


@tap.case("configuration: --check looks at a file and opens nothing")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "weft.yaml")
        path.write_text(SUBSYSTEM + '    namespaces: [ { backend: "file:/nonexistent/a" } ]\n')
        result = weft_run("serve", "-c", path, "--check")
        said(result, OK)
        assert result.stdout == f"{path}: fine\n"
        path.write_text("depth: 0\n")
        said(weft_run("serve", "-c", path, "--check"), FAILED, f"{path}:1:")


@tap.case("a file without a size that does not exist")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "a.img")
        said(serve("--listen", weft.ANY_PORT, "--ns", f"file:{path}"), FAILED, path)
        assert not path.exists()


@tap.case("a port that is taken")
def _():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said(serve("--listen", f"nvme+tcp://127.0.0.1:{port}", "--ns", "mem:1M"), FAILED, port)


@with_target("a control socket that is in use")
def _(t):
    result = weft_run("serve", "--control", t.control, "--listen", weft.ANY_PORT, "--ns", "mem:1M")
    said(result, FAILED, t.control)
    t.ctl("status")


@tap.case("other addresses than loopback need to be told who may connect")
def _():
    said(serve("--listen", "nvme+tcp://0.0.0.0:0", "--ns", "mem:1M"), FAILED, "allow")


@tap.case("other addresses than loopback, with --allow-any-host or --allow")
def _():
    for extra in (["--allow-any-host"], ["--allow", nvme.HOSTNQN]):
        with weft.Target(extra=["--listen", "nvme+tcp://0.0.0.0:0", *extra]) as t:
            with connect(t) as ctrl:
                ctrl.disk().read(0)


@tap.case("--help and version")
def _():
    for args in (["--help"], ["serve", "--help"], ["version"], ["version", "--help"]):
        result = weft_run(*args)
        said(result, OK)
        assert result.stdout.strip(), f"{args} prints nothing"
    for word in ("io_uring", "epoll", "FUSE", "nbdkit", "this host is nqn."):
        assert word in weft_run("version").stdout, word
    facts = json.loads(weft_run("version", "--json").stdout)
    assert facts["hostnqn"].startswith("nqn.") and facts["features"]["epoll"] is True, facts
    assert {"io_uring", "fuse", "nbdkit_plugin"} <= facts["features"].keys(), facts
    for option in ("--listen", "--ns", "--nqn", "--control", "--engine", "--cpus", "--poll",
                   "--allow-any-host", "--allow"):
        assert option in weft_run("serve", "--help").stdout, f"{option} is not in the help"


@with_target("version and status agree")
def _(t):
    status = t.ctl("status")
    assert status["version"] in weft_run("version").stdout
    assert status["pid"] == t.process.pid and status["engine"] == t.engine


def ends_on(sig):
    @with_target(f"{sig.name} ends it cleanly, with hosts at work")
    def _(t):
        with connect(t) as ctrl:
            queue = ctrl.open()
            queue.hold = True
            queue.submit(nvme.sqe.blocks(nvme.sqe.WRITE, 1, 0, 1), bytes(4096), capsule=False)
            assert t.finish(sig) == 0, t.log.read_text()
            queue.expect_closed()
        assert not t.control.exists(), "the control socket is left over"


@with_target("the log: signals by name, and the end")
def _(t):
    t.stop()
    log = t.log.read_text()
    assert "SIGTERM: stopping" in log and log.strip().endswith("stopped"), log


@with_target("a locked file is waited for at the start, and refused to a running target",
             ns=["file:{dir}/a.img,size=1M"])
def _(t):
    spec = f"file:{t.dir}/a.img"
    result = serve("--listen", weft.ANY_PORT, "--ns", spec)
    said(result, FAILED, "locked it")
    assert result.stderr.count(f"waiting for {t.dir}/a.img, which is locked") == 1
    refused(t, "namespace-add", backend=spec)
    assert "waiting" not in t.log.read_text()


@with_target("signals during a start that fails do not hide why it failed",
             ns=["file:{dir}/a.img,size=1M"])
def _(t):
    argv = [weft.BINARY, "serve", "--listen", weft.ANY_PORT, "--control", t.dir / "other.sock",
            "--ns", f"file:{t.dir}/a.img"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        while "waiting for" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        last = process.stderr.read().strip().splitlines()[-1]
        assert process.wait(30) == FAILED and "locked it" in last, last


ends_on(signal.SIGTERM)
ends_on(signal.SIGINT)


@with_target("a control socket left over by a crash does not stop the next start")
def _(t):
    t.kill9()
    assert t.control.exists()
    t.start()


@with_target("--poll and --cpus work", extra=["--poll", "--cpus", "0"])
def _(t):
    assert [r["cpu"] for r in t.ctl("status")["reactors"]] == [0]
    with connect(t) as ctrl:
        ctrl.disk().read(0)


sys.exit(tap.run())
