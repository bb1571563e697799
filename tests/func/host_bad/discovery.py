"""discovery.py - discovery logs that change, lie, lead astray, or never end."""
import contextlib
import json
import pathlib
import socket
import subprocess
import tempfile
import time

import nasty
import nvme
import weft
from host_bad import (HASTY, PATIENT, Target, case, discover, fails, judge, normally, run, survives,
                      works)
from structures import REFERRAL, DiscoveryLog, entry

LOG = 0x70


def log(*entries, **kw):
    return DiscoveryLog(entries, **kw)


def has(*nqns):
    """The output is JSON and names these, each as often as it is given."""
    def look(_t, result):
        json.loads(result.out)
        for nqn in nqns:
            assert result.out.decode().count(f'"{nqn}"') == nqns.count(nqn), result.out
    return look


SOME = [entry(f"nqn.2026-11.io.weft:s{n}", 4420 + n) for n in range(5)]
MANY = [entry(f"nqn.2026-11.io.weft:s{n}", 4420 + n) for n in range(300)]
works("discovery: an empty log", discover, look=has())
works("discovery: 5 entries", discover, log=log(*SOME), look=has("nqn.2026-11.io.weft:s4"))
works("discovery: 300 entries", discover, log=log(*MANY), look=has("nqn.2026-11.io.weft:s299"))
works("discovery: 300 entries, MDTS 8 KiB", discover, log=log(*MANY), mdts=1,
      look=has("nqn.2026-11.io.weft:s0", "nqn.2026-11.io.weft:s299"))


@case("discovery: names of the target do not reach the terminal as they are")
def _():
    entries = [entry(name, 4420) for name in nasty.NAMES.values()]
    entries += [entry("nqn.2026-11.io.weft:s", 4420, traddr=name, trsvcid=name)
                for name in nasty.NAMES.values()]
    with Target(log=log(*entries)) as t:
        for words in (["discover"], ["discover", "--json"], ["ls"], ["ls", "--json"]):
            result = run(words[0], t.uri("", **PATIENT), *words[1:])
            nasty.fit_to_see(result.out + result.err.encode())
            if "--json" in words:
                json.loads(result.out)


# --- the log changes

def changes(always):
    def step(conn, lid):
        if lid == LOG and (always or conn.target.log.generation < 4):
            conn.target.log.generation += 1
        return normally(conn, "log_page", lid)
    return step


def shrinks(conn, lid):
    """By two entries each time it is looked at."""
    if conn.target.log.entries:
        conn.target.log.generation += 1
        conn.target.log.entries = conn.target.log.entries[:-2]
    return normally(conn, "log_page", lid)


fails("discovery: the generation changes all the time", "chang|generation", discover,
      log=log(*SOME), log_page=changes(True))
works("discovery: the generation changes a few times", discover, log=log(*SOME),
      log_page=changes(False), look=has("nqn.2026-11.io.weft:s4"))
works("discovery: it shrinks to nothing", discover, log=log(*SOME), log_page=shrinks, look=has())
works("discovery: the generation wraps", discover, log=log(*SOME, generation=(1 << 64) - 1),
      look=has("nqn.2026-11.io.weft:s4"))

@case("discovery: a change arrives by event")
def _():
    with Target(log=log(*SOME)) as t, tempfile.NamedTemporaryFile(prefix="weft-") as out, \
            subprocess.Popen([weft.BINARY, "discover", "--watch", "--json", t.uri("", **PATIENT)],
                             stdout=out, stderr=out) as watch:
        def printed(nqn):
            return nqn.encode() in pathlib.Path(out.name).read_bytes()

        try:
            weft.wait_until(lambda: printed("io.weft:s4"), "the first log")
            t.log = log(*SOME, entry("nqn.2026-11.io.weft:new", 4420), generation=2)
            t.event(2, 0xF0, LOG)
            weft.wait_until(lambda: printed("io.weft:new"), "the second log")
        finally:
            watch.kill()


# --- the log lies

for numrec in (1000, 1 << 20, 1 << 32, 1 << 54, (1 << 64) - 1):
    fails(f"discovery: 5 entries, NUMREC {numrec:#x}", "log|entries|record|NUMREC", discover,
          log=log(*SOME, numrec=numrec))


def zeroes(conn, cmd):
    """A log without end: zeroes behind what there is."""
    offset = cmd.dw(12) | cmd.dw(13) << 32
    data = conn.log_page(cmd.dw(10) & 0xFF)[offset:offset + cmd.length]
    conn.data_in(cmd, data.ljust(cmd.length, b"\0"))


for numrec in (1 << 20, 1 << 40, (1 << 64) - 1):
    fails(f"discovery: NUMREC {numrec:#x}, zeroes follow", "log|entries|record|NUMREC", discover,
          log=log(*SOME, numrec=numrec), get_log=zeroes)
