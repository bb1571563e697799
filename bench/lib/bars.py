"""bars.py - what the matrix has to come to, as ratios of one pair to another.

Four pairs count: our host on our target; another client on our target; that client on a peer, which
is what somebody has without us; and the bare program, which is the limit.
"""

from cases import MAIN, Case
from section import Bar, pair_name

SMALL = [(rw, depth) for rw in ("read", "write") for depth in (32, 128)]
LARGE = [(rw, depth) for rw in ("read", "write") for depth in (8, 32)]


class Judge:
    """Ratios of one pair to another, by case."""

    def __init__(self, turns, pair, base):
        self.turns, self.pair, self.base = {case: turn for case, turn in turns}, pair, base

    def bar(self, case, key, sign, limit, what=""):
        turn = self.turns.get(case)
        known = turn and self.pair in turn.runs and self.base in turn.runs
        ratio = turn.ratio(self.pair, self.base, key) if known else None
        return Bar(f"{case.label}: {what or 'rate'}, {self.pair} / {self.base}", ratio, sign, limit,
                   " ×")

    def rates(self, bs, some, limit):
        return [self.bar(Case(MAIN, bs, rw, depth), "iops", "≥", limit) for rw, depth in some]

    def alone(self, key, limit, what):
        """At depth 1."""
        return [self.bar(Case(MAIN, 4096, rw, 1), key, "≤", limit, what)
                for rw in ("read", "write")]


def bars_of_client(judge):
    return [*judge.rates(4096, SMALL, 1.2), *judge.rates(131072, LARGE, 1.2),
            *judge.alone("mean_us", 1, "mean"), *judge.alone("p99_us", 1, "99 %"),
            *(judge.bar(Case(MAIN, 4096, rw, 32), "p9999_us", "≤", 1, "99.99 %")
              for rw in ("read", "write"))]


def bars_of_host(judge):
    return [*judge.rates(4096, SMALL, 1.5), *judge.rates(131072, LARGE, 1.3),
            *judge.alone("mean_us", 0.8, "mean")]


def bars_of_limit(judge):
    return [*judge.rates(4096, [("read", 32)], 0.6), *judge.rates(131072, LARGE, 0.9),
            *judge.alone("mean_us", 1.2, "mean")]


def of_matrix(turns, clients, servers):
    """@clients, @servers: those of others, of which the first of each count."""
    limit = bars_of_limit(Judge(turns, "weft", "bare"))
    if not clients or not servers:
        return limit
    theirs = pair_name(clients[0], servers[0])
    return [*bars_of_client(Judge(turns, f"{clients[0].name} on weft", theirs)),
            *bars_of_host(Judge(turns, "weft", theirs)), *limit]
