"""stranger.py - a scripted target that goes on with what it was given after the host has lost it.

    with Stranger() as s:           s.target is a target.Target; s.order is what became of its writes

It takes the first write and falls silent. It lets the host in again at once, and carries the write out
as late as it may: when it has missed a Keep Alive, and its quiesce time is nearly over. Nothing but
that tells it that the host has gone: it has no Cross-Controller Reset."""
import os
import signal
import threading

import weft
from target import Silence, Target, normally


def silent(_conn, _cmd):
    raise Silence


def after(seconds, body, *args):
    timer = threading.Timer(seconds, body, args)
    timer.daemon = True
    timer.start()


class Stranger:
    """{how}(conn, cmd): what it does in the place of falling silent; {later}: with Keep Alives of later
    connections; {counts_s}: when it misses a Keep Alive."""
    KATO_S, CQT_S = 4, 1.5          # from its last moment to the host's first: a KATO, and more
    WORDS = dict(kato=f"{KATO_S}s", io_timeout="60m")

    def __init__(self, how=silent, counts_s=KATO_S, later=(), **script):
        self.how, self.counts_s, self.later = how, counts_s, list(later)
        self.lost, self.late, self.order = None, threading.Event(), []
        self.target = Target(cqt=int(self.CQT_S * 1000), write=self.write, keep_alive=self.keep_alive,
                             **script)
        self.target.late = self.late

    def write(self, conn, cmd):
        if self.lost:
            self.order.append("again")
            return normally(conn, "write", cmd)
        self.lost = conn.ctrl
        after(self.counts_s + self.CQT_S * 0.9, self.carry_out, conn, cmd)
        self.how(conn, cmd)

    def keep_alive(self, conn, cmd):
        if conn.ctrl is self.lost:
            raise Silence
        if self.lost and self.later:
            self.later.pop()(conn, cmd)
        normally(conn, "keep_alive", cmd)

    def carry_out(self, conn, cmd):
        ns = conn.target.namespaces[1]
        ns.data[cmd.slba << ns.shift:(cmd.slba + cmd.count) << ns.shift] = cmd.out
        self.order.append("late")
        self.late.set()

    def __enter__(self):
        self.target.__enter__()
        return self

    def __exit__(self, *error):
        self.late.wait(60)
        self.target.__exit__(*error)


class OfTwoQueues(Stranger):
    """… takes a write on each of two queues, then closes the connections {closes}, by queue id, and is
    silent on the rest. What it carries out late is of queue 2. {host} stands still meanwhile: to it the
    connections end together."""

    def __init__(self, closes, **script):
        self.closes, self.taken, self.host = closes, {}, None
        super().__init__(**script)

    def close_them(self):
        weft.wait_until(lambda: self.host, "the host")
        self.host.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.host.pid, os.WSTOPPED)
        for qid in self.closes:
            next(c for c in self.target.connections if c.ctrl is self.lost and c.qid == qid).close()
        self.host.send_signal(signal.SIGCONT)

    def write(self, conn, cmd):
        if self.lost:
            self.order += [f"again {qid}" for qid, (_, lost) in self.taken.items()
                           if lost.slba == cmd.slba]
            return normally(conn, "write", cmd)
        self.taken[conn.qid] = conn, cmd
        if len(self.taken) == 2:
            self.lost = conn.ctrl
            after(self.counts_s + self.CQT_S * 0.9, self.carry_out, *self.taken[2])
            self.close_them()
        raise Silence


class EndsSlowly(OfTwoQueues):
    """… and closes the admin queue's connection when the host asks whether it is alive."""

    def __init__(self):
        super().__init__([1])

    def keep_alive(self, conn, cmd):
        if conn.ctrl is self.lost:
            conn.close()
        normally(conn, "keep_alive", cmd)


class LostOften(Stranger):
    """… and is lost more often than a host keeps losses apart: {BEFORE} times, with the write, and {AFTER}
    times more. Only after the last loss it says of those before that they are over."""
    BEFORE, AFTER = 32, 4           # a host keeps 32 apart; of more the newest two are one
    INACCESSIBLE, OPTIMIZED, UNDER_WAY = 3, 1, 0x13F

    def __init__(self, **script):
        super().__init__(connect=self.connect, cross_ctrl_reset=self.cross_ctrl_reset,
                         numbered_anew=True, ana={7: self.INACCESSIBLE}, **script)

    def is_last(self, ctrl):
        return ctrl.cntlid > self.BEFORE + 1 + self.AFTER

    def connect(self, conn, cmd):
        normally(conn, "connect", cmd)
        if conn.ctrl and conn.ctrl.cntlid > self.BEFORE:
            self.target.ana = {7: self.OPTIMIZED}       # now the host may write
        if conn.qid and conn.ctrl.cntlid != self.BEFORE + 1 and not self.is_last(conn.ctrl):
            conn.ctrl.admin.completion(0xFFFE)          # nonsense: the host hangs up

    def cross_ctrl_reset(self, conn, cmd):
        has_write = cmd.dw(10) & 0xFFFF == self.BEFORE + 1 and not self.late.is_set()
        if has_write or not self.is_last(conn.ctrl):
            return conn.complete(cmd, self.UNDER_WAY)
        return normally(conn, "cross_ctrl_reset", cmd)


class GivenUp(Stranger):
    """… and lets the host in again when that has given it up for dead.

    That is after two attempts, or one where the machine is slow; then whoever connects anew is sent away
    once, and comes again a second later."""
    WORDS = Stranger.WORDS | dict(loss_timeout="100ms", reconnect_delay="1s", reconnect_delay_max="1s")

    def __init__(self, **script):
        self.attempts = 2               # at once, and when loss_timeout is over
        super().__init__(accepted=self.accepted, **script)

    def accepted(self, conn):
        if self.lost and self.attempts:
            self.attempts -= 1
            conn.reset()

    def lose(self):
        """It hangs up, and nothing was being written."""
        self.lost = True
        self.late.set()
        for conn in list(self.target.connections):
            conn.close()


class Away(GivenUp):
    """… again and again, and carries out at once what it is given."""

    def __init__(self, **script):
        super().__init__(**script)
        self.lost = False

    def write(self, conn, cmd):
        normally(conn, "write", cmd)

    def lose(self):
        self.attempts = 2
        super().lose()
