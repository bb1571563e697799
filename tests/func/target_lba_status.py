#!/usr/bin/python3
"""target_lba_status.py - Get LBA Status: which blocks are allocated."""
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import resv
import sqe
import tap
from fixture import connect, with_host, with_target
from nvme import INVALID_FIELD, INVALID_NS, LBA_RANGE, READ_ERROR, SGL_LENGTH

INCOMPLETE, COMPLETE = 1, 2
ANSWER_MAX = 4096

# Blocks of 4096 bytes, 16384 of them, in memory and in a file.
NAMESPACES = ["mem:64M,block=4096", "file:{dir}/disk,size=64M,block=4096"]


def ask(ctrl, nsid=1, slba=0, rl=0, length=1024, want=nvme.SUCCESS, **kw):
    """[(first block, blocks)], and whether that was all."""
    command = sqe.get_lba_status(nsid, slba, rl, length, **kw)
    cqe = ctrl.admin.do(command, length=length, want=want)
    if cqe.status:
        return None
    nlsd, cmpc = struct.unpack_from("<IB", cqe.data)
    found = [struct.unpack_from("<QIxB", cqe.data, 8 + 16 * i) for i in range(nlsd)]
    assert all(status == 2 for _, _, status in found)
    assert not any(cqe.data[8 + 16 * nlsd:])
    return [(slba, nlb) for slba, nlb, _ in found], {COMPLETE: True, INCOMPLETE: False}[cmpc]


def ask_all(ctrl, nsid, blocks, **kw):
    """As a host does: behind the last descriptor, until all is told."""
    found, at, complete = [], 0, False
    while not complete:
        more, complete = ask(ctrl, nsid, at, **kw)
        assert more or complete
        found += more
        at = sum(found[-1]) if found else blocks
    return found


def both(name, body):
    for nsid, kind in enumerate(("memory", "a file"), 1):
        def run(t, ctrl, nsid=nsid):
            body(ctrl, ctrl.disk(nsid))
        with_host(f"{name}: {kind}", ns=NAMESPACES)(run)


def case(name):
    return lambda body: both(name, body)


# --- what is allocated ---------------------------------------------------------------------------

@case("what was never written is not allocated")
def _(ctrl, disk):
    assert ask(ctrl, disk.nsid) == ([], True)


@case("what was written is allocated")
def _(ctrl, disk):
    disk.write(100, nvme.pattern(1, 2 * disk.block))
    disk.write(disk.blocks - 1, nvme.pattern(1, disk.block))
    disk.write(102, nvme.pattern(1, disk.block))
    assert ask(ctrl, disk.nsid) == ([(100, 3), (disk.blocks - 1, 1)], True)


@case("what is deallocated, or zeroed with DEAC, is not any more")
def _(ctrl, disk):
    disk.write(0, nvme.pattern(1, 16 * disk.block))
    disk.deallocate([(4, 4)])
    disk.zero(12, 2, bits=sqe.DEAC)
    assert ask(ctrl, disk.nsid) == ([(0, 4), (8, 4), (14, 2)], True)


# SLBA, RL, what is found of blocks 100 to 199
RANGES = [(0, 50, []), (0, 100, []), (0, 101, [(100, 1)]), (50, 0, [(100, 100)]),
          (100, 1, [(100, 1)]), (150, 0, [(150, 50)]), (150, 20, [(150, 20)]),
          (199, 1, [(199, 1)]), (199, 100, [(199, 1)]), (200, 0, []), (16383, 1, []), (16383, 0, [])]


@case("a range: SLBA and RL, which is 0 for the rest of the namespace")
def _(ctrl, disk):
    disk.write(100, nvme.pattern(1, 100 * disk.block))
    for slba, rl, want in RANGES:
        assert ask(ctrl, disk.nsid, slba, rl) == (want, True), (slba, rl)


@case("more than fits: the rest is asked for behind the last descriptor")
def _(ctrl, disk):
    for i in range(300):
        disk.write(i * 4, nvme.pattern(i, disk.block))
    want = [(i * 4, 1) for i in range(300)]
    assert ask(ctrl, disk.nsid, length=8 + 16) == (want[:1], False)
    assert ask(ctrl, disk.nsid, length=8 + 16 + 12) == (want[:1], False)
    assert ask_all(ctrl, disk.nsid, disk.blocks, length=8 + 16 * 7) == want
    assert ask_all(ctrl, disk.nsid, disk.blocks, length=ANSWER_MAX) == want


@case("however full it is, an answer is found by a bounded search")
def _(ctrl, disk):
    for slba in range(0, disk.blocks, 256):
        disk.write(slba, nvme.pattern(slba, 256 * disk.block))
    found = ask_all(ctrl, disk.nsid, disk.blocks)
    ends = [sum(extent) for extent in found]
    assert [slba for slba, _ in found] == [0] + ends[:-1] and ends[-1] == disk.blocks, found


@with_host("blocks of 512 bytes in pages of 4096", ns=["mem:1M,block=512"])
def _(t, ctrl):
    disk = ctrl.disk()
    disk.write(9, nvme.pattern(1, 512))
    assert ask(ctrl) == ([(8, 8)], True)
    assert ask(ctrl, slba=10) == ([(10, 6)], True)
    assert ask(ctrl, slba=3, rl=7) == ([(8, 2)], True)
    assert ask(ctrl, slba=2047) == ([], True)


@with_host("storage that does not know counts as allocated", ns=["null:64M,block=4096"])
def _(t, ctrl):
    assert ask(ctrl) == ([(0, 16384)], True)
    assert ask(ctrl, slba=5, rl=3) == ([(5, 3)], True)


