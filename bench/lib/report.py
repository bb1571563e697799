"""report.py - everything that was measured, as a page for people and as JSON for programs."""

import datetime
import os
import pathlib
import subprocess

import machine
import rounds
from section import table
from servers import BUILD, CLIENT_CPU, ROOT, SERVER_CPU

HEAD = """# Results

Written by `bench/run`; do not edit. [docs/performance.md](../docs/performance.md) says how to run
it and what the numbers mean. `weft` is `weft bench` on `weft serve`. `bare` is a TCP client and
server that move the same bytes each way, always the same ones, do nothing else and never sleep: the
limit on these cores. `A on B` is the client A on the target B. Numbers are medians, ± is half the
range of the rounds; a ratio is the median of the rounds' own ratios.
"""


def output(*command):
    try:
        return subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True,
                              check=False).stdout.strip()
    except OSError:
        return ""


def conditions(args):
    """As they are before anything runs."""
    return [
        ("date", datetime.date.today().isoformat()),
        ("commit", output("git", "describe", "--always", "--dirty", "--abbrev=12") or "none"),
        ("weft", output(BUILD / "weft", "version").split("\n")[0]),
        *machine.description(),
        ("compiler", output("cc", "--version").split("\n")[0]),
        ("load average before", f"{os.getloadavg()[0]:.2f}"),
        ("where", f"loopback; server on CPU {SERVER_CPU}, client on CPU {CLIENT_CPU}"),
        ("namespaces", f"{args.size} each, written over before measuring"),
        ("queue", "one I/O queue, no digests, unless told otherwise"),
        ("runs", f"{args.rounds} rounds of {args.time:g} s, interleaved"),
        *(("peer", f"`{word}`") for word in args.peer),
        *(("peer's process", f"`{without_folder(command_of(word))}`") for word in args.pid),
        *(("client", f"`{without_folder(word)}`") for word in args.client),
        *(("weft serve", f"`{word}`") for word in args.also),
    ]


def command_of(word):
    """NAME=COMMAND of NAME=PID: how a peer was started says in which setting it was measured."""
    name, _, pid = word.partition("=")
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    return f"{name}={' '.join(words)}"


def without_folder(word):
    """NAME=COMMAND, of which only the program's own name is of interest to others."""
    name, _, command = word.partition("=")
    program, _, rest = command.partition(" ")
    return f"{name}={os.path.basename(program)} {rest}"


def verdict(turns):
    marks, taken = rounds.marks(turns), rounds.taken(turns)
    if not marks:
        return [f"Nothing else happened on the machine during any of {taken} runs."]
    said = "**No conclusion**: something" if rounds.inconclusive(turns) else "Something"
    return [f"{said} else happened on the machine during {len(marks)} of {taken} runs, also when "
            "they were repeated:", "", *(f"- {mark}" for mark in marks)]


def bars_lines(sections):
    bars = [bar for section in sections for bar in section.bars]
    judged = [bar for bar in bars if bar.met is not None]
    if not bars:
        return []
    return ["", "## Bars", "", f"{sum(bar.met for bar in judged)} of {len(judged)} met.", "",
            *table(["what", "is", "bar", "met"], [bar.row() for bar in bars])]


def page(sections, known):
    turns = [turn for section in sections for turn in section.turns]
    lines = [HEAD, "| condition | |", "|---|---|", *(f"| {k} | {v} |" for k, v in known), "",
             *verdict(turns), *bars_lines(sections)]
    for section in sections:
        if section.lines:
            lines += ["", f"## {section.title}", "", *section.lines]
        if section.picture:
            lines += ["", f"![{section.title}](results.svg)"]
    return "\n".join(lines) + "\n"


def as_json(sections, known):
    turns = [turn for section in sections for turn in section.turns]
    return {
        "conditions": dict(known),
        "conclusive": not rounds.inconclusive(turns),
        "marks": rounds.marks(turns),
        "bars": [{"what": bar.what, "value": bar.value, "sign": bar.sign, "limit": bar.limit,
                  "met": bar.met} for section in sections for bar in section.bars],
        "rounds": {turn.name: turn.told for turn in turns},
        "sections": {section.title: section.data for section in sections if section.data},
    }
