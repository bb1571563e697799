#!/usr/bin/python3
"""target_takeover_config.py - a takeover with another configuration: what it applies, what stays as it
runs, and that the log says which."""
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command
import nvme
import tap
import weft
from fixture import connect, with_target
from takeover import FORMAT, Heir

ALICE, BOB = "nqn.2014-08.org.example:alice", "nqn.2014-08.org.example:bob"
LISTED = f"hosts: [ {ALICE}, {BOB} ]"
ANY_HOST = "allow_any_host: true"
BACKENDS = ("file:{dir}/a.img,size=16M", "mem:16M")


def yaml(access=LISTED, listen=(weft.ANY_PORT,), backends=BACKENDS, ana="[]"):
    """A configuration of one subsystem, with namespaces 1 and 2."""
    addresses = ", ".join(f'"{uri}"' for uri in listen)
    namespaces = "\n".join(f'      - {{ nsid: {nsid}, backend: "{backend}" }}'
                           for nsid, backend in enumerate(backends, 1))
    return f"""listen: [ {addresses} ]
subsystems:
  - nqn: {weft.NQN}
    {access}
    ana: {ana}
    namespaces:
{namespaces}
"""


def taken_over(t, **change):
    """What the log says of a takeover with another configuration."""
    t.write_config(yaml(**change))
    before = len(t.log.read_text())
    t.takeover()
    weft.wait_until(lambda: "info: ready" in t.log.read_text()[before:], "the new process to be ready")
    return t.log.read_text()[before:]


def not_taken_over(t, **change):
    """The last line of a takeover that is refused; the running target goes on."""
    t.write_config(yaml(**change))
    result = command.run("serve", "-c", t.config, "--takeover", "--engine", t.engine)
    assert result.returncode == 1, result.stderr
    assert t.answer()["pid"] == t.process.pid
    return result.stderr.strip().splitlines()[-1]


def said(text, level, *words):
    """One line of this level has all of these words."""
    lines = [line for line in text.splitlines()
             if f" {level}: " in f" {line}" and all(word in line for word in words)]
    assert len(lines) == 1, f"{level} {words}:\n{text}"
    return lines[0]


def quiet(text):
    assert "warning: " not in text and "error: " not in text, text


def loopback(port):
    return f"nvme+tcp://127.0.0.1:{port}"


# ---- who may connect

@with_target("the same configuration: nothing to say", config=yaml())
def _(t):
    text = taken_over(t)
    quiet(text)
    assert "may connect" not in text and "no longer" not in text, text


@with_target("a host that was taken off the list is disconnected, others stay", config=yaml())
def _(t):
    with connect(t, hostnqn=ALICE) as alice, connect(t, hostnqn=BOB, hostid=bytes(range(16))) as bob:
        alice.disk().read(0)
        text = taken_over(t, access=f"hosts: [ {BOB} ]")
        alice.admin.expect_closed()
        bob.disk().read(0)
        said(text, "info", t.nqn, ALICE, "may no longer connect")
        quiet(text)
        assert [c["hostnqn"] for c in t.controllers()] == [BOB]
        with nvme.Queue(t.addr) as queue:
            queue.connect(t.nqn, hostnqn=ALICE, want=nvme.CONNECT_HOST)


@with_target("a host that is new on the list: a warning names it", config=yaml(f"hosts: [ {ALICE} ]"))
def _(t):
    said(taken_over(t), "warning", t.nqn, BOB, "may connect from now on")
    connect(t, hostnqn=BOB).close()
    line = said(taken_over(t, access="hosts: [ nqn.2014-08.org.example:eve ]"), "warning", "eve")
    assert ALICE in line and BOB in line and "may no longer connect" in line, line


@with_target("a subsystem that any host may use from now on: a warning", config=yaml())
def _(t):
    said(taken_over(t, access=ANY_HOST), "warning", t.nqn, "any host may connect", "2 hosts")
    said(taken_over(t), "info", t.nqn, "only the 2 hosts on its list may connect")
    said(taken_over(t, access="model: Weft NVMe-oF Target"), "warning", t.nqn, "any host may connect",
         "loopback")
    quiet(taken_over(t, access=ANY_HOST))


@with_target("a subsystem that only listed hosts may use from now on: others are disconnected",
             config=yaml(ANY_HOST))
def _(t):
    with connect(t) as stranger, connect(t, hostnqn=ALICE, hostid=bytes(range(16))) as alice:
        text = taken_over(t)
        stranger.admin.expect_closed()
        alice.disk().read(0)
    said(text, "info", t.nqn, "only the 2 hosts on its list may connect")


@with_target("versions that do not tell who could connect", config=yaml())
def _(t):
    for number, told in ((1, False), (FORMAT, True), (FORMAT + 1, True)):
        with Heir(t, format=number) as heir:
            doc = heir.prepare()
        assert doc["format"] == min(number, FORMAT), doc
        assert ("hosts" in doc["subsystems"][0]) == told, doc
        weft.wait_until(lambda: t.answers(), "the target to go on")


