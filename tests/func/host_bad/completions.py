"""completions.py - completions for commands that are not, not any more, or not there."""

import nvme
from host_bad import (HASTY, PATIENT, SIZE, Target, fails, hurts, normally, once, read, survives,
                      works, write)
from tap import case

WHY = "command|cid|completion|CapsuleResp|time"
INTERRUPTED, NOT_READY, HOST_PATH_ERROR = 0x21, 0x82, 0x370
LONG = 1 << 19          # several commands, where one is not that long


def long_read(t, words):
    return read(t, words, 0, LONG)


def changed(change):
    def step(conn, cmd):
        conn.live.pop(cmd.cid)
        conn.completion(change(cmd.cid) & 0xFFFF)
    return step


CIDS = {"FFFFh": lambda cid: 0xFFFF, "+ 1": lambda cid: cid + 1, "- 1": lambda cid: cid - 1,
        "^ 0x80": lambda cid: cid ^ 0x80, "^ 0x100": lambda cid: cid ^ 0x100,
        "^ 0x1000": lambda cid: cid ^ 0x1000, "^ 0x8000": lambda cid: cid ^ 0x8000,
        "7FFFh": lambda cid: 0x7FFF}
for name, change in CIDS.items():
    hurts(f"completion of a write with cid {name}", WHY, write, write=changed(change))
    fails(f"completion of an admin command with cid {name}", WHY, set_features=changed(change))
    fails(f"completion of Connect with cid {name}", WHY, connect=changed(change))


def twice(conn, cmd):
    normally(conn, "read", cmd)
    conn.completion(cmd.cid)


def write_twice(conn, cmd):
    normally(conn, "write", cmd)
    conn.completion(cmd.cid)


def same_segment(step):
    def held(conn, cmd):
        conn.held = []
        step(conn, cmd)
        conn.release()
    return held


def stale(conn, cmd):
    """The cid of the command before this one, again, and then this one's own."""
    before, conn.before = getattr(conn, "before", None), cmd.cid
    if before is not None:
        conn.completion(before)
    normally(conn, "read", cmd)


# The second one may find the host gone, or a reset that the retried read survives.
for name, command, script in (("read", long_read, dict(read=twice)),
                              ("read, same segment", long_read, dict(read=same_segment(twice))),
                              ("write", write, dict(write=write_twice)),
                              ("write, same segment", write,
                               dict(write=same_segment(write_twice)))):
    survives(f"completion twice: {name}", command, **script)
survives("completion of the command before, again", long_read, mdts=3, read=stale)


def no_data(conn, cmd):
    conn.complete(cmd)


def without_its_data(conn, cmd):
    """Before its data has been asked for: the target did not take the write."""
    conn.complete(cmd)


hurts("a read completes without data", "data|bytes|short|read", read=no_data)
survives("a write completes before its data", write, solicit=without_its_data)
fails("Identify completes without data", "Identify|data|bytes|short", identify=no_data)
fails("a Write refused before its data", "0x81", write,
      solicit=lambda conn, cmd: conn.complete(cmd, nvme.CAPACITY))


def other_queue(conn, cmd):
    """The read's completion comes on the admin queue."""
    conn.live.pop(cmd.cid)
    conn.ctrl.admin.completion(cmd.cid + 0x40)


fails("completion on another queue", WHY, words=HASTY, read=other_queue)


def stored(complete):
    """A write that is carried out, and completed by complete(conn, cid)."""
    def step(conn, cmd):
        conn.complete = lambda cmd, *_: complete(conn, conn.live.pop(cmd.cid).cid)
        normally(conn, "write", cmd)
        del conn.complete
    return step


def wild_head(conn, cid):
    conn.sqhd = 0xFFF0
    conn.completion(cid)


survives("completion that names another queue", write,
         write=stored(lambda conn, cid: conn.completion(cid, sqid=7)))
survives("completion with a wild SQHD", write, no_flow=False, write=stored(wild_head))


# --- late: the host gave up, aborted, and then the completion comes after all

def late(aborted):
    """A read that only its abort wakes up; `aborted` says what the abort does."""
    def keep(conn, cmd):
        conn.ctrl.late = (conn, cmd)

    def abort(conn, cmd):
        assert (cmd.dw(10) & 0xFFFF, cmd.dw(10) >> 16) == \
            (conn.ctrl.late[0].qid, conn.ctrl.late[1].cid), "it aborts another command"
        aborted(conn, cmd, *conn.ctrl.late)
    return dict(read=keep, abort=abort)


def ends_both(conn, cmd, queue, read_cmd):
    queue.complete(read_cmd, nvme.ABORT_REQUESTED, dnr=0)
    conn.complete(cmd)


def succeeds_late(conn, cmd, queue, read_cmd):
    normally(queue, "read", read_cmd)
    conn.complete(cmd, dw0=1)


def denies(conn, cmd, _queue, _read):
    conn.complete(cmd, dw0=1)


def refuses(conn, cmd, _queue, _read):
    conn.complete(cmd, 0x103)


def twice_late(conn, cmd, queue, read_cmd):
    queue.complete(read_cmd, nvme.ABORT_REQUESTED, dnr=0)
    queue.completion(read_cmd.cid)
    conn.complete(cmd)


fails("a read in silence, its abort works", "time|abort", words=HASTY, **late(ends_both))
survives("a read in silence, completes at its abort", **late(succeeds_late))
fails("a read in silence, its abort finds nothing", "time|abort", words=HASTY, **late(denies))
fails("a read in silence, its abort is refused", "time|abort", words=HASTY, **late(refuses))
fails("a read in silence, its abort in silence", "time|abort|answer", words=HASTY,
      read=lambda *_: None, abort=lambda *_: None)
survives("a read in silence, aborted and completed", **late(twice_late))


# --- C2HData that takes the place of a completion wrongly is in c2hdata.py

def foreign(conn, cmd):
    """Data for the cid of a keep-alive that never was, on the admin queue."""
    conn.ctrl.admin.c2hdata(0x3333, 0, bytes(64))
    normally(conn, "read", cmd)


survives("data on the admin queue for nothing", read=foreign)
works("a read's data, its completion much later", read=lambda conn, cmd: (
    conn.c2hdata(cmd.cid, 0, bytes(conn.target.namespaces[1].data[4096:4096 + SIZE])),
    conn.complete(cmd)))


def refuses(status, dnr):
    """The first read is refused; with DNR it stays the only one."""
    def first(conn, cmd):
        conn.complete(cmd, status, dnr=dnr)

    @case(f"status {status:#x} {'with' if dnr else 'without'} DNR")
    def _():
        with Target(read=once("read", first)) as t:
            result = read(t, PATIENT)
            reads = t.commands.count((1, "read"))
            assert (result.code, reads) == ((1, 1) if dnr else (0, 2)), f"{reads} reads; {result}"


for status in (nvme.TRANSIENT_TRANSPORT, INTERRUPTED, NOT_READY, nvme.INTERNAL_PATH_ERROR,
               nvme.ANA_INACCESSIBLE, nvme.ANA_TRANSITION, HOST_PATH_ERROR):
    refuses(status, dnr=1)
    refuses(status, dnr=0)
