#!/usr/bin/python3
"""target_hostile.py - hosts that go for the target's own bookkeeping: buffers, slots, races with
removal, with the end of their connection and with the end of the target."""
import contextlib
import fcntl
import pathlib
import signal
import socket
import struct
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import pdu
import sqe
import tap
import weft
from fixture import connect, in_background, with_host, with_target
from nvme import INVALID_NS, pattern

ONE_CPU = ["--cpus", "0"]       # one reactor: everybody shares its buffers
MIB = 1 << 20
OTHER = dict(hostnqn="nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-0000000000b3",
             hostid=bytes(range(77, 93)))


def pour(queue, opcode, count, blocks=256):
    """Send `count` commands for a MiB each and read nothing."""
    queue.send(b"".join(
        queue.encode(pdu.CMD, sqe.blocks(opcode, 1, 0, blocks).encode(i, sqe.sgl_transport(MIB)))
        for i in range(count)))


def gone(t):
    weft.wait_until(lambda: not t.controllers(), "the controllers to go")


# ---- buffers

# A host is asked for more data of a queue's writes while it owes less than a MiB: of this size, for two
# at a time. So many queues have all large buffers.
NEARLY = 255 * 4096
QUEUES = 16


def many_wait(spec, ic):
    @with_target(f"reads of {spec} in line for buffers when their controller goes", ns=[spec],
                 extra=ONE_CPU)
    def _(t):
        ctrl = connect(t, **ic)
        for _ in range(48):
            pour(ctrl.open(depth=1024, rcvbuf=4096), sqe.READ, 1000)
        time.sleep(1)
        ctrl.admin.reset()
        gone(t)
        ctrl.close()


many_wait("null:1G", {})
many_wait("mem:64M", dict(ddgst=True))


