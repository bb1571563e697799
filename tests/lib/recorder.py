"""recorder.py - a scripted target that keeps what a host asks of its namespace."""
import contextlib

import sqe
import target

FUA, DEAC = 1 << 30, 1 << 25        # of CDW12
KEPT = (sqe.FLUSH, sqe.WRITE, sqe.WRITE_ZEROES, sqe.DSM)


@contextlib.contextmanager
def recording(**script):
    """The target; sent(body) is what body() made the host send: [(opcode, CDW12), …]."""
    seen = []

    def execute(conn, cmd):
        if conn.qid and cmd.opcode in KEPT:
            seen.append((cmd.opcode, cmd.dw(12)))
        return target.normally(conn, "execute", cmd)

    def sent(body, *args, **kw):
        seen.clear()
        body(*args, **kw)
        return list(seen)

    with target.Target(execute=execute, **script) as t:
        t.sent = sent
        yield t
