#!/usr/bin/python3
"""target_identify.py - what the target says it is, and that it says so consistently."""
import pathlib
import struct
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import tap
from fixture import connect, with_host
from nvme import INVALID_FIELD, INVALID_NS

NAMESPACES = ["mem:64M,block=4096", "mem:32M,block=512,nsid=5", "mem:16M,nsid=7"]
ALL = [1, 5, 7]

# name, offset, format, what is true of it
CONTROLLER = [
    ("CMIC: several controllers", 76, "B", lambda v: v & 2),
    ("MDTS", 77, "B", lambda v: v == 0 or 4096 << v >= 128 << 10),
    ("VER", 80, "I", lambda v: v >= 0x20000),
    ("OAES: namespace attribute notices", 92, "I", lambda v: v & 0x100),
    ("CTRATT: 128-bit host id, traffic-based keep alive", 96, "I", lambda v: v & 0x41 == 0x41),
    ("CNTRLTYPE: I/O controller", 111, "B", lambda v: v == 1),
    ("OACS: no namespace management", 256, "H", lambda v: v & 0x08 == 0),
    ("AERL", 259, "B", lambda v: v >= 1),
    ("LPA: effects log, extended data", 261, "B", lambda v: v & 0x06 == 0x06),
    ("KAS", 320, "H", lambda v: v > 0),
    ("SQES", 512, "B", lambda v: v == 0x66),
    ("CQES", 513, "B", lambda v: v == 0x44),
    ("MAXCMD", 514, "H", lambda v: v > 0),
    ("NN", 516, "I", lambda v: v >= 7),
    ("ONCS: compare, DSM, write zeroes, timestamp, verify, copy", 520, "H",
     lambda v: v & 0x1CD == 0x1CD),
    ("FUSES: compare and write", 522, "H", lambda v: v & 1),
    ("VWC: flush of all namespaces is told", 525, "B", lambda v: v & 6 in (4, 6)),
    ("SGLS: SGLs, and offsets into the capsule", 536, "I", lambda v: v & 3 and v & 1 << 20),
    ("IOCCSZ", 1792, "I", lambda v: v * 16 >= 64 + 4096),
    ("IORCSZ", 1796, "I", lambda v: v == 1),
    ("ICDOFF", 1800, "H", lambda v: v == 0),
    ("FCATT: dynamic controllers", 1802, "B", lambda v: v & 1 == 0),
    ("MSDBD", 1803, "B", lambda v: v == 1),
    ("OFCS: Disconnect", 1804, "H", lambda v: v & 1),
]


def text(raw):
    return raw.rstrip(b"\0 ").decode("ascii")


def u32s(raw):
    values = struct.unpack(f"<{len(raw) // 4}I", raw)
    return list(values[:values.index(0)]) if 0 in values else list(values)


@with_host("CNS 01: controller", ns=NAMESPACES)
def _(t, ctrl):
    wrong = [f"{name}: {value:#x}" for name, at, fmt, good in CONTROLLER
             if not good(value := struct.unpack_from("<" + fmt, ctrl.id, at)[0])]
    assert not wrong, wrong
    subsystem = t.subsystem()
    assert text(ctrl.id[4:24]) == subsystem["serial"] != ""
    assert text(ctrl.id[24:64]) == subsystem["model"] != ""
    assert text(ctrl.id[64:72]) != ""
    assert text(ctrl.id[768:1024]) == t.nqn
    assert struct.unpack_from("<H", ctrl.id, 78)[0] == ctrl.cntlid


@with_host("CNS 00: namespace", ns=NAMESPACES)
def _(t, ctrl):
    for ns in t.subsystem()["namespaces"]:
        raw, disk = ctrl.identify(0, ns["nsid"]), ctrl.disk(ns["nsid"])
        nsze, ncap, nuse = struct.unpack_from("<3Q", raw)
        assert nsze == ncap >= nuse and nsze * disk.block == ns["size"]
        assert disk.block == ns["block_size"]
        assert raw[30] & 1, "NMIC: may be shared by controllers"
        assert raw[33] & 7 == 1, "DLFEAT: deallocated blocks read as zeroes"
        assert raw[104:120] != bytes(16), "NGUID"


@with_host("CNS 00: namespaces that are not there", ns=NAMESPACES)
def _(t, ctrl):
    ctrl.identify(0, 0xFFFFFFFE, want=INVALID_NS)
    cqe = ctrl.admin.do(nvme.sqe.identify(0, 6), length=4096, want=(nvme.SUCCESS, INVALID_NS))
    assert cqe.status or cqe.data == bytes(4096), "an inactive namespace is all zeroes"


# CNS, CSI, start, what is listed
LISTS = [(cns, start, [n for n in ALL if n > start])
         for cns in (0x02, 0x07, 0x10) for start in (0, 1, 4, 5, 7, 100)]


@with_host("CNS 02, 07, 10: lists of namespaces", ns=NAMESPACES)
def _(t, ctrl):
    for cns, start, want in LISTS:
        got = u32s(ctrl.identify(cns, start))
        assert got == want, f"CNS {cns:#x} from {start}: {got}"


