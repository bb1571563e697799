"""cases.py - the matrix: what is done, how much at once, to which kind of namespace."""

from dataclasses import dataclass

MIX = 70                        # per cent of a mix that are reads
SIZES = {4096: "4k", 131072: "128k"}

# Kinds of namespace, and what `weft serve --ns` makes them of.
SPACES = {
    "mem": "mem:{size},block=4096",
    "mem-512": "mem:{size},block=512",
    "null": "null:{size},block=4096",
    "null-512": "null:{size},block=512",
    "file": "file:{path},size={size},block=4096",
}
MAIN = "mem"


@dataclass(frozen=True)
class Case:
    space: str
    bs: int
    rw: str                     # read, write, mix
    depth: int

    @property
    def name(self):
        return f"{self.space}-{SIZES[self.bs]}-{self.rw}-{self.depth}"

    @property
    def label(self):
        where = "" if self.space == MAIN else f"{self.space}: "
        what = "70/30 mix" if self.rw == "mix" else self.rw
        return f"{where}{self.bs // 1024} KiB {what}, depth {self.depth}"

    @property
    def pattern(self):
        """As fio and those like it call it: small ones go anywhere, large ones in a row."""
        if self.rw == "mix":
            return "randrw"
        return f"rand{self.rw}" if self.bs == 4096 else self.rw


def matrix():
    """Everything on memory; on the other kinds what shows a difference."""
    small = [Case(MAIN, 4096, rw, depth) for rw in ("read", "write") for depth in (1, 32, 128)]
    large = [Case(MAIN, 131072, rw, depth) for rw in ("read", "write") for depth in (8, 32)]
    others = [Case(space, bs, rw, 32) for space in SPACES if space != MAIN
              for bs in ([4096] if space.endswith("-512") else SIZES) for rw in ("read", "write")]
    return [*small, *large, Case(MAIN, 4096, "mix", 32), *others]
