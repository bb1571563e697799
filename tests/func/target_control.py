#!/usr/bin/python3
"""target_control.py - the control socket: what it refuses, how it speaks, and what `save` keeps."""
import contextlib
import json
import os
import pathlib
import pty
import socket
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nasty
import nvme
import tap
import weft
from fixture import connect, in_background, refused, with_host, with_target
from nvme import pattern

ALICE = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-00000000a11c"
OTHER = "nqn.2026-11.io.weft:other"

# method, params that it must refuse
REFUSED = [
    ("no-such-method", {}),
    ("namespace-add", {}),
    ("namespace-add", dict(nqn=weft.NQN)),
    ("namespace-add", dict(nqn=weft.NQN, backend="floppy:1")),
    ("namespace-add", dict(nqn=weft.NQN, backend="mem:0")),
    ("namespace-add", dict(nqn=weft.NQN, backend="file:/nonexistent/a.img,size=1M")),
    ("namespace-add", dict(nqn=weft.NQN, backend="mem:1M", nsid=0)),
    ("namespace-add", dict(nqn=weft.NQN, backend="mem:1M", nsid=0xFFFFFFFF)),
    ("namespace-add", dict(nqn=weft.NQN, backend="mem:1M", uuid="not-a-uuid")),
    ("namespace-add", dict(nqn=OTHER, backend="mem:1M")),
    ("namespace-add", dict(nqn=weft.NQN, backend="file:a.img,size=1M")),
    ("namespace-resize", dict(nqn=weft.NQN, nsid=1, size=0)),
    ("namespace-resize", dict(nqn=weft.NQN, nsid=1, size="many")),
    ("namespace-resize", dict(nqn=weft.NQN, nsid=1, size="32M")),
    ("namespace-resize", dict(nqn=weft.NQN, nsid=99, size="1M")),
    ("namespace-remove", dict(nqn=weft.NQN, nsid="one")),
    ("subsystem-add", dict(nqn="not an nqn")),
    ("subsystem-add", dict(nqn="nqn.2026-11.io.weft:" + "x" * 300)),
    ("subsystem-add", dict(nqn=nvme.DISCOVERY)),
    ("subsystem-add", dict(nqn=OTHER, hosts=[ALICE], allow_any_host=True)),
    ("subsystem-add", dict(nqn=OTHER, namespaces=[dict(backend="file:a.img,size=1M")])),
    ("subsystem-remove", {}),
    ("host-allow", dict(nqn=OTHER, host=ALICE)),
    ("host-allow", dict(nqn=weft.NQN, host="")),
    ("listener-add", dict(listen="ftp://127.0.0.1:1")),
    ("listener-add", dict(listen="nvme+tcp://127.0.0.1:99999")),
    ("save", dict(path="/nonexistent/weft.yaml")),
]


@with_host("what the control socket must refuse changes nothing")
def _(t, ctrl):
    before = t.ctl("status")
    for method, params in REFUSED:
        refused(t, method, **params)
    after = t.ctl("status")
    assert {k: after[k] for k in ("listeners", "subsystems")} == \
        {k: before[k] for k in ("listeners", "subsystems")}
    ctrl.disk().read(0)


def raw_calls(t, raw):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(str(t.control))
        sock.sendall(raw)
        sock.shutdown(socket.SHUT_WR)
        return [json.loads(line) for line in sock.makefile()]


STATUS = b'{"jsonrpc":"2.0","id":7,"method":"status"}\n'

# bytes, the error codes of the answers; None is a result
WIRE = [
    (STATUS, [None]),
    (STATUS + STATUS, [None, None]),
    (b"this is not JSON\n", [-32700]),
    (b"[]\n", [-32600]),
    (b'{"jsonrpc":"2.0","id":1}\n', [-32600]),
    (b'{"jsonrpc":"2.0","id":1,"method":"nope"}\n', [-32601]),
    (b'{"jsonrpc":"2.0","id":1,"method":"namespace-remove","params":{"nqn":5}}\n', [-32602]),
    (b"nonsense\n" + STATUS, [-32700, None]),
]


@with_target("the control socket speaks JSON-RPC 2.0")
def _(t):
    for raw, codes in WIRE:
        got = [answer.get("error", {}).get("code") for answer in raw_calls(t, raw)]
        assert got == codes, f"{raw}: {got}"
    assert t.control.stat().st_mode & 0o777 == 0o600


def identities(t, ctrl):
    keep = ("nsid", "uuid", "nguid", "size", "block", "readonly")
    subsystems = {s["nqn"]: (s["serial"], s["model"], s["allow_any_host"], sorted(s["hosts"]),
                             [[ns[k] for k in keep] for ns in s["namespaces"]])
                  for s in t.ctl("status")["subsystems"]}
    nsids = [nsid for nsid in struct.unpack("<1024I", ctrl.identify(2)) if nsid]
    return subsystems, ctrl.id[:72], [ctrl.identify(3, nsid) for nsid in nsids]


