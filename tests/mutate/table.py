"""table - the planted faults: tests/mutate/faults/*.txt, and where in the sources each belongs.

A table is about one folder, and its head says which programs should see its faults:

    folder  src/store
    tests   unit/test_store sim/sim             names as in tests/run --list; globs

    [version-checked]                           store/version-checked is its full name
    file    records.c
    = static int check_versions                 how a line goes on that is there and stays
    - if (record->version != wanted)            a line that goes, all of it
    + if (record->version > wanted)             what is there instead
    breaks  A change of a record that somebody changed meanwhile does not go through.
    tests   unit/test_store                     where others than those of the head should see it
    argued  why nobody can, if that is so

Lines are told by their text, not by their numbers: "=" and "-" lines follow each other in the file,
and are there once. White space at their ends and lines without anything do not count.
"""

import fnmatch
import hashlib
import pathlib
import re
from dataclasses import dataclass, field

FAULTS = pathlib.Path(__file__).resolve().parent / "faults"
HEAD = re.compile(r"\[([a-z0-9-]+)\]$")
WORDS = ("folder", "file", "tests", "breaks", "argued")


class Wrong(Exception):
    """A table that cannot be read, or a row that does not apply."""


@dataclass
class Fault:
    name: str
    folder: str
    tests: list
    file: str = ""
    breaks: str = ""
    argued: str = ""
    lines: list = field(default_factory=list)   # (mark, text)

    @property
    def path(self):
        return f"{self.folder}/{self.file}"

    @property
    def print(self):
        """Another one when the row says something else, so that an old result does not count."""
        return hashlib.sha256(repr((self.path, self.lines)).encode()).hexdigest()[:16]

    def marked(self, *marks):
        return [text for mark, text in self.lines if mark in marks]


# ---- reading

def read_table(path):
    head = Fault("", "", [])
    faults = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            read_line(line.rstrip(), path.stem, head, faults)
        except Wrong as wrong:
            raise Wrong(f"{path.name}:{number}: {wrong}") from None
    for fault in faults:
        fault.tests = fault.tests or head.tests
        check_whole(path, fault)
    return faults


def read_line(line, table, head, faults):
    row = faults[-1] if faults else head
    title = HEAD.match(line)
    if not line or line.startswith("#"):
        return
    if title:
        faults.append(Fault(f"{table}/{title.group(1)}", head.folder, []))
    elif line[0] in "=-+" and faults:
        row.lines.append((line[0], line[1:].strip()))
    else:
        word, _, rest = line.partition(" ")
        if word not in WORDS:
            raise Wrong(f"what is \"{word}\"? expected one of {', '.join(WORDS)}, or =, -, +")
        setattr(row, word, rest.split() if word == "tests" else rest.strip())


def check_whole(path, fault):
    lacks = [word for word in ("folder", "file", "tests", "breaks") if not getattr(fault, word)]
    if not fault.marked("-"):
        lacks.append("a line that goes")
    if fault.marked("-") == fault.marked("+"):
        lacks.append("a line that differs")
    if lacks:
        raise Wrong(f"{path.name}: [{fault.name}] lacks {', '.join(lacks)}")


def read_all():
    faults = [fault for path in sorted(FAULTS.glob("*.txt")) for fault in read_table(path)]
    seen = set()
    for fault in faults:
        if fault.name in seen:
            raise Wrong(f"{fault.name} is there twice")
        seen.add(fault.name)
    return faults


def selected(fault, words):
    """By name, glob, table, folder or file; all without a word."""
    return not words or any(
        fnmatch.fnmatch(fault.name, word) or fault.name.startswith(word.rstrip("/") + "/")
        or fnmatch.fnmatch(fault.path, word) or fault.path.startswith(word.rstrip("/") + "/")
        for word in words)


# ---- planting

def fits(line, mark, text):
    return line.startswith(text) if mark == "=" else line == text


def places(fault, lines):
    """Every way to find the fault's "=" and "-" lines in LINES: their numbers."""
    wanted = [(mark, text) for mark, text in fault.lines if mark != "+"]
    there = [(number, line.strip()) for number, line in enumerate(lines) if line.strip()]
    for at in range(len(there) - len(wanted) + 1):
        window = there[at:at + len(wanted)]
        if all(fits(line, *want) for (_, line), want in zip(window, wanted)):
            yield [number for number, _ in window]


def plant(fault, source):
    """SOURCE with the fault in it."""
    lines = source.splitlines(keepends=True)
    found = list(places(fault, lines))
    if len(found) != 1:
        raise Wrong(f"{fault.name}: {len(found) or 'no'} place{'s' * (len(found) > 1)} "
                    f"in {fault.path} for \"{fault.marked('-')[0]}\"")
    marks = [mark for mark, _ in fault.lines if mark != "+"]
    gone = [number for number, mark in zip(found[0], marks) if mark == "-"]
    old = lines[gone[0]]
    indent = old[:len(old) - len(old.lstrip())]
    new = [f"{indent}{text}\n" for text in fault.marked("+") if text]
    return "".join("".join(new) if number == gone[0] else "" if number in gone else line
                   for number, line in enumerate(lines))
