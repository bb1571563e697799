#!/usr/bin/python3
"""target_storage.py - storage that fails: what hosts are told, what is counted, what the log says."""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import tap
import weft
from command import on_terminal
from fixture import connect, with_host
from nvme import FAILED_FUSED, READ_ERROR, SUCCESS, pattern

FILE = ["file:{dir}/a.img,size=16M", "mem:16M"]
ENDURANCE_GROUP = 9


def cut(t, size=1 << 20):
    """Somebody takes the file's end away: what is beyond it cannot be read."""
    with open(t.dir / "a.img", "r+b") as file:
        file.truncate(size)


def media_errors(ctrl):
    """As SMART has it, and with it the endurance group."""
    smart = ctrl.log(2, 512, nsid=0xFFFFFFFF)
    group = ctrl.log(ENDURANCE_GROUP, 512, lsi=1)
    count, same = struct.unpack_from("<Q", smart, 160)[0], struct.unpack_from("<Q", group, 128)[0]
    assert count == same, (count, same)
    return count


def shown(t, nsid=1):
    ns = next(ns for ns in t.subsystem()["namespaces"] if ns["nsid"] == nsid)
    return ns["read_errors"], ns["write_errors"]


def lines(t):
    return [line for line in t.log.read_text().splitlines() if " failed: " in line]


@with_host("what cannot be read is an Unrecovered Read Error of every command that reads", ns=FILE)
def _(t, ctrl):
    disk = ctrl.disk()
    last, block = disk.blocks - 1, bytes(disk.block)
    assert shown(t) == (0, 0) and media_errors(ctrl) == 0
    cut(t)
    disk.read(last, want=READ_ERROR)
    disk.verify(last, 1, want=READ_ERROR)
    disk.compare(last, block, want=READ_ERROR)
    disk.copy(0, [(0, 1), (last, 1)], want=READ_ERROR)
    compare, write = disk.pair(last, block, block)
    assert (compare.status, write.status) == (READ_ERROR, FAILED_FUSED)
    assert not compare.dnr and not write.dnr
    assert shown(t) == (5, 0) and media_errors(ctrl) == 5
    assert len(lines(t)) == 5
    for line in lines(t):
        assert re.search(rf"error: {t.nqn}: namespace 1, file:{t.dir}/a.img,size=16M: read of \d+ "
                         r"bytes at \d+ failed: Input/output error \(errno 5\)$", line), line
    disk.read(0)
    ctrl.disk(2).read(0)
    assert shown(t, 2) == (0, 0)
    code, text = on_terminal("ctl", "--control", t.control, "status", columns=200)
    assert not code and "storage failed 5 reads and 0 writes" in text, text


@with_host("errors without end are a few lines, which tell how many they stand for", ns=FILE)
def _(t, ctrl):
    disk = ctrl.disk()
    cut(t)
    total = 1000
    for _ in range(total):
        disk.read(disk.blocks - 1, want=READ_ERROR)

    def left_out():
        return sum(map(int, re.findall(r"(\d+) more lines? about storage left out",
                                       t.log.read_text())))

    while len(lines(t)) + left_out() < total:       # told with the first of a new second
        disk.read(disk.blocks - 1, want=READ_ERROR)
        total += 1
    assert len(lines(t)) < total / 2, len(lines(t))
    assert shown(t) == (total, 0) and media_errors(ctrl) == total


@with_host("counts outlive a takeover", ns=FILE)
def _(t, ctrl):
    disk = ctrl.disk()
    cut(t)
    disk.read(disk.blocks - 1, want=READ_ERROR)
    cut(t, 16 << 20)                                # and it is back
    t.takeover()
    assert shown(t) == (1, 0) and media_errors(ctrl) == 1
    cut(t)
    disk.read(disk.blocks - 1, want=READ_ERROR)
    assert shown(t) == (2, 0) and media_errors(ctrl) == 2


@with_host("an image that was cut is not taken over, and nothing is put in the place of what is lost", ns=FILE)
def _(t, ctrl):
    disk = ctrl.disk()
    disk.write(disk.blocks - 1, pattern(1, disk.block))
    cut(t)
    assert t.spawn("--takeover").wait(30) == 1
    assert "less than the running target serves" in t.log.read_text(), t.last_lines()
    assert (t.dir / "a.img").stat().st_size == 1 << 20
    disk.read(disk.blocks - 1, want=READ_ERROR)
    disk.read(0)


@tap.case("a full disk: Capacity Exceeded, counted and told, and what was written stays")
def _():
    mount = "mount -t tmpfs -o size=8M none \"$0\" && exec \"$@\""
    with tempfile.TemporaryDirectory() as tmp:
        wrap = ["unshare", "-rm", "sh", "-c", mount, tmp]
        probe = subprocess.run([*wrap, "true"], capture_output=True, text=True)
        if probe.returncode:
            tap.skip(f"no private tmpfs: {probe.stderr.strip()}")
        with weft.Target(ns=[f"file:{tmp}/a.img,size=64M", "mem:16M"], wrap=wrap) as t, \
                connect(t) as ctrl:
            disk = ctrl.disk()
            taken = fill(disk)
            assert shown(t) == (0, 1) and media_errors(ctrl) == 0
            assert "failed: No space left on device (errno 28)" in lines(t)[0], lines(t)
            for slba in range(taken):
                assert disk.read(slba) == pattern(slba, disk.block), f"block {slba}"
            ctrl.disk(2).write(0, bytes(ctrl.disk(2).block))
            disk.deallocate([(0, taken // 2)])
            disk.write(taken, pattern(taken, disk.block))


def fill(disk):
    """Write blocks until the disk is full: how many were taken."""
    for slba in range(disk.blocks):
        cqe = disk.write(slba, pattern(slba, disk.block), want=(SUCCESS, nvme.CAPACITY))
        if cqe.status:
            assert cqe.dnr
            return slba
    raise AssertionError("8 MiB took 64 MiB")


sys.exit(tap.run())
