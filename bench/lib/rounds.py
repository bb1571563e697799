"""rounds.py - things that are compared take turns, again and again.

    round 1:  case 1: a b c    case 2: a b c    …       round 2:  case 1: b c a    …

A machine that gets slower or faster meets all of them alike. Where somebody else was at work during a
turn, the turn is repeated, a few times; then it stands, and is marked. The numbers are medians over
the rounds; a ratio is the median of the rounds' own ratios.
"""

import statistics
import sys
import time
from dataclasses import dataclass, field

REPEATS = 3
PAUSE_S = 2                     # before a repeat: what was at work may have ended
MARKED_MAX = 0.2                # of all turns, for a conclusion


@dataclass
class Turn:
    """@runs: {who: a function that runs it once and returns its numbers}."""
    name: str
    runs: dict
    told: list = field(default_factory=list)            # of each round: {who: numbers}
    marks: list = field(default_factory=list)           # why a round does not count

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


def take(turn, number):
    """One round of it; the order goes round too."""
    names = list(turn.runs)
    first = number % len(names)
    told = {who: turn.runs[who]() for who in names[first:] + names[:first]}
    disturbed = [f"{who}: {told[who]['disturbed']}" for who in names if told[who]["disturbed"]]
    return {who: told[who] for who in names}, "; ".join(disturbed)


def visit(turn, number):
    for attempt in range(REPEATS + 1):
        told, mark = take(turn, number)
        if not mark:
            break
        if attempt < REPEATS:
            time.sleep(PAUSE_S)
    turn.told.append(told)
    if mark:
        turn.marks.append(f"{turn.name}, round {number + 1}: {mark}")


def measure(turns, rounds):
    for number in range(rounds):
        for at, turn in enumerate(turns, 1):
            progress(f"round {number + 1} of {rounds}: {turn.name} ({at} of {len(turns)})")
            visit(turn, number)
    progress("")


def marks(turns):
    return [mark for turn in turns for mark in turn.marks]


def inconclusive(turns):
    """Too many of the rounds had company."""
    taken = sum(len(turn.told) for turn in turns)
    return len(marks(turns)) > MARKED_MAX * taken
