#!/usr/bin/python3
"""host_failover.py - a path is taken away under load, a few times in every way that bench/failover
measures: what is read is what was written, no I/O fails, and the pause is told."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import failover
import tap

TIMES = 3
WHAT = {
    "killed": "the target is killed, and another takes its group over",
    "bystander": "a target that serves other groups is killed",
    "reset": "the connections of a path are reset",
    "ana": "one port lets the group in, then the other",
    "moved": "the group is moved to another target",
    "silent": "a path drops every packet",
}
# Those that may meet no command in flight, and those that meet none.
MAY_GO_UNNOTICED, GO_UNNOTICED = ("reset", "ana", "moved", "bystander"), ("bystander",)


def fail_over(rig, app):
    """What the application saw of it."""
    rig.wait(app)
    rig.cut()
    seen = app.gather(lambda seen: seen["stalls"], rig.limit_s)
    rig.mend()
    return seen


def add(kind):
    @tap.case(f"{WHAT[kind]}, {TIMES} times", limit_s=120)
    def _():
        try:
            with tempfile.TemporaryDirectory(prefix="weft-failover-") as folder, \
                    failover.KINDS[kind](folder) as rig, rig.app() as app:
                seen = [fail_over(rig, app) for _ in range(TIMES)]
                rig.wait(app)
        except failover.Unable as why:
            tap.skip(str(why))
        for each in seen:
            assert each["ios"] and each["longest_ns"], each
            assert kind in MAY_GO_UNNOTICED or each["known_ns"] < each["over_ns"], each
        assert any(each["stalls"] for each in seen) != (kind in GO_UNNOTICED), seen


for each_kind in WHAT:
    add(each_kind)

sys.exit(tap.run())
