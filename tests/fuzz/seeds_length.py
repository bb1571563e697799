"""seeds_length.py - lengths as the fuzzers' programs say them: one byte, as in peer/commands.c."""
KIB = 1024
EDGES = [0, 8, 16, 64, 512, KIB, *(n * KIB for n in (
    4, 8, 12, 16, 20, 32, 48, 64, 96, 128, 144, 192, 256, 272, 320, 384, 400, 512, 640, 768, 784, 960,
    1024, 2048, 16384, 2 << 20))]


def length_byte(edge, more=0):
    """A length of @edge bytes, and -3 to 4 more."""
    return EDGES.index(edge) * 8 + 3 + more
