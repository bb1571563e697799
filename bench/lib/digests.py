"""digests.py - what checksums over headers and data cost, where there is most data."""

import cases
import clients
import load
import rounds
import servers
from section import Bar, Section, number, table

DEPTH = 32


def turn_of(target, rw, seconds):
    case = cases.Case(cases.MAIN, 131072, rw, DEPTH)

    def run_of(client):
        return lambda: load.measure(client, target, case, seconds)

    return rounds.Turn(case.label, {"off": run_of(clients.Weft()),
                                    "on": run_of(clients.Weft(["--hdgst", "--ddgst"]))})


def sections(args, folder):
    target = servers.weft_in_memory(folder, args.size)
    turns = [turn_of(target, rw, args.time) for rw in ("read", "write")]
    with servers.running([target]):
        load.prefill(clients.Weft(), [target], [cases.MAIN])
        rounds.measure(turns, args.rounds)
    rows = [[turn.name, *(number(turn.median(who, "mib_s")) for who in turn.runs),
             f"{turn.ratio('on', 'off'):.2f}"] for turn in turns]
    bars = [Bar(f"{turn.name}: with digests / without", turn.ratio("on", "off"), "≥", 0.85, " ×")
            for turn in turns]
    return [Section("Digests", table(["MiB/s", "off", "on", "on / off"], rows), bars, turns)]