@with_host("an extent of more blocks than a descriptor has numbers for", ns=["null:4T,block=512"])
def _(t, ctrl):
    most, blocks = 2 ** 32 - 1, 2 ** 33
    assert ask(ctrl) == ([(0, most)], False)
    assert ask_all(ctrl, 1, blocks) == [(0, most), (most, most), (2 * most, 2)]


# --- what is refused -----------------------------------------------------------------------------

# what, how it is asked, the status
REFUSED = [
    *((f"ATYPE {atype:#x}", {"atype": atype}, INVALID_FIELD) for atype in (0, 1, 3, 0x10, 0x11, 0xFF)),
    ("no namespace 0", {"nsid": 0}, INVALID_NS),
    ("no namespace 9", {"nsid": 9}, INVALID_NS),
    ("not all namespaces", {"nsid": 0xFFFFFFFF}, INVALID_NS),
    ("SLBA at the end", {"slba": 16384}, LBA_RANGE),
    ("SLBA beyond", {"slba": 2 ** 64 - 1}, LBA_RANGE),
    ("SLBA whose bytes overflow", {"slba": 2 ** 52}, LBA_RANGE),
    ("a range beyond the end", {"slba": 16383, "rl": 2}, LBA_RANGE),
    ("the longest range beyond the end", {"slba": 1, "rl": 0xFFFF}, LBA_RANGE),
    ("MNDW 0", {"mndw": 0}, INVALID_FIELD),
    ("MNDW without room for a descriptor", {"mndw": 4}, INVALID_FIELD),
    ("MNDW beyond the SGL", {"mndw": 1024}, SGL_LENGTH),
    ("the largest MNDW beyond the SGL", {"mndw": 2 ** 32 - 1}, SGL_LENGTH),
]


@with_host("refused, and the next is served", ns=NAMESPACES)
def _(t, ctrl):
    for name, kw, status in REFUSED:
        try:
            ask(ctrl, **kw, want=status)
            assert ask(ctrl) == ([], True)
        except Exception as err:
            raise AssertionError(name) from err


@with_host("the largest MNDW with room for our answer", ns=NAMESPACES)
def _(t, ctrl):
    assert ask(ctrl, mndw=2 ** 32 - 1, length=ANSWER_MAX) == ([], True)


@with_host("a file that somebody has cut: what is gone is no hole", ns=NAMESPACES)
def _(t, ctrl):
    os.truncate(f"{t.dir}/disk", 1 << 20)
    assert ask(ctrl, 2, rl=256) == ([], True)
    ask(ctrl, 2, want=READ_ERROR)
    ask(ctrl, 2, slba=300, rl=1, want=READ_ERROR)


@with_host("a group that is not reached here: another path knows", ns=NAMESPACES)
def _(t, ctrl):
    for state, status in (("inaccessible", nvme.ANA_INACCESSIBLE), ("change", nvme.ANA_TRANSITION),
                          ("optimized", nvme.SUCCESS), ("persistent-loss", nvme.ANA_LOSS)):
        t.ctl("ana-set", nqn=t.nqn, rules=[{"group": 1, "state": state}])
        ask(ctrl, want=status)


@with_target("a reservation that keeps others from reading does not keep them from asking",
             ns=NAMESPACES)
def _(t):
    alice, bob = resv.Host(t, 1), resv.Host(t, 2)
    alice.disk.write(3, nvme.pattern(1, 4096))
    alice.register()
    alice.acquire(resv.EA)
    bob.disk.read(3, want=nvme.RESERVATION_CONFLICT)
    assert ask(bob.ctrl) == ([(3, 1)], True)
    alice.ctrl.close()
    bob.ctrl.close()


# --- what is said of it --------------------------------------------------------------------------

@with_host("Identify and the effects log say it, and no more", ns=NAMESPACES)
def _(t, ctrl):
    assert struct.unpack_from("<H", ctrl.id, 256)[0] == 1 << 9, "OACS"
    assert struct.unpack_from("<H", ctrl.identify(6), 18)[0] == 1, "AOCS: RALBAS"
    assert struct.unpack_from("<I", ctrl.log(5, 2048), 4 * sqe.GET_LBA_STATUS)[0] == 1
    assert struct.unpack_from("<I", ctrl.id, 92)[0] & 1 << 13 == 0, "OAES: no LBA status events"
    ctrl.log(0x0E, 512, want=nvme.INVALID_LOG)


@with_target("a discovery controller does not take it")
def _(t):
    with connect(t, nqn=nvme.DISCOVERY) as ctrl:
        ask(ctrl, want=nvme.INVALID_OPCODE)


# --- beside others -------------------------------------------------------------------------------

@with_host("many at once, of a file and of memory, while others read and write", ns=NAMESPACES)
def _(t, ctrl):
    disks = [ctrl.disk(1), ctrl.disk(2)]
    for disk in disks:
        disk.write(7, nvme.pattern(1, disk.block))
    cids = [ctrl.admin.submit(sqe.get_lba_status(1 + i % 2, 0, 0, 1024), length=1024) for i in range(16)]
    for disk in disks:
        assert disk.read(7) == nvme.pattern(1, disk.block)
    for cid in cids:
        assert struct.unpack_from("<IBxxxQI", ctrl.admin.wait(cid).data) == (1, COMPLETE, 7, 1)


@with_host("the namespace goes while it is asked about", ns=NAMESPACES)
def _(t, ctrl):
    for nsid in (1, 2):
        cids = [ctrl.admin.submit(sqe.get_lba_status(nsid, 0, 0, 1024), length=1024) for _ in range(16)]
        t.ctl("namespace-remove", nqn=t.nqn, nsid=nsid)
        for cid in cids:
            ctrl.admin.wait(cid, (nvme.SUCCESS, INVALID_NS))
        ask(ctrl, nsid, want=INVALID_NS)


sys.exit(tap.run())
