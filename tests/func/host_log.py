#!/usr/bin/python3
"""host_log.py - weft log: every page against `weft serve`, as a table, as JSON, as it is; and pages of
a scripted target that lie about what is in them."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import structures
import target as scripted
import tap
import weft
from command import OK, USAGE, as_json, done, fails, run, text, uri
from fixture import connect, with_target
from nvme import INVALID_FIELD, INVALID_NS

NOWHERE = f"nvme+tcp://127.0.0.1:1/{weft.NQN}"
PAGES = ["supported", "error", "smart", "firmware", "changed-ns", "effects", "endurance", "ana",
         "features", "reservation"]
NVME_CLI = ["supported-log-pages", "error-log", "smart-log", "fw-log", "changed-ns-list-log",
            "effects-log", "endurance-log", "ana-log", "fid-support-effects-log",
            "resv-notif-log"]

# arguments, words of the one line on standard error
WRONG_USAGE = [
    ([], ["expected PAGE and URI"]),
    (["smart"], ["expected PAGE and URI"]),
    (["smrt", NOWHERE], ['no log page "smrt"; did you mean smart?']),
    (["256", NOWHERE], ['no log page "256"']),
    (["0x", NOWHERE], ['no log page "0x"']),
    (["smart", "x"], ["expected nvme+tcp://"]),
    (["smart", NOWHERE, "--json", "--hex"], ["do not go together"]),
    (["0x81", NOWHERE, "--json"], ["--json: the fields of log page 0x81 have no names here"]),
    (["2", NOWHERE, "--json", "--length", "64"], ["and not with --json"]),
    (["smart", NOWHERE, "--length", "64"], ["go with a page's number"]),
    (["2", NOWHERE, "--length", "6"], ["--length: expected a multiple of 4"]),
    (["2", NOWHERE, "--offset", "3"], ["--offset: expected a multiple of 4"]),
    (["2", NOWHERE, "--length", "1G"], ["--length", '"1G"']),
    (["smart", NOWHERE, "--group-id", "1"], ["--group-id goes with endurance"]),
    (["endurance", NOWHERE, "--group-id", "65536"], ["--group-id", "65535"]),
    (["error", NOWHERE, "--ns", "1"], ["--ns goes with smart"]),
    (["smart", NOWHERE, "--jsn"], ["did you mean --json?"]),
]


@tap.case("wrong usage is told in one line, with exit status 2")
def _():
    for args, words in WRONG_USAGE:
        fails("log", *args, code=USAGE, words=words)


@with_target("every page: a table of 80 columns, JSON, a hexdump, its bytes; nvme-cli's names for them")
def _(t):
    for name, also in zip(PAGES, NVME_CLI):
        page = text("log", name, uri(t))
        assert max(len(line) for line in page.splitlines()) <= 80, page
        assert as_json("log", name, uri(t)) == as_json("log", also, uri(t)), name
        raw = done("log", name, uri(t), "--raw-binary")
        assert len(raw) >= 40 and len(raw) % 4 == 0, (name, len(raw))
        assert text("log", also, uri(t), "--hex").endswith(f"\n{len(raw):08x}\n"), name
    listed = as_json("log", "supported", uri(t))["supported_log_pages"]
    assert [row["name"] for row in listed if row["name"]] == PAGES, listed


@with_target("what they say: errors, counters, commands, groups", ns=["mem:8M,block=512"])
def _(t):
    with connect(t) as ctrl:
        disk = ctrl.disk(1, ctrl.open())
        disk.write(0, bytes(512) * 2000)
        disk.read(0, want=0)
        assert as_json("log", "error", uri(t)) == {"errors": []}        # the other host's are its own
    smart = as_json("log", "smart", uri(t))
    assert smart["data_units_written"] == 2 and smart["host_read_commands"] >= 1, smart
    assert smart["avail_spare"] == 100 and "temperature_sensor_1" not in smart, smart
    of_ns = run("log", "smart", uri(t), "--ns", 1, "--json")
    assert json.loads(of_ns.stdout) == smart
    assert of_ns.stderr == (f"weft log: warning: {uri(t)} does not count by namespace (LPA): these "
                            "are the counters of the whole controller\n"), of_ns.stderr
    assert run("log", "smart", uri(t)).stderr == ""
    assert as_json("log", "endurance", uri(t))["data_units_written"] == 2
    assert as_json("log", "firmware", uri(t)) == {"afi": 1, "frs1": as_json("version")["version"]}
    commands = {(c["queue"], c["opcode"]): c for c in as_json("log", "effects", uri(t))["commands"]}
    assert commands["admin", 6] == dict(opcode=6, name="Identify", queue="admin", effects=1, lbcc=False,
                                        ncc=False, nic=False, ccc=False, cse=0), commands
    assert commands["io", 1]["name"] == "Write" and commands["io", 1]["lbcc"], commands
    group, = as_json("log", "ana", uri(t))["groups"]
    assert (group["state"], group["state_raw"], group["nsids"]) == ("optimized", 1, [1]), group


@with_target("pages of a new connection say so, and where to look instead")
def _(t):
    for name, where in (("error", "the target's log"), ("changed-ns", '"weft ls"'),
                        ("reservation", '"weft resv report"')):
        shown = text("log", name, uri(t))
        assert "none on this connection" in shown and where in shown, shown


@tap.case("a controller that counts by namespace: no warning")
def _():
    with scripted.Target(identified=identified(261, 1)) as t:
        assert run("log", "smart", uri(t), "--ns", 1).stderr == ""


@with_target("a page by its number: bytes, from where and as many as are asked for")
def _(t):
    raw = done("log", "smart", uri(t), "-b")
    assert done("log", "2", uri(t), "-b") == raw == done("log", "0x02", uri(t), "-b")
    assert done("log", "2", uri(t), "-b", "--offset", 4, "--length", 124) == raw[4:128]
    assert as_json("log", "2", uri(t)).keys() == as_json("log", "smart", uri(t)).keys()
    assert text("log", "2", uri(t), "--length", 16).startswith("00000000  00 00 00 64 "), raw
    assert text("log", "2", uri(t), "--offset", 16, "--length", 16).startswith("00000010  ")


@with_target("what is refused: pages, groups, offsets; a discovery service has its own pages")
def _(t):
    fails("log", "0x81", uri(t, nsid=1), sentence=f'weft log: {uri(t)} has no log page "0x81"; "weft '
          f'log supported {uri(t)}" lists those that it has, if it tells')
    fails("log", "endurance", uri(t), "--group-id", 2, words=["invalid field", "0x2"])
    fails("log", "2", uri(t), "--offset", "0x1000", words=["invalid field"])
    fails("log", "smart", uri(t, nqn=""), words=["has no log page"])
    names = [row["lid"] for row in as_json("log", "supported", uri(t, nqn=""))["supported_log_pages"]]
    assert names == [0, 1, 0x70], names
    assert len(done("log", "0x70", uri(t, nqn=""), "-b", "--length", 1024)) == 1024


# ---- a target that lies

def with_page(lid, data, **script):
    """A target whose log page {lid} is {data}."""
    return scripted.Target(log_page=lambda conn, got: data if got == lid else
                           scripted.normally(conn, "log_page", got), **script)


def entry(count=1, status=0, opcode=0):
    return struct.pack("<QHHHHQIBBBBQH22x", count, 1, 2, status, 0x0428, 5, 1, 0, 3, 0, opcode, 0, 0)


def identified(offset, *values):
    """Identify Controller, with bytes written over it."""
    def step(conn, cns, nsid):
        data = bytearray(scripted.normally(conn, "identified", cns, nsid) or b"")
        if cns == 1:
            data[offset:offset + len(values)] = bytes(values)
        return data or None
    return step


@tap.case("errors: the newest first, their status and command in words, none that are empty")
def _():
    page = entry(7, INVALID_FIELD << 1, 0x02) + entry(6, INVALID_NS << 1 | 1) + bytes(64)
    with with_page(1, page, identified=identified(262, 2)) as t:
        errors = as_json("log", "error", uri(t))["errors"]
        assert [e["error_count"] for e in errors] == [7, 6], errors
        assert [(e["status_field"], e["phase_tag"]) for e in errors] == [(2, 0), (11, 1)], errors
        shown = text("log", "error", uri(t))
        for words in ("invalid field", "byte 40, bit 4", "Read", "error 1"):
            assert words in shown, shown


@tap.case("the page is as long as Identify says, read in pieces that the controller can send")
def _():
    page = b"".join(entry(256 - n) for n in range(256))
    with with_page(1, page, mdts=1, identified=identified(262, 255)) as t:
        assert done("log", "error", uri(t), "-b") == page
        assert t.commands.count((0, "get_log")) >= 2, t.commands


FILLS = [b"\xff" * 65536, b"\x01\x00\x00\x00" * 16384, b"\x80" * 65536, bytes(range(256)) * 256, b""]


@tap.case("pages of all ones, of anything, of nothing: shown, as JSON, never a crash", 300)
def _():
    for lid, name in zip((0, 1, 2, 3, 4, 5, 9, 0xC, 0x12, 0x80), PAGES):
        for fill in FILLS:
            with with_page(lid, fill) as t:
                for form in ([], ["--json"], ["--hex"]):
                    result = run("log", name, uri(t), *form)
                    assert result.returncode == OK, (name, form, result.stderr)
                    if form == ["--json"]:
                        json.loads(result.stdout)
                    assert b"\x1b" not in result.stdout, result.stdout


@tap.case("numbers of 128 bits keep their size in JSON")
def _():
    with with_page(2, b"\xff" * 512) as t:
        assert as_json("log", "smart", uri(t))["data_units_read"] > 2 ** 127


@tap.case("ANA groups that claim more namespaces than the page has room for")
def _():
    head, group = struct.pack("<QH6x", 1, 2), struct.pack("<IIQB15x", 1, 0xFFFFFFFF, 0, 1)
    for raw in (head + group, head + group * 2, struct.pack("<QH6x", 1, 0xFFFF)):
        with with_page(0xC, raw) as t:
            ana = as_json("log", "ana", uri(t))
            assert len(ana["groups"]) <= 1024 and ana["ngrps"] >= 2, ana


@tap.case("changed namespaces: a list, one that ends with the page, more than it has room for")
def _():
    for nsids, want in (([1, 5], [1, 5]), (list(range(1, 1025)), list(range(1, 1025))),
                        ([0xFFFFFFFF], [])):
        with with_page(4, structures.ns_list(nsids)) as t:
            got = as_json("log", "changed-ns", uri(t))
            assert got == {"too_many": not want, "nsids": want}, got


@tap.case("a controller that refuses every page, or sends less than was asked for")
def _():
    with with_page(2, None) as t:
        fails("log", "smart", uri(t), words=["has no log page"])

    def short(conn, cmd):
        conn.c2hdata(cmd.cid, 0, b"\x01" + bytes(7))
        conn.complete(cmd)
    with scripted.Target(get_log=short) as t:
        for args in (["smart"], ["smart", "--json"], ["error"], ["2"], ["2", "-b"]):
            fails("log", *args, uri(t), words=["Get Log Page", "sent only 8 of "])
            assert run("log", *args, uri(t)).stdout == b""
    with scripted.Target(get_log=lambda conn, cmd: conn.complete(cmd)) as t:
        fails("log", "smart", uri(t), words=["Get Log Page", "sent only 0 of 512 bytes"])


sys.exit(tap.run())
