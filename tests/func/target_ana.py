#!/usr/bin/python3
"""target_ana.py - Asymmetric Namespace Access: what a host is told, and what its commands meet."""
import contextlib
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import tap
import weft
from command import on_terminal
from fixture import connect, in_background, refused, with_host, with_target
from nvme import (ANA_INACCESSIBLE, ANA_LOSS, ANA_TRANSITION, FAILED_FUSED, INVALID_FIELD, SUCCESS,
                  pattern)

AEN, ANA_LOG, RGO = 0x0B, 0x0C, 1
ANA_NOTICE = (2, 3, ANA_LOG)
EVENTS_ANA = 1 << 11
ALICE = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-00000000a11c"
OTHER = "nqn.2026-11.io.weft:other"

# state, as the log page has it, what commands are answered with
STATES = {
    "optimized": (1, SUCCESS),
    "non-optimized": (2, SUCCESS),
    "inaccessible": (3, ANA_INACCESSIBLE),
    "persistent-loss": (4, ANA_LOSS),
    "change": (15, ANA_TRANSITION),
}
WORDS = {wire: word for word, (wire, _) in STATES.items()}

# Two namespaces in group 1, one in 7, one in 9.
CONFIG = """
listen: [ "nvme+tcp://127.0.0.1:0", "nvme+tcp://127.0.0.1:0?portid=5" ]
subsystems:
  - nqn: nqn.2026-11.io.weft:test
    allow_any_host: true
    namespaces:
      - { nsid: 1, backend: "mem:16M" }
      - { nsid: 2, backend: "mem:16M", ana_group: 7 }
      - { nsid: 3, backend: "file:{dir}/a.img,size=16M", ana_group: 1 }
      - { nsid: 4, backend: "mem:16M", ana_group: 9 }
"""


def ana_set(t, *rules, **kw):
    return t.ctl("ana-set", nqn=t.nqn, rules=list(rules), **kw)


def rule(group, state, **kw):
    return dict(group=group, state=state, **kw)


def parse(raw):
    """(change count, {group: (state, change count, [nsid …])})"""
    count, groups = struct.unpack_from("<QH6x", raw)
    found, at = {}, 16
    for _ in range(groups):
        group, nsids, changed, state = struct.unpack_from("<IIQB15x", raw, at)
        found[group] = (WORDS[state], changed, list(struct.unpack_from(f"<{nsids}I", raw, at + 32)))
        at += 32 + 4 * nsids
    assert not any(raw[at:]), "zeroes beyond the page"
    return count, found


def page(ctrl, **kw):
    return parse(ctrl.log(ANA_LOG, 4096, **kw))


def states(ctrl):
    return {group: state for group, (state, _, _) in page(ctrl, rae=1)[1].items()}


def listen_for_changes(ctrl):
    ctrl.set_feature(AEN, EVENTS_ANA)
    ctrl.log(ANA_LOG, 4096)
    return ctrl.aer()


def quiet(ctrl, aer):
    """No event is there for the waiting request."""
    ctrl.get(nvme.CSTS)
    assert ctrl.admin.requests[aer].cqe is None, "an event"


# --- what a host is told ----------------------------------------------------------------------


@with_host("Identify Controller: ANA reporting, its states, groups and transition time",
           config=CONFIG)
def _(t, ctrl):
    assert ctrl.id[76] & 8, "CMIC"
    assert struct.unpack_from("<I", ctrl.id, 92)[0] & EVENTS_ANA, "OAES"
    anatt, anacap, anagrpmax, nanagrpid = struct.unpack_from("<BBII", ctrl.id, 342)
    assert anatt and anacap == 0x5F and anagrpmax == nanagrpid == 1024


@with_host("Identify Namespace: the group", config=CONFIG)
def _(t, ctrl):
    for nsid, group in ((1, 1), (2, 7), (3, 1), (4, 9)):
        assert struct.unpack_from("<I", ctrl.identify(0, nsid), 92)[0] == group
        assert struct.unpack_from("<I", ctrl.identify(8, nsid), 4)[0] == group
    assert [ns["ana_group"] for ns in t.subsystem()["namespaces"]] == [1, 7, 1, 9]


