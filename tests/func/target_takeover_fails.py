#!/usr/bin/python3
"""target_takeover_fails.py - a takeover that fails, at any step: the running target goes on."""
import array
import contextlib
import fcntl
import pathlib
import select
import signal
import socket
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command
import nvme
import sqe
import tap
import weft
from fixture import connect, refused, with_host, with_target
from nvme import pattern
from takeover import FAILURES, FORMAT, Giver, Heir, HungHeir, header, outcome, said

STORES = ["mem:16M", "file:{dir}/a.img,size=16M"]
OTHER = dict(hostid=bytes(range(50, 66)))


def works(t, ctrl, seed):
    """The old target serves: this host, another one, and the control socket."""
    for nsid in (1, 2):
        disk = ctrl.disk(nsid)
        disk.write(0, pattern(seed, 4096), capsule=True)
        disk.write(64, pattern(seed, 65536), capsule=False)
        assert disk.read(0) == pattern(seed, 4096) and disk.read(64, 16) == pattern(seed, 65536)
    with connect(t, **OTHER) as other:
        other.disk().read(0)
    assert t.ctl("status")["pid"] == t.process.pid and t.process.poll() is None


def works_in_place(ctrl):
    """Round trips through a target of one reactor: what it was sent before, it has dealt with."""
    for _ in range(8):
        ctrl.disk().read(0)


# ---- the new one dies, or says something wrong, at every step

@with_host("the new process fails at each step, and the old one goes on", 120, ns=STORES)
def _(t, ctrl):
    ctrl.set_feature(0x0B, 0x100)
    aer = ctrl.aer()
    works(t, ctrl, 0)
    fds = t.fds()
    for number, step in enumerate(FAILURES, 1):
        with Heir(t) as heir:
            step(heir)
        weft.wait_until(lambda: t.log.read_text().count("takeover given up") == number,
                        f"{step.__name__} to be given up")
        works(t, ctrl, number)
    weft.wait_until(lambda: t.fds() <= fds, f"no more than {fds} descriptors, not {t.fds()}")
    assert t.log.read_text().count("it does not suit me") == 2
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M")
    ctrl.event(aer)


@with_host("a target that is stopped: the new process says so and ends, and the old one goes on", 90,
           ns=STORES)
def _(t, ctrl):
    t.process.send_signal(signal.SIGSTOP)
    try:
        assert t.spawn("--takeover").wait(60) == 1
    finally:
        t.process.send_signal(signal.SIGCONT)
    assert "the target has not answered for 10 s; is its process stopped, or does it hang?" in t.log.read_text()
    works(t, ctrl, 1)


@with_host("kill -9 of the new process, later each time: the old one goes on until it is too late",
           120, ns=STORES)
def _(t, ctrl):
    for number in range(100):
        new = t.spawn("--takeover")
        time.sleep(number * 0.002)
        new.kill()
        new.wait()
        if weft.wait_until(lambda: outcome(t), "the old process to go on, or to end") == "ended":
            assert t.process.returncode == 0, f"the old process: {t.process.returncode}"
            tap.diag(f"it is too late after {number * 2} ms")
            return
        works(t, ctrl, number)


@with_host("the state is told whole: what a new process gets to know", ns=STORES)
def _(t, ctrl):
    queue = ctrl.open(depth=9)
    ctrl.aer()
    ctrl.get(nvme.CSTS)
    queue.sock.sendall(b"\4\0\x48")
    with Heir(t) as heir:
        running = heir.prepare()
        assert running["format"] == FORMAT and len(heir.fds) == 2
        assert [ns["nsid"] for ns in running["subsystems"][0]["namespaces"]] == [1, 2]
        doc, data = heir.freeze()
        assert len(doc["queues"]) == 2 and len(heir.fds) == 2 + 1 + 1 + 2
        sizes = {q["sqid"]: q["bytes"] for q in doc["queues"]}
        assert sizes[0] == 72, "the request for an event"
        assert sizes[1] in (0, 3) and sum(sizes.values()) == len(data)
        assert bytes.fromhex(doc["controllers"][0]["hostnqn"]).decode() == nvme.HOSTNQN
    said(t, "takeover given up")


