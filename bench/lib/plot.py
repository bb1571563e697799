"""plot.py - the matrix as a picture: rates, bandwidths and round trips, a bar for every pair.

Bars are medians; the line on a bar goes from the least of the rounds to the most. Each panel has a
scale of its own, from zero.
"""

from cases import MAIN

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
WIDTH, LEFT, RIGHT = 960, 210, 850
BAR, GAP, HEAD = 13, 12, 46

PANELS = (
    ("4 KiB, thousand I/Os per second", "iops", 1e-3,
     lambda case: case.bs == 4096 and case.depth > 1),
    ("128 KiB, MiB/s", "mib_s", 1, lambda case: case.bs != 4096),
    ("4 KiB, depth 1: mean round trip, µs", "mean_us", 1,
     lambda case: case.bs == 4096 and case.depth == 1),
)


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def text(x, y, words, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {extra}>{escape(words)}</text>'


def legend(names, y):
    out, x = [], LEFT
    for name, colour in zip(names, COLOURS):
        out += [f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/>',
                text(x + 18, y, name)]
        x += 36 + 8 * len(name)
    return out


def bar(y, values, scale, factor, colour):
    middle = sorted(values)[len(values) // 2]
    low, high = LEFT + min(values) * scale, LEFT + max(values) * scale
    shown = middle * factor
    return [f'<rect x="{LEFT}" y="{y}" width="{middle * scale:.1f}" height="{BAR - 2}" '
            f'fill="{colour}"/>',
            f'<path d="M{low:.1f} {y + BAR / 2 - 1:.1f}H{high:.1f}" stroke="#222"/>',
            text(high + 6, y + BAR - 3, f"{shown:,.0f}" if shown >= 100 else f"{shown:.1f}",
                 'font-size="11"')]


def panel(title, key, factor, turns, names, y):
    """Its lines, and where the next one begins."""
    most = max((max(turn.values(name, key)) for _, turn in turns for name in turn.runs), default=1)
    out = [text(LEFT, y + 16, title, 'font-size="15"')]
    y += 28
    for case, turn in turns:
        here = [name for name in names if name in turn.runs]
        out.append(text(LEFT - 10, y + BAR * len(here) / 2 + 4,
                        case.label.partition(" KiB ")[2], 'text-anchor="end"'))
        for name in here:
            out += bar(y, turn.values(name, key), (RIGHT - LEFT) / most, factor,
                       COLOURS[names.index(name) % len(COLOURS)])
            y += BAR
        y += GAP
    return out, y + GAP


def picture(turns, names):
    """An SVG. @turns: (case, turn) of the matrix."""
    out, y = [], HEAD + 30
    for title, key, factor, shows in PANELS:
        some = [(case, turn) for case, turn in turns if case.space == MAIN and shows(case)]
        if some:
            lines, y = panel(title, key, factor, some, names, y)
            out += lines
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        text(LEFT, 32, "NVMe/TCP over loopback, one CPU at each end", 'font-size="18"'),
        *legend(names, HEAD + 14), *out, "</svg>"]) + "\n"
