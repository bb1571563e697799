"""seeds_host.py - the first inputs of the fuzzers of the host's side, for seeds.py."""
import struct

# ---- fuzz_link: what the host asks for, then operations in the order of its table

(TURN, ICRESP, SUBMIT, RESP, C2H, R2T, TERM, RAW, SPOIL, SPLIT, PAD, HEAR, END, CLOCK, CLOSE,
 LIMIT) = range(16)
READ, WRITE, FLUSH, CONNECT, IDENTIFY, BOTH = range(6)
AGAIN, SKIP, TAIL, LONG = 1, 2, 4, 0x80
WRONG_CID, WRONG_AT, WRONG_LEN, WRONG_DIGEST, REST = 1, 2, 4, 8, 16
LAST, SUCCESS = 4, 8
SETTLE = 0x80


def op(code, fmt="", *args, settle=True, tail=b""):
    return bytes([code | SETTLE * settle]) + struct.pack("<" + fmt, *args) + tail


def link(dgst=0, depth=8, capsule=2, free_inside=True):
    return struct.pack("<4B", dgst | 4 * free_inside, depth - 1, capsule, 0)


def up(dgst=0, depth=8, capsule=2, cpda=0):
    """A link that is ready."""
    return link(dgst, depth, capsule) + op(ICRESP, "BB", 0, cpda)


def submit(kind, length, flags=0, shape=0, skip=None, tail=None, settle=True):
    more = b""
    if skip is not None:
        flags, more = flags | SKIP, more + bytes([skip])
    if tail is not None:
        flags, more = flags | TAIL, more + bytes([tail])
    return op(SUBMIT, "BBHB", kind, flags, length, shape, settle=settle, tail=more)


def resp(which=0, wrong=0, status=0, cid=b"", **kw):
    return op(RESP, "BBB", which, wrong, status, tail=cid, **kw)


def c2h(which=0, wrong=REST, flags=LAST, length=0, tail=b"", **kw):
    return op(C2H, "BBBH", which, wrong, flags, length, tail=tail, **kw)


def r2t(which=0, wrong=REST, length=0, ttag=7, tail=b"", **kw):
    return op(R2T, "BBH", which, wrong, length, tail=tail + bytes([ttag]), **kw)


def good_link_seeds():
    for dgst in range(4):
        yield f"read-{dgst}", up(dgst) + submit(READ, 4096) + c2h() + resp()
        yield f"read-success-{dgst}", up(dgst) + submit(READ, 4096) + c2h(flags=LAST | SUCCESS)
        yield f"write-capsule-{dgst}", up(dgst) + submit(WRITE, 4096) + resp()
        yield f"write-r2t-{dgst}", up(dgst) + submit(WRITE, 20000) + r2t() + resp()
        yield f"write-r2ts-{dgst}", up(dgst, cpda=31) + submit(WRITE, 20000) + \
            r2t(0, 0, 5000) + r2t(0, 0, 5000) + r2t() + resp()
        yield f"scattered-{dgst}", up(dgst) + submit(READ, 30000, 0, 0x80 | 0x40 | 3, 5, 9) + \
            c2h(0, 0, 0, 10001) + c2h(0, 0, 0, 3) + c2h() + submit(WRITE, 30000, 0, 0x40 | 33, 7) \
            + r2t(0, 0, 9999) + resp(1) + r2t() + resp()
    yield "flush", up() + submit(FLUSH, 0) + resp()
    yield "connect", up(capsule=0) + submit(CONNECT, 1024) + resp()
    yield "identify", up() + submit(IDENTIFY, 4096) + c2h() + resp()
    yield "refused", up() + submit(READ, 512) + resp(status=0x80) + submit(WRITE, 512) + resp(0, 0, 1)
    yield "again", up() + submit(READ, 64, AGAIN) + (c2h(flags=LAST | SUCCESS)) * 5
    yield "many", up() + submit(READ, 512, settle=False) * 9 + c2h(7) + resp(7) + resp() * 8
    yield "one-slot", up(depth=1) + (submit(WRITE, 9000) + r2t() + resp()) * 3
    yield "short-data", up() + submit(READ, 512) + c2h(0, 0, LAST, 100) + resp()
    yield "wrong-ddgst", up(2) + submit(READ, 512) + c2h(0, REST | WRONG_DIGEST) + resp()
    yield "padded", up(3) + submit(READ, 512) + op(PAD, "B", 9) + c2h() + resp()
    yield "byte-by-byte", up(3) + op(LIMIT, "HHB", 1, 1, 63) + submit(WRITE, 300) + resp()
    yield "trickle", up() + submit(READ, 65535, 0, 20) + op(LIMIT, "HHB", 700, 333, 63) + c2h() + \
        resp() + submit(WRITE, 65535, 0, 0x82) + op(LIMIT, "HHB", 700, 333, 63) + r2t() + resp()
    yield "long", up() + submit(READ, 65535, LONG, 0xff) + c2h() + resp() + \
        submit(WRITE, 65535, LONG, 0xff) + r2t() + resp()
    yield "split", up(1) + submit(READ, 4096) + op(SPLIT, "H", 5) + c2h(0, 0, 0, 100) + \
        op(SPLIT, "H", 90) + c2h(0, 0, 0, 100) + op(SPLIT, "H", 27) + c2h() + \
        op(SPLIT, "H", 20) + resp()
    yield "deaf", up() + op(HEAR, "B", 1) + submit(WRITE, 8000) * 4 + resp() + op(HEAR, "B", 0)
    yield "deaf-r2t", up() + submit(WRITE, 60000, LONG, 0xbf) + op(HEAR, "B", 1) + r2t() + \
        submit(READ, 100) + c2h(1) + resp(1) + op(CLOSE)
    yield "answer-early", up() + op(HEAR, "B", 1) + submit(WRITE, 8000) * 3 + resp() * 3 + \
        op(HEAR, "B", 0)