@with_host("the log page: groups that have namespaces, ascending", config=CONFIG)
def _(t, ctrl):
    _, groups = page(ctrl)
    assert list(groups) == [1, 7, 9]
    assert [nsids for _, _, nsids in groups.values()] == [[1, 3], [2], [4]]
    assert set(states(ctrl).values()) == {"optimized"}
    _, brief = page(ctrl, lsp=RGO)
    assert list(brief) == [1, 7, 9] and not any(nsids for _, _, nsids in brief.values())


@with_host("the log page: read in pieces", config=CONFIG)
def _(t, ctrl):
    whole = ctrl.log(ANA_LOG, 256)
    pieces = b"".join(ctrl.log(ANA_LOG, 4, offset) for offset in range(0, 128, 4))
    assert pieces == whole[:128]
    ctrl.log(ANA_LOG, 4, 2, want=INVALID_FIELD)
    ctrl.log(ANA_LOG, 4, 1 << 20, want=INVALID_FIELD)


@with_host("the log page: whoever reads it in pieces can tell that it changed", config=CONFIG)
def _(t, ctrl):
    changes = [lambda: ana_set(t, rule(7, "non-optimized")),
               lambda: ana_set(t, rule(7, "inaccessible")),
               lambda: t.ctl("namespace-add", nqn=t.nqn, backend="mem:16M", ana_group=9),
               lambda: t.ctl("namespace-remove", nqn=t.nqn, nsid=1)]
    for change in changes:
        before = ctrl.log(ANA_LOG, 4096)
        change()
        after = ctrl.log(ANA_LOG, 4096)
        assert before[16:] != after[16:] and before[:8] != after[:8]


@with_host("the log page: change counts stay where nothing changes", config=CONFIG)
def _(t, ctrl):
    ana_set(t, rule(7, "non-optimized"))
    count, groups = page(ctrl)
    ana_set(t, rule(7, "non-optimized"), rule(1, "optimized"))
    assert page(ctrl) == (count, groups)
    ana_set(t, rule(9, "non-optimized"))
    later, now = page(ctrl)
    assert later > count and now[9][1] > groups[9][1]
    assert [now[g] for g in (1, 7)] == [groups[g] for g in (1, 7)]


@with_host("the log page: a thousand groups", config=CONFIG)
def _(t, ctrl):
    nsids = list(range(10, 1014))
    for nsid in nsids:
        t.ctl("namespace-add", nqn=t.nqn, backend="null:1M", nsid=nsid, ana_group=nsid + 10)
    ana_set(t, *(rule(nsid + 10, "inaccessible") for nsid in nsids))
    _, groups = parse(ctrl.log(ANA_LOG, 64 << 10))
    assert len(groups) == 3 + len(nsids)
    assert all(groups[n + 10][0] == "inaccessible" and groups[n + 10][2] == [n] for n in nsids)


def by_port(t):
    """{portid: {group: state}}, as status has it."""
    return {p["portid"]: {a["ana_group"]: a["state"] for a in p["ana"]} for p in t.subsystem()["ports"]}


@with_target("status: what each port shows to hosts that no rule names", config=CONFIG)
def _(t):
    fine = dict.fromkeys((1, 7, 9), "optimized")
    assert by_port(t) == {1: fine, 5: fine}
    ana_set(t, rule(7, "inaccessible", portid=5), rule(9, "non-optimized"),
            rule(1, "inaccessible", hostnqn=ALICE))
    assert by_port(t) == {1: fine | {9: "non-optimized"},
                          5: fine | {7: "inaccessible", 9: "non-optimized"}}
    _, table = on_terminal("ctl", "--control", t.control, "status")
    assert "port 1: optimized 1, 7; non-optimized 9" in table, table
    assert "port 5: optimized 1; non-optimized 9; inaccessible 7" in table, table
    t.ctl("namespace-remove", nqn=t.nqn, nsid=2)
    assert 7 not in by_port(t)[5]


