#!/usr/bin/python3
"""misbehave.py - a scripted misbehaving host, every kind against one target.

After each case a well-behaved host that stays connected must still read its own data; at the
end no controller, queue or descriptor may be left over."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import bad
import nvme
import tap
import weft

import bad.headers, bad.h2cdata, bad.connects, bad.commands, bad.streams     # noqa: E401,F401

BLOCKS = 16


class Witness:
    """The well-behaved host: its data is at the end of namespace 2, which nobody else uses."""

    def __init__(self, target):
        self.ctrl = nvme.Controller(target.addr, target.nqn, kato=120_000)
        self.disk = self.ctrl.disk(2)
        self.data = nvme.pattern(0x5EED, BLOCKS * self.disk.block)
        self.disk.write(self.disk.blocks - BLOCKS, self.data)

    def check(self):
        assert self.disk.read(self.disk.blocks - BLOCKS, BLOCKS) == self.data
        self.ctrl.admin.do(nvme.sqe.Sqe(nvme.sqe.KEEP_ALIVE))


@tap.case("nothing is left over")
def _():
    target = bad.target
    weft.wait_until(lambda: len(target.controllers()) == 1, "the controllers to go")
    weft.wait_until(lambda: target.fds() <= target.fds_before, "the descriptors to be closed")


with weft.Target(ns=["mem:64M,block=4096", "mem:16M,block=4096"]) as bad.target:
    witness = Witness(bad.target)
    bad.target.witness = witness.check
    bad.target.fds_before = bad.target.fds()
    status = tap.run(after=witness.check)
sys.exit(status)