@with_target("save and restart: the same identities, the same data",
             ns=["mem:16M", "file:{dir}/a.img,size=32M,block=512", "mem:16M,ro,nsid=9"])
def _(t):
    t.ctl("namespace-add", nqn=t.nqn, backend=f"file:{t.dir}/b.img,size=16M")
    t.ctl("namespace-resize", nqn=t.nqn, nsid=2, size="48M")
    t.ctl("subsystem-add", nqn=OTHER, hosts=[ALICE], namespaces=[{"backend": "mem:16M"}])
    with connect(t) as ctrl:
        before = identities(t, ctrl)
        disk = ctrl.disk(2)
        disk.write(5, pattern(5, disk.block))
    t.ctl("save", path=str(t.dir / "saved.yaml"))
    t.stop()
    t.config = t.dir / "saved.yaml"
    t.start()
    with connect(t) as ctrl:
        assert identities(t, ctrl) == before
        assert ctrl.disk(2).read(5) == pattern(5, disk.block)


@with_target("host-allow ends the default that any host may connect from loopback")
def _(t):
    refused(t, "host-refuse", nqn=t.nqn, host=ALICE)
    refused(t, "listener-add", listen="nvme+tcp://0.0.0.0:0")
    with connect(t) as ctrl:
        t.ctl("host-allow", nqn=t.nqn, host=ALICE)
        ctrl.admin.expect_closed()
    assert not t.subsystem()["allow_any_host"] and t.subsystem()["hosts"] == [ALICE]
    with connect(t, hostnqn=ALICE) as ctrl:
        ctrl.disk().read(0)
    t.ctl("listener-add", listen="nvme+tcp://0.0.0.0:0")


@with_target("host=any: any host, or only those on the list")
def _(t):
    t.ctl("host-allow", host=ALICE)
    t.ctl("host-allow", host="any")
    refused(t, "host-allow", host=OTHER)
    refused(t, "host-refuse", host=ALICE)
    t.ctl("save", path=f"{t.dir}/any.yaml")
    saved = (t.dir / "any.yaml").read_text()
    assert "allow_any_host: true" in saved and "hosts" not in saved, saved
    with connect(t) as ctrl:
        t.ctl("host-refuse", host="any")
        ctrl.admin.expect_closed()
    refused(t, "host-refuse", host="any")
    connect(t, hostnqn=ALICE).close()


@with_target("a host without a name comes in where any host may")
def _(t):
    with connect(t, hostnqn="") as ctrl:
        t.takeover()
        ctrl.disk().read(0)
        assert [c["hostnqn"] for c in t.controllers()] == [""] and "CNTLID" in table(t)
        t.ctl("host-allow", host=ALICE)
        ctrl.admin.expect_closed()
    with nvme.Queue(t.addr) as queue:
        queue.connect(t.nqn, hostnqn="", want=nvme.CONNECT_HOST)
    for words in (") at nvme+tcp://127.0.0.1:", ") ends: "):
        assert f"host (no name{words}" in t.log.read_text(), words


@with_target("what was open by default is closed by host-refuse host=any")
def _(t):
    t.ctl("host-refuse", host="any")
    assert not t.subsystem()["allow_any_host"] and "no host may connect" in table(t)


def weft_ctl(t, *words, cwd=None):
    return subprocess.run([weft.BINARY, "ctl", "--control", t.control, *words], text=True, cwd=cwd,
                          capture_output=True, timeout=30)


def table(t):
    """`weft ctl status` as a terminal shows it."""
    ours, theirs = os.openpty()
    subprocess.run([weft.BINARY, "ctl", "--control", t.control, "status"], stdout=theirs,
                   check=True, timeout=30)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as out:
        return out.read(1 << 16).decode()


@with_host("weft ctl status, for people")
def _(t, ctrl):
    text = table(t)
    assert "configuration: none (started with options)" in text, text
    assert "I/O QUEUES" in text and " 127.0.0.1:" in text, text


@with_target("weft ctl: a relative path is one of where it runs")
def _(t):
    for words in (["namespace-add", "backend=file:a.img,size=1M"], ["save", "path=a.yaml"]):
        result = weft_ctl(t, *words, cwd=t.dir)
        assert not result.returncode, result.stderr
    assert (t.dir / "a.img").exists() and (t.dir / "a.yaml").exists()
    assert t.subsystem()["namespaces"][1]["backend"] == f"file:{t.dir}/a.img,size=1M"
    result = weft_ctl(t, "save", '{"path": "b.yaml"}', cwd=t.dir)
    assert result.returncode == 1 and "begins with /" in result.stderr, result.stderr


@with_target("weft ctl: no such method, no such target")
def _(t):
    assert "did you mean status?" in weft_ctl(t, "statu").stderr
    t.control.rename(t.dir / "gone")
    assert "/run/weft/control.sock" in weft_ctl(t, "status").stderr


