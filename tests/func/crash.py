#!/usr/bin/python3
"""crash.py - kill -9 under write load: nothing that was acknowledged and flushed is lost.

Several queues write stamped blocks, each its own region. A stamp becomes durable when its FUA
write completes, or when a Flush completes that was sent after the write had completed. After the
restart every block must hold its durable stamp or one written later, whole."""
import os
import pathlib
import random
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import tap
from fixture import connect, with_target

ROUNDS = int(os.environ.get("ROUNDS", 20))
QUEUES, REGION, DEPTH = 4, 256, 16


class Writer:
    """One queue and its region: what was sent, acknowledged and made durable, per block."""

    def __init__(self, index, seed):
        self.first, self.rng = index * REGION, random.Random(seed)
        self.stamp, self.writes, self.acked, self.durable = 0, {}, {}, {}

    def block(self, slba, stamp, size):
        return struct.pack("<QQ", slba, stamp) * (size // 16)

    def run(self, disk):
        """Write until the connection dies."""
        self.busy = set()
        try:
            while True:
                for _ in range(self.rng.randrange(1, 4 * DEPTH)):
                    self.write(disk)
                self.flush(disk)
        except nvme.Closed:
            pass

    def write(self, disk):
        if len(self.busy) >= DEPTH:
            self.reap(disk)
        taken = {slba for slba, _, _ in self.writes.values()}
        slba = self.rng.choice([s for s in range(self.first, self.first + REGION)
                                if s not in taken])
        fua = self.rng.random() < 0.2
        self.stamp += 1
        command = disk.command(sqe.WRITE, slba, 1, sqe.FUA if fua else 0)
        cid = disk.queue.free_cid()
        command.cid = cid
        self.writes[cid] = (slba, self.stamp, fua)
        self.busy.add(cid)
        disk.queue.submit(command, self.block(slba, self.stamp, disk.block),
                          capsule=self.rng.random() < 0.5)

    def reap(self, disk):
        cid = disk.queue.wait_any()
        disk.queue.wait(cid)
        self.busy.discard(cid)
        slba, stamp, fua = self.writes.pop(cid)
        self.acked[slba] = stamp
        if fua:
            self.durable[slba] = stamp

    def flush(self, disk):
        while self.busy:
            self.reap(disk)
        before = dict(self.acked)
        disk.flush()
        self.durable |= before

    def check(self, disk):
        """Every block against its history; what is there now is the new history."""
        for slba in range(self.first, self.first + REGION):
            raw = disk.read(slba)
            where, stamp = struct.unpack_from("<QQ", raw)
            assert raw == struct.pack("<QQ", where, stamp) * (disk.block // 16), f"{slba} is torn"
            assert stamp == 0 or where == slba, f"block {slba} holds block {where}"
            least = self.durable.get(slba, 0)
            assert least <= stamp <= self.stamp, f"block {slba}: stamp {stamp}, durable {least}"
            self.acked[slba] = stamp
        self.writes = {}


def load(t, writers, seconds):
    """All writers at work; then kill -9."""
    with connect(t) as ctrl:
        disks = [ctrl.disk(1, ctrl.open()) for _ in writers]
        threads = [threading.Thread(target=w.run, args=(d,), daemon=True)
                   for w, d in zip(writers, disks)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        t.kill9()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)


@with_target(f"kill -9 under write load, {ROUNDS} rounds", limit_s=60 + 10 * ROUNDS,
             ns=["file:{dir}/a.img,size=64M,block=4096"])
def _(t):
    rng = random.Random(20)
    writers = [Writer(i, i) for i in range(QUEUES)]
    for _ in range(ROUNDS):
        load(t, writers, rng.uniform(0.1, 0.8))
        t.start()
        with connect(t) as ctrl:
            for writer in writers:
                writer.check(ctrl.disk())
    tap.diag(f"{sum(w.stamp for w in writers)} writes")
    assert all(w.durable for w in writers), "nothing was flushed: the load was too short"


sys.exit(tap.run())
