#!/usr/bin/python3
"""host_cli.py - discover, ls, id, read and write against `weft serve`: what they print, as a table
and as JSON; how they fail."""
import hashlib
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import structures
import tap
import target as scripted
import weft
from command import OK, USAGE, as_json, done, fails, messages, on_terminal, run, start, \
    text, uri
from fixture import with_target

K, M = 1024, 1 << 20
TWO = dict(ns=["mem:8M,block=512", "mem:16M,block=4096"])
NO_NQN = "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.weft:none"
COMMANDS = ["discover", "ls", "id", "log", "feature", "resv", "read", "write", "compare", "zero",
            "trim", "cp", "raw"]


# ---- usage

@tap.case("every command has --help, with the way to the words of a URI")
def _():
    for command in COMMANDS + ["bench"]:
        page = text(command, "--help")
        assert page.startswith(f"usage: weft {command} "), page
        assert "weft(1)" in page and "loss_timeout" in page, page


# arguments, words of the one line on standard error
WRONG_USAGE = [
    (["discover"], ["expected one URI"]),
    (["discover", "a", "b"], ["expected one URI"]),
    (["discover", "--jsn", "x"], ["did you mean --json?"]),
    (["discover", "--timeout", "soon", "x"], ["--timeout", "soon"]),
    (["ls"], ["expected one URI"]),
    (["ls", "--timeout", "0", "x"], ["--timeout"]),
    (["id"], ["expected one URI"]),
    (["id", "--ns", "0", "x"], ["--ns", '"0"']),
    (["id", "--hex", "--json", "x"], ["--hex does not go with --json"]),
    (["ls", "--ns", "x", "x"], ["--ns", '"x"']),
    (["read", "--ns", "-1", "x"], ["--ns", '"-1"']),
    (["read", "--length", "4K", "-o", NO_NQN, NO_NQN], ["-o takes a file"]),
    (["write", "-i", NO_NQN, NO_NQN], ["-i takes a file"]),
    (["read", "x"], ["--length"]),
    (["read", "--length", "1Q", "x"], ["--length", "1Q"]),
    (["read", "--length", "4K", "--offset", "-1", "x"], ["--offset", "-1"]),
    (["read", "--length", "4K", "--json", "x"], ["--json goes with -o"]),
    (["write"], ["expected one URI"]),
    (["write", "--offset", "1.1K", "x"], ["--offset", "1.1K"]),
    (["write", "--offset", "4KB", "x"], ["--offset", "1000s or in 1024s; write 4K"]),
    (["bench", "--bs", "4kB", "x"], ["--bs", "1000s or in 1024s; write 4k"]),
    (["cp", "a"], ["expected FROM and TO"]),
    (["cp", "--jobs", "0", "a", "b"], ["--jobs"]),
    (["cp", "--bs", "100", "a", "b"], ["--bs"]),
    (["cp", "--verify", "a", "-"], ["--verify"]),
    (["cp", "--json", "a", "-"], ["--json"]),
]


@tap.case("wrong usage is told in one line, with exit status 2")
def _():
    for args, words in WRONG_USAGE:
        result = run(*args)
        assert result.returncode == USAGE, (args, result.returncode, result.stderr)
        assert len(result.stderr.splitlines()) == 1, result.stderr
        for word in words:
            assert word in result.stderr, (args, result.stderr)


# a URI, words of the one line about it
WRONG_URIS = [
    ("x", ["expected nvme+tcp://", '"x"']),
    ("/etc/passwd", ["expected nvme+tcp://", '"/etc/passwd"']),
    ("127.0.0.1:4420", ["expected nvme+tcp://"]),
    ("http://127.0.0.1", ["expected nvme+tcp://"]),
    ("nvme+fc://127.0.0.1/nqn.2026-11.io.weft:a", ["nvme+fc"]),
    ("nvme+tcp://127.0.0.1:99999/nqn.2026-11.io.weft:a", ["99999"]),
    ("nvme+tcp://127.0.0.1:0/nqn.2026-11.io.weft:a", ["port 0"]),
    ("nvme+tcp://127.0.0.1/50%off", ["hexadecimal"]),
    ("nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:a?nsid=0", ["nsid=0"]),
    ("nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:a?kato=soon", ["kato=soon"]),
    ("nvme+tcp://127.0.0.1/nqn.2026-11.io.weft:a?colour=red", ["colour"]),
]


