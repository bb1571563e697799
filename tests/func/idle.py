#!/usr/bin/python3
"""idle.py - what a thousand connected, idle queues cost. The CPU figure is told, not judged."""
import os
import pathlib
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import weft
from fixture import connect

QUEUES = int(os.environ.get("QUEUES", 1000))
IDLE_S = float(os.environ.get("IDLE_S", 10))
LIMIT_KIB = 64


def raise_descriptor_limit():
    """For us and for the target, which inherits it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < QUEUES * 2 + 200:
        tap.skip(f"only {hard} descriptors per process")


def open_queues(t, count):
    """Controllers with as many I/O queues of depth 128 as each is granted."""
    ctrls, opened = [], 0
    while opened < count:
        ctrl = connect(t)
        ctrls.append(ctrl)
        granted = (ctrl.set_feature(7, 0x007F007F).dw0 & 0xFFFF) + 1
        for _ in range(min(granted, 128, count - opened)):
            ctrl.open(depth=128)
            opened += 1
    return ctrls


@tap.case(f"{QUEUES} idle queues", limit_s=180)
def _():
    raise_descriptor_limit()
    with weft.Target() as t:
        connect(t).close()
        before = t.rss_kib()
        ctrls = open_queues(t, QUEUES)
        each = (t.rss_kib() - before) / QUEUES
        start, cpu = time.monotonic(), t.cpu_s()
        time.sleep(IDLE_S)
        share = (t.cpu_s() - cpu) / (time.monotonic() - start)
        tap.diag(f"{QUEUES} queues on {len(ctrls)} controllers: {each:.1f} KiB each, "
                 f"{share:.2%} of one core over {IDLE_S:.0f} s")
        for ctrl in ctrls:
            ctrl.disk().read(0)
            ctrl.close()
        assert t.sanitized() or each < LIMIT_KIB, f"{each:.1f} KiB per idle queue"


sys.exit(tap.run())
