"""c2hdata.py - data of a read that is too little, too much, misplaced, or for another command."""
import pdu
from host_bad import (FIELD, HASTY, LIMIT, OUT_OF_RANGE, PDO, PLEN, SEQUENCE, SIZE, fails, hurts,
                      survives, works, write)

WHY = "C2HData|data|bytes|short|read"
RANGE = [OUT_OF_RANGE, LIMIT, FIELD, SEQUENCE]
LAST, SUCCESS = pdu.LAST, pdu.SUCCESS
HALF = SIZE // 2


class Piece:
    """One C2HData: where it says it belongs, which bytes of the namespace it has, its flags."""

    def __init__(self, offset, size, flags=0, cid=0, length=None, at=None, **wrong):
        self.offset, self.size, self.flags, self.cid = offset, size, flags, cid
        self.length, self.at, self.wrong = length, offset if at is None else at, wrong

    def send(self, conn, cmd):
        start = cmd.slba * 512 + self.at
        data = bytes(conn.target.namespaces[1].data[start:start + self.size])
        conn.c2hdata(cmd.cid ^ self.cid, self.offset, data, self.flags, self.length, **self.wrong)


def sends(*pieces, complete=True, status=0):
    def step(conn, cmd):
        for piece in pieces:
            piece.send(conn, cmd)
        conn.live.pop(cmd.cid)
        if complete:
            conn.completion(cmd.cid, status)
    return step


P = Piece
WHOLE = P(0, SIZE, LAST)

# name, pieces, the errors a host may report (None: it need not); then a completion follows
BAD = [
    ("a block too little", [P(0, SIZE - 512, LAST)], None),
    ("half of it", [P(0, HALF, LAST)], None),
    ("4 bytes too little", [P(0, SIZE - 4, LAST)], None),
    ("only the second half", [P(HALF, HALF, LAST)], RANGE),
    ("4 bytes too much", [P(0, SIZE + 4, LAST)], RANGE),
    ("twice as much", [P(0, SIZE * 2, LAST)], RANGE),
    ("a gap", [P(0, 4096), P(8192, SIZE - 8192, LAST)], RANGE),
    ("a gap of 4 bytes", [P(0, 4096), P(4100, SIZE - 4100, LAST)], RANGE),
    ("an overlap", [P(0, 8192), P(4096, SIZE - 4096, LAST)], RANGE),
    ("the same piece twice", [P(0, 8192), P(0, 8192), P(8192, SIZE - 8192, LAST)], RANGE),
    ("halves in the wrong order", [P(HALF, HALF), P(0, HALF, LAST)], RANGE),
    ("beyond the command", [P(SIZE, 512, LAST)], RANGE),
    ("far beyond the command", [P(0xFFFFFE00, 512, LAST)], RANGE),
    ("more after LAST", [WHOLE, P(0, 512, LAST)], RANGE),
    ("for an unknown command", [P(0, SIZE, LAST, cid=0x7000)], RANGE),
    ("for an unknown command, after the right one", [WHOLE, P(0, 512, LAST, cid=0x7000)], RANGE),
    ("DATAL less than PLEN", [P(0, SIZE, LAST, length=SIZE - 512)], [PLEN, FIELD, *RANGE]),
    ("DATAL more than PLEN", [P(0, SIZE, LAST, length=SIZE + 512)], [PLEN, FIELD, *RANGE]),
    ("DATAL of 4 GiB", [P(0, SIZE, LAST, length=0xFFFFFFFC)], [PLEN, FIELD, *RANGE]),
    ("DATAL 0", [P(0, 512, length=0)], [PLEN, FIELD, *RANGE]),
    ("PDO beyond PLEN", [P(0, 64, LAST, pdo=128)], [PDO, PLEN, FIELD, *RANGE]),
]
for name, pieces, term in BAD:
    hurts(f"C2HData: {name}", WHY, term=term, read=sends(*pieces))

SUCCESSES = [
    ("success with a block too little", [P(0, SIZE - 512, LAST | SUCCESS)]),
    ("success in the middle", [P(0, HALF, LAST | SUCCESS), P(HALF, HALF, LAST)]),
    ("success without LAST", [P(0, SIZE, SUCCESS)]),
    ("success without LAST, in the middle", [P(0, HALF, SUCCESS), P(HALF, HALF, LAST)]),
]
for name, pieces in SUCCESSES:
    hurts(f"C2HData: {name}", WHY, read=sends(*pieces, complete=False))

hurts("C2HData: nothing but the completion", WHY, read=sends())
fails("C2HData: no completion follows", "time|answer|abort", words=HASTY,
      read=sends(WHOLE, complete=False))
survives("C2HData: success, and a completion", read=sends(P(0, SIZE, LAST | SUCCESS)))
survives("C2HData: success twice", read=sends(P(0, SIZE, LAST | SUCCESS),
                                              P(0, SIZE, LAST | SUCCESS), complete=False))
survives("C2HData: LAST in the middle", read=sends(P(0, HALF, LAST), P(HALF, HALF, LAST)))
survives("C2HData: LAST is missing", read=sends(P(0, SIZE)))
survives("C2HData: of no bytes, then all", read=sends(P(0, 0), WHOLE))
fails("C2HData: all of it, and then an error", "0x281", read=sends(WHOLE, status=0x281))
fails("C2HData: half of it, and then an error", "0x281",
      read=sends(P(0, HALF), status=0x281))
works("C2HData: in pieces of 4 bytes", read=sends(
    *[P(at, 4, LAST if at == SIZE - 4 else 0) for at in range(0, SIZE, 4)]))
survives("C2HData: in pieces of odd sizes", read=sends(
    P(0, 1), P(1, 3), P(4, 4093), P(4097, 7), P(4104, SIZE - 4104, LAST)))


def for_a_write(conn, cmd):
    conn.c2hdata(cmd.cid, 0, bytes(512))
    conn.complete(cmd)


hurts("C2HData for a write", "C2HData|data", write, RANGE, write=for_a_write)
hurts("C2HData for a write, instead of the R2T", "C2HData|data", write, RANGE, solicit=for_a_write)
fails("C2HData for Set Features", "C2HData|data", term=RANGE, set_features=for_a_write)
fails("C2HData for Connect", "C2HData|data", term=RANGE, connect=for_a_write)


def identify(*pieces):
    def step(conn, cmd):
        data = bytes(conn.identified(cmd.dw(10) & 0xFF, cmd.nsid) or bytes(4096)) + bytes(4096)
        for offset, size in pieces:
            conn.c2hdata(cmd.cid, offset, data[offset:offset + size])
        conn.complete(cmd)
    return step


for name, pieces in (("8 KiB", [(0, 8192)]), ("2 KiB", [(0, 2048)]), ("4 KiB at 4", [(4, 4096)]),
                     ("4 KiB and 4 bytes more", [(0, 4096), (4096, 4)])):
    fails(f"Identify gets {name}", WHY + "|Identify", identify=identify(*pieces))
