"""streams.py - hosts that cut, drip, flood, stall or talk nonsense."""
import random
import socket
import time

import bad
import nvme
import pdu
import sqe
from tap import case

ICREQ = pdu.encode(pdu.ICREQ, pdu.icreq())


def connect_capsule():
    data = sqe.connect_data(bad.target.nqn, nvme.HOSTNQN, nvme.HOSTID)
    return pdu.encode(pdu.CMD, sqe.connect().encode(0, sqe.sgl_capsule(1024)), data)


def cut(raw, at, end):
    """Send the first `at` bytes and go away, by `end`."""
    with bad.fresh() as conn:
        conn.send(raw[:at])
        end(conn)


@case("cut at every byte of an ICReq")
def _():
    for at in range(len(ICREQ)):
        cut(ICREQ, at, nvme.Conn.close)


@case("reset at every byte of an ICReq")
def _():
    for at in range(len(ICREQ)):
        cut(ICREQ, at, nvme.Conn.reset)


@case("cut at every byte of a Connect")
def _():
    raw = ICREQ + connect_capsule()
    for at in range(len(ICREQ), len(raw)):
        cut(raw, at, nvme.Conn.close)


@case("cut with half close at every byte of a header")
def _():
    raw = ICREQ + connect_capsule()
    for at in [*range(0, 9), *range(128, 128 + 73)]:
        with bad.fresh() as conn:
            conn.send(raw[:at])
            conn.half_close()
            bad.ended_quietly(conn)


@case("ICReq one byte at a time")
def _():
    with bad.fresh() as conn:
        for byte in ICREQ:
            conn.send(bytes([byte]))
        assert conn.recv_pdu().type == pdu.ICRESP


def drip(sock, raw):
    for byte in raw:
        sock.sendall(bytes([byte]))


@case("everything one byte at a time still works")
def _():
    with bad.io(hdgst=True, ddgst=True) as queue:
        disk = queue.disk
        data = nvme.pattern(3, disk.block)
        queue.send = lambda raw: drip(queue.sock, raw)
        disk.write(0, data, capsule=True)
        disk.write(1, data, capsule=False)
        assert disk.read(0, 2) == data + data


@case("everything in one segment still works")
def _():
    with bad.fresh() as conn:
        conn.send(ICREQ + connect_capsule())
        assert [conn.recv_pdu().type for _ in range(2)] == [pdu.ICRESP, pdu.RSP]


@case("many commands in one segment still work")
def _():
    with bad.io() as queue:
        pieces = []
        queue.send = pieces.append
        ids = [queue.submit(sqe.Sqe(sqe.FLUSH, 1)) for _ in range(100)]
        queue.sock.sendall(b"".join(pieces))
        for cid in ids:
            queue.wait(cid)


def commands_then_leave(leave):
    with bad.io() as queue:
        for _ in range(100):
            queue.submit(queue.disk.command(sqe.READ, 0, 16), length=16 * queue.disk.block)
        leave(queue)


@case("commands in flight, then closed")
def _():
    commands_then_leave(nvme.Conn.close)


@case("commands in flight, then reset")
def _():
    commands_then_leave(nvme.Conn.reset)


@case("commands in flight, then half closed")
def _():
    with bad.io() as queue:
        for _ in range(100):
            queue.submit(queue.disk.command(sqe.READ, 0, 4), length=4 * queue.disk.block)
        queue.half_close()
        bad.ended_quietly(queue)


@case("half close of an idle queue")
def _():
    for phase in (bad.fresh, bad.initialized, bad.admin, bad.io):
        with phase() as conn:
            conn.half_close()
            bad.ended_quietly(conn)


@case("the admin queue closes: its I/O queues end")
def _():
    with bad.controller() as ctrl:
        queue = ctrl.open()
        ctrl.admin.close()
        bad.ended(queue)


@case("the admin queue is reset while an I/O queue is soliciting data")
def _():
    with bad.controller() as ctrl:
        queue = ctrl.open()
        queue.disk, queue.hold = ctrl.disk(), True
        bad.write_out(queue, 4)
        queue.next_r2t()
        ctrl.admin.reset()
        bad.ended(queue)


@case("an I/O queue closes: the admin queue lives")
def _():
    with bad.controller() as ctrl:
        ctrl.open(1).close()
        ctrl.identify(1)


@case("silence in every phase")
def _():
    for phase in (bad.fresh, bad.initialized, bad.admin, bad.io, bad.soliciting):
        with phase():
            time.sleep(0.2)


@case("200 connections that say nothing")
def _():
    conns = [nvme.Conn(bad.target.addr) for _ in range(200)]
    bad.target.witness()
    for conn in conns:
        conn.close()


@case("200 connections reset before they say anything")
def _():
    for _ in range(200):
        nvme.Conn(bad.target.addr).reset()


def flood(queue, command, length, seconds=1):
    """Send commands without ever reading, until the target no longer takes them."""
    queue.sock.settimeout(seconds)
    try:
        for cid in range(1 << 16):
            sgl = sqe.sgl_transport(length)
            queue.sock.sendall(queue.encode(pdu.CMD, command.encode(cid & 0x7F, sgl)))
    except (socket.timeout, ConnectionError):
        pass


