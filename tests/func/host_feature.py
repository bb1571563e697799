#!/usr/bin/python3
"""host_feature.py - weft feature against `weft serve` and a scripted target: get, set, select, data."""
import pathlib
import sys
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import target as scripted
import tap
import weft
from command import OK, USAGE, as_json, done, fails, run, text, uri
from fixture import with_target

NOWHERE = f"nvme+tcp://127.0.0.1:1/{weft.NQN}"
HOST = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
CONFIG = """subsystems:
  - nqn: nqn.2026-11.io.weft:test
    allow_any_host: true
    state: "file:{dir}/state"
    namespaces: [ { backend: "mem:16M" }, { backend: "mem:16M" } ]
"""

# arguments, words of the one line on standard error
WRONG_USAGE = [
    ([], ["expected", "get FEATURE URI"]),
    (["get", NOWHERE], ["get FEATURE URI"]),
    (["show", "kato", NOWHERE], ["get FEATURE URI"]),
    (["set", "kato", NOWHERE], ["set FEATURE VALUE URI"]),
    (["get", "volatile-w", NOWHERE], ["did you mean volatile-wc?"]),
    (["get", "256", NOWHERE], ['no feature "256"']),
    (["set", "kato", "soon", NOWHERE], ["VALUE", '"soon"']),
    (["set", "kato", "0x100000000", NOWHERE], ["VALUE", "4294967295"]),
    (["get", "kato", NOWHERE, "--select", "all"], ["--select", '"all"']),
    (["set", "kato", "1", NOWHERE, "--select", "saved"], ["go with get"]),
    (["get", "kato", NOWHERE, "--save"], ["go with set"]),
    (["set", "host-behavior", "0", NOWHERE], ["--input says which"]),
    (["set", "kato", "0", NOWHERE, "--input", "-"], ["kato takes VALUE"]),
    (["get", "kato", NOWHERE, "--data-len", "8"], ["--data-len"]),
    (["get", "0xc0", NOWHERE, "--data-len", "8192"], ["--data-len", "4096"]),
    (["get", "kato", "x"], ["expected nvme+tcp://"]),
]


@tap.case("wrong usage is told in one line, with exit status 2")
def _():
    for args, words in WRONG_USAGE:
        fails("feature", *args, code=USAGE, words=words)


@with_target("get: by name and by number, in words and as JSON")
def _(t):
    for name in ("volatile-wc", "6", "0x06"):
        got = as_json("feature", "get", name, uri(t))
        assert got == {"fid": 6, "name": "Volatile Write Cache", "value": 1, "fields": {"wce": 1},
                       "select": "current"}, got
    assert text("feature", "get", "volatile-wc", uri(t)) == (
        "Volatile Write Cache (0x06), current: 0x00000001\n"
        "  WCE       1           1: the write cache is on\n")
    assert as_json("feature", "get", "kato", uri(t, kato="20s"))["fields"] == {"kato": 20000}
    queues = as_json("feature", "get", "num-queues", uri(t))["fields"]
    assert queues["nsqa"] == queues["ncqa"], queues
    for row in as_json("log", "features", uri(t))["features"]:
        page = text("feature", "get", row["fid"], uri(t))
        assert page.startswith(f"{row['name']} (0x{row['fid']:02x}), current: "), page
        assert max(len(line) for line in page.splitlines()) <= 80, page


@with_target("get --select: what it is at first, and whether it can be changed")
def _(t):
    for which in ("default", "saved"):
        got = as_json("feature", "get", "temp-thresh", uri(t), "--select", which)
        assert (got["value"], got["select"]) == (0xFFFF, which), got
    got = as_json("feature", "get", "resv-persist", uri(t), "--select", "supported")
    assert got["fields"] == {"saveable": 0, "per_namespace": 1, "changeable": 1}, got
    got = as_json("feature", "get", "host-id", uri(t), "--select", "supported")
    assert got["fields"]["changeable"] == 0 and "data" not in got, got


@with_target("get: data, as it is, in digits, as a time")
def _(t):
    args = ["--hostid", HOST, "--hostnqn", "nqn.2026-11.io.weft:me"]
    assert as_json("feature", "get", "host-id", uri(t), *args)["data"] == HOST.hex
    assert done("feature", "get", "host-id", uri(t), *args, "-b") == HOST.bytes
    assert as_json("feature", "get", "timestamp", uri(t))["timestamp"] >= 0
    assert len(done("feature", "get", "host-behavior", uri(t), "-b")) == 512


