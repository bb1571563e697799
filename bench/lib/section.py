"""section.py - what a part of the benchmark comes to: a piece of the report, bars met or not."""

from dataclasses import dataclass, field


@dataclass
class Bar:
    """@value has to be @sign ("≥" or "≤") @limit; None: it was not measured."""
    what: str
    value: float
    sign: str
    limit: float
    unit: str = ""

    @property
    def met(self):
        if self.value is None:
            return None
        return self.value >= self.limit if self.sign == "≥" else self.value <= self.limit

    def row(self):
        value = "not measured" if self.value is None else f"{self.value:.2f}{self.unit}"
        verdict = {None: "–", True: "yes", False: "**no**"}[self.met]
        return [self.what, value, f"{self.sign} {self.limit:g}{self.unit}", verdict]


@dataclass
class Section:
    """@turns: what its numbers come from, for the rounds that do not count."""
    title: str
    lines: list
    bars: list = field(default_factory=list)
    turns: list = field(default_factory=list)
    data: dict = field(default_factory=dict)
    picture: str = ""           # SVG


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def number(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def pair_name(client, server):
    return client.name if client.name == server.name else f"{client.name} on {server.name}"
