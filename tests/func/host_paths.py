#!/usr/bin/python3
"""host_paths.py - several paths to one subsystem, of scripted targets that share a disk: which of
them `weft` uses, what makes it change, and which ones are not what they seem."""
import contextlib
import functools
import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import command
import nvme
import structures
import tap
import weft
from bench import running
from host_bad import PATIENT, Namespace, Result, Silence, Target, judge, normally, read, run, write
from stranger import EndsSlowly, LostOften, OfTwoQueues, Stranger, after, silent

OPTIMIZED, NON_OPTIMIZED, INACCESSIBLE, LOSS, CHANGE = 1, 2, 3, 4, 15
ANA_NOTICE = (2, 3, 0xC)
LONG = 1 << 20


class Paths:
    """Targets with one NQN and one disk, each with a script of its own; for read() and write() of
    host_bad they are one."""

    def __init__(self, stack, *scripts):
        self.namespaces = {1: Namespace(nvme.pattern(0xCAFE, LONG))}
        self.targets = [stack.enter_context(Target(**dict(mdts=3, namespaces=self.namespaces)
                                                   | script)) for script in scripts]
        for t in self.targets:
            t.first, t.all = self.targets[0], self.targets
        self.terms = []

    def uri(self, first=None, **words):
        """{first}: what only the first path's has."""
        return ",".join(t.uri(**words | (first or {} if t is self.targets[0] else {}))
                        for t in self.targets)

    def count(self, name="read"):
        """I/O commands of that kind, by target."""
        return [sum(qid != 0 and what == name for qid, what in t.commands) for t in self.targets]


def had_io(p):
    return any(qid for t in p.targets for qid, _ in t.commands)


def bench(p, words, *more, enough=lambda p: None):
    """Many commands: for a second, and then until {enough}(p) has nothing to object to."""
    def is_enough():
        with contextlib.suppress(AssertionError):
            enough(p)
            return True
        return process.poll() is not None

    with running(p.uri(nsid=1, **words), "--rw", "read", "--bs", "4k", "--depth", "4",
                 "--time", "600", "--json", *more) as process:
        weft.wait_until(lambda: had_io(p) or process.poll() is not None, "I/O")
        time.sleep(1)
        with contextlib.suppress(AssertionError):       # the caller looks at it, too
            weft.wait_until(is_enough, "enough")
        process.send_signal(signal.SIGINT)
    assert process.returncode or json.loads(process.stdout_text)["ok"]
    return Result(process.returncode, process.stdout_text, process.stderr_text)


@contextlib.contextmanager
def paths(*scripts):
    with contextlib.ExitStack() as stack:
        yield Paths(stack, *scripts)


def works(name, *scripts, command=None, words=None, look=lambda p: None):
    @tap.case(name)
    def _():
        with paths(*scripts) as p:
            result = (command or functools.partial(bench, enough=look))(p, PATIENT | (words or {}))
            assert result.code == 0, result
            look(p)


def fails(name, why, *scripts, command=read, words=None):
    @tap.case(name)
    def _():
        with paths(*scripts) as p:
            judge(p, command(p, PATIENT | dict(loss_timeout="5s") | (words or {})), why, None)


def ana(state):
    return dict(ana={7: state})


# --- which path

def only(index, name="read"):
    def look(p):
        counts = p.count(name)
        assert counts[index] and not any(counts[:index] + counts[index + 1:]), counts
    return look


def all_of_them(p, most=None):
    assert all(p.count()[:most]), p.count()


def late(**script):
    """A path that is there when the first one has had I/O."""
    def accepted(conn):
        weft.wait_until(lambda: any(qid for qid, _ in conn.target.first.commands),
                        "I/O on the first path")
    return script | dict(accepted=accepted)


def first_of_two(p):
    only(0)(p)
    assert (0, "identify") in p.targets[1].commands, "it was not looked at"


works("two equal paths are both used", {}, {}, look=all_of_them)
for policy in ("round-robin", "queue-depth", "latency"):
    works(f"two equal paths, policy={policy}", {}, {}, words=dict(policy=policy), look=all_of_them)
works("both optimized", ana(OPTIMIZED), ana(OPTIMIZED), look=all_of_them)
works("optimized before non-optimized", ana(OPTIMIZED), late(**ana(NON_OPTIMIZED)),
      look=first_of_two)
works("… of writes, too", ana(OPTIMIZED), late(**ana(NON_OPTIMIZED)), look=only(0, "write"),
      command=lambda p, words: bench(p, words, "--rw", "write", "--write-ok",
                                     enough=only(0, "write")))
works("non-optimized where there is no better", ana(INACCESSIBLE), ana(NON_OPTIMIZED), look=only(1))
works("two of them", ana(NON_OPTIMIZED), ana(NON_OPTIMIZED), look=all_of_them)
for name, state in dict(inaccessible=INACCESSIBLE, lost=LOSS, changing=CHANGE, unknown=9).items():
    works(f"a path that is {name} is not used", ana(state), ana(OPTIMIZED), look=only(1))
works("a group that the page does not list is no permission",
      dict(ana={7: OPTIMIZED}, log_page=lambda conn, lid: structures.ana_log({8: OPTIMIZED})
           if lid == 0xC else bytes(512)), ana(OPTIMIZED), look=only(1))
works("three paths, one of them is nobody's", {}, {}, dict(connect=lambda conn, cmd: conn.reset()),
      look=lambda p: all_of_them(p, 2))


# --- a path changes

def once_up(p, body, *args):
    """When all paths have their I/O queue, and reads have had time to wait."""
    def look():
        weft.wait_until(lambda: all(t.commands.count((None, "connect")) > 1 for t in p.targets),
                        "the host to connect")
        after(0.3, body, *args)
    after(0, look)


def set_state(target, state):
    target.ana = {7: state}
    target.event(*ANA_NOTICE)


