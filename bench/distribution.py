"""distribution.py - many times, as numbers, as a histogram in text, and as a plot.

Times are microseconds."""
import math
import statistics

BAR = 50
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 520, 70, 930, 80, 440


def share(values, percent):
    """The smallest of them that so many are not above."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def numbers(values):
    return (statistics.median(values), share(values, 90), share(values, 99), max(values))


def text(us):
    return f"{us:,.0f}" if us < 100000 else f"{us / 1000:,.0f} k"


# ---- in text

def edge(us):
    """The lower edge of its bucket: four to each power of two."""
    return 2 ** (math.floor(math.log2(max(us, 1)) * 4) / 4)


def histogram(values):
    """Lines, from the first bucket that has some to the last; a run of empty ones is one line."""
    counts = {}
    for value in values:
        counts[edge(value)] = counts.get(edge(value), 0) + 1
    most, lines, before = max(counts.values()), [], None
    for low in sorted(counts):
        if before and low / before > 2 ** 0.3:
            lines.append("          ...")
        bar = "#" * math.ceil(BAR * counts[low] / most)
        lines.append(f"{text(low):>9} - {text(low * 2 ** 0.25):<9} {counts[low]:5} {bar}")
        before = low
    return lines


# ---- as a plot: how many were over by then

def decades(series):
    values = [value for _, some in series for value in some]
    low, high = math.log10(max(min(values), 1)), math.log10(max(values))
    return math.floor(low), max(math.ceil(high), math.floor(low) + 1)


def curve(values, x, y):
    ordered = sorted(values)
    points = [(x(ordered[0]), y(0))]
    for i, value in enumerate(ordered):
        points += [(x(value), y(i / len(ordered))), (x(value), y((i + 1) / len(ordered)))]
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in points)


def label(us):
    return f"{us:g} µs" if us < 1000 else f"{us / 1000:g} ms" if us < 1e6 else f"{us / 1e6:g} s"


def plot(title, under, series):
    """An SVG. @series: (name, times) of each curve."""
    first, last = decades(series)

    def x(us):
        return LEFT + (RIGHT - LEFT) * (math.log10(max(us, 1)) - first) / (last - first)

    def y(part):
        return BOTTOM - (BOTTOM - TOP) * part

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="13" fill="#222">',
           '<rect width="100%" height="100%" fill="#fff"/>',
           f'<text x="{LEFT}" y="34" font-size="18">{title}</text>',
           f'<text x="{LEFT}" y="56" fill="#555">{under}</text>']
    for exponent in range(first, last + 1):
        at = x(10 ** exponent)
        out += [f'<path d="M{at:.1f} {TOP}V{BOTTOM}" stroke="#ddd"/>',
                f'<text x="{at:.1f}" y="{BOTTOM + 20}" text-anchor="middle">'
                f'{label(10 ** exponent)}</text>']
    for percent in (0, 25, 50, 75, 100):
        at = y(percent / 100)
        out += [f'<path d="M{LEFT} {at:.1f}H{RIGHT}" stroke="#ddd"/>',
                f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{percent} %</text>']
    for i, (name, values) in enumerate(series):
        colour, at = COLOURS[i % len(COLOURS)], LEFT + i * (RIGHT - LEFT) / len(series)
        out += [f'<polyline fill="none" stroke="{colour}" stroke-width="2" '
                f'points="{curve(values, x, y)}"/>',
                f'<path d="M{at:.1f} {HEIGHT - 30}h22" stroke="{colour}" stroke-width="3"/>',
                f'<text x="{at + 28:.1f}" y="{HEIGHT - 26}">{name}</text>']
    return "\n".join([*out, "</svg>"]) + "\n"