# ---- what stays as it runs

@with_target("sizes stay as they run, and a warning says what to do", config=yaml())
def _(t):
    file, mem = BACKENDS
    grown = (file.replace("16M", "32M"), mem.replace("16M", "8M"))
    text = taken_over(t, backends=grown)
    said(text, "warning", f"{t.nqn} namespace 1: ", "16M", "32M",
         f"weft ctl namespace-resize nqn={t.nqn} nsid=1 size=32M")
    line = said(text, "warning", f"{t.nqn} namespace 2: ", f"nqn={t.nqn} nsid=2 size=8M shrink=true")
    assert str(t.config) in line, line
    assert [ns["size"] for ns in t.subsystem()["namespaces"]] == [16 << 20] * 2
    quiet(taken_over(t))
    t.ctl("namespace-resize", nsid=1, size="32M")
    quiet(taken_over(t, backends=(grown[0], mem)))


@with_target("ANA rules stay as they run, and a warning says what to do", config=yaml())
def _(t):
    rules = "[ { group: 1, state: non-optimized }, { group: 1, state: inaccessible, portid: 1 } ]"
    said(taken_over(t, ana=rules), "warning", t.nqn, "ANA", "weft ctl ana-set")
    assert not t.subsystem()["ana"]
    t.ctl("ana-set", rules=[dict(group=1, state="inaccessible", portid=1),
                            dict(group=1, state="non-optimized")])
    quiet(taken_over(t, ana=rules))
    said(taken_over(t, ana=rules.replace("inaccessible", "optimized")), "warning", t.nqn, "ANA")
    said(taken_over(t), "warning", t.nqn, "ANA")
    assert len(t.subsystem()["ana"]) == 2


# ---- listeners

def listeners(t):
    return {item["uri"]: item["portid"] for item in t.ctl("status")["listeners"]}


@with_target("another address: it is listened on with a free port id, the one before stays")
def _(t):
    first, second = (loopback(weft.free_port()) for _ in range(2))
    t.stop()
    t.config = t.write_config(yaml(listen=[first]))
    t.start()
    text = taken_over(t, listen=[second])
    assert listeners(t) == {first: 1, second: 2}
    said(text, "info", f"listening on {second}")
    said(text, "warning", first, str(t.config), f"weft ctl listener-remove listen={first}")
    assert "error: " not in text, text
    t.addr = weft.address(second)
    with connect(t, hostnqn=ALICE) as ctrl:
        ctrl.disk().read(0)
        quiet(taken_over(t, listen=[second, first]))
        ctrl.disk().read(0)
    assert listeners(t) == {first: 1, second: 2}


@with_target("port ids that the file gives: a free one is taken, one that is taken is refused")
def _(t):
    first, second, third = (loopback(weft.free_port()) for _ in range(3))
    t.stop()
    t.config = t.write_config(yaml(listen=[first]))
    t.start()
    last = not_taken_over(t, listen=[first, second + "?portid=1"])
    assert "portid 1" in last and first in last and second in last, last
    taken_over(t, listen=[third, first, second + "?portid=2"])
    assert listeners(t) == {first: 1, second: 2, third: 3}
    said(taken_over(t, listen=[first + "?portid=9", second, third]), "warning", first, "port id 1",
         "portid=9")
    assert listeners(t)[first] == 1


@with_target("an address that cannot be listened on: the takeover is refused", config=yaml())
def _(t):
    with socket.socket() as taken, connect(t, hostnqn=ALICE) as ctrl:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for uri, words in ((loopback(taken.getsockname()[1]), "the port is taken"),
                           ("nvme+tcp://203.0.113.1:4420", "no interface has this address"),
                           ("nvme+rdma://203.0.113.1:4420", "cannot listen on nvme+rdma:")):
            last = not_taken_over(t, listen=[weft.ANY_PORT, uri])
            assert words in last, last
            ctrl.disk().read(0)
    assert len(listeners(t)) == 1


@with_target("any free port, once more", config=yaml())
def _(t):
    first, = listeners(t)
    quiet(taken_over(t, listen=[weft.ANY_PORT, weft.ANY_PORT]))
    second, = set(listeners(t)) - {first}
    said(taken_over(t), "warning", second, "listener-remove")
    assert set(listeners(t)) == {first, second}


# ---- refusals

@with_target("what differs, and what to do about it", config=yaml())
def _(t):
    file, mem = BACKENDS
    for backends, words in (
            ((file,), ["namespace 2", f"weft ctl namespace-remove nqn={t.nqn} nsid=2", "put it back"]),
            ((file + ",ro", mem), ["namespace 1", "the configured one is read-only, the running one is not"]),
            ((file + ",direct", mem), ["namespace 1", "direct"]),
            ((mem, mem), ["namespace 1", "another backend"])):
        last = not_taken_over(t, backends=backends)
        assert all(word in last for word in words), last


sys.exit(tap.run())