def await_taken_in(target):
    """Until the host has taken in what it was told before: it asks for a page."""
    pages = target.commands.count((0, "get_log"))
    target.event(*ANA_NOTICE)
    weft.wait_until(lambda: target.commands.count((0, "get_log")) > pages, "the host to look")


def at_the_third(change):
    """A read() that calls change(target) when the third of them has come."""
    seen = []

    def step(conn, cmd):
        seen.append(cmd)
        if len(seen) == 3:
            change(conn.target)
        normally(conn, "read", cmd)
    return step


works("from the first to the second, by an event",
      ana(OPTIMIZED) | dict(read=at_the_third(lambda t: set_state(t, INACCESSIBLE))),
      ana(NON_OPTIMIZED), look=all_of_them)


def refuses_from_the_third(status, state, tells=False):
    """ANA as it is seen without an event: commands are refused, and the page says why."""
    seen = []

    def step(conn, cmd):
        seen.append(cmd)
        if len(seen) < 3:
            return normally(conn, "read", cmd)
        conn.target.ana = {7: state}
        conn.complete(cmd, status, dnr=0)
    return ana(OPTIMIZED) | dict(read=step)


for name, status, state in (("inaccessible", nvme.ANA_INACCESSIBLE, INACCESSIBLE),
                            ("in transition", nvme.ANA_TRANSITION, CHANGE),
                            ("lost", nvme.ANA_LOSS, LOSS)):
    works(f"from the first to the second, by a status: {name}",
          refuses_from_the_third(status, state), ana(NON_OPTIMIZED), look=all_of_them)


@tap.case("a page that a status contradicts counts for nothing, also when another path has news")
def _():
    refused, depth = [], 4              # bench()'s

    def refuse(conn, cmd):
        conn.target.ana = {7: INACCESSIBLE}
        refused.append(cmd)
        conn.complete(cmd, nvme.ANA_INACCESSIBLE, dnr=0)

    def take_time(conn, lid):
        if refused:
            time.sleep(0.4)
        return normally(conn, "log_page", lid)

    def tell_news(target):
        weft.wait_until(lambda: refused, "a refusal")
        for _ in range(3):
            target.event(*ANA_NOTICE)
            time.sleep(0.1)
        set_state(target, OPTIMIZED)

    with paths(ana(OPTIMIZED) | dict(read=refuse, log_page=take_time), ana(INACCESSIBLE)) as p:
        after(0, tell_news, p.targets[1])
        assert bench(p, PATIENT).code == 0
        assert len(refused) <= depth, f"{len(refused)} commands were sent to be refused"


works("an error of the path is the path's",
      dict(read=lambda conn, cmd: conn.complete(cmd, nvme.INTERNAL_PATH_ERROR,
                                               dnr=0)), {},
      look=all_of_them)


@tap.case("nothing is usable for a while: the read waits for an event")
def _():
    with paths(ana(INACCESSIBLE), ana(LOSS)) as p:
        once_up(p, set_state, p.targets[0], NON_OPTIMIZED)
        assert read(p, PATIENT, 0, LONG).code == 0
        only(0)(p)


@tap.case("what an event says has changed is tried before the page is read")
def _():
    told = []

    def when_there_was_io(conn, lid):
        if told:
            weft.wait_until(lambda: any(p.count()), "I/O before the page")
        return normally(conn, "log_page", lid)

    def open_up(target):
        told.append(True)
        set_state(target, OPTIMIZED)

    with paths(ana(INACCESSIBLE) | dict(log_page=when_there_was_io), ana(LOSS)) as p:
        once_up(p, open_up, p.targets[0])
        assert read(p, PATIENT, 0, LONG).code == 0
        only(0)(p)


@tap.case("… and as often as that is in vain it waits on: none of these is one of its tries")
def _():
    refused = []

    def refuse(conn, cmd):
        if conn.target.ana[7] == OPTIMIZED:
            return normally(conn, "read", cmd)
        refused.append(cmd)
        conn.complete(cmd, nvme.ANA_INACCESSIBLE, dnr=0)

    def tell_without_need(target):
        for _ in range(200):            # one that comes while the page is read is not tried
            if len(refused) >= 12:
                break
            target.event(*ANA_NOTICE)
            time.sleep(0.05)
        set_state(target, OPTIMIZED)

    with paths(ana(INACCESSIBLE) | dict(read=refuse), ana(LOSS)) as p:
        once_up(p, tell_without_need, p.targets[0])
        assert read(p, PATIENT, 0, 4096).code == 0
        assert len(refused) >= 12, refused


@tap.case("a change ends without an event: the page is read again")
def _():
    def quiet(target):
        target.ana = {7: OPTIMIZED}

    with paths(ana(CHANGE)) as p:
        once_up(p, quiet, p.targets[0])
        assert read(p, PATIENT).code == 0


@tap.case("a change longer than ANATT costs the path its connection")
def _():
    with paths(ana(CHANGE) | dict(anatt=1)) as p:
        def when_it_is_back():
            weft.wait_until(lambda: p.targets[0].commands.count((0, "property_set")) > 2,
                            "another connection")
            p.targets[0].ana.update({7: OPTIMIZED})
        once_up(p, when_it_is_back)
        assert read(p, PATIENT).code == 0
        assert p.targets[0].commands.count((0, "property_set")) > 2, p.targets[0].commands


# --- paths that are not what they seem

def another(conn, cns, nsid):
    data = normally(conn, "identified", cns, nsid)
    if cns == 3 and data:
        data = bytearray(data)
        data[8] ^= 0xFF
    return data


def nameless(conn, cns, nsid):
    data = normally(conn, "identified", cns, nsid)
    return bytes(4096) if cns == 3 and data else data


def larger_blocks(conn, cns, nsid):
    data = normally(conn, "identified", cns, nsid)
    if cns == 0:
        structures.put(data, "I", 128, 12 << 16)
    return data


works("another namespace under the same id", {}, late(identified=another), look=first_of_two)
works("other blocks", {}, late(identified=larger_blocks), look=first_of_two)
works("no such namespace on the second", {}, late(namespaces={}), look=first_of_two)
works("namespaces without a name are not taken for the same", dict(identified=nameless),
      late(identified=nameless), look=first_of_two)


