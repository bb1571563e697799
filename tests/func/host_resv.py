#!/usr/bin/python3
"""host_resv.py - weft resv: two hosts that register, acquire, preempt, release; reports that lie."""
import pathlib
import struct
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import responder
import sqe
import target as scripted
import tap
import weft
from command import USAGE, as_json, fails, text, uri
from fixture import with_target

NOWHERE = f"nvme+tcp://127.0.0.1:1/{weft.NQN}"
CONFIG = """subsystems:
  - nqn: nqn.2026-11.io.weft:test
    allow_any_host: true
    state: "file:{dir}/state"
    namespaces: [ { backend: "mem:16M" }, { backend: "mem:16M" } ]
"""
TYPES = ["write-exclusive", "exclusive-access", "write-exclusive-reg-only",
         "exclusive-access-reg-only", "write-exclusive-all-regs", "exclusive-access-all-regs"]

# arguments, words of the one line on standard error
WRONG_USAGE = [
    ([], ["expected ACTION and URI"]),
    (["report"], ["expected ACTION and URI"]),
    (["aquire", NOWHERE], ["did you mean acquire?"]),
    (["register", NOWHERE], ["register needs --nrkey"]),
    (["unregister", NOWHERE], ["unregister needs --crkey"]),
    (["replace", NOWHERE, "--iekey"], ["replace needs --nrkey"]),
    (["acquire", NOWHERE, "--crkey", "1"], ["acquire needs --rtype"]),
    (["preempt", NOWHERE, "--crkey", "1", "--rtype", "1"], ["preempt needs --prkey"]),
    (["report", NOWHERE, "--crkey", "1"], ["report takes no --crkey"]),
    (["clear", NOWHERE, "--crkey", "1", "--rtype", "1"], ["clear takes no --rtype"]),
    (["acquire", NOWHERE, "--crkey", "x", "--rtype", "1"], ["--crkey", '"x"']),
    (["acquire", NOWHERE, "--crkey", "0x10000000000000000"], ["--crkey"]),
    (["acquire", NOWHERE, "--crkey", "-1"], ["--crkey"]),
    (["acquire", NOWHERE, "--rtype", "7"], ["--rtype", '"7"']),
    (["acquire", NOWHERE, "--rtype", "0"], ["--rtype", '"0"']),
    (["acquire", NOWHERE, "--rtype", "mine"], ["--rtype", '"mine"']),
    (["register", NOWHERE, "--nrkey", "1", "--cptpl", "1"], ["--cptpl", "set or clear"]),
]


@tap.case("wrong usage is told in one line, with exit status 2")
def _():
    for args, words in WRONG_USAGE:
        fails("resv", *args, code=USAGE, words=words)


class Host:
    """A host of its own name and identifier; its number is its key."""

    def __init__(self, place, number):
        self.place, self.key = place, number
        self.id = str(uuid.UUID(bytes=bytes([number]) * 16))
        self.me = ["--hostid", self.id, "--hostnqn", f"nqn.2014-08.org.nvmexpress:uuid:{self.id}"]

    def args(self, action, *words):
        return ["resv", action, self.place, *words, *self.me]

    def report(self):
        return as_json(*self.args("report"))

    def registrants(self):
        return {e["hostid"]: (e["rkey"], e["rcsts"]) for e in self.report()["regctlext"]}

    def register(self, *words):
        return as_json(*self.args("register", "--nrkey", self.key, *words))

    def acquire(self, rtype, *words):
        return as_json(*self.args("acquire", "--crkey", self.key, "--rtype", rtype, *words))


@with_target("one host: every action, every type, by name and by number", config=CONFIG)
def _(t):
    a = Host(uri(t, 2), 1)
    assert a.report() == {"gen": 0, "rtype": 0, "regctl": 0, "ptpls": 0, "regctlext": []}
    assert a.register() == {"action": "register", "nsid": 2}
    assert text(*a.args("replace", "--crkey", 1, "--nrkey", "0xff")) == "replaced the key, namespace 2\n"
    a.key = 255
    assert a.registrants() == {a.id: (255, 0)}
    for number, name in enumerate(TYPES, 1):
        a.acquire(name)
        assert a.report()["rtype"] == number
        assert a.registrants() == {a.id: (255, 1)}
        shown = text(*a.args("report"))
        assert f"reservation  {name}\n" in shown and "key 0x00000000000000ff  holder" in shown, shown
        as_json(*a.args("release", "--crkey", 255, "--rtype", number))
    a.acquire(1)
    as_json(*a.args("clear", "--crkey", 255))
    assert a.report()["regctl"] == 0
    a.register()
    as_json(*a.args("unregister", "--iekey"))
    assert a.report()["regctl"] == 0 and Host(uri(t, 1), 1).report()["gen"] == 0


