"""bad - what misbehaving hosts share: bring a connection to a phase, then say what must answer."""
import contextlib

import nvme
import pdu
import sqe

target = None           # the weft.Target that misbehave.py started

# Fatal errors as (FES, FEI); FEI None is any. See NVMe/TCP, C2HTermReq.
TYPE, FLAGS, HLEN, PDO, PLEN = (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)
SEQUENCE, HEADER_DIGEST, OUT_OF_RANGE, LIMIT = (2, None), (3, None), (4, None), (5, None)


def controller(**kw):
    return nvme.Controller(target.addr, target.nqn, **kw)


@contextlib.contextmanager
def fresh(**_):
    """A TCP connection, nothing sent."""
    with nvme.Conn(target.addr) as conn:
        yield conn


@contextlib.contextmanager
def initialized(**ic):
    """ICReq and ICResp exchanged, no Connect."""
    with nvme.Queue(target.addr, **ic) as queue:
        yield queue


@contextlib.contextmanager
def admin(**ic):
    """The admin queue of an enabled controller."""
    with controller(**ic) as ctrl:
        ctrl.admin.ctrl = ctrl
        yield ctrl.admin


@contextlib.contextmanager
def io(**ic):
    """A connected I/O queue."""
    with controller(**ic) as ctrl:
        queue = ctrl.open()
        queue.disk = ctrl.disk()
        yield queue


@contextlib.contextmanager
def soliciting(blocks=4, **ic):
    """An I/O queue on which a write has been asked for its data: queue.r2t, queue.cid."""
    with io(**ic) as queue:
        queue.hold = True
        write_out(queue, blocks)
        queue.r2t = queue.next_r2t()
        yield queue


def write_out(queue, blocks):
    """Submit a write whose data waits for an R2T."""
    data = nvme.pattern(7, blocks * queue.disk.block)
    command = queue.disk.command(sqe.WRITE, 0, blocks)
    queue.cid = queue.submit(command, data, capsule=False)


def terminated(conn, *allowed):
    """A C2HTermReq with one of the `allowed` errors, quoting the PDU in error, and then the end."""
    seen = conn.expect_closed()
    assert seen and seen[-1].type == pdu.C2HTERM, f"closed after {seen}, without C2HTermReq"
    term = seen[-1]
    assert any(fes == term.fes and fei in (None, term.fei) for fes, fei in allowed), \
        f"{term}, wanted one of {allowed}"
    assert conn.last.startswith(term.data), "C2HTermReq quotes another PDU"


def ended(conn):
    """The connection ends, with or without C2HTermReq."""
    conn.drain()


def ended_quietly(conn):
    """The connection ends without C2HTermReq: the host had given up first."""
    assert all(p.type != pdu.C2HTERM for p in conn.expect_closed())


def refused(queue, cid, want, dnr=1):
    """The command fails with one of `want`, and says whether a retry may help."""
    cqe = queue.wait(cid, want)
    assert dnr is None or cqe.dnr == dnr, f"DNR {cqe.dnr}"
    return cqe


def usable(queue):
    """The connection has survived."""
    return queue.do(sqe.Sqe(sqe.FLUSH, 1))
