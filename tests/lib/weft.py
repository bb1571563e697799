"""weft.py - the real binary under test: start it, talk to its control socket, stop it, look at it.

    with Target(ns=["mem:64M"]) as t:
        t.addr, t.nqn           where hosts connect
        t.ctl("status")         JSON-RPC over the control socket

Leaving the block stops the target, and fails if it had died or a sanitizer spoke. A target that
cases share is looked at after each of them, see tap.watch()."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

import tap

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("WEFT", str(ROOT / "build" / "weft"))
ENGINE = os.environ.get("WEFT_ENGINE", "uring")
NQN = "nqn.2026-11.io.weft:test"
ANY_PORT = "nvme+tcp://127.0.0.1:0"
SANITIZER = re.compile(r"ERROR: AddressSanitizer|runtime error:|WARNING: ThreadSanitizer|"
                       r"LeakSanitizer")


class CtlError(Exception):
    pass


def ended(code):
    """An exit status in words."""
    return f"exit status {code}" if code >= 0 else signal.Signals(-code).name


def wait_until(condition, what, timeout=60):
    """Poll until `condition()` is true; its value is returned."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, f"timed out: {what}"
        time.sleep(0.02)
    return value


def free_port():
    """For a target that comes back at the same address: the kernel gives it to nobody meanwhile."""
    while True:
        port = random.randrange(10000, 32000)
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            return port


def address(uri):
    """nvme+tcp://HOST:PORT/… as a socket address."""
    parts = urllib.parse.urlsplit(uri)
    return parts.hostname, parts.port


class Target:
    """`config` is YAML text (the control socket and a loopback listener are added) or a Path.
    In `ns` and `config`, {dir} is the directory of this target."""

    def __init__(self, ns=("mem:64M",), engine=ENGINE, extra=(), config=None, nqn=NQN, wrap=(),
                 env=None):
        self.ns, self.engine, self.extra, self.nqn = list(ns), engine, list(extra), nqn
        self.wrap, self.env = list(wrap), env
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="weft-"))
        self.control, self.log = self.dir / "control.sock", self.dir / "stderr"
        self.config = self.write_config(config) if isinstance(config, str) else config
        self.process, self.died = None, False

    def write_config(self, text):
        if "listen:" not in text:
            text = f'listen: [ "{ANY_PORT}" ]\n{text}'
        text = text.replace("{dir}", str(self.dir))
        path = self.dir / "weft.yaml"
        path.write_text(f"control: {self.control}\n{text}")
        return path

    def argv(self):
        argv = [*self.wrap, BINARY, "serve", "--engine", self.engine]
        if self.config:
            return argv + ["-c", str(self.config)] + self.extra
        argv += ["--listen", ANY_PORT, "--control", str(self.control), "--nqn", self.nqn]
        for spec in self.ns:
            argv += ["--ns", spec.replace("{dir}", str(self.dir))]
        return argv + self.extra

    def spawn(self, *extra):
        with open(self.log, "ab") as log:
            return subprocess.Popen([*self.argv(), *extra], stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, env=self.env and os.environ | self.env)

    def takeover(self):
        """A new process takes this one's place."""
        old, self.process = self.process, self.spawn("--takeover")
        code = old.wait(60)
        assert code == 0, f"exit status {code} after a takeover:\n{self.log.read_text()}"
        wait_until(lambda: self.answer()["pid"] == self.process.pid, "the new process to answer")

    def start(self):
        self.process = self.spawn()
        status = wait_until(self.answer, "the control socket to answer")
        self.addr = address(status["listeners"][0]["uri"])
        return self

    def answer(self):
        assert self.process.poll() is None, \
            f"the target ended: {ended(self.process.returncode)}; its log:\n{self.log.read_text()}"
        try:
            return self.ctl("status")
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    def ask(self, method, **params):
        """ctl() in two steps: call what this returns for the answer."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(60)
        sock.connect(str(self.control))
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        sock.sendall(json.dumps(request).encode() + b"\n")
        return lambda: self.answered(sock)

    @staticmethod
    def answered(sock):
        with sock:
            reply = json.loads(sock.makefile().readline())
        assert reply["id"] == 1 and reply["jsonrpc"] == "2.0", reply
        if "error" in reply:
            raise CtlError(reply["error"]["message"])
        return reply["result"]

    def ctl(self, method, **params):
        return self.ask(method, **params)()

    def subsystem(self, nqn=None):
        return next(s for s in self.ctl("status")["subsystems"] if s["nqn"] == (nqn or self.nqn))

    def controllers(self):
        """Every controller of every subsystem, as `status` shows them."""
        return [c for s in self.ctl("status")["subsystems"] for c in s["controllers"]]

    def proc(self, name):
        return pathlib.Path(f"/proc/{self.process.pid}/{name}")

    def fds(self):
        return len(list(self.proc("fd").iterdir()))

    def rss_kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", self.proc("status").read_text())[1])

    def cpu_s(self):
        fields = self.proc("stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def sanitized(self):
        return bool(re.search(r"lib[at]san", self.proc("maps").read_text()))

    def last_lines(self, most=20):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-most:])

    def death(self, failed=False):
        """How it died and its last lines, told once; "" while it lives, or if the test ended it.
        A target that made a case fail may take a moment to be dead: it dumps core, or a sanitizer
        writes its report. Until then it does not answer."""
        if self.process.returncode is not None or self.died:
            return ""
        if failed and not self.answers():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        code = self.process.poll()
        self.died = code is not None
        return f"target died: {ended(code)}, last lines:\n{self.last_lines()}" if self.died else ""

    def answers(self):
        with contextlib.suppress(OSError, ValueError):      # refused, cut off, hung up
            return bool(self.ctl("status"))
        return False

    def finish(self, sig):
        self.process.send_signal(sig)
        return self.process.wait(60)

    def stop(self):
        code = self.finish(signal.SIGTERM)
        self.check_log()
        assert code == 0, f"exit status {code} after SIGTERM:\n{self.log.read_text()}"

    def kill9(self):
        self.finish(signal.SIGKILL)

    def check_log(self):
        text = self.log.read_text(errors="replace")
        assert not SANITIZER.search(text), text

    def clean(self):
        if self.process and self.process.poll() is None:
            self.kill9()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.clean()
            raise
        tap.watch(self.death)
        return self

    def __exit__(self, kind, *_):
        tap.unwatch(self.death)
        try:
            death = self.death(failed=kind is not None)
            assert not death, death
            if self.process.returncode is None:
                self.stop()
            if not self.died:
                self.check_log()
        finally:
            self.clean()
