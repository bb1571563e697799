#!/usr/bin/python3
"""host_bench_verify.py - weft bench --verify: it finds every kind of damage to the data, and none where
there is none."""
import json
import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
from bench import BLOCK, FAILED, FILE_NS, bench, measured, running, said, uri, verified
from fixture import with_target
from weft import wait_until


@with_target("verify: nothing wrong where nothing is", limit_s=120,
             ns=["mem:64M,block=512", "file:{dir}/a.img,size=64M,block=4096"])
def _(t):
    for args in (["--rw", "randrw"], ["--rw", "write", "--size", "1M"], ["--rw", "rw", "--jobs", 2],
                 ["--rw", "randwrite", "--bs", "16k", "--size", "512k", "--queues", 2],
                 ["--rw", "randrw", "--bs", "256k", "--depth", 4, "--size", "2M"],
                 ["--rw", "randrw", "--depth", 64, "--size", "64k"]):
        for words in "nsid=1", "nsid=2&ddgst=1":
            found = verified(t, *args, words=words)
            assert found["checked"] and not found["wrong"] and not found["unreadable"], found


def blocks_of(path):
    data = path.read_bytes()
    return [data[i:i + BLOCK] for i in range(0, len(data), BLOCK)]


def generation(block):
    return struct.unpack_from("<Q", block, 24)[0]


class Image:
    """The file under a namespace, changed behind the target's back."""

    def __init__(self, t):
        self.path, self.targets = t.dir / "a.img", range(3, 60, 4)

    def put(self, offset, data):
        with open(self.path, "r+b", buffering=0) as file:
            file.seek(offset)
            file.write(data)

    def read(self, index):
        with open(self.path, "rb", buffering=0) as file:
            file.seek(index * BLOCK)
            return file.read(BLOCK)

    def wait_written(self, least=1):
        wait_until(lambda: all(generation(self.read(i)) >= least for i in range(64)),
                   "every block to be written")

    def flip(self):
        for i in self.targets:
            self.put(i * BLOCK + 1000, bytes([self.read(i)[1000] ^ 1]))

    def move(self):
        for i in self.targets:
            self.put(i * BLOCK, self.read(i + 1))

    def restore(self):
        """Old copies, of blocks that have been written again since."""
        old = {i: self.read(i) for i in self.targets}
        for i, block in old.items():
            wait_until(lambda i=i, b=block: generation(self.read(i)) > generation(b), "a new write")
            self.put(i * BLOCK, block)

    def tear(self):
        for i in self.targets:
            self.put(i * BLOCK + BLOCK // 2, bytes(BLOCK // 2))

    def strange(self):
        for i in self.targets:
            self.put(i * BLOCK, b"somebody else's data" * 204 + b"!" * 16)

    def zero(self):
        for i in self.targets:
            self.put(i * BLOCK, bytes(BLOCK))


DAMAGE = [
    ("flip", "corrupt block", "byte 1000 is not as written"),
    ("move", "misplaced", "holds what was written at"),
    ("restore", "lost write", "was acknowledged"),
    ("tear", "torn write", "are zeroes"),
    ("strange", "foreign data", "nothing that this run wrote"),
    ("zero", "zeroes", "was acknowledged"),
]


def damage_case(how, kind, words):
    @with_target(f"verify finds and names: {kind}", ns=[FILE_NS], limit_s=100)
    def _(t):
        image = Image(t)
        with running(uri(t), "--rw", "randrw", "--mix", 80, "--write-ok", "--verify", "--size",
                     64 * BLOCK, "--rate", 2000, "--time", 6, "--json") as process:
            image.wait_written()
            getattr(image, how)()
        assert process.returncode == FAILED, process.stderr_text
        found = json.loads(process.stdout_text)["verify"]
        assert found["found"][kind] == found["wrong"] >= 1, found["found"]
        assert found["problems"][0]["offset"] // BLOCK in image.targets, found["problems"]
        assert re.search(f"^weft bench: {kind} at [0-9]+: .*{words}", process.stderr_text, re.M), \
            process.stderr_text
        assert "not as written" in process.stderr_text.splitlines()[-1], process.stderr_text


for damage in DAMAGE:
    damage_case(*damage)


@with_target("verify: one block of a larger write", ns=[FILE_NS])
def _(t):
    image = Image(t)
    with running(uri(t), "--rw", "randrw", "--mix", 90, "--write-ok", "--verify", "--bs", "16k",
                 "--size", 64 * BLOCK, "--rate", 1000, "--time", 4, "--json") as process:
        image.wait_written()
        image.restore()
    assert process.returncode == FAILED, process.stderr_text
    assert json.loads(process.stdout_text)["verify"]["found"]["torn write"], process.stderr_text


@with_target("verify what an earlier run left", ns=[FILE_NS])
def _(t):
    image = Image(t)
    region = ["--size", 64 * BLOCK, "--seed", 7]
    verified(t, "--rw", "write", *region)
    again = measured(t, "--rw", "read", "--verify", *region)["verify"]
    assert not again["wrong"] and not again["not_of_this_run"], again
    said(bench(uri(t), "--rw", "read", "--verify", "--time", "100ms", "--seed", 8), FAILED, "--seed 8")
    image.flip()
    again = measured(t, "--rw", "read", "--verify", *region, code=FAILED)["verify"]
    assert again["found"]["corrupt block"] == len(image.targets), again["found"]


sys.exit(tap.run())
