"""chaos.py - now and then something goes wrong, under a load that checks every byte.

Whatever of stages.py and the like happens to one command in a hundred, nothing is lost, torn or
misplaced. Where connections end, the host gets over it, and no I/O fails; where commands are not
answered, or refused, those may fail. The seed is in the name of the case."""
import random
import re

import nvme
import pdu
from host_bad import PATIENT, Target, case, normally, run
from host_bad.stages import c2hterm, fin, half, not_nvme, rst, silence

ODDS = 0.01
WORDS = PATIENT | dict(io_timeout="2s", abort_timeout="500ms", hdgst=1, ddgst=1, queues=2)


def spoiled(conn, cmd):
    """Wrong bytes, and a digest that says so."""
    conn.c2hdata(cmd.cid, 0, bytes(cmd.length), spoil=random.choice(("hdgst", "ddgst")))
    conn.complete(cmd)


def short(conn, cmd):
    conn.c2hdata(cmd.cid, 0, bytes(cmd.length - 512))
    conn.complete(cmd)


def unknown(conn, cmd):
    conn.completion(cmd.cid ^ 0x7000)


def refused(conn, cmd):
    conn.complete(cmd, random.choice((0x22, 0x06)), dnr=0)


def on(end):
    return lambda conn, _cmd: end(conn)


def after(end):
    """Carried out, but the host does not learn of it."""
    def step(conn, cmd):
        conn.complete = lambda *_: end(conn)
        normally(conn, "write", cmd)
    return step


ANY = [*map(on, (rst, fin, half, c2hterm, not_nvme)), unknown]
KINDS = {
    "read": [*ANY, spoiled, short],
    "write": [*ANY, *map(after, (rst, fin, c2hterm))],
    "solicit": [*ANY, lambda conn, cmd: conn.r2t(cmd.cid, 7, 0, cmd.length + 4),
                lambda conn, cmd: conn.c2hdata(cmd.cid, 0, bytes(64), pdu.LAST)],
}
FAILING = {"read": [on(silence), refused], "write": [on(silence), after(silence), refused],
           "solicit": [on(silence), refused]}
WRONG = "lost write|torn|corrupt|misplaced|foreign|zeroes|generation"


def scripted(seed, failing):
    rng, count = random.Random(seed), []

    def step(method):
        kinds = KINDS[method] + FAILING[method] * failing

        def body(conn, cmd):
            if rng.random() >= ODDS:
                return normally(conn, method, cmd)
            count.append(method)
            return rng.choice(kinds)(conn, cmd)
        return body
    return {method: step(method) for method in KINDS}, count


def chaos(seed, failing=False, **words):
    @case(f"chaos, seed {seed}" + ", some I/O may fail" * failing
          + "".join(f", {name} {value}" for name, value in words.items()))
    def _():
        script, count = scripted(seed, failing)
        with Target(**script, **words) as t:
            t.namespaces[1].data = bytearray(nvme.pattern(seed, 1 << 20))
            result = run("bench", t.uri(nsid=1, **WORDS), "--rw", "randrw", "--write-ok",
                         "--verify", "--time", "4", "--size", "512K", "--depth", "8",
                         "--queues", "2", "--bs", "4K", "--seed", str(seed))
            text = f"after {len(count)} troubles: {result}"
            assert not re.search(WRONG, result.err), text
            assert result.code == 0 or failing and re.search("I/Os? failed", result.last), text
            assert count, "nothing went wrong"


WAYS = [{}, dict(icd=0, r2t_piece=1024), dict(icd=0, maxh2c=4096, piece=512),
        dict(success=True, icd=0), dict(no_flow=False, mqes=7)]
for seed, words in enumerate(WAYS, 1):
    chaos(seed, **words)
    chaos(seed + 100, failing=True, **words)