@with_target("a caller that never connects is forgotten, at the latest by the next one")
def _(t):
    t.ctl("takeover", format=FORMAT)
    said(t, "the other process takes too long")
    for _ in range(2):
        t.ctl("takeover", format=FORMAT)
    t.takeover()
    assert t.log.read_text().count("takeover given up: another process calls") == 2


@with_host("a call that comes over an open connection waits until the target goes on",
           ns=STORES, extra=["--cpus", "0"])
def _(t, ctrl):
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(20)
        caller.connect(str(t.control))
        answers = caller.makefile()
        call_status = b'{"jsonrpc":"2.0","id":1,"method":"status"}\n'
        caller.sendall(call_status)
        answers.readline()
        with Heir(t) as heir:
            heir.prepare()
            caller.sendall(call_status)
            works_in_place(ctrl)
            assert not select.select([caller], [], [], 0)[0], "answered by who hands over"
        assert "result" in answers.readline()
    said(t, "takeover given up")


@with_target("the running target refuses: an older reader, a wrong call")
def _(t):
    for params in ({}, {"format": 0}, {"format": "1"}, {"format": FORMAT, "more": 1}):
        refused(t, "takeover", **params)
    t.takeover()


@with_host("a host that owes data for too long: refused, and it is said who", ns=STORES)
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    queue.hold = True
    owed = queue.submit(disk.command(sqe.WRITE, 0, 16), pattern(1, 65536), capsule=False)
    r2t = queue.next_r2t()
    new = t.spawn("--takeover")
    parked = queue.submit(disk.command(sqe.WRITE, 64, 1), pattern(2, 4096), capsule=True)
    assert new.wait(30) == 1
    said(t, f"takeover given up: the target does not come to rest: {nvme.HOSTNQN}: it owes")
    said(t, "takeover failed: the target does not come to rest")
    queue.hold = False
    queue.answer(r2t)
    queue.wait(owed)
    queue.wait(parked)
    assert disk.read(0, 16) == pattern(1, 65536) and disk.read(64) == pattern(2, 4096)
    works(t, ctrl, 3)
    t.takeover()
    works(t, ctrl, 4)


@with_host("a fused pair that came while the target stood still, and it goes on", ns=STORES)
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    old, new = pattern(5, 4096), pattern(6, 4096)
    disk.write(64, old)
    queue.hold = True
    owed = queue.submit(disk.command(sqe.WRITE, 0, 16), pattern(1, 65536), capsule=False)
    r2t = queue.next_r2t()
    heir = t.spawn("--takeover")
    said(t, "prepares to take over")
    time.sleep(0.5)             # it stands still for two seconds
    first = queue.submit(disk.command(sqe.COMPARE, 64, 1, fuse=1), old, capsule=True)
    second = queue.submit(disk.command(sqe.WRITE, 64, 1, fuse=2), new, capsule=True)
    assert heir.wait(30) == 1
    queue.hold = False
    queue.answer(r2t)
    for cid in (owed, first, second):
        queue.wait(cid)
    assert disk.read(64) == new


@with_host("a host that does not read its answers: refused", ns=STORES, extra=["--cpus", "0"])
def _(t, ctrl):
    queue = ctrl.open(depth=128, rcvbuf=4096)
    disk = ctrl.disk(1, queue)
    reads = [queue.submit(disk.command(sqe.READ, 0, 256), length=1 << 20) for _ in range(40)]
    for _ in range(5):          # by the same reactor, which meanwhile takes in the reads
        ctrl.identify(1)
    new = t.spawn("--takeover")
    assert new.wait(30) == 1
    said(t, "it does not read what it is sent")
    for cid in reads:
        queue.wait(cid)
    works(t, ctrl, 1)


@with_host("a new process that sends a byte now and then has as long as any other",
           120, ns=STORES)
def _(t, ctrl):
    with Heir(t) as heir:
        heir.prepare()
        heir.sock.sendall(header(10000))
        with contextlib.suppress(ConnectionError):
            for _ in range(300):
                heir.sock.sendall(b" ")
                time.sleep(0.1)
        said(t, "takeover given up")
    works(t, ctrl, 1)