@case("a host that never reads its data")
def _():
    with bad.controller() as ctrl:
        disk = ctrl.disk(queue=ctrl.open(rcvbuf=4096))
        flood(disk.queue, disk.command(sqe.READ, 0, 16), 16 * disk.block)
        bad.target.witness()
        disk.queue.reset()


@case("a host that never reads its completions")
def _():
    with bad.controller() as ctrl:
        queue = ctrl.open(rcvbuf=4096)
        flood(queue, sqe.Sqe(sqe.FLUSH, 1), 0)
        bad.target.witness()
        queue.reset()


@case("more commands than the queue is deep")
def _():
    """The specification leaves the answer open: statuses or the end, but not a crash."""
    with bad.controller() as ctrl:
        queue = ctrl.open(depth=4)
        queue.disk, queue.hold = ctrl.disk(), True
        try:
            for _ in range(64):
                bad.write_out(queue, 4)
            while True:
                queue.sock.settimeout(1)
                queue.pump()
        except (nvme.Closed, socket.timeout, AssertionError):
            pass


@case("two commands with the same id at once")
def _():
    with bad.soliciting() as queue:
        queue.disk.queue.send_pdu(pdu.CMD, sqe.Sqe(sqe.FLUSH, 1).encode(queue.cid, bytes(16)))
        try:
            queue.wait(queue.cid, (nvme.SUCCESS, nvme.ID_CONFLICT, nvme.INVALID_FIELD))
        except (nvme.Closed, AssertionError):
            pass                # the end of the connection is an answer too


@case("command id FFFFh")
def _():
    with bad.io() as queue:
        queue.do(sqe.Sqe(sqe.FLUSH, 1, cid=0xFFFF), want=None)
        bad.usable(queue)


@case("garbage instead of an ICReq")
def _():
    rng = random.Random(1)
    for _ in range(100):
        with bad.fresh() as conn:
            conn.send(rng.randbytes(rng.randrange(8, 2048)))
            conn.half_close()
            bad.ended(conn)


def garbage_after(phase, seed, rounds):
    rng = random.Random(seed)
    for _ in range(rounds):
        with phase() as conn:
            try:
                conn.send(rng.randbytes(rng.randrange(8, 4096)))
                conn.half_close()
                bad.ended(conn)
            except (nvme.Closed, OSError):
                pass


for seed, phase in enumerate((bad.initialized, bad.admin, bad.io, bad.soliciting)):
    case(f"{phase.__name__}: garbage")(lambda p=phase, s=seed: garbage_after(p, s, 25))


def flipped(raw, rng):
    at = rng.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1:]


@case("a flipped bit anywhere in a Connect")
def _():
    rng = random.Random(2)
    raw = ICREQ + connect_capsule()
    for _ in range(300):
        with bad.fresh() as conn:
            conn.send(flipped(raw, rng))
            conn.half_close()
            bad.ended(conn)


@case("a flipped bit anywhere under digests is noticed")
def _():
    rng = random.Random(3)
    for _ in range(100):
        with bad.io(hdgst=True, ddgst=True) as queue:
            disk = queue.disk
            body = disk.command(sqe.WRITE, 8, 1).encode(1, sqe.sgl_capsule(disk.block))
            queue.requests[1] = nvme.Request(1, b"", 0)
            queue.send(flipped(queue.encode(pdu.CMD, body, bytes(disk.block)), rng))
            queue.half_close()
            seen = queue.expect_closed()
            good = [p for p in seen if p.type == pdu.RSP and p.at("H", 22) >> 1 == 0]
            assert not good, "a damaged command succeeded"


@case("random commands on an admin queue")
def _():
    random_commands(bad.admin, 4)


@case("random commands on an I/O queue")
def _():
    random_commands(bad.io, 5)


def random_sqe(rng, cid, length):
    """Random dwords, but an opcode, a namespace and an SGL that get past the first checks."""
    command = sqe.Sqe(rng.choice((0, 1, 2, 5, 8, 9, 12, 25, 0x7F)), rng.choice((0, 1, 4, 8, 99)),
                      dw10=rng.randrange(1 << 14), dw11=rng.choice((0, rng.getrandbits(32))),
                      **{f"dw{i}": rng.getrandbits(32) for i in range(12, 16)})
    return command.encode(cid, sqe.sgl(0, length or 4096, rng.choice((0x01, 0x5A))))


def random_commands(phase, seed):
    """Well-formed capsules around random commands."""
    rng = random.Random(seed)
    for _ in range(40):
        with phase() as queue:
            try:
                for cid in range(20):
                    data = rng.randbytes(rng.choice((0, 64, 4096)))
                    queue.send_pdu(pdu.CMD, random_sqe(rng, cid, len(data)), data)
                queue.half_close()
                bad.ended(queue)
            except (nvme.Closed, OSError):
                pass
