#!/usr/bin/python3
"""churn.py - hosts come and go by the thousand, a hundred misbehave, and one never notices."""
import os
import pathlib
import random
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import pdu
import sqe
import tap
import weft
from fixture import connect, in_background, with_target

CYCLES = int(os.environ.get("CYCLES", 3000))
VANDALS = 100
GROWTH_KIB = 4 << 10


def leave_politely(ctrl):
    for queue in ctrl.queues:
        queue.do(sqe.disconnect())
    ctrl.close()


def leave_by_shutdown(ctrl):
    ctrl.set(nvme.CC, nvme.CC_ENABLE | 1 << 14)
    ctrl.close()


def leave_by_reset(ctrl):
    for queue in [*ctrl.queues, ctrl.admin]:
        queue.reset()


def leave_with_data_owed(ctrl):
    queue = ctrl.queues[0]
    queue.submit(sqe.blocks(sqe.WRITE, 1, 0, 1), bytes(4096), capsule=False)
    ctrl.close()


WAYS_OUT = (leave_politely, leave_by_shutdown, leave_by_reset, leave_with_data_owed,
            nvme.Controller.close)


def cycle(t, number):
    ctrl = connect(t)
    ctrl.open().do(sqe.Sqe(sqe.FLUSH, 1))
    WAYS_OUT[number % len(WAYS_OUT)](ctrl)


ICREQ = pdu.encode(pdu.ICREQ, pdu.icreq())
MISCHIEF = (
    lambda rng: rng.randbytes(200),
    lambda rng: ICREQ[:rng.randrange(128)],
    lambda rng: ICREQ + rng.randbytes(300),
    lambda rng: ICREQ + pdu.encode(pdu.CMD, rng.randbytes(64), rng.randbytes(512)),
    lambda rng: ICREQ + pdu.encode(pdu.H2CDATA, rng.randbytes(16), bytes(64)),
    lambda rng: ICREQ + ICREQ,
    lambda rng: b"",
)


class Vandals:
    """A hundred connections side by side; each turn one of them does something and is replaced."""

    def __init__(self, t):
        self.t, self.rng = t, random.Random(100)
        self.conns = [nvme.Conn(t.addr) for _ in range(VANDALS)]

    def act(self):
        which = self.rng.randrange(VANDALS)
        conn = self.conns[which]
        try:
            conn.send(self.rng.choice(MISCHIEF)(self.rng))
        except nvme.Closed:
            pass
        self.rng.choice((nvme.Conn.close, nvme.Conn.reset))(conn)
        self.conns[which] = nvme.Conn(self.t.addr)

    def leave(self):
        for conn in self.conns:
            conn.close()


def verified_io(disk, stop):
    """The well-behaved host: writes, reads back, compares, until told to stop."""
    turn = 0
    while not stop.is_set():
        slba = turn % 64 * 8
        data = nvme.pattern(turn, 8 * disk.block)
        disk.write(slba, data)
        assert disk.read(slba, 8) == data
        turn += 1
    assert turn > 10, "it hardly got to work"


def settled(t, fds):
    return t.fds() <= fds and len(t.controllers()) == 1


def storm(t, cycles):
    vandals = Vandals(t)
    for number in range(cycles):
        cycle(t, number)
        if number % 4 == 0:
            vandals.act()
    vandals.leave()


@with_target(f"{CYCLES} cycles and {VANDALS} misbehaving hosts beside a good one",
             limit_s=120 + CYCLES // 10, ns=["mem:16M", "mem:16M"])
def _(t):
    with connect(t) as ctrl:
        disk, stop = ctrl.disk(2), threading.Event()
        fds = t.fds()
        storm(t, min(CYCLES, 300))              # pools and caches reach their size
        weft.wait_until(lambda: settled(t, fds), "the warm-up to settle")
        rss = t.rss_kib()
        with in_background(lambda: verified_io(disk, stop)):
            try:
                storm(t, CYCLES)
            finally:
                stop.set()
        weft.wait_until(lambda: settled(t, fds), "descriptors and controllers to be as before")
        grown = t.rss_kib() - rss
        tap.diag(f"{fds} descriptors, RSS {rss} KiB, grown by {grown} KiB")
        assert t.sanitized() or grown < GROWTH_KIB, f"RSS grew by {grown} KiB"


@with_target("controller ids do not run out", limit_s=300)
def _(t):
    seen = set()
    for _ in range(min(CYCLES, 2000)):
        with connect(t, enable=False) as ctrl:
            assert 0 < ctrl.cntlid < 0xFFF0, f"controller id {ctrl.cntlid:#x}"
            seen.add(ctrl.cntlid)
    tap.diag(f"{len(seen)} different ids")


sys.exit(tap.run())
