"""structures.py - what a controller returns as data: identify structures and logs."""
import struct
import uuid

UUID = uuid.UUID("5be1f3a2-0c3d-4a5e-9f60-7c8d9e0f1a2b")
VERSION = 0x00020000
DISCOVERY_SERVICE, REFERRAL, NVM, THIS_SERVICE = 3, 1, 2, 3


def put(raw, fmt, offset, *values):
    struct.pack_into("<" + fmt, raw, offset, *values)


def text(raw, offset, size, words):
    raw[offset:offset + size] = words.encode().ljust(size)


def identify_ctrl(target, ctrl):
    raw = bytearray(4096)
    text(raw, 4, 20, "PEER0001")
    text(raw, 24, 40, "scripted target")
    text(raw, 64, 8, "1.0")
    put(raw, "BHI", 77, target.mdts, ctrl.cntlid, VERSION)
    put(raw, "I", 92, 1 << 31 if ctrl.discovery else 1 << 8 | 1 << 11)     # OAES
    put(raw, "B", 111, 2 if ctrl.discovery else 1)              # CNTRLTYPE
    put(raw, "BB", 258, 3, 3)                                   # ACL, AERL
    put(raw, "B", 261, 0x04)                                    # LPA: extended data
    put(raw, "H", 320, target.kas)
    raw[768:1024] = ctrl.nqn.encode().ljust(256, b"\0")
    put(raw, "I", 536, 0x00100005)                              # SGLS
    if not ctrl.discovery:
        put(raw, "BBHI", 512, 0x66, 0x44, min(target.mqes + 1, 0xFFFF), 1024)
        put(raw, "H", 520, 0x0D)        # ONCS: compare, deallocate, write zeroes
        put(raw, "B", 525, target.vwc)
        if target.ana is not None:
            put(raw, "B", 76, 0x0B)                             # CMIC: ports, controllers, ANA
            put(raw, "BBII", 342, target.anatt, 0x1F, 1024, max(len(target.ana), 1))
        put(raw, "BQ", 135, target.ciu, target.cirn)
        put(raw, "H", 386, target.cqt)
        put(raw, "B", 1807, bool(target.ciu))                   # CCRL
        put(raw, "IIHBB", 1792, 4 + target.icd // 16, 1, 0, 0, 1)
    return raw


def identify_ns(ns, group=0, nmic=1):
    raw = bytearray(4096)
    put(raw, "QQQ", 0, ns.blocks, ns.blocks, ns.blocks)
    put(raw, "B", 30, nmic)
    put(raw, "I", 92, group)
    put(raw, "I", 128, ns.shift << 16)
    return raw


def descriptors(nsid):
    ident = bytes(UUID.bytes[:-1]) + bytes([nsid & 0xFF])
    return (struct.pack("<BBxx", 3, 16) + ident + struct.pack("<BBxxB", 4, 1, 0)).ljust(4096, b"\0")


def ana_log(states, count=1):
    """Of {group: state}, groups only."""
    groups = b"".join(struct.pack("<IIQB15x", group, 0, count, state)
                      for group, state in sorted(states.items()))
    return struct.pack("<QH6x", count, len(states)) + groups


def ns_list(nsids):
    return struct.pack(f"<{len(nsids)}I", *nsids).ljust(4096, b"\0")[:4096]


def entry(subnqn, port, traddr="127.0.0.1", subtype=NVM, trtype=3, adrfam=1, portid=1,
          cntlid=0xFFFF, trsvcid=None):
    raw = bytearray(1024)
    put(raw, "4BHHHH", 0, trtype, adrfam, subtype, 0, portid, cntlid, 128, 0)
    for offset, size, value in ((32, 32, str(port) if trsvcid is None else trsvcid),
                                (256, 256, subnqn), (512, 256, traddr)):
        value = value if isinstance(value, bytes) else value.encode()
        raw[offset:offset + size] = value.ljust(size, b"\0")[:size]
    return bytes(raw)


class DiscoveryLog:
    """Its generation is counted by the caller; `numrec` may lie."""

    def __init__(self, entries=(), generation=1, numrec=None, recfmt=0):
        self.entries, self.generation, self.recfmt = list(entries), generation, recfmt
        self.numrec = numrec

    def encode(self):
        count = len(self.entries) if self.numrec is None else self.numrec
        head = struct.pack("<QQH", self.generation, count, self.recfmt).ljust(1024, b"\0")
        return head + b"".join(self.entries)
