"""identify.py - identify structures that no controller should have."""
import json
import struct

import nasty
import structures
from host_bad import (PATIENT, Target, case, fails, id, normally, read, run, survives, works,
                      write)


def patched(cns, *patches, only=None):
    """Identify with bytes written over it: (offset, struct format, value…)."""
    def step(conn, got, nsid):
        data = normally(conn, "identified", got, nsid)
        if got == cns and data is not None and only in (None, nsid):
            data = bytearray(data)
            for offset, fmt, *values in patches:
                struct.pack_into("<" + fmt, data, offset, *values)
        return data
    return step


# --- the controller: much of it means nothing over a fabric, and a host may overlook it

CONTROLLER = [
    ("MDTS 255", (77, "B", 255)),
    ("MDTS 40", (77, "B", 40)),
    ("MDTS 1", (77, "B", 1)),
    ("CNTLID that is another", (78, "H", 0x77)),
    ("SQES 0", (512, "B", 0)),
    ("SQES 77h", (512, "B", 0x77)),
    ("CQES 0", (513, "B", 0)),
    ("CQES 55h", (513, "B", 0x55)),
    ("IOCCSZ 0", (1792, "I", 0)),
    ("IOCCSZ 3", (1792, "I", 3)),
    ("IORCSZ 0", (1796, "I", 0)),
    ("ICDOFF FFFFh", (1800, "H", 0xFFFF)),
    ("MAXCMD 0", (514, "H", 0)),
    ("MAXCMD 1", (514, "H", 1)),
    ("KAS FFFFh", (320, "H", 0xFFFF)),
    ("NN 0", (516, "I", 0)),
    ("NN FFFFFFFFh", (516, "I", 0xFFFFFFFF)),
    ("AERL 255", (259, "B", 255)),
    ("AERL 0", (259, "B", 0)),
    ("VWC FFh", (525, "B", 0xFF)),
    ("no SGL support", (536, "I", 0)),
    ("CNTRLTYPE 3, administrative", (111, "B", 3)),
    ("CNTRLTYPE 2, discovery", (111, "B", 2)),
    ("SUBNQN of another", (768, "30s", b"nqn.2026-11.io.weft:someone")),
    ("SUBNQN without terminator", (768, "256s", b"x" * 256)),
    ("control characters in its strings", (4, "60s", b"\x1b[2J\0\n\r\x07" * 8)),
    ("bytes that are no text in its strings", (4, "68s", b"\xff\xfe\x80" * 22)),
]
for name, patch in CONTROLLER:
    survives(f"Identify controller: {name}", identified=patched(1, patch))
    survives(f"Identify controller: {name}, write", write, identified=patched(1, patch))
works("Identify controller: room for 1 GiB in a capsule", write, icd=1 << 30)
for fill in (0x00, 0xFF, 0x55):
    survives(f"Identify controller: all {fill:#x}", identified=patched(1, (0, "4096s",
                                                                       bytes([fill]) * 4096)))
    fails(f"Identify namespace: all {fill:#x}", r"namespace",
          identified=patched(0, (0, "4096s", bytes([fill]) * 4096)))

# --- the namespace

NAMESPACE = [
    ("NSZE 0", (0, "Q", 0), "namespace|size|beyond|end"),
    ("NSZE of all ones", (0, "Q", (1 << 64) - 1), "namespace|size"),
    ("NSZE with a product that wraps", (0, "Q", 1 << 55), "namespace|size"),
    *[(f"a block of 2^{shift} bytes", (128, "I", shift << 16), "block|format|LBA")
      for shift in (0, 1, 8, 17, 32, 40, 64, 255)],
    ("metadata of 8 bytes", (128, "I", 9 << 16 | 8), "metadata"),
    ("metadata of 65535 bytes", (128, "I", 9 << 16 | 0xFFFF), "metadata"),
    ("metadata inside the data", (26, "B102xI", 0x10, 9 << 16 | 8), "metadata"),
    ("FLBAS that names no format", (26, "B", 0x0F), "format|LBA|block"),
    ("FLBAS 7Fh", (26, "B", 0x7F), "format|LBA|block"),
]
for name, patch, why in NAMESPACE:
    fails(f"Identify namespace: {name}", why, identified=patched(0, patch))
    fails(f"Identify namespace: {name}, write", why, write, identified=patched(0, patch))
    survives(f"Identify namespace: {name}, id", id, identified=patched(0, patch))
fails("Identify namespace: smaller than what is read", "end|beyond|range|size",
      identified=patched(0, (0, "QQQ", 8, 8, 8)))
fails("the namespace is not there", "namespace", namespaces={})
survives("NCAP and NUSE beyond NSZE", id, identified=patched(0, (8, "QQ", 1 << 60, 1 << 62)))

