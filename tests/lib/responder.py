"""responder.py - the commands of the scripted target: what arrives, what is answered.

    _capsule ─▶ command ─▶ solicit ─▶ h2cdata … ─▶ execute ─▶ read, identify, … ─▶ data_in, complete

Every method without an underscore is a step that a script may replace (see target.py)."""
import struct

import nvme
import pdu
import sqe
import structures

FABRICS = {sqe.PROPERTY_SET: "property_set", sqe.CONNECT: "connect",
           sqe.PROPERTY_GET: "property_get", sqe.DISCONNECT: "disconnect"}
ADMIN = {sqe.GET_LOG: "get_log", sqe.IDENTIFY: "identify", sqe.ABORT: "abort",
         sqe.SET_FEATURES: "set_features", sqe.GET_FEATURES: "get_features", sqe.AER: "aer",
         sqe.KEEP_ALIVE: "keep_alive", sqe.CROSS_CTRL_RESET: "cross_ctrl_reset",
         sqe.GET_LBA_STATUS: "get_lba_status"}
IO = {sqe.FLUSH: "flush", sqe.WRITE: "write", sqe.READ: "read", sqe.COMPARE: "compare",
      sqe.WRITE_ZEROES: "write_zeroes", sqe.DSM: "dsm"}
NUMBER_OF_QUEUES, EVENTS = 7, 0xB
DISCOVERY_CHANGED = 0xF002


class Cmd:
    """A command as it arrived; `out` is its data from the host, once there."""

    def __init__(self, raw, data):
        self.raw = raw
        self.opcode, self.bits, self.cid, self.nsid = struct.unpack_from("<BBHI", raw)
        self.address, self.length, self.kind = struct.unpack_from("<QI3xB", raw, 24)
        self.out, self.asked = data, 0

    def dw(self, n):
        return struct.unpack_from("<I", self.raw, 4 * n)[0]

    fctype = property(lambda self: self.raw[4])
    to_target = property(lambda self: (self.fctype if self.opcode == sqe.FABRICS
                                       else self.opcode) & 3 == 1)
    slba = property(lambda self: self.dw(10) | self.dw(11) << 32)
    count = property(lambda self: (self.dw(12) & 0xFFFF) + 1)


class R2t:
    def __init__(self, cmd, offset, length):
        self.cmd, self.at, self.end = cmd, offset, offset + length


class Controller:
    """What one association shares: properties, features, the requests for events."""

    def __init__(self, target, cntlid, nqn, admin):
        self.target, self.cntlid, self.nqn, self.admin = target, cntlid, nqn, admin
        self.discovery = nqn == nvme.DISCOVERY
        self.cc, self.csts, self.polls = 0, 0, 0
        self.features, self.aers, self.pending, self.queues = {}, [], [], {}

    def ready(self):
        return self.csts & 1

    def event(self, dw0):
        """Notices come only where the host has asked for them."""
        if dw0 & 0xFFFF == DISCOVERY_CHANGED and not self.features.get(EVENTS, 0) >> 31:
            return
        if self.aers:
            self.admin.complete(self.aers.pop(0), dw0=dw0)
        else:
            self.pending.append(dw0)

    def left(self, conn):
        """With the admin queue goes the association."""
        if conn is not self.admin:
            self.queues.pop(conn.qid, None)
            return
        self.target.controllers.pop(self.cntlid, None)
        for queue in list(self.queues.values()):
            queue.close()