@with_target("ana-set: who leaves a group without any path is told", config=CONFIG)
def _(t):
    def told(*rules):
        warnings = ana_set(t, *rules).get("warnings", [])
        assert all(w in t.log.read_text() for w in warnings)
        return [group for group in (1, 7, 9)
                if any(f"no port gives access to group {group} now" in w for w in warnings)]

    assert told(rule(1, "inaccessible", portid=1)) == []
    assert told(rule(1, "change", portid=5), rule(7, "non-optimized")) == [1]
    assert told(rule(7, "persistent-loss"), rule(9, "inaccessible")) == [7, 9]   # 1 was told before
    assert told(rule(7, "optimized", portid=5)) == []
    assert told(rule(9, "optimized", hostnqn=ALICE)) == []      # who lets one in means it


# --- events -----------------------------------------------------------------------------------


@with_host("events: one for many groups that change together", config=CONFIG)
def _(t, ctrl):
    aer = listen_for_changes(ctrl)
    ana_set(t, rule(1, "inaccessible"), rule(7, "non-optimized"), rule(9, "persistent-loss"))
    assert ctrl.event(aer) == ANA_NOTICE
    aer = ctrl.aer()
    assert states(ctrl) == {1: "inaccessible", 7: "non-optimized", 9: "persistent-loss"}
    page(ctrl)
    quiet(ctrl, aer)


@with_host("events: none until the log page is read; RAE retains it", config=CONFIG)
def _(t, ctrl):
    aer = listen_for_changes(ctrl)
    ana_set(t, rule(1, "inaccessible"))
    assert ctrl.event(aer) == ANA_NOTICE
    aer = ctrl.aer()
    ana_set(t, rule(1, "optimized"))
    page(ctrl, rae=1)
    quiet(ctrl, aer)
    page(ctrl)
    assert ctrl.event(aer) == ANA_NOTICE


@with_target("events: for the controllers that a rule concerns, and who asked for them",
             config=CONFIG)
def _(t):
    with connect(t) as ctrl, connect(t, hostnqn=ALICE) as alice, connect(t) as deaf:
        waiting = listen_for_changes(ctrl), listen_for_changes(alice)
        unasked = deaf.aer()
        ana_set(t, rule(1, "inaccessible", hostnqn=ALICE))
        assert alice.event(waiting[1]) == ANA_NOTICE
        quiet(ctrl, waiting[0])
        ana_set(t, rule(1, "non-optimized"))
        assert ctrl.event(waiting[0]) == ANA_NOTICE
        quiet(deaf, unasked)


# --- rules ------------------------------------------------------------------------------------

# rules for group 1, what is shown through port 1 and port 5, to us and to Alice
PRECEDENCE = [
    ([], ["optimized"] * 4),
    ([dict(state="change")], ["change"] * 4),
    ([dict(state="change"), dict(state="inaccessible", portid=1)],
     ["inaccessible", "inaccessible", "change", "change"]),
    ([dict(state="inaccessible", portid=1), dict(state="non-optimized", hostnqn=ALICE)],
     ["inaccessible", "non-optimized", "optimized", "non-optimized"]),
    ([dict(state="optimized", portid=5, hostnqn=ALICE), dict(state="inaccessible", hostnqn=ALICE),
      dict(state="non-optimized", portid=5), dict(state="change")],
     ["change", "inaccessible", "non-optimized", "optimized"]),
    ([dict(state="change", portid=4), dict(state="change", hostnqn=OTHER)], ["optimized"] * 4),
]


@with_target("rules: host and port before host before port before all", config=CONFIG)
def _(t):
    ports = {l["portid"]: weft.address(l["uri"]) for l in t.ctl("status")["listeners"]}
    assert sorted(ports) == [1, 5]
    with contextlib.ExitStack() as stack:
        ctrls = [stack.enter_context(nvme.Controller(ports[port], t.nqn, hostnqn=host))
                 for port in (1, 5) for host in (nvme.HOSTNQN, ALICE)]
        for rules, want in PRECEDENCE:
            rules = [rule(1, **r) for r in rules]
            ana_set(t, *rules, replace=True)
            assert t.subsystem()["ana"] == rules
            assert [states(ctrl)[1] for ctrl in ctrls] == want, rules
            shown = {c["cntlid"]: {g["ana_group"]: g["state"] for g in c["ana"]}
                     for c in t.controllers()}
            assert [shown[ctrl.cntlid] for ctrl in ctrls] == [states(ctrl) for ctrl in ctrls]


