"""servers.py - what is under load: our target, the bare server, one that somebody else started.

Only the one whose turn it is runs. The others are stopped (SIGSTOP), so that one that polls without
end takes no CPU from them; a peer whose process is not known is taken to be on another machine.
"""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

import cases
import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
NQN = "nqn.2026-11.io.weft:bench"
SERVER_CPU, CLIENT_CPU = 0, 1


class Failed(Exception):
    """Something that was started did not do what it should; the text says what."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(cpu, command):
    return ["taskset", "-c", str(cpu), *map(str, command)]


class Server:
    """@spaces: {kind of namespace: (nqn, nsid)}; a kind that is not there is not measured."""

    def __init__(self, name, host, port, spaces, pid=None):
        self.name, self.host, self.port = name, host, port
        self.spaces, self.pid = dict(spaces), pid

    def uri(self, space):
        nqn, nsid = self.spaces[space]
        return f"nvme+tcp://{self.host}:{self.port}/{nqn}?nsid={nsid}"

    def signal(self, number):
        if self.pid:
            os.kill(self.pid, number)

    @contextlib.contextmanager
    def turn(self):
        self.signal(signal.SIGCONT)
        try:
            yield
        finally:
            self.signal(signal.SIGSTOP)

    def cpu_seconds(self):
        return machine.cpu_seconds(self.pid) if self.pid else None

    def resident_mib(self):
        return machine.memory_mib(self.pid) if self.pid else None

    def begin(self):
        self.signal(signal.SIGSTOP)

    def end(self):
        self.signal(signal.SIGCONT)


class Started(Server):
    """One that is started here, on its CPU; without one it may use all."""

    def __init__(self, name, port, spaces, command, cpu=SERVER_CPU):
        super().__init__(name, "127.0.0.1", port, spaces)
        self.command, self.process = list(map(str, command)), None
        if cpu is not None:
            self.command = pinned(cpu, command)
        self.log = tempfile.TemporaryFile("w+")

    def begin(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                        stderr=self.log)
        self.pid = self.process.pid
        self.wait_listening()
        super().begin()

    def wait_listening(self):
        for _ in range(300):
            if self.process.poll() is not None:
                self.log.seek(0)
                raise Failed(f"{self.name} did not start: {self.log.read()[-500:]}")
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port)):
                return
            time.sleep(0.1)
        raise Failed(f"{self.name} does not listen")

    def end(self):
        if not self.process or self.process.poll() is not None:
            return
        super().end()
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def weft_argv(port, folder, program=BUILD / "weft"):
    return [program, "serve", "--listen", f"nvme+tcp://127.0.0.1:{port}",
            "--cpus", SERVER_CPU,
            "--control", os.path.join(folder, f"{port}.sock")]


def weft(name, folder, specs, words=(), program=BUILD / "weft"):
    """Our target. @specs: {kind of namespace: SPEC}; @words: more words of `weft serve`."""
    port = free_port()
    command = [*weft_argv(port, folder, program), "--nqn", NQN, *words]
    for nsid, spec in enumerate(specs.values(), 1):
        command += ["--ns", f"{spec},nsid={nsid}"]
    return Started(name, port, {space: (NQN, nsid) for nsid, space in enumerate(specs, 1)}, command)


def weft_in_memory(folder, size):
    return weft("weft", folder, {cases.MAIN: cases.SPACES[cases.MAIN].format(size=size)})


def bare():
    """It has no namespaces: the kind that all is compared on stands for them."""
    port = free_port()
    return Started("bare", port, {cases.MAIN: ("", 0)}, [BUILD / "bench" / "bare", port])


def peer(name, uris, pid):
    """@uris: {kind of namespace: URI}, all at one address."""
    spaces = {}
    for space, uri in uris.items():
        parts = urllib.parse.urlsplit(uri)
        nsid = urllib.parse.parse_qs(parts.query).get("nsid", ["1"])[0]
        spaces[space] = (parts.path.lstrip("/"), int(nsid))
    return Server(name, parts.hostname, parts.port or 4420, spaces, pid)


@contextlib.contextmanager
def running(servers):
    """All of them begun, whatever happens ended."""
    begun = []
    try:
        for server in servers:
            begun.append(server)
            server.begin()
        yield
    finally:
        for server in begun:
            server.end()
