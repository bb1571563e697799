#!/usr/bin/python3
"""target_control.py - the control socket: what it refuses, how it speaks, and what `save` keeps."""
import contextlib
import json
import os
import pathlib
import pty
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

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
    ("namespace-resize", dict(nqn=weft.NQN, nsid=1, size="1GB")),
    ("namespace-resize", dict(nqn=weft.NQN, nsid=1, size="32M")),
    ("namespace-resize", dict(nqn=weft.NQN, nsid=99, size="1M")),
    ("namespace-remove", dict(nqn=weft.NQN, nsid="one")),
    ("subsystem-add", dict(nqn="not\na name")),
    ("subsystem-add", dict(nqn="")),
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


def call_over(sock, raw=STATUS):
    """One more answer over a connection that stays."""
    sock.sendall(raw)
    return json.loads(sock.makefile().readline())


def connected(t):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(str(t.control))
    return sock


@with_target("64 clients of the control socket at a time: one more is told so, the others stay")
def _(t):
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(64):                         # one at a time: who was here before has gone
            clients.append(stack.enter_context(connected(t)))
            assert "result" in call_over(clients[-1])
        with connected(t) as sock:
            answer, *more = sock.makefile().read().splitlines()
            assert "too many clients" in json.loads(answer)["error"]["message"] and not more
        assert all("result" in call_over(sock) for sock in clients)


def identities(t, ctrl):
    keep = ("nsid", "uuid", "nguid", "size", "block_size", "read_only")
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


@with_target("a list of hosts that is there and empty lets nobody in")
def _(t):
    t.ctl("subsystem-add", nqn=OTHER, hosts=[], namespaces=[{"backend": "mem:16M"}])
    assert not t.subsystem(OTHER)["allow_any_host"]
    with nvme.Queue(t.addr) as queue:
        queue.connect(OTHER, want=nvme.CONNECT_HOST)


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


@with_host("counters of work requests are RDMA's, and absent over TCP")
def _(t, ctrl):
    ctrl.disk().read(0)
    queues = t.controllers()[0]["queue_counters"]
    assert queues and all(q.keys() == {"qid", "depth", "state", "transport", "copied_bytes"}
                          for q in queues), queues
    assert all(q["state"] == "live" for q in queues), queues


@with_target("weft ctl: a relative path is one of where it runs")
def _(t):
    for words in (["namespace-add", "backend=file:a.img,size=1M"], ["save", "path=a.yaml"]):
        result = weft_ctl(t, *words, cwd=t.dir)
        assert not result.returncode, result.stderr
    assert (t.dir / "a.img").exists() and (t.dir / "a.yaml").exists()
    assert t.subsystem()["namespaces"][1]["backend"] == f"file:{t.dir}/a.img,size=1M"
    result = weft_ctl(t, "save", '{"path": "b.yaml"}', cwd=t.dir)
    assert result.returncode == 1 and "begins with /" in result.stderr, result.stderr


# A little more than the machine has: addresses for terabytes are not there under a sanitizer.
BEYOND = [f"{(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') >> 30) + more}G"
          for more in range(2, 6)]


@with_target("more memory than there is: a warning to who asks for it, and in the log",
             ns=[f"mem:{BEYOND[0]}"])
def _(t):
    def warned(size):
        return f"mem:{size}: more than this machine's memory"

    first, added, resized, other = BEYOND
    assert t.log.read_text().count(warned(first)) == 1, t.log.read_text()
    for words, size in ((["namespace-add", f"backend=mem:{added}"], added),
                        (["namespace-resize", "nsid=1", f"size={resized}"], resized),
                        (["subsystem-add", f"nqn={OTHER}", "allow_any_host=true",
                          f'namespaces=[{{"backend":"mem:{other}"}}]'], other)):
        result = weft_ctl(t, *words)
        assert not result.returncode, result.stderr
        assert result.stderr.startswith(f"weft ctl: warning: {warned(size)}"), result.stderr
        assert warned(size) in json.loads(result.stdout)["warnings"][0], result.stdout
        assert t.log.read_text().count(warned(size)) == 1, t.log.read_text()
    result = weft_ctl(t, "namespace-add", f"nqn={t.nqn}", "backend=mem:1M")
    assert not result.stderr and "warnings" not in json.loads(result.stdout), result


@with_target("host-allow where any host could connect: who called hears that others no longer may")
def _(t):
    with connect(t), connect(t, hostnqn=OTHER), connect(t, hostnqn=ALICE):
        told, = t.ctl("host-allow", host=ALICE)["warnings"]
        assert f"{t.nqn}: any host could connect, and only those listed may from now on; " \
            "2 controllers of others were disconnected" in told, told
        assert told in t.log.read_text()
    assert t.ctl("host-allow", host=OTHER) == {}


