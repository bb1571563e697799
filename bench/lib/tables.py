"""tables.py - what the matrix shows: a row for each case, a column for each pair."""

from section import Section, number, table

LATENCY = ("mean_us", "p50_us", "p99_us", "p9999_us")


def cells(turns, names, text):
    """A dash where a pair does not know a case."""
    return [[case.label] + [text(turn, name) if name in turn.runs else "–" for name in names]
            for case, turn in turns]


def speed(turn, name):
    return f"{number(turn.median(name, 'iops'))} ±{turn.spread(name):.0f} %"


def bandwidth(turn, name):
    return f"{number(turn.median(name, 'mib_s'))} ±{turn.spread(name, 'mib_s'):.0f} %"


def latency(turn, name):
    mean, half, most, nearly_all = (turn.median(name, key) for key in LATENCY)
    return f"{number(mean, 1)} · {number(half, 1)} · {number(most, 1)} · {number(nearly_all)}"


def processor(turn, name):
    return f"{number(turn.median(name, 'server_us'), 2)} + {number(turn.median(name, 'cpu_us'), 2)}"


def speed_section(turns, names):
    small = [(case, turn) for case, turn in turns if case.bs == 4096]
    large = [(case, turn) for case, turn in turns if case.bs != 4096]
    return Section("Speed", [
        *table(["I/Os per second", *names], cells(small, names, speed)), "",
        *table(["MiB/s", *names], cells(large, names, bandwidth))],
        turns=[turn for _, turn in turns])


def latency_section(turns, names):
    return Section("Latency", table(["µs: mean · 50 % · 99 % · 99.99 %", *names],
                                    cells(turns, names, latency)))


def processor_section(turns, names):
    return Section("Processor", [
        "One that polls without end uses all of its CPU, however little there is to do.", "",
        *table(["CPU per I/O, µs: server + client", *names], cells(turns, names, processor))])


def resident_section(servers):
    rows = [[server.name, number(server.resident_mib(), 1)] for server in servers if server.pid]
    return Section("Resident memory", [
        "At the end, with what the namespaces in memory hold.", "",
        *table(["server", "MiB"], rows)], data={name: value for name, value in rows})
