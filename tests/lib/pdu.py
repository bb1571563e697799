"""pdu.py - NVMe/TCP PDUs as bytes: right by default, wrong exactly where a test says so.

    | common header | rest of header | HDGST | pad | data | DDGST |
    0               8                hlen          pdo            plen
"""
import struct

ICREQ, ICRESP, H2CTERM, C2HTERM, CMD, RSP, H2CDATA, C2HDATA, R2T = 0, 1, 2, 3, 4, 5, 6, 7, 9
HDGSTF, DDGSTF, LAST, SUCCESS = 1, 2, 4, 8

HLEN = {ICREQ: 128, ICRESP: 128, H2CTERM: 24, C2HTERM: 24, CMD: 72, RSP: 24,
        H2CDATA: 24, C2HDATA: 24, R2T: 24}
UNDIGESTED = (ICREQ, ICRESP, H2CTERM, C2HTERM)
FROM_CONTROLLER = (ICRESP, C2HTERM, RSP, C2HDATA, R2T)
COMMON = ("type", "flags", "hlen", "pdo", "plen")


def crc_table(poly=0x82F63B78):
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = (crc >> 1) ^ (poly if crc & 1 else 0)
        table.append(crc)
    return table


CRC = crc_table()


def crc32c(data):
    crc, table = 0xFFFFFFFF, CRC
    for byte in bytes(data):
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def digest(data, spoiled=False):
    return struct.pack("<I", crc32c(data) ^ (0x80000001 if spoiled else 0))


def roundup(n, to):
    return -(-n // to) * to


def encode(type, body, data=b"", flags=0, hdgst=False, ddgst=False, align=4, spoil="", **wrong):
    """One PDU. `wrong` overrides fields of the common header; `spoil` names a digest to corrupt."""
    hdgst = hdgst and type not in UNDIGESTED
    ddgst = ddgst and bool(data) and type not in UNDIGESTED
    end = 8 + len(body) + 4 * hdgst
    pdo = roundup(end, align) if data else 0
    right = dict(type=type, flags=flags | HDGSTF * hdgst | DDGSTF * ddgst, hlen=8 + len(body),
                 pdo=pdo, plen=(pdo or end) + len(data) + 4 * ddgst)
    out = struct.pack("<4BI", *[wrong.get(name, right[name]) for name in COMMON]) + body
    if hdgst:
        out += digest(out, spoil == "hdgst")
    if data:
        out = out.ljust(pdo, b"\0") + data
    if ddgst:
        out += digest(data, spoil == "ddgst")
    return out


def icreq(pfv=0, hpda=0, dgst=0, maxr2t=0, size=128):
    return struct.pack("<HBBI", pfv, hpda, dgst, maxr2t).ljust(size - 8, b"\0")


def h2cdata(cccid, ttag, offset, length):
    return struct.pack("<HHII4x", cccid, ttag, offset, length)


def term(fes, fei=0):
    return struct.pack("<HI10x", fes, fei)


class Pdu:
    """A PDU from the controller, taken apart; whatever is malformed in it is an AssertionError."""

    def __init__(self, raw, hdgst=False, ddgst=False, align=4):
        self.type, self.flags, self.hlen, self.pdo, self.plen = struct.unpack_from("<4BI", raw)
        assert self.type in FROM_CONTROLLER, f"PDU type {self.type:#x} from a controller"
        assert self.hlen == HLEN[self.type], f"hlen {self.hlen} in PDU type {self.type}"
        self.head, self.data = raw[:self.hlen], b""
        if self.type == C2HTERM:
            self.data = raw[self.hlen:]
            assert self.plen <= 152, f"C2HTermReq of {self.plen} bytes"
        elif self.type == ICRESP:
            assert self.plen == 128
        else:
            self.check_layout(raw, hdgst, ddgst and self.type == C2HDATA, align)

    def check_layout(self, raw, hdgst, ddgst, align):
        assert bool(self.flags & HDGSTF) == hdgst and bool(self.flags & DDGSTF) == ddgst, \
            f"digest flags {self.flags:#x} in PDU type {self.type}"
        end = self.hlen + 4 * hdgst
        if hdgst:
            assert raw[self.hlen:end] == digest(self.head), "header digest"
        if self.type != C2HDATA:
            assert self.plen == end, f"plen {self.plen} in PDU type {self.type}"
            return
        assert self.pdo >= end and self.pdo % align == 0, f"C2HData pdo {self.pdo}"
        assert self.plen == self.pdo + self.length + 4 * ddgst, f"C2HData plen {self.plen}"
        self.data = raw[self.pdo:self.pdo + self.length]
        if ddgst:
            assert raw[self.pdo + self.length:] == digest(self.data), "data digest"

    def at(self, fmt, offset):
        return struct.unpack_from("<" + fmt, self.head, offset)[0]

    cccid = property(lambda self: self.at("H", 8))
    ttag = property(lambda self: self.at("H", 10))
    offset = property(lambda self: self.at("I", 12))
    length = property(lambda self: self.at("I", 16))
    fes = property(lambda self: self.at("H", 8))
    fei = property(lambda self: self.at("I", 10))

    def __repr__(self):
        if self.type == C2HTERM:
            return f"C2HTermReq(fes={self.fes}, fei={self.fei:#x})"
        return f"Pdu(type={self.type}, flags={self.flags:#x}, plen={self.plen})"