@with_host("a new process that hangs with all that it was given is ended: nobody else could ever serve it",
           ns=STORES)
def _(t, ctrl):
    with HungHeir(t) as heir:
        said(t, "takeover given up")
        works(t, ctrl, 1)
        weft.wait_until(heir.is_over, "the process that hangs to end")
        said(t, f"pid {heir.pid} is killed")
        t.kill9()
        t.start()


@with_target("SIGTERM while somebody prepares")
def _(t):
    with Heir(t) as heir:
        heir.prepare()
        t.process.send_signal(signal.SIGTERM)
        assert heir.recv()[0]["step"] == "failed"
    assert t.process.wait(30) == 0
    t.check_log()


@with_target("SIGTERM while all stands still, before the new process is ready: it does not get to serve")
def _(t):
    with Heir(t) as heir:
        heir.prepare()
        heir.freeze()
        t.process.send_signal(signal.SIGTERM)
        heir.step("ready")
        assert heir.recv()[0]["step"] == "failed"
    assert t.process.wait(30) == 0
    t.check_log()


@with_host("SIGTERM while it comes to rest: it stops, and nobody takes over", ns=STORES)
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    queue.hold = True
    queue.submit(disk.command(sqe.WRITE, 0, 16), pattern(1, 65536), capsule=False)
    r2t = queue.next_r2t()
    with Heir(t) as heir:
        heir.prepare()
        heir.step("freeze")
        time.sleep(0.5)         # until it freezes, which it gives up after 2 s
        t.process.send_signal(signal.SIGTERM)
        said(t, "SIGTERM: stopping")
        queue.hold = False
        queue.answer(r2t)
        heir.fds += heir.expect("state")[2]
        heir.step("ready")
        assert heir.recv()[0]["step"] == "failed"
    assert t.process.wait(30) == 0
    t.check_log()


@with_target("SIGTERM while all stands still is obeyed when it goes on")
def _(t):
    with Heir(t) as heir:
        heir.prepare()
        heir.freeze()
        t.process.send_signal(signal.SIGTERM)
    assert t.process.wait(30) == 0
    t.check_log()


@with_target("a control client that waits meanwhile is answered")
def _(t):
    heir = Heir(t)
    heir.prepare()
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(t.control))
        client.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "status"}\n')
        heir.close()
        assert b"result" in client.makefile("rb").readline()


def outq(sock):
    """Bytes that the other side has not received yet."""
    count = array.array("i", [0])
    fcntl.ioctl(sock, termios.TIOCOUTQ, count)
    return count[0]


@with_target("SIGTERM while somebody prepares and another one waits to: it stops, and nobody takes over")
def _(t):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(t.control))
        client.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "status"}\n')
        lines = client.makefile("rb")
        assert b"result" in lines.readline()
        with Heir(t) as heir:
            heir.prepare()
            client.sendall(b'{"jsonrpc": "2.0", "id": 2, "method": "takeover",'
                           b' "params": {"format": %d}}\n' % FORMAT)
            weft.wait_until(lambda: not outq(client), "the call to be taken in")
            t.process.send_signal(signal.SIGTERM)
            assert heir.recv()[0]["step"] == "failed"
        assert t.process.wait(30) == 0
    t.check_log()


# ---- what the new one refuses

def taken_by(t, *argv):
    """`weft serve --takeover` with other arguments; its last line."""
    result = command.run("serve", "--control", t.control, "--takeover", "--engine", t.engine, *argv)
    assert result.returncode == 1, result.stderr
    return result.stderr.strip().splitlines()[-1]


MISMATCHES = (
    (["--nqn", "nqn.2026-11.io.weft:x", "--ns", "mem:16M", "--ns", "F"], "not configured"),
    (["--ns", "mem:16M"], "namespace 2 is running and not configured"),
    (["--ns", "mem:16M", "--ns", "null:16M"], "another backend"),
    (["--ns", "mem:16M", "--ns", "F,ro"], "the configured one is read-only"),
    (["--ns", "mem:16M,block=512", "--ns", "F"], "another block size"),
    (["--ns", "mem:16M,uuid=11111111-2222-3333-4444-555555555555", "--ns", "F"], "another uuid"),
    (["--ns", "mem:16M", "--ns", "F", "--ns", "mem:1M"], "3 namespaces configured"),
)