@tap.case("a wrong URI is wrong usage: exit status 2, nobody is connected to, nothing is made")
def _():
    commands = (["discover"], ["ls"], ["id"], ["read", "--length", "4K"], ["write"], ["bench"])
    for place, words in WRONG_URIS:
        for args in commands:
            assert fails(*args, place, code=USAGE, words=words).startswith(f"weft {args[0]}: ")
        if "://" in place:
            fails("cp", place, "/nonexistent/file", code=USAGE, words=words)
            fails("cp", "/nonexistent/file", place, code=USAGE, words=words)
    for args in commands:
        fails(*args, "--hostnqn", "me", NO_NQN, code=USAGE, words=["me"])


@tap.case("two namespaces are a contradiction: exit status 2, nobody is connected to")
def _():
    place = NO_NQN + "?nsid=1"
    for args in (["ls"], ["id"], ["read", "--length", "4K"], ["write"], ["bench"]):
        fails(*args, place, "--ns", 3, code=USAGE,
              sentence=f"weft {args[0]}: --ns 3 and nsid=1 of the URI are two namespaces; leave "
                       "one of them out")
        fails(*args, place + "&nsid=2", code=USAGE, words=["nsid=2: nsid is given twice"])


@tap.case("nobody listens there: every command says so and ends with 1")
def _():
    for args in (["discover"], ["ls"], ["id"], ["read", "--length", "4K"], ["write"]):
        last = fails(*args, NO_NQN)
        assert "127.0.0.1:1" in last and "refused" in last.lower(), last
        assert 'is "weft serve" running there' in last and "4420" in last, last
    fails("cp", NO_NQN, "-", words=["127.0.0.1:1", "refused"])


# ---- discover

@with_target("discover: a table and JSON", **TWO)
def _(t):
    page = text("discover", uri(t, nqn=""))
    assert page.splitlines()[0].split() == ["TRANSPORT", "ADDRESS", "PORTID", "TYPE", "SUBSYSTEM"]
    row = next(line for line in page.splitlines() if t.nqn in line).split()
    assert row[:2] == ["tcp", f"127.0.0.1:{t.addr[1]}"] and row[3:] == ["nvm", t.nqn], row
    log = as_json("discover", uri(t, nqn=""))
    entry = next(e for e in log["entries"] if e["type"] == "nvm")
    assert entry["subnqn"] == t.nqn and entry["service"] == str(t.addr[1]), entry
    assert entry["uri"] == uri(t) and entry["transport"] == "tcp", entry
    assert not entry["secure"] and log["unreachable"] == 0 and log["generation"] >= 0, log
    assert as_json("discover", "--no-referrals", uri(t, nqn=""))["entries"] == log["entries"]


@with_target("discover: a subsystem is no discovery service")
def _(t):
    for option in ([], ["--no-referrals"], ["--watch"]):
        fails("discover", *option, uri(t), words=["is a subsystem, not a discovery service"])


@with_target("discover: referrals are followed; those that lead nowhere are warned about")
def _(t):
    dead = weft.free_port()
    nqn = "nqn.2014-08.org.nvmexpress.discovery"
    entries = [structures.entry(nqn, port, subtype=structures.REFERRAL)
               for port in (t.addr[1], dead)]
    with scripted.Target(log=structures.DiscoveryLog(entries)) as peer:
        result = run("discover", "--json", uri(peer, nqn=""))
        assert result.returncode == OK, result.stderr
        assert "warning: 1 referral could not be followed" in result.stderr, result.stderr
        found = [e for e in json.loads(result.stdout)["entries"] if e["type"] == "nvm"]
        assert [e["subnqn"] for e in found] == [t.nqn], found
        assert str(t.addr[1]) in found[0]["from"], found
        log = as_json("discover", "--no-referrals", uri(peer, nqn=""))
        assert [e["type"] for e in log["entries"]] == ["referral"] * 2, log


