"""takeover.py - both ends of a takeover as scripts, to stop at any step or say something wrong.

    Channel     frames over a Unix socket: a document, bytes, descriptors
    Heir        the process that takes over, up to the step that a test wants
    Giver       a running target that hands over whatever a test wants
    Relay       stands between two real processes, and looks at each step before it passes it on
    FAILURES    what an Heir may do instead of taking over
"""
import contextlib
import json
import os
import signal
import socket
import struct
import threading

import weft

MAGIC, FORMAT = 0x74666577, 2
FDS_AT_ONCE = 250


def header(doc, data=0, fds=0, magic=MAGIC):
    return struct.pack("<4I", magic, doc, data, fds)


class Channel:
    def __init__(self, sock):
        self.sock = sock
        sock.settimeout(60)

    def send(self, doc, data=b"", fds=()):
        text = json.dumps(doc).encode()
        self.sock.sendall(header(len(text), len(data), len(fds)) + text + data)
        for at in range(0, len(fds), FDS_AT_ONCE):
            socket.send_fds(self.sock, [b"\0"], fds[at:at + FDS_AT_ONCE])

    def step(self, name, **words):
        self.send(dict(step=name, **words))

    def exactly(self, size):
        out = b""
        while len(out) < size:
            got = self.sock.recv(size - len(out))
            if not got:
                raise EOFError("the other side went away")
            out += got
        return out

    def recv(self):
        """(document, bytes, descriptors)"""
        magic, doc, data, count = struct.unpack("<4I", self.exactly(16))
        assert magic == MAGIC
        doc, data, fds = json.loads(self.exactly(doc)), self.exactly(data), []
        while len(fds) < count:
            fds += socket.recv_fds(self.sock, 1, min(count - len(fds), FDS_AT_ONCE))[1]
        return doc, data, fds

    def expect(self, step):
        doc, data, fds = self.recv()
        assert doc["step"] == step, doc
        return doc, data, fds

    def close(self):
        self.sock.close()


class Heir(Channel):
    """Calls takeover and connects; descriptors that it was given are closed with it."""

    def __init__(self, target, **params):
        name = target.ctl("takeover", **dict(format=FORMAT) | params)["socket"]
        sock = socket.socket(socket.AF_UNIX)
        sock.connect("\0" + name)
        super().__init__(sock)
        self.fds = []

    def prepare(self):
        doc, _, fds = self.expect("prepare")
        self.fds += fds
        return doc

    def freeze(self):
        self.step("freeze")
        doc, data, fds = self.expect("state")
        self.fds += fds
        return doc, data

    def close(self):
        super().close()
        for fd in self.fds:
            os.close(fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class HungHeir:
    """A process of its own that takes what it is given with the state, and then does nothing more."""

    def __init__(self, target):
        self.pid = os.fork()
        if not self.pid:
            with contextlib.suppress(BaseException):
                heir = Heir(target)
                heir.prepare()
                heir.freeze()
                while True:
                    signal.pause()
            os._exit(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def is_over(self):
        """It has ended; nobody has waited for it, so its number stays its own."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class Giver:
    """Answers one takeover call at `path` and then runs body(channel)."""

    def __init__(self, path, body):
        self.control = socket.socket(socket.AF_UNIX)
        self.control.bind(str(path))
        self.control.listen(4)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind("")      # a name that the kernel chooses
        self.name = self.listener.getsockname()[1:].decode()
        self.listener.listen(1)
        self.body, self.error = body, None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            client, _ = self.control.accept()
            request = json.loads(client.makefile().readline())
            assert request["method"] == "takeover", request
            reply = {"jsonrpc": "2.0", "id": request["id"], "result": {"socket": self.name}}
            client.sendall(json.dumps(reply).encode() + b"\n")
            sock, _ = self.listener.accept()
            with contextlib.closing(Channel(sock)) as channel:
                self.body(channel)
        except (EOFError, ConnectionError):
            pass
        except Exception as err:
            self.error = err

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.control.close()
        self.listener.close()
        self.thread.join(60)
        if kind is None and self.error:
            raise self.error


class Relay(Giver):
    """At `path`, for a process that takes over from `target`; seen(document) runs before each step
    is passed on."""

    FROM_TARGET = ("prepare", "state", "go")

    def __init__(self, path, target, seen):
        super().__init__(path, self.pass_on)
        self.target, self.seen = target, seen

    def pass_on(self, channel):
        with Heir(self.target) as heir:
            for step in ("prepare", "freeze", "state", "ready", "go"):
                ends = (heir, channel) if step in self.FROM_TARGET else (channel, heir)
                doc, data, fds = ends[0].expect(step)
                heir.fds += fds
                self.seen(doc)
                ends[1].send(doc, data, fds)


def said(target, words):
    """The log says it; from now on or already."""
    weft.wait_until(lambda: words in target.log.read_text(), f"the log to say {words!r}")


def outcome(t):
    """While the old process hands over it is silent; then it is gone, or answers again."""
    if t.process.poll() is not None:
        return "ended"
    with contextlib.suppress(OSError, ValueError):
        return t.ctl("status") and "goes on"
    return None


# ---- new processes that die, or say something wrong, at every step

def dies_connected(heir):
    pass


def dies_prepared(heir):
    heir.prepare()


def dies_while_frozen(heir):
    heir.prepare()
    heir.step("freeze")


def dies_with_the_state(heir):
    heir.prepare()
    heir.freeze()


def cannot_prepare(heir):
    heir.prepare()
    heir.step("failed", why="it does not suit me")


def cannot_build(heir):
    heir.prepare()
    heir.freeze()
    heir.step("failed", why="it does not suit me")


def is_ready_too_early(heir):
    heir.prepare()
    heir.step("ready")


def says_nonsense(heir):
    heir.prepare()
    heir.sock.sendall(bytes(16))


def says_too_much(heir):
    heir.prepare()
    heir.sock.sendall(header(0xFFFFFFFF))


def sends_half_a_frame(heir):
    heir.prepare()
    heir.sock.sendall(header(100) + b"{")


def sends_no_json(heir):
    heir.prepare()
    heir.sock.sendall(header(5) + b"hello")


def dies_ready(heir):
    """As late as can be: it is gone when "go" is sent."""
    heir.prepare()
    heir.freeze()
    heir.sock.shutdown(socket.SHUT_RD)
    heir.step("ready")


FAILURES = (dies_connected, dies_prepared, dies_while_frozen, dies_with_the_state, cannot_prepare,
            cannot_build, is_ready_too_early, says_nonsense, says_too_much, sends_half_a_frame,
            sends_no_json, dies_ready)


def end_unharmed(loads):
    """Runs of `weft bench` go on until they are told to end, and have lost no connection."""
    for load in loads:
        load.send_signal(signal.SIGINT)
    for load in loads:
        out, err = load.communicate(timeout=60)
        assert load.returncode == 0, f"{out.decode()}\n{err.decode()}"
        assert b"reconnects 0" in out and b"stopped by the user" in out, out.decode()


def kill(loads):
    for load in loads:
        if load.poll() is None:
            load.kill()
        load.communicate()
