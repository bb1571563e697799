"""nvme.py - a small NVMe/TCP host, independent of libweft, that can also be made to misbehave.

    Conn        one TCP connection: PDUs and raw bytes
    Queue       a Conn with commands on it: submit, wait, do
    Controller  an admin queue, its I/O queues, and the commands of an ordinary host
    Disk        one namespace through one queue, addressed by logical block
"""
import contextlib
import socket
import struct
import time
from collections import namedtuple

import pdu
import sqe

HOSTNQN = "nqn.2014-08.org.nvmexpress:uuid:3f1d8c52-6f4b-4a58-9a3e-000000000001"
HOSTID = bytes(range(1, 17))
DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"
CC_ENABLE = 0x00460001
CAP, VS, CC, CSTS = 0x00, 0x08, 0x14, 0x1C
ADMIN_ICD = 8192        # NVMe/TCP: in-capsule data that every admin queue takes

SUCCESS, INVALID_OPCODE, INVALID_FIELD, ID_CONFLICT, INTERNAL = 0x00, 0x01, 0x02, 0x03, 0x06
ABORT_REQUESTED, FAILED_FUSED, MISSING_FUSED, INVALID_NS = 0x07, 0x09, 0x0A, 0x0B
SEQUENCE_ERROR, SGL_LENGTH, SGL_TYPE, SGL_OFFSET = 0x0C, 0x0F, 0x11, 0x16
AWU_EXCEEDED, WRITE_PROTECTED, TRANSIENT_TRANSPORT = 0x14, 0x20, 0x22
LBA_RANGE, CAPACITY = 0x80, 0x81
HOSTID_FORMAT, PREEMPT_ABORTED, RESERVATION_CONFLICT = 0x18, 0x1B, 0x83
AER_LIMIT, INVALID_LOG, NOT_SAVEABLE, NOT_CHANGEABLE = 0x105, 0x109, 0x10D, 0x10E
CONNECT_FORMAT, CONNECT_BUSY, CONNECT_PARAM, CONNECT_HOST = 0x180, 0x181, 0x182, 0x184
ANA_LOSS, ANA_INACCESSIBLE, ANA_TRANSITION = 0x301, 0x302, 0x303
INTERNAL_PATH_ERROR = 0x300
WRITE_FAULT, READ_ERROR = 0x280, 0x281
INVALID_PI, READ_ONLY, SIZE_LIMIT, COMPARE_FAILURE = 0x181, 0x182, 0x183, 0x285

Cqe = namedtuple("Cqe", "cid status dnr dw0 dw1 sqhd sqid data")


class Closed(EOFError):
    """The controller closed the connection."""


class Failed(Exception):
    def __init__(self, cqe, want):
        self.cqe = cqe
        super().__init__(f"status {cqe.status:#x} dnr={cqe.dnr} dw0={cqe.dw0:#x}, wanted {want}")