@with_target("writes in line for buffers, some answered, when the connection breaks", extra=ONE_CPU)
def _(t):
    data = bytes(NEARLY)

    def begin(queues):
        for queue in queues:
            queue.hold = True
            for _ in range(5):
                queue.submit(sqe.blocks(sqe.WRITE, 1, 0, NEARLY // 4096), data, capsule=False)

    for _ in range(8):
        with connect(t) as ctrl:
            queues = [ctrl.open(depth=512, rcvbuf=4096) for _ in range(QUEUES + 2)]
            begin(queues[:QUEUES])
            r2ts = [(queue, queue.next_r2t()) for queue in queues[:QUEUES] for _ in range(2)]
            begin(queues[QUEUES:])
            pour(queues[0], sqe.READ, 40)
            for queue, r2t in r2ts[:12]:
                queue.answer(r2t)
            for queue in queues:
                queue.reset()
    gone(t)


def hog(t, opcode):
    """A host that takes every large buffer of the only reactor and keeps it."""
    ctrl = connect(t, **OTHER)
    for _ in range(QUEUES):
        pour(ctrl.open(depth=512, rcvbuf=4096), opcode, 5, NEARLY // 4096)
    return ctrl


@contextlib.contextmanager
def sign_of_life(queue):
    """A command every second: it is not silent, it just does not give back what it has."""
    stop = []

    def flushes():
        with contextlib.suppress(OSError, nvme.Closed):
            while not stop:
                queue.send_pdu(pdu.CMD, sqe.Sqe(sqe.FLUSH, 1).encode(0xFFF0, bytes(16)))
                time.sleep(1)

    with in_background(flushes):
        yield
        stop.append(True)


@with_target("a host that never reads its answers does not starve others", limit_s=90,
             ns=["file:{dir}/hog.img,size=64M"], extra=ONE_CPU)
def _(t):
    with hog(t, sqe.READ) as bad, sign_of_life(bad.queues[0]), connect(t, timeout=60) as ctrl:
        assert ctrl.disk().read(0, 256) == bytes(MIB)


@with_target("a host that never sends its data does not starve others", limit_s=90, extra=ONE_CPU)
def _(t):
    data = pattern(3, MIB)
    with hog(t, sqe.WRITE) as bad, sign_of_life(bad.queues[0]), connect(t, timeout=60) as ctrl:
        disk = ctrl.disk()
        disk.write(0, data)
        assert disk.read(0, 256) == data


# ---- work on storage that a few bytes ask for

STEP = 16 * MIB // 4096
COPY = sqe.copy(1, 4 * STEP, 4), sqe.copy_ranges([(i * STEP, STEP) for i in range(4)])
VERIFY = sqe.blocks(sqe.VERIFY, 1, 0, 65536), b""
FLOOD, ANSWER = 1000, 24        # commands of a queue; bytes


def flood(queue, command, data):
    sgl = sqe.sgl_capsule(len(data)) if data else sqe.sgl_transport(0)
    queue.send(b"".join(queue.encode(pdu.CMD, command.encode(i, sgl), data) for i in range(FLOOD)))


def unread(queue):
    """Bytes that it was sent and has not received yet."""
    return struct.unpack("i", fcntl.ioctl(queue.sock, termios.FIONREAD, bytes(4)))[0]


def busy_storage(spec, what, command):
    """Others come through when storage has only begun what one host asked of it. Of what that host
    leaves when it is lost, nothing more is done."""
    @with_target(f"thousands of {what} of {spec} hold up nobody", ns=[spec, "mem:16M"],
                 extra=ONE_CPU)
    def _(t):
        with connect(t) as ctrl:
            disk = ctrl.disk(2)
            with connect(t, **OTHER) as bad:
                queues = [bad.open(depth=1024) for _ in range(4)]
                for queue in queues:
                    flood(queue, *command)
                for at in range(20):
                    disk.write(at, pattern(at, disk.block))
                    assert disk.read(at) == pattern(at, disk.block)
                answered = sum(unread(queue) for queue in queues) // ANSWER
                assert answered < FLOOD, f"{answered} were done by then"
            weft.wait_until(lambda: len(t.controllers()) == 1, "the controller to go")
            disk.read(0)


busy_storage("mem:256M", "Copies", COPY)
busy_storage("null:256M", "Copies", COPY)
busy_storage("null:256M", "Verifies", VERIFY)
busy_storage("file:{dir}/busy.img,size=256M", "Copies", COPY)


DEALLOCATE = sqe.dsm(1, 256), sqe.dsm_ranges([(0, 65536)] * 256)


@with_target("lists of ranges leave buffers to others, and those that wait end with their connection",
             ns=["mem:256M", "mem:16M"], extra=ONE_CPU)
def _(t):
    """More commands than there are small buffers, whose lists do not come in the capsule."""
    with connect(t) as ctrl, connect(t, **OTHER) as bad:
        disk = ctrl.disk(2)
        queues = [bad.open(depth=1024) for _ in range(3)]
        for queue in queues:
            for _ in range(900):
                queue.submit(*DEALLOCATE, capsule=False)
            queue.do(sqe.Sqe(sqe.FLUSH, 2))     # behind them: those that are asked for their list send it
        for at in range(20):
            disk.write(at, pattern(at, disk.block), capsule=False)
            assert disk.read(at) == pattern(at, disk.block)
        queues[2].reset()
        ctrl.disk(1).deallocate([(0, 1)])
        assert all(unread(queue) // ANSWER < 100 for queue in queues[:2])
    weft.wait_until(lambda: not t.controllers(), "the controllers to go")


@with_host("more lists of ranges than a host may have in buffers: all get their turn")
def _(t, ctrl):
    disk, queue = ctrl.disk(), ctrl.open(depth=1024)
    for at in range(300):
        disk.write(at, pattern(at, disk.block))
    sent = [queue.submit(sqe.dsm(1, 1), sqe.dsm_ranges([(at, 1)]), capsule=False) for at in range(300)]
    for request in sent:
        queue.wait(request)
    assert disk.read(0, 256) + disk.read(256, 44) == bytes(300 * disk.block)


# ---- slots

@with_target("aborts race with the end of the connection", extra=ONE_CPU)
def _(t):
    for _ in range(20):
        with connect(t) as ctrl:
            queue = ctrl.open(depth=64)
            disk = ctrl.disk(queue=queue)
            queue.hold = True
            cids = [queue.submit(disk.command(sqe.WRITE, 0, 2), bytes(2 * disk.block), capsule=False)
                    for _ in range(40)]
            for _ in cids:
                queue.next_r2t()
            for i, cid in enumerate(cids):
                if i == 20:
                    queue.close()
                ctrl.admin.submit(sqe.abort(1, cid))
    gone(t)


@with_host("aborted writes whose data never comes do not fill the queue")
def _(t, ctrl):
    queue = ctrl.open(depth=4)
    disk = ctrl.disk(queue=queue)
    queue.hold = True
    cids = [queue.submit(disk.command(sqe.WRITE, i, 1), bytes(disk.block), capsule=False)
            for i in range(3)]
    for _ in cids:
        queue.next_r2t()
    for cid in cids:
        ctrl.admin.do(sqe.abort(1, cid))
        queue.wait(cid, 0x07)
    queue.hold = False
    again = [queue.submit(disk.command(sqe.WRITE, 8 + i, 1), pattern(i, disk.block), capsule=False)
             for i in range(3)]
    for i, cid in enumerate(again):
        queue.wait(cid)
        assert disk.read(8 + i) == pattern(i, disk.block)


@with_target("more commands than the queue holds, and then the host is gone")
def _(t):
    for _ in range(3):
        ctrl = connect(t, depth=2, kato=0)
        for _ in range(3):
            ctrl.aer()
        ctrl.admin.reset()
    weft.wait_until(lambda: not t.controllers(), "the controllers to go", 30)


# ---- namespaces that go, and others that take their id

@with_host("a write that waits for its data does not land in another namespace")
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    queue.hold = True
    cid = queue.submit(disk.command(sqe.WRITE, 5, 1), pattern(1, disk.block), capsule=False)
    r2t = queue.next_r2t()
    t.ctl("namespace-remove", nqn=t.nqn, nsid=1)
    t.ctl("namespace-add", nqn=t.nqn, nsid=1, backend="mem:64M")
    queue.answer(r2t)
    queue.wait(cid, INVALID_NS)
    assert disk.read(5) == bytes(disk.block)


@with_host("a fused pair that waits for its data does not land in another namespace",
           ns=["mem:64M,block=512"])
def _(t, ctrl):
    disk = ctrl.disk()
    queue = disk.queue
    queue.hold = True
    first = queue.submit(disk.command(sqe.COMPARE, 0, 1, fuse=1), bytes(512))
    second = queue.submit(disk.command(sqe.WRITE, 0, 1, fuse=2), bytes([170]) * 512, capsule=False)
    r2t = queue.next_r2t()
    t.ctl("namespace-remove", nqn=t.nqn, nsid=1)
    t.ctl("namespace-add", nqn=t.nqn, nsid=1, backend="mem:64M", block=4096)
    queue.answer(r2t)
    assert queue.wait(first, None).status and queue.wait(second, None).status
    assert ctrl.disk().read(0) == bytes(4096)


@with_host("fused pairs while their namespace comes and goes")
def _(t, ctrl):
    disk = ctrl.disk()
    stop = []

    def pairs():
        while not stop:
            disk.compare_and_write(0, bytes(disk.block), bytes(disk.block))

    with in_background(pairs):
        for _ in range(150):
            t.ctl("namespace-remove", nqn=t.nqn, nsid=1)
            t.ctl("namespace-add", nqn=t.nqn, nsid=1, backend="mem:64M")
        stop.append(True)


@with_target("a resize does not wait for a host that does not read", extra=ONE_CPU)
def _(t):
    with connect(t, **OTHER) as bad, connect(t) as ctrl:
        pour(bad.open(depth=1024, rcvbuf=4096), sqe.READ, 64)
        disk = ctrl.disk()
        time.sleep(0.5)
        t.ctl("namespace-resize", nqn=t.nqn, nsid=1, size="128M")
        disk.read(0)


# ---- the rest

@with_target("a malformed PDU behind answers that are not read", extra=ONE_CPU)
def _(t):
    with connect(t) as ctrl:
        queue = ctrl.open(depth=64, rcvbuf=4096)
        pour(queue, sqe.READ, 60)
        queue.send(bytes([255]) * 128)
        weft.wait_until(lambda: t.ctl("status")["reactors"][0]["queues"] == 1, "it to be closed")


@with_host("Dataset Management with empty ranges", ns=["mem:16M", "file:{dir}/a.img,size=16M"])
def _(t, ctrl):
    for nsid in (1, 2):
        disk = ctrl.disk(nsid)
        disk.write(5, pattern(5, disk.block))
        disk.deallocate([(0, 0), (5, 1), (7, 0)])
        assert disk.read(5) == bytes(disk.block)


@with_target("the longest keep-alive timeout is not a short one")
def _(t):
    with connect(t, kato=0xFFFFFFFF) as ctrl:
        time.sleep(0.3)
        ctrl.get(nvme.CSTS)
        assert t.controllers()[0]["kato_ms"] == 0xFFFFFFFF


@with_target("a host NQN cannot write into the log")
def _(t):
    with nvme.Queue(t.addr) as queue:
        queue.connect(t.nqn, hostnqn="nqn.2026-11.io.weft:x\nerror: forged", want=0x182)
    assert "forged" not in t.log.read_text()


@with_target("a host whose access is taken away does not write any more, though it disconnects behind "
             "answers that it does not read", extra=[*ONE_CPU, "--allow", nvme.HOSTNQN, "--allow",
                                                    OTHER["hostnqn"]])
def _(t):
    ctrl = connect(t)
    queue = ctrl.open(depth=128, rcvbuf=1 << 18)
    disk = ctrl.disk(queue=queue)
    for _ in range(60):
        queue.submit(disk.command(sqe.READ, 0, 64), length=64 * disk.block)
    queue.submit(sqe.disconnect())
    weft.wait_until(lambda: all(q["state"] != "live" for c in t.controllers()
                                for q in c["queue_counters"] if q["qid"]), "it to be disconnected")
    t.ctl("host-refuse", nqn=t.nqn, host=nvme.HOSTNQN)
    with connect(t, **OTHER) as other:
        other.disk().read(100)          # through the same reactor: it has dealt with the refusal
        with contextlib.suppress(nvme.Closed, OSError):
            queue.submit(disk.command(sqe.WRITE, 100, 1), b"A" * disk.block)
        for _ in range(8):
            assert not any(other.disk().read(100)), "it has written"
    gone(t)


@with_target("hosts that connect while the target stops")
def _(t):
    stop = []

    def storm():
        data = sqe.connect_data(nvme.DISCOVERY, nvme.HOSTNQN, nvme.HOSTID, 5)
        with contextlib.suppress(OSError, nvme.Closed, AssertionError):
            with nvme.Queue(t.addr) as queue:
                while not stop:
                    queue.do(sqe.connect(0, 31), out=data, want=None, capsule=True)

    with contextlib.ExitStack() as threads:
        for _ in range(8):
            threads.enter_context(in_background(storm))
        time.sleep(0.3)
        t.stop()
        stop.append(True)


@with_target("a host that is gone again before it is let in")
def _(t):
    t.process.send_signal(signal.SIGSTOP)
    for _ in range(20):
        with socket.create_connection(t.addr) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    t.process.send_signal(signal.SIGCONT)
    with connect(t) as ctrl:
        ctrl.disk().read(0)
    assert "cannot take a connection" not in t.log.read_text()


sys.exit(tap.run())
