"""headers.py - PDUs whose common header is wrong, or that come in the wrong phase."""
import bad
import pdu
import sqe
from bad import FLAGS, HEADER_DIGEST, HLEN, LIMIT, OUT_OF_RANGE, PDO, PLEN, SEQUENCE, TYPE
from tap import case

FLUSH = sqe.Sqe(sqe.FLUSH, 1).encode(0, bytes(16))
BODY = {pdu.ICREQ: pdu.icreq(), pdu.CMD: FLUSH, pdu.H2CDATA: bytes(16), pdu.H2CTERM: pdu.term(1)}
HUGE = 0xFFFFFFFF

# phase, PDU type, field, wrong values, the errors that may be found first
WRONG_FIELDS = [
    (bad.fresh, pdu.ICREQ, "hlen", (0, 8, 127, 129, 255), [HLEN]),
    (bad.fresh, pdu.ICREQ, "plen", (0, 8, 127, 129, HUGE), [PLEN]),
    (bad.initialized, pdu.CMD, "hlen", (0, 71, 73, 255), [HLEN]),
    (bad.initialized, pdu.CMD, "plen", (0, 71), [PLEN]),
    (bad.io, pdu.CMD, "flags", (0x01, 0x81), [FLAGS]),
    (bad.io, pdu.CMD, "hlen", (0, 24, 64, 71, 73, 255), [HLEN]),
    (bad.io, pdu.CMD, "plen", (0, 8, 71), [PLEN]),
    (bad.io, pdu.CMD, "plen", (73, HUGE), [PDO, PLEN]),
    (bad.soliciting, pdu.H2CDATA, "flags", (0x01, 0x02, 0x03), [FLAGS]),
    (bad.soliciting, pdu.H2CDATA, "hlen", (0, 23, 25, 255), [HLEN]),
    (bad.soliciting, pdu.H2CDATA, "plen", (0, 23, HUGE), [PDO, PLEN]),
]

# Reserved bits and fields are for later versions to use: a receiver does not look at them.
RESERVED = [
    *[dict(flags=flags) for flags in (0x01, 0x02, 0x04, 0x80)],
    *[dict(pdo=pdo) for pdo in (1, 128, 255)],
]

PHASES = (bad.fresh, bad.initialized, bad.admin, bad.io, bad.soliciting)
UNKNOWN_TYPES = (0x08, 0x0C, 0x10, 0x7F, 0xFF)


def wrong_field(phase, type, field, value, allowed):
    @case(f"{phase.__name__}: PDU type {type} with {field} {value:#x}")
    def _():
        with phase() as conn:
            conn.send_pdu(type, BODY[type], **{field: value})
            bad.terminated(conn, *allowed)


def reserved_in_icreq(fields):
    @case("ICReq with reserved " + " ".join(f"{k} {v:#x}" for k, v in fields.items()))
    def _():
        with bad.fresh() as conn:
            conn.send_pdu(pdu.ICREQ, pdu.icreq(), **fields)
            assert conn.recv_pdu().type == pdu.ICRESP


def reserved_in_capsule(flags):
    @case(f"capsule without data, reserved flags {flags:#x}")
    def _():
        with bad.io() as queue:
            queue.send_pdu(pdu.CMD, FLUSH, flags=flags)
            assert queue.recv_pdu().type == pdu.RSP


@case("ICReq with digests that do not exist")
def _():
    with bad.fresh() as conn:
        conn.send_pdu(pdu.ICREQ, pdu.icreq(dgst=0xFC))
        got = conn.recv_pdu()
        assert got.type == pdu.ICRESP and got.at("B", 11) == 0, "it agreed to an unknown digest"


def wrong_type(phase, type):
    @case(f"{phase.__name__}: PDU type {type:#x}")
    def _():
        with phase() as conn:
            size = pdu.HLEN.get(type, 24)
            conn.send_pdu(type, bytes(size - 8))
            bad.terminated(conn, TYPE)


def wrong_order(phase, type):
    @case(f"{phase.__name__}: PDU type {type} out of order")
    def _():
        with phase() as conn:
            conn.send_pdu(type, BODY[type])
            bad.terminated(conn, SEQUENCE)


