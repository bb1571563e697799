#!/usr/bin/python3
"""host_discover.py - paths=discover: scripted discovery services list scripted targets that share a
disk, change their minds, lie, and go away; what becomes of the paths of `weft`, and of its I/O."""
import contextlib
import itertools
import json
import pathlib
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import tap
import weft
from host_bad import PATIENT, Namespace, Target, normally, run
from structures import DiscoveryLog, entry
from weft import wait_until

REFERRAL, LOG = 1, 0x70
CHANGED = (2, 0xF0, LOG)
OTHER = "nqn.2026-11.io.weft:other"
WORDS = PATIENT | dict(paths="discover", nsid=1, probe=0)      # a busy machine is not a lost path


def place(t, **wrong):
    return entry(wrong.pop("nqn", t.nqn), t.addr[1], **wrong)


def referral(t, **wrong):
    return place(t, nqn=nvme.DISCOVERY, subtype=REFERRAL, **wrong)


class Scene:
    """Targets with one disk, and discovery services, which list nothing yet."""

    def __init__(self, stack, targets, guides, words=None, **script):
        self.words = WORDS | (words or {})
        disk = {1: Namespace(nvme.pattern(0xCAFE, 1 << 20))}
        self.targets = [stack.enter_context(Target(namespaces=disk)) for _ in range(targets)]
        self.guides = [stack.enter_context(Target(**script)) for _ in range(guides)]

    def list(self, *entries, guide=0):
        """A new log, of which hosts are told."""
        t = self.guides[guide]
        t.log = DiscoveryLog(entries, generation=t.log.generation + 1)
        t.event(*CHANGED)

    def list_targets(self, *numbers, guide=0):
        self.list(*(place(self.targets[n]) for n in numbers), guide=guide)

    def uri(self):
        return self.guides[0].uri(**self.words)

    def paths(self):
        """What ls shows, as {number of the target: number of the guide}."""
        result = run("ls", self.uri(), "--json")
        assert result.code == 0, result
        subsys, = json.loads(result.out)["subsystems"]
        return {self.number(self.targets, c["uri"]): self.number(self.guides, c["from"])
                for c in subsys["controllers"]}

    @staticmethod
    def number(those, address):
        return [t.addr[1] for t in those].index(weft.address(address)[1])


@contextlib.contextmanager
def scene(targets, guides=1, **script):
    with contextlib.ExitStack() as stack:
        yield Scene(stack, targets, guides, **script)


