"""footprint.py - what a default target costs: CPU while nobody does anything, memory when all do.

Its namespace is null, so that all the memory is the target's own.
"""

import subprocess
import time

import crowd
import machine
import servers
from section import Bar, Section, number, table

CONNECTIONS, DEPTH = 16, 128
SIZES = ("4k", "128k")


def target(folder):
    """On every CPU, as it comes."""
    port = servers.free_port()
    return servers.Started("weft", port, {"null": (servers.NQN, 1)}, [
        servers.BUILD / "weft", "serve", "--listen", f"nvme+tcp://127.0.0.1:{port}", "--nqn",
        servers.NQN, "--ns", "null:1T", "--control", f"{folder}/{port}.sock"], cpu=None)


def idle_share(server, seconds):
    before, start = server.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return 100 * (server.cpu_seconds() - before) / (time.monotonic() - start)


def idle(args, folder):
    server = target(folder)
    with servers.running([server]), server.turn():
        alone = idle_share(server, args.idle_time)
        controllers = crowd.connect(server, [servers.NQN], CONNECTIONS, DEPTH)
        connected = idle_share(server, args.idle_time)
        for controller in controllers:
            controller.close()
    rows = [["no host", f"{alone:.3f}"], [f"{CONNECTIONS} connections", f"{connected:.3f}"]]
    return [Section("Idle", [f"Over {args.idle_time:g} s.", "",
                             *table(["connected and idle", "% of one CPU"], rows)],
                    [Bar("idle CPU", max(alone, connected), "≤", 0.2, " %")])]


def exert(server, rw, bs):
    command = [servers.BUILD / "weft", "bench", server.uri("null"), "--rw", rw, "--write-ok",
               "--bs", bs, "--queues", CONNECTIONS, "--depth", CONNECTIONS * DEPTH, "--time", 1]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=60)


def peak_mib(server):
    return machine.memory_mib(server.pid, "VmHWM")


def memory(_args, folder):
    """Small I/Os first: what they took at most is known before large ones take more."""
    server, peaks = target(folder), {}
    with servers.running([server]), server.turn():
        started = server.resident_mib()
        for bs in SIZES:
            for rw in ("randread", "randwrite"):
                exert(server, rw, bs)
            peaks[bs] = peak_mib(server)
        huge = machine.memory_mib(server.pid, "HugetlbPages")
    rows = [["started, no host", number(started, 1)],
            *([f"most, with I/Os of {bs}", number(peak, 1)] for bs, peak in peaks.items()),
            ["of that in huge pages", number(huge, 1)]]
    return [Section("Memory", [f"{CONNECTIONS} connections of depth {DEPTH}, all of it in use.", "",
                               *table(["resident", "MiB"], rows)],
                    [Bar(f"resident: {CONNECTIONS} connections of depth {DEPTH}, I/Os of {bs}",
                         peak, "≤", 100, " MiB") for bs, peak in peaks.items()])]
