"""load.py - one run: a client on a server, the CPU time that both took, what else was at work."""

import os
import subprocess
import time

import cases
import machine
from servers import CLIENT_CPU, Failed, pinned

FILL_S = 1
REST_S = 4


def run(server, command, limit_s, prefix=(), stdin=b"", fds=()):
    """What the command printed; and why its numbers do not count, if so. @fds are handed to it."""
    before = machine.Moment()
    done = subprocess.run([*prefix, *pinned(CLIENT_CPU, command)], input=stdin, pass_fds=fds,
                          capture_output=True, check=False, timeout=limit_s + 60)
    disturbed = machine.disturbance(before, machine.Moment(), {server.pid})
    if done.returncode:
        raise Failed(f"{server.name}: {' '.join(map(str, command))[:500]}: "
                     f"{done.stderr.decode().strip()[-500:]}")
    return done.stdout.decode(), disturbed


def measure(client, server, case, seconds):
    """Numbers of one run, in the server's turn."""
    with server.turn():
        server_s, here_s = server.cpu_seconds(), machine.used_here()
        text, disturbed = run(server, client.argv(server, case, seconds), seconds)
        numbers = client.read(text)
        each_us = 1e6 / numbers["iops"]
        # Starting and warming up took CPU time too: count the I/Os of the warm-up in, and remember
        # that one CPU cannot have worked for longer on an I/O than there was until the next.
        ios = numbers["iops"] * (seconds + client.warm_s)
        if numbers.get("cpu_us") is None:
            numbers["cpu_us"] = min(each_us, (machine.used_here() - here_s) * 1e6 / ios)
        if server_s is not None:
            numbers["server_us"] = min(each_us, (server.cpu_seconds() - server_s) * 1e6 / ios)
    return numbers | {"disturbed": disturbed, "mib_s": numbers["iops"] * case.bs / (1 << 20)}


def pass_over(client, targets, spaces, rw):
    for server in targets:
        for space in spaces:
            case = cases.Case(space, 131072, rw, 32)
            if client.fits(server, case) and not space.startswith("null"):
                measure(client, server, case, FILL_S)


def prefill(client, targets, spaces):
    """Memory that was never written reads from one page of zeros; give it pages of its own. Our
    target makes large ones of them behind that, for a second or two; a hypervisor has to find these
    first, too."""
    pass_over(client, targets, spaces, "write")
    os.sync()
    time.sleep(REST_S)
    pass_over(client, targets, spaces, "read")
