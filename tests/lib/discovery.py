"""discovery.py - the discovery log page, taken apart."""
import struct
from collections import namedtuple

LOG = 0x70
NOTICE = (2, 0xF0, LOG)         # the event that tells of a change

Entry = namedtuple("Entry", "trtype adrfam subtype portid cntlid asqsz trsvcid subnqn traddr")


def text(raw):
    return raw.rstrip(b"\0 ").decode()


def entry(raw):
    trtype, adrfam, subtype, _, portid, cntlid, asqsz = struct.unpack_from("<4B3H", raw)
    return Entry(trtype, adrfam, subtype, portid, cntlid, asqsz, text(raw[32:64]),
                 text(raw[256:512]), text(raw[512:768]))


def read_log(ctrl):
    """(generation counter, entries of NVM subsystems)."""
    genctr, numrec, recfmt = struct.unpack_from("<QQH", ctrl.log(LOG, 1024))
    assert recfmt == 0
    raw = ctrl.log(LOG, 1024 * (1 + numrec))
    entries = [entry(raw[at:at + 1024]) for at in range(1024, len(raw), 1024)]
    return genctr, [e for e in entries if e.subtype == 2]
