"""nasty.py - names that a terminal would act on, or that look like another name; and whether what was
printed is fit to be seen."""
import unicodedata

_ODD = {
    "ESC": b"\x1b[2J",
    "a line end": b"\nfine",
    "DEL": b"\x7f",
    "CSI, U+009B": "\u009b2J".encode(),
    "a C1 byte alone": b"\x9b2J",
    "not UTF-8": b"\xff\xfe",
    "a character cut off": "\u20ac".encode()[:2],
    "an overlong slash": b"\xc0\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "a bidi override": "\u202eknalb".encode(),
    "a bidi isolate": "\u2066a\u2069".encode(),
    "no width": "\u200b".encode(),
    "a line separator": "\u2028".encode(),
    "a tag": "\U000e0041".encode(),
}
NAMES = {what: b"nqn.2026-11.io.weft:a" + odd + b"z" for what, odd in _ODD.items()}

# Unusual, and right
FINE = {"a backslash": r"nqn.2026-11.io.weft:\x9b", "an umlaut": "nqn.2026-11.io.weft:gr\u00fcn",
        "Chinese": "nqn.2026-11.io.weft:\u4e2d\u6587", "a space": "nqn.2026-11.io.weft:a b"}


def fit_to_see(output):
    """No control character but the line's end, nothing that is hidden, and all of it UTF-8."""
    for char in output.decode():
        assert char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Zl", "Zp", "Cs"), \
            f"{char!r} in {output!r}"
