"""lba_status.py - targets that tell what is allocated, and those that lie: `weft cp` has every byte."""
import pathlib
import signal
import struct
import subprocess
import tempfile

import nvme
import structures
import weft
from host_bad import PATIENT, Namespace, Target, case, normally, run

BLOCKS, PIECE = 2048, 128           # of 512 bytes: a namespace of 1 MiB, 16 pieces
DATA = (512, 256)                   # what is allocated: pieces 4 and 5
LAST, MIB = 2 ** 64 - 1, 1 << 20


def contents(elsewhere=b"\0"):
    first, count = DATA
    whole = bytearray(elsewhere * BLOCKS * 512)
    whole[first * 512:(first + count) * 512] = nvme.pattern(7, count * 512)
    return whole


def offering(oacs=1 << 9, aocs=1, dlfeat=1):
    """Identify says that it tells what is allocated, and what the rest reads as."""
    def identified(conn, cns, nsid):
        if cns == 6:
            page = bytearray(4096)
            structures.put(page, "H", 18, aocs)
            return page
        data = normally(conn, "identified", cns, nsid)
        if cns == 1:
            structures.put(data, "H", 256, oacs)
        elif cns == 0 and any(data):
            structures.put(data, "B", 33, dlfeat)
        return data
    return identified


def answer(cmpc, descs, nlsd=None):
    raw = struct.pack("<IB3x", len(descs) if nlsd is None else nlsd, cmpc)
    return raw + b"".join(struct.pack("<QIxB2x", slba, nlb, 2) for slba, nlb in descs)


def says(*args, **kw):
    def step(conn, cmd):
        assert cmd.dw(13) >> 24 == 2, f"ATYPE {cmd.dw(13) >> 24:#x}"
        assert (cmd.dw(12) + 1) * 4 == cmd.length >= 24
        conn.data_in(cmd, answer(*args, **kw).ljust(cmd.length, b"\0"))
    return step


def copy(name, reads, elsewhere=b"\0", words=None, asks=None, more=0, **script):
    """All bytes are right, and so many pieces were read (None: as many as it takes)."""
    @case(name)
    def _():
        whole = contents(elsewhere) + bytes(more)
        with Target(namespaces={1: Namespace(whole)}, **script) as t, \
                tempfile.TemporaryDirectory(prefix="weft-") as folder:
            path = pathlib.Path(folder, "out")
            result = run("cp", "--bs", "64K", t.uri(nsid=1, **PATIENT | (words or {})), str(path))
            assert result.code == 0, result
            assert path.read_bytes() == whole, "wrong bytes"
            seen = [name for _, name in t.commands]
            assert reads in (None, seen.count("read")), seen
            assert asks in (None, seen.count("get_lba_status")), seen


ALL = BLOCKS // PIECE

copy("allocated: told whole", 2, identified=offering(), get_lba_status=says(2, [DATA]), asks=1)
copy("allocated: told short, with the success of less data", 2, identified=offering(),
     get_lba_status=lambda conn, cmd: conn.data_in(cmd, answer(2, [DATA])))


def one_block_at_a_time(conn, cmd):
    """The next block from SLBA on that is allocated."""
    first, count = DATA
    at = max(cmd.slba, first)
    told = answer(1, [(at, 1)]) if at < first + count else answer(2, [])
    conn.data_in(cmd, told.ljust(cmd.length, b"\0"))


copy("allocated: told a block at a time", 2, identified=offering(), get_lba_status=one_block_at_a_time)
copy("allocated: told beyond the namespace", 12, identified=offering(),
     get_lba_status=says(2, [(512, 2 ** 32 - 1)]))

# Where it is not offered, nobody asks.
copy("allocated: OACS does not say it", ALL, identified=offering(oacs=0),
     get_lba_status=says(2, []), asks=0)
copy("allocated: AOCS does not say it", ALL, identified=offering(aocs=0xFFFE),
     get_lba_status=says(2, []), asks=0)
for dlfeat in (0, 2, 3, 7, 8):
    copy(f"allocated: DLFEAT {dlfeat}: the rest need not be zeroes", ALL, b"\xff",
         identified=offering(dlfeat=dlfeat), get_lba_status=says(2, [DATA]), asks=0)

# What cannot be is not believed: all is read. name, CMPC, descriptors, NLSD
LIES = [
    ("nothing, and that is not all", 1, [], None),
    ("nothing, and no word of it", 0, [], None),
    ("more than fits", 2, [(0, 1)], 256),
    ("as many as there are numbers", 2, [(0, 1)], 2 ** 32 - 1),
    ("none of a block", 2, [(0, 0)], None),
    ("backwards", 2, [(600, 100), (512, 10)], None),
    ("the same twice", 2, [(0, 10), (0, 10)], None),
    ("overlapping", 2, [(0, 10), (9, 10)], None),
    ("beyond all numbers", 2, [(LAST, 2)], None),
]
for name, cmpc, descs, nlsd in LIES:
    copy(f"allocated, a lie: {name}", ALL, identified=offering(),
         get_lba_status=says(cmpc, descs, nlsd=nlsd))

copy("allocated: refused", ALL, identified=offering(),
     get_lba_status=lambda conn, cmd: conn.complete(cmd, nvme.INVALID_FIELD))
copy("allocated: success without data", ALL, identified=offering(),
     get_lba_status=lambda conn, cmd: conn.complete(cmd))
copy("allocated: no answer: it is asked once", None, identified=offering(), more=8 * MIB,
     words={"admin_timeout": "4s"}, get_lba_status=lambda conn, cmd: None, asks=1)
copy("allocated: the connection ends instead: it is asked three times", None, more=8 * MIB,
     identified=offering(), get_lba_status=lambda conn, cmd: conn.reset(), asks=3)


@case("allocated: SIGINT while there is no answer")
def _():
    """Who is told to stop does not wait for what may never come."""
    with Target(namespaces={1: Namespace(contents())}, identified=offering(),
                get_lba_status=lambda conn, cmd: None) as t, \
            tempfile.TemporaryDirectory(prefix="weft-") as folder:
        argv = [weft.BINARY, "cp", t.uri(nsid=1, **PATIENT | dict(admin_timeout="10m")),
                str(pathlib.Path(folder, "out"))]
        copying = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        weft.wait_until(lambda: (0, "get_lba_status") in t.commands, "the question")
        copying.send_signal(signal.SIGINT)
        _, err = copying.communicate(timeout=60)
        assert copying.returncode == 130 and b"SIGINT" in err, (copying.returncode, err)