@with_target("discover --watch prints the log again when it changes")
def _(t):
    with start("discover", "--watch", "--json", uri(t, nqn="")) as watch:
        try:
            first = json.loads(watch.stdout.readline())
            assert [e["subnqn"] for e in first["entries"] if e["type"] == "nvm"] == [t.nqn], first
            nqn = "nqn.2026-11.io.weft:new"
            t.ctl("subsystem-add", nqn=nqn, allow_any_host=True)
            second = json.loads(watch.stdout.readline())
            assert nqn in [e["subnqn"] for e in second["entries"]], second
            assert second["generation"] > first["generation"], (first, second)
        finally:
            watch.send_signal(signal.SIGINT)
        watch.wait(20)


# ---- ls

@with_target("ls: a tree in ASCII or in lines, and JSON", **TWO)
def _(t):
    for place in (uri(t), uri(t, nqn="")):
        plain = text("ls", place, env={"LC_ALL": "C"})
        assert plain.isascii() and plain.splitlines()[0] == t.nqn, plain
        assert "|- " in plain and "`- namespace 2" in plain, plain
        assert "8 MiB, blocks of 512" in plain and "16 MiB, blocks of 4096" in plain, plain
        assert "├─" in text("ls", place, env={"LC_ALL": "C.UTF-8"})
        tree = as_json("ls", place)["subsystems"]
        assert [s["subnqn"] for s in tree] == [t.nqn], tree
        ctrl, = tree[0]["controllers"]
        assert ctrl["state"] == "live" and ctrl["uri"] == uri(t, nqn="")[:-1], ctrl
        assert ctrl["model"] and ctrl["serial"] and ctrl["queues"] and ctrl["depth"], ctrl
        want = [(n["nsid"], n["size"], n["block_size"], n["uuid"]) for n in t.subsystem()["namespaces"]]
        assert [(n["nsid"], n["size"], n["block_size"], n["uuid"])
                for n in tree[0]["namespaces"]] == want, tree


OTHER_NAMES = {"nqn", "block", "readonly", "read-only", "group", "groups", "access", "per-namespace"}