@with_target("who called hears that any host may connect, that none may, that nobody listens")
def _(t):
    t.ctl("host-allow", host=ALICE)
    told, = t.ctl("host-allow", host="any")["warnings"]
    assert f"{t.nqn}: any host may connect from now on" in told, told
    assert told in t.log.read_text()
    assert t.ctl("host-refuse", host="any") == {}
    t.ctl("host-allow", host=OTHER)
    assert t.ctl("host-refuse", host=OTHER) == {}
    told, = t.ctl("host-refuse", host=ALICE)["warnings"]
    assert f"{t.nqn}: no host may connect" in told and "host-allow" in told, told
    t.ctl("host-allow", host="any")
    told, = t.ctl("host-refuse", host="any")["warnings"]
    assert f"{t.nqn}: no host may connect" in told, told
    first = t.ctl("status")["listeners"][0]["uri"]
    second = t.ctl("listener-add", listen=weft.ANY_PORT)["listen"]
    assert t.ctl("listener-remove", listen=first) == {}
    told, = t.ctl("listener-remove", listen=second)["warnings"]
    assert "no listener" in told and "listener-add" in told, told


@with_target("namespace-resize: what the next start would go by is another size",
             ns=["file:{dir}/a.img,size=1M", "file:{dir}/b.img,size=2M", "mem:1M"])
def _(t):
    told, = t.ctl("namespace-resize", nsid=1, size="3M")["warnings"]
    assert f"{t.nqn} namespace 1: the command that started this target still says 1M" in told \
        and "weft ctl save path=FILE" in told, told
    assert told in t.log.read_text()
    assert "warnings" in t.ctl("namespace-resize", nsid=3, size="2M")
    assert "warnings" not in t.ctl("namespace-resize", nsid=2, size="2M")
    t.ctl("namespace-add", backend=f"file:{t.dir}/c.img,size=1M")
    assert "warnings" not in t.ctl("namespace-resize", nsid=4, size="2M")


@with_target("namespace-resize: a file that still says the other size, until it is saved", config="""
subsystems:
  - nqn: %s
    namespaces:
      - { backend: "file:{dir}/a.img,size=1M" }
      - { backend: "mem:1M" }
""" % weft.NQN)
def _(t):
    told, = t.ctl("namespace-resize", nsid=1, size="3M")["warnings"]
    assert f"{t.config} still says 1M" in told and told.endswith("weft ctl save writes what runs"), told
    t.ctl("save", path=f"{t.dir}/other.yaml")
    assert "warnings" in t.ctl("namespace-resize", nsid=1, size="4M")
    t.ctl("save")
    assert "warnings" not in t.ctl("namespace-resize", nsid=1, size="4M")
    assert "still says 4M" in t.ctl("namespace-resize", nsid=1, size="1M", shrink=True)["warnings"][0]


@with_target("what is refused leaves no image that it made", ns=["file:{dir}/a.img,size=1M"])
def _(t):
    made = {"backend": f"file:{t.dir}/made.img,size=1M"}
    t.ctl("namespace-add", backend=f"file:{t.dir}/b.img,size=1M")
    refused(t, "namespace-add", nsid=2, **made)
    refused(t, "subsystem-add", nqn=OTHER, namespaces=[made, {"backend": f"file:{t.dir}/none.img"}])
    assert sorted(file.name for file in t.dir.glob("*.img")) == ["a.img", "b.img"]
    t.ctl("subsystem-add", nqn=OTHER, namespaces=[made])
    t.ctl("subsystem-remove", nqn=OTHER)
    t.ctl("namespace-remove", nqn=t.nqn, nsid=2)
    t.stop()
    assert sorted(file.name for file in t.dir.glob("*.img")) == ["a.img", "b.img", "made.img"]


@with_target("namespace-resize: which one would be cut")
def _(t):
    assert f"{t.nqn} namespace 1 has 64M; shrink=true would cut it to 32M" in \
        refused(t, "namespace-resize", nsid=1, size="32M")


@with_target("namespace-resize: what grows when it is asked for, and would be cut when its turn comes",
             ns=["file:{dir}/a,size=64M"])
def _(t):
    for _ in range(3):
        grown, cut = (t.ask("namespace-resize", nsid=1, size=size) for size in ("320M", "65M"))
        grown()
        with contextlib.suppress(weft.CtlError):
            cut()
        assert (t.dir / "a").stat().st_size == 320 << 20
        t.ctl("namespace-resize", nsid=1, size="64M", shrink=True)


@with_target("rules about ports and groups that are not there: a warning, and they hold")
def _(t):
    told = t.ctl("ana-set", rules=[dict(group=1, state="optimized", portid=1),
                                   dict(group=1, state="inaccessible", portid=9),
                                   dict(group=7, state="inaccessible")])["warnings"]
    assert told == [f"{t.nqn}: a rule is for port id 9, which no listener has",
                    f"{t.nqn}: a rule is for group 7, which no namespace is in"], told
    assert len(t.subsystem()["ana"]) == 3 and all(line in t.log.read_text() for line in told)
    assert t.ctl("ana-set", rules=[dict(group=1, state="optimized")], replace=True) == {}
    told = t.ctl("subsystem-add", nqn=OTHER, ana=[dict(group=2, state="change", portid=8)])["warnings"]
    assert told == [f"{OTHER}: a rule is for port id 8, which no listener has",
                    f"{OTHER}: a rule is for group 2, which no namespace is in"], told