@with_host("rules: replace one by one; replace=true leaves the others out", config=CONFIG)
def _(t, ctrl):
    ana_set(t, rule(1, "change"), rule(7, "inaccessible"))
    ana_set(t, rule(7, "non-optimized"), rule(9, "inaccessible"))
    assert states(ctrl) == {1: "change", 7: "non-optimized", 9: "inaccessible"}
    ana_set(t, rule(9, "change"), replace=True)
    assert states(ctrl) == {1: "optimized", 7: "optimized", 9: "change"}


BAD_RULES = [
    dict(),
    dict(rules={}),
    dict(rules=[rule(0, "change")]),
    dict(rules=[rule(1025, "change")]),
    dict(rules=[rule(1, "slow")]),
    dict(rules=[rule(1, "change", portid=65536)]),
    dict(rules=[rule(1, "change", hostnqn="alice")]),
    dict(rules=[rule(1, "change"), rule(1, "optimized")]),
    dict(rules=[rule(1, "change"), rule(7, "slow")]),
    dict(rules=[rule(1, "change")], nqn=OTHER),
    dict(rules=[rule(1, "change")] + [rule(1, "change", portid=n) for n in range(1, 4097)]),
]


@with_host("rules: what is wrong changes nothing", config=CONFIG)
def _(t, ctrl):
    before = page(ctrl), t.subsystem()["ana"]
    for params in BAD_RULES:
        refused(t, "ana-set", **dict(nqn=t.nqn) | params)
        assert (page(ctrl), t.subsystem()["ana"]) == before
    ana_set(t, *(rule(1, "optimized", portid=n) for n in range(1, 4001)))
    refused(t, "ana-set", nqn=t.nqn, rules=[rule(7, "change", portid=n) for n in range(1, 100)])


@with_host("persistent loss stays while the controller does", config=CONFIG)
def _(t, ctrl):
    ana_set(t, rule(1, "persistent-loss"))
    ana_set(t, rule(1, "optimized"))
    assert states(ctrl)[1] == "persistent-loss"
    ctrl.disk(1).read(0, want=ANA_LOSS)
    with connect(t) as anew:
        assert states(anew)[1] == "optimized"


@with_target("save and restart: rules, groups and port ids", config=CONFIG)
def _(t):
    t.ctl("listener-remove", listen=t.ctl("status")["listeners"][0]["uri"])
    t.ctl("listener-add", listen="nvme+tcp://127.0.0.1:0?portid=9")
    ana_set(t, rule(1, "inaccessible", portid=9, hostnqn=ALICE), rule(7, "non-optimized"))
    before = t.ctl("status")
    t.ctl("save", path=str(t.dir / "saved.yaml"))
    t.stop()
    t.config = t.dir / "saved.yaml"
    t.start()
    after = t.ctl("status")
    assert after["listeners"] == before["listeners"]
    assert sorted(l["portid"] for l in after["listeners"]) == [5, 9]
    assert after["subsystems"][0]["ana"] == before["subsystems"][0]["ana"]
    assert [ns["ana_group"] for ns in after["subsystems"][0]["namespaces"]] == [1, 7, 1, 9]


@with_target("port ids: the lowest free one, the one that was asked for, never one twice",
             config=CONFIG)
def _(t):
    added = [t.ctl("listener-add", listen=weft.ANY_PORT)["listen"] for _ in range(2)]
    ids = {l["uri"]: l["portid"] for l in t.ctl("status")["listeners"]}
    assert [ids[uri] for uri in added] == [2, 3]
    refused(t, "listener-add", listen=weft.ANY_PORT + "?portid=5")
    t.ctl("listener-remove", listen=added[0])
    uri = t.ctl("listener-add", listen=weft.ANY_PORT)["listen"]
    ids = {l["uri"]: l["portid"] for l in t.ctl("status")["listeners"]}
    assert ids[uri] == 2
    with nvme.Controller(t.addr, nvme.DISCOVERY) as ctrl:
        log = ctrl.log(0x70, 16 << 10)
    entries = [log[at:at + 1024] for at in range(1024, len(log), 1024) if log[at]]
    told = {int(e[32:64].rstrip(b"\0")): struct.unpack_from("<H", e, 4)[0] for e in entries}
    assert told == {weft.address(uri)[1]: portid for uri, portid in ids.items()}


