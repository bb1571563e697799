#!/usr/bin/python3
"""host_misbehave.py - a scripted target that breaks the rules of the wire, against `weft`.

Every case ends with the exit status and the sentence it should: never a hang, a wrong byte, a
crash. host_unusual.py has what a controller may say wrongly, and what must work."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap

import host_bad.icresp, host_bad.stages, host_bad.headers                       # noqa: E401,F401
import host_bad.completions, host_bad.c2hdata, host_bad.r2t, host_bad.chaos     # noqa: E401,F401

sys.exit(tap.run_wide(4))