survives("discovery: 5 entries, NUMREC 6", discover, log=log(*SOME, numrec=6))
survives("discovery: 5 entries, NUMREC 2", discover, log=log(*SOME, numrec=2))
survives("discovery: an entry is cut off", discover,
         log_page=lambda conn, lid: log(*SOME).encode()[:-700])
fails("discovery: record format 1", "format|RECFMT", discover, log=log(*SOME, recfmt=1))
survives("discovery: less data than asked for", discover, log=log(*SOME),
         get_log=lambda conn, cmd: (conn.c2hdata(cmd.cid, 0, bytes(512)), conn.complete(cmd)))
for status in (nvme.INVALID_LOG, nvme.INVALID_FIELD, nvme.INVALID_OPCODE, 0x06):
    fails(f"discovery: the log is refused with {status:#x}", rf"log.*0x{status:x}\b", discover,
          get_log=lambda conn, cmd, status=status: conn.complete(cmd, status))

# --- entries

NQN = "nqn.2026-11.io.weft:x"
ODD = {
    "subnqn without terminator": dict(subnqn=b"x" * 256),
    "subnqn of 255 bytes": dict(subnqn=b"x" * 255),
    "empty subnqn": dict(subnqn=""),
    "subnqn with control characters": dict(subnqn=b"nqn.\x1b[2J\r\n\x07x"),
    "subnqn that is no text": dict(subnqn=b"\xff\xfe\x80\xc3("),
    "subnqn with quotes and query": dict(subnqn='nqn."x\\?nsid=1&hdgst=1#%00'),
    "traddr without terminator": dict(traddr=b"1" * 256),
    "traddr with control characters": dict(traddr=b"127.0.0.1\n\x1b]0;x\x07"),
    "empty traddr": dict(traddr=""),
    "traddr that is a name": dict(traddr="localhost"),
    "traddr padded with blanks": dict(traddr="127.0.0.1   "),
    "IPv6": dict(traddr="::1", adrfam=2),
    "IPv6 that is IPv4": dict(traddr="127.0.0.1", adrfam=2),
    "trsvcid without terminator": dict(trsvcid=b"4" * 32),
    "trsvcid 0": dict(trsvcid="0"), "trsvcid 65536": dict(trsvcid="65536"),
    "trsvcid -1": dict(trsvcid="-1"), "trsvcid abc": dict(trsvcid="abc"),
    "trsvcid padded with blanks": dict(trsvcid="4420".ljust(32)),
    "empty trsvcid": dict(trsvcid=""),
    "transport 0": dict(trtype=0), "transport rdma": dict(trtype=1), "transport fc": dict(trtype=2),
    "transport 99": dict(trtype=99), "transport loop": dict(trtype=254),
    "address family 0": dict(adrfam=0), "address family 99": dict(adrfam=99),
    "subtype 0": dict(subtype=0), "subtype 9": dict(subtype=9), "subtype 3": dict(subtype=3),
}


def clean(_t, result):
    json.loads(result.out)
    assert not set(result.out) & (set(range(32)) - {10}), result.out


def odd_referral(raw):
    survives(f"discovery: a referral: {name}", discover, log=log(raw, *SOME))


for name, words in ODD.items():
    raw = dict(subnqn=NQN, port=4420) | words
    works(f"discovery: {name}", discover, log=log(entry(**raw), *SOME), look=clean)
    if "subtype" not in name:
        odd_referral(entry(**raw | dict(subtype=REFERRAL)))


@case("discovery: control characters do not reach the terminal")
def _():
    bad = entry(b"nqn.\x1b[2J\r\n\x07\x9bx", 4420, b"\x1b[31m")
    with Target(log=log(bad)) as t:
        result = run("discover", t.uri("", **PATIENT))
        assert not set(result.out) & (set(range(32)) - {10} | {0x7F, 0x9B}), result.out


# --- referrals

def refer(*ports, traddr="127.0.0.1"):
    return [entry(nvme.DISCOVERY, port, traddr, REFERRAL) for port in ports]


@contextlib.contextmanager
def services(count, shape, **script):
    """Targets whose logs are made by shape(number, ports)."""
    with contextlib.ExitStack() as stack:
        targets = [stack.enter_context(Target(**script)) for _ in range(count)]
        ports = [t.addr[1] for t in targets]
        for number, t in enumerate(targets):
            t.log = log(*shape(number, ports))
        yield targets


def nqn(number):
    return f"nqn.2026-11.io.weft:r{number}"


def visits(t):
    """Connects that were let in: a host of another test may still look for its target, which had this
    port before."""
    return t.commands.count((0, "identify"))