# --- commands ---------------------------------------------------------------------------------


def io_commands(disk):
    """name, a call that takes the status it wants"""
    data = pattern(3, disk.block)
    return [
        ("read", lambda want: disk.read(0, want=want)),
        ("write", lambda want: disk.write(0, data, want=want)),
        ("write by R2T", lambda want: disk.write(0, data, want=want, capsule=False)),
        ("flush", lambda want: disk.flush(want=want)),
        ("compare", lambda want: disk.compare(0, data, want=want)),
        ("verify", lambda want: disk.verify(0, 1, want=want)),
        ("dataset management", lambda want: disk.deallocate([(8, 1)], want=want)),
        ("copy", lambda want: disk.copy(4, [(0, 1)], want=want)),
        ("write zeroes", lambda want: disk.zero(8, 1, want=want)),
    ]


@with_target("every I/O command in every state; other groups go on", config=CONFIG)
def _(t):
    for state, (_, status) in STATES.items():
        ana_set(t, rule(1, state))
        with connect(t) as ctrl:
            for nsid in (1, 3):
                disk = ctrl.disk(nsid)
                for name, run in io_commands(disk):
                    cqe = run(status)
                    assert status == SUCCESS or name == "read" or not cqe.dnr, name
                new = pattern(4, disk.block)
                first, second = disk.pair(0, pattern(3, disk.block), new)
                want = (status, FAILED_FUSED if status else SUCCESS)
                assert (first.status, second.status) == want, state
                assert not first.dnr and not second.dnr, (state, "another path may do it")
            ctrl.disk(2).read(0)


@with_target("Identify and log pages in every state; NUSE where it can be known", config=CONFIG)
def _(t):
    for state in STATES:
        ana_set(t, rule(1, state))
        with connect(t) as ctrl:
            raw = ctrl.identify(0, 1)
            nsze, ncap, nuse = struct.unpack_from("<3Q", raw)
            assert nsze == ncap > 0
            assert nuse == 0 if state in ("inaccessible", "persistent-loss") else nuse <= nsze
            for cns in (2, 3, 5, 8, 0x11):
                ctrl.identify(cns, 1)
            for lid in (1, 2, 3, 4, 5, ANA_LOG):
                ctrl.log(lid, 512, nsid=1 if lid == 2 else 0)


ERROR_RECOVERY, WRITE_ATOMICITY, TIMESTAMP, CACHE = 0x05, 0x0A, 0x0E, 0x06

# feature, nsid, what Get and Set are answered with where group 1 is inaccessible
FEATURES = [
    (ERROR_RECOVERY, 1, ANA_INACCESSIBLE, ANA_INACCESSIBLE),
    (WRITE_ATOMICITY, 3, ANA_INACCESSIBLE, ANA_INACCESSIBLE),
    (ERROR_RECOVERY, 2, SUCCESS, SUCCESS),
    (ERROR_RECOVERY, 0, SUCCESS, SUCCESS),
    (CACHE, 1, SUCCESS, SUCCESS),
    (CACHE, 0xFFFFFFFF, SUCCESS, ANA_INACCESSIBLE),
    (AEN, 0, SUCCESS, SUCCESS),
]


@with_host("Get and Set Features of a namespace that is out of reach", config=CONFIG)
def _(t, ctrl):
    ana_set(t, rule(1, "inaccessible"))
    for fid, nsid, get, put in FEATURES:
        ctrl.get_feature(fid, nsid=nsid, want=get)
        ctrl.set_feature(fid, 0, nsid=nsid, want=put)
    ana_set(t, rule(1, "persistent-loss"))
    ctrl.set_feature(CACHE, 1, nsid=1, want=ANA_LOSS)
    ctrl.set_feature(CACHE, 1)


# --- in between -------------------------------------------------------------------------------


def send_and_wait_for_data(disk, command, data):
    queue = disk.queue
    queue.hold = True
    cid = queue.submit(command, data, capsule=False)
    return cid, queue.next_r2t()


