#!/usr/bin/python3
"""host_hostile.py - what reviews found in the host library, one case for each: it stays found.

A small program, host_hostile/driver.c, uses the library; the scripted target does what once went
wrong. What a unit test can show is in tests/unit: test_reactor (doze), test_link (CID FFFFh),
test_host (Compare and Write on a queue of one slot)."""
import array
import atexit
import contextlib
import errno
import fcntl
import functools
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command
import nvme
import tap
import weft
from fixture import with_target
from target import Namespace, Silence, Target, normally
from weft import wait_until

SOURCE = pathlib.Path(__file__).with_suffix("") / "driver.c"
HASTY = dict(reconnect_delay="20ms", reconnect_delay_max="50ms")
DESCRIPTORS, NVM_LIMITS = 3, 6              # CNS
INTERNAL, SEQUENCE_ERROR, NOT_READY = 0x06, 0x0C, 0x82


@functools.cache
def driver():
    """The program, compiled against the library that was built with the weft under test."""
    build = pathlib.Path(weft.BINARY).resolve().parent
    if not (build / "libweft.so").exists():
        tap.skip(f"there is no libweft.so beside {weft.BINARY}")
    if not shutil.which("cc"):
        tap.skip("there is no C compiler")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-hostile-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-I", weft.ROOT / "include", SOURCE,
                    "-o", folder / "driver", "-L", build, "-lweft", f"-Wl,-rpath,{build}"],
                   check=True, timeout=60)
    return folder / "driver"


