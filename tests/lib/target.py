"""target.py - a small NVMe/TCP target, independent of Weft, whose every step a script can replace.

    with Target() as t:                         namespace 1 of 1 MiB in memory at t.uri()
    with Target(read=body) as t:                body(conn, cmd) runs in the place of Connection.read

    Target       listens; what connections share: namespaces, controllers, the discovery log
    Connection   one queue: PDUs in and out, data, completions; a thread reads it
    Wire         its socket (the commands are in responder.py, their structures in structures.py)

A script is words and functions: a word sets an attribute of the target (mqes=7), a function
replaces the method of that name of every Connection; normally(conn, name, …) is the original.
The target does not trust the host either: what a host must not do is kept in `faults`, and leaving
the block raises it. H2CTermReqs are kept in `terms`.
"""
import contextlib
import socket
import struct
import threading
from collections import namedtuple

import nvme
import pdu
import structures
from responder import Responder

NQN = "nqn.2026-11.io.weft:peer"
Term = namedtuple("Term", "fes fei data")
FROM_HOST = (pdu.ICREQ, pdu.H2CTERM, pdu.CMD, pdu.H2CDATA)


class Silence(Exception):
    """The script wants no more to be said on this connection: what comes is read and forgotten."""


class Namespace:
    def __init__(self, data, shift=9):
        self.data, self.shift = bytearray(data), shift

    blocks = property(lambda self: len(self.data) >> self.shift)


class Wire:
    """A connected socket; before icreq() digests are off and alignment is 4."""

    def __init__(self, sock):
        self.sock, self.lock = sock, threading.Lock()
        self.hdgst = self.ddgst = False
        self.align_out = self.align_in = 4
        self.segment = 0            # bytes a send() at most; 0: as they come
        self.held = None            # a list: PDUs wait in it until release()

    def send_pdu(self, type, body, data=b"", **wrong):
        options = dict(hdgst=self.hdgst, ddgst=self.ddgst, align=self.align_out) | wrong
        self.send(pdu.encode(type, body, data, **options))

    def send(self, raw):
        if self.held is not None:
            self.held.append(raw)
            return
        with self.lock:
            for at in range(0, len(raw), self.segment or len(raw)):
                self.sock.sendall(raw[at:at + (self.segment or len(raw))])

    def release(self):
        raw, self.held = b"".join(self.held), None
        self.send(raw)

    def recv_exact(self, size):
        out = bytearray(size)
        view = memoryview(out)
        while view:
            got = self.sock.recv_into(view)
            if not got:
                raise nvme.Closed("the host closed")
            view = view[got:]
        return bytes(out)

    def recv_pdu(self):
        head = self.recv_exact(8)
        plen = struct.unpack_from("<I", head, 4)[0]
        assert 8 <= plen <= 4 << 20, f"plen {plen} from the host: {head.hex()}"
        return HostPdu(head + self.recv_exact(plen - 8), self.hdgst, self.ddgst, self.align_in)

    def close(self):
        """End both directions; also wakes a thread that reads."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def reset(self):
        """Close with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        raise nvme.Closed("the script reset the connection")


class HostPdu(pdu.Pdu):
    """A PDU from the host, taken apart; whatever is malformed in it is an AssertionError."""

    def __init__(self, raw, hdgst, ddgst, align):
        self.type, self.flags, self.hlen, self.pdo, self.plen = struct.unpack_from("<4BI", raw)
        assert self.type in FROM_HOST, f"PDU type {self.type:#x} from a host"
        assert self.hlen == pdu.HLEN[self.type], f"hlen {self.hlen} in PDU type {self.type}"
        self.head, self.data = raw[:self.hlen], b""
        if self.type == pdu.H2CTERM:
            self.data = raw[self.hlen:]
            assert self.plen <= 152, f"H2CTermReq of {self.plen} bytes"
        elif self.type == pdu.ICREQ:
            assert self.plen == 128 and self.pdo == 0 and self.flags == 0
            assert not any(raw[16:]), "reserved bytes in ICReq"
        else:
            self.check_host_layout(raw, hdgst, ddgst, align)

    def check_host_layout(self, raw, hdgst, ddgst, align):
        end = self.hlen + 4 * hdgst
        has_data = self.type == pdu.H2CDATA or self.plen > end
        ddgst = ddgst and has_data
        assert bool(self.flags & pdu.HDGSTF) == hdgst and bool(self.flags & pdu.DDGSTF) == ddgst, \
            f"digest flags {self.flags:#x} in PDU type {self.type}"
        if hdgst:
            assert raw[self.hlen:end] == pdu.digest(self.head), "header digest"
        if not has_data:
            assert self.pdo == 0 and self.plen == end, f"pdo {self.pdo}, plen {self.plen}"
            return
        assert self.pdo >= end and self.pdo % align == 0, f"pdo {self.pdo} of type {self.type}"
        self.data = raw[self.pdo:self.plen - 4 * ddgst]
        if self.type == pdu.H2CDATA:
            assert len(self.data) == self.length, f"{len(self.data)} bytes, says {self.length}"
        if ddgst:
            assert raw[self.plen - 4:] == pdu.digest(self.data), "data digest"


