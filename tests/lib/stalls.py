"""stalls.py - tells when a CPU of this machine stood still.

Tests assert no times, but they have limits, half a minute and more, that are for what hangs. Where
the machine is a guest whose host takes a CPU away for a minute, such a limit ends what did not hang.
Here a thread on each CPU wakes up four times a second and notes when it came seconds late. However
many programs share the CPU, the scheduler does not do that; only a CPU that runs nothing does.
"""

import os
import threading
import time

BEAT_S = 0.25
STALL_S = 5


class Watch:
    def __init__(self, cpus=None):
        self.stalls = []                        # (from, to, CPU)
        self.beats = {}                         # by CPU: when it was last seen
        for cpu in os.sched_getaffinity(0) if cpus is None else cpus:
            threading.Thread(target=self.follow, args=(cpu,), daemon=True).start()

    def follow(self, cpu):
        os.sched_setaffinity(0, {cpu})          # of this thread alone
        self.beats[cpu] = time.monotonic()
        while True:
            time.sleep(BEAT_S)
            now, before = time.monotonic(), self.beats[cpu]
            self.note(before, now, cpu)
            self.beats[cpu] = now

    def note(self, before, now, cpu):
        if now - before - BEAT_S >= STALL_S:
            self.stalls.append((before, now, cpu))

    def since(self, start):
        """The longest stall that was not over at START, in words; None: there was none."""
        now = time.monotonic()
        lasting = [(before, now, cpu) for cpu, before in list(self.beats.items())]
        found = [(end - begin, cpu) for begin, end, cpu in self.stalls + lasting
                 if end > start and end - begin - BEAT_S >= STALL_S]
        if not found:
            return None
        seconds, cpu = max(found)
        return f"CPU {cpu} stood still for {seconds:.0f} s"