class Driver:
    """It at work: what it says, line by line. The limit of the case bounds every wait."""

    def __init__(self, word, uri):
        self.process = subprocess.Popen([driver(), word, uri], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def line(self):
        return self.process.stdout.readline().rstrip("\n")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        """It ends well; what it still had to say."""
        rest = self.process.stdout.read()
        code = self.process.wait(30)
        assert code == 0, f"exit status {code}: {rest}"
        return rest.strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(30)
        self.process.stdin.close()
        self.process.stdout.close()


class Reader(Driver):
    """Reads of two namespaces, or by two queues; says what came of one, and then the events since the last."""

    def __init__(self, word, target, **words):
        super().__init__(word, target.uri(**HASTY | words))
        assert self.line() == "ready"

    def ask(self, which):
        self.process.stdin.write(f"{which}\n")
        self.process.stdin.flush()

    def said(self):
        return list(iter(self.line, "."))

    def read(self, which):
        self.ask(which)
        return self.said()

    def quit(self):
        self.ask("q")
        self.end()


def says(word, uri):
    """All that it says."""
    with Driver(word, uri) as program:
        return program.end()


def is_io(cmd):
    return cmd.dw(10) >> 16


def count(target, name):
    return sum(what == name for _, what in target.commands)


def cut(target):
    for conn in list(target.connections):
        conn.close()


# --- data

def unread(sock):
    """Bytes that have arrived and nobody has taken."""
    count = array.array("i", [0])
    fcntl.ioctl(sock, termios.FIONREAD, count)
    return count[0]


def settled(sock):
    """As many as will come while nobody reads."""
    def same():
        before = unread(sock)
        time.sleep(0.3)
        return before if before == unread(sock) else 0
    return wait_until(same, "nothing more to arrive")


def drain(sock):
    """How many bytes still come."""
    total, buf = 0, bytearray(1 << 16)
    sock.settimeout(20)
    with contextlib.suppress(ConnectionResetError):
        while got := sock.recv_into(buf):
            total += got
    return total


class Deaf:
    """The first I/O queue of a target takes no more in after its Connect."""

    def __init__(self):
        self.sock, self.over = None, threading.Event()

    def connect(self, conn, cmd):
        normally(conn, "connect", cmd)
        if is_io(cmd) and not self.sock:
            del conn.ctrl.queues[conn.qid]      # what the host ends, it does not notice
            self.sock = socket.socket(fileno=os.dup(conn.sock.fileno()))
            self.over.wait(60)
            raise OSError


@tap.case("after a reset, what was written before it does not arrive any more")
def _():
    deaf = Deaf()
    with Target(connect=lambda *a: deaf.connect(*a)) as t:
        t.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with Driver("stale", t.uri(queues=1, kato="3s", **HASTY)) as program:
            wait_until(lambda: deaf.sock and unread(deaf.sock), "the first write")
            settled(deaf.sock)
            program.go_on()
            assert program.line() == "written"
            arrived = unread(deaf.sock)
            late = drain(deaf.sock) - arrived
            assert late <= 0, f"{late} bytes of old writes come after the new ones are written"
            assert t.namespaces[1].data[:8192] == b"N" * 8192
            program.go_on()
            program.end()
        deaf.over.set()
        deaf.sock.close()


@tap.case("a write that waits does not reach the namespace that replaced its own")
def _():
    replaced, again = threading.Event(), threading.Event()

    def identified(conn, cns, nsid):
        data = normally(conn, "identified", cns, nsid)
        if cns == DESCRIPTORS and replaced.is_set():
            return data[:4] + b"\x77" * 16 + data[20:]
        return data

    def connect(conn, cmd):
        if replaced.is_set():
            again.wait(60)
        normally(conn, "connect", cmd)

    with Target(identified=identified, connect=connect) as t:
        with Driver("waiting-write", t.uri(**HASTY)) as program:
            assert program.line() == "ready"
            t.namespaces[1] = Namespace(b"\xEE" * (1 << 20))
            replaced.set()
            cut(t)
            assert program.line() == "waits"
            again.set()
            assert program.line().startswith(f"{-errno.ESTALE} ")
            program.end()
        assert not any(name == "write" for _, name in t.commands), t.commands
        assert t.namespaces[1].data == b"\xEE" * (1 << 20)


# --- the descriptor of a queue

@with_target("weft_queue_fd() stays quiet only while there is nothing to do", ns=["null:1G"])
def _(t):
    assert says("loop", command.uri(t)) == "all done"


@tap.case("weft_queue_fd() tells of what one poll did not take in")
def _():
    with Target() as t:
        assert says("scatter", t.uri()) == f"0 {sum(t.namespaces[1].data[:4096 * 32])}"


for word, when in (("fd-first", "before the command"), ("fd-late", "after the command left")):
    @tap.case(f"weft_queue_fd(), called {when}, tells of a time-out")
    def _(word=word):
        with Target(read=lambda conn, cmd: None) as t:
            uri = t.uri(io_timeout="300ms", abort_timeout="300ms", **HASTY)
            said = says(word, uri)
            assert said.startswith(f"{-errno.ETIMEDOUT} "), said


# --- connections

@tap.case("loss_timeout holds when only the admin queue comes back")
def _():
    lost = threading.Event()

    def connect(conn, cmd):
        if is_io(cmd) and lost.is_set():
            raise Silence
        normally(conn, "connect", cmd)

    def read(conn, _cmd):
        lost.set()
        cut(conn.target)

    with Target(connect=connect, read=read) as t:
        uri = t.uri(nsid=1, loss_timeout="2s", connect_timeout="1500ms", **HASTY)
        command.fails("read", uri, "--length", "4096", words=["127.0.0.1"], limit_s=50)


@tap.case("weft_queue_close() does not wait for an answer to Connect")
def _():
    connects = []

    def connect(conn, cmd):
        if is_io(cmd):
            connects.append(cmd)
            if len(connects) > 1:
                raise Silence
        normally(conn, "connect", cmd)

    with Target(connect=connect) as t:
        with Driver("close-early", t.uri(connect_timeout="10m", **HASTY)) as program:
            wait_until(lambda: len(connects) > 1, "the second Connect")
            program.go_on()
            assert program.end() == "closed"


# A reader's second queue finds no room any more. Its Connect is not even sent, or is refused.

def fewer(t):
    t.queues_max = 1


def refuse_the_second(conn, cmd):
    if is_io(cmd) == 2 and conn.target.queues_max == 1:
        return conn.complete(cmd, 0x181, dnr=0)         # busy
    return normally(conn, "connect", cmd)


def refuses(t):
    """It allows two, and has one."""
    normally_allows = t.queues_max
    t.queues_max = 1
    t.script["set_features"] = lambda conn, cmd: conn.complete(
        cmd, dw0=(normally_allows - 1) * 0x10001 if cmd.dw(10) & 0xFF == 7 else 0)


for how, begin, why in (("allowed", fewer, "the controller allows only 1 queues now"),
                        ("connected", refuses, "Connect: .*busy")):
    @tap.case(f"a queue that is not {how} any more costs the others nothing; its I/O ends in time")
    def _(begin=begin, why=why):
        with Target(queues_max=2, connect=refuse_the_second) as t, \
                Reader("read-by-both", t, loss_timeout="20s", connect_timeout="20s") as reader:
            begin(t)
            cut(t)
            assert reader.read(1)[0] == "0 "
            associations = count(t, "property_set")
            said = reader.read(2)
            assert int(said[0].split()[0]) in (-errno.EUSERS, -errno.ENOTCONN), said
            assert any(re.search(f"event: .*I/O queue 2: {why}", line) for line in said), said
            assert reader.read(1)[0] == "0 "
            assert count(t, "property_set") == associations, "it cost the association"
            assert int(reader.read(2)[0].split()[0]) < 0
            t.queues_max = 2
            t.script.pop("set_features", None)
            cut(t)
            wait_until(lambda: reader.read(2)[0] == "0 ", "a queue")
            reader.quit()


@tap.case("an association that has a connection for no queue is made anew")
def _():
    associations = []

    def connect(conn, cmd):
        if not is_io(cmd):
            associations.append(cmd)
        elif len(associations) == 2:
            return conn.complete(cmd, nvme.CONNECT_PARAM, dw0=1 << 16 | 16)
        return normally(conn, "connect", cmd)

    with Target(connect=connect) as t, Reader("read-by-both", t) as reader:
        cut(t)
        said = reader.read(1)
        assert said[0] == "0 " and len(associations) == 3, (said, associations)
        reader.quit()


def reopened(queues, refuse):
    """What `reopen` says, and the ids of the I/O queues in the order of their Connects; every
    second one is refused if `refuse`."""
    qids = []

    def connect(conn, cmd):
        if not is_io(cmd):
            return normally(conn, "connect", cmd)
        qids.append(is_io(cmd))
        if refuse and len(qids) % 2 == 0:
            return conn.complete(cmd, SEQUENCE_ERROR)   # Linux: "has already been created"
        wait_until(lambda: not conn.target.controllers[1].queues, "the last one to leave")
        normally(conn, "connect", cmd)

    with Target(connect=connect, queues_max=queues) as t:
        return says("reopen", t.uri()), qids


@tap.case("a queue opens although the target has not yet forgotten the last one of its id")
def _():
    said, qids = reopened(1, refuse=True)
    assert said == "0 0" and len(qids) == 9, (said, qids)


@tap.case("a queue that was closed is not the first to be opened again")
def _():
    said, qids = reopened(4, refuse=False)
    assert said == "0 0" and qids == [1, 2, 3, 4, 1], (said, qids)


@tap.case("a refused Keep Alive does not cost the association")
def _():
    refused, connects = [], []

    def keep_alive(conn, cmd):
        refused.append(cmd)
        conn.complete(cmd, nvme.INVALID_OPCODE)

    def connect(conn, cmd):
        connects.append(cmd)
        normally(conn, "connect", cmd)

    with Target(kas=0, keep_alive=keep_alive, connect=connect) as t:
        with Driver("idle", t.uri(nqn="", kato="200ms", **HASTY)) as program:
            wait_until(lambda: refused, "a Keep Alive")
            program.go_on()
            assert program.end() == "0"
        assert len(connects) == 1, f"{len(connects)} associations"


@tap.case("an admin command while the connection is being ended waits for the next")
def _():
    """The target completes a command that nobody sent, and is slow to hear what is said of it."""
    asked = []

    def identify(conn, cmd):
        asked.append(cmd)
        normally(conn, "identify", cmd)
        if len(asked) == 20:
            conn.completion(0xFFFE)
            wait_until(lambda: len(conn.target.connections) > 1, "another connection")

    with Target(identify=identify) as t:
        assert says("ask-until-reconnected", t.uri(**HASTY)) == "reconnected"


# --- commands

@tap.case("a descriptor list that is refused for now does not make a namespace another one")
def _():
    lists = []

    def identify(conn, cmd):
        if cmd.dw(10) & 0xFF == DESCRIPTORS:
            lists.append(cmd)
            if len(lists) == 2:
                return conn.complete(cmd, INTERNAL, dnr=0)
        normally(conn, "identify", cmd)

    with Target(identify=identify) as t:
        with Driver("read-after-reset", t.uri(**HASTY)) as program:
            wait_until(lambda: len(lists) > 1, "the namespace to be looked at again")
            program.go_on()
            assert program.end() == "0"


class Refused:
    """Namespace 2 cannot be identified while `times` are left of a refusal."""

    def __init__(self, cns, dnr=0):
        self.cns, self.dnr, self.times, self.looks = cns, dnr, 0, []

    def identify(self, conn, cmd):
        if cmd.nsid == 2 and cmd.dw(10) & 0xFF == self.cns:
            self.looks.append(cmd)
            self.times -= 1
            if self.times >= 0:
                return conn.complete(cmd, INTERNAL, dnr=self.dnr)
        return normally(conn, "identify", cmd)

    def await_looks(self, more):
        wanted = len(self.looks) + more
        wait_until(lambda: len(self.looks) >= wanted, "it to be looked at")

    def read(self, conn, cmd):
        assert cmd.nsid == 1 or self.times <= 0, "a read of what nobody knows"
        normally(conn, "read", cmd)

    def target(self):
        t = Target(identify=self.identify, read=self.read)
        t.namespaces[2] = Namespace(nvme.pattern(2, 1 << 20))
        return t


FOR_EVER = 1 << 40
NOT_KNOWN = "namespace 2 cannot be used: Identify Namespace: internal error"
AGAIN = "namespace 2 can be used again"
for when, change in {"after a reset": cut, "after an event": lambda t: t.event(2, 0, 4)}.items():
    for cns, what in ((0, "Identify"), (DESCRIPTORS, "descriptor list")):
        @tap.case(f"a namespace whose {what} is refused {when} is the only one that waits")
        def _(change=change, cns=cns):
            refused = Refused(cns)
            with refused.target() as t, Reader("read-both", t) as reader:
                refused.times = FOR_EVER
                change(t)
                refused.await_looks(3)
                associations = count(t, "property_set")
                said = reader.read(1)
                assert said[0] == "0 " and any(NOT_KNOWN in line for line in said), said
                reader.ask(2)
                refused.await_looks(2)
                refused.times = 0
                said = reader.said()
                assert said[0] == "0 ", said
                wait_until(lambda: any(AGAIN in line for line in said + reader.read(1)), "an event")
                assert count(t, "property_set") == associations, "it cost the association"
                reader.quit()


@tap.case("… its I/O does not wait for ever")
def _():
    refused = Refused(0)
    with refused.target() as t, Reader("read-both", t) as reader:
        refused.times = FOR_EVER
        cut(t)
        said = reader.read(2)[0]
        assert said.startswith(f"{-errno.EIO} ") and "internal error" in said, said
        reader.quit()


@tap.case("… nor at all if that is for good, and says why; it is looked at again, at leisure")
def _():
    refused = Refused(0, dnr=1)
    with refused.target() as t, Reader("read-both", t) as reader:
        refused.times = FOR_EVER
        cut(t)
        refused.await_looks(1)
        assert reader.read(1)[0] == "0 "
        said = reader.read(2)[0]
        assert said.startswith(f"{-errno.EIO} Read of 4096 bytes at 0: ") and \
            "Identify Namespace: internal error" in said, said
        looks = len(refused.looks)
        begun = time.monotonic()
        time.sleep(3)
        most = 10 + 5 * (time.monotonic() - begun)
        assert len(refused.looks) - looks <= most, f"{len(refused.looks) - looks} looks"
        refused.times = 0
        wait_until(lambda: reader.read(2)[0] == "0 ", "it to be usable again")
        reader.quit()


@tap.case("a path that is not there for now is tried again")
def _():
    statuses = [0x300, 0x301, 0x302, 0x303]

    def read(conn, cmd):
        if statuses:
            conn.complete(cmd, statuses.pop(0), dnr=0)
        else:
            normally(conn, "read", cmd)

    with Target(read=read) as t:
        got = command.done("read", t.uri(nsid=1), "--length", "4096")
        assert got == t.namespaces[1].data[:4096] and not statuses


def written(status, words):
    """How often a write is sent that is answered like this the first time, and what comes of it."""
    writes = []

    def write(conn, cmd):
        writes.append(cmd)
        if len(writes) == 1:
            return conn.complete(cmd, status, dnr=0)
        normally(conn, "write", cmd)

    with Target(write=write) as t:
        result = command.run("write", t.uri(nsid=1, **words), stdin=bytes(4096))
    return len(writes), result.returncode, result.stderr


for name, status, times in (("broken off is not sent again", 0x300, 1),
                            ("refused is", NOT_READY, 2)):
    @tap.case(f"resend=never: a write that was {name}")
    def _(status=status, times=times):
        assert written(status, {})[:2] == (2, command.OK)
        sent, code, err = written(status, dict(resend="never"))
        assert sent == times and code == (command.FAILED if times == 1 else command.OK), err


@tap.case("a raw command may bring less than its memory holds; the rest is zeroes, not what was there")
def _():
    def unknown(conn, cmd):
        assert cmd.opcode == 0x0E
        conn.c2hdata(cmd.cid, 0, bytes(24))     # Reservation Report without registrants
        conn.complete(cmd)

    with Target(unknown=unknown) as t:
        assert says("raw-short", t.uri()) == "0 0, 0 old bytes, 4096 beyond"


@tap.case("no range of a deallocation is longer than DMRSL")
def _():
    ranges = []

    def identified(conn, cns, nsid):
        if cns == NVM_LIMITS:
            return struct.pack("<BBBBIQ", 0, 0, 1, 0, 256, 256).ljust(4096, b"\0")
        return normally(conn, "identified", cns, nsid)

    def dsm(conn, cmd):
        assert cmd.dw(10) & 0xFF == 0, "one range"
        ranges.append(struct.unpack_from("<4xIQ", cmd.out))
        conn.complete(cmd)

    with Target(identified=identified, dsm=dsm) as t:
        assert says("trim", t.uri()) == "0"
    assert sorted(start for _, start in ranges) == [0, 256, 512, 768], ranges
    assert all(blocks == 256 for blocks, _ in ranges), ranges


def lost_with_its_connection(name, word, step, cuts, times):
    """An admin command that breaks the connection CUTS times is sent TIMES in all."""
    @tap.case(name)
    def _():
        asked = []

        def cut_off(conn, cmd):
            if cmd.dw(10) & 0xFF == 6:
                asked.append(cmd)
                if len(asked) <= cuts:
                    conn.reset()
            normally(conn, step, cmd)

        with Target(**{step: cut_off}) as t:
            outcome = says(word, t.uri(**HASTY))
        assert len(asked) == times, f"{len(asked)} of them; {outcome}"
        assert outcome.startswith("0") == (times > cuts), outcome
        assert times > cuts or int(outcome.split()[0]) == -errno.ECONNRESET, outcome


@contextlib.contextmanager
def two_paths(**script):
    """Two targets with one disk, and a URI of both; a write waits until both have I/O queues."""
    def write(conn, cmd):
        wait_until(lambda: all(any(c.qid for c in t.connections) for t in both), "both paths")
        normally(conn, "write", cmd)

    with Target(write=write, **script) as a, Target(write=write, **script) as b:
        both = a, b
        b.namespaces = a.namespaces
        yield both, f"{a.uri()},{b.uri(**HASTY)}"


@tap.case("a flush covers what others wrote, through the same controllers")
def _():
    with two_paths() as (both, uri):
        assert says("flush-for-another", uri) == "0"
        assert all(count(t, "write") and count(t, "flush") == 1 for t in both), \
            [t.commands for t in both]


@tap.case("what a controller has failed to flush it is asked to flush again, and the other is not")
def _():
    failed = []

    def flush(conn, cmd):
        if failed or conn.target is both[0]:
            return normally(conn, "flush", cmd)
        failed.append(cmd)
        conn.complete(cmd, nvme.WRITE_FAULT)

    with two_paths(flush=flush) as (both, uri):
        assert says("flush-twice", uri).split() == [str(-errno.EIO), "0"]
        assert [count(t, "flush") for t in both] == [1, 2], [t.commands for t in both]


for nmic in (1, 0):
    @tap.case(f"a flush by a queue that a path with unflushed writes has no connection for, NMIC {nmic}")
    def _(nmic=nmic):
        with two_paths(nmic=nmic, queues_max=2) as (both, uri), Driver("flush-by-second", uri) as program:
            assert program.line() == "ready"
            both[0].queues_max = 1
            before = count(both[0], "connect")
            cut(both[0])
            wait_until(lambda: count(both[0], "connect") == before + 2, "the path, with one queue")
            program.go_on()
            second, why, first = program.end().splitlines()
            assert int(second) == -errno.EUSERS and "I/O queue 2" in why, (second, why)
            assert first == "0" and all(count(t, "write") and count(t, "flush") for t in both), \
                [t.commands for t in both]


for nmic, wanted in ((1, [0, 0]), (0, [-errno.ENOTRECOVERABLE] * 2)):
    @tap.case(f"a flush after a path with unflushed writes was removed, NMIC {nmic}")
    def _(nmic=nmic, wanted=wanted):
        with two_paths(nmic=nmic) as (both, uri):
            with Driver("flush-without-path", uri) as program:
                wait_until(lambda: count(both[0], "write") and not both[0].controllers,
                           "the path to be gone")
                program.go_on()
                said = program.end()
            assert all(count(t, "write") for t in both)
            assert [int(line) for line in said.split()] == wanted, said


lost_with_its_connection("Set Features that loses its connection is not sent again", "set-feature",
                         "set_features", 1, 1)
lost_with_its_connection("… Get Features is", "get-feature", "get_features", 2, 3)
lost_with_its_connection("… but not for ever", "get-feature", "get_features", 9, 3)


COPY_BLOCKS = 16 * 4096 // 512


def copied_in_part(name, refused, times):
    """Copy in two pieces, of which the second is refused: TIMES it is sent in all."""
    @tap.case(name)
    def _():
        copies = []

        def identified(conn, cns, nsid):
            data = normally(conn, "identified", cns, nsid)
            if cns == 1:
                struct.pack_into("<H", data, 520, 0x10D)    # ONCS: Copy, too
            if cns == 0:                                    # MSSRL, MCL, MSRC
                struct.pack_into("<HIB", data, 74, COPY_BLOCKS // 2, COPY_BLOCKS // 2, 0)
            return data

        def piece(conn, cmd):
            copies.append(cmd)
            conn.complete(cmd, 0 if len(copies) not in refused else NOT_READY, dnr=0)

        with Target(identified=identified, unknown=piece) as t:
            outcome = says("copy", t.uri(queues=1))
        assert len(copies) == times, f"{len(copies)} pieces; {outcome}"
        assert outcome.startswith("0 ") == (times > 2), outcome


copied_in_part("a Copy that is done in part is not sent again", {2}, 2)
copied_in_part("… one of which nothing was done is", {1, 2}, 4)


sys.exit(tap.run())