def bad_link_seeds():
    yield "silent", link() + op(CLOCK, "H", 1000) + op(TURN, "B", 3)
    yield "silent-late", link() + op(CLOCK, "H", 999) + op(ICRESP, "BB", 0, 0)
    for flags, name, tail in ((1, "maxh2c", b"\xff\x0f\0\0"), (2, "pfv", b"\1\0"),
                              (8, "dgst", b"\3")):
        yield f"icresp-{name}", link() + op(ICRESP, "BB", flags, 0, tail=tail)
    yield "icresp-cpda", link() + op(ICRESP, "BB", 4, 32)
    yield "icresp-twice", up() + op(ICRESP, "BB", 0, 0)
    yield "early-resp", link() + resp(cid=b"\0\0")
    yield "term", up() + submit(READ, 512) + op(TERM, "BB", 2, 72)
    yield "term-long", up() + op(TERM, "BB", 2, 129)
    yield "nobody", up() + resp(cid=b"\1\0")
    for wrong, name, tail in ((WRONG_CID, "cid", b"\7\7"), (WRONG_AT, "at", b"\4\0\0\0"),
                              (WRONG_LEN, "len", b"\1\0\0\0"), (WRONG_LEN, "huge", b"\xff" * 4)):
        yield f"c2h-wrong-{name}", up() + submit(READ, 512) + c2h(0, REST | wrong, tail=tail)
        yield f"r2t-wrong-{name}", up() + submit(WRITE, 9000) + r2t(0, REST | wrong, tail=tail)
    yield "c2h-too-much", up() + submit(READ, 512) + c2h(0, 0, LAST, 513)
    yield "c2h-for-write", up() + submit(WRITE, 512) + c2h()
    yield "c2h-after", up() + submit(READ, 512) + c2h() + c2h(0, 0, LAST, 4) + resp()
    yield "c2h-not-last", up() + submit(READ, 512) + c2h(flags=SUCCESS)
    yield "r2t-for-read", up() + submit(READ, 512) + r2t()
    yield "r2t-capsule", up() + submit(WRITE, 512) + r2t()
    yield "r2t-three", up() + submit(WRITE, 65535) + op(HEAR, "B", 1) + r2t(0, 0, 30000) + \
        r2t(0, 0, 4) + r2t(0, 0, 4)
    yield "both-ways", up() + submit(BOTH, 512) + c2h() + submit(BOTH, 512) + r2t()
    yield "late-resp", up() + submit(READ, 512) + resp() + resp(0, WRONG_CID, 0, b"\x08\0")
    yield "spoil-hdgst", up(1) + submit(READ, 512) + op(SPOIL, "HB", 24 | 1 << 15, 1) + c2h()
    yield "spoil-type", up() + op(SPOIL, "HB", 0, 1) + resp(cid=b"\0\0")
    yield "spoil-plen", up() + submit(READ, 512) + op(SPOIL, "HB", 7, 0x80) + c2h()
    yield "raw", up() + op(RAW, "H", 8, tail=b"\5\0\x18\0\x18\0\0\0")
    yield "raw-first", link() + op(RAW, "H", 8, tail=bytes(8))
    for turns in range(4):
        yield f"close-{turns}", up() + submit(WRITE, 65535, LONG, 0xbf) + \
            r2t(settle=False) + op(TURN, "B", turns, settle=False) + op(CLOSE)
        yield f"end-{turns}", up() + submit(READ, 65535, LONG, 0xbf) + \
            c2h(0, 0, 0, 60000, settle=False) + op(TURN, "B", turns, settle=False) + \
            op(END, "B", turns)
        yield f"fault-{turns}", up() + submit(WRITE, 65535, LONG, 0xbf, settle=False) + \
            r2t(settle=False) + op(TURN, "B", turns, settle=False) + resp(0, WRONG_CID, 0, b"zz")
    yield "r2t-nobody", up() + r2t(tail=b"\0\0") + op(CLOCK, "H", 499) + op(CLOCK, "H", 1) + op(TURN, "B", 1)
    yield "send-fails", up() + op(END, "B", 0, settle=False) + submit(WRITE, 4096)
    yield "linger", up() + resp(cid=b"\0\0") + op(CLOSE) + op(CLOCK, "H", 499) + op(END, "B", 1)


