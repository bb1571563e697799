"""clients.py - what makes the load: `weft bench`, the bare client, or any other program.

A client makes a command out of a case, and numbers out of what the command printed:

    iops, mean_us, p50_us, p99_us, p9999_us     None where it does not tell
    cpu_us                                      of its own CPU time per I/O, if it tells

Another program is given as a command with {host} {port} {nqn} {nsid} {rw} {mix} {bs} {depth} {time}
in it. It prints like `weft bench --json`, or like spdk_nvme_perf -L.
"""

import json
import re
import shlex

import cases
from servers import BUILD, Failed

WARM_S = 0.3


class Weft:
    name = "weft"
    warm_s = WARM_S

    def __init__(self, words=()):
        self.words = list(words)

    def fits(self, server, case):
        return server.name != "bare" and case.space in server.spaces

    def argv(self, server, case, seconds):
        mix = ["--mix", cases.MIX] if case.rw == "mix" else []
        return [BUILD / "weft", "bench", server.uri(case.space), "--rw", case.pattern, *mix,
                "--write-ok", "--bs", case.bs, "--depth", case.depth, "--time", f"{seconds:g}",
                "--warmup", f"{WARM_S:g}", "--json", *self.words]

    def read(self, text):
        return from_json(text)


class Bare:
    name = "bare"
    warm_s = WARM_S

    def fits(self, server, case):
        """Its requests are all of one length: it does no mix."""
        return server.name == "bare" and case.space in server.spaces and case.rw != "mix"

    def argv(self, server, case, seconds):
        return [BUILD / "bench" / "bare_client", case.rw, case.bs, case.depth, 1, WARM_S, seconds,
                server.port]

    def read(self, text):
        return json.loads(text)


class Other:
    warm_s = 0

    def __init__(self, name, template):
        self.name, self.words = name, shlex.split(template)

    def fits(self, server, case):
        return server.name != "bare" and case.space in server.spaces

    def argv(self, server, case, seconds):
        nqn, nsid = server.spaces[case.space]
        known = {"host": server.host, "port": server.port, "nqn": nqn, "nsid": nsid,
                 "rw": case.pattern, "mix": cases.MIX, "bs": case.bs, "depth": case.depth,
                 "time": f"{seconds:g}"}
        return [word.format(**known) for word in self.words]

    def read(self, text):
        return from_json(text) if text.lstrip().startswith("{") else from_text(text)


# ---- what they print

def from_json(text):
    """Of a mix: the two kinds together, their percentiles those of the slower one."""
    result = json.loads(text)
    sides = [result[kind] for kind in ("read", "write") if result[kind]["ios"]]
    if not sides:
        raise Failed(f"no I/O was done: {result.get('why')}")
    iops = sum(side["iops"] for side in sides)

    def percentile(which):
        return max(side["latency_ns"]["percentiles"][which] for side in sides) / 1e3

    mean = sum(side["iops"] * side["latency_ns"]["mean"] for side in sides) / iops
    return {"iops": iops, "mean_us": mean / 1e3,
            "p50_us": percentile("50"), "p99_us": percentile("99"),
            "p9999_us": percentile("99.99"), "cpu_us": result["cpu"]["us_per_io"]}


TOTAL = re.compile(r"^Total\s*:\s*([\d.]+)\s+[\d.]+\s+([\d.]+)", re.M)


def from_text(text):
    total = TOTAL.search(text)
    if not total:
        raise Failed(f"no total in: {text.strip()[-300:]}")
    numbers = {"iops": float(total[1]), "mean_us": float(total[2])}
    for key, percent in (("p50_us", 50), ("p99_us", 99), ("p9999_us", 99.99)):
        line = re.search(rf"^\s*{percent:.5f}%\s*:\s*([\d.]+)us", text, re.M)
        numbers[key] = float(line[1]) if line else None
    return numbers