EVERY = "subsystems:\n  - nqn: nqn.2026-11.io.weft:test\n    namespaces:\n" + \
    "".join(f'      - {{ nsid: {nsid}, backend: "null:1M" }}\n' for nsid in range(1, 1025))


@with_host("as many namespaces as there can be: the last one is listed, found and served",
           config=EVERY)
def _(t, ctrl):
    last = struct.unpack_from("<I", ctrl.id, 516)[0]
    assert last == 1024 == len(t.subsystem()["namespaces"])
    for cns in (0x02, 0x07, 0x10):
        for start in (0, 1, 512, last - 2, last - 1, last):
            got = u32s(ctrl.identify(cns, start))
            assert got == list(range(start + 1, last + 1)), f"CNS {cns:#x} from {start}"
    ana = ctrl.log(0x0C, 16 + 32 + 4 * last)        # one group
    assert list(struct.unpack_from(f"<{last}I", ana, 48)) == list(range(1, last + 1))
    ctrl.disk(last).read(0)
    for cns in (0, 3, 8, 0x11):
        assert any(ctrl.identify(cns, last))
        ctrl.identify(cns, last + 1, want=INVALID_NS)
    ctrl.log(4, 4096)
    t.ctl("namespace-remove", nsid=last)
    assert u32s(ctrl.log(4, 4096)) == [last]
    assert u32s(ctrl.identify(2, 0)) == list(range(1, last))


def descriptors(raw):
    found, at = {}, 0
    while raw[at]:
        kind, size = raw[at], raw[at + 1]
        found[kind] = raw[at + 4:at + 4 + size]
        at += 4 + size
    return found


@with_host("CNS 03: namespace descriptors", ns=NAMESPACES)
def _(t, ctrl):
    for ns in t.subsystem()["namespaces"]:
        found = descriptors(ctrl.identify(3, ns["nsid"]))
        assert found[3] == uuid.UUID(ns["uuid"]).bytes
        assert found[2] == ctrl.identify(0, ns["nsid"])[104:120]
        assert found[2].hex() == ns["nguid"].replace("-", "")
        assert found[4] == b"\0", "the NVM command set"
    ctrl.identify(3, 99, want=INVALID_NS)


@with_host("uuid= in the specification is the identity", ns=[
    "mem:16M,uuid=11111111-2222-3333-4444-555555555555"])
def _(t, ctrl):
    assert descriptors(ctrl.identify(3, 1))[3].hex() == "11111111222233334444555555555555"


@with_host("CNS 05, 06, 08: the NVM command set", ns=NAMESPACES)
def _(t, ctrl):
    ctrl.identify(5, 1)
    ctrl.identify(5, 99, want=(INVALID_NS, nvme.SUCCESS))
    dmrl, dmrsl, dmsl = struct.unpack_from("<BIQ", ctrl.identify(6), 3)
    assert (dmrl, dmrsl, dmsl) == (255, 1 << 18, 1 << 18), "limits of Dataset Management: all, or none"
    raw = ctrl.identify(8, 1)
    assert raw[1] & 1, "NMIC"
    assert raw[14] & 1, "NSTAT: ready"


@with_host("CNS 11: allocated namespace", ns=NAMESPACES)
def _(t, ctrl):
    for nsid in ALL:
        assert ctrl.identify(0x11, nsid) == ctrl.identify(0, nsid)


def controller_list(raw):
    count = struct.unpack_from("<H", raw)[0]
    return list(struct.unpack_from(f"<{count}H", raw, 2))


@with_host("CNS 12, 13: lists of controllers", ns=NAMESPACES)
def _(t, ctrl):
    with connect(t) as other:
        both = sorted([ctrl.cntlid, other.cntlid])
        for cns in (0x12, 0x13):
            assert controller_list(ctrl.identify(cns, 1)) == both
            assert controller_list(ctrl.identify(cns, 1, cntid=both[0] + 1)) == both[1:]
            assert controller_list(ctrl.identify(cns, 1, cntid=both[1] + 1)) == []
    ctrl.identify(0x12, 99, want=(INVALID_NS, nvme.SUCCESS))


@with_host("CNS 1C: command sets")
def _(t, ctrl):
    for cntid in (0xFFFF, ctrl.cntlid):
        sets = struct.unpack("<512Q", ctrl.identify(0x1C, cntid=cntid))
        assert sets[0] == 1 and not any(sets[1:])


@with_host("CNS 14 to 16: no virtualization, no granularity")
def _(t, ctrl):
    for cns in (0x14, 0x15, 0x16):
        ctrl.identify(cns, want=INVALID_FIELD)


@with_host("properties")
def _(t, ctrl):
    cap = ctrl.get(nvme.CAP, 8)
    assert (cap & 0xFFFF) + 1 >= 128, "MQES"
    assert cap >> 16 & 1, "CQR: contiguous queues required"
    assert cap >> 37 & 1, "CSS: NVM command set"
    assert cap >> 48 & 0xF == 0, "MPSMIN: 4 KiB"
    assert ctrl.get(nvme.VS) == struct.unpack_from("<I", ctrl.id, 80)[0]
    assert ctrl.get(nvme.CC) & 1 and ctrl.get(nvme.CSTS) == 1


sys.exit(tap.run())
