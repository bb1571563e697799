"""scale.py - cost that does not grow: connections, namespaces, subsystems.

Spread over more connections, the same depth leaves less for each to send at once: at both ends, and
in the kernel between them. The bare server meets the same; what it loses is not the target's to win
back.
"""

import pathlib

import crowd
import rounds
import servers
from section import Bar, Section, number, table

CONNECTIONS = (1, 10, 100, 1000)
COMPARED = (10, 1000)
DEPTHS = (1000, 16000)
MANY = 1000                             # namespaces, subsystems
SPREAD = 100                            # connections to those, with a depth of 1,000 in all
MEMORY = 512 << 20                      # of all namespaces together


def config(path, folder, port, server):
    """A file says what flags cannot: queues this deep, subsystems this many."""
    size = server.blocks * crowd.BLOCK
    lines = [f'listen: [ "nvme+tcp://127.0.0.1:{port}" ]', f"control: {folder}/{port}.sock",
             f'cpus: "{servers.SERVER_CPU}"', "depth: 32768", "subsystems:"]
    for nqn in server.nqns:
        lines += [f"  - nqn: {nqn}", "    allow_any_host: true", "    namespaces:"]
        lines += [f'      - {{ nsid: {nsid}, backend: "mem:{size}", block: {crowd.BLOCK} }}'
                  for nsid in range(1, server.namespaces + 1)]
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def target(folder, name, namespaces=1, subsystems=1):
    port, path = servers.free_port(), f"{folder}/{name}.yaml"
    server = servers.Started(name, port, {}, [servers.BUILD / "weft", "serve", "-c", path])
    server.namespaces = namespaces
    server.nqns = [f"{servers.NQN}{at}" for at in range(subsystems)]
    server.blocks = MEMORY // crowd.BLOCK // namespaces // subsystems       # of each namespace
    config(path, folder, port, server)
    return server


def by_connections(target, bare, seconds):
    turns = []
    for depth in DEPTHS:
        runs = {count: (lambda c=count, d=depth: crowd.run_weft(target, c, d, seconds))
                for count in CONNECTIONS}
        runs |= {f"bare {count}": (lambda c=count, d=depth: crowd.run_bare(bare, c, d, seconds))
                 for count in COMPARED}
        turns.append(rounds.Turn(f"connections, depth {depth:,} in all", runs))
    return turns


def by_objects(few, many, seconds):
    """@few: the target that has one of each; @many: {what: the one that has many}."""
    def run_of(server):
        return lambda: crowd.run_weft(server, SPREAD, SPREAD * 10, seconds)
    return [rounds.Turn(what, {"1": run_of(few), f"{MANY:,}": run_of(server)})
            for what, server in many.items()]


def connection_lines(turns):
    few, many = COMPARED
    rows = []
    for turn in turns:
        rates = [number(turn.median(who, "iops")) for who in turn.runs]
        rows.append([turn.name, *rates, f"{turn.ratio(many, few):.2f}",
                     f"{turn.ratio(f'bare {many}', f'bare {few}'):.2f}"])
    return table(["reads per second over", *(f"{count:,}" for count in CONNECTIONS),
                  *(f"bare: {count:,}" for count in COMPARED), "1,000 / 10", "bare: 1,000 / 10"],
                 rows)


def object_lines(turns):
    rows = [[turn.name, *(f"{number(turn.median(who, 'iops'))}; "
                          f"{number(turn.median(who, 'resident_mib'))} MiB" for who in turn.runs),
             f"{turn.ratio(*reversed(turn.runs)):.2f}"] for turn in turns]
    return table(["reads per second; resident", "1", f"{MANY:,}", f"{MANY:,} / 1"], rows)


def sections(args, folder):
    few, bare = target(folder, "one"), servers.bare()
    many = {"namespaces": target(folder, "namespaces", namespaces=MANY),
            "subsystems": target(folder, "subsystems", subsystems=MANY)}
    lines, objects = by_connections(few, bare, args.time), by_objects(few, many, args.time)
    with servers.running([few, bare, *many.values()]):
        rounds.measure([*lines, *objects], args.rounds)
    bars = [Bar(f"{turn.name}: 1,000 / 10", turn.ratio(1000, 10), "≥", 0.8, " ×") for turn in lines]
    return [Section("Cost that does not grow", [
        "4 KiB reads from memory by a client that costs next to nothing (bench/crowd.c).", "",
        *connection_lines(lines), "", *object_lines(objects)], bars, [*lines, *objects])]
