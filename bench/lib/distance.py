"""distance.py - how far apart two CPUs are, as bench/distance.c measures it.

A hypervisor moves virtual CPUs. Apart, they need several times as long for whatever goes from one
to the other: then it is another machine that is measured, and a ratio of before and after means
nothing.
"""

import subprocess
import time

FAR = 1.5                       # times the least that was seen
LOOKS, PAUSE_S = 10, 1


class Distance:
    def __init__(self, program, *cpus):
        self.command, self.least = [str(program), *map(str, cpus)], None

    def look(self):
        """Nanoseconds, now. The nearest that they were is what counts."""
        ns = int(subprocess.run(self.command, check=True, capture_output=True).stdout)
        self.least = min(ns, self.least or ns)
        return ns

    def far(self):
        """Why what was just measured does not count; "": it does."""
        ns = self.look()
        return f"the CPUs are {ns} ns apart, not {self.least}" if ns > FAR * self.least else ""

    def wait_until_near(self):
        """Busy ones get moved apart, idle ones together; not for ever."""
        for _ in range(LOOKS):
            if not self.far():
                return
            time.sleep(PAUSE_S)

    def settle(self):
        """Find out how near they can be."""
        for _ in range(LOOKS):
            self.look()
            time.sleep(PAUSE_S / 4)