def link_seeds():
    yield from good_link_seeds()
    yield from bad_link_seeds()


# ---- fuzz_queue: what is agreed, then operations in the order of its table

(Q_SUBMIT, Q_POLL, Q_OTHERS, Q_CLOCK, Q_MOOD, Q_RELEASE, Q_HANG_UP, Q_RESET, Q_DEAD,
 Q_LIMIT, Q_SUBMIT_OTHER) = range(11)
(GOOD, SUCCESS_FLAG, PIECES, REFUSE, BUSY, HOLD, SHORT, CORRUPT, BREAK, WRONG, TERMINATE) = range(11)
Q_READ, Q_WRITE, Q_ZERO, Q_FLUSH = (n << 6 for n in range(4))
Q_COPY, Q_COMPARE_AND_WRITE, Q_COMPARE, Q_TRIM, Q_VERIFY = (n << 2 for n in range(5))


def queue(dgst=0, depth=4, capsule=0, small=True, goodbye=True, mood_of_connect=None):
    flags = dgst | 4 * small | 8 * goodbye | 16 * (mood_of_connect is not None)
    return struct.pack("<3B", flags, depth - 1, capsule) + \
        (b"" if mood_of_connect is None else struct.pack("<BH", mood_of_connect, 0x4182))


def io(kind, lane=0, first=0, count=20, fill=7, cut=700, **kw):
    return op(Q_SUBMIT, "BBBBH", kind | lane, first, count - 1, fill, cut, **kw)


def other(kind, lane=0, first=0, count=4, fill=7, cut=700, **kw):
    return op(Q_SUBMIT_OTHER, "BBBBH", kind | lane, first, count - 1, fill, cut, **kw)


def mood(which, status=0):
    return op(Q_MOOD, "BH", which, status, settle=False)


def late():
    """Long enough for a command to be aborted, and then given up."""
    return op(Q_CLOCK, "H", 30000) + op(Q_CLOCK, "H", 5000) + op(Q_CLOCK, "H", 200)