def walk(name, count, shape, found, visited=None):
    """`found`: the subsystems that are reported. No service is asked more often than once, but for
    the first: it may have been looked at before."""
    @case(f"referrals: {name}")
    def _():
        with services(count, shape) as targets:
            result = discover(targets[0], PATIENT)
            assert result.code == 0, result
            has(*[nqn(n) for n in found])(None, result)
            asked = [visits(t) for t in targets]
            assert max([asked[0] - 1, *asked[1:]]) <= 1, f"connects: {asked}"
            assert visited is None or sum(asked) <= visited, f"connects: {asked}"


walk("A to B", 2, lambda n, p: [entry(nqn(n), 4420), *refer(*p[1:])], [0, 1])
walk("A to B to A", 2, lambda n, p: [entry(nqn(n), 4420), *refer(p[1 - n])], [0, 1])
walk("A to itself", 1, lambda n, p: [entry(nqn(n), 4420), *refer(*p)], [0])
walk("A to itself, a hundred times", 1, lambda n, p: [entry(nqn(n), 4420), *refer(*p * 100)], [0])
walk("a ring of five", 5, lambda n, p: [entry(nqn(n), 4420), *refer(p[(n + 1) % 5])], range(5))
walk("everyone to everyone", 6, lambda n, p: [entry(nqn(n), 4420), *refer(*p)], range(6))
walk("a chain of eight", 8, lambda n, p: [entry(nqn(n), 4420), *refer(*p[n + 1:n + 2])], range(8))
walk("a chain of twenty: it stops", 20,
     lambda n, p: [entry(nqn(n), 4420), *refer(*p[n + 1:n + 2])], range(8), visited=10)
walk("eighty from one: it stops", 81,
     lambda n, p: [entry(nqn(n), 4420), *(refer(*p[1:]) if n == 0 else [])], [0, 1], visited=66)


def dead_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


works("referrals: to a dead port", discover, log=log(*SOME, *refer(dead_port())),
      look=has("nqn.2026-11.io.weft:s4"))
works("referrals: to what is not there, by every kind of name", discover,
      log=log(*SOME, *refer(dead_port(), traddr="::1"), *refer(0), *refer(1, traddr="0.0.0.0")),
      look=has("nqn.2026-11.io.weft:s4"))


@case("referrals: to one that is silent")
def _():
    with Target(accepted=lambda conn: None, icreq=lambda conn, got: None) as quiet, \
            Target(log=log(*SOME, *refer(quiet.addr[1]))) as t:
        result = discover(t, HASTY)
        assert result.code == 0, result
        has("nqn.2026-11.io.weft:s4")(t, result)


@case("referrals: to one whose log changes for ever")
def _():
    with Target(log=log(*SOME), log_page=changes(True)) as odd, \
            Target(log=log(entry(nqn(1), 4420), *refer(odd.addr[1]))) as t:
        result = discover(t, PATIENT)
        assert result.code == 0, result
        has(nqn(1))(t, result)


# --- what all of it may cost

def costs(name, count, shape, found, skipped, why, words=None, **script):
    """Of `count` services `found` are told of; what was not followed is counted, and the first cause
    is named, in JSON and in words."""
    @case(f"budget: {name}")
    def _():
        with services(count, shape, **script) as targets:
            for args in (["--json"], []):
                result = run("discover", targets[0].uri("", **PATIENT | (words or {})), *args)
                assert result.code == 0 and f"{skipped} referral" in result.err, result
                assert f"not followed: {why}" in result.err, result
                if args:
                    shown = json.loads(result.out)
                    assert (shown["skipped"], shown["unreachable"]) == (skipped, 0), shown
                    assert shown["skipped_why"].startswith(why), shown
                    has(*[nqn(n) for n in found])(None, result)
                    asked = {n for n, t in enumerate(targets) if visits(t)}
                    assert asked == set(found), f"{asked} were asked"


costs("a name is not looked up", 2,      # "127.1" is one to us, and 127.0.0.1 to a resolver
      lambda n, p: [entry(nqn(n), 4420), *refer(p[1], traddr="127.1")], [0], 1,
      "127.1: names in a log are not looked up")
costs("nobody is at an address for all", 2,
      lambda n, p: [entry(nqn(n), 4420), *refer(p[1], traddr="0.0.0.0"),
                    *refer(p[1], traddr="224.0.0.1")], [0], 2, "0.0.0.0: nobody has that address")
costs("a transport that is not there", 1,
      lambda n, p: [entry(nqn(n), 4420), entry(nvme.DISCOVERY, p[0], subtype=REFERRAL, trtype=2)],
      [0], 1, "fc is not built in")
costs("8 deep", 10, lambda n, p: [entry(nqn(n), 4420), *refer(*p[n + 1:n + 2])], range(9), 1,
      "referrals are followed 8 deep")
