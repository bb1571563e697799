#!/usr/bin/python3
"""host_raw.py - weft raw: what is sent is what was said, and what came is told; refusals in words."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import target as scripted
import tap
import weft
from command import FAILED, OK, USAGE, as_json, done, fails, run, text, uri
from fixture import with_target
from nvme import pattern

NOWHERE = f"nvme+tcp://127.0.0.1:1/{weft.NQN}"
IDENTIFY = ["--opcode", "0x06", "--cdw10", 1, "--data-len", 4096]

# arguments, words of the one line on standard error
WRONG_USAGE = [
    ([], ["expected admin or io"]),
    (["admin"], ["expected admin or io"]),
    (["both", NOWHERE, "--opcode", "6"], ["expected admin or io"]),
    (["admin", NOWHERE], ["--opcode says it"]),
    (["admin", NOWHERE, "--opcode", "256"], ["--opcode", "255"]),
    (["admin", NOWHERE, "--opcode", "identify"], ["--opcode"]),
    (["admin", NOWHERE, "--opcode", "6", "--cdw10", "0x100000000"], ["--cdw10", "4294967295"]),
    (["admin", NOWHERE, "--opcode", "6", "--write"], ["0x06 writes nothing"]),
    (["io", NOWHERE, "--opcode", "1", "--read"], ["0x01 reads nothing"]),
    (["io", NOWHERE, "--opcode", "0", "--data-len", "4"], ["0x00 moves no data"]),
    (["io", NOWHERE, "--opcode", "3", "--data-len", "4"], ["both ways"]),
    (["admin", NOWHERE, "--opcode", "6", "--raw-binary", "--json"], ["--raw-binary does not go"]),
    (["admin", NOWHERE, "--opcode", "6", "--data-len", "1G"], ["--data-len"]),
    (["admin", "x", "--opcode", "6"], ["expected nvme+tcp://"]),
    (["admin", NOWHERE, "--opcode", "6", "--ns", "0"], ["--ns: expected a namespace id"]),
    (["admin", NOWHERE, "--opcode", "6", "--ns", "1", "-n", "1"], ["do not go together"]),
    (["admin", NOWHERE + "?nsid=2", "--opcode", "6", "--ns", "1"], ["two namespaces"]),
]


@tap.case("wrong usage is told in one line, with exit status 2")
def _():
    for args, words in WRONG_USAGE:
        fails("raw", *args, code=USAGE, words=words)


@with_target("admin: dword 0, data as a hexdump, as it is, as JSON; the command shown")
def _(t):
    page = done("raw", "admin", *IDENTIFY, uri(t), "--read", "-b")
    assert len(page) == 4096 and page[768:].startswith(t.nqn.encode() + b"\0"), page[:64]
    shown = text("raw", "admin", *IDENTIFY, uri(t))
    assert shown.startswith("Identify (0x06): success, dword 0 is 0x00000000\n00000000  "), shown[:99]
    assert shown.endswith("\n00001000\n"), shown[-20:]
    got = as_json("raw", "admin", *IDENTIFY, uri(t))
    # but for the controller's number and its instance
    assert bytes.fromhex(got.pop("data"))[:78] == page[:78]
    assert got == {"opcode": 6, "name": "Identify", "status": 0, "status_text": "success", "dnr": False,
                   "dword0": 0, "dword1": 0}, got
    got = as_json("raw", "admin", "--opcode", 0x0A, "--cdw10", 0x0F, uri(t, kato="20s"))
    assert got["dword0"] == 20000 and "data" not in got, got
    assert "namespace-id  0x00000003" in run("raw", "admin", *IDENTIFY, uri(t), "--ns", 3, "-s").stderr
    result = run("raw", "admin", *IDENTIFY, uri(t, nsid=1), "--show-command", "-b", "--cdw14", 7)
    for words in ("opcode        0x06 (Identify)", "namespace-id  0x00000001", "cdw10         0x00000001",
                  "cdw14         0x00000007", "data-len      4096 (to the host)"):
        assert words in result.stderr, result.stderr


@with_target("io: what is written is read, from a file and from a pipe", ns=["mem:1M,block=512"])
def _(t):
    data = pattern(1, 4096)
    path = t.dir / "data"
    path.write_bytes(data)
    done("raw", "io", "--opcode", 1, "-n", 1, "--cdw10", 8, "--cdw12", 7, uri(t), "-w", "-i", path)
    read = ["raw", "io", "--opcode", 2, "--cdw10", 8, "--cdw12", 7, "-l", 4096, "-b"]
    assert done(*read, uri(t), "--namespace-id", 1) == data == done(*read, uri(t, nsid=1))
    done("raw", "io", "--opcode", 1, "-n", 1, "--cdw12", 0, uri(t), "-l", 512, stdin=data[:512])
    assert done("read", uri(t), "--length", 512) == data[:512]
    assert text("raw", "io", "--opcode", 0, "-n", 1, uri(t)).startswith("Flush (0x00): success")
    fails("raw", "io", "--opcode", 1, "-n", 1, uri(t), "-l", 1024, stdin=data[:512],
          words=["--data-len 1024: the input has only 512 bytes"])
    fails("raw", "io", "--opcode", 1, "-n", 1, uri(t), "-l", 512, stdin=data,
          words=["standard input has more than 512 bytes"])
    fails("raw", "io", "--opcode", 1, "-n", 1, uri(t), "-i", "/nonexistent", words=["No such file"])


@with_target("a refusal: in words, with dword 0, exit status 1; JSON as well")
def _(t):
    fails("raw", "admin", "--opcode", 6, "--cdw10", 255, "-l", 4096, uri(t),
          sentence=f"weft raw: {uri(t)}: Identify (0x06): invalid field (NVMe status 0x2, do not retry), "
                   "dword 0 is 0x00000000")
    result = run("raw", "io", "--opcode", 2, "-n", 9, "-l", 4096, uri(t), "--json")
    got = json.loads(result.stdout)
    assert result.returncode == FAILED and (got["status"], got["dnr"]) == (0xB, True), got
    assert "data" not in got, got
    fails("raw", "admin", "--opcode", 0xC0, uri(t), words=["Unknown (0xc0)", "invalid opcode"])
    fails("raw", "io", "--opcode", 2, "-n", 1, "-l", 2 << 20, uri(t), words=["more than"])
    fails("raw", "admin", "--opcode", 2, "--cdw10", 2, "-l", 2 << 20, uri(t), words=["more than"])


@tap.case("the command arrives as it was said; data that is short is filled with zeroes")
def _():
    seen = []

    def keep(conn, cmd):
        seen.append((bool(conn.qid), cmd.opcode, cmd.nsid, [cmd.dw(n) for n in (2, 3, *range(10, 16))]))
        if cmd.length:
            conn.c2hdata(cmd.cid, 0, b"\xaa" * 8)
        conn.complete(cmd, dw0=0xFFFFFFFF, dw1=5)
    words = [0xFFFFFFFF, 3, 10, 11, 12, 13, 14, 15]
    cdws = [part for n, word in zip((2, 3, *range(10, 16)), words) for part in (f"--cdw{n}", word)]
    with scripted.Target(unknown=keep) as t:
        for queue in ("admin", "io"):
            result = run("raw", queue, "--opcode", "0xc2", "-n", 77, *cdws, "-l", 16, uri(t), "--json")
            assert "sent only 8 of 16 bytes" in result.stderr, result.stderr
            got = json.loads(result.stdout)
            assert (got["dword0"], got["data"]) == (0xFFFFFFFF, "aa" * 8 + "00" * 8), got
            assert got["dword1"] == 5, got
        assert seen == [(io, 0xC2, 77, words) for io in (False, True)], seen


@tap.case("a status that nobody knows; a controller that never answers")
def _():
    with scripted.Target(unknown=lambda conn, cmd: conn.complete(cmd, 0x7EE, dw0=3, dnr=0)) as t:
        fails("raw", "io", "--opcode", "0xc0", uri(t), words=["(NVMe status 0x7ee)", "0x00000003"])
    with scripted.Target(unknown=lambda conn, cmd: None) as t:
        place = uri(t, admin_timeout="1s", loss_timeout="1s")
        fails("raw", "admin", "--opcode", "0xc0", place, words=["no answer in time"])


@with_target("Fabrics commands: the type is where others have a namespace")
def _(t):
    got = as_json("raw", "admin", "--opcode", "0x7f", "-n", 4, "--cdw11", "0x8", uri(t))
    assert got["dword0"] == struct.unpack("<I", bytes([0, 0, 2, 0]))[0], got        # VS
    assert run("raw", "admin", "--opcode", "0x18", uri(t)).returncode == OK


sys.exit(tap.run())