def queue_seeds():
    for which in range(11):
        for kind, name in ((Q_READ, "read"), (Q_WRITE, "write")):
            yield f"{name}-mood-{which}", queue(3 * (which % 2)) + mood(GOOD) + \
                mood(which, 0x281) * 2 + io(kind) + io(kind, 1) + op(Q_CLOCK, "H", 200) + \
                op(Q_RELEASE)
        yield f"connect-mood-{which}", queue() + io(Q_READ, settle=False) + \
            mood(which, 0x4182) * 2 + op(Q_RESET) + op(Q_CLOCK, "H", 10000) * 3
        yield f"open-mood-{which}", queue(mood_of_connect=which) + io(Q_READ)
    for kind, name in ((Q_COPY, "copy"), (Q_COMPARE_AND_WRITE, "fused"), (Q_COMPARE, "compare"),
                       (Q_TRIM, "trim"), (Q_VERIFY, "verify")):
        for which in range(11):
            yield f"{name}-mood-{which}", queue(3 * (which % 2), capsule=which % 4) + mood(GOOD) + \
                mood(which, 0x281) * 2 + other(kind, 0, 4) + other(kind, 1, 4, 20) + \
                op(Q_CLOCK, "H", 200) + op(Q_RELEASE)
        yield f"{name}-breaks", queue(capsule=3) + mood(GOOD) + (mood(BREAK, 1) + other(
            kind, 0, 4) + op(Q_OTHERS) * 3) * 3
        yield f"{name}-reset", queue() + other(kind, 0, 4, 20, settle=False) + op(Q_POLL) + \
            op(Q_RESET) + op(Q_HANG_UP)
    yield "fused-differs", queue() + other(Q_COMPARE_AND_WRITE, fill=8) + other(Q_COMPARE, 1, fill=8)
    yield "capsules", queue(0, 4, 3, False) + io(Q_WRITE, 0, 0, 4) + io(Q_WRITE, 1, 3, 40)
    yield "all", queue() + b"".join(io(k, n, settle=False) for n, k in enumerate(
        (Q_READ, Q_WRITE, Q_ZERO, Q_FLUSH))) + op(Q_POLL)
    yield "one-slot", queue(depth=1) + io(Q_READ, settle=False) + op(Q_RESET)
    yield "late", queue() + mood(HOLD) * 2 + io(Q_WRITE) + late()
    yield "late-answer", queue() + mood(HOLD) + io(Q_WRITE, 0, 0, 1) + op(Q_CLOCK, "H", 30000) + \
        op(Q_RELEASE)
    yield "busy", queue() + mood(BUSY) * 8 + io(Q_READ, 0, 0, 1) + op(Q_CLOCK, "H", 100) * 8
    yield "corrupt", queue(2) + mood(CORRUPT) * 8 + io(Q_READ, 0, 0, 1) + \
        op(Q_CLOCK, "H", 100) * 8
    yield "breaks", queue() + (mood(BREAK, 1) + op(Q_OTHERS) * 3) * 8 + io(Q_WRITE, 0, 0, 1) + \
        op(Q_OTHERS) * 20
    for turns in range(5):
        yield f"reset-{turns}", queue() + io(Q_WRITE, 0, 0, 60, settle=False) + \
            io(Q_READ, 1, 0, 60, settle=False) + (op(Q_POLL, settle=False) + op(
                Q_OTHERS, settle=False)) * turns + op(Q_RESET) + op(Q_HANG_UP)
    yield "dead", queue() + mood(HOLD) * 2 + io(Q_WRITE) + op(Q_DEAD, "B", 0xDD) + io(Q_READ, 1)
    yield "trickle", queue(3) + op(Q_LIMIT, "HHB", 300, 200, 63) + io(Q_WRITE) + io(Q_READ, 1)


# ---- fuzz_host: which of its parts, then that part's input

ADDRESS, LOG, WALK, NAMESPACES, CONTROLLER = range(5)
TCP = 3


def text(words):
    return bytes([len(words)]) + words.encode()


def entry(address, service="4420", nqn="nqn.2026-11.io.weft:a", subtype=2, trtype=TCP, adrfam=1):
    return struct.pack("<4B", trtype, adrfam, subtype, 0) + text(address) + text(service) + \
        text(nqn)


def log(*entries, generation=1, after=None):
    first, last = generation << 2, (generation if after is None else after) << 2
    return bytes([first, len(entries)]) + b"".join(entries) + bytes([last, len(entries)])