@with_host("another configuration is refused, and says what differs", 120, ns=STORES)
def _(t, ctrl):
    for argv, words in MISMATCHES:
        argv = [word.replace("F", f"file:{t.dir}/a.img,size=16M") for word in argv]
        nqn = [] if "--nqn" in argv else ["--nqn", t.nqn]
        last = taken_by(t, *nqn, *argv)
        assert words in last, last
    works(t, ctrl, 1)


@with_target("what only loopback could reach does not become open to the network",
             extra=["--listen", "nvme+tcp://0.0.0.0:0", "--allow-any-host"])
def _(t):
    last = taken_by(t, "--nqn", t.nqn, "--ns", t.ns[0])
    assert "nothing says which hosts may use" in last, last
    assert t.answer()["pid"] == t.process.pid
    t.takeover()


@with_target("there is nobody to take over from")
def _(t):
    result = command.run("serve", "--control", t.dir / "nobody", "--takeover", "--ns", "mem:1M")
    assert result.returncode == 1 and "no target answers" in result.stderr, result.stderr
    command.fails("serve", "--ns", "mem:1M", "--drop-rdma", code=command.USAGE,
                  words=["--drop-rdma goes with --takeover"])


RUNNING = dict(step="prepare", format=FORMAT, depth=1024, queues=128, subsystems=[dict(
    nqn=weft.NQN, serial="1", model="m", state="", node=0, of=0, namespaces=[dict(
        nsid=1, block=4096, ana_group=1, size=1 << 20, backend="null:1M", sync_failed=False, descriptor=False,
        uuid="11111111-2222-3333-4444-555555555555")])])
STORE = dict(revision=1, session=1, acknowledged=1, incarnation=0, nodes=1, members=[], bytes=0,
             descriptor=False)
STATE = dict(step="state", format=FORMAT, since_ns=1, still_ns=1, genctr=1, listeners=[], queues=[],
             subsystems=[dict(nqn=weft.NQN, cntlid=1, reads=0, writes=0, read_bytes=0,
                              write_bytes=0, ana_rules=[], ana_changed=[], ana_count=0,
                              served_elsewhere="", draining=False, state=STORE)],
             controllers=[])
CTRL = dict(nqn=weft.NQN, cntlid=1, hostnqn=b"nqn.x".hex(), cc=0, csts=0, io_queues=1, kato_ms=0,
            portid=1, ciu=1, cirn_low=0, cirn_high=0, ana=[], ccrs=[],
            hostid="11111111-2222-3333-4444-555555555555", kato_left_ms=0, traffic=False,
            features=[], timestamp_ms=0, timestamp_age_ms=0, timestamp_by_host=False,
            events_pending=[], events_masked=[], namespaces_changed=[], errors=0, error_log="",
            host_behavior="", reservation_notices=0, reservation_log="", reservation_masks="")

def with_store(**change):
    return dict(subsystems=[STATE["subsystems"][0] | dict(state=STORE | change)])