@with_target("weft serve: relative paths of -c and --control become absolute")
def _(t):
    config = t.dir / "relative.yaml"
    config.write_text(f'listen: [ "{weft.ANY_PORT}" ]\n')
    t.stop()
    t.config, t.extra = os.path.relpath(config), ["--control", os.path.relpath(t.control)]
    t.start()
    assert t.ctl("status")["config"].startswith("/")
    t.ctl("save")
    assert "control: /" in config.read_text()


# method, params, what the log says of it; {nqn} is the target's
LOGGED = [
    ("namespace-add", dict(backend="mem:1M"), "{nqn} namespace 2: mem:1M, 1M in blocks of 4096"),
    ("namespace-resize", dict(nsid=2, size="2M"), "{nqn} namespace 2: mem:2M, 2M in blocks of"),
    ("namespace-remove", dict(nsid=2), "{nqn} namespace 2: removed"),
    ("host-allow", dict(host=ALICE), "{nqn}: host " + ALICE + " may connect"),
    ("host-refuse", dict(host=ALICE), "{nqn}: host " + ALICE + " may no longer connect"),
    ("host-allow", dict(host="any"), "{nqn}: any host may connect"),
    ("host-refuse", dict(host="any"), "{nqn}: only hosts on its list may connect"),
    ("listener-add", dict(listen="nvme+tcp://[::1]:0"), "listening on nvme+tcp://[::1]:"),
    ("subsystem-add", dict(nqn=OTHER, allow_any_host=True), OTHER + ": no namespaces"),
    ("subsystem-remove", dict(nqn=OTHER), OTHER + ": removed"),
]


@with_target("every change is in the log")
def _(t):
    for method, params, line in LOGGED:
        before = len(t.log.read_text())
        t.ctl(method, **params)
        said = t.log.read_text()[before:]
        assert line.format(nqn=t.nqn) in said, f"{method}: {said}"
    uri = t.ctl("status")["listeners"][0]["uri"]
    refused(t, "listener-add", listen=uri)
    t.ctl("listener-remove", listen=uri)
    assert f"no longer listening on {uri}" in t.log.read_text()


def race(t, nsid):
    """Add, resize and remove what others add, resize and remove: refusals are fine, hangs are not."""
    for size in ("4M", "8M", "2M") * 8:
        for method, params in (("namespace-add", dict(backend="mem:4M", nsid=nsid)),
                               ("namespace-resize", dict(nsid=nsid, size=size, shrink=True)),
                               ("namespace-remove", dict(nsid=nsid))):
            with contextlib.suppress(weft.CtlError):
                t.ctl(method, nqn=t.nqn, **params)


@with_target("namespace-add, -resize and -remove race each other")
def _(t):
    with contextlib.ExitStack() as threads:
        for i in range(6):
            threads.enter_context(in_background(lambda: race(t, 7 + i % 2)))
    t.ctl("status")


CONFIG = """# kept by hand
subsystems:
  - nqn: %s
    allow_any_host: true
    namespaces:
      - { nsid: 1, backend: "mem:16M" }
""" % weft.NQN


@with_target("save without a path writes back the file it was started from", config=CONFIG)
def _(t):
    t.ctl("namespace-add", nqn=t.nqn, backend="mem:32M", nsid=3)
    with connect(t) as ctrl:
        before = identities(t, ctrl)
    t.ctl("save")
    t.stop()
    t.start()
    with connect(t) as ctrl:
        assert identities(t, ctrl) == before

# --- names from outside

def on_terminal(*args):
    ours, its = pty.openpty()
    with open(ours, "rb", buffering=0) as out:
        subprocess.run([weft.BINARY, *args], stdout=its, check=True)
        os.close(its)
        printed = b""
        with contextlib.suppress(OSError):      # EIO: the end
            while more := out.read(65536):
                printed += more
    return printed.replace(b"\r\n", b"\n")


@with_target("names of hosts: what cannot be shown is refused, and the rest is shown as it is",
             extra=["-v"])
def _(t):
    for name in nasty.NAMES.values():
        with contextlib.suppress(nvme.Failed):
            connect(t, hostnqn=name).close()
    for name in nasty.FINE.values():
        with connect(t, hostnqn=name):
            told, = [c["hostnqn"] for c in t.controllers()]
            assert told == name.replace("\\", r"\x5c"), told
            table = on_terminal("ctl", "--control", t.control, "status")
            assert told in table.decode(), table
            nasty.fit_to_see(table)
    nasty.fit_to_see(t.log.read_bytes())
    for name in nasty.NAMES.values():
        for method in ("subsystem-add", "host-allow"):
            with contextlib.suppress(UnicodeDecodeError):
                refused(t, method, nqn=name.decode(), host=name.decode())


sys.exit(tap.run())