def address_seeds():
    base = "nvme+tcp://192.0.2.1:4420"
    nqn = "nqn.2014-08.org.nvmexpress:uuid:12345678-1234-1234-1234-123456789abc"
    for i, words in enumerate((
            "", "/nqn.2026-11.io.weft:a", "/nqn.2026-11.io.weft:a?nsid=1", "?hdgst=1&ddgst",
            "?queues=4&depth=128", "?kato=5s&connect_timeout=100ms&loss_timeout=2m",
            f"?hostnqn={nqn}&hostid=12345678-1234-1234-1234-123456789abc", "?kato", "?=", "?&",
            "?depth=0", "?depth=4097", "?io_timeout=99999999999999999999")):
        yield f"address-{i}", bytes([ADDRESS]) + (base + words).encode()
    for i, whole in enumerate(("nvme+tcp://[::1]:1/", "nvme+rdma://a", "nvme+tcp://", "x")):
        yield f"address-odd-{i}", bytes([ADDRESS]) + whole.encode()


def discovery_seeds():
    some = entry("192.0.2.7"), entry("::1", adrfam=2), entry("a.example", trtype=1)
    yield "log", bytes([LOG]) + log(*some)
    yield "log-changes", bytes([LOG]) + log(*some, after=2) + log(*some, generation=2)
    yield "log-always-changes", bytes([LOG]) + log(after=2) * 9
    yield "log-claims", bytes([LOG, 1]) + struct.pack("<Q", 1 << 40)
    yield "log-format", bytes([LOG, 2, 0, 1])
    yield "log-pieces", bytes([LOG]) + log(*some * 12)
    yield "log-odd", bytes([LOG]) + log(
        entry("a" * 255, "9" * 32, "n" * 255), entry("1.2.3.4:5/nqn.2026-11.a:b?", "1"),
        entry("1.2.3.4/", "4420"), entry("\x1b[0m", "\x07"), entry("", ""), entry("[", "1"))
    yield "walk", bytes([WALK]) + b"\0" + log(entry("192.0.2.8", "8009", "", 1), *some) + \
        b"\0" + log(*some)
    yield "walk-round", bytes([WALK]) + (b"\0" + log(
        entry("192.0.2.1", "8009", "", 1), entry("192.0.2.9", "8009", "", 1))) * 3
    yield "walk-unreachable", bytes([WALK]) + b"\0" + log(entry("192.0.2.8", "8009", "", 1)) + b"\1"


def answer(result=None, status=None, data=b""):
    parts = (len(data) + 299) // 300
    how = (status is not None) | 2 * (result is not None) | 8 * bool(data) | parts << 4
    return bytes([how]) + (struct.pack("<H", status) if status is not None else b"") + \
        (struct.pack("<Q", result) if result is not None else b"") + data.ljust(parts * 300, b"\0")


def page(blocks=2048, formats=0, current=0, metadata=0, shift=9):
    head = struct.pack("<QQQBBB", blocks, blocks, 0, 0, formats, current)
    return head.ljust(128, b"\0") + struct.pack("<HBB", metadata, shift, 0)


DESCRIPTOR = struct.pack("<BBH", 3, 16, 0) + bytes(range(1, 17))       # a UUID


def identified(**kw):
    """An nsid, Identify Namespace, and its descriptors."""
    return b"\0" + answer(data=page(**kw)) + answer(data=DESCRIPTOR)


NO_NAMESPACES = (b"\0" + answer(status=0x4002 << 1)) * 3       # Identify is refused


def commands():
    return b"".join(struct.pack("<BBHB", code, 1, 8, 0) for code in range(3))


def namespace_seeds():
    for name, kw in (("512", {}), ("4k", {"shift": 12}), ("64k", {"shift": 16}),
                     ("none", {"blocks": 0}), ("format", {"current": 3}),
                     ("metadata", {"metadata": 8}), ("shift", {"shift": 31}),
                     ("huge", {"blocks": 1 << 63})):
        yield f"ns-{name}", bytes([NAMESPACES, 1, 1]) + identified(**kw) * 3 + commands() + \
            bytes([12]) + struct.pack("<3I", 1, 2, 9)
    yield "ns-order", bytes([NAMESPACES, 1, 1]) + NO_NAMESPACES + bytes([12]) + \
        struct.pack("<3I", 3, 2, 9)


