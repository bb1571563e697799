"""host_bad - what misbehaving targets share: run `weft` against a script, and judge the outcome.

    fails(name, why, …)      exit status 1 and a sentence that matches `why`
    works(name, …)           exit status 0 and the right bytes
    hurts(name, why, …)      in every connection: fails; only once: the host recovers, and works

A script is what tests/lib/target.py takes: words and functions. Whatever happens: no hang, no
signal, no sanitizer, no wrong byte, and nothing that a host may not send."""
import os
import pathlib
import re
import subprocess
import tempfile

import nvme
import weft
from tap import case
from target import Namespace, Silence, Target, normally      # noqa: F401: for the scripts

HANG_S = 120
SIZE = 16384            # bytes a case reads or writes: one command that needs R2T
OFFSET = 4096

# A target that is silent is given up soon; one that says something is waited for, on a busy machine
# too.
HASTY = dict(connect_timeout="1s", admin_timeout="1s", io_timeout="500ms", abort_timeout="300ms",
             reconnect_delay="20ms", reconnect_delay_max="50ms", loss_timeout="1s", kato="1s", queues=1)
PATIENT = dict(connect_timeout="30s", admin_timeout="30s", io_timeout="30s", abort_timeout="10s",
               reconnect_delay="20ms", reconnect_delay_max="50ms", loss_timeout="30s", queues=1)

# What a host may answer, as (FES, FEI); FEI None is any. See NVMe/TCP, H2CTermReq.
TYPE, FLAGS, HLEN, PDO, PLEN = (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)
FIELD, SEQUENCE, HEADER_DIGEST, OUT_OF_RANGE = (1, None), (2, None), (3, None), (4, None)
LIMIT, UNSUPPORTED = (5, None), (6, None)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.last = (err.strip().splitlines() or [""])[-1]

    def __str__(self):
        return f"exit status {self.code}, stderr:\n{self.err}"


def run(*argv, stdin=b""):
    try:
        done = subprocess.run([weft.BINARY, *argv], input=stdin, capture_output=True,
                              timeout=HANG_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"weft {argv[0]} hangs; stderr: {late.stderr}") from None
    result = Result(done.returncode, done.stdout, done.stderr.decode(errors="backslashreplace"))
    assert result.code in (0, 1), f"weft {' '.join(argv)}: {result}"
    assert not weft.SANITIZER.search(result.err), result
    if result.code == 1:
        check_sentence(result)
    return result


def check_sentence(result):
    assert result.last.startswith("weft"), f"no sentence: {result}"
    assert result.last.isprintable() and 20 < len(result.last) < 600, f"a poor sentence: {result}"


# --- the commands; each returns a Result, and has looked at the bytes

def read(t, words, offset=OFFSET, length=SIZE):
    right = bytes(t.namespaces[1].data[offset:offset + length]) if 1 in t.namespaces else None
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = pathlib.Path(folder, "out")
        result = run("read", t.uri(nsid=1, **words), "--offset", str(offset), "--length",
                     str(length), "-o", str(path))
        got = path.read_bytes() if path.exists() else b""
    assert right is None or right.startswith(got), f"wrong bytes were read; {result}"
    assert result.code or got == right, f"{len(got)} bytes were read; {result}"
    return result


def write(t, words, offset=OFFSET, length=SIZE):
    ns = t.namespaces[1]
    old, new = bytes(ns.data), nvme.pattern(os.getpid(), length)
    with tempfile.NamedTemporaryFile(prefix="weft-") as file:
        file.write(new)
        file.flush()
        result = run("write", t.uri(nsid=1, **words), "--offset", str(offset), "-i", file.name)
    now, end = bytes(ns.data), offset + length
    assert now[:offset] == old[:offset] and old[end:].startswith(now[end:]), \
        f"bytes outside of the write changed; {result}"
    assert result.code or now[offset:end] == new, f"it was not written; {result}"
    return result


def id(t, words):
    return run("id", t.uri(**words), "--json")


def discover(t, words):
    return run("discover", t.uri("", **words), "--json")


# --- cases

def judge(t, result, why, term):
    assert result.code == 1, f"it worked; {result}"
    assert re.search(why, result.last, re.I), f"the sentence does not match {why!r}; {result}"
    if term:
        seen = [(x.fes, x.fei) for x in t.terms]
        assert any(fes == f and fei in (None, i) for fes, fei in term for f, i in seen), \
            f"H2CTermReqs {seen}, wanted one of {term}; {result}"


def fails(name, why, command=read, term=None, words=None, **script):
    @case(name)
    def _():
        with Target(**script) as t:
            judge(t, command(t, PATIENT | (words or {})), why, term)


def works(name, command=read, words=None, look=None, **script):
    @case(name)
    def _():
        with Target(**script) as t:
            result = command(t, PATIENT | (words or {}))
            assert result.code == 0, result
            if look:
                look(t, result)


def survives(name, command=read, words=None, **script):
    """Work or fail, both can be defended; but cleanly."""
    @case(name)
    def _():
        with Target(**script) as t:
            command(t, HASTY | (words or {}))


def once(name, body):
    """The first time `body`, then what the target does without a script."""
    done = []

    def step(conn, *args, **kw):
        if done:
            return normally(conn, name, *args, **kw)
        done.append(True)
        return body(conn, *args, **kw)
    return step


def hurts(name, why, command=read, term=None, words=None, **script):
    fails(f"{name}, always", why, command, term, words, **script)

    @case(f"{name}, once")
    def _():
        first = {n: once(n, b) if callable(b) else b for n, b in script.items()}
        with Target(**first) as t:
            result = command(t, PATIENT | (words or {}))
            assert result.code == 0, f"it did not recover; {result}"