@contextlib.contextmanager
def load(s, reconnects=False):
    """I/O through all paths, which may not notice anything; bench ends when this does."""
    bench = subprocess.Popen([weft.BINARY, "bench", s.uri(), "--rw", "randrw", "--verify",
                              "--write-ok", "--bs", "4k", "--depth", "4", "--time", "600", "--json"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield bench
        bench.terminate()
        out, err = bench.communicate(timeout=90)
    finally:
        bench.kill()
        bench.wait()
    assert not weft.SANITIZER.search(err), err
    result = json.loads(out)
    assert result["ok"] and not result["failed"], result["why"]
    assert reconnects or not result["reconnects"], result["stalls"]


def works_through(t):
    """More I/O has come to it."""
    before = len(t.commands)
    wait_until(lambda: sum(qid != 0 for qid, _ in t.commands[before:]) > 20, "I/O on a path")


def is_left(t):
    wait_until(lambda: not t.controllers, "a path to be left")


# --- what is listed

@tap.case("every place that is listed is a path, and ls says who told")
def _():
    with scene(3) as s:
        s.list_targets(0, 1, 2)
        assert s.paths() == {0: 0, 1: 0, 2: 0}
        tree = run("ls", s.uri()).out.decode()
        assert tree.count(f"listed by nvme+tcp://127.0.0.1:{s.guides[0].addr[1]}\n") == 3, tree


@tap.case("what is listed by two services counts once")
def _():
    with scene(2, 2) as s:
        s.list(referral(s.guides[1]), place(s.targets[0]))
        s.list_targets(0, 1, guide=1)
        assert s.paths() == {0: 0, 1: 1}


# What a log holds besides the one place that can be used
NONSENSE = {
    "another subsystem": lambda t: [place(t, nqn=OTHER)],
    "the same place again and again": lambda t: [place(t)] * 40,
    "40 referrals to itself": lambda t: [referral(t)] * 40,
    "an entry of no known type": lambda t: [place(t, subtype=9)],
    "a name instead of an address": lambda t: [place(t, traddr="target.example")],
    "no address at all": lambda t: [place(t, traddr="")],
    "an address that is a URI": lambda t: [place(t, traddr="127.0.0.1:1/x?hdgst=1")],
    "port 0": lambda t: [place(t, trsvcid="0")],
    "a port that is none": lambda t: [place(t, trsvcid="99999")],
    "a port of words": lambda t: [place(t, trsvcid="nvme")],
    "transports that this host has not": lambda t: [place(t, trtype=n) for n in (0, 2, 254, 255)],
    "an NQN that does not end": lambda t: [place(t, nqn=b"n" * 256)],
    "bytes that are no text": lambda t: [place(t, nqn=b"\xff\xfe\n\0", traddr=b"\x80\n")],
    "300 subsystems": lambda t: [place(t, nqn=f"{OTHER}{n}") for n in range(300)],
}


def nonsense(name, make):
    @tap.case(f"the log has {name}")
    def _():
        with scene(1) as s:
            s.list(*make(s.guides[0] if "itself" in name else s.targets[0]), place(s.targets[0]))
            assert s.paths() == {0: 0}


for row in NONSENSE.items():
    nonsense(*row)


@tap.case("of more places than there may be paths the first are used")
def _():
    with scene(10) as s:
        s.list_targets(*range(10))
        assert s.paths() == {n: 0 for n in range(8)}


def refused(name, why, log=None, **script):
    @tap.case(name)
    def _():
        with scene(1, **script) as s:
            s.guides[0].log = log or DiscoveryLog([place(s.targets[0])])
            result = run("ls", s.uri())
            assert result.code == 1 and why in result.last, result


def restless(times):
    """A log whose generation moves whenever its header is read, so many times."""
    count = itertools.count()

    def log_page(conn, lid):
        page = normally(conn, "log_page", lid)
        if lid != LOG or not conn.ctrl.discovery:
            return page
        return struct.pack("<Q", 1000 + min(next(count), times)) + page[8:]
    return dict(log_page=log_page)


refused("an empty log", "the discovery log does not list", log=DiscoveryLog())
refused("a log of a future format", "unknown format 7", log=DiscoveryLog(recfmt=7))
refused("a log of 2^63 entries", "claims 9223372036854775808 entries",
        log=DiscoveryLog(numrec=1 << 63))
refused("a log with fewer entries than it says", "Get Log Page: invalid field",
        log=DiscoveryLog(numrec=500))
refused("a log that never stops changing", "changed 8 times while it was read",
        **restless(1 << 30))
refused("a service without a log", "Get Log Page: invalid log page",
        log_page=lambda conn, lid: None)


@tap.case("a log that changes while it is read is read again")
def _():
    with scene(1, **restless(6)) as s:
        s.list_targets(0)
        assert s.paths() == {0: 0}


@tap.case("a place that is listed and not there is tried again; one that is there is enough")
def _():
    with scene(2) as s:
        s.targets[1].close()
        s.list_targets(0, 1)
        result = run("ls", s.uri())
        assert result.code == 1 and "1 of 2 controllers could not be looked at" in result.last, \
            result
        assert result.out.decode().count("listed by") == 2


@tap.case("nothing that is listed is there")
def _():
    with scene(1) as s:
        s.targets[0].close()
        s.list_targets(0)
        result = run("ls", s.uri())
        assert result.code == 1 and "Connection refused" in result.last, result


# --- referrals

@tap.case("referrals are followed, in circles once, 8 deep")
def _():
    with scene(10, 10) as s:
        for n in range(10):
            s.list(place(s.targets[n]), referral(s.guides[(n + 1) % 10]), referral(s.guides[0]),
                   guide=n)
        with load(s):
            wait_until(lambda: sum(bool(t.controllers) for t in s.targets) == 8, "8 paths")
            wait_until(lambda: s.guides[8].controllers, "the eighth referral")
            assert not s.guides[9].connections, "it went deeper than 8"


@tap.case("a referral that leads nowhere holds nothing up")
def _():
    with scene(1, 2) as s:
        s.guides[1].close()
        s.list(referral(s.guides[1]), place(s.targets[0]))
        assert s.paths() == {0: 0}


@tap.case("what a service lists goes when nobody refers to it any more")
def _():
    with scene(2, 3) as s:
        s.list(place(s.targets[0]), referral(s.guides[1]))
        s.list(referral(s.guides[2]), guide=1)
        s.list(place(s.targets[1]), referral(s.guides[1]), guide=2)    # they refer to each other
        with load(s):
            works_through(s.targets[1])
            s.list_targets(0)
            is_left(s.targets[1])
            is_left(s.guides[1])
            is_left(s.guides[2])
            works_through(s.targets[0])


# --- changes, under load

@tap.case("paths come and go with the log")
def _():
    with scene(3) as s:
        s.list_targets(0)
        with load(s):
            works_through(s.targets[0])
            for now, gone in ((1, 0), (2, 1), (0, 2)) * 2:
                s.list_targets(gone, now)
                works_through(s.targets[now])
                s.list_targets(now)
                is_left(s.targets[gone])
            works_through(s.targets[0])


@tap.case("a path is left only for one that lives and is listed")
def _():
    with scene(2) as s:
        s.list_targets(0)
        with load(s):
            works_through(s.targets[0])
            s.list()
            works_through(s.targets[0])
            s.list(place(s.guides[0], trsvcid="1"))
            works_through(s.targets[0])
            s.list_targets(1)
            works_through(s.targets[1])
            is_left(s.targets[0])


@tap.case("without its service a path stays; when that is back, its log counts")
def _():
    with scene(2) as s:
        s.list_targets(0)
        with load(s):
            works_through(s.targets[0])
            s.guides[0].close()
            works_through(s.targets[0])
            with Target(port=s.guides[0].addr[1],
                        log=DiscoveryLog([place(s.targets[1])])):
                works_through(s.targets[1])
                is_left(s.targets[0])


@tap.case("a path that was given up is tried again when it is listed anew")
def _():
    with scene(2, words=dict(loss_timeout="2s")) as s:
        s.list_targets(0, 1)
        with load(s, reconnects=True):
            works_through(s.targets[1])
            s.targets[1].close()
            time.sleep(4)
            with Target(port=s.targets[1].addr[1], namespaces=s.targets[1].namespaces) as again:
                s.list_targets(0, 1)
                works_through(again)


@tap.case("events without end do not keep the host busy")
def _():
    with scene(1, aer=lambda conn, cmd: conn.complete(cmd, dw0=0x70F002)) as s:
        s.list_targets(0)
        with load(s):
            works_through(s.targets[0])
            works_through(s.targets[0])
        pages = sum(what == "get_log" for _, what in s.guides[0].commands)
        assert pages < 4000, pages


# --- our own targets

@tap.case("listeners of our own target come and go under load", limit_s=120)
def _():
    with weft.Target(ns=["mem:64M"]) as t:
        first = t.ctl("status")["listeners"][0]["uri"]
        with contextlib.ExitStack() as stack:
            guided = Scene(stack, 0, 0)
            guided.uri = lambda: f"{first}/{t.nqn}?paths=discover&nsid=1&probe=0"
            with load(guided):
                wait_until(lambda: t.subsystem()["controllers"], "the first path")
                for _ in range(5):
                    before = {x["uri"] for x in t.ctl("status")["listeners"]}
                    t.ctl("listener-add", listen=weft.ANY_PORT)
                    new, = {x["uri"] for x in t.ctl("status")["listeners"]} - before
                    wait_until(lambda: [c["queues"] for c in t.controllers()] == [1, 1],
                               "a second path, with its queue")
                    t.ctl("listener-remove", listen=new)
                    wait_until(lambda: len(t.subsystem()["controllers"]) == 1, "it to go")


@tap.case("a program that does not understand is told")
def _():
    with scene(0) as s:
        done = subprocess.run([weft.BINARY, "ls", s.guides[0].uri("", paths="discover")],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "of which subsystem?" in done.stderr, done


sys.exit(tap.run_wide(4))