# --- descriptors

DESCRIPTORS = [
    ("of length 0", struct.pack("<BB", 3, 0)),
    ("of length 255", struct.pack("<BB", 3, 255) + b"\x11" * 300),
    ("of an unknown type", struct.pack("<BBxx", 9, 4) + b"abcd"),
    ("twice", (struct.pack("<BBxx", 3, 16) + b"a" * 16) * 2),
    ("that run to the end", b"".join(struct.pack("<BBxx", 1, 8) + bytes(8) for _ in range(342))),
    ("cut off at the end", (struct.pack("<BBxx", 9, 248) + bytes(248)) * 16 + b"\3\x10\0\0" * 16),
    ("of all ones", b"\xff" * 4096),
    ("of none", b""),
]
for name, raw in DESCRIPTORS:
    survives(f"namespace descriptors {name}", id,
             identified=patched(3, (0, "4096s", raw.ljust(4096, b"\0")[:4096])))


def one_descriptor(t, result):
    """The first: what the second would have is not on the page."""
    shown = json.loads(run("id", t.uri(**PATIENT), "--ns", "1", "--json").out)
    assert list(shown["namespace"]["descriptors"]) == ["eui64"], shown["namespace"]["descriptors"]


# 16 × 252 bytes, of which each is the same, leave 64; 12 of them; and 48 for one of 60.
works("namespace descriptors of which the last leaves the page", id, look=one_descriptor,
      identified=patched(3, (0, "4096s", (struct.pack("<BBxx", 1, 248) + bytes(248)) * 16
                             + struct.pack("<BBxx8s", 1, 8, b"12345678")
                             + struct.pack("<BBxx48s", 9, 60, b"\x11" * 48))))
works("namespace descriptors refused", id, identified=lambda conn, cns, nsid:
      None if cns == 3 else normally(conn, "identified", cns, nsid))

# --- the list

LISTS = {
    "unordered": [5, 1, 3], "duplicated": [1, 1, 1], "full": list(range(1, 1025)),
    "full of one": [1] * 1024, "full of FFFFFFFFh": [0xFFFFFFFF] * 1024,
    "full and descending": list(range(1024, 0, -1)), "with FFFFFFFEh": [1, 0xFFFFFFFE],
    "of namespaces that are not there": [7, 8, 9],
}


def listed(nsids, forever=False):
    """`forever`: every list is full, whatever nsid it is asked to start from."""
    def step(conn, cns, nsid):
        if cns != 2:
            return normally(conn, "identified", cns, nsid)
        return structures.ns_list(nsids if forever or nsid == 0 else [])
    return step


for name, nsids in LISTS.items():
    survives(f"namespace list {name}", id, identified=listed(nsids))
    survives(f"namespace list {name}, without end", id, identified=listed(nsids, forever=True))
    survives(f"namespace list {name}, read", read, identified=listed(nsids, forever=True))


# Serial and model, firmware, subsystem: of the target's choice, wherever they are printed
@case("names of the target do not reach the terminal as they are")
def _():
    for name in [*nasty.NAMES.values(), b"\x1b[2J\x9b\x07\r\n\t" * 4]:
        odd = name[21:]
        step = patched(1, (4, "20s", odd), (24, "40s", odd), (64, "8s", odd), (768, "256s", name))
        with Target(identified=step) as t:
            for words in (["id"], ["id", "--json"], ["ls"], ["ls", "--json"]):
                result = run(words[0], t.uri(**PATIENT), *words[1:])
                assert result.code == 0, result
                nasty.fit_to_see(result.out + result.err.encode())
                if "--json" in words:
                    json.loads(result.out)


# --- what only weft id looks at

def lies_about_namespaces(more):
    """The ANA log page with its namespaces, so many more than there is room for; without, as the
    library reads it, it is in order."""
    def step(conn, cmd):
        if cmd.dw(10) & 0x1FF != 0xC:
            return normally(conn, "get_log", cmd)
        count = min((cmd.length - 48) // 4 + more, 0xFFFFFFFF)
        page = struct.pack("<QH6xIIQB", 1, 65535, 7, count, 1, 1)
        conn.data_in(cmd, page.ljust(cmd.length, b"\0"))
    return step


def shows_no_group(_t, result):
    ana = json.loads(result.out)["ana"]
    assert ana["ngrps"] == 65535 and ana["groups"] == [], ana


works("the ANA log page has more namespaces than bytes", command=id, ana={7: 1},
      get_log=lies_about_namespaces(1 << 32), look=shows_no_group)
works("the ANA log page has one namespace too many", command=id, ana={7: 1},
      get_log=lies_about_namespaces(1), look=shows_no_group)