@with_target("listener-add says the port id that it got")
def _(t):
    added = t.ctl("listener-add", listen=weft.ANY_PORT)
    assert added in [dict(listen=l["uri"], portid=l["portid"])
                     for l in t.ctl("status")["listeners"]], added
    assert t.ctl("listener-add", listen=weft.ANY_PORT + "?portid=77")["portid"] == 77


@with_target("without nqn where there are several subsystems: their names, a few of them")
def _(t):
    names = [t.nqn] + [f"{OTHER}{i}" for i in range(5)]
    for count, nqn in enumerate(names[1:], 2):
        t.ctl("subsystem-add", nqn=nqn)
        said = refused(t, "namespace-add", backend="mem:1M")
        assert f"nqn: missing, and there are {count} subsystems: " in said, said
        assert all(name in said for name in names[:min(count, 4)]), said
        assert said.endswith("…") == (count > 4), said


@with_target("weft ctl: what looks like a list and is none")
def _(t):
    for words in (["ana-set", 'rules=[{"group": 1, state: x}]'], ["subsystem-add", "nqn=x", "hosts=[nqn.x]"]):
        result = weft_ctl(t, *words)
        assert result.returncode == 2 and "is not JSON" in result.stderr, result
        assert words[-1].split("=")[0] in result.stderr and "\\" not in result.stderr, result


@with_target("weft ctl: parameters as they are typed")
def _(t):
    assert weft_ctl(t, "subsystem-add", f"nqn={OTHER}", "serial=1.50").returncode == 0
    assert t.subsystem(OTHER)["serial"] == "1.50"
    twice = weft_ctl(t, "namespace-add", "backend=mem:1M", "backend=mem:2M")
    assert twice.returncode and "backend is given twice" in twice.stderr, twice
    for backend in ("file", "block"):
        absent = weft_ctl(t, "namespace-add", f"nqn={OTHER}", f"backend={backend}:absent",
                          cwd=t.dir)
        assert absent.returncode and f"{backend}:{t.dir}/absent" in absent.stderr, absent


@with_target("weft ctl: no such method, no such target")
def _(t):
    for word in ("statu", "frobnicate"):
        result = weft_ctl(t, word)
        assert result.returncode == 2 and f'no method "{word}"' in result.stderr, result
    assert "did you mean status?" in weft_ctl(t, "statu").stderr
    t.control.rename(t.dir / "gone")
    assert "/run/weft/control.sock" in weft_ctl(t, "status").stderr


@with_target("weft ctl: the target of another user: whose, and how to call it")
def _(t):
    if os.geteuid():
        tap.skip("only root can become another user")
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        os.chmod(folder, 0o755)
        binary = shutil.copy(weft.BINARY, folder)
        for mode in (0o700, 0o711):         # it sees the folder, or the socket
            os.chmod(t.dir, mode)
            result = subprocess.run([binary, "ctl", "--control", t.control, "status"], text=True,
                                    capture_output=True, timeout=30, user=65534, group=65534,
                                    extra_groups=[])
            assert result.returncode == 1, result
            assert result.stderr == f"weft ctl: {t.control} belongs to root, who alone may call its " \
                f'target: try "sudo weft ctl --control {t.control}"\n', result


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


@with_target("save replaces what it wrote, or what the target was started from, and nothing else",
             config=CONFIG)
def _(t):
    path = t.dir / "a.yaml"
    for _ in range(2):                              # its own work, then over it
        t.ctl("save", path=str(path))
    path.write_text("")                             # nothing to lose
    t.ctl("save", path=str(path))
    t.ctl("save", path=str(t.config))
    precious = t.dir / "precious"
    precious.write_text(f"precious\n{path.read_text()}")
    for place in (precious, t.dir / "link"):
        if not place.exists():
            place.symlink_to(precious)
        assert "force=true replaces it" in refused(t, "save", path=str(place))
        assert precious.read_text().startswith("precious")
    t.ctl("save", path=str(precious), force=True)
    assert "precious" not in precious.read_text()
    os.mkfifo(t.dir / "fifo")
    for place in (t.dir, t.dir / "fifo"):
        assert "is not a regular file" in refused(t, "save", path=str(place), force=True)
    assert not [p for p in t.dir.iterdir() if p.name.count(".") > 1], "something is left over"


@with_target("save: open because only loopback is listened on does not become open to all")
def _(t):
    path = t.dir / "default.yaml"
    t.ctl("save", path=str(path))
    saved = path.read_text()
    assert "allow_any_host" not in saved and "hosts" not in saved, saved
    t.ctl("host-allow", host="any")
    t.ctl("save", path=str(path))
    assert "allow_any_host: true" in path.read_text()


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


@with_target("save: the one that was asked for last is what the file has", config=CONFIG)
def _(t):
    t.ctl("host-refuse", nqn=t.nqn, host="any")
    for i in range(50):
        host = f"nqn.2026-11.com.example:h{i}"
        before = [t.ask("save") for _ in range(3)]
        t.ctl("host-allow", nqn=t.nqn, host=host)
        t.ctl("save")
        assert host in t.config.read_text()
        for answer in before:
            answer()
        assert host in t.config.read_text()


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