def keys_of(value):
    """Every key below a JSON value."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set()


@with_target("JSON: the same thing has the same name in every command", **TWO)
def _(t):
    place = uri(t, 1)
    (t.dir / "in").write_bytes(bytes(4096))
    written = as_json("write", place, "-i", t.dir / "in", "--offset", "8K")
    assert written["offset"] == 8192 and "to_offset" not in written, written
    read = as_json("read", place, "-o", t.dir / "out", "--offset", "8K", "--length", "4K")
    assert read["offset"] == 8192 and "to_offset" not in read, read
    copied = as_json("cp", t.dir / "in", place, "--to-offset", "4K")
    assert (copied["offset"], copied["to_offset"]) == (0, 4096), copied
    bench = as_json("bench", place, "--time", "1s", "--warmup", "0s")
    assert bench["target"]["address"] == f"{t.addr[0]}:{t.addr[1]}", bench["target"]
    assert as_json("id", place)["uri"] == uri(t, nqn="")[:-1]
    for got in (written, read, copied, bench, as_json("ls", place), as_json("discover", uri(t, nqn="")),
                as_json("feature", "get", "kato", "--select", "supported", place)):
        assert not keys_of(got) & OTHER_NAMES, keys_of(got) & OTHER_NAMES
    ns = t.subsystem()["namespaces"][0]
    assert {"block_size", "read_only", "ana_group"} <= ns.keys() and not ns.keys() & OTHER_NAMES, ns


@with_target("ls: one namespace, by --ns or by nsid=; used is told where it says something", **TWO)
def _(t):
    for args in ([uri(t, 2)], [uri(t), "--ns", 2], [uri(t, 2), "--ns", 2],
                 [uri(t, nqn=""), "--ns", 2], [uri(t, nqn="", nsid=2)]):
        tree, = as_json("ls", *args)["subsystems"]
        assert [n["nsid"] for n in tree["namespaces"]] == [2], tree
    page = text("ls", uri(t))
    for ns in as_json("ls", uri(t))["subsystems"][0]["namespaces"]:
        assert ns["used"] != ns["size"] or " used" not in page, page
    for args in ([uri(t, 7)], [uri(t), "--ns", 7]):
        fails("ls", *args, sentence=f'weft ls: {uri(t)} has no namespace 7; "weft ls {uri(t)}" '
              "shows them")
    tree, = as_json("ls", uri(t, nqn=""), "--ns", 7)["subsystems"]
    assert tree["namespaces"] == [], tree


@with_target("standard output that is full, and a reader that has gone away", **TWO)
def _(t):
    commands = (["ls", uri(t)], ["ls", "--json", uri(t)], ["id", uri(t), "--ns", 1],
                ["discover", uri(t, nqn="")], ["discover", "--json", uri(t, nqn="")],
                ["discover", "--watch", uri(t, nqn="")],
                ["bench", uri(t, 1), "--time", "1"], ["bench", "--json", uri(t, 1), "--time", "1"],
                ["read", uri(t, 1), "--length", "1M"], ["read", "--hex", uri(t, 1), "--length", "1M"])
    for args in commands:
        with open("/dev/full", "wb") as full:
            full_up = start(*args, stdout=full)
            err = full_up.communicate(timeout=30)[1].decode()
        assert full_up.returncode == 1, (args, full_up.returncode, err)
        told = f"weft {args[0]}: standard output: No space left on device"
        assert [line[:len(told)] for line in messages(err)] == [told], err
        for ignored in (False, True):
            reader, writer = os.pipe()
            os.close(reader)
            gone = start(*args, stdout=writer, restore_signals=not ignored)
            os.close(writer)
            err = gone.communicate(timeout=30)[1].decode()
            assert gone.returncode in (141, -signal.SIGPIPE) and not messages(err), (args, gone.returncode, err)


@with_target("ls: what cannot be reached is shown with the reason, and the exit status is 1")
def _(t):
    dead = weft.free_port()
    entries = [structures.entry(t.nqn, t.addr[1]), structures.entry("nqn.2026-11.a:gone", dead)]
    with scripted.Target(log=structures.DiscoveryLog(entries)) as peer:
        result = run("ls", "--json", uri(peer, nqn=""))
        assert result.returncode == 1 and "1 of 2 controllers" in result.stderr, result.stderr
        good, gone = json.loads(result.stdout)["subsystems"]
        assert good["subnqn"] == t.nqn and good["namespaces"], good
        assert gone["controllers"][0]["state"] == "failed", gone
        assert "refused" in gone["controllers"][0]["error"].lower(), gone


@tap.case("ls: what several controllers show is one list, in order")
def _():
    with scripted.Target() as one, scripted.Target() as other:
        one.namespaces = {n: scripted.Namespace(bytes(4096)) for n in (2, 3, 9)}
        other.namespaces = {n: scripted.Namespace(bytes(4096)) for n in (1, 3, 5, 9, 12)}
        entries = [structures.entry(t.nqn, t.addr[1]) for t in (one, other)]
        with scripted.Target(log=structures.DiscoveryLog(entries)) as service:
            tree, = as_json("ls", uri(service, nqn=""))["subsystems"]
        assert [n["nsid"] for n in tree["namespaces"]] == [1, 2, 3, 5, 9, 12], tree
        assert [sum(p["ana_state"] == "optimized" for p in n["paths"])
                for n in tree["namespaces"]] == [1, 1, 2, 1, 2, 1], tree


@with_target("ls: no subsystem, no namespace")
def _(t):
    t.ctl("namespace-remove", nqn=t.nqn, nsid=1)
    assert as_json("ls", uri(t))["subsystems"][0]["namespaces"] == []
    t.ctl("subsystem-remove", nqn=t.nqn)
    host = as_json("version")["hostnqn"]
    assert text("ls", uri(t, nqn="")) == f"no subsystem is exported to this host; this host is {host}\n"
    other = "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-cdef-0123-456789abcdef"
    for args in ([uri(t, nqn="", hostnqn=other)], [uri(t, nqn=""), "--hostnqn", other]):
        assert text("ls", *args).endswith(f"; this host is {other}\n"), args


# ---- id

@with_target("id: decoded, as JSON, in hex", **TWO)
def _(t):
    page = text("id", uri(t))
    assert "namespaces: 1 2 (--ns N shows one)" in page, page
    page = text("id", uri(t), "--ns", 2)
    assert max(len(line) for line in page.splitlines()) <= 80, page
    assert "preferred write granularity: 4 KiB\n" in page, page
    for line in ("TRANSPORT tcp         from 127.0.0.1", "MDTS", "ONCS",
                 "compare, deallocate, write", "VWC", "NSZE", "LBAF 0", "traffic-based keep-alive", "compare and write", "16 MiB", "identifiers"):
        assert line in page, f"no {line!r} in\n{page}"
    for place, nsid in ((uri(t, nsid=1), 1), (uri(t), 2)):
        raw = as_json("id", place, "--ns", nsid)
        assert raw["path"] == {"transport": "tcp", "local": "127.0.0.1"}, raw["path"]
        ctrl, ns = raw["controller"], raw["namespace"]
        assert ctrl["ver"] == 0x20000 and ctrl["subnqn"] == t.nqn and ctrl["oncs"] & 0xD == 0xD
        assert ns["nsid"] == nsid and ns["nsze"] << ns["lbafs"][0]["lbads"] == 8 * nsid * M, ns
        assert ns["descriptors"]["uuid"] == t.subsystem()["namespaces"][nsid - 1]["uuid"], ns
    dump = text("id", uri(t), "--hex", "--ns", 1)
    assert dump.startswith("Identify Controller\n00000000 ") and "Identify Namespace" in dump


ANA = """
subsystems:
  - nqn: nqn.2026-11.io.weft:test
    allow_any_host: true
    namespaces:
      - { nsid: 1, backend: "mem:16M", ana_group: 1 }
      - { nsid: 2, backend: "mem:16M", ana_group: 7 }
      - { nsid: 3, backend: "mem:16M", ana_group: 7 }
    ana:
      - { group: 7, state: non-optimized }
