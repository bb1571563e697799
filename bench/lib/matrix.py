"""matrix.py - every pair of a client and a server, in every case that both know."""

import bars
import calls
import cases
import clients
import load
import plot
import rounds
import servers
import tables
from cases import MAIN, Case
from section import pair_name


# ---- who takes part

def named(option, words):
    """NAME=VALUE …, as a dict."""
    pairs = [word.partition("=") for word in words]
    if not all(name and value for name, _, value in pairs):
        raise servers.Failed(f"{option} takes NAME=VALUE")
    return {name: value for name, _, value in pairs}


def peers_of(args):
    """NAME[:KIND]=URI, a kind of namespace each."""
    pids, uris = named("--pid", args.pid), {}
    for name, uri in named("--peer", args.peer).items():
        name, _, space = name.partition(":")
        uris.setdefault(name, {})[space or MAIN] = uri
    return [servers.peer(name, some, int(pids[name]) if name in pids else None)
            for name, some in uris.items()]


def ours_of(args, folder):
    """Our target, and the same with other words."""
    made = []
    for name, words in ({"weft": ""} | named("--also", args.also)).items():
        specs = {space: spec.format(size=args.size, path=f"{folder}/{name}.img")
                 for space, spec in cases.SPACES.items()}
        made.append(servers.weft(name, folder, specs, words.split()))
    return made


def pairs_of(hosts, targets, chosen):
    """{name: (client, server)} of all that fit, or of those that were chosen."""
    pairs = {pair_name(client, server): (client, server) for client in hosts for server in targets
             if client.fits(server, Case(MAIN, 4096, "read", 1))}
    unknown = [name for name in chosen if name not in pairs]
    if unknown:
        raise servers.Failed(f'there is no pair "{unknown[0]}"; there are: {", ".join(pairs)}')
    return {name: pairs[name] for name in chosen} if chosen else pairs


# ---- measuring


def takes_part(client, server, case, peers):
    """Other clients are there to compare: where no peer has such a namespace, they are not."""
    comparable = case.space == MAIN or any(case.space in peer.spaces for peer in peers)
    return client.fits(server, case) and (comparable or isinstance(client, clients.Weft))


def turns_of(pairs, wanted, peers, seconds):
    turns = []
    for case in wanted:
        runs = {name: run_of(client, server, case, seconds)
                for name, (client, server) in pairs.items()
                if takes_part(client, server, case, peers)}
        if runs:
            turns.append((case, rounds.Turn(case.name, runs)))
    return turns


def run_of(client, server, case, seconds):
    return lambda: load.measure(client, server, case, seconds)


def sections(args, folder):
    ours, peers = ours_of(args, folder), peers_of(args)
    others = [clients.Other(*item) for item in named("--client", args.client).items()]
    hosts, targets = [clients.Weft(), clients.Bare(), *others], [*ours, servers.bare(), *peers]
    pairs = pairs_of(hosts, targets, [name for name in args.pairs.split(",") if name])
    wanted = [case for case in cases.matrix() if case.name.startswith(tuple(args.cases.split(",")))]
    turns = turns_of(pairs, wanted, peers, args.time)
    with servers.running(target for target in targets if target not in peers):
        rounds.progress("writing the namespaces")
        load.prefill(hosts[0], targets, {case.space for case in wanted})
        rounds.measure([turn for _, turn in turns], args.rounds)
        counted = [case for case in wanted if case.space == MAIN and case.depth in (1, 32)]
        shown = [tables.speed_section(turns, list(pairs)),
                 tables.latency_section(turns, list(pairs)),
                 tables.processor_section(turns, list(pairs)),
                 calls.section(pairs, counted), tables.resident_section(targets)]
    shown[0].bars = bars.of_matrix(turns, others, peers)
    shown[0].picture = plot.picture(turns, list(pairs))
    return shown
