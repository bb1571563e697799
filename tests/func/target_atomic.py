#!/usr/bin/python3
"""target_atomic.py - a block is read whole and written whole (AWUN = 0), whoever else is at it.

Every writer fills blocks with one byte, so a block that holds two was torn. Hosts are at the same
MiB at the same time, from two reactors where there are two CPUs; a transfer is hundreds of blocks,
so that a few of them are enough to find what one block at a time finds in thousands.
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import sqe
import tap
import weft
from fixture import connect, in_background, with_target

MIB = 1 << 20
ROUNDS = 60
DIGEST_ROUNDS = 10  # the sums are made by hand
SPECS = [(f"mem:8M,block={block}", block) for block in (512, 4096)]
# Past the page cache, in the blocks of the file system: what the device does is whole.
DIRECT = [("file:{dir}/a.img,size=8M,block=4096,direct", 4096)]


def torn(data, block):
    """How many blocks hold more than one byte."""
    return sum(data[at:at + block] != data[at:at + 1] * block for at in range(0, len(data), block))


def expect_whole(data, block, what):
    count = torn(data, block)
    assert not count, f"{count} of {len(data) // block} blocks of {block} are torn: {what}"


def fill(disk, byte):
    disk.write(0, bytes([byte]) * MIB)


def zero_and_fill(disk, byte):
    count = MIB // disk.block
    if byte % 2:
        disk.zero(0, count)
    else:
        fill(disk, byte)


def copy_over(disk, byte):
    """The second or the third MiB, which hold one byte each, over the first."""
    count = MIB // disk.block
    disk.copy(0, [(count * (1 + byte % 2), count)])


def prepare(disk):
    count = MIB // disk.block
    for i in range(3):
        disk.write(i * count, bytes([i + 1]) * MIB)


def read(disk):
    return disk.read(0, MIB // disk.block)


def copy_and_read(disk):
    """What Copy reads: the first MiB, by way of the fourth."""
    count = MIB // disk.block
    disk.copy(3 * count, [(0, count)])
    return disk.read(3 * count, count)


def name_of(what, spec):
    return f"{what}: {spec.partition(':')[0]}, {spec.partition('block=')[2]}"


def need_direct(t, spec):
    """Some file systems take the flag and use the page cache all the same."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", t.dir], text=True, capture_output=True,
                          check=True).stdout.strip()
    if "direct" in spec and kind == "tmpfs":
        tap.skip("tmpfs has nothing below its page cache")


def keep_at_it(t, block, write, look, rounds, **ic):
    """One host writes all the time; what another one sees is whole."""
    with connect(t) as writer, connect(t, **ic) as reader:
        here, there = writer.disk(), reader.disk()
        prepare(here)
        over = []

        def keep_writing():
            byte = 0
            while not over:
                byte = byte % 250 + 1
                write(here, byte)

        with in_background(keep_writing):
            try:
                for _ in range(rounds):
                    expect_whole(look(there), block, "while another host wrote")
            finally:
                over.append(True)


def at_once(name, write, look, specs=SPECS, rounds=ROUNDS, **ic):
    for spec, block in specs:
        @with_target(name_of(name, spec), ns=[spec], limit_s=120)
        def _(t, spec=spec, block=block):
            need_direct(t, spec)
            keep_at_it(t, block, write, look, rounds, **ic)


at_once("Read beside Write", fill, read, SPECS + DIRECT)
at_once("Read with data digests beside Write", fill, read, rounds=DIGEST_ROUNDS, ddgst=True)
at_once("Read beside Write Zeroes", zero_and_fill, read)
at_once("Read beside Copy", copy_over, read)
at_once("Copy beside Write", fill, copy_and_read)


@tap.case("Read beside Write: block", 120)
def _():
    if os.geteuid():
        tap.skip("needs root, to make a block device")
    with tempfile.NamedTemporaryFile() as image:
        image.truncate(8 * MIB)
        made = subprocess.run(["losetup", "-f", "--show", "-b", "4096", "--direct-io=on",
                               image.name], text=True, capture_output=True, check=False)
        if made.returncode:
            tap.skip("losetup: " + made.stderr.strip())
        device = made.stdout.strip()
        try:
            with weft.Target(ns=[f"block:{device},block=4096"]) as t:
                keep_at_it(t, 4096, fill, read, ROUNDS)
        finally:
            subprocess.run(["losetup", "-d", device], check=False)


for spec, block in SPECS + DIRECT:
    @with_target(name_of("Write beside Write", spec), ns=[spec], limit_s=120)
    def _(t, spec=spec, block=block):
        need_direct(t, spec)
        with connect(t) as one, connect(t) as other:
            here, there = one.disk(), other.disk()
            for byte in range(1, ROUNDS):
                with in_background(lambda: fill(there, 255)):
                    fill(here, byte)
                expect_whole(read(here), block, "two hosts wrote")


for spec, block in SPECS:
    @with_target(name_of("a host that reads slowly", spec), ns=[spec])
    def _(t, block=block):
        count = MIB // 4 // block
        with connect(t) as writer, connect(t) as reader:
            here = writer.disk()
            there = reader.disk(queue=reader.open(rcvbuf=4096))
            for byte in range(1, 5):
                fill(here, byte)
                # More than its socket holds: the rest stays with the target.
                cids = [there.queue.submit(there.command(sqe.READ, 0, count), length=count * block)
                        for _ in range(24)]
                there.queue.sock.recv(1, socket.MSG_PEEK)   # an answer has begun
                fill(here, byte + 100)
                for cid in cids:
                    expect_whole(there.queue.wait(cid).data, block, "written while it was sent")


sys.exit(tap.run())