"""


@with_target("id: asymmetric access, instances, reservations", config=ANA)
def _(t):
    raw = as_json("id", uri(t, nsid=2))
    ctrl, ns, ana = raw["controller"], raw["namespace"], raw["ana"]
    assert ctrl["cmic"] & 8 and ctrl["anacap"] & 0x1F == 0x1F and ctrl["anatt"] == 30, ctrl
    assert ctrl["ciu"] and int(ctrl["cirn"], 16) and ctrl["ccrl"] and ctrl["cqt"], ctrl
    assert ctrl["oncs"] & 0x20 and ns["rescap"] & 0x7E == 0x7E and ns["nmic"] & 1, (ctrl, ns)
    assert ns["anagrpid"] == 7, ns
    groups = {g["grpid"]: (g["state"], g["nsids"]) for g in ana["groups"] if g["nsids"]}
    assert groups == {1: ("optimized", [1]), 7: ("non-optimized", [2, 3])} and ana["ngrps"] == len(ana["groups"]), ana
    page = text("id", uri(t), "--ns", 2)
    assert max(len(line) for line in page.splitlines()) <= 80, page
    for words in ("several controllers, reports ANA", "ANA changes, cross-controller resets",
                  "CIRN", "CCRL", "asymmetric namespace access", "group 7   non-optimized",
                  "namespaces 2 3", "exclusive access, all registrants"):
        assert words in " ".join(page.split()) or words in page, f"no {words!r} in\n{page}"


@with_target("id: of a discovery controller; of a namespace that is not there", **TWO)
def _(t):
    assert as_json("id", uri(t, nqn=""))["controller"]["cntrltype"] == 2
    fails("id", uri(t), "--ns", 7, sentence=f'weft id: {uri(t)} has no namespace 7; "weft ls '
          f'{uri(t)}" shows them')
    fails("id", uri(t, nqn=""), "--ns", 1, words=["is a discovery service and has no namespaces"])


# ---- read and write

def write_read(t, nsid, **words):
    place, data = uri(t, nsid, **words), os.urandom(3 * M + 4 * K)
    for offset in (0, M + 4 * K):
        done("write", place, "--offset", offset, stdin=data)
        assert done("read", place, "--offset", offset, "--length", len(data)) == data


for name, words in (("as it is", {}), ("header digest", {"hdgst": 1}), ("data digest", {"ddgst": 1}),
                    ("both digests", {"hdgst": 1, "ddgst": 1}), ("by name", {"host": "localhost"}),
                    ("one queue of 8", {"queues": 1, "depth": 8})):
    @with_target(f"write, then read: {name}", **TWO)
    def _(t, words=words):
        write_read(t, 1, **words)
        write_read(t, 2, **words)


@with_target("write, then read: over IPv6, with digests asked for by options")
def _(t):
    try:
        listener = t.ctl("listener-add", listen="nvme+tcp://[::1]:0")["listen"]
    except Exception as err:
        tap.skip(f"no IPv6 here: {err}")
    place = listener + "/" + t.nqn
    done("write", "--hdgst", "--ddgst", "--timeout", "20s", place, stdin=b"six!" * K)
    assert done("read", "--hdgst", place, "--length", "4K") == b"six!" * K
    assert as_json("ls", place)["subsystems"][0]["controllers"][0]["uri"] == listener


@with_target("write: from a file, a part of it, with FUA, verified; read: into a file", **TWO)
def _(t):
    data, source, out = os.urandom(2 * M), t.dir / "in", t.dir / "out"
    source.write_bytes(data)
    summary = as_json("write", uri(t, 2), "-i", source, "--offset", "1M", "--length", "64K", "--fua",
                      "--verify")
    assert (summary["bytes"], summary["verified"], summary["flushed"]) == (64 * K, 64 * K, True)
    assert (summary["source"], summary["destination"]) == (str(source), uri(t, 2)), summary
    assert summary["offset"] == M and summary["seconds"] == round(summary["seconds"], 6), summary
    assert as_json("read", uri(t, 2), "--offset", "1M", "--length", "64K", "-o", out)["bytes"] == \
        64 * K
    assert out.read_bytes() == data[:64 * K]
    fails("read", uri(t, 2), "--length", "4K", "-o", out,
          sentence=f"weft read: {out} is there already; --force replaces it")
    assert done("read", uri(t, 2), "--length", "4K", "-o", out, "--force", "-q") == b""
    assert out.read_bytes() == bytes(4 * K)


@with_target("read: a hexdump", **TWO)
def _(t):
    done("write", uri(t, 1), "--offset", 512, stdin=b"abc\0" * 128)
    assert text("read", uri(t, 1), "--offset", 512, "--length", 512, "--hex") == (
        "00000200  61 62 63 00 61 62 63 00  61 62 63 00 61 62 63 00  |abc.abc.abc.abc.|\n"
        "*\n00000400\n")
    code, shown = on_terminal("read", uri(t, 1), "--offset", 512, "--length", 512)
    assert code == OK and shown.splitlines()[1:] == ["*", "00000400"], shown


@with_target("a pipe that ends inside a block: refused, or padded with zeroes", **TWO)
def _(t):
    done("write", uri(t, 2), stdin=b"\xff" * 8 * K)
    fails("write", uri(t, 2), stdin=b"x" * 5000,
          sentence="weft write: standard input ended after 4.9 KiB (5000 bytes), inside a block of 4096; "
                   "--pad fills it up with zeroes (nothing is written)")
    assert done("read", uri(t, 2), "--length", "8K") == b"\xff" * 8 * K
    said = text("write", uri(t, 2), "--pad", stdin=b"x" * 5000)
    assert "3192 bytes from 5000 on became zeroes, to the end of the block" in said, said
    assert as_json("write", uri(t, 2), "--pad", stdin=b"x" * 5000)["padding"] == 3192
    assert done("read", uri(t, 2), "--length", "12K") == (b"x" * 5000).ljust(12 * K, b"\0")


@with_target("nothing to write: that is said, and nothing is changed", **TWO)
def _(t):
    done("write", uri(t, 2), stdin=b"\xff" * 8 * K)
    assert text("write", uri(t, 2)) == "nothing was written: standard input is empty\n"
    assert text("write", uri(t, 2), "--pad") == "nothing was written: standard input is empty\n"
    assert done("write", "-q", uri(t, 2)) == b"" and as_json("write", uri(t, 2))["bytes"] == 0
    assert done("read", uri(t, 2), "--length", "8K") == b"\xff" * 8 * K


# arguments beyond the URI of namespace 2 (16 MiB in blocks of 4096), the sentence
REFUSED = [
    (["read", "--offset", "1000", "--length", "4K"],
     "weft read: --offset 1000 is not a multiple of the block size 4096: use 0 or 4096"),
    (["read", "--offset", "4K", "--length", "5000"],
     "weft read: --length 5000 is not a multiple of the block size 4096: use 4096 or 8192"),
    (["read", "--offset", "16M", "--length", "4K"],
     "weft read: --offset 16777216 with --length 4096 goes beyond the end of URI, which has 16 "
     "MiB (16777216 bytes): at most 0 bytes can be read there"),
    (["read", "--offset", "17M", "--length", "4K"],
     "weft read: --offset 17825792 is beyond the end of URI, which has 16 MiB "
     "(16777216 bytes)"),
    (["write", "--offset", "15M", "--length", "2M"],
     "weft write: --offset 15728640 with --length 2097152 goes beyond the end of URI, which has 16 "
     "MiB (16777216 bytes): at most 1 MiB (1048576 bytes) can be written there"),
    (["write", "--offset", "6000"],
     "weft write: --offset 6000 is not a multiple of the block size 4096: use 4096 or 8192"),
    (["write", "--length", "8K"],
     "weft write: standard input ended after 4096 of 8192 bytes (nothing is written)"),
]


@with_target("read and write: what is refused, and in which words", **TWO)
def _(t):
    before = hashlib.sha256(done("read", uri(t, 2), "--length", "16M")).digest()
    for args, sentence in REFUSED:
        fails(*args, uri(t, 2), stdin=b"x" * 4096, sentence=sentence.replace("URI", uri(t, 2)))
    assert hashlib.sha256(done("read", uri(t, 2), "--length", "16M")).digest() == before


@with_target("read and write: sizes as people write them", **TWO)
def _(t):
    done("write", uri(t, 1), "--offset", "1.5KiB", "--length", "0.5k", stdin=b"half" * 128)
    assert done("read", uri(t, 1), "--offset", 1536, "--length", "512") == b"half" * 128


@with_target("subsystems that are not called nqn.…, as Linux' target has them", nqn="testnqn")
def _(t):
    assert t.log.read_text().count("warning: testnqn is not of the form") == 1, t.log.read_text()
    for nqn in ("blktests-subsystem-1", "100 %?,nvme+tcp:/\u00fc"):
        result = t.ctl("subsystem-add", nqn=nqn, allow_any_host=True,
                       namespaces=[{"backend": "mem:1M"}])
        assert f"{nqn} is not of the form" in result["warnings"][0], result
        entries = as_json("discover", uri(t, nqn=""))["entries"]
        place, = [e["uri"] for e in entries if e["subnqn"] == nqn]
        assert [s["subnqn"] for s in as_json("ls", place)["subsystems"]] == [nqn], place
        assert len(done("read", f"{place}?nsid=1", "--length", "1M")) == M
        found = as_json("id", f"{uri(t, nqn=place.split('/', 3)[3])}?paths=discover&nsid=1")
        assert found["controller"]["subnqn"] == nqn, found["controller"]
        t.ctl("namespace-remove", nqn=nqn, nsid=1)
        assert len(as_json("ls", uri(t, nqn=""))["subsystems"]) == 2
        t.ctl("subsystem-remove", nqn=nqn)
    t.takeover()
    assert [s["subnqn"] for s in as_json("ls", uri(t))["subsystems"]] == ["testnqn"]


@with_target("which namespace: it has to be said where there are several", **TWO)
def _(t):
    out, source = t.dir / "out", t.dir / "in"
    source.write_bytes(bytes(4 * K))
    for args in (["read", uri(t), "--length", "4K"], ["write", uri(t)], ["bench", uri(t)],
                 ["cp", uri(t), out], ["cp", source, uri(t)]):
        fails(*args, stdin=bytes(4 * K),
              sentence=f"weft {args[0]}: which namespace? {uri(t)} has 1, 2: add ?nsid=N")
    fails("bench", uri(t, hdgst=1), words=["has 1, 2: add &nsid=N"])
    missing = f'{uri(t)} has no namespace 9; "weft ls {uri(t)}" shows them'
    for args in (["read", uri(t, 9), "--length", "4K"], ["read", uri(t), "--ns", 9, "--length", "4K"],
                 ["write", uri(t, 9)], ["bench", uri(t, 9)], ["bench", uri(t), "--ns", 9],
                 ["cp", uri(t, 9), out], ["id", uri(t, 9)]):
        fails(*args, sentence=f"weft {args[0]}: {missing}")
    done("write", uri(t), "--ns", 2, stdin=b"two!" * K)
    assert done("read", uri(t, 2), "--ns", 2, "--length", "4K") == b"two!" * K
    assert done("read", uri(t, 1), "--length", "4K") == bytes(4 * K)
    assert as_json("bench", uri(t), "--ns", 2, "--time", "50ms")["target"]["nsid"] == 2
    fails("read", uri(t, nqn=""), "--length", "4K",
          words=["is a discovery service and has no namespaces", "weft discover"])
    t.ctl("namespace-remove", nqn=t.nqn, nsid=1)
    done("read", uri(t), "--length", "4K")
    t.ctl("namespace-remove", nqn=t.nqn, nsid=2)
    fails("read", uri(t), "--length", "4K", sentence=f"weft read: {uri(t)} has no namespace")


@with_target("a read-only namespace is not written", ns=["mem:1M,ro"])
def _(t):
    fails("write", uri(t), stdin=b"x" * 4096, sentence=f"weft write: {uri(t)} is read-only")
    assert done("read", uri(t), "--length", "4K") == bytes(4 * K)


@with_target("a subsystem that is not there; a host that may not", extra=[
    "--allow", "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-cdef-0123-456789abcdef"])
def _(t):
    nowhere = uri(t, nqn="nqn.2026-11.io.weft:nowhere")
    for args in (["id"], ["ls"], ["read", "--length", "4K"], ["write"], ["bench"]):
        fails(*args, nowhere, words=["no subsystem nqn.2026-11.io.weft:nowhere",
                                     f'"weft discover {uri(t, nqn="")[:-1]}" shows them'])
    fails("read", uri(t), "--length", "4K", words=["not allowed"])
    host = "nqn.2014-08.org.nvmexpress:uuid:01234567-89ab-cdef-0123-456789abcdef"
    assert done("read", uri(t), "--hostnqn", host, "--length", "4K") == bytes(4 * K)
    assert as_json("discover", uri(t, nqn=""), "--hostnqn", host)["entries"]


sys.exit(tap.run())
