"""events.py - asynchronous events without end, not asked for, or of a namespace that goes."""
import time

import nvme
import structures
import weft
from host_bad import (PATIENT, Namespace, Target, case, fails, judge, normally, read, survives,
                      works, write)

NAMESPACES = (2, 0, 4)
ENOUGH = 1000           # asynchronous event requests in a second, of a host that does not spin


def at_once(dw0, status=0):
    return lambda conn, cmd: conn.complete(cmd, status, dw0=dw0)


def slow_read(conn, cmd):
    """A second in which the events come."""
    time.sleep(1)
    normally(conn, "read", cmd)


def not_spinning(t, _result):
    count = t.commands.count((0, "aer"))
    assert count < ENOUGH, f"{count} requests for events"


# Types and pages that exist, and that do not.
EVENTS = {"namespaces changed": 0x040002, "discovery changed": 0x70F002, "ANA changed": 0x0C0302,
          "an error": 0x010000, "health": 0x020001, "an unknown notice": 0x00EE02,
          "a vendor's": 0xC00007, "reserved type": 0x000005, "all ones": 0xFFFFFFFF, "zero": 0}
for name, dw0 in EVENTS.items():
    works(f"events without end: {name}", look=not_spinning, aer=at_once(dw0), read=slow_read)
for status in (nvme.AER_LIMIT, nvme.INVALID_OPCODE, nvme.INVALID_FIELD, nvme.ABORT_REQUESTED):
    works(f"requests for events refused with {status:#x}", look=not_spinning,
          aer=at_once(0, status), read=slow_read)
works("events of a target that changes its log all the time", look=not_spinning, read=slow_read,
      aer=at_once(0x040002), log_page=lambda conn, lid: structures.ns_list(range(1, 1025)))
works("changed namespaces: too many to list", look=not_spinning, read=slow_read,
      aer=at_once(0x040002), log_page=lambda conn, lid: structures.ns_list([0xFFFFFFFF]))
survives("changed namespaces: the log is refused", aer=at_once(0x040002), read=slow_read,
         log_page=lambda conn, lid: None)


def more_than_asked(conn, cmd):
    conn.complete(cmd, dw0=0x040002)
    for _ in range(10):
        conn.completion(cmd.cid, dw0=0x040002)


survives("more events than were asked for", aer=more_than_asked)


# --- the namespace changes under a read

def change_and_tell(t, change, changed):
    """Told twice: when the host looks again, it has taken in its first look."""
    change(t)
    for _ in range(2):
        t.changed, before = list(changed), len(t.commands)
        t.event(*NAMESPACES)
        weft.wait_until(lambda: (0, "identify") in t.commands[before:], "a rescan")


def while_reading(change, words=None, why=None, command=read, changed=(1,), **script):
    """The answer to the first I/O waits until the target has changed, and the host has looked."""
    seen = []

    def step(conn, cmd):
        first, conn.held = not seen, []
        seen.append(cmd)
        normally(conn, command.__name__, cmd)
        if first:
            change_and_tell(conn.target, change, list(changed))
        conn.release()

    with Target(mdts=3, **{command.__name__: step}, **script) as t:
        result = command(t, PATIENT | dict(depth=1) | (words or {}), 0, 1 << 20)
        if why:
            judge(t, result, why, None)
        else:
            assert result.code == 0, result


def remove(t):
    t.namespaces = {}


def shrink(t):
    t.namespaces[1].data = t.namespaces[1].data[:65536]


def grow(t):
    t.namespaces[1].data = t.namespaces[1].data + bytes(1 << 20)


def other_blocks(t):
    t.namespaces[1] = Namespace(t.namespaces[1].data, 12)


GONE = "namespace|range|0xb|0x80|stale|size"
for command in (read, write):
    for change in (remove, shrink):
        case(f"the namespace under a {command.__name__}: {change.__name__}")(
            lambda change=change, command=command: while_reading(change, None, GONE, command))


for name, changed, script in (("is empty", [], {}), ("is not whole", [0xFFFFFFFF], {}),
                              ("cannot be read", [1], dict(log_page=lambda conn, lid: None))):
    case(f"the namespace under a read: shrink, and the list of what changed {name}")(
        lambda changed=changed, script=script: while_reading(shrink, None, GONE, read, changed,
                                                             **script))


@case("the namespace under a read: grow")
def _():
    while_reading(grow)


@case("the namespace under a read: other_blocks")
def _():
    while_reading(other_blocks, None, GONE)


@case("the namespace under a read: another takes its place")
def _():
    """Nothing of the other one may be taken for data of the first."""
    def swap(t):
        t.namespaces[1] = Namespace(b"\xEE" * (1 << 20))
        t.script["identified"] = other
        for conn in t.connections:
            conn.identified = lambda cns, nsid, conn=conn: other(conn, cns, nsid)

    def other(conn, cns, nsid):
        data = bytearray(normally(conn, "identified", cns, nsid))
        if cns == 3:
            data[4:20] = b"\x77" * 16
        return data
    while_reading(swap, None, "another|stale|changed|namespace")


# --- keep-alive

def until_gone(conn, cmd):
    """Nothing is answered any more; the connection stays."""


QUIET = dict(io_timeout="20s", kato="500ms", loss_timeout="2s")
fails("keep-alive in silence", "keep|time|answer", words=QUIET, keep_alive=until_gone,
      read=until_gone)
fails("keep-alive refused", "keep|time|0x", words=QUIET | dict(io_timeout="2s"), read=until_gone,
      keep_alive=lambda conn, cmd: conn.complete(cmd, nvme.INVALID_OPCODE))


def late_read(conn, cmd):
    time.sleep(2)
    normally(conn, "read", cmd)


def read_when_kept_alive(conn, cmd):
    weft.wait_until(lambda: (0, "keep_alive") in conn.target.commands, "a keep-alive")
    normally(conn, "read", cmd)


works("keep-alive while a read takes long", words=dict(kato="2s"), read=read_when_kept_alive)
works("keep-alive with a granularity of 10 s", words=dict(kato="1s"), kas=100, read=late_read)
works("no keep-alive", words=dict(kato="0"), look=lambda t, _: not_kept_alive(t), kas=0,
      read=late_read)


def not_kept_alive(t):
    assert (0, "keep_alive") not in t.commands, "a keep-alive was sent"
