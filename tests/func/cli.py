#!/usr/bin/python3
"""cli.py - how `weft serve` fails and ends: exit status, and a last line that says why."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import takeover
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
    err = (result.stderr or "").strip()
    assert not weft.SANITIZER.search(err), err
    last = err.splitlines()[-1] if err else ""
    for word in words:
        assert str(word).lower() in last.lower(), f"no {word!r} in the last line: {last!r}"


WRONG_USAGE = [
    [], ["frobnicate"], ["--frobnicate"], ["serve", "--frobnicate"], ["serve", "--listen"],
    ["serve", "--engine", "kqueue"], ["serve", "stray"], ["serve", "--cpus"], ["serve", "-c"],
    ["serve", "-x"], ["serve", "--poll=1"], ["ctl", "--jsn", "status"], ["version", "-j"],
    ["serve", "--ns", "mem:1M", "--allow", nvme.HOSTNQN, "--allow-any-host"],
    ["serve", "--ns", "mem:1M", "--check"],
    *(["serve", "-c", "/nonexistent", *flags] for flags in (
        ["--allow-any-host"], ["--allow", nvme.HOSTNQN], ["--ns", "mem:1M"], ["--nqn", weft.NQN])),
    *(["id", "--ns", number, f"nvme+tcp://127.0.0.1:1/{weft.NQN}"] for number in (
        "0", "4294967295", "4294967296", "1x", "-1", "")),
]


def wrong_usage(args):
    @tap.case("wrong usage: weft " + " ".join(args))
    def _():
        result = weft_run(*args)
        said(result, USAGE)
        assert len(result.stderr.splitlines()) == 1 or not args, result.stderr


for args in WRONG_USAGE:
    wrong_usage(args)

HELP = ["serve", "ctl", "discover", "ls", "id", "log", "feature", "resv", "read", "write", "compare",
        "zero", "trim", "cp", "raw", "bench", "version"]


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
    (["ctl", "sttaus"], "status"),
    (["raed"], '"weft read"'),
]
# What is too far from any word to be one of them.
NOT_MEANT = [["foo"], ["xx"], ["ctl", "foo"], ["serve", "--foo"], ["log", "foo", "x"]]


@tap.case("did you mean …?")
def _():
    for args, meant in MEANT:
        said(weft_run(*args), USAGE, f"did you mean {meant}?".replace("weft serve", '"weft serve"'))
    for args in NOT_MEANT:
        result = weft_run(*args)
        said(result, USAGE, "foo" if "foo" in str(args) else "xx")
        assert "did you mean" not in result.stderr, result.stderr


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
    (["--ns", "/srv/a.img"], ["did you mean file:/srv/a.img?"]),
    (["--ns", "mem:1M", "--allow", ""], ["--allow", "such as nqn.2014-08.org.nvmexpress:uuid:"]),
    (["--ns", "mem:1GB"], ["may count in 1000s or in 1024s", "write 1G"]),
    (["--ns", "file:/nonexistent/dir/a.img,size=1M"], ["/nonexistent/dir/a.img"]),
    (["--ns", "block:/dev/nonexistent"], ["/dev/nonexistent"]),
    (["--ns", "block:/dev/null"], ["/dev/null"]),
    (["--ns", "mem:1M", "--listen", "ftp://127.0.0.1"], ["ftp"]),
    (["--ns", "mem:1M", "--listen", "nvme+tcp://127.0.0.1:99999"], ["99999"]),
    (["--ns", "mem:1M", "--listen", "nvme+tcp://127.0.0.1:0", "--nqn", "a\nb"], ["nqn"]),
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
    ("subsystems:\n  - nqn: [ hello ]\n", 2, "nqn"),
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


@tap.case("configuration: --listen goes before what the file says")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "weft.yaml")
        path.write_text("listen: [ nonsense ]\n" + SUBSYSTEM)
        said(weft_run("serve", "-c", path, "--check"), FAILED, "nonsense")
        said(weft_run("serve", "-c", path, "--listen", weft.ANY_PORT, "--check"), OK)


@tap.case("--detach: what fails in the background fails here")
def _():
    said(serve("--detach", "--listen", weft.ANY_PORT, "--ns", "file:/nonexistent/a"), FAILED,
         "/nonexistent/a")


@tap.case("configuration: any host does not go with a list of hosts, which may be empty")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "weft.yaml")
        for hosts in ("", nvme.HOSTNQN):
            path.write_text(SUBSYSTEM + f"    hosts: [ {hosts} ]\n")
            said(weft_run("serve", "-c", path, "--check"), FAILED, "does not go with hosts")


@tap.case("the same file twice: refused by --check and at the start, by whatever name")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path, image, link = (pathlib.Path(tmp, name) for name in ("weft.yaml", "a.img", "b.img"))
        image.write_bytes(bytes(1 << 20))
        link.symlink_to(image)
        words = f"file:{link} is the storage of file:{image} in line 5, too"
        both = "    namespaces:\n      - {{ backend: file:{}{} }}\n      - {{ backend: file:{}{} }}\n"
        path.write_text(SUBSYSTEM + both.format(image, "", link, ""))
        said(weft_run("serve", "-c", path, "--check"), FAILED, words)
        said(serve("-c", path, "--listen", weft.ANY_PORT), FAILED, words)
        path.write_text(SUBSYSTEM + both.format(image, ", ro: true", link, ", ro: true"))
        said(weft_run("serve", "-c", path, "--check"), OK)
        said(serve("--ns", f"file:{image}", "--ns", f"file:{link}"), USAGE,
             f"two --ns have the same storage, file:{image} and file:{link}")


HUGE = "mem:8191T"                  # the machine is not there yet


@tap.case("configuration: --check warns of what is accepted and may not be meant")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "weft.yaml")
        path.write_text(SUBSYSTEM + f'    namespaces: [ {{ backend: "{HUGE}" }} ]\n')
        result = weft_run("serve", "-c", path, "--check")
        said(result, OK, f"weft serve: warning: {HUGE}: more than this machine's memory")
        assert result.stdout == f"{path}: fine\n"
        path.write_text(SUBSYSTEM + '    namespaces: [ { backend: "mem:1M" } ]\n    ana:\n'
                        "      - { group: 1, state: change, portid: 1 }\n"
                        "      - { group: 2, state: change }\n"
                        "      - { group: 1, state: change, portid: 3 }\n")
        result = weft_run("serve", "-c", path, "--check")
        said(result, OK, "nqn.2026-11.io.weft:a: a rule is for port id 3, which no listener has")
        assert "a rule is for group 2, which no namespace is in" in result.stderr, result.stderr
        assert result.stderr.count("warning") == 2, result.stderr
        path.write_text("subsystems: [ { nqn: testnqn } ]\n")
        said(weft_run("serve", "-c", path, "--check"), OK, "weft serve: warning: testnqn is not")


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


@tap.case("a port that only root may have")
def _():
    if int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 442:
        tap.skip("every user may have every port")
    with tempfile.TemporaryDirectory() as tmp:
        unprivileged = "import os, sys; os.geteuid() or os.setuid(65534); os.execv(sys.argv[1], sys.argv[1:])"
        os.chmod(tmp, 0o755)
        os.chown(tmp, *[65534 if os.geteuid() == 0 else -1] * 2)
        result = subprocess.run([sys.executable, "-c", unprivileged, weft.BINARY, "serve", "--ns", "mem:1M",
                                 "--listen", "nvme+tcp://127.0.0.1:442", "--control", f"{tmp}/c.sock"],
                                stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=30)
    said(result, FAILED, "port 442", "from 1024 on")


@tap.case("a folder that is not there")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        gone = f"{tmp}/none"
        for words in (["--ns", f"file:{gone}/a.img,size=1M"],
                      ["--ns", "mem:1M", "--control", f"{gone}/c.sock"],
                      ["--ns", "mem:1M", "--log-file", f"{gone}/log"],
                      ["--ns", "mem:1M", "--pidfile", f"{gone}/pid"]):
            said(serve("--listen", weft.ANY_PORT, *words), FAILED,
                 f"there is no folder {gone}; make it first, or correct the path")


@tap.case("a takeover of nobody: the last line is that of the command")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        for more in ([], ["--log-file", f"{tmp}/log"], ["--detach"]):
            result = serve("--listen", weft.ANY_PORT, "--ns", "mem:1M", "--takeover", *more)
            said(result, FAILED, "no target answers")
            assert result.stderr.splitlines()[-1].startswith("weft serve: takeover failed: "), result.stderr
            assert result.stderr.count("takeover failed") == 1, result.stderr
        assert "error: takeover failed: " in pathlib.Path(tmp, "log").read_text()


@with_target("a control socket that is in use")
def _(t):
    result = weft_run("serve", "--control", t.control, "--listen", weft.ANY_PORT, "--ns", "mem:1M")
    said(result, FAILED, f"{t.control}: another weft (pid {t.process.pid}) answers there")
    t.ctl("status")


@tap.case("other addresses than loopback need to be told who may connect")
def _():
    said(serve("--listen", "nvme+tcp://0.0.0.0:0", "--ns", "mem:1M"), USAGE, "allow")


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
    assert weft_run("-V").stdout == weft_run("--version").stdout == weft_run("version").stdout
    for word in ("io_uring", "epoll", "FUSE", "nbdkit", "this host is nqn.",
                 "the name in /etc/nvme/hostnqn" if os.path.exists("/etc/nvme/hostnqn") else
                 f"made from the machine's id and user {os.geteuid()};"):
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


@with_target("two signals within a second are one: it stops cleanly",
             ns=["file:{dir}/a.img,size=1M"])
def _(t):
    argv = [weft.BINARY, "serve", "--listen", weft.ANY_PORT, "--control", t.dir / "other.sock",
            "--ns", f"file:{t.dir}/a.img"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        while "waiting for" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)         # both are seen when it has its file
        process.send_signal(signal.SIGINT)
        t.stop()
        said(subprocess.CompletedProcess(argv, process.wait(30), "", process.stderr.read()), OK,
             "stopped")


# ---- the log, the pid, the background

DATED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (info|warning): ")
CLOCK = re.compile(r"\d\d:\d\d:\d\d\.\d{3} (info|warning): ")


def stopped_log(folder, stderr, **env):
    """A target that logs there is started and stopped."""
    with subprocess.Popen([weft.BINARY, "serve", "--listen", weft.ANY_PORT, "--ns", "mem:1M",
                           "--control", f"{folder}/control.sock"], stderr=stderr,
                          env=os.environ | env) as process:
        weft.wait_until(lambda: os.path.exists(f"{folder}/control.sock"), "it to start")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@tap.case("the log has dates in a file, and none on a terminal or in the journal")
def _():
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        # what systemd sets: the device and the inode of its socket
        for env, style in (({}, DATED), ({"JOURNAL_STREAM": "1:2"}, DATED),
                           ({"JOURNAL_STREAM": "{}"}, re.compile("<[46]>"))):
            with open(log, "wb") as out:
                st = os.fstat(out.fileno())
                stopped_log(folder, out, **{key: text.format(f"{st.st_dev}:{st.st_ino}")
                                            for key, text in env.items()})
            lines = log.read_text().splitlines()
            assert lines and all(map(style.match, lines)), lines
        ours, theirs = os.openpty()
        stopped_log(folder, theirs)
        os.close(theirs)
        with open(ours, "rb", buffering=0) as out:
            assert CLOCK.match(out.read(4096).decode())


@contextlib.contextmanager
def in_background(*args, stderr=subprocess.PIPE):
    """`weft serve --detach` in a folder of its own: (folder, its pid, what was told)."""
    with tempfile.TemporaryDirectory() as folder:
        control = pathlib.Path(folder, "control.sock")
        argv = [weft.BINARY, "serve", "--listen", weft.ANY_PORT, "--ns", "mem:1M", "--detach",
                "--control", control, *args]
        result = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                stderr=stderr, cwd=folder, timeout=30, check=False)
        said(result, OK)
        told = weft_run("ctl", "--control", control, "status").stdout
        pid = json.loads(told)["pid"]
        try:
            yield pathlib.Path(folder), pid, result.stderr
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            weft.wait_until(lambda: not control.exists(), "it to end")


def descriptors(pid):
    return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)]


@tap.case("a start that is refused leaves no image that it made, and those that were there")
def _():
    with tempfile.TemporaryDirectory() as folder, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        inside = pathlib.Path(folder)
        there, made = inside / "there.img", inside / "made.img"
        there.touch()
        (inside / "link").symlink_to(folder)
        new, other = f"file:{made},size=1G", f"file:{inside}/link/made.img,size=1G"
        second = f"{{ nqn: {weft.NQN}-2, namespaces: [ {{ backend: '%s' }} ] }}"
        config = inside / "weft.yaml"
        for argv, subsystems in (
                (["--ns", new, "--ns", f"file:{inside}/none.img"], None),
                (["--ns", new, "--ns", f"file:{there},size=1M", "--ns", "block:/dev/null"], None),
                (["--ns", new, "--listen", f"nvme+tcp://127.0.0.1:{taken.getsockname()[1]}"], None),
                (["--ns", new, "--listen", "nvme+tcp://203.0.113.1:4420", "--allow-any-host"], None),
                (["-c", config], second % other),
                (["-c", config], second % f"file:{inside}/none/b.img,size=1M")):
            if subsystems:
                config.write_text(f"subsystems:\n  - {second.replace('-2', '') % new}\n"
                                  f"  - {subsystems}\n")
            if "--listen" not in argv:
                argv = [*argv, "--listen", weft.ANY_PORT] if "-c" not in argv else argv
            result = weft_run("serve", "--control", inside / "control.sock", *argv)
            assert result.returncode == 1, result.stderr
            assert not made.exists() and there.exists(), f"{argv}: {result.stderr}"


@tap.case("--detach leaves the terminal; --log-file has the log, --pidfile the pid")
def _():
    with in_background("--log-file", "log", "--pidfile", "pid") as (folder, pid, told):
        log, pidfile = folder / "log", folder / "pid"
        assert not told, told
        assert descriptors(pid) == ["/dev/null", "/dev/null", str(log)], descriptors(pid)
        assert os.getsid(pid) == pid and pidfile.read_text() == f"{pid}\n"
        assert log.stat().st_mode & 0o777 == 0o640 and DATED.match(log.read_text())
        assert log.read_text().endswith("info: ready\n"), log.read_text()
        log.rename(folder / "log.1")
        os.kill(pid, signal.SIGHUP)
        weft.wait_until(log.exists, "the log to be opened again")
        weft_run("ctl", "--control", folder / "control.sock", "namespace-add", "backend=mem:2M")
        assert "mem:2M" in log.read_text() and "mem:2M" not in (folder / "log.1").read_text()
        os.kill(pid, signal.SIGTERM)
        weft.wait_until(lambda: log.read_text().endswith("stopped\n"), "it to end")
        weft.wait_until(lambda: not pidfile.exists(), "its pid to go")

@tap.case("--detach without --log-file: a file keeps the log, a pipe or a terminal does not hold it")
def _():
    with in_background() as (_, pid, told):
        assert descriptors(pid) == ["/dev/null"] * 3, descriptors(pid)
        assert "the log is not kept; --log-file FILE keeps it" in told, told
    with tempfile.NamedTemporaryFile() as log:
        with in_background(stderr=log) as (_, pid, _):
            assert descriptors(pid)[2] == log.name, descriptors(pid)
        assert b"SIGTERM: stopping" in pathlib.Path(log.name).read_bytes()


@tap.case("--log-file and --pidfile that cannot be made: it does not start")
def _():
    with tempfile.TemporaryDirectory() as folder:
        for option in ("--log-file", "--pidfile"):
            for path, why in ((folder, "not a regular file"),
                              (f"{folder}/no/where", f"there is no folder {folder}/no;")):
                said(serve("--ns", "mem:1M", "--listen", weft.ANY_PORT, option, path), FAILED,
                     f"{option} {path}", why)
        pidfile = pathlib.Path(folder, "pid")
        for text in (None, "1\n"):                  # of a start that fails nothing is left
            if text:
                pidfile.write_text(text)
            said(serve("--listen", weft.ANY_PORT, "--ns", "file:/nonexistent/a", "--pidfile",
                       pidfile, "--log-file", f"{folder}/log"), FAILED, "/nonexistent/a")
            assert pidfile.exists() == bool(text) and (not text or pidfile.read_text() == text)
            assert "/nonexistent/a" in pathlib.Path(folder, "log").read_text()


@with_target("a takeover: the pid of the new process, which the old one does not take away")
def _(t):
    t.stop()
    t.extra = ["--pidfile", str(t.dir / "pid")]
    t.start()
    for _ in range(2):
        assert (t.dir / "pid").read_text() == f"{t.process.pid}\n"
        t.takeover()
    assert (t.dir / "pid").read_text() == f"{t.process.pid}\n"


def with_pidfile(name):
    """Register body(target, its pid file) as a case."""
    def add(body):
        @with_target(name)
        def _(t):
            t.stop()
            t.extra = ["--pidfile", str(t.dir / "pid")]
            body(t.start(), t.dir / "pid")
        return body
    return add


@with_pidfile("a takeover: the pid file is there all the time, under whatever name it is known")
def _(t, pidfile):
    old, steps = t.process, []
    (t.dir / "same").symlink_to(".")

    def seen(doc):
        steps.append(doc["step"])
        if doc["step"] == "go":                     # from now on the old process may not touch it
            assert old.wait(30) == 0
        assert pidfile.read_text() == f"{old.pid}\n", steps

    with takeover.Relay(t.dir / "relay.sock", t, seen):
        t.process = t.spawn("--takeover", "--control", t.dir / "relay.sock", "--pidfile",
                            t.dir / "same" / "pid")
        weft.wait_until(lambda: pidfile.read_text() == f"{t.process.pid}\n", "the new pid")
    assert steps[-1] == "go", steps


@with_pidfile("a takeover by a process that has no pid file, or another one: the old one goes")
def _(t, pidfile):
    other = t.dir / "other"
    other.touch()
    with takeover.Heir(t) as heir:
        takeover.dies_ready(heir)
    takeover.said(t, "takeover given up")
    assert pidfile.read_text() == f"{t.process.pid}\n", "nobody has taken over"
    for words in ({}, {"pidfile": f"{other.stat().st_dev}:{other.stat().st_ino}"}, {"pidfile": 5}):
        with takeover.Heir(t) as heir:
            heir.prepare()
            heir.freeze()
            heir.step("ready", **words)
            heir.expect("go")
            assert t.process.wait(30) == 0
        assert not pidfile.exists() and other.exists(), words
        t.start()


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