class Conn:
    """One TCP connection. ic() negotiates; before that digests are off and alignment is 4."""

    def __init__(self, addr, timeout=60, rcvbuf=None, source=None):
        self.sock = socket.socket(socket.AF_INET6 if ":" in addr[0] else socket.AF_INET)
        if source:
            self.sock.bind((source, 0))
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(timeout)
        self.sock.connect(addr)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.hdgst = self.ddgst = False
        self.align_out = self.align_in = 4
        self.maxh2c, self.maxr2t = 4096, 0
        self.last = b""         # the last PDU sent, to compare with what a C2HTermReq quotes

    def ic(self, hdgst=False, ddgst=False, hpda=0, maxr2t=0):
        self.send_pdu(pdu.ICREQ, pdu.icreq(0, hpda, hdgst | ddgst << 1, maxr2t))
        resp = self.recv_pdu()
        assert resp.type == pdu.ICRESP, resp
        pfv, cpda, dgst, self.maxh2c = struct.unpack_from("<HBBI", resp.head, 8)
        assert pfv == 0 and cpda <= 31 and dgst & ~(hdgst | ddgst << 1) == 0
        assert self.maxh2c >= 4096 and self.maxh2c % 4 == 0, f"MAXH2CDATA {self.maxh2c}"
        self.hdgst, self.ddgst = bool(dgst & 1), bool(dgst & 2)
        self.align_out, self.align_in = (cpda + 1) * 4, (hpda + 1) * 4
        self.maxr2t = maxr2t
        return self

    def encode(self, type, body, data=b"", **kw):
        options = dict(hdgst=self.hdgst, ddgst=self.ddgst, align=self.align_out) | kw
        return pdu.encode(type, body, data, **options)

    def send_pdu(self, type, body, data=b"", **kw):
        self.send(self.encode(type, body, data, **kw))

    def send(self, raw):
        self.last = raw
        try:
            self.sock.sendall(raw)
        except (ConnectionResetError, BrokenPipeError) as err:
            raise Closed(str(err)) from err

    def recv_exact(self, size):
        out = bytearray(size)
        view = memoryview(out)
        while view:
            try:
                got = self.sock.recv_into(view)
            except ConnectionResetError as err:
                raise Closed(str(err)) from err
            if not got:
                raise Closed(f"end of stream, {len(view)} of {size} bytes missing")
            view = view[got:]
        return bytes(out)

    def recv_pdu(self):
        head = self.recv_exact(8)
        plen = struct.unpack_from("<I", head, 4)[0]
        assert 24 <= plen <= 64 << 20, f"plen {plen} from the controller"
        return pdu.Pdu(head + self.recv_exact(plen - 8), self.hdgst, self.ddgst, self.align_in)

    def close(self):
        self.sock.close()

    def reset(self):
        """Close with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def expect_closed(self):
        """The controller closes; whatever whole PDUs it still sends before that are returned."""
        seen = []
        with contextlib.suppress(Closed):
            while True:
                seen.append(self.recv_pdu())
        return seen

    def drain(self):
        """Read whatever comes until the controller closes."""
        with contextlib.suppress(ConnectionResetError):
            while self.sock.recv(1 << 16):
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Request:
    def __init__(self, cid, out, length):
        self.cid, self.out, self.data = cid, out, bytearray(length)
        self.received, self.open_r2ts, self.cqe = 0, 0, None


class Queue(Conn):
    """A queue. R2Ts are answered at once unless `hold` is set: then they gather in `r2ts`."""

    def __init__(self, addr, icd=ADMIN_ICD, timeout=60, rcvbuf=None, source=None, **ic):
        super().__init__(addr, timeout, rcvbuf, source)
        self.ic(**ic)
        self.icd, self.hold, self.r2ts = icd, False, []
        self.requests, self.next_cid = {}, 0

    def connect(self, nqn, qid=0, depth=32, cntlid=0xFFFF, kato=0, hostnqn=HOSTNQN, hostid=HOSTID,
                cattr=0, want=SUCCESS, data=None, **kw):
        if data is None:
            data = sqe.connect_data(nqn, hostnqn, hostid, cntlid)
        self.qid, self.depth = qid, depth
        command = sqe.connect(qid, kw.pop("sqsize", depth - 1), kato, cattr, **kw)
        return self.do(command, out=data, want=want, capsule=True)

    def free_cid(self):
        while True:
            cid, self.next_cid = self.next_cid, (self.next_cid + 1) % 0xFFFF
            if cid not in self.requests:
                return cid

    def submit(self, command, out=b"", length=0, capsule=None, **wrong):
        """Send a command; `out` goes in the capsule if it fits, or waits for R2T."""
        cid = command.cid if command.cid is not None else self.free_cid()
        if capsule is None:
            capsule = len(out) <= self.icd
        in_capsule = bool(out) and capsule
        sgl = sqe.sgl_capsule(len(out)) if in_capsule else sqe.sgl_transport(len(out) or length)
        self.requests[cid] = Request(cid, out, length)
        self.send_pdu(pdu.CMD, command.encode(cid, sgl), out if in_capsule else b"", **wrong)
        return cid

    def pump(self):
        """Receive one PDU and act on it."""
        got = self.recv_pdu()
        if got.type == pdu.RSP:
            self.on_response(got)
        elif got.type == pdu.C2HDATA:
            self.on_data(got)
        elif got.type == pdu.R2T:
            self.on_r2t(got)
        else:
            raise AssertionError(f"unexpected {got}")
        return got

    def on_response(self, got):
        dw0, dw1, sqhd, sqid, cid, status = struct.unpack_from("<IIHHHH", got.head, 8)
        request = self.requests[cid]
        assert request.cqe is None, f"two completions of command {cid}"
        request.cqe = Cqe(cid, status >> 1 & 0x7FF, status >> 15, dw0, dw1, sqhd, sqid,
                          bytes(request.data[:request.received]))

    def on_data(self, got):
        request = self.requests[got.cccid]
        end = got.offset + got.length
        assert got.offset == request.received and end <= len(request.data), \
            f"C2HData {got.offset}+{got.length}, have {request.received} of {len(request.data)}"
        request.data[got.offset:end] = got.data
        request.received = end
        if got.flags & pdu.SUCCESS:
            assert got.flags & pdu.LAST, "success flag without last"
            request.cqe = Cqe(got.cccid, 0, 0, 0, 0, None, None, bytes(request.data[:end]))

    def on_r2t(self, got):
        request = self.requests[got.cccid]
        assert 0 < got.length and got.offset + got.length <= len(request.out), \
            f"R2T {got.offset}+{got.length} of {len(request.out)}"
        request.open_r2ts += 1
        assert request.open_r2ts <= self.maxr2t + 1, "more R2Ts than MAXR2T allows"
        if self.hold:
            self.r2ts.append(got)
        else:
            self.answer(got)

    def answer(self, r2t):
        """Send the data that an R2T asks for, in PDUs of MAXH2CDATA at most."""
        request = self.requests[r2t.cccid]
        request.open_r2ts -= 1
        end = r2t.offset + r2t.length
        for at in range(r2t.offset, end, self.maxh2c):
            piece = request.out[at:min(at + self.maxh2c, end)]
            last = pdu.LAST if at + len(piece) == end else 0
            self.send_pdu(pdu.H2CDATA, pdu.h2cdata(r2t.cccid, r2t.ttag, at, len(piece)), piece,
                          flags=last)

    def next_r2t(self):
        """With `hold`: the oldest R2T that is not answered yet."""
        while not self.r2ts:
            self.pump()
        return self.r2ts.pop(0)

    def wait(self, cid, want=SUCCESS):
        """The completion of `cid`; `want` is a status, several, or None for any."""
        while self.requests[cid].cqe is None:
            self.pump()
        cqe = self.requests.pop(cid).cqe
        wanted = want if isinstance(want, tuple) else (want,)
        if want is not None and cqe.status not in wanted:
            raise Failed(cqe, [hex(s) for s in wanted])
        return cqe

    def wait_any(self):
        """The id of some command that has completed."""
        while True:
            for cid, request in self.requests.items():
                if request.cqe:
                    return cid
            self.pump()

    def do(self, command, out=b"", length=0, want=SUCCESS, capsule=None):
        return self.wait(self.submit(command, out, length, capsule), want)


class Controller:
    """An association: connects and enables a controller; open() adds I/O queues."""

    def __init__(self, addr, nqn, kato=0, hostnqn=HOSTNQN, hostid=HOSTID, enable=True, cattr=0,
                 depth=32, timeout=60, **ic):
        self.addr, self.nqn, self.ics, self.timeout = addr, nqn, ic, timeout
        self.host = dict(hostnqn=hostnqn, hostid=hostid)
        self.admin, self.queues = Queue(addr, timeout=timeout, **ic), []
        with close_on_error(self):
            cqe = self.admin.connect(nqn, depth=depth, kato=kato, cattr=cattr, **self.host)
            self.cntlid = cqe.dw0 & 0xFFFF
            if enable:
                self.enable()

    def enable(self):
        self.set(CC, CC_ENABLE)
        self.until(lambda: self.get(CSTS) & 1, "CSTS.RDY")
        self.id = self.identify(1)
        self.icd = max(0, struct.unpack_from("<I", self.id, 1792)[0] * 16 - 64)
        self.mdts = 4096 << self.id[77] if self.id[77] else None

    def until(self, condition, what, timeout=60):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, f"no {what}"
            time.sleep(0.01)

    def open(self, qid=None, depth=128, flow=True, want=SUCCESS, **ic):
        """Connect an I/O queue; `flow=False` asks for no SQ flow control (CATTR bit 2)."""
        qid = qid or len(self.queues) + 1
        queue = Queue(self.addr, self.icd, self.timeout, **self.ics | ic)
        self.queues.append(queue)
        queue.connected = queue.connect(self.nqn, qid, depth, self.cntlid, want=want,
                                        cattr=0 if flow else 4, **self.host)
        return queue

    def disk(self, nsid=1, queue=None):
        return Disk(self, queue or (self.queues[0] if self.queues else self.open()), nsid)

    def get(self, offset, size=4):
        cqe = self.admin.do(sqe.property_get(offset, size))
        return cqe.dw0 | cqe.dw1 << 32

    def set(self, offset, value, size=4):
        self.admin.do(sqe.property_set(offset, value, size))

    def identify(self, cns, nsid=0, want=SUCCESS, **kw):
        return self.admin.do(sqe.identify(cns, nsid, **kw), length=4096, want=want).data

    def get_feature(self, fid, length=0, want=SUCCESS, **kw):
        return self.admin.do(sqe.get_features(fid, **kw), length=length, want=want)

    def set_feature(self, fid, value=0, out=b"", want=SUCCESS, **kw):
        return self.admin.do(sqe.set_features(fid, value, **kw), out=out, want=want)

    def log(self, lid, length, offset=0, want=SUCCESS, **kw):
        return self.admin.do(sqe.get_log(lid, length, offset, **kw), length=length, want=want).data

    def aer(self):
        return self.admin.submit(sqe.Sqe(sqe.AER))

    def event(self, cid):
        """Wait for an asynchronous event: (type, information, log page)."""
        dw0 = self.admin.wait(cid).dw0
        return dw0 & 7, dw0 >> 8 & 0xFF, dw0 >> 16 & 0xFF

    def close(self):
        for queue in [*self.queues, self.admin]:
            queue.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Disk:
    """A namespace by logical blocks; data lengths are whole blocks."""

    def __init__(self, ctrl, queue, nsid):
        self.queue, self.nsid = queue, nsid
        ns = ctrl.identify(0, nsid)
        self.blocks = struct.unpack_from("<Q", ns)[0]
        self.block = 1 << ns[128 + 4 * (ns[26] & 15) + 2]

    def command(self, opcode, slba, count, bits=0, **kw):
        return sqe.blocks(opcode, self.nsid, slba, count, bits, **kw)

    def read(self, slba, count=1, want=SUCCESS, bits=0):
        return self.queue.do(self.command(sqe.READ, slba, count, bits), length=count * self.block,
                             want=want).data

    def write(self, slba, data, want=SUCCESS, bits=0, capsule=None):
        command = self.command(sqe.WRITE, slba, len(data) // self.block, bits)
        return self.queue.do(command, data, want=want, capsule=capsule)

    def compare(self, slba, data, want=SUCCESS):
        command = self.command(sqe.COMPARE, slba, len(data) // self.block)
        return self.queue.do(command, data, want=want)

    def zero(self, slba, count, want=SUCCESS, bits=0):
        return self.queue.do(self.command(sqe.WRITE_ZEROES, slba, count, bits), want=want)

    def verify(self, slba, count, want=SUCCESS):
        return self.queue.do(self.command(sqe.VERIFY, slba, count), want=want)

    def flush(self, want=SUCCESS):
        return self.queue.do(sqe.Sqe(sqe.FLUSH, self.nsid), want=want)

    def deallocate(self, ranges, want=SUCCESS):
        return self.queue.do(sqe.dsm(self.nsid, len(ranges)), sqe.dsm_ranges(ranges), want=want)

    def copy(self, sdlba, ranges, want=SUCCESS):
        return self.queue.do(sqe.copy(self.nsid, sdlba, len(ranges)), sqe.copy_ranges(ranges),
                             want=want)

    def pair(self, slba, old, new):
        """Compare and Write, fused: the completion of each."""
        count = len(old) // self.block
        first = self.queue.submit(self.command(sqe.COMPARE, slba, count, fuse=1), old)
        second = self.queue.submit(self.command(sqe.WRITE, slba, count, fuse=2), new)
        return self.queue.wait(first, None), self.queue.wait(second, None)

    def compare_and_write(self, slba, old, new):
        """The fused pair: (status of compare, status of write)."""
        first, second = self.pair(slba, old, new)
        return first.status, second.status


@contextlib.contextmanager
def close_on_error(thing):
    try:
        yield
    except BaseException:
        thing.close()
        raise


def pattern(seed, size):
    """Bytes that differ in every 16 and tell where they belong."""
    return b"".join(struct.pack("<QQ", seed, at) for at in range(0, size, 16))[:size]
