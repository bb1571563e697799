"""rounds.py - things that are compared take turns, again and again.

    round 1:  case 1: a b c    case 2: a b c    …       round 2:  case 1: b c a    …

A machine that gets slower or faster meets all of them alike. A run during which somebody else was
at work, or the two CPUs moved apart, is repeated, a few times; then it stands, and is marked. The
numbers are medians over the rounds; a ratio is the median of the rounds' own ratios.
"""

import statistics
import sys
import time
from dataclasses import dataclass, field

import distance
import servers

REPEATS = 3
PAUSE_S = 2                     # before a repeat: what was at work may have ended
MARKED_MAX = 0.1                # of all runs, for a conclusion
CPUS = distance.Distance(servers.BUILD / "bench" / "distance", servers.SERVER_CPU,
                         servers.CLIENT_CPU)


@dataclass
class Turn:
    """@runs: {who: a function that runs it once and returns its numbers}."""
    name: str
    runs: dict
    told: list = field(default_factory=list)            # of each round: {who: numbers}
    marks: list = field(default_factory=list)           # why a run of it does not count

    def values(self, who, key):
        return [numbers[who][key] for numbers in self.told if numbers[who].get(key) is not None]

    def median(self, who, key):
        values = self.values(who, key)
        return statistics.median(values) if values else None

    def spread(self, who, key="iops"):
        """Half the range of the rounds, in per cent of the median."""
        values = self.values(who, key)
        return 50 * (max(values) - min(values)) / (statistics.median(values) or 1)

    def ratio(self, who, base, key="iops"):
        pairs = zip(self.values(who, key), self.values(base, key))
        ratios = [a / b for a, b in pairs if b]
        return statistics.median(ratios) if ratios else None


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def attempt(run):
    """Its numbers, of a time when nothing else happened; else of the last."""
    for left in reversed(range(REPEATS + 1)):
        CPUS.wait_until_near()
        numbers = run()
        numbers["disturbed"] = numbers["disturbed"] or CPUS.far()
        if not numbers["disturbed"]:
            break
        time.sleep(PAUSE_S if left else 0)
    return numbers


def visit(turn, number):
    """One round of it; the order goes round too."""
    names = list(turn.runs)
    first = number % len(names)
    told = {who: attempt(turn.runs[who]) for who in names[first:] + names[:first]}
    turn.told.append(told)
    turn.marks += [f"{turn.name}, round {number + 1}, {who}: {numbers['disturbed']}"
                   for who, numbers in told.items() if numbers["disturbed"]]


def measure(turns, rounds):
    CPUS.settle()
    for number in range(rounds):
        for at, turn in enumerate(turns, 1):
            progress(f"round {number + 1} of {rounds}: {turn.name} ({at} of {len(turns)})")
            visit(turn, number)
    progress("")


def marks(turns):
    return [mark for turn in turns for mark in turn.marks]


def taken(turns):
    """Runs, of all rounds."""
    return sum(len(told) for turn in turns for told in turn.told)


def inconclusive(turns):
    """Too many of the runs had company."""
    return len(marks(turns)) > MARKED_MAX * taken(turns)
