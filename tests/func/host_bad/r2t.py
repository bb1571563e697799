"""r2t.py - requests for data that the write does not have, or that were answered already."""
from host_bad import (FIELD, LIMIT, OUT_OF_RANGE, SEQUENCE, SIZE, fails, hurts, normally, survives,
                      works, write)

WHY = "R2T"
RANGE = [OUT_OF_RANGE, LIMIT, FIELD, SEQUENCE]
HALF = SIZE // 2


def asks(*extents, cid=0):
    """R2Ts that the target keeps no record of: an answer to one of them is a host's fault."""
    def step(conn, cmd):
        for number, (offset, length) in enumerate(extents):
            conn.r2t(cmd.cid ^ cid, 0x700 + number, offset, length)
    return step


# name, extents of which already the first may not be asked for
BAD = [
    ("beyond the command", [(SIZE, 512)]),
    ("4 bytes beyond the command", [(0, SIZE + 4)]),
    ("of 4 GiB", [(0, 0xFFFFFFFC)]),
    ("with a sum that wraps", [(0xFFFFFE00, 0x400)]),
    ("far beyond", [(0xFFFFFE00, 512)]),
    ("of no bytes", [(0, 0)]),
    ("of no bytes at the end", [(SIZE, 0)]),
]
for name, extents in BAD:
    hurts(f"R2T {name}", WHY, write, RANGE, solicit=asks(*extents))
hurts("R2T of an unknown command", "R2T|command|cid", write, RANGE,
      solicit=asks((0, SIZE), cid=0x7000))
hurts("R2T of a read", WHY, term=RANGE, read=asks((0, SIZE)))
fails("R2T of Set Features", WHY, term=RANGE, set_features=asks((0, 64)))
fails("R2T of Connect, whose data was in the capsule", WHY, term=RANGE, connect=asks((0, 1024)))


def then(*extents):
    """A right first R2T, then others at once."""
    def step(conn, cmd):
        cmd.out = cmd.out or bytearray(cmd.length)
        conn.held = []
        conn.ask(cmd, 0, HALF)
        cmd.asked = cmd.length
        for offset, length in extents:
            conn.ask(cmd, offset, length)
        conn.release()
    return step


for name, extents in (("twice", [(0, HALF)]), ("overlapping", [(HALF - 512, HALF)]),
                      ("with a gap", [(HALF + 512, HALF - 512)]),
                      ("beyond the command, second", [(HALF, HALF + 4)])):
    fails(f"R2T {name}", WHY, write, RANGE, solicit=then(*extents))


def in_excess(conn, cmd):
    """One more at once than the host's MAXR2T allows, before the first can have been answered."""
    size = SIZE // (conn.maxr2t + 1) & ~3
    cmd.out, cmd.asked = bytearray(cmd.length), cmd.length
    conn.held = []
    for number in range(conn.maxr2t + 1):
        conn.ask(cmd, number * size, size)
    conn.release()


def in_reverse(conn, cmd):
    """The second half first. A host may refuse that; if it does not, the data must be right."""
    if not cmd.out:
        cmd.out, cmd.asked = bytearray(cmd.length), HALF
        return conn.ask(cmd, HALF, HALF)
    cmd.asked = cmd.length
    return conn.ask(cmd, 0, HALF)


fails("R2T in excess of MAXR2T", WHY, write, RANGE, maxh2c=4096, solicit=in_excess)
survives("R2T for the halves in reverse", write, solicit=in_reverse)


def after_data(*extents):
    """All data has come; R2Ts for some of it again."""
    def step(conn, cmd):
        for offset, length in extents:
            conn.r2t(cmd.cid, 0x900, offset, length)
        normally(conn, "write", cmd)
    return step


hurts("R2T for all of it again", WHY, write, RANGE, write=after_data((0, SIZE)))
hurts("R2T for a part again", WHY, write, RANGE, write=after_data((0, 512)))
hurts("R2T for more, at the end", WHY, write, RANGE, write=after_data((SIZE, 4)))


def after_completion(conn, cmd):
    normally(conn, "write", cmd)
    conn.r2t(cmd.cid, 0x901, 0, SIZE)


survives("R2T after the completion", write, write=after_completion)


def completes_early(status):
    """The R2T and the completion in one segment: the data may or may not follow."""
    def step(conn, cmd):
        cmd.out = bytearray(cmd.length)
        conn.held = []
        conn.ask(cmd, 0, cmd.length)
        cmd.asked = cmd.length
        conn.completion(cmd.cid, status)
        conn.release()
    return step


def ignores(conn, got):
    conn.r2ts.pop(got.ttag, None)


fails("R2T and at once an error", "0x281", write, solicit=completes_early(0x281), h2cdata=ignores)


# --- data of a write that the host sends in the capsule, and is asked for all the same

def small_write(t, words):
    return write(t, words, length=4096)


def asks_again(conn, cmd):
    conn.r2t(cmd.cid, 0x902, 0, 4096)
    normally(conn, "write", cmd)


hurts("R2T for what was in the capsule", WHY, small_write, RANGE, write=asks_again)

# --- right, if unusual

works("R2T in pieces of 512 bytes", write, r2t_piece=512)
works("R2T in pieces of 4 bytes", write, r2t_piece=4)
survives("R2T in odd pieces", write, r2t_piece=4093)
works("R2T as many at once as the host takes", write, r2t_piece=512, r2ts_open=1 << 16)
for size in (4096, 8192, 65536, 0xFFFFFFFC):
    works(f"MAXH2CDATA {size:#x}", write, maxh2c=size, icd=0)
works("no data in capsules: IOCCSZ 4", small_write, icd=0)
works("512 bytes in capsules", small_write, icd=512)
works("64 KiB in capsules", lambda t, w: write(t, w, length=65536), icd=65536)
works("transfer tag FFFFh", write, solicit=lambda conn, cmd: (
    setattr(conn, "next_ttag", 0xFFFE), normally(conn, "solicit", cmd)))
works("transfer tag 0", write, solicit=lambda conn, cmd: (
    setattr(conn, "next_ttag", 0xFFFF), normally(conn, "solicit", cmd)))
works("R2T with reserved flags", write, r2t=lambda conn, *args: normally(
    conn, "r2t", *args, flags=0x80))