@with_target("two hosts: a conflict is told; preempt; keys of 64 bits; through power loss", config=CONFIG)
def _(t):
    a, b = Host(uri(t, 1), 1), Host(uri(t, 1), 2)
    a.register()
    a.acquire("exclusive-access")
    fails(*b.args("acquire", "--crkey", 2, "--rtype", 1),
          sentence=f"weft resv: {b.place}: Reservation Acquire: reservation conflict (NVMe status 0x83)")
    fails("read", b.place, "--length", "4K", *b.me, words=["eservation conflict"])
    b.key = (1 << 64) - 1
    b.register("--cptpl", "set")
    assert b.report()["ptpls"] == 1
    as_json(*b.args("preempt-abort", "--crkey", b.key, "--prkey", 1, "--rtype", "write-exclusive"))
    assert b.registrants() == {b.id: ("0xffffffffffffffff", 1)} and b.report()["rtype"] == 1
    a.register()
    as_json(*b.args("preempt", "--crkey", b.key, "--prkey", 1, "--rtype", 1))
    assert list(b.registrants()) == [b.id]
    fails(*a.args("release", "--crkey", 1, "--rtype", 1), words=["Reservation Release", "0x83"])


@with_target("release by who does not hold the reservation releases nothing, and says so", config=CONFIG)
def _(t):
    a, b = Host(uri(t, 1), 1), Host(uri(t, 1), 2)
    a.register()
    b.register()
    release = b.args("release", "--crkey", 2, "--rtype", 1)
    assert text(*release) == "nothing to release: no host holds a reservation, namespace 1\n"
    a.acquire(1)
    assert text(*release) == (f"nothing to release: host {a.me[1]} holds the reservation "
                              "(write-exclusive), namespace 1\n")
    assert as_json(*release) == {"action": "release", "nsid": 1, "released": False}
    assert a.report()["rtype"] == 1
    fails(*a.args("release", "--crkey", 1, "--rtype", "exclusive-access"),
          words=["holds the reservation of namespace 1 as write-exclusive, not as exclusive-access",
                 "--rtype write-exclusive"])
    assert as_json(*a.args("release", "--crkey", 1, "--rtype", 1))["released"] is True
    a.acquire("write-exclusive-all-regs")
    assert text(*b.args("release", "--crkey", 2, "--rtype", 5)) == "released, namespace 1\n"
    assert a.report()["rtype"] == 0


@with_target("more registrants than the first look has room for", limit_s=120, config=CONFIG)
def _(t):
    hosts = [Host(uri(t, 1), n) for n in range(1, 67)]
    for host in hosts:
        host.register()
    report = hosts[0].report()
    assert report["regctl"] == 66 == len(report["regctlext"]), report["regctl"]


def reporting(data, fill=True):
    """A target whose Reservation Report is {data}, for as long as what is asked for."""
    def step(conn, cmd):
        if not conn.qid or cmd.opcode != sqe.RESV_REPORT:
            return conn.complete(cmd, 0x1)
        if fill:
            return conn.data_in(cmd, data[:cmd.length].ljust(cmd.length, b"\0"))
        if data:
            conn.c2hdata(cmd.cid, 0, data[:cmd.length])
        conn.complete(cmd)
    return scripted.Target(unknown=step)


@tap.case("reports of more than there is, of all ones, of nothing")
def _():
    assert sqe.RESV_REPORT not in responder.IO
    entry = struct.pack("<HB5xQ16s32x", 1, 1, 5, b"\xaa" * 16)
    header = struct.Struct("<IBHxxB54x")
    for data, told, count in ((b"\xff" * (8 << 20), 65535, None), (b"", 0, 0),
                              (header.pack(7, 9, 2, 0) + entry, 2, 2),
                              (header.pack(7, 1, 65535, 0) + entry, 65535, None)):
        with reporting(data) as t:
            report = as_json("resv", "report", uri(t))
            assert report["regctl"] == told, report["regctl"]
            assert count is None or len(report["regctlext"]) == count, report
            shown = text("resv", "report", uri(t))
            assert count is not None or "more\n" in shown, shown[-200:]
    with scripted.Target() as t:
        fails("resv", "report", uri(t), words=["Reservation Report", "invalid opcode"])


@tap.case("a report that did not come, or not with all that it tells of")
def _():
    entry, header = bytes(64), struct.Struct("<IBHxxB54x")
    for data in header.pack(7, 0, 0, 0), header.pack(7, 9, 2, 0) + 2 * entry:
        with reporting(data, fill=False) as t:
            assert as_json("resv", "report", uri(t))["gen"] == 7
    for data in (b"", header.pack(7, 0, 0, 0)[:-4], header.pack(7, 9, 2, 0) + entry,
                 header.pack(7, 1, 65535, 0) + entry):
        with reporting(data, fill=False) as t:
            for form in [], ["--json"]:
                fails("resv", "report", *form, uri(t),
                      words=["Reservation Report", f"sent only {len(data)} of "])


sys.exit(tap.run())
