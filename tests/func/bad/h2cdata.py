"""h2cdata.py - data that no R2T asked for, or not like that."""
import bad
import pdu
from bad import FLAGS, LIMIT, OUT_OF_RANGE, PDO, PLEN, SEQUENCE
from tap import case

CCCID, TTAG, DATAO, DATAL = (1, 8), (1, 10), (1, 12), (1, 16)
NOT_IN_ORDER = [OUT_OF_RANGE, DATAO, SEQUENCE]
END = object()          # the end of what the R2T asks for


def send(queue, size=512, cccid=0, ttag=0, at=0, length=None, flags=0, **wrong):
    """H2CData for queue.r2t; cccid and ttag are added to the right ones, `at` to its offset."""
    r2t = queue.r2t
    at = r2t.length if at is END else at
    head = pdu.h2cdata((r2t.cccid + cccid) & 0xFFFF, (r2t.ttag + ttag) & 0xFFFF,
                       (r2t.offset + at) & 0xFFFFFFFF, size if length is None else length)
    whole = queue.encode(pdu.H2CDATA, head, bytes(size), flags=flags, **wrong)
    queue.send(whole[:32768])


ROWS = [
    ("unknown ttag", dict(ttag=0x1234), [TTAG]),
    ("next ttag", dict(ttag=1), [TTAG]),
    ("wrong cccid", dict(cccid=1), [CCCID]),
    ("both tags wrong", dict(cccid=7, ttag=7), [CCCID, TTAG]),
    ("before its R2T", dict(at=-512), [OUT_OF_RANGE]),
    ("far before its R2T", dict(at=-(1 << 31)), [OUT_OF_RANGE]),
    ("after its R2T", dict(at=END), [OUT_OF_RANGE]),
    ("far after its R2T", dict(at=1 << 30), [OUT_OF_RANGE]),
    ("a gap inside its R2T", dict(at=1024), NOT_IN_ORDER),
    ("longer than its R2T", dict(size=1 << 16), [OUT_OF_RANGE, LIMIT]),
    ("length zero", dict(size=0, flags=pdu.LAST), [DATAL, PLEN, PDO, OUT_OF_RANGE]),
    ("datal less than plen says", dict(length=508), [PLEN, DATAL]),
    ("datal more than plen says", dict(length=516), [PLEN, DATAL]),
    ("datal 0xFFFFFFFF", dict(length=0xFFFFFFFF), [PLEN, DATAL, OUT_OF_RANGE, LIMIT]),
    ("offset and length overflow", dict(at=-512, length=0xFFFFFFFF),
     [PLEN, DATAL, OUT_OF_RANGE, LIMIT]),
    ("not a multiple of 4", dict(size=511), [PLEN, DATAL]),
    ("LAST too early", dict(flags=pdu.LAST), [FLAGS, OUT_OF_RANGE, SEQUENCE]),
    ("data before the end of the header", dict(pdo=20), [PDO]),
    ("data at offset 0", dict(pdo=0), [PDO]),
    ("data at an odd offset", dict(pdo=25), [PDO]),
    ("data beyond the PDU", dict(pdo=252, plen=100), [PDO, PLEN]),
    ("plen 0xFFFFFFFF", dict(plen=0xFFFFFFFF), [PLEN, LIMIT]),
]


def wrong_data(name, how, allowed):
    @case(f"H2CData: {name}")
    def _():
        with bad.soliciting() as queue:
            send(queue, **how)
            bad.terminated(queue, *allowed)


for row in ROWS:
    wrong_data(*row)


@case("H2CData: LAST missing")
def _():
    with bad.soliciting() as queue:
        send(queue, size=queue.r2t.length)
        bad.terminated(queue, FLAGS, OUT_OF_RANGE, SEQUENCE)


@case("H2CData: the same piece twice")
def _():
    with bad.soliciting() as queue:
        send(queue)
        send(queue)
        bad.terminated(queue, *NOT_IN_ORDER)


@case("H2CData: more than MAXH2CDATA")
def _():
    with bad.io() as queue:
        size = queue.maxh2c + queue.disk.block
        queue.hold = True
        bad.write_out(queue, min(size // queue.disk.block + 1, 256))
        queue.r2t = queue.next_r2t()
        send(queue, size=size)
        bad.terminated(queue, LIMIT, OUT_OF_RANGE)


@case("H2CData: longer than its R2T, into what the next one asks for")
def _():
    for flags in (0, pdu.LAST):
        with bad.soliciting(blocks=200, maxr2t=3) as queue:
            after = queue.next_r2t()
            assert after.cccid == queue.r2t.cccid and after.offset == queue.r2t.length
            send(queue, size=queue.r2t.length + 4096, flags=flags)
            bad.terminated(queue, OUT_OF_RANGE, LIMIT)


@case("H2CData: for the R2Ts of one write in any order")
def _():
    with bad.soliciting(blocks=200, maxr2t=3) as queue:
        r2ts = [queue.r2t]
        while sum(r2t.length for r2t in r2ts) < 200 * queue.disk.block:
            r2ts.append(queue.next_r2t())
        for r2t in reversed(r2ts):
            queue.answer(r2t)
        queue.wait(queue.cid)


@case("H2CData: no R2T outstanding")
def _():
    with bad.io() as queue:
        queue.send_pdu(pdu.H2CDATA, pdu.h2cdata(0, 0, 0, 512), bytes(512), flags=pdu.LAST)
        bad.terminated(queue, TTAG, CCCID, SEQUENCE)


@case("H2CData: before Connect")
def _():
    with bad.initialized() as queue:
        queue.send_pdu(pdu.H2CDATA, pdu.h2cdata(0, 0, 0, 512), bytes(512), flags=pdu.LAST)
        bad.terminated(queue, TTAG, CCCID, SEQUENCE)


@case("H2CData: for a write that has completed")
def _():
    with bad.soliciting() as queue:
        queue.answer(queue.r2t)
        queue.wait(queue.cid)
        send(queue, flags=pdu.LAST)
        bad.terminated(queue, TTAG, CCCID, SEQUENCE)


@case("H2CData: for a read")
def _():
    with bad.io() as queue:
        cid = queue.submit(queue.disk.command(bad.sqe.READ, 0, 1), length=queue.disk.block)
        queue.wait(cid)
        queue.send_pdu(pdu.H2CDATA, pdu.h2cdata(cid, 0, 0, 512), bytes(512), flags=pdu.LAST)
        bad.terminated(queue, TTAG, CCCID, SEQUENCE)


@case("H2CData: cccid of one write, ttag of another")
def _():
    with bad.soliciting() as queue:
        first = queue.r2t
        bad.write_out(queue, 4)
        second = queue.next_r2t()
        queue.send_pdu(pdu.H2CDATA, pdu.h2cdata(first.cccid, second.ttag, 0, 512), bytes(512))
        bad.terminated(queue, CCCID, TTAG)


@case("H2CData: connection reset in the middle of a PDU")
def _():
    with bad.soliciting() as queue:
        r2t = queue.r2t
        whole = queue.encode(pdu.H2CDATA, pdu.h2cdata(r2t.cccid, r2t.ttag, 0, r2t.length),
                             bytes(r2t.length), flags=pdu.LAST)
        queue.send(whole[:len(whole) // 2])
        queue.reset()


@case("H2CData: never sent, then closed")
def _():
    with bad.soliciting():
        pass


@case("H2CData: many writes solicited, then reset")
def _():
    with bad.soliciting() as queue:
        for _ in range(60):
            bad.write_out(queue, 4)
        queue.reset()
