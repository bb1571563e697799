#!/usr/bin/python3
"""host_readme.py - the README, pasted into a shell from top to bottom.

Every block of commands has a row in BLOCKS: how it is run here, or why it is not. The order is the
README's, and a block finds what those before it have left: the target, its namespaces, its file.
Ports, /tmp and /run are the README's own; so this runs in namespaces where nobody else has them.
Measurements are shorter than the README says, and what is meant to be killed dies sooner."""
import atexit
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import weft

BUILD = pathlib.Path(weft.BINARY).resolve().parent
README = weft.ROOT / "README.md"
APART = "WEFT_README_APART"             # the folder; set where this runs for itself
ENTER = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
# $0: the folder, $1: the checkout, which stays visible where it is below /tmp.
INSIDE = """ip link set lo up && mount --bind "$0/run" /run &&
    case $1 in /tmp/*) mkdir -p "$0$1" && mount --bind "$1" "$0$1" ;; esac &&
    mount --rbind "$0/tmp" /tmp && shift && exec "$@" """
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SHORTER = [(r"--time \d+", "--time 2"), (r"sleep 10", "sleep 1"), (r"^make build\n", "")]


# ---- how a block is run

def paste(text):
    """As a user does, each command after the other; none may fail. Returns what they printed."""
    pathlib.Path("pasted").write_text(text)
    with open("shown", "w+", encoding="utf-8") as shown:        # no pipe: one that detaches keeps it
        done = subprocess.run(["bash", "-euo", "pipefail", "pasted"], stdin=subprocess.DEVNULL,
                              stdout=shown, stderr=shown, timeout=50, check=False)
        shown.seek(0)
        printed = shown.read()
    assert done.returncode == 0, f"status {done.returncode}:\n{printed}"
    return printed


def serve(text):
    """In a terminal of its own, until another one says that it is ready."""
    log = pathlib.Path(f"serve{len(terminals)}.log")
    with log.open("wb") as out:
        terminals.append(subprocess.Popen(["bash", "-c", text], stdin=subprocess.DEVNULL,
                                          stdout=out, stderr=out, start_new_session=True))
    weft.wait_until(lambda: " ready" in log.read_text() or terminals[-1].poll() is not None, "ready")
    assert terminals[-1].poll() is None, log.read_text()


def use(text):
    shown = paste(text)
    assert "Hello" in shown and " ns2" in shown, shown
    assert "file format: raw" in shown, shown


def control(text):
    paste(text)
    paste("build/weft ls nvme+tcp://127.0.0.1:4420")      # who has typed that is not locked out
    paste("build/weft serve -c weft.yaml --check")


def take_over(text):
    before = terminals[-1]
    serve(text)
    assert before.wait(20) == 0
    paste("build/weft read 'nvme+tcp://127.0.0.1:4420/nqn.2026-11.io.weft:default?nsid=1' --length 4K")


def pair(text):
    shown = paste(text)
    assert re.search(r"verified [\d,]+ blocks: 0 wrong", shown), shown
    assert "failed 0" in shown, shown


# How a block begins, what is done with it, or why nothing is.
BLOCKS = [
    ("make demo", "takes as long as this whole test"),
    ("make build", serve),
    ("build/weft discover", use),
    ("modprobe nvme-tcp", "needs the kernel's driver: tests/interop/linux-host.sh"),
    ("build/weft serve --ns file:/srv", "needs another machine"),
    ("build/weft serve --ns mem:64G", "needs an RDMA adapter: tests/interop/rdma.sh"),
    ("build/weft ctl status", control),
    ("build/weft serve -c weft.yaml --takeover", take_over),
    ("cat >node1.yaml", pair),
]

terminals = []


# ---- the README

def blocks():
    """Of commands: those of C, and pictures, are none."""
    found = [text for language, text in FENCE.findall(README.read_text()) if not language]
    return [text for text in found if not re.match(r"\s", text)]


def shorter(text):
    for pattern, other in SHORTER:
        text = re.sub(pattern, other, text, flags=re.M)
    return text


@tap.case("every block of the README has its row, in the README's order")
def rows():
    begin = [text.splitlines()[0] for text in blocks()]
    assert len(begin) == len(BLOCKS), begin
    for line, (start, _) in zip(begin, BLOCKS):
        assert line.startswith(start), f"{line!r} is where {start!r} was"


def add_case(number, start, how):
    @tap.case(f"{start} …")
    def run_block():
        how(shorter(blocks()[number]))


def end_terminals():
    for terminal in terminals:
        if terminal.poll() is None:
            os.killpg(terminal.pid, signal.SIGTERM)
            terminal.wait(20)


def inside(folder):
    work = pathlib.Path(folder) / "work"
    os.chdir(work)
    (work / "build").symlink_to(BUILD)
    os.environ["HOME"] = str(work)
    atexit.register(end_terminals)
    for number, (start, how) in enumerate(BLOCKS):
        if callable(how):
            add_case(number, start, how)
    return tap.run()


def missing():
    """Why it cannot run here; empty when it can."""
    if os.geteuid():
        return "needs root: for ports, /tmp and /run of its own"
    tools = ("unshare", "ip", "fusermount3", "nbdkit", "qemu-img")
    lacks = [tool for tool in tools if not shutil.which(tool)]
    if lacks:
        return f"{', '.join(lacks)} not installed"
    return "" if os.path.exists("/dev/fuse") else "there is no /dev/fuse"


def main():
    if APART in os.environ:
        return inside(os.environ[APART])
    why = missing()
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    folder = tempfile.mkdtemp(prefix="readme-", dir=BUILD)
    try:
        for name in ("tmp", "run", "work"):
            os.mkdir(os.path.join(folder, name))
        return subprocess.run([*ENTER, "sh", "-c", INSIDE, folder, str(weft.ROOT), sys.executable,
                               *sys.argv], env=os.environ | {APART: folder}, check=False).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
