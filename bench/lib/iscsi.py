"""iscsi.py - the same 4 KiB reads over iSCSI: Debian's tgt, driven by libiscsi's iscsi-perf."""

import contextlib
import os
import re
import shutil
import subprocess

import cases
import clients
import load
import rounds
import servers
from section import Section, number, table

IQN = "iqn.2026-11.io.weft:bench"
CONTROL = "2627"                        # tgtd's and tgtadm's, apart from one that may run already
DEPTHS = (1, 32)
BLOCKS = 8                              # of 512 bytes, for each read
NEEDED = ("tgtd", "tgtadm", "iscsi-perf")
AVERAGE = re.compile(r"iops average (\d+)")


def why_not():
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: tgt, libiscsi-bin)"
    return "" if os.geteuid() == 0 else "tgtd needs root"


def tgtadm(*words):
    subprocess.run(["tgtadm", "-C", CONTROL, "--lld", "iscsi", *words], check=True,
                   capture_output=True)


@contextlib.contextmanager
def disk(args):
    """Memory, as our namespace is."""
    path = f"/dev/shm/weft-bench-{os.getpid()}.img"
    try:
        subprocess.run(["fallocate", "-l", args.size, path], check=True)
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def offer(path):
    tgtadm("--op", "new", "--mode", "target", "--tid", "1", "-T", IQN)
    tgtadm("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", path)
    tgtadm("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")


def run_iscsi(server, depth, seconds):
    """It tells a rate; at depth 1 that is the latency too."""
    command = ["iscsi-perf", "-m", depth, "-b", BLOCKS, "-t", f"{seconds:.0f}", "-r",
               f"iscsi://127.0.0.1:{server.port}/{IQN}/1"]
    with server.turn():
        text, disturbed = load.run(server, command, seconds)
    iops = float(AVERAGE.search(text)[1])
    return {"iops": iops, "mean_us": depth * 1e6 / iops, "disturbed": disturbed}


def turn_of(weft, tgt, depth, seconds):
    case = cases.Case(cases.MAIN, 4096, "read", depth)
    return rounds.Turn(case.label, {
        "weft": lambda: load.measure(clients.Weft(), weft, case, seconds),
        "tgt": lambda: run_iscsi(tgt, depth, seconds)})


def cell(turn, who):
    return f"{number(turn.median(who, 'iops'))}; {number(turn.median(who, 'mean_us'), 1)}"


def sections(args, folder):
    reason = why_not()
    if reason:
        return [Section("iSCSI", [f"Not measured: {reason}."])]
    port = servers.free_port()
    weft = servers.weft_in_memory(folder, args.size)
    tgt = servers.Started("tgt", port, {}, ["tgtd", "-f", "-C", CONTROL, "--iscsi",
                                            f"portal=127.0.0.1:{port}"])
    seconds = max(1, round(args.time))
    turns = [turn_of(weft, tgt, depth, seconds) for depth in DEPTHS]
    with disk(args) as path, servers.running([weft, tgt]):
        with tgt.turn():
            offer(path)
        load.prefill(clients.Weft(), [weft], [cases.MAIN])
        rounds.measure(turns, args.rounds)
    rows = [[turn.name, *(cell(turn, who) for who in turn.runs), f"{turn.ratio('weft', 'tgt'):.1f}",
             f"{turn.ratio('weft', 'tgt', 'mean_us'):.2f}"] for turn in turns]
    return [Section("iSCSI", [
        "`tgt` is Debian's tgtd on a file in memory, with libiscsi's iscsi-perf as the client.", "",
        *table(["reads per second; µs", "weft", "tgt", "rate, weft / tgt", "latency, weft / tgt"],
               rows)], turns=turns)]