def host_terminates(phase):
    @case(f"{phase.__name__}: H2CTermReq")
    def _():
        with phase() as conn:
            conn.send_pdu(pdu.H2CTERM, pdu.term(1, 4), FLUSH, pdo=0, align=1)
            bad.ended_quietly(conn)


for phase, type, field, values, allowed in WRONG_FIELDS:
    for value in values:
        wrong_field(phase, type, field, value, allowed)
for fields in RESERVED:
    reserved_in_icreq(fields)
for flags in (0x02, 0x04, 0x08, 0x80):
    reserved_in_capsule(flags)
for phase in PHASES:
    for type in (*UNKNOWN_TYPES, *pdu.FROM_CONTROLLER):
        wrong_type(phase, type)
    host_terminates(phase)
wrong_order(bad.fresh, pdu.CMD)
wrong_order(bad.fresh, pdu.H2CDATA)
for phase in PHASES[1:]:
    wrong_order(phase, pdu.ICREQ)


# field values of an otherwise good ICReq, the error
ICREQS = [
    (dict(pfv=1), [(6, 8)]),
    (dict(pfv=0xFFFF), [(6, 8)]),
    (dict(hpda=32), [(1, 10), (6, 10)]),
    (dict(hpda=255), [(1, 10), (6, 10)]),
]


def wrong_icreq(fields, allowed):
    @case("ICReq with " + " ".join(f"{k} {v:#x}" for k, v in fields.items()))
    def _():
        with bad.fresh() as conn:
            conn.send_pdu(pdu.ICREQ, pdu.icreq(**fields))
            bad.terminated(conn, *allowed)


for fields, allowed in ICREQS:
    wrong_icreq(fields, allowed)


# In-capsule data at a wrong offset: common header fields, the error
CAPSULES = [
    ("data before the end of the header", dict(pdo=71), [PDO]),
    ("data at offset 0", dict(pdo=0), [PDO]),
    ("data at an odd offset", dict(pdo=73), [PDO]),
    ("data beyond the PDU", dict(pdo=252, plen=200), [PDO, PLEN]),
    ("plen less than pdo", dict(plen=74, pdo=76), [PDO, PLEN]),
    ("plen 0xFFFFFFFF", dict(plen=HUGE), [PLEN, LIMIT]),
]


def wrong_capsule(name, wrong, allowed):
    @case(f"capsule: {name}")
    def _():
        with bad.io() as queue:
            body = queue.disk.command(sqe.WRITE, 0, 1).encode(0, sqe.sgl_capsule(512))
            queue.send_pdu(pdu.CMD, body, bytes(512), **wrong)
            bad.terminated(queue, *allowed)


for name, wrong, allowed in CAPSULES:
    wrong_capsule(name, wrong, allowed)


def oversized_capsule(phase, excess):
    @case(f"{phase.__name__}: capsule with {excess} bytes more than it may carry")
    def _():
        with phase() as queue:
            size = queue.icd + excess
            body = sqe.blocks(sqe.WRITE, 1, 0, 1).encode(0, sqe.sgl_capsule(size))
            queue.send(queue.encode(pdu.CMD, body, bytes(size))[:4096])
            bad.terminated(queue, PLEN, LIMIT, OUT_OF_RANGE)


oversized_capsule(bad.initialized, 1 << 20)
for phase in (bad.admin, bad.io):
    for excess in (4, 4096, 1 << 20):
        oversized_capsule(phase, excess)


# digests negotiated, how the PDU is sent, the error
DIGESTS = [
    ("wrong header digest", dict(hdgst=True), dict(spoil="hdgst"), [HEADER_DIGEST]),
    ("header digest missing", dict(hdgst=True), dict(hdgst=False), [FLAGS]),
    ("header digest flag without the digest", dict(), dict(flags=pdu.HDGSTF), [FLAGS]),
    ("header digest not negotiated", dict(ddgst=True), dict(hdgst=True), [FLAGS]),
    ("data digest missing", dict(ddgst=True), dict(ddgst=False), [FLAGS]),
    ("data digest not negotiated", dict(hdgst=True), dict(ddgst=True), [FLAGS]),
]