NAMESPACES_NOTICE = (2, 0, 4)


def normally_identified(conn, cns, nsid):
    return normally(conn, "identified", cns, nsid)


def becomes_another(method):
    """… while the command is in flight: it is answered when the host has looked, from what is there now."""
    looks = []

    def identify(conn, cmd):
        changed = bool(looks)
        normally(conn, "identify", cmd)
        if changed and cmd.dw(10) & 0xFF == 3:
            looks.append("it is told")

    def identified(conn, cns, nsid):
        return (another if looks else normally_identified)(conn, cns, nsid)

    def step(conn, cmd):
        t = conn.target
        if not looks:
            weft.wait_until(lambda: all(other.commands.count((None, "connect")) > 1 for other in t.all),
                            "paths")
            looks.append("it changes")
            t.namespaces, t.changed = {1: Namespace(nvme.pattern(0xBAD, LONG))}, [1]
            t.event(*NAMESPACES_NOTICE)
            weft.wait_until(lambda: len(looks) > 1, "a look")
            await_taken_in(t)
        normally(conn, method, cmd)
    return ana(OPTIMIZED) | dict(identify=identify, identified=identified) | {method: step}


works("a read from what has become another namespace meanwhile is read anew elsewhere",
      becomes_another("read"), late(**ana(NON_OPTIMIZED)), command=read, look=all_of_them)


@tap.case("… a write is written anew")
def _():
    with paths(becomes_another("write"), late(**ana(NON_OPTIMIZED))) as p:
        assert write(p, PATIENT).code == 0
        assert all(p.count("write")), p.count("write")


@tap.case("… and where no path leads to what it was, that is told")
def _():
    for method, command in dict(read=read, write=write).items():
        with paths(becomes_another(method)) as p:
            judge(p, command(p, PATIENT), "another namespace has taken its place", None)


def dies_of_it():
    """A path that breaks when it is asked for the namespace, and does not come back."""
    seen = []

    def identify(conn, cmd):
        if cmd.dw(10) & 0xFF == 0:
            seen.append(cmd)
            conn.reset()
        normally(conn, "identify", cmd)

    def accepted(conn):
        if seen:
            conn.reset()
    return dict(identify=identify, accepted=accepted)


fails("one path has no such namespace, the other breaks of it", "has no namespace 1|reset by peer",
      dict(namespaces={}), dies_of_it(), words=dict(loss_timeout="60m"))
fails("the page is refused", "Get Log Page: ANA: invalid log page",
      ana(OPTIMIZED) | dict(log_page=lambda conn, lid: None))
fails("the page claims more groups than it has", "its groups reach beyond its end",
      ana(OPTIMIZED) | dict(log_page=lambda conn, lid: struct.pack("<QH", 1, 65535)))
fails("… or one more than there is room for", "its groups reach beyond its end",
      ana(OPTIMIZED) | dict(log_page=lambda conn, lid: struct.pack("<QH", 1, 2)))
fails("… or more namespaces", "its groups reach beyond its end",
      ana(OPTIMIZED) | dict(log_page=lambda conn, lid: struct.pack("<QH6xIIQB", 1, 1, 7, 0xFFFFFFFF,
                                                                  1, 1)))
fails("a status that the page contradicts, again and again", "asymmetric access inaccessible",
      ana(OPTIMIZED) | dict(read=lambda conn, cmd: conn.complete(cmd, nvme.ANA_INACCESSIBLE,
                                                                dnr=0)),
      words=dict(io_timeout="30s"))


@tap.case("events about ANA without end do not keep the host busy")
def _():
    with paths(ana(OPTIMIZED) | dict(aer=lambda conn, cmd: conn.complete(cmd, dw0=0x0C0302),
                                     read=lambda conn, cmd: (time.sleep(1),
                                                             normally(conn, "read", cmd)))) as p:
        assert read(p, PATIENT).code == 0
        pages = sum(what == "get_log" for _, what in p.targets[0].commands)
        assert pages < 500, pages


