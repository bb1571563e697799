#!/usr/bin/python3
"""host_unusual.py - a scripted target whose PDUs are right, and whose answers are odd, against
`weft`: refusals, impossible structures, changes, endless events, discovery logs that lie; and what
is rare but right, and must work."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap

import host_bad.connects, host_bad.identify, host_bad.events    # noqa: E401,F401
import host_bad.discovery, host_bad.unusual, host_bad.lba_status    # noqa: E401,F401

sys.exit(tap.run_wide(4))