def wrong_digest_in_capsule(name, ic, how, allowed):
    @case(f"capsule: {name}")
    def _():
        with bad.io(**ic) as queue:
            block = queue.disk.block
            body = queue.disk.command(sqe.WRITE, 0, 1).encode(0, sqe.sgl_capsule(block))
            queue.send_pdu(pdu.CMD, body, bytes(block), **how)
            bad.terminated(queue, *allowed)


def wrong_digest_in_h2cdata(name, ic, how, allowed):
    @case(f"H2CData: {name}")
    def _():
        with bad.soliciting(**ic) as queue:
            r2t = queue.r2t
            head = pdu.h2cdata(r2t.cccid, r2t.ttag, 0, 512)
            queue.send_pdu(pdu.H2CDATA, head, bytes(512), **how)
            bad.terminated(queue, *allowed)


for row in DIGESTS:
    wrong_digest_in_capsule(*row)
    wrong_digest_in_h2cdata(*row)


@case("capsule: wrong data digest fails the command only")
def _():
    with bad.io(ddgst=True) as queue:
        data = bytes(queue.disk.block)
        cid = queue.submit(queue.disk.command(sqe.WRITE, 0, 1), data, spoil="ddgst")
        bad.refused(queue, cid, bad.nvme.TRANSIENT_TRANSPORT, dnr=0)
        bad.usable(queue)


@case("H2CData: wrong data digest fails the command only")
def _():
    with bad.soliciting(ddgst=True) as queue:
        r2t = queue.r2t
        head = pdu.h2cdata(r2t.cccid, r2t.ttag, r2t.offset, r2t.length)
        queue.send_pdu(pdu.H2CDATA, head, bytes(r2t.length), flags=pdu.LAST, spoil="ddgst")
        bad.refused(queue, queue.cid, bad.nvme.TRANSIENT_TRANSPORT, dnr=0)
        bad.usable(queue)


def pieces(r2ts, size):
    """What the R2Ts ask for as (R2T, offset, flags), a piece of each in turn."""
    return sorted(((r2t, r2t.offset + at, pdu.LAST * (at + size == r2t.length))
                   for r2t in r2ts for at in range(0, r2t.length, size)),
                  key=lambda piece: piece[1] - piece[0].offset)


def one_wrong_digest_of_many(r2ts, number):
    """A write of 64 KiB for each R2T, in pieces of 16 KiB: what follows a spoilt one is good."""
    @case(f"H2CData: wrong data digest in piece {number} of {4 * r2ts} fails the command only"
          f", R2Ts: {r2ts}")
    def _():
        with bad.io(ddgst=True, maxr2t=r2ts - 1) as queue:
            disk, size = queue.disk, r2ts << 16
            data = bad.nvme.pattern(number, size)
            disk.zero(0, size // disk.block)
            queue.hold = True
            for spoilt in (number, None):       # the same again, without a fault
                cid = queue.submit(disk.command(sqe.WRITE, 0, size // disk.block), data)
                asked = [queue.next_r2t() for _ in range(r2ts)]
                for n, (r2t, at, flags) in enumerate(pieces(asked, 1 << 14), 1):
                    head = pdu.h2cdata(cid, r2t.ttag, at, 1 << 14)
                    queue.send_pdu(pdu.H2CDATA, head, data[at:at + (1 << 14)], flags=flags,
                                   spoil="ddgst" if n == spoilt else "")
                if spoilt:
                    bad.refused(queue, cid, bad.nvme.TRANSIENT_TRANSPORT, dnr=0)
                    assert disk.read(0, size // disk.block) == bytes(size), "it was written"
            queue.wait(cid)
            assert disk.read(0, size // disk.block) == data


for r2ts in (1, 2, 4):
    for number in (1, 2 * r2ts, 4 * r2ts - 1, 4 * r2ts):
        one_wrong_digest_of_many(r2ts, number)


@case("admin capsule: wrong data digest fails the command only")
def _():
    with bad.admin(hdgst=True, ddgst=True) as queue:
        cid = queue.submit(sqe.set_features(0x0E), bytes(8), spoil="ddgst")
        bad.refused(queue, cid, bad.nvme.TRANSIENT_TRANSPORT, dnr=0)
        queue.ctrl.identify(1)