@tap.case("paths to two subsystems are a mistake")
def _():
    with Target() as a, Target() as b:
        done = subprocess.run([weft.BINARY, "id", a.uri() + "," + b.uri("nqn.2026-11.io.weft:b")],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and "paths lead to one subsystem" in done.stderr, done


# --- a lost path, and what it was writing

# Nothing but a probe notices silence.
PROBED = dict(probe="50ms", kato="60m", io_timeout="60m")
HURT = dict(ciu=5, cirn=0x1122334455667788)


def reset(conn, _cmd):
    conn.reset()


def hurt(method, how, **script):
    """The better path, which breaks of a command and does not come back."""
    seen = []

    def step(conn, cmd):
        seen.append(cmd)
        return how(conn, cmd)

    def keep_alive(conn, cmd):
        return how(conn, cmd) if seen else normally(conn, "keep_alive", cmd)

    def accepted(conn):
        if seen:
            conn.reset()
    return ana(OPTIMIZED) | dict(keep_alive=keep_alive, accepted=accepted) | script | {method: step}


def worse(**script):
    return late(**ana(NON_OPTIMIZED) | script)


OVER, BEGUN, UNDER_WAY = (0, 1), (0, 0), (0x13F, 0)     # status, dword 0


class Resets:
    """Of the other controller: answered one after the other with these (status, dword 0)."""

    def __init__(self, *answers, lasts_s=0):
        self.answers, self.asked, self.over = list(answers), [], False
        self.lasts_s, self.begun = lasts_s, 0

    def step(self, conn, cmd):
        self.begun = self.begun or time.monotonic()
        self.asked.append((cmd.dw(10), cmd.dw(12) | cmd.dw(13) << 32))
        if len(self.answers) > 1 and self.answers[1] == OVER:
            time.sleep(max(0, self.begun + self.lasts_s - time.monotonic()))
        status, dw0 = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        time.sleep(0.2)
        self.over = status == 0 and dw0 == 1
        conn.complete(cmd, status, dw0=dw0)

    def write(self, conn, cmd):
        assert self.over, "a write before the lost path was over"
        normally(conn, "write", cmd)


def lost_write(name, *answers, how=silent, words=None, lasts_s=0):
    """It is written anew on the second path, and not before the first one is over: the answer before
    that takes until {lasts_s} after the first question."""
    @tap.case(name)
    def _():
        resets = Resets(*answers, lasts_s=lasts_s)
        with paths(hurt("write", how, **HURT),
                   worse(cross_ctrl_reset=resets.step, write=resets.write, **HURT)) as p:
            result = write(p, PATIENT | PROBED | (words or {}))
            assert result.code == 0, result
            assert set(resets.asked) == {(1 | HURT["ciu"] << 16, HURT["cirn"])}, resets.asked


def lost(name, method, first, second, words=None, asked=None, how=silent):
    """It is carried out on the second path; {asked}: whether that one was to reset the first."""
    @tap.case(name)
    def _():
        with paths(hurt(method, how, **first), worse(**second)) as p:
            command = dict(read=read, write=write)[method]
            result = command(p, PATIENT | PROBED | (words or {}))
            assert result.code == 0, result
            told = (0, "cross_ctrl_reset") in p.targets[1].commands
            assert told == asked, p.targets[1].commands


lost_write("a write on a silent path waits for the reset of its controller", OVER)
lost_write("… which takes a while", BEGUN, UNDER_WAY, UNDER_WAY, OVER)
lost_write("… longer than keep-alive and quiesce time", BEGUN, UNDER_WAY, UNDER_WAY, OVER,
           words=dict(first=dict(kato="4s")), lasts_s=9)      # patience ends at 4 times KATO
lost_write("… also when the path was lost audibly", OVER, how=reset)


def given_up(name, step, more_than):
    """Nobody says that it is over: then it is not written anew either, and that is told."""
    @tap.case(name)
    def _():
        asked, again = [], []

        def reset_step(conn, cmd):
            asked.append(cmd)
            step(conn, cmd)
        with paths(hurt("write", silent, **HURT),
                   worse(cross_ctrl_reset=reset_step, write=lambda conn, cmd: again.append(cmd),
                         **HURT)) as p:
            result = write(p, PROBED | dict(queues=1, first=dict(kato="3s")))
            judge(p, result, "whether it was carried out is not known", None)
            assert len(asked) > more_than and not again, (asked, again)


given_up("… which is not over for ever: whether the write was carried out is not known",
         lambda conn, cmd: conn.complete(cmd, dw0=0), 2)
given_up("… which is not answered: the same", silent, 0)


@tap.case("… of whoever can tell: one that refuses to is not the last that is asked")
def _():
    resets, early = Resets(OVER), []

    def when_all_are_there(conn, _cmd):
        weft.wait_until(lambda: all(t.commands.count((None, "connect")) > 1 for t in p.targets),
                        "paths")
        conn.reset()

    def write_late(conn, cmd):
        if not resets.over:
            early.append(cmd)
        normally(conn, "write", cmd)
    refuses = dict(cross_ctrl_reset=lambda conn, cmd: conn.complete(cmd, nvme.INVALID_FIELD))
    with paths(hurt("write", when_all_are_there, **HURT),
               worse(write=write_late, **HURT | refuses),
               worse(write=write_late, cross_ctrl_reset=resets.step, **HURT)) as p:
        result = write(p, PATIENT | PROBED | dict(probe="30s"))
        assert result.code == 0, result
        assert resets.over and not early, early


lost("a read on a silent path is read anew at once, whatever becomes of the reset", "read", HURT,
     HURT | dict(cross_ctrl_reset=silent), asked=True)
lost("controllers without an instance are not reset", "write", {}, HURT, asked=False, how=reset)
lost("nor by one that cannot", "write", HURT, {}, asked=False, how=reset)
lost("a reset that is refused, of a path that was lost audibly", "write", HURT,
     HURT | dict(cross_ctrl_reset=lambda conn, cmd: conn.complete(cmd, nvme.INVALID_FIELD)),
     asked=True, how=reset)
lost("a silent path, and nobody to ask: when keep-alive and quiesce time have passed", "write",
     dict(cqt=300), {}, words=dict(kato="1s"), asked=False)

lost("… or, without keep-alive, when the path is given up", "write", {}, {},
     words=dict(kato="0", first=dict(loss_timeout="1s")), asked=False)


@tap.case("one that refused is asked again when it has a new controller")
def _():
    resets, refused = Resets(OVER), []

    def step(conn, cmd):
        if refused:
            return resets.step(conn, cmd)
        refused.append(cmd)
        conn.complete(cmd, nvme.INVALID_FIELD)
        after(0, lambda: (await_taken_in(conn.target), conn.close()))
    with paths(hurt("write", silent, **HURT),
               worse(cross_ctrl_reset=step, write=resets.write, **HURT)) as p:
        result = write(p, PATIENT | PROBED)
        assert result.code == 0 and refused, result


def slow_read(conn, cmd):
    time.sleep(1)
    normally(conn, "read", cmd)


def read_when_asked(conn, cmd):
    weft.wait_until(lambda: (0, "keep_alive") in conn.target.commands, "a question")
    normally(conn, "read", cmd)


def is_asked(name, wanted, *scripts):
    """A read takes much longer than usual."""
    @tap.case(name)
    def _():
        with paths(*scripts) as p:
            assert read(p, PATIENT | PROBED).code == 0
            assert ((0, "keep_alive") in p.targets[0].commands) == wanted, p.targets[0].commands


is_asked("a path whose command takes unusually long is asked whether it is there", True,
         ana(OPTIMIZED) | dict(read=read_when_asked), worse())
is_asked("… but not the only one: there is nothing to go on with", False, dict(read=slow_read))


@tap.case("a path that answers other commands is not silent, whatever becomes of a Keep Alive")
def _():
    held = []

    def hold_one(conn, cmd):
        if held:
            return normally(conn, "read", cmd)
        held.append(lambda: normally(conn, "read", cmd))

    def suspected_often(p):
        """… and the other one asked each time, to compare."""
        assert p.targets[1].commands.count((0, "keep_alive")) > 3
        if len(held) == 1:
            held.append(held[0]())

    with paths(dict(read=hold_one, keep_alive=lambda conn, cmd: None), {}) as p:
        result = bench(p, PATIENT | PROBED | dict(probe="500ms"), enough=suspected_often)
        assert result.code == 0, result
        assert len(held) == 2 and (0, "keep_alive") in p.targets[0].commands, p.targets[0].commands
        assert not json.loads(result.out)["losses"], json.loads(result.out)["losses"]


class Door:
    """A path that falls silent of a write, and lets the host in again at its tenth attempt."""

    def __init__(self):
        self.lost, self.attempts = False, 0

    def write(self, conn, cmd):
        if not self.lost:
            self.lost = True
            raise Silence
        self.written(conn, cmd)

    def keep_alive(self, conn, cmd):
        if self.lost and self.attempts < 10:
            raise Silence
        normally(conn, "keep_alive", cmd)

    def accepted(self, conn):
        self.attempts += self.lost
        if self.lost and self.attempts < 10:
            conn.reset()

    def written(self, conn, cmd):
        assert self.attempts >= 10, f"written anew after {self.attempts} attempts to connect"
        normally(conn, "write", cmd)


def waits_for_the_door(name, first, second, asked):
    """Keep-alive takes an hour to pass: what is left is the word of the lost path's new controller.
    {asked}: for how many resets it is asked."""
    @tap.case(name)
    def _():
        door = Door()
        with paths(ana(OPTIMIZED) | dict(write=door.write, keep_alive=door.keep_alive,
                                         accepted=door.accepted) | HURT | first,
                   worse(write=door.written) | second) as p:
            result = write(p, PATIENT | PROBED)
            assert result.code == 0 and door.lost, result
            assert p.targets[0].commands.count((0, "cross_ctrl_reset")) == asked, \
                p.targets[0].commands


def other_instance(conn, cns, nsid):
    """An instance for each controller that ever was, whatever its number."""
    data = normally(conn, "identified", cns, nsid)
    if cns == 1:
        struct.pack_into("<Q", data, 136, conn.index + 1)
    return data


REFUSES = dict(cross_ctrl_reset=lambda conn, cmd: conn.complete(cmd, nvme.INVALID_FIELD))

waits_for_the_door("a silent path, and nobody else to ask: its new controller is, when it is back",
                   dict(numbered_anew=True), {}, asked=1)
waits_for_the_door("… so it is when the other one refuses", dict(numbered_anew=True), HURT | REFUSES,
                   asked=1)
waits_for_the_door("… one that has the lost one's number, of another instance, says enough",
                   dict(identified=other_instance) | REFUSES, {}, asked=0)


# --- a stranger's target: it goes on with what it was given

@tap.case("a target that lets the host in again may still have the lost write: it is not undone late")
def _():
    with Stranger() as s:
        assert write(s.target, PATIENT | s.WORDS).code == 0
        newer = b"newer" * 1024
        done = run("write", s.target.uri(nsid=1, **PATIENT | s.WORDS), "--offset", "4096",
                   stdin=newer[:4096])
        assert done.code == 0, done
        s.late.wait(30)
        assert s.target.namespaces[1].data[4096:8192] == newer[:4096], s.order
        assert s.order[0] == "late", s.order


def not_undone(name, make=Stranger, **script):
    """… by what its new controller is."""
    @tap.case(name)
    def _():
        with make(**script) as s:
            assert write(s.target, PATIENT | s.WORDS).code == 0
            assert s.order == ["late", "again"], s.order


def talks_nonsense(conn, _cmd):
    """… and does not listen to what is said of it."""
    conn.completion(0xFFFE)
    conn.target.late.wait(60)
    raise Silence


def numbered_as_the_lost_one(conn, cmd):
    """The number is free when the lost one's admin queue has gone."""
    if cmd.dw(10) >> 16 == 0:
        weft.wait_until(lambda: not conn.target.controllers, "the lost controller's number")
    normally(conn, "connect", cmd)


not_undone("… nor when it was the host that hung up", how=talks_nonsense)
# The host hangs up: it is back long before the write is carried out.
not_undone("… nor when its new controller has the number and the instance of the lost one",
           how=talks_nonsense, connect=numbered_as_the_lost_one, **HURT)
not_undone("… nor when its new controller refuses to tell", numbered_anew=True, **HURT | REFUSES)
not_undone("… nor when it hangs up on the next connection, which is over at once", later=[reset])
not_undone("… nor when it falls silent again and again", later=[silent] * 5, counts_s=6, kas=60)
not_undone("… nor when it counts keep-alive in steps of five seconds (KAS)", kas=50, counts_s=5)
not_undone("… nor when it is lost more often than a host keeps losses apart, and those before are over",
           make=LostOften, how=talks_nonsense, **HURT)


@tap.case("a write of a target that is given up is not told as failed while it may still be carried out")
def _():
    with Stranger(accepted=lambda conn: s.lost and conn.reset()) as s:
        result = write(s.target, PATIENT | s.WORDS | dict(loss_timeout="100ms"))
        assert s.late.is_set(), result
        judge(s.target, result, "whether it was carried out is not known", None)
        assert s.order == ["late"], s.order


def of_two_queues(name, make, wanted):
    @tap.case(name)
    def _():
        with make() as s, tempfile.NamedTemporaryFile(prefix="weft-") as file:
            file.write(b"x" * 8192)
            file.flush()
            s.host = command.start("cp", file.name,
                                   s.target.uri(nsid=1, **PATIENT | s.WORDS | dict(queues=2)),
                                   "--bs", "4096", "--jobs", "2", "--depth", "1")
            _, err = s.host.communicate(timeout=60)
            s.late.wait(30)
            assert s.host.returncode == 0, err
            assert sorted(s.order) == ["again 1", "again 2", "late"], s.order
            wanted(s.order.index)


def only_the_first_goes_at_once(at):
    assert at("again 1") < at("late") < at("again 2")


def both_go_at_once(at):
    assert at("again 1") < at("late") and at("again 2") < at("late")


of_two_queues("a connection that its controller closed says nothing of the writes on the others",
              lambda: OfTwoQueues([1]), only_the_first_goes_at_once)
of_two_queues("… each that it closed says so of its own", lambda: OfTwoQueues([1, 2]), both_go_at_once)
of_two_queues("… that of the admin queue says so of all, also if it is not the first",
              lambda: OfTwoQueues([1, 0]), both_go_at_once)
of_two_queues("… however long the controller takes to close it", EndsSlowly, both_go_at_once)


# --- a long command, and a path that changes under it

class Midway:
    """A write of many pieces. The first path holds three of them until {change} was seen by the host,
    and then answers them one after the other. What comes to it later is counted."""

    def __init__(self, change):
        self.change, self.held, self.late = change, [], 0

    def script(self, **more):
        return more | dict(write=self.write, mqes=3)

    def write(self, conn, cmd):
        if len(self.held) == 3:
            self.late += 1
            return normally(conn, "write", cmd)
        self.held.append((conn, cmd))
        if len(self.held) == 3:
            threading.Thread(target=self.go_on, args=[conn.target], daemon=True).start()
        return None

    def go_on(self, t):
        weft.wait_until(lambda: all((0, "identify") in other.commands for other in t.all), "paths")
        self.change(t)
        self.until_taken_in(t)
        for conn, cmd in self.held:
            normally(conn, "write", cmd)
            time.sleep(0.2)             # in which a host that may not send more pieces could

    @staticmethod
    def until_taken_in(t):
        """What the admin queue was told before. The second Keep Alive comes when the first is answered."""
        def count():
            return sum(what == "keep_alive" for _, what in t.commands)

        before = count()
        weft.wait_until(lambda: count() >= before + 2, "two Keep Alives")


def midway(name, change, *scripts, wanted, **first):
    """{wanted}: pieces by path, those of before included, and how many were late."""
    @tap.case(name)
    def _():
        way = Midway(change)
        with paths(way.script(**first), *(late(mqes=3, **script) for script in scripts)) as p:
            result = write(p, PATIENT | dict(kato="1s"), offset=0, length=LONG)
            assert result.code == 0, result
            assert (*p.count("write"), way.late) == wanted, (p.count("write"), way.late)


def replace(t):
    t.namespaces, t.changed = {1: Namespace(bytes(LONG))}, [1]
    t.event(*NAMESPACES_NOTICE)


def as_replaced(conn, cns, nsid):
    is_shared = all(t.namespaces is conn.target.namespaces for t in conn.target.all)
    return (normally_identified if is_shared else another)(conn, cns, nsid)


def close_access(t):
    t.ana = {7: INACCESSIBLE}
    t.event(*ANA_NOTICE)


PIECES = LONG >> 15
midway("nothing more of a long write goes to what has become another namespace; it is written anew elsewhere",
       replace, ana(NON_OPTIMIZED), wanted=(3, PIECES, 0), identified=as_replaced, **ana(OPTIMIZED))
midway("the rest of a long write goes where access has moved", close_access, ana(NON_OPTIMIZED),
       wanted=(3, PIECES - 3, 0), **ana(OPTIMIZED))


def replaces_the_first():
    """The first path's namespace becomes another one while this path has the rest of the write."""
    begun = []

    def write(conn, cmd):
        if not begun:
            begun.append(cmd)
            replace(conn.target.first)
            Midway.until_taken_in(conn.target.first)
        return normally(conn, "write", cmd)
    return ana(NON_OPTIMIZED) | dict(write=write)


midway("… and if it then turns out that another namespace took its beginning, all of it is written anew",
       close_access, replaces_the_first(), wanted=(3, 3 + PIECES, 0), identified=as_replaced,
       **ana(OPTIMIZED))


# --- what a flush covers

FATE = "writes that it had completed .* lost before they were flushed"


def copy_in(p, words, *more):
    """Many small writes, by several queues; and a flush, by the first."""
    with tempfile.NamedTemporaryFile(prefix="weft-") as file:
        file.write(nvme.pattern(0xF1, 1 << 18))
        file.flush()
        return run("cp", file.name, p.uri(nsid=1, **words), "--bs", "4096", *more)


def until_all_have_a_queue(conn, cmd):
    """The first writes wait for the other paths, so that each gets some."""
    t = conn.target
    weft.wait_until(lambda: all(sum(what == "connect" for _, what in other.commands) > 1
                                for other in t.all), "paths")
    normally(conn, "write", cmd)


def flushed(name, *scripts, wanted, queues=1):
    """{wanted}: flushes, by path; each is behind the last write of its path."""
    @tap.case(name)
    def _():
        with paths(*(dict(write=until_all_have_a_queue) | script for script in scripts)) as p:
            result = copy_in(p, PATIENT | dict(queues=queues), "--jobs", str(queues))
            assert result.code == 0, result
            assert all(p.count("write")), "a path had no write"
            counts = p.count("flush")
            assert sorted(counts) == sorted(wanted), counts
            for t, count in zip(p.targets, counts):
                last = [what for qid, what in t.commands if what in ("write", "flush")][-1]
                assert not count or last == "flush", t.commands


flushed("a flush goes to every controller that has completed writes", {}, {}, wanted=[1, 1])
flushed("… whichever queue they came by", {}, {}, {}, wanted=[1, 1, 1], queues=3)
flushed("… and has a volatile cache: without one a flush is no more than a question", dict(vwc=0),
        dict(vwc=0), wanted=[0, 1])


def fails_once(status):
    """Flush is answered with an error of the path, and then as it should be."""
    answers = [status]

    def flush(conn, cmd):
        return conn.complete(cmd, answers.pop(), dnr=0) if answers else normally(conn, "flush", cmd)
    return dict(flush=flush)


for status in (0x300, 0x360, 0x370):
    flushed(f"a path that lives and answers {status:X}h is asked again, not passed over",
            fails_once(status), {}, wanted=[2, 1])


works("a controller that has completed none is not asked", ana(OPTIMIZED),
      late(**ana(NON_OPTIMIZED)), look=only(0, "flush"), command=write)
works("… nor one twice whose writes were durable when they completed", {}, {},
      command=lambda p, words: run("write", p.uri(nsid=1, **words), "--fua", stdin=bytes(LONG)),
      look=lambda p: only(p.count("flush").index(1), "flush")(p))


@tap.case("a flush that one controller fails has failed")
def _():
    refuse = dict(flush=lambda conn, cmd: conn.complete(cmd, nvme.WRITE_FAULT))
    for first, second in (({}, refuse), (refuse, {})):
        with paths(dict(write=until_all_have_a_queue) | first,
                   dict(write=until_all_have_a_queue) | second) as p:
            judge(p, copy_in(p, PATIENT, "--jobs", "1"), "Flush: write fault", None)


# The better path breaks of the flush: what it has completed, nobody has flushed.

def unflushed(name, why, comes_back=False, nmic=1, words=None):
    """{why}: it fails so; None: it succeeds, and reads back what was written."""
    @tap.case(name)
    def _():
        flushes = []

        def flush(conn, cmd):
            flushes.append(cmd)
            if len(flushes) == 1:
                conn.reset()
            normally(conn, "flush", cmd)

        def accepted(conn):
            if flushes and not comes_back:
                conn.reset()
        with paths(ana(OPTIMIZED) | dict(flush=flush, accepted=accepted, nmic=nmic),
                   worse(nmic=nmic)) as p:
            result = write(p, PATIENT | (words or {}))
            if why:
                return judge(p, result, why, None)
            assert result.code == 0, result
            assert "reading back what was written" in result.err, result
            assert nmic or len(flushes) == 2, "it was not flushed where it was written"


unflushed("a lost controller's writes: a namespace of several is flushed through another one", None)
unflushed("… one that is its controller's alone is flushed there, when that is back", None,
          comes_back=True, nmic=0)
unflushed("… or not at all, and that is told", FATE, nmic=0, words=dict(loss_timeout="1s"))


# --- what is shown

def ls(p, *more):
    return run("ls", p.uri(**PATIENT), *more)


@tap.case("ls shows the paths, and the way to the namespace through each")
def _():
    with paths(ana(OPTIMIZED), ana(NON_OPTIMIZED), ana(CHANGE)) as p:
        result = ls(p, "--json")
        subsys, = json.loads(result.out)["subsystems"]
        assert [c["state"] for c in subsys["controllers"]] == ["live"] * 3, subsys
        assert [c["uri"] for c in subsys["controllers"]] == \
            [f"nvme+tcp://127.0.0.1:{t.addr[1]}" for t in p.targets], subsys
        access = {x["path"]: x["ana_state"] for x in subsys["namespaces"][0]["paths"]}
        assert access == {0: "optimized", 1: "non-optimized", 2: "change"}, access
        tree = ls(p).out.decode()
        for t, word in zip(p.targets, ("optimized", "non-optimized", "change")):
            assert f"{word} through nvme+tcp://127.0.0.1:{t.addr[1]}\n" in tree, tree


@tap.case("ls tells of a path that is not there, and fails")
def _():
    with paths({}, dict(accepted=lambda conn: conn.reset())) as p:
        result = ls(p)
        assert result.code == 1 and "1 of 2 controllers could not be looked at" in result.last, \
            result
        assert f":{p.targets[1].addr[1]}  reconnecting" in result.out.decode(), result.out


@tap.case("a command that its path refuses is of a stall, also if another path takes it at once")
def _():
    reads = []

    def has_queue(target):
        return [what for _, what in target.commands].count("connect") > 1

    def refuse(conn, cmd):
        if has_queue(p.targets[1]):
            reads.append(cmd)
        if len(reads) < 100:
            return normally(conn, "read", cmd)
        conn.target.ana = {7: INACCESSIBLE}
        conn.complete(cmd, nvme.ANA_INACCESSIBLE, dnr=0)

    with paths(ana(OPTIMIZED) | dict(read=refuse), ana(NON_OPTIMIZED)) as p:
        result = bench(p, PATIENT, enough=all_of_them)
        assert result.code == 0, result
        stalls = json.loads(result.out)["stalls"]
        assert stalls["count"] >= 1 and stalls["switches"], stalls


@tap.case("bench counts stalls, and I/Os that changed the path")
def _():
    with paths(ana(OPTIMIZED) | dict(read=at_the_third(lambda t: t.connections[1].reset())),
               ana(NON_OPTIMIZED)) as p:
        result = bench(p, PATIENT, enough=all_of_them)
        assert result.code == 0, result
        stalls = json.loads(result.out)["stalls"]
        assert stalls["count"] >= 1 and stalls["longest_ns"] <= stalls["total_ns"], stalls
        assert sum(n for _, _, n in stalls["histogram"]) == stalls["count"], stalls


# --- our own target

CONFIG = """
listen: [ "nvme+tcp://127.0.0.1:0?portid=1", "nvme+tcp://127.0.0.1:0?portid=2" ]
subsystems:
  - nqn: nqn.2026-11.io.weft:test
    allow_any_host: true
    namespaces:
      - { nsid: 1, backend: "mem:16M" }
"""


def both_ports(t):
    return ",".join(f"{l['uri']}/{t.nqn}" for l in t.ctl("status")["listeners"])


def move(t, port):
    """Group 1 to this port, at once."""
    t.ctl("ana-set", nqn=t.nqn, rules=[
        dict(group=1, portid=port, state="optimized"),
        dict(group=1, portid=3 - port, state="inaccessible")])


@tap.case("ls of a discovery service shows the way through each of the controllers it lists")
def _():
    with weft.Target(config=CONFIG) as t:
        move(t, 2)
        ports = [l["uri"] for l in t.ctl("status")["listeners"]]
        result = run("ls", ports[0], "--json")
        subsys, = json.loads(result.out)["subsystems"]
        assert {c["path"]: c["uri"] for c in subsys["controllers"]} == dict(enumerate(ports))
        access = {x["path"]: x["ana_state"] for x in subsys["namespaces"][0]["paths"]}
        assert access == {0: "inaccessible", 1: "optimized"}, access
        tree = run("ls", ports[0]).out.decode()
        for port, word in zip(ports, ("inaccessible", "optimized")):
            assert f"{word} through {port}\n" in tree, tree


@tap.case("ls of a discovery service: a controller that is gone, and one that has another namespace")
def _():
    other = CONFIG.replace('"mem:16M"', '"mem:16M", uuid: 11111111-2222-4333-8444-555555555555')
    with weft.Target(config=CONFIG) as t, weft.Target(config=other) as stranger:
        move(t, 2)
        entries = [structures.entry(t.nqn, port)
                   for port in (weft.free_port(), t.addr[1], stranger.addr[1])]
        with Target(log=structures.DiscoveryLog(entries)) as service:
            result = run("ls", service.uri(""), "--json")
            subsys, = json.loads(result.out)["subsystems"]
            assert [c["state"] for c in subsys["controllers"]] == ["failed", "live", "live"], subsys
            access = {x["path"]: x["ana_state"] for x in subsys["namespaces"][0]["paths"]}
            assert access == {0: "unknown", 1: "inaccessible", 2: "absent"}, access
            tree = run("ls", service.uri("")).out.decode()
            assert f"inaccessible through nvme+tcp://127.0.0.1:{t.addr[1]}\n" in tree, tree


LONELY = """
listen: [ "nvme+tcp://127.0.0.1:0" ]
subsystems:
  - nqn: nqn.2026-11.io.weft:test
    allow_any_host: true
    namespaces: [ { nsid: NSID, backend: "mem:16M" } ]
"""


@contextlib.contextmanager
def of_different_namespaces():
    """Two controllers of a subsystem, with namespace 1 and with namespace 3."""
    with weft.Target(config=LONELY.replace("NSID", "1")) as one, \
            weft.Target(config=LONELY.replace("NSID", "3")) as three:
        yield one, three


def uri_of(*targets, **words):
    return ",".join(command.uri(t, **words) for t in targets)


def ways(out):
    """Namespace: through which path, how."""
    subsys, = json.loads(out)["subsystems"]
    return {ns["nsid"]: {p["path"]: p["ana_state"] for p in ns["paths"]}
            for ns in subsys["namespaces"]}


BOTH = {1: {0: "optimized", 1: "absent"}, 3: {0: "absent", 1: "optimized"}}


@tap.case("a namespace that only one of two controllers has is found, whichever is asked first")
def _():
    block = nvme.pattern(3, 4096)
    with of_different_namespaces() as (one, three):
        for place in (uri_of(one, three), uri_of(three, one)):
            command.text("write", place, "--ns", 3, stdin=block)
            assert command.done("read", place, "--ns", 3, "--length", "4K") == block
            command.text("read", place, "--ns", 1, "--length", "4K")
            command.fails("read", place, "--length", "4K", words=["has 1, 3: add ?nsid=N"])
            assert "uuid" in command.text("id", place, "--ns", 3)
            assert command.as_json("id", place, "--ns", 3)["namespaces"] == [1, 3]
            command.text("feature", "get", "err-recovery", place, "--ns", 3)
            command.text("raw", "admin", "--opcode", "0x06", "--namespace-id", 3, "-l", 4096, place)
            command.text("raw", "io", "--opcode", "0x02", "--namespace-id", 3, "-l", 4096, place)
            command.fails("read", place, "--ns", 7, "--length", "4K", words=["has no namespace 7"])
        assert ways(command.done("ls", uri_of(one, three), "--json")) == BOTH


@tap.case("… also where a discovery service lists them; its ls shows the same")
def _():
    with of_different_namespaces() as (one, three):
        entries = [structures.entry(one.nqn, t.addr[1]) for t in (one, three)]
        with Target(log=structures.DiscoveryLog(entries)) as service:
            place = service.uri(one.nqn, paths="discover")
            for nsid in (1, 3):
                command.text("read", place, "--ns", nsid, "--length", "4K")
            assert ways(command.done("ls", place, "--json")) == BOTH
            assert ways(command.done("ls", service.uri(""), "--json")) == BOTH


@tap.case("… and where its path is not there, that is told")
def _():
    with of_different_namespaces() as (one, three):
        place = uri_of(one, three)
        three.stop()
        command.fails("read", place, "--ns", 3, "--length", "4K",
                      words=["has no namespace 3", "1 of its 2 paths is not live",
                             f"127.0.0.1:{three.addr[1]} reconnecting", "refused"])


@tap.case("the group moves from port to port under load, and nothing is lost")
def _():
    with weft.Target(config=CONFIG) as t:
        move(t, 1)
        load = subprocess.Popen(
            # Without probes: a busy machine is not a lost path.
            [weft.BINARY, "bench", both_ports(t) + "?probe=0", "--ns", "1", "--rw", "randrw",
             "--verify", "--write-ok", "--depth", "16", "--time", "4", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            for turn in range(20):
                time.sleep(0.15)
                move(t, 2 - turn % 2)
            out, err = load.communicate(timeout=60)
        finally:
            load.kill()
        assert load.returncode == 0, err
        result = json.loads(out)
        assert result["ok"] and not result["failed"] and not result["reconnects"], result["why"]


sys.exit(tap.run_wide(4))