costs("services", 6, lambda n, p: [entry(nqn(n), 4420), *(refer(*p[1:]) if n == 0 else [])],
      [0, 1, 2], 3, "discovery_services=3", words=dict(discovery_services=3))


def forty(number, ports):
    """Each with 40 entries, of which the first's refer to the others."""
    others = refer(*ports[1:]) if number == 0 else []
    return [*others, *[entry(nqn(number) if n == 0 else f"{nqn(number)}.{n}", 4420)
                       for n in range(40 - len(others))]]


@case("budget: entries of all services together")
def _():
    with services(4, forty) as targets:
        result = discover(targets[0], PATIENT | dict(discovery_entries=100))
        assert result.code == 0 and "2 referrals could not be followed" in result.err, result
        assert "40 entries" in result.err and "discovery_entries=100" in result.err, result
        shown = json.loads(result.out)
        assert len(shown["entries"]) == 80 and shown["unreachable"] == 2, result
        assert "discovery_entries=100" in shown["why"], shown


def entries_read(t):
    return [size // 1024 for what, size in t.pages if what == "entries"]


def counted(delay_s=0):
    """Pieces of the log are counted, and come so late."""
    def get_log(conn, cmd):
        whole = cmd.length >= 1024
        conn.target.pages.append(("entries" if whole else "header", cmd.length))
        if whole:
            time.sleep(delay_s)
        return normally(conn, "get_log", cmd)
    return dict(get_log=get_log)


@case("budget: what is read again counts again")
def _():
    with Target(log=log(*MANY[:40]), log_page=changes(True), **counted()) as t:
        t.pages = []
        result = discover(t, PATIENT | dict(discovery_entries=100))
        judge(t, result, "discovery_entries=100", None)
        assert sum(entries_read(t)) == 80, t.pages


for option in ([], ["--no-referrals"]):
    @case(f"budget: one log with more entries than are wanted {option}")
    def _(option=option):
        with Target(log=log(*MANY), **counted()) as t:
            t.pages = []
            result = run("discover", t.uri("", **PATIENT, discovery_entries=299), *option)
            judge(t, result, "300 entries.*discovery_entries=299", None)
            assert not entries_read(t), t.pages


    @case(f"budget: a service that answers each piece just in time {option}")
    def _(option=option):
        with Target(log=log(*MANY * 5), **counted(0.1)) as t:
            t.pages = []
            result = run("discover", t.uri("", **PATIENT, discovery_timeout="2s"), *option)
            judge(t, result, "discovery_timeout", None)
            assert len(entries_read(t)) < 1500 // 16 // 2, t.pages


@case("budget: a service that takes its time to become ready")
def _():
    with Target(ready_after=1 << 30, timeout_500ms=255) as slow, \
            Target(log=log(*SOME, *refer(slow.addr[1]))) as t:
        result = discover(slow, PATIENT | dict(discovery_timeout="2s"))
        judge(slow, result, "discovery_timeout", None)
        result = discover(t, PATIENT | dict(discovery_timeout="5s"))
        assert result.code == 0 and json.loads(result.out)["unreachable"] == 1, result
        assert "discovery_timeout" in result.err, result


@contextlib.contextmanager
def silent(count):
    """The ports of so many places where nobody says a word."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
               for _ in range(count)]


SHORT = PATIENT | dict(discovery_timeout="6s", connect_timeout="2s")


@case("budget: of many referrals those that are left when the time is over are told")
def _():
    with silent(20) as ports, Target(log=log(*SOME, *refer(*ports))) as t:
        result = discover(t, SHORT)
        shown = json.loads(result.out)
        assert result.code == 0 and shown["unreachable"] + shown["skipped"] == 20, result
        assert shown["skipped"] > 10 and "discovery_timeout" in shown["skipped_why"], shown


@case("budget: ls of places that are silent")
def _():
    with silent(20) as ports, \
            Target(log=log(*[entry(nqn(n), port) for n, port in enumerate(ports)])) as t:
        result = run("ls", t.uri("", **SHORT))
        assert result.code == 1 and "20 of 20 controllers" in result.last, result
        assert result.out.decode().count("nvme+tcp://") < 10, result.out.decode()
        assert "were not looked at" in result.err and "discovery_timeout" in result.err, result


@case("budget: paths=discover waits for a service as long, and no longer")
def _():
    with Target(log=log(*MANY * 5), **counted(0.1)) as t:
        t.pages = []
        result = run("ls", t.uri(**PATIENT, paths="discover", discovery_timeout="2s"))
        judge(t, result, "discovery_timeout", None)
        assert len(entries_read(t)) < 1500 // 16 // 2, t.pages