WRONG_RUNNING = (
    (dict(format=FORMAT + 1), f"format {FORMAT + 1}"),
    (dict(format=None), "format 0"),
    (dict(subsystems=None), "expected a list"),
    (dict(novelty=1), "no such key"),
    (dict(depth=2048), "depth and queues"),
    (dict(step="state"), 'said "state"'),
    (dict(step="failed", why="because"), "because"),
)
WRONG_STATE = (
    (dict(format=7), "format 7"),
    (dict(genctr=-1), "a number from 0 on"),
    (dict(listeners=[dict(uri="nvme+tcp://127.0.0.1:1", portid=1)]), "a descriptor is missing"),
    (dict(subsystems=[STATE["subsystems"][0] | dict(nqn="nqn.2026-11.io.weft:none")]),
     "there is no subsystem"),
    (dict(controllers=[CTRL]), "has no admin queue"),
    (dict(controllers=[CTRL, CTRL]), "there twice"),
    (dict(controllers=[CTRL | dict(cntlid=0)]), "cannot be one of this target"),
    (dict(controllers=[CTRL | dict(io_queues=4000)]), "cannot be one of this target"),
    (dict(controllers=[CTRL | dict(ana=[dict(id=1025, value=0, count=0)])]), "its paths"),
    (dict(controllers=[CTRL | dict(ana=[dict(id=1, value=5, count=0)])]), "its paths"),
    (dict(controllers=[CTRL | dict(ccrs=[dict(id=1, value=0, count=0)] * 65)]), "its paths"),
    (dict(subsystems=[STATE["subsystems"][0] | dict(ana_rules=[
        dict(group=0, state=0, portid=0, hostnqn="")])]), "ANA group 0"),
    (dict(subsystems=[STATE["subsystems"][0] | dict(served_elsewhere="00" * 128)]), "the groups"),
    (with_store(revision=0), "cannot be its state"),
    (with_store(acknowledged=2), "cannot be its state"),
    (with_store(nodes=2), "cannot be its state"),
    (with_store(members=[dict(node=2, incarnation=1, acknowledged=1)]), "cannot be its state"),
    (with_store(bytes=1), "bytes are missing"),
    (with_store(descriptor=True), "a descriptor is missing"),
    (dict(controllers=[CTRL | dict(reservation_log="00")]), "its notifications"),
    (dict(controllers=[CTRL | dict(reservation_log="00" * 64)]), "its notifications"),
    (dict(controllers=[CTRL | dict(reservation_log="00" * 65 * 64, reservation_notices=99)]),
     "its notifications"),
    (dict(controllers=[CTRL | dict(reservation_masks="00" * 1025)]), "bytes in hexadecimal"),
    (dict(controllers=[CTRL | dict(hostnqn="zz")]), "a name in hexadecimal"),
    (dict(controllers=[CTRL | dict(hostnqn="6100")]), "a name in hexadecimal"),
    (dict(controllers=[CTRL | dict(error_log="00" * 64)]), "cannot be one of this target"),
    (dict(controllers=[CTRL | dict(namespaces_changed=list(range(1, 1100)))]),
     "cannot be one of this target"),
    # With a thousand that are no namespaces of ours, the next one would not fit.
    (dict(controllers=[CTRL | dict(namespaces_changed=list(range(1001, 2025)))]),
     "cannot be one of this target"),
    (dict(controllers=[CTRL | dict(namespaces_changed=[0])]), "cannot be one of this target"),
    (dict(controllers=[CTRL | dict(namespaces_changed=[2, 2])]), "cannot be one of this target"),
)


def takes_from(folder, body):
    with Giver(folder / "control", body):
        result = command.run("serve", "--control", folder / "control", "--takeover", "--nqn",
                             weft.NQN, "--ns", "null:1M", "--listen", weft.ANY_PORT,
                             "--engine", weft.ENGINE)
    (folder / "control").unlink()
    assert result.returncode == 1, result.stderr
    return result.stderr.strip().splitlines()[-1]


@tap.case("documents that the new process must not believe", 200)
def _():
    with weft.tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for change, words in WRONG_RUNNING:
            last = takes_from(folder, lambda c: (c.send(RUNNING | change), c.recv()))
            assert words in last, (change, last)
        for change, words in WRONG_STATE:
            def body(c, change=change):
                c.send(RUNNING)
                c.expect("freeze")
                with socket.socket(socket.AF_UNIX) as control:
                    c.send(STATE | change, fds=[control.fileno()])
                c.recv()

            last = takes_from(folder, body)
            assert words in last, (change, last)


@tap.case("a running target that dies at each step: the new one says so and serves nothing", 60)
def _():
    def goes_when(steps):
        def body(c):
            if steps > 0:
                c.send(RUNNING)
                c.expect("freeze")
            if steps > 1:
                with socket.socket(socket.AF_UNIX) as control:
                    c.send(STATE, fds=[control.fileno()])
                c.expect("ready")
        return body

    with weft.tempfile.TemporaryDirectory() as name:
        for steps in range(3):
            last = takes_from(pathlib.Path(name), goes_when(steps))
            assert "went away" in last, last


sys.exit(tap.run())
