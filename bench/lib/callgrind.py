"""callgrind.py - what valgrind wrote about one part of a run.

callgrind:
    fn=NAME               a function, and behind it its own costs: LINE COST…
    cfn=NAME, calls=N …   what it called, and behind that what the call cost, which is not its own
--trace-syscalls:
    SYSCALL[PID,THREAD](NUMBER) NAME ( …

How often a function was called is not in it: callgrind counts that also while it is told not to.
Copies and checksums are as many instructions as there are bytes, and beside them nothing else would
show. So they are told apart.
"""

import collections
import pathlib
import re
from dataclasses import dataclass, field

COPIES = re.compile(r"[^:]*:_*mem(cpy|move|set|cmp)(_\w*)?")
SUMS = re.compile(r"libisal")
ALLOCATES = re.compile(r"[^:]*:_*(int_)?(malloc|calloc|realloc|aligned_alloc|posix_memalign|memalign|free|mmap|munmap)\b.*")
MARK = re.compile(r"\*\*\d+\*\* budget: (.*)")
SYSCALL = re.compile(r"SYSCALL\[\d+,1\]\(\s*\d+\) *(?:sys_)?(\w+) *\(")


@dataclass
class Part:
    """Of a row, one end."""
    name: str = ""
    commands: int = 0
    # By "FILE:FUNCTION", or "LIBRARY:FUNCTION" where the file is not known.
    costs: dict = field(default_factory=lambda: collections.defaultdict(collections.Counter))

    def total(self, *events, only=re.compile(""), but=re.compile("(?!)")):
        """Per command, of functions that match."""
        return sum(cost[event] for key, cost in self.costs.items() for event in events
                   if only.match(key) and not but.match(key)) / self.commands

    def functions(self):
        """Instructions per command, without those that are next to nothing."""
        each = {key: round(cost["Ir"] / self.commands, 1) for key, cost in self.costs.items()}
        return {key: count for key, count in sorted(each.items(), key=lambda one: -one[1])
                if count >= 0.5}


def clean(name):
    """Without what tells a recursion's second round, or a symbol's version."""
    return re.split("['@]", name)[0]


def read(path):
    part = Part()
    events, library, file, key, skip = [], "", "", "", False
    for line in path.read_text().splitlines():
        word, _, rest = line.partition("=")
        if line[:1].isdigit():
            if not skip:
                part.costs[key].update(dict(zip(events, map(int, line.split()[1:]))))
            skip = False
        elif word == "ob":
            library = pathlib.PurePath(rest).name
        elif word == "fl":
            file = library if rest == "???" else pathlib.PurePath(rest).name
        elif word == "fn":
            key = f"{file}:{clean(rest)}"
        elif word == "calls":
            skip = True
        elif line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("desc: Trigger: Client Request: "):
            row, end, commands = line.split()[-3:]
            part.name, part.commands = f"{row} {end}", int(commands)
    return part


def read_all(folder):
    """By name. The last one is of what was not asked for, and has none."""
    parts = [read(path) for path in folder.glob("out.*")]
    return {part.name: part for part in parts if part.name}


def read_calls(path):
    """System calls per command, by row and end, by name; of the first thread, which is all that works."""
    found = collections.defaultdict(collections.Counter)
    row, end, commands = "", "nobody", {}
    for line in path.read_text(errors="replace").splitlines():
        mark, call = MARK.match(line), SYSCALL.match(line)
        if mark and mark[1].startswith("row "):
            _, row, count = mark[1].split()
            commands[row] = int(count)
        elif mark:
            end = mark[1].strip()
        elif call and end != "nobody":
            found[f"{row} {end}"][call[1]] += 1
    return {name: {call: round(count / commands[name.split()[0]], 4)
                   for call, count in calls.most_common()} for name, calls in found.items()}
