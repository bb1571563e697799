"""calls.py - system calls per I/O, at both ends, as the kernel's tracepoint counts them.

    perf stat (server) ─▶ perf stat (client) ─▶ the client

Counting costs little, but not nothing: these runs are apart from those that are timed.
"""

import pathlib
import shutil
import subprocess
import tempfile

import load
from section import Section, number, table

EVENT = "raw_syscalls:sys_enter"
SECONDS = 1


def why_not():
    """Why nothing can be counted here; "": it can."""
    if not shutil.which("perf"):
        return "perf is not installed"
    tried = subprocess.run(["perf", "stat", "-e", EVENT, "true"], capture_output=True, text=True,
                           check=False)
    return "" if tried.returncode == 0 else "perf may not count system calls here"


def counted(path):
    for line in path.read_text().splitlines():
        if EVENT in line:
            return int(line.split(",")[0])
    raise load.Failed(f"perf counted nothing: {path.read_text()}")


def per_io(client, server, case):
    """(server's, client's)."""
    with tempfile.TemporaryDirectory() as folder, server.turn():
        ends = [pathlib.Path(folder) / end for end in ("server", "client")]
        stat = [["perf", "stat", "-x,", "-e", EVENT, "-o", str(end)] for end in ends]
        text, _ = load.run(server, client.argv(server, case, SECONDS), SECONDS,
                           prefix=[*stat[0], "-p", str(server.pid), *stat[1]])
        ios = client.read(text)["iops"] * (SECONDS + client.warm_s)
        return [counted(end) / ios for end in ends]


def section(pairs, cases):
    """One run of each: what it counts hardly varies."""
    reason = why_not()
    if reason:
        return Section("System calls", [f"Not counted: {reason}."])
    local = {name: pair for name, pair in pairs.items() if pair[1].pid}
    told = {case: {name: per_io(*pair, case) for name, pair in local.items()
                   if pair[0].fits(pair[1], case)} for case in cases}
    rows = [[case.label] + [" + ".join(number(end, 2) for end in told[case].get(name, [None]))
                            for name in local] for case in cases]
    return Section("System calls", table(["per I/O: server + client", *local], rows),
                   data={case.name: told[case] for case in cases})
