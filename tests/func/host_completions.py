#!/usr/bin/python3
"""host_completions.py - what bash and zsh offer behind `weft`: words that it takes, and all of them."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
from command import USAGE, fails, run, text

COMMANDS = ["discover", "ls", "id", "log", "feature", "resv", "read", "write", "compare", "zero",
            "trim", "cp", "raw", "bench", "serve", "version"]
COMPLETIONS = pathlib.Path(__file__).resolve().parents[2] / "completions"
NOBODY = "nvme+tcp://127.0.0.1:1/nqn.2026-11.io.weft:test"
# What is typed before one of several words, and the command that takes it.
CHOICES = [
    ("bench --rw", ["bench", "--rw", "WORD", NOBODY]),
    ("serve --engine", ["serve", "--engine", "WORD", "--check"]),
    ("resv", ["resv", "WORD", NOBODY]),
    ("resv acquire --rtype", ["resv", "acquire", "--rtype", "WORD", NOBODY]),
    ("resv register --cptpl", ["resv", "register", "--cptpl", "WORD", NOBODY]),
    ("log", ["log", "WORD", NOBODY]),
    ("feature", ["feature", "WORD", "kato", NOBODY]),
    ("feature get", ["feature", "get", "WORD", NOBODY]),
    ("feature get kato --select", ["feature", "get", "--select", "WORD", "kato", NOBODY]),
    ("raw", ["raw", "WORD", "--opcode", "2", NOBODY]),
]


def offered(line):
    """What bash offers behind this."""
    script = '. "$1"; COMP_LINE=$2 COMP_POINT=${#2}; _weft; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, "bash", COMPLETIONS / "weft.bash", line],
                          capture_output=True, text=True, check=True)
    return done.stdout.split()


@tap.case("bash offers the options that a command has, and all of them")
def _():
    for command in COMMANDS:
        rows = [re.split(" {2,}", line.strip())[0] for line in text(command, "--help").splitlines()
                if re.match("  (-|    --)", line)]
        named = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", " ".join(rows)))
        if command == "raw":
            named |= {f"--cdw{n}" for n in (2, 3, *range(10, 16))}
        words = set(offered(f"weft {command} -"))
        assert words == named, (command, words ^ named)


@tap.case("bash and zsh offer words that are taken, and the same ones")
def _():
    zsh = (COMPLETIONS / "weft.zsh").read_text()
    lists = [set(words.split()) for words in re.findall(r"\(([\w\s-]+)\)", zsh)]
    for typed, args in CHOICES:
        words = offered(f"weft {typed} ")
        assert len(words) > 1 and set(words) in lists, (typed, words)
        for word in words:
            said = run(*[word if arg == "WORD" else arg for arg in args]).stderr
            assert f'"{word}"' not in said, said
    wanted = fails("bench", "--rw", "nonsense", NOBODY, code=USAGE)
    assert set(re.findall(r"\w+", wanted.split("expected")[1].split(", got")[0])) - {"or"} == \
        set(offered("weft bench --rw ")), wanted


sys.exit(tap.run())
