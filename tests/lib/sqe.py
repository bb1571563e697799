"""sqe.py - NVMe commands as submission queue entries, named with the specification's verbs."""
import struct

FLUSH, WRITE, READ, COMPARE, WRITE_ZEROES, DSM, VERIFY, COPY = 0, 1, 2, 5, 8, 9, 0x0C, 0x19
GET_LOG, IDENTIFY, ABORT, SET_FEATURES, GET_FEATURES, AER, KEEP_ALIVE = 2, 6, 8, 9, 0xA, 0xC, 0x18
CROSS_CTRL_RESET, GET_LBA_STATUS = 0x38, 0x86
RESV_REGISTER, RESV_REPORT, RESV_ACQUIRE, RESV_RELEASE = 0x0D, 0x0E, 0x11, 0x15
FABRICS = 0x7F
PROPERTY_SET, CONNECT, PROPERTY_GET, DISCONNECT = 0, 1, 4, 8

FUA = 1 << 30
DEAC = 1 << 25


class Sqe:
    """One command. The queue fills in the command id and the SGL unless they are set here."""

    def __init__(self, opcode, nsid=0, fuse=0, psdt=1, cid=None, sgl=None, **dwords):
        self.raw = bytearray(64)
        self.cid, self.sgl = cid, sgl
        struct.pack_into("<BB", self.raw, 0, opcode, psdt << 6 | fuse)
        struct.pack_into("<I", self.raw, 4, nsid)
        for name, value in dwords.items():
            struct.pack_into("<I", self.raw, 4 * int(name.removeprefix("dw")), value & 0xFFFFFFFF)

    def encode(self, cid, sgl):
        struct.pack_into("<H", self.raw, 2, self.cid if self.cid is not None else cid)
        self.raw[24:40] = self.sgl if self.sgl is not None else sgl
        return bytes(self.raw)


def sgl(address, length, kind):
    return struct.pack("<QI3xB", address, length, kind)


def sgl_capsule(length, offset=0):
    return sgl(offset, length, 0x01)


def sgl_transport(length):
    return sgl(0, length, 0x5A)


def connect(qid=0, sqsize=31, kato=0, cattr=0, recfmt=0, **kw):
    return Sqe(FABRICS, CONNECT, dw10=recfmt | qid << 16, dw11=sqsize | cattr << 16, dw12=kato,
               **kw)


def nqn_field(nqn):
    return (nqn if isinstance(nqn, bytes) else nqn.encode()).ljust(256, b"\0")


def connect_data(subnqn, hostnqn, hostid, cntlid=0xFFFF):
    head = hostid + struct.pack("<H", cntlid)
    return (head.ljust(256, b"\0") + nqn_field(subnqn) + nqn_field(hostnqn)).ljust(1024, b"\0")


def property_get(offset, size=4, **kw):
    return Sqe(FABRICS, PROPERTY_GET, dw10=int(size == 8), dw11=offset, **kw)


def property_set(offset, value, size=4, **kw):
    return Sqe(FABRICS, PROPERTY_SET, dw10=int(size == 8), dw11=offset, dw12=value,
               dw13=value >> 32, **kw)


def disconnect(recfmt=0):
    return Sqe(FABRICS, DISCONNECT, dw10=recfmt)


def identify(cns, nsid=0, cntid=0, csi=0, **kw):
    return Sqe(IDENTIFY, nsid, dw10=cns | cntid << 16, dw11=csi << 24, **kw)


def get_features(fid, nsid=0, sel=0, dw11=0, **kw):
    return Sqe(GET_FEATURES, nsid, dw10=fid | sel << 8, dw11=dw11, **kw)


def set_features(fid, value=0, nsid=0, save=0, **kw):
    return Sqe(SET_FEATURES, nsid, dw10=fid | save << 31, dw11=value, **kw)


def get_log(lid, length, offset=0, nsid=0, rae=0, lsi=0, lsp=0, **kw):
    numd = length // 4 - 1
    return Sqe(GET_LOG, nsid, dw10=lid | lsp << 8 | rae << 15 | (numd & 0xFFFF) << 16,
               dw11=numd >> 16 | lsi << 16, dw12=offset, dw13=offset >> 32, **kw)


def get_lba_status(nsid, slba, rl, length, atype=2, mndw=None, **kw):
    return Sqe(GET_LBA_STATUS, nsid, dw10=slba, dw11=slba >> 32,
               dw12=length // 4 - 1 if mndw is None else mndw, dw13=rl | atype << 24, **kw)


def abort(sqid, cid):
    return Sqe(ABORT, dw10=sqid | cid << 16)


def blocks(opcode, nsid, slba, count, bits=0, **kw):
    """A command over `count` logical blocks from `slba`; `bits` are those of dword 12."""
    return Sqe(opcode, nsid, dw10=slba, dw11=slba >> 32, dw12=((count - 1) & 0xFFFF) | bits, **kw)


def dsm(nsid, ranges, attributes=4):
    return Sqe(DSM, nsid, dw10=(ranges - 1) & 0xFF, dw11=attributes)


def dsm_ranges(ranges):
    return b"".join(struct.pack("<IIQ", 0, count, slba) for slba, count in ranges)


def copy(nsid, sdlba, ranges, fmt=0):
    return Sqe(COPY, nsid, dw10=sdlba, dw11=sdlba >> 32, dw12=((ranges - 1) & 0xFF) | fmt << 8)


def copy_ranges(ranges):
    return b"".join(struct.pack("<8xQH14x", slba, count - 1) for slba, count in ranges)