def identify_ctrl(cntrltype=1, mdts=5, sgls=1, ana=False):
    raw = bytearray(2100)
    raw[76], raw[342] = 8 * ana, 10                                     # CMIC, ANATT
    struct.pack_into("<II", raw, 344, 4 * ana, 4 * ana)                 # ANAGRPMAX, NANAGRPID
    raw[4:24], raw[24:64], raw[64:72] = b"S" * 20, b"model".ljust(40), b"1".ljust(8)
    raw[77], raw[111] = mdts, cntrltype
    raw[259] = 3                                                        # AERL
    struct.pack_into("<I", raw, 92, 0x80000900)                         # OAES
    struct.pack_into("<H", raw, 520, 0x1FF)                             # ONCS
    struct.pack_into("<I", raw, 536, sgls)
    struct.pack_into("<I", raw, 1792, 516)                              # IOCCSZ
    return bytes(raw)


def setup(identify, cap=127 | 10 << 24 | 1 << 37):
    """Connect, CAP, VS, CC, CSTS, Identify, I/O limits, queues, events."""
    return answer(1) + answer(cap) + answer(0x20000) + answer() + answer(1) + \
        answer(data=identify) + answer() + answer(0x70007) + answer()


def controller_seeds():
    three = identified() * 3
    scan = (answer(data=page()) + answer(data=DESCRIPTOR)) * 3
    live = bytes([CONTROLLER, 2]) + three + setup(identify_ctrl()) + scan
    yield "live", live + commands()
    yield "live-discovery", bytes([CONTROLLER, 4]) + NO_NAMESPACES + \
        setup(identify_ctrl(2)) + answer(0x70F002) + answer()
    for state in (1, 2, 3, 4, 15):
        groups = struct.pack("<QH6x", 1, 2) + b"".join(
            struct.pack("<IIQB15xI", group, 1, 1, of, 1) for group, of in ((1, state), (2, 1)))
        yield f"live-ana-{state}", bytes([CONTROLLER, 2]) + three + \
            setup(identify_ctrl(ana=True)) + answer(data=groups) + scan + answer(0xC0302) + \
            answer(data=groups) + struct.pack("<H", 1000) + answer(data=groups) + \
            struct.pack("<H", 20000) + answer(data=groups) * 3
    for result in (0x40002, 0xC0302, 0x10000, 0x20001, 0x70F002, 0x7, 0x1F02):
        yield f"event-{result:x}", live + answer(result) + answer() + scan + struct.pack("<H", 60) \
            + answer(result) * 8
    yield "events", live + (answer(0x10000) * 4 + answer() * 4 + struct.pack("<H", 60)) * 20
    yield "keep-alive", live + answer(status=0x8002) * 4 + struct.pack("<H", 500) + answer() + \
        struct.pack("<H", 500) + answer(status=2)
    yield "no-queues", bytes([CONTROLLER, 1]) + NO_NAMESPACES + answer(1) + answer(0)
    yield "fatal", bytes([CONTROLLER, 1]) + NO_NAMESPACES + answer(1) + answer(127) + \
        answer(0) + answer() + answer(2)
    yield "slow", bytes([CONTROLLER, 1]) + NO_NAMESPACES + answer(1) + answer(127) + answer(0) + \
        answer() + (answer(0) + struct.pack("<H", 20)) * 3 + answer(1)
    yield "never-ready", bytes([CONTROLLER, 1]) + NO_NAMESPACES + answer(1) + answer(127) + \
        answer(0) + answer() + (answer(0) + struct.pack("<H", 20000)) * 3
    yield "auth", bytes([CONTROLLER, 1]) + NO_NAMESPACES + answer(1 | 1 << 17)
    yield "denied", bytes([CONTROLLER, 1]) + NO_NAMESPACES + answer(status=0x184 << 1)
    yield "success-with-bits", bytes([CONTROLLER, 1]) + NO_NAMESPACES + answer(status=0x8000)
    yield "no-sgl", bytes([CONTROLLER, 1]) + NO_NAMESPACES + setup(identify_ctrl(1, 5, 0))
    yield "replaced", bytes([CONTROLLER, 2]) + three + setup(identify_ctrl()) + \
        (answer(data=page(shift=12)) + answer()) * 3
    same = answer(data=page(shift=16)) + answer(data=DESCRIPTOR)
    yield "small-mdts", bytes([CONTROLLER, 2]) + identified(shift=16) * 3 + \
        setup(identify_ctrl(1, 1)) + same * 3 + commands()


def host_seeds():
    yield from address_seeds()
    yield from discovery_seeds()
    yield from namespace_seeds()
    yield from controller_seeds()
