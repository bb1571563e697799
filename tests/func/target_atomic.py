#!/usr/bin/python3
"""target_atomic.py - a block is read whole and written whole (AWUN = 0), whoever else is at it.

Every writer fills blocks with one byte, so a block that holds two was torn. Hosts are at the same
MiB at the same time, from two reactors where there are two CPUs; a transfer is hundreds of blocks,
so that a few of them are enough to find what one block at a time finds in thousands.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import sqe
import tap
from fixture import connect, in_background, with_target

MIB = 1 << 20
ROUNDS = 150
BLOCKS = (512, 4096)


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


def at_once(name, write, look, **ic):
    for block in BLOCKS:
        @with_target(f"{name}, blocks of {block}", ns=[f"mem:8M,block={block}"], limit_s=120)
        def _(t, block=block):
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
                        for _ in range(ROUNDS):
                            expect_whole(look(there), block, name)
                    finally:
                        over.append(True)


at_once("Read beside Write", fill, read)
at_once("Read with data digests beside Write", fill, read, ddgst=True)
at_once("Read beside Write Zeroes", zero_and_fill, read)
at_once("Read beside Copy", copy_over, read)
at_once("Copy beside Write", fill, copy_and_read)


for block in BLOCKS:
    @with_target(f"Write beside Write, blocks of {block}", ns=[f"mem:8M,block={block}"],
                 limit_s=120)
    def _(t, block=block):
        with connect(t) as one, connect(t) as other:
            here, there = one.disk(), other.disk()
            for byte in range(1, ROUNDS):
                with in_background(lambda: fill(there, 255)):
                    fill(here, byte)
                expect_whole(read(here), block, "two hosts wrote")

    @with_target(f"a host that reads slowly, blocks of {block}",
                 ns=[f"mem:8M,block={block}"])
    def _(t, block=block):
        count = MIB // 4 // block
        with connect(t) as writer, connect(t) as reader:
            here = writer.disk()
            there = reader.disk(queue=reader.open(rcvbuf=4096))
            for byte in range(1, 9):
                fill(here, byte)
                # More than its socket holds: the rest stays with the target.
                cids = [there.queue.submit(there.command(sqe.READ, 0, count), length=count * block)
                        for _ in range(24)]
                there.queue.sock.recv(1, 2)     # MSG_PEEK: an answer has begun
                fill(here, byte + 100)
                for cid in cids:
                    expect_whole(there.queue.wait(cid).data, block, "written while it was sent")


sys.exit(tap.run())