class Responder:
    # --- commands in

    def _capsule(self, got):
        cmd = Cmd(got.head[8:72], got.data)
        assert cmd.bits == 0x40, f"PSDT and FUSE {cmd.bits:#x} in opcode {cmd.opcode:#x}"
        assert cmd.cid not in self.live, f"command id {cmd.cid:#x} is in use"
        assert self.ctrl or cmd.opcode == sqe.FABRICS and cmd.fctype == sqe.CONNECT, \
            f"opcode {cmd.opcode:#x} before Connect"
        assert not self.flow or self.ctrl is None or \
            (self.tail + 1) % self.depth != self.told, "the submission queue is full"
        self._check_sgl(cmd)
        self.live[cmd.cid] = cmd
        assert self.ctrl is None or len(self.live) <= self.depth, f"{len(self.live)} commands"
        self.tail = self.sqhd = (self.tail + 1) % self.depth
        self.command(cmd)

    def _check_sgl(self, cmd):
        if cmd.out:
            limit = self.target.icd if self.qid else nvme.ADMIN_ICD
            assert cmd.to_target and len(cmd.out) <= limit, f"{len(cmd.out)} bytes in the capsule"
            assert cmd.kind == 0x01 and cmd.address == 0 and cmd.length == len(cmd.out), "its SGL"
        elif cmd.length:
            assert cmd.kind == 0x5A, f"SGL type {cmd.kind:#x}"

    def name_of(self, cmd):
        if cmd.opcode == sqe.FABRICS:
            return FABRICS.get(cmd.fctype)
        return (IO if self.qid else ADMIN).get(cmd.opcode)

    def command(self, cmd):
        self.target.commands.append((self.qid, self.name_of(cmd)))
        if cmd.to_target and cmd.length and not cmd.out:
            self.solicit(cmd)
        else:
            self.execute(cmd)

    def execute(self, cmd):
        getattr(self, self.name_of(cmd) or "unknown")(cmd)

    def unknown(self, cmd):
        self.complete(cmd, nvme.INVALID_OPCODE)

    # --- data from the host

    def solicit(self, cmd):
        """Ask for the next pieces of a command's data."""
        t = self.target
        cmd.out = cmd.out or bytearray(cmd.length)
        while cmd.asked < cmd.length and self._open(cmd) < min(t.r2ts_open, self.maxr2t):
            length = min(t.r2t_piece, cmd.length - cmd.asked)
            self.ask(cmd, cmd.asked, length)
            cmd.asked += length

    def _open(self, cmd):
        return sum(r2t.cmd is cmd for r2t in self.r2ts.values())

    def ask(self, cmd, offset, length, **wrong):
        self.next_ttag = (self.next_ttag + 1) & 0xFFFF
        self.r2ts[self.next_ttag] = R2t(cmd, offset, length)
        self.r2t(cmd.cid, self.next_ttag, offset, length, **wrong)

    def r2t(self, cid, ttag, offset, length, **wrong):
        self.send_pdu(pdu.R2T, struct.pack("<HHII4x", cid, ttag, offset, length), **wrong)

    def h2cdata(self, got):
        assert got.ttag in self.r2ts, f"H2CData with the unknown tag {got.ttag:#x}"
        r2t = self.r2ts[got.ttag]
        end = got.offset + got.length
        assert got.cccid == r2t.cmd.cid and 0 < got.length <= self.target.maxh2c
        assert got.offset == r2t.at and end <= r2t.end, \
            f"H2CData {got.offset}+{got.length}, the R2T is at {r2t.at} of {r2t.end}"
        assert bool(got.flags & pdu.LAST) == (end == r2t.end), "LAST"
        r2t.cmd.out[got.offset:end] = got.data
        r2t.at = end
        if end == r2t.end:
            del self.r2ts[got.ttag]
            self._solicited(r2t.cmd)

    def _solicited(self, cmd):
        if cmd.asked < cmd.length:
            self.solicit(cmd)
        elif not self._open(cmd):
            self.execute(cmd)

    # --- data and completions to the host

    def data_in(self, cmd, data):
        """Data in pieces, and the completion: by the success flag where that is allowed."""
        t, data = self.target, bytes(data[:cmd.length])
        success = t.success and not self.flow and self.qid
        for at in range(0, len(data), t.piece):
            piece = data[at:at + t.piece]
            last = at + len(piece) == len(data)
            self.c2hdata(cmd.cid, at, piece,
                         pdu.LAST * last | pdu.SUCCESS * bool(last and success))
        if success:
            del self.live[cmd.cid]
        else:
            self.complete(cmd)

    def c2hdata(self, cid, offset, data, flags=pdu.LAST, length=None, **wrong):
        body = struct.pack("<HxxII4x", cid, offset, len(data) if length is None else length)
        self.send_pdu(pdu.C2HDATA, body, data, flags=flags, **wrong)

    def complete(self, cmd, status=0, dw0=0, dw1=0, dnr=1):
        self.live.pop(cmd.cid, None)
        self.completion(cmd.cid, status, dw0, dw1, dnr=dnr)

    def completion(self, cid, status=0, dw0=0, dw1=0, dnr=1, sqid=None, **wrong):
        self.told = self.sqhd
        word = status << 1 | (bool(dnr and status)) << 15
        body = struct.pack("<IIHHHH", dw0, dw1, self.sqhd if self.flow else 0xFFFF,
                           self.qid or 0 if sqid is None else sqid, cid, word)
        self.send_pdu(pdu.RSP, body, **wrong)

    # --- fabrics

    def connect(self, cmd):
        qid, sqsize, cattr = cmd.dw(10) >> 16, cmd.dw(11) & 0xFFFF, cmd.dw(11) >> 16 & 0xFF
        assert len(cmd.out) == 1024 and cmd.dw(10) & 0xFFFF == 0, "Connect's data or record format"
        assert 0 < sqsize <= (self.target.mqes if qid else 0xFFF), f"SQSIZE {sqsize}"
        nqn = cmd.out[256:512].rstrip(b"\0").decode()
        cntlid = struct.unpack_from("<H", cmd.out, 16)[0]
        if nqn not in (self.target.nqn, nvme.DISCOVERY):
            return self.complete(cmd, nvme.CONNECT_PARAM, dw0=1 << 16 | 256)
        ctrl = self._controller(qid, cntlid, nqn)
        if ctrl is None:
            return self.complete(cmd, nvme.CONNECT_PARAM, dw0=1 << 16 | 16)
        self.flow = not (cattr & 4 and self.target.no_flow)
        self.qid, self.depth, self.ctrl = qid, sqsize + 1, ctrl
        self.tail = self.sqhd = 1 % self.depth
        self.complete(cmd, dw0=ctrl.cntlid)

    def _controller(self, qid, cntlid, nqn):
        """The controller that this queue makes, or is of."""
        controllers = self.target.controllers
        if qid == 0:
            assert cntlid == 0xFFFF, "a dynamic controller is asked for with cntlid FFFFh"
            first = self.target.last_number + 1 if self.target.numbered_anew else 1
            number = next(n for n in range(first, 0xFFF0) if n not in controllers)
            self.target.last_number = number
            controllers[number] = Controller(self.target, number, nqn, self)
            return controllers[number]
        ctrl = controllers.get(cntlid)
        if ctrl is None:                # the host has ended its admin queue meanwhile
            return None
        assert ctrl.nqn == nqn and ctrl.ready(), f"queue {qid} of controller {cntlid}"
        assert qid not in ctrl.queues and qid <= self.target.queues_max, f"queue {qid}"
        ctrl.queues[qid] = self
        return ctrl

    def property_get(self, cmd):
        t, offset = self.target, cmd.dw(11)
        if offset == nvme.CSTS:
            self.ready_poll()
        value = {nvme.CAP: t.mqes | 1 << 16 | t.timeout_500ms << 24 | 1 << 37,
                 nvme.VS: structures.VERSION, nvme.CC: self.ctrl.cc,
                 nvme.CSTS: self.ctrl.csts}.get(offset)
        if value is None:
            return self.complete(cmd, nvme.INVALID_FIELD)
        value = self.property_value(offset, value)
        self.complete(cmd, dw0=value & 0xFFFFFFFF, dw1=value >> 32)

    def property_value(self, _offset, value):
        return value

    def ready_poll(self):
        """CSTS.RDY comes after target.ready_after looks at it."""
        ctrl = self.ctrl
        ctrl.polls += 1
        if ctrl.cc & 1 and ctrl.polls > self.target.ready_after:
            ctrl.csts |= 1

    def property_set(self, cmd):
        if cmd.dw(11) == nvme.CC:
            self.ctrl.cc = cmd.dw(12)
            if self.ctrl.cc & 0xC000:
                self.ctrl.csts |= 8                 # shutdown complete
            if not self.ctrl.cc & 1:
                self.ctrl.csts &= ~1
            elif not self.target.ready_after:
                self.ctrl.csts |= 1
        self.complete(cmd)

    def disconnect(self, cmd):
        self.complete(cmd)

    # --- admin

    def identify(self, cmd):
        data = self.identified(cmd.dw(10) & 0xFF, cmd.nsid)
        if data is None:
            return self.complete(cmd, nvme.INVALID_FIELD)
        self.data_in(cmd, data)

    def identified(self, cns, nsid):
        """The structure; None where there is none."""
        spaces = {} if self.ctrl.discovery else self.target.namespaces
        if cns == 1:
            return structures.identify_ctrl(self.target, self.ctrl)
        if cns == 2:
            return structures.ns_list([n for n in sorted(spaces) if n > nsid])
        if cns == 0:
            group = min(self.target.ana or {0: 0})
            return (structures.identify_ns(spaces[nsid], group, self.target.nmic)
                    if nsid in spaces else bytes(4096))
        if cns == 3 and nsid in spaces:
            return structures.descriptors(nsid)
        return None

    def get_log(self, cmd):
        lid, offset = cmd.dw(10) & 0xFF, cmd.dw(12) | cmd.dw(13) << 32
        length = ((cmd.dw(10) >> 16 | (cmd.dw(11) & 0xFFFF) << 16) + 1) * 4
        assert length <= cmd.length, f"NUMD says {length}, the SGL {cmd.length}"
        data = self.log_page(lid)
        if data is None:
            return self.complete(cmd, nvme.INVALID_LOG)
        if offset > len(data):
            return self.complete(cmd, nvme.INVALID_FIELD)
        self.data_in(cmd, data[offset:offset + length].ljust(length, b"\0"))

    def log_page(self, lid):
        if lid == 0x70 and self.ctrl.discovery:
            return self.target.log.encode()
        if lid == 0xC and self.target.ana is not None:
            return structures.ana_log(self.target.ana)
        if lid == 4:
            changed, self.target.changed = self.target.changed, []
            return structures.ns_list(changed)
        return bytes(512) if lid in (1, 2, 3) else None

    def set_features(self, cmd):
        fid, value = cmd.dw(10) & 0xFF, cmd.dw(11)
        if fid == EVENTS and self.ctrl.discovery and value & ~(1 << 31):
            return self.complete(cmd, nvme.INVALID_FIELD)       # as Linux does
        if fid == NUMBER_OF_QUEUES:
            most = self.target.queues_max - 1
            value = min(value & 0xFFFF, most) | min(value >> 16, most) << 16
        self.ctrl.features[fid] = value
        self.complete(cmd, dw0=value if fid == NUMBER_OF_QUEUES else 0)

    def get_features(self, cmd):
        self.complete(cmd, dw0=self.ctrl.features.get(cmd.dw(10) & 0xFF, 0))

    def aer(self, cmd):
        """Held until there is an event; Controller.event() completes it."""
        if len(self.ctrl.aers) > 3:
            return self.complete(cmd, nvme.AER_LIMIT)
        self.ctrl.aers.append(cmd)
        if self.ctrl.pending:
            self.ctrl.event(self.ctrl.pending.pop(0))

    def keep_alive(self, cmd):
        self.complete(cmd)

    def abort(self, cmd):
        self.complete(cmd, dw0=1)

    def cross_ctrl_reset(self, cmd):
        """Of a controller that is gone: it is over at once."""
        if not self.target.ciu:
            return self.complete(cmd, nvme.INVALID_OPCODE)
        self.complete(cmd, dw0=1)

    def get_lba_status(self, cmd):
        """Identify does not say that there is one."""
        self.unknown(cmd)

    # --- I/O

    def _extent(self, cmd):
        """Where the command's blocks are, (namespace, from, to); None after refusing it."""
        ns = self.target.namespaces.get(cmd.nsid)
        if ns is None:
            return self.complete(cmd, nvme.INVALID_NS)
        if cmd.slba + cmd.count > ns.blocks:
            return self.complete(cmd, nvme.LBA_RANGE)
        return ns, cmd.slba << ns.shift, (cmd.slba + cmd.count) << ns.shift

    def read(self, cmd):
        extent = self._extent(cmd)
        if extent:
            ns, start, end = extent
            assert end - start == cmd.length, f"Read of {end - start} bytes, SGL of {cmd.length}"
            self.data_in(cmd, ns.data[start:end])

    def write(self, cmd):
        extent = self._extent(cmd)
        if extent:
            ns, start, end = extent
            assert end - start == len(cmd.out), f"Write of {end - start} bytes, {len(cmd.out)}"
            ns.data[start:end] = cmd.out
            self.complete(cmd)

    def compare(self, cmd):
        extent = self._extent(cmd)
        if extent:
            ns, start, end = extent
            same = ns.data[start:end] == cmd.out
            self.complete(cmd, 0 if same else nvme.COMPARE_FAILURE)

    def write_zeroes(self, cmd):
        extent = self._extent(cmd)
        if extent:
            ns, start, end = extent
            ns.data[start:end] = bytes(end - start)
            self.complete(cmd)

    def dsm(self, cmd):
        self.complete(cmd)

    def flush(self, cmd):
        self.complete(cmd)