class Connection(Wire, Responder):
    """One queue, from accept to its end. Every method without an underscore may be replaced."""

    def __init__(self, target, sock, index):
        super().__init__(sock)
        self.target, self.index = target, index
        self.ctrl, self.qid, self.depth, self.flow = None, None, 1, True
        self.live, self.r2ts, self.next_ttag, self.maxr2t = {}, {}, 0, 1
        self.sqhd = self.tail = self.told = 0
        self.is_io = target.enabled()   # a host opens its I/O queues when the controller is ready
        for name, body in target.script.items():
            setattr(self, name, _bound(body, self))

    def _run(self):
        try:
            self.accepted()
            while True:
                self.pdu_in(self.recv_pdu())
        except (OSError, nvme.Closed):
            pass
        except Silence:
            self._swallow()
        except Exception as err:                # an assertion about the host, or our own mistake
            self.target.faults.append(err)
        finally:
            if self.ctrl:
                self.ctrl.left(self)
            self.close()

    def _swallow(self):
        with contextlib.suppress(OSError):
            while self.sock.recv(1 << 16):
                pass

    def accepted(self):
        """The host has connected and sent nothing yet."""

    def pdu_in(self, got):
        if got.type == pdu.H2CTERM:
            self.target.terms.append(Term(got.fes, got.fei, got.data))
        elif got.type == pdu.ICREQ:
            self.icreq(got)
        elif got.type == pdu.CMD:
            self._capsule(got)
        else:
            self.h2cdata(got)

    def icreq(self, got):
        pfv, hpda, dgst, maxr2t = struct.unpack_from("<HBBI", got.head, 8)
        assert pfv == 0 and hpda <= 31 and dgst <= 3, f"ICReq {pfv} {hpda} {dgst}"
        self.maxr2t = maxr2t + 1
        self.align_out = (hpda + 1) * 4
        self.icresp(dgst=dgst & self.target.digests)

    def icresp(self, dgst=0, size=128, pfv=0, **wrong):
        t = self.target
        body = struct.pack("<HBBI", pfv, t.cpda, dgst, t.maxh2c).ljust(size - 8, b"\0")
        self.send_pdu(pdu.ICRESP, body, **wrong)
        self.hdgst, self.ddgst = bool(dgst & 1), bool(dgst & 2)
        self.align_in = (t.cpda + 1) * 4

    def term(self, fes=2, fei=0, data=b""):
        self.send_pdu(pdu.C2HTERM, pdu.term(fes, fei), plen=24 + len(data))
        if data:
            self.send(data)


def _bound(body, conn):
    return lambda *args, **kw: body(conn, *args, **kw)


def normally(conn, name, *args, **kw):
    """What the target does where no script replaces it."""
    return getattr(Connection, name)(conn, *args, **kw)


class Target:
    """The words are attributes that the connections read; a script may set any of them."""

    def __init__(self, port=0, **script):
        self.nqn = NQN
        self.namespaces = {1: Namespace(nvme.pattern(0xBEEF, 1 << 20))}
        self.digests, self.cpda, self.maxh2c = 3, 0, 0x20000        # ICResp
        self.mqes, self.timeout_500ms, self.ready_after = 127, 10, 0  # CAP, CSTS
        self.queues_max, self.icd, self.mdts, self.kas = 8, 8192, 0, 1
        self.vwc, self.nmic = 7, 1      # a volatile write cache; namespaces of several controllers
        self.ana, self.anatt = None, 10 # {group: state}; namespaces are in the first group
        self.ciu, self.cirn, self.cqt = 0, 0, 0     # of every controller; 0: no such resets
        self.numbered_anew = False      # no controller gets the number of one that is gone
        self.no_flow = True             # the host may do without SQ flow control
        self.success = False            # C2HData carries the completion
        self.piece, self.r2t_piece, self.r2ts_open = 1 << 20, 1 << 20, 1
        self.log, self.changed = structures.DiscoveryLog(), []
        self.last_number = 0
        self.controllers, self.connections, self.faults, self.terms = {}, [], [], []
        self.commands = []              # (qid, opcode or fabrics command type), in their order
        self.script = {}
        for name, value in script.items():
            if callable(value):
                assert hasattr(Connection, name), f"a Connection has no {name}()"
                self.script[name] = value
            else:
                assert hasattr(self, name), f"a Target has no {name}"
                setattr(self, name, value)
        self.listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self.addr = self.listener.getsockname()

    def uri(self, nqn=None, **words):
        """The address of a subsystem; nqn="" is the discovery service."""
        query = "&".join(f"{name}={value}" for name, value in words.items())
        nqn = self.nqn if nqn is None else nqn
        return (f"nvme+tcp://127.0.0.1:{self.addr[1]}" + (f"/{nqn}" if nqn else "")
                + (f"?{query}" if query else ""))

    def enabled(self):
        return any(c.ready() and c.admin for c in self.controllers.values())

    def event(self, type, info=0, log=0):
        """An asynchronous event, to every controller that has a request for one."""
        for ctrl in list(self.controllers.values()):
            ctrl.event(type | info << 8 | log << 16)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                conn = Connection(self, sock, len(self.connections))
                conn.thread = threading.Thread(target=conn._run, daemon=True)
                conn.thread.start()
                self.connections.append(conn)

    def __enter__(self):
        self.acceptor = threading.Thread(target=self._accept, daemon=True)
        self.acceptor.start()
        return self

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.acceptor.join(60)
        self.listener.close()
        for conn in self.connections:
            conn.close()
        for conn in self.connections:
            conn.thread.join(60)

    def __exit__(self, kind, *_):
        self.close()
        if kind is None and self.faults:
            raise self.faults[0]
