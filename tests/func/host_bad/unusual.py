"""unusual.py - what few targets do, and every target may: it must work."""
import contextlib
import threading

import nvme
import structures
from host_bad import PATIENT, Namespace, Target, case, id, normally, read, run, works, write

LONG = 1 << 20          # all of the namespace


def long_read(t, words):
    return read(t, words, 0, LONG)


def long_write(t, words):
    return write(t, words, 0, LONG)


DIGESTS = {"no digests": {}, "header digest": dict(hdgst=1), "data digest": dict(ddgst=1),
           "both digests": dict(hdgst=1, ddgst=1)}
# Words of the target under which everything must work; several of them at once in the end.
WAYS = {
    "plain": {},
    "the success flag": dict(success=True),
    "SQ flow control": dict(no_flow=False),
    "padding of 128 bytes": dict(cpda=31),
    "pieces of 512 bytes": dict(piece=512, r2t_piece=512),
    "pieces of 1000 bytes": dict(piece=1000, r2t_piece=1000, r2ts_open=4),
    "small everything": dict(maxh2c=4096, icd=0, mdts=1, mqes=1, queues_max=1),
    "all of it": dict(success=True, cpda=7, piece=4096, r2t_piece=8192, maxh2c=4096, icd=1024,
                      mdts=4, mqes=3, ready_after=2, kas=10),
}
for how, words in DIGESTS.items():
    for name, script in WAYS.items():
        works(f"read with {name}, {how}", long_read, words, **script)
        works(f"write with {name}, {how}", long_write, words, **script)

for segment in (1, 2, 3, 7, 100):
    script = dict(accepted=lambda conn, segment=segment: setattr(conn, "segment", segment))
    works(f"read in segments of {segment}", words=DIGESTS["both digests"], **script)
    works(f"write in segments of {segment}", write, DIGESTS["both digests"], r2t_piece=512,
          **script)

for mqes in (1, 2, 3, 15, 1023):
    works(f"MQES {mqes}, depth 128 asked for", long_read, dict(depth=128), mqes=mqes, mdts=1)
    works(f"MQES {mqes}, with flow control", long_read, dict(depth=128), mqes=mqes, mdts=1,
          no_flow=False)
for queues in (1, 2, 4):
    works(f"{queues} queues", long_write, dict(queues=queues), mdts=1)


# --- the order of things

def piled(method, limit=8):
    """Commands gather for a moment, or until there are `limit`, and end in reverse, together."""
    def end(conn):
        with conn.pile_lock, contextlib.suppress(OSError):
            pile, conn.pile = conn.pile, []
            if not pile:
                return
            conn.held = []
            for cmd in reversed(pile):
                normally(conn, method, cmd)
            conn.release()

    def step(conn, cmd):
        if not hasattr(conn, "pile"):
            conn.pile, conn.pile_lock = [], threading.Lock()
        with conn.pile_lock:
            conn.pile.append(cmd)
        if len(conn.pile) >= limit:
            end(conn)
        else:
            timer = threading.Timer(0.1, end, [conn])
            timer.daemon = True
            timer.start()
    return {method: step}


def gathered(conn, cmd):
    """All that one command is answered with, in one segment."""
    conn.held = []
    normally(conn, "read", cmd)
    conn.release()


def interleaved(conn, cmd):
    """Two reads, their data PDU by PDU in turns."""
    other, conn.other = getattr(conn, "other", None), cmd
    if other is None:
        timer = threading.Timer(0.1, lonely, [conn, cmd])
        timer.daemon = True
        timer.start()
        return
    conn.other = None
    for at in range(0, cmd.length, 1024):
        for one in (other, cmd):
            start = one.slba * 512 + at
            conn.c2hdata(one.cid, at, bytes(conn.target.namespaces[1].data[start:start + 1024]),
                         4 if at + 1024 >= one.length else 0)
    conn.complete(cmd)
    conn.complete(other)


def lonely(conn, cmd):
    if conn.other is cmd:
        conn.other = None
        normally(conn, "read", cmd)


DEEP = dict(depth=32)
works("reads complete in reverse", long_read, DEEP, mdts=2, **piled("read"))
works("writes complete in reverse", long_write, DEEP, mdts=2, **piled("write"))
works("reads complete in reverse, by the success flag", long_read, DEEP, mdts=2, success=True,
      **piled("read"))
works("a read's PDUs in one segment", long_read, DEEP, mdts=2, piece=512, read=gathered)
works("the data of two reads in turns", long_read, DEEP, mdts=2, read=interleaved)


# --- shapes of namespaces and controllers

for shift in (9, 10, 12, 16):
    works(f"blocks of {1 << shift} bytes", long_read,
          namespaces={1: Namespace(nvme.pattern(5, LONG), shift)})
works("a namespace of one block", lambda t, w: read(t, w, 0, 512),
      namespaces={1: Namespace(nvme.pattern(5, 512))})
works("namespaces far apart", id, namespaces={n: Namespace(bytes(4096)) for n in
                                              (1, 7, 1000, 0xFFFFFFFD)})
works("two thousand namespaces", id,
      namespaces={n: Namespace(bytes(512)) for n in range(1, 2001)})


def no_volatile_cache(conn, cns, nsid):
    data = normally(conn, "identified", cns, nsid)
    if cns == 1:
        structures.put(data, "B", 525, 0)
        structures.put(data, "H", 520, 0)
    return data


works("no volatile cache, no optional commands", long_write, identified=no_volatile_cache)


@case("the same target, connected to twenty times")
def _():
    with Target() as t:
        for _ in range(20):
            assert run("id", t.uri(**PATIENT)).code == 0
        assert not t.controllers or len(t.controllers) == 1, f"left: {list(t.controllers)}"


@case("the host says good-bye")
def _():
    """CC.SHN is set, or the controller disabled, before the connection ends."""
    shut = []

    def property_set(conn, cmd):
        shut.append(cmd.dw(12))
        normally(conn, "property_set", cmd)

    with Target(property_set=property_set) as t:
        assert read(t, PATIENT).code == 0
        assert shut[-1] & 0xC000 or not shut[-1] & 1, f"the last CC is {shut[-1]:#x}"