@with_target("set: a value, a time, data; what a namespace has stays", config=CONFIG)
def _(t):
    got = as_json("feature", "set", "volatile-wc", 0, uri(t))
    assert got == {"fid": 6, "name": "Volatile Write Cache", "value": 0, "fields": {"wce": 0},
                   "saved": False}, got
    assert as_json("feature", "set", "timestamp", 1 << 40, uri(t))["timestamp"] == 1 << 40
    assert as_json("feature", "set", "num-queues", 0x10001, uri(t))["fields"]["nsqa"] == 1
    as_json("feature", "set", "host-behavior", 0, uri(t), "-i", "-", stdin=bytes(512))
    as_json("feature", "set", "resv-persist", 1, uri(t), "--ns", 2)
    for place, ns, want in ((uri(t), ["--ns", 2], 1), (uri(t, 2), [], 1), (uri(t, 1), [], 0)):
        assert as_json("feature", "get", "resv-persist", place, *ns)["value"] == want
    fails("feature", "get", "resv-persist", uri(t), words=["which namespace?", "has 1, 2"])


@with_target("what is refused, in words")
def _(t):
    place = uri(t)
    fails("feature", "set", "power-mgmt", 1, place,
          sentence=f'weft feature: {place}: feature "power-mgmt": invalid field (NVMe status 0x2)')
    fails("feature", "set", "volatile-wc", 0, place, "--save", words=["0x10d"])
    fails("feature", "set", "host-id", 0, place, "-i", "-", stdin=bytes(16), words=["0x10e"])
    fails("feature", "set", "host-behavior", 0, place, "-i", "-", stdin=bytes(8), words=["0xf"])
    fails("feature", "set", "host-behavior", 0, place, "-i", "-", stdin=bytes(4097),
          words=["standard input has more than 4096 bytes"])
    fails("feature", "set", "host-behavior", 0, place, "-i", "/nonexistent",
          words=["/nonexistent: No such file or directory"])


@tap.case("a controller that answers all ones, sends less data than there is, or refuses")
def _():
    with scripted.Target(get_features=lambda conn, cmd: conn.complete(cmd, dw0=0xFFFFFFFF)) as t:
        for fid in range(256):
            if fid % 16 < 3 or fid > 0x80 and fid < 0x86:
                got = run("feature", "get", fid, uri(t, 1))
                assert got.returncode == OK or "sent only 0 of " in got.stderr, (fid, got.stderr)
        for args in (["timestamp"], ["host-id"], ["0xc0", "--data-len", 4]):
            fails("feature", "get", *args, uri(t), words=["Get Features", "sent only 0 of "])
        got = as_json("feature", "get", "0xc0", uri(t))
        assert (got["name"], got["value"], got["fields"]) == ("Unknown", 0xFFFFFFFF, {}), got
    with scripted.Target(get_features=lambda conn, cmd: conn.complete(cmd, 0x7FF)) as t:
        fails("feature", "get", "kato", uri(t), words=["feature \"kato\"", "0x7ff"])


@with_target("what the controller does not have is named, in words")
def _(t):
    place = f"nvme+tcp://{t.addr[0]}:{t.addr[1]}/{t.nqn}"
    for name in ("hctm", "sw-progress", "write-protect", "0xc1"):
        fails("feature", "get", name, uri(t), "--ns", 1,
              sentence=f'weft feature: {place} has no feature "{name}"; "weft log features {place}" '
                       "lists those that it has")
    fails("feature", "set", "hctm", "1", uri(t), words=['has no feature "hctm"'])
    fails("feature", "set", "resv-persist", "1", uri(t, 1),
          sentence=f"weft feature: {place}: this controller does not keep the reservations of namespace "
                   '1 through power loss (RESCAP); "weft serve" does if the subsystem has a state '
                   'file: "state" in weft.yaml(5)')
    fails("resv", "register", uri(t, 1), "--nrkey", "1", "--cptpl", "set",
          words=["does not keep the reservations of namespace 1 through power loss"])


@tap.case("a target that does not tell its features: the status alone")
def _():
    with scripted.Target(get_features=lambda conn, cmd: conn.complete(cmd, 0x2)) as t:
        last = fails("feature", "get", "hctm", uri(t), words=['feature "hctm"', "NVMe status"])
        assert "has no feature" not in last, last


sys.exit(tap.run())
