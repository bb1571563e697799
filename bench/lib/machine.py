"""machine.py - what the machine does beside what is measured, and what it is.

    before = Moment()        what is measured        disturbance(before, Moment(), servers)

CPU time that neither the processes under test, nor this program and its children, nor the kernel's
own threads used is foreign. Time that a hypervisor gave to others is stolen. Nothing is looked at
in between: on two busy CPUs a look every 50 ms would be all that a 99.99th percentile shows.
"""

import os
import pathlib
import platform
import re
import resource
import time
from dataclasses import dataclass

TICKS = os.sysconf("SC_CLK_TCK")
FOREIGN_MAX = 0.03              # of one CPU's time
STOLEN_MAX = 0.01
KERNEL_PARENT = 2               # kthreadd


@dataclass
class Process:
    name: str
    cpu_s: float
    kernel: bool


def cpu_seconds(pid):
    """CPU time of all the threads of PID, in the kernel's nanoseconds where it counts them."""
    total = 0.0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def processes():
    """{pid: Process} of all there are."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            head, _, tail = (entry / "stat").read_text().rpartition(")")
        except OSError:                                 # it has just ended
            continue
        fields = tail.split()
        found[int(entry.name)] = Process(head.partition("(")[2],
                                         (int(fields[11]) + int(fields[12])) / TICKS,
                                         int(fields[1]) == KERNEL_PARENT)
    return found


def used_here():
    """By this program and by its children that have ended."""
    return sum(usage.ru_utime + usage.ru_stime for usage in
               map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


class Moment:
    def __init__(self):
        fields = [int(word) for word in
                  pathlib.Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
        user, nice, system, _idle, _iowait, irq, softirq, steal = fields
        self.busy_s = (user + nice + system + irq + softirq) / TICKS
        self.stolen_s = steal / TICKS
        self.processes = processes()
        self.here_s = used_here()
        self.time = time.monotonic()


def disturbance(before, after, pids):
    """Why what was measured in between does not count; "": it does."""
    wall = after.time - before.time
    used = {pid: process.cpu_s - before.processes[pid].cpu_s
            for pid, process in after.processes.items() if pid in before.processes}
    known = sum(s for pid, s in used.items() if pid in pids or after.processes[pid].kernel)
    foreign = after.busy_s - before.busy_s - known - (after.here_s - before.here_s)
    stolen = after.stolen_s - before.stolen_s
    if stolen > STOLEN_MAX * wall:
        return f"{100 * stolen / wall:.0f} % of a CPU stolen"
    if foreign <= FOREIGN_MAX * wall:
        return ""
    others = [(s, after.processes[pid].name) for pid, s in used.items()
              if pid not in pids and pid != os.getpid() and not after.processes[pid].kernel]
    most, name = max(others, default=(0, ""))
    culprit = f", most by {name}" if most > 0 else ", by processes that have ended"
    return f"{100 * foreign / wall:.0f} % of a CPU used by others{culprit}"


def memory_mib(pid, what="VmRSS"):
    """A field of its status: VmRSS, VmHWM, HugetlbPages."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{what}:\s+(\d+)", status, re.M)[1]) / 1024


def description():
    cpu = re.search(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return [("kernel", f"{platform.system()} {platform.release()}"),
            ("CPU", f"{cpu[1] if cpu else platform.machine()}, {os.cpu_count()} online")]
