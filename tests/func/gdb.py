#!/usr/bin/python3
"""gdb.py - scripts/weft-gdb.py reads a running target."""
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import tap
from fixture import with_host
from weft import ROOT


def gdb(process, *commands):
    if not shutil.which("gdb"):
        tap.skip("gdb is not installed")
    words = [word for command in commands for word in ("-ex", command)]
    result = subprocess.run(["gdb", "-nx", "-batch", "-x", str(ROOT / "scripts/weft-gdb.py"), "-p", str(process.pid),
                             *words], capture_output=True, text=True, timeout=120)
    return result.stdout + result.stderr


@with_host("queues and their requests by reactor, lists, one line each", 180)
def _(t, ctrl):
    ctrl.aer()
    said = gdb(t.process, "weft-queues", "weft-list &$weft_target()->listeners tgt_listener link")
    assert re.search(rf"tcp queue 0: 1 of \d+ in flight, live, of {re.escape(nvme.HOSTNQN)}\n"
                     r" +0x[0-9a-f]+ async event, cid \d+: executing\n", said), said
    assert re.search(r"^0x[0-9a-f]+ {link = .*portid = \d+}$", said, re.M), said


@tap.case("a process that is no target")
def _():
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            assert "this process is not a target" in gdb(process, "weft-queues")
        finally:
            process.kill()


sys.exit(tap.run())