@with_host("a command that waits for its data meets the state of when it is here", config=CONFIG)
def _(t, ctrl):
    disk = ctrl.disk(3)
    disk.write(0, pattern(1, disk.block))
    command = disk.command(sqe.WRITE, 0, 1)
    cid, r2t = send_and_wait_for_data(disk, command, pattern(2, disk.block))
    ana_set(t, rule(1, "inaccessible"))         # it is not waited for
    disk.queue.answer(r2t)
    assert not disk.queue.wait(cid, ANA_INACCESSIBLE).dnr
    ana_set(t, rule(1, "optimized"))
    assert disk.read(0) == pattern(1, disk.block), "it was refused and yet written"


@with_host("a fused pair that waits for its data, too", config=CONFIG)
def _(t, ctrl):
    disk = ctrl.disk(3)
    old, new = pattern(1, disk.block), pattern(2, disk.block)
    disk.write(0, old)
    disk.queue.hold = True
    first = disk.queue.submit(disk.command(sqe.COMPARE, 0, 1, fuse=1), old)
    second = disk.queue.submit(disk.command(sqe.WRITE, 0, 1, fuse=2), new, capsule=False)
    r2t = disk.queue.next_r2t()
    ana_set(t, rule(1, "change"))
    disk.queue.answer(r2t)
    disk.queue.wait(first, ANA_TRANSITION)
    assert not disk.queue.wait(second, FAILED_FUSED).dnr
    ana_set(t, rule(1, "optimized"))
    disk.queue.hold = False
    assert disk.read(0) == old


@with_host("a queue that closes while it owes data does not hold a change up", config=CONFIG)
def _(t, ctrl):
    with connect(t) as lost:
        disk = lost.disk(3)
        send_and_wait_for_data(disk, disk.command(sqe.WRITE, 0, 8), bytes(8 * disk.block))
        lost.queues[0].reset()
        ana_set(t, rule(1, "inaccessible"))
    assert states(ctrl)[1] == "inaccessible"


def hammer(disk, flips):
    """Reads and writes, 16 at a time, until the groups have changed often enough. What succeeds
    must be right, and nothing but ANA may be in its way."""
    wrong, refusals = [], 0
    while not flips.done:
        cids = {}
        for at in range(8):
            data = pattern(at, disk.block)
            cids[disk.queue.submit(disk.command(sqe.WRITE, at, 1), data)] = None
            cids[disk.queue.submit(disk.command(sqe.READ, at, 1), length=disk.block)] = data
        for cid, data in cids.items():
            cqe = disk.queue.wait(cid, (SUCCESS, ANA_INACCESSIBLE, ANA_TRANSITION))
            refusals += cqe.status != SUCCESS
            if data and cqe.status == SUCCESS and cqe.data not in (data, bytes(disk.block)):
                wrong.append(cid)
    assert not wrong
    flips.refusals = refusals


class Flips:
    done, refusals = False, 0


@with_host("groups change 100 times under load", config=CONFIG, limit_s=120)
def _(t, ctrl):
    flips = Flips()
    with in_background(lambda: hammer(ctrl.disk(3, ctrl.open()), flips)):
        try:
            for i in range(100):
                ana_set(t, rule(1, ("inaccessible", "optimized")[i & 1]),
                        rule(7, ("optimized", "inaccessible")[i & 1]))
        finally:
            flips.done = True
    assert states(ctrl) == {1: "optimized", 7: "inaccessible", 9: "optimized"}


@with_target("a subsystem goes, and the target ends, while groups change", config=CONFIG)
def _(t):
    t.ctl("subsystem-add", nqn=OTHER, allow_any_host=True, namespaces=[{"backend": "mem:16M"}],
          ana=[rule(1, "non-optimized")])
    with connect(t, nqn=OTHER) as ctrl:
        assert states(ctrl) == {1: "non-optimized"}
        for state in ("inaccessible", "optimized", "inaccessible"):
            t.ctl("ana-set", nqn=OTHER, rules=[rule(1, state)])
        t.ctl("subsystem-remove", nqn=OTHER)
        ctrl.admin.expect_closed()


sys.exit(tap.run())
