"""seeds_rdma.py - the first inputs of the fuzzers of NVMe/RDMA, for seeds.py."""
import struct

from seeds_length import KIB, length_byte

# ---- fuzz_rdma: an adapter, then operations in the order of its table

(TURN, STEP, PART, HEAR, SESSION, OPEN, CONNECT, CLOSE, COMMAND, RAW, EVENT, DELAY, FAULT, FAIL,
 DEVICE, LISTENER, CLOCK, NS, SUBSYS, SLOW, STARVE, FEED, LOOK, STOP, VERIFY_OP, LENGTH,
 TAKEOVER) = range(27)
(READ, WRITE, FLUSH, COMPARE, ZEROES, VERIFY, DSM, COPY, IDENTIFY, LOG, ABORT, SET, GET, AER,
 KEEP_ALIVE, PROPERTY_GET, PROPERTY_SET, DISCONNECT, BYTES) = range(19)
IN_CAPSULE, FUSE_FIRST, FUSE_SECOND, SGL, GIVEN, PLACE = 1, 2, 4, 8, 16, 32
MEM, NULL, STALLED, READ_ONLY = 1, 2, 3, 4
ROCE, IWARP, NO_SRQ, SMALL_SRQ, SMALL_QP, FEW_READS, FEW_KEYS, NO_INVALIDATE = \
    0, 1, 2, 4, 8, 16, 32, 64
ADMIN, IO = 0, 1                # the hosts that a session takes
INVALIDATE = 64
DOZE = 32
DISCONNECTED, ESTABLISHED, TIMEWAIT, ADDR_CHANGE, REMOVAL = range(5)
HOSTS_OF_TARGET = 1             # a queue pair's number: 2 * host, and this for the target's end
SETTLE = 0x80


def op(code, fmt="", *args, settle=True, tail=b""):
    return bytes([code | SETTLE * settle]) + struct.pack("<" + fmt, *args) + tail


def session(kind=ROCE, limits=0, reads=4, options=0x44, sqsize=31):
    return bytes([kind, limits]) + op(SESSION, "BBB", reads, options, sqsize, settle=False)


def command(host, kind, nsid=0, a=0, b=0, flags=0, data=b"", sgl=None, place=None, settle=True):
    tail = b""
    if place:
        flags |= PLACE
        tail += struct.pack("<BH", *place)
    if sgl:
        flags |= SGL
        tail += struct.pack("<BIB", *sgl)
    if data:
        flags |= GIVEN
        tail += bytes([len(data)]) + data
    return op(COMMAND, "BBBBII", host, kind, flags, nsid, a, b, settle=settle, tail=tail)


def queue(host, qid=0, hsqsize=31, cntlid=ADMIN, options=4, tail=b"", **kw):
    return op(OPEN, "BBBH", host, qid, options, hsqsize,
              tail=(bytes([cntlid]) if qid else b"") + tail, **kw)


def connect(host, qid=0, sqsize=31, cntlid=0xFF, kato=0, options=4, **kw):
    return op(CONNECT, "BBBHBH", host, options, qid, sqsize, cntlid, kato, **kw)


def length(edge, more=0):
    return op(LENGTH, "B", length_byte(edge, more), settle=False)


def target_end(host):
    return 2 * host | HOSTS_OF_TARGET


def rdma_io_seeds():
    for kind in (ROCE, IWARP, NO_SRQ, SMALL_SRQ, SMALL_QP, FEW_READS, NO_INVALIDATE):
        yield f"io-{kind}", session(kind, 3) + b"".join([
            command(IO, WRITE, MEM, 0, 7, IN_CAPSULE, b"weft"), command(IO, READ, MEM, 0, 7),
            command(IO, WRITE, MEM, 0, 127), command(IO, COMPARE, MEM, 0, 127),
            command(IO, READ, NULL, 0, 255), command(IO, READ, MEM, 0, 31, place=(5, 0)),
            command(IO, WRITE, MEM, 0, 31, place=(16, 0)),
            command(IO, WRITE, STALLED, 0, 7, IN_CAPSULE), op(SLOW, "BB", 9, 0),
            command(IO, READ, STALLED, 0, 7), op(SLOW, "BB", 9, 3),
            command(IO, READ, MEM, 0, 7, place=(INVALIDATE, 512)),
            command(ADMIN, IDENTIFY, 1, 1), command(ADMIN, LOG, 0, 2 | 0x7F << 16)])
    yield "doze", session() + (command(IO, READ, MEM, 0, 7, settle=False) + op(
        TURN, "B", DOZE, settle=False)) * 3
    for cut in (0, 0x53, 0xFE):
        yield f"verify-{cut}", session(cut % 2) + op(VERIFY_OP, "BBBH", IO, cut, 61, 3)
    yield "connect-keyed", session(options=0x40) + command(IO, READ, MEM)
    yield "guarded", session(options=0x45) + command(IO, READ, MEM)
    yield "discovery", session(options=0x06) + command(ADMIN, IDENTIFY, 0, 1) + \
        command(ADMIN, LOG, 0, 0x70 | 0xFFF << 16)
    yield "fused", session() + command(IO, COMPARE, MEM, 0, 0, FUSE_FIRST) + \
        command(IO, WRITE, MEM, 0, 0, FUSE_SECOND)
    yield "dsm-copy", session() + command(IO, DSM, MEM, 0, 4, 0, struct.pack("<IIQ", 0, 8, 0)) + \
        command(IO, COPY, MEM, 8, 0, IN_CAPSULE, struct.pack("<8xQH14x", 0, 7))
    yield "sgl", session() + b"".join(command(IO, WRITE, MEM, 0, 0, 0, b"", sgl) for sgl in (
        (0x01, 512, 0), (0x01, 512, 1), (0x11, 16, 0), (0x11, 17, 0), (0x5A, 100, 0), (0x40, 0, 0)))
    yield "sgl-outside", session() + command(IO, WRITE, MEM, 0, 0, IN_CAPSULE, b"", (1, 512, 1)) + \
        command(IO, WRITE, MEM, 0, 0, IN_CAPSULE, b"", (1, 513, 0)) + \
        command(IO, WRITE, MEM, 0, 0, IN_CAPSULE, b"", (1, 512, 0))
    yield "many", session() + command(IO, READ, MEM, 0, 7, settle=False) * 20 + op(TURN, "B", 7)
    yield "too-many", session(sqsize=2) + command(IO, WRITE, STALLED, 0, 7, settle=False) * 5
    yield "small-queue", session(sqsize=1) + command(IO, WRITE, MEM, 0, 7) * 5
    for edge in (0, 512, KIB, 4 * KIB, 128 * KIB, 1024 * KIB):
        yield f"connect-length-{edge}", bytes(2) + b"".join(
            queue(h) + length(edge, more) + connect(h, options=options)
            for h, (more, options) in enumerate(((0, 0), (1, 0), (-3, 4), (4, 4))))
        yield f"length-{edge}", session() + length(edge) + command(ADMIN, SET, 0, 0x16) + \
            length(edge, 1) + command(ADMIN, IDENTIFY, 0, 1) + length(edge) + \
            command(IO, WRITE, MEM, 0, 7) + length(edge) + command(IO, DSM, MEM, 0, 4, IN_CAPSULE)
    for only_freeze in (0, 1):
        yield f"takeover-{only_freeze}", session() + command(ADMIN, AER) + \
            command(IO, WRITE, STALLED, 0, 7) + op(TAKEOVER, "B", only_freeze, settle=False) + \
            command(IO, READ, MEM, 0, 7) + op(SLOW, "BB", 9, 0) + command(IO, READ, MEM, 0, 7)
    yield "deep", session(sqsize=0) + queue(2, 2, 19999) + connect(2, 2, 19999, ADMIN)
    yield "starved", session() + op(STARVE, "BB", 0, 0, settle=False) * 8 + \
        command(IO, WRITE, MEM, 0, 127) + command(IO, READ, MEM, 0, 127) + op(CLOSE, "BB", IO, 0)


def rdma_request_seeds():
    good = struct.pack("<HHHHH22x", 0, 0, 32, 31, 0)
    for name, request in (("good", good), ("short", good[:31]), ("none", b""), ("long", good + good[:24]),
                          ("format", b"\1" + good[1:]), ("depth", good[:6] + b"\xff\xff" + good[8:])):
        yield f"request-{name}", bytes([IWARP if name == "short" else ROCE, 0]) + queue(
            0, options=4 | 64, tail=bytes([len(request)]) + request) + connect(0)
    yield "request-no-reads", bytes(2) + queue(0, options=0) + connect(0, options=0)
    yield "request-many", bytes(2) + b"".join(queue(h, settle=False) for h in range(6)) + connect(0)
    yield "request-silent", bytes(2) + queue(0) + op(CLOCK, "H", 2000) + op(TURN, "B", 3)
    yield "request-vanishes", bytes(2) + queue(0, settle=False) + op(CLOSE, "BB", 0, 0)
    for turns in range(5):
        yield f"request-stop-{turns}", bytes(2) + queue(0, settle=False) + \
            op(TURN, "B", turns, settle=False) + op(STOP, settle=False) + op(TURN, "B", turns)
    yield "kato", bytes(2) + queue(0) + connect(0, kato=5000) + op(CLOSE, "BB", 0, 2) + \
        op(CLOCK, "H", 900) + op(TURN, "B", 3)


def rdma_trouble_seeds():
    for turns in range(4):
        turn = op(TURN, "B", turns, settle=False)
        write = command(IO, WRITE, MEM, 0, 127, settle=False) + op(STEP, "BB", 2 * IO, 0, settle=False)
        for name, end in (("close", op(CLOSE, "BB", IO, 0)), ("disconnect", op(CLOSE, "BB", IO, 1)),
                          ("event", op(EVENT, "BBB", IO, DISCONNECTED, 0)),
                          ("remove", op(DEVICE, "B", 0)), ("stop", op(STOP)),
                          ("fail", op(FAIL, "BB", target_end(IO), 10)),
                          ("time-out", op(FAIL, "BB", target_end(IO), 0xFF)),
                          ("abort", command(ADMIN, ABORT, 0, 1 | 1 << 16))):
            yield f"read-{name}-{turns}", session(turns % 2) + write + turn + \
                op(PART, "BH", target_end(IO), 512, settle=False) + end
    for turns in range(4):      # aborted, while its data is being read
        yield f"abort-read-{turns}", session() + command(IO, WRITE, MEM, 0, 127, settle=False) + op(
            STEP, "BB", 2 * IO, 0, settle=False) + op(TURN, "B", 1, settle=False) + \
            command(ADMIN, ABORT, 0, 1 | 1 << 16, settle=False) + op(
            STEP, "BB", 2 * ADMIN, 0, settle=False) + op(TURN, "B", turns, settle=False) + op(
            STEP, "BB", target_end(ADMIN), 0, settle=False) + op(
            STEP, "BB", target_end(IO), 0, settle=False) + op(TURN, "B", turns)
    yield "cut", session() + op(CLOSE, "BB", IO, 2) + command(IO, READ, MEM) + \
        op(FAIL, "BB", target_end(IO), 0xFF) + op(CLOSE, "BB", IO, 0)
    yield "raw", session() + op(RAW, "B", 3, tail=b"abc" + struct.pack("<H", 0)) + op(
        RAW, "BBH", ADMIN, 0, 4200)
    yield "raw-command", session() + op(RAW, "BB", IO, 64, tail=bytes([2, 0x40]).ljust(64, b"\0") +
                                        struct.pack("<H", 4096))
    yield "raw-short", session() + op(RAW, "BB", IO, 63, tail=bytes(63) + struct.pack("<H", 0))
    yield "early", bytes(2) + op(DELAY, "B", 0x40) + queue(0) + connect(0) + op(DELAY, "B", 0x80)
    yield "late-end", session() + op(DELAY, "B", 0x41) + op(CLOSE, "BB", IO, 0) + \
        op(DELAY, "B", 0x80)
    yield "events", session() + b"".join(op(EVENT, "BBB", IO, n, 0) for n in (1, 2, 1, 3))
    yield "removed", session() + command(IO, WRITE, STALLED, 0, 7) + op(DEVICE, "B", 0) + \
        op(DEVICE, "B", 1) + op(CLOCK, "H", 100) + op(TURN, "B", 3) + queue(2) + connect(2)
    yield "listener", session() + op(LISTENER, "B", 0) + queue(2) + op(LISTENER, "B", 1) + queue(3)
    yield "listener-twice", bytes(2) + op(DEVICE, "B", 0) + op(DEVICE, "B", 1) + op(LISTENER, "B", 1)
    yield "deaf", session() + op(HEAR, "BB", IO, 1) + command(IO, READ, MEM, 0, 7) * 9
    yield "remove-ns", session() + command(IO, READ, MEM, 0, 127, settle=False) + \
        op(STEP, "BB", 2 * IO, 0, settle=False) + op(TURN, "B", 1, settle=False) + \
        op(NS, "BBH", 0, MEM, 0)
    for entry in range(26):
        fault = op(FAULT, "BB", entry, 0, settle=False)
        yield f"fault-{entry}", bytes(2) + fault + session()[2:] + fault + \
            command(IO, WRITE, MEM, 0, 127, place=(4, 0)) + command(IO, READ, MEM, 0, 7)


def rdma_seeds():
    yield from rdma_io_seeds()
    yield from rdma_request_seeds()
    yield from rdma_trouble_seeds()


# ---- fuzz_rdma_link: what the host asks for and its adapter, then operations in the order of its table

(L_TURN, L_STEP, L_PART, L_ACCEPT, L_REJECT, L_SUBMIT, L_READ, L_WRITE, L_RESP, L_RAW, L_END, L_EVENT,
 L_DELAY, L_FAULT, L_FAIL, L_DEVICE, L_CLOCK, L_CLOSE, L_STARVE, L_FEED) = range(20)
ORDER_READ, ORDER_WRITE, ORDER_FLUSH, ORDER_CONNECT, ORDER_IDENTIFY, ORDER_BOTH = range(6)
AGAIN, SKIP, TAIL, KNOWN, LONG = 1, 2, 4, 8, 0x80
ALL = 0xFFFFFFFF
ON_IWARP, FREE_INSIDE, NOBODY = 2, 4, 8
LINK, CONTROLLER = 0, 1
(ADDR_RESOLVED, ADDR_ERROR, ROUTE_RESOLVED, ROUTE_ERROR, CONNECT_REQUEST, CONNECT_RESPONSE,
 CONNECT_ERROR, UNREACHABLE) = range(8)


def link(flags=FREE_INSIDE, depth=8, capsule=2, blocks=2, limits=0, fate=0, more=0):
    return struct.pack("<6B", flags, depth - 1, capsule | blocks << 2, limits, fate, more)


def up(**kw):
    """A link that is ready."""
    return link(**kw) + op(L_TURN, "B", 7) + op(L_ACCEPT, "B", 0)


def submit(kind, length, known=None, shape=0, flags=0, skip=None, settle=True):
    more = b""
    if skip is not None:
        flags, more = flags | SKIP, more + bytes([skip])
    if known is not None:
        flags, more = flags | KNOWN, more + bytes([known])
    return op(L_SUBMIT, "BBHB", kind, flags, length, shape, settle=settle, tail=more)


def resp(which=0, wrong=0, status=0, cid=b"", **kw):
    return op(L_RESP, "BBB", which, wrong, status, tail=cid, **kw)


def moved(code, which=0, length=ALL, **kw):
    return op(code, "BI", which, length, **kw)


def good_rdma_link_seeds():
    for flags in (FREE_INSIDE, ON_IWARP):
        for known in (None, 0xFF, 0x55):
            for shape in (0, 0x80 | 40):
                yield f"link-{flags}-{known}-{shape}", up(flags=flags, more=64) + b"".join([
                    submit(ORDER_READ, 20000, known, shape, skip=5), moved(L_WRITE), resp(),
                    submit(ORDER_WRITE, 20000, known, shape), moved(L_READ), resp(),
                    submit(ORDER_WRITE, 600, known, shape, skip=9), resp(),
                    submit(ORDER_FLUSH, 0), resp(0, 0, 1), submit(ORDER_CONNECT, 1024), resp()])
    yield "link-many", up(depth=2) + submit(ORDER_READ, 512, 0xFF, flags=AGAIN) * 4 + \
        (moved(L_WRITE) + resp()) * 6
    yield "link-large", up(depth=12) + submit(ORDER_READ, 65535, flags=LONG, settle=False) * 12 + \
        (moved(L_WRITE) + resp()) * 12
    yield "link-starved", up() + op(L_STARVE, "B", 0) + submit(ORDER_READ, 4000) * 3 + \
        op(L_FEED, "B", 0) + moved(L_WRITE) + resp() + submit(ORDER_WRITE, 4000) + op(L_FEED, "B", 0) * 2
    yield "link-starved-close", up() + op(L_STARVE, "B", 0) + submit(ORDER_READ, 4000) * 3 + \
        op(L_FEED, "B", 0, settle=False) + op(L_CLOSE, settle=False) + op(L_TURN, "B", 7)
    yield "link-one-block", up(blocks=0, capsule=0) + submit(ORDER_WRITE, 9000, 0xFF, 0x80 | 40) + \
        moved(L_READ) + resp()
    yield "link-both-ways", up() + submit(ORDER_BOTH, 512, 0xFF) + resp()
    yield "link-doze", up() + (submit(ORDER_READ, 512) + moved(L_WRITE, settle=False) + resp(
        settle=False) + op(L_TURN, "B", DOZE, settle=False)) * 3
    yield "link-no-direction", up() + submit(ORDER_FLUSH, 8)
    yield "link-inline", up(more=128) + submit(ORDER_FLUSH, 0) + resp()


def bad_rdma_link_seeds():
    for fate in range(0xF0, 0x100):
        yield f"link-fate-{fate & 15}", link(fate=fate) + op(L_TURN, "B", 7) * 2
    for entry in range(26):
        yield f"link-fault-{entry}", link(limits=entry, fate=0xE0) + op(L_TURN, "B", 7) + \
            op(L_ACCEPT, "B", 0) + submit(ORDER_READ, 512) + op(L_FAULT, "BB", entry, 0) + \
            submit(ORDER_WRITE, 9000, 0xFF, 0x80 | 40)
    yield "link-nobody", link(flags=NOBODY) + op(L_TURN, "B", 7) * 3
    yield "link-silent", link() + op(L_TURN, "B", 7) + op(L_CLOCK, "H", 1000) + op(L_TURN, "B", 7)
    for reject in (b"", b"\0", b"\0\0\4\0", b"\1\0\0\0", b"\0\0\x77\x77"):
        yield f"link-reject-{reject.hex()}", link(flags=ON_IWARP) + op(L_TURN, "B", 7) + \
            op(L_REJECT, "B", len(reject), tail=reject)
    for accept in (b"", b"\0", b"\1".ljust(32, b"\0"), bytes(32)):
        yield f"link-accept-{len(accept)}-{accept[:1].hex()}", link(flags=ON_IWARP) + op(
            L_TURN, "B", 7) + op(L_ACCEPT, "B", 1 | len(accept) << 1, tail=accept) + \
            submit(ORDER_READ, 512)
    for wrong, cid in ((1, b"zz"), (1, b"\0\0"), (2, b"")):
        yield f"link-wrong-{wrong}-{cid.hex()}", up() + submit(ORDER_READ, 512, 0xFF) + \
            moved(L_WRITE) + resp(0, wrong, 0, cid) + submit(ORDER_READ, 512)
    for length in (0, 15, 16, 17, 64):
        yield f"link-raw-{length}", up() + submit(ORDER_READ, 512) + \
            op(L_RAW, "B", length, tail=bytes(length))
    yield "link-too-early", up() + submit(ORDER_READ, 512, settle=False) + op(
        L_TURN, "B", 0, settle=False) + resp(0, 4, settle=False) + op(
        L_STEP, "BB", CONTROLLER, 0, settle=False) + op(L_TURN, "B", 2)
    yield "link-not-sent", up() + op(L_STARVE, "B", 0) + submit(ORDER_READ, 512) + resp(0, 4)
    yield "link-early-answer", up() + submit(ORDER_READ, 512, settle=False) + op(
        L_TURN, "B", 0, settle=False) + op(L_STEP, "BB", LINK, 0, settle=False) + resp()
    for event in range(16):
        yield f"link-event-{event}", up() + submit(ORDER_READ, 512) + op(L_EVENT, "BBB", event, 5, 0)
        yield f"link-event-early-{event}", link() + op(L_TURN, "B", 1, settle=False) + \
            op(L_EVENT, "BBB", event, 5, 0) + op(L_ACCEPT, "B", 0)
    for end, name in ((op(L_END, "B", 0), "close"), (op(L_END, "B", 1), "disconnect"),
                      (op(L_DEVICE, "B", 0), "remove"), (op(L_CLOSE), "user"),
                      (op(L_FAIL, "BB", LINK, 0xFF), "time-out"),
                      (op(L_FAIL, "BB", LINK, 12) + submit(ORDER_READ, 9), "fail"),
                      (op(L_FAIL, "BB", LINK, 0x81) + resp(), "fail-receive")):
        for turns in range(3):
            yield f"link-{name}-{turns}", up() + submit(ORDER_READ, 60000, None, 0xBF) + \
                submit(ORDER_WRITE, 9000, 0xFF, 0xBF) + moved(L_WRITE, 0, settle=False) + \
                moved(L_READ, 1, settle=False) + op(L_PART, "BH", CONTROLLER, 99, settle=False) + \
                op(L_TURN, "B", turns, settle=False) + end
    yield "link-delay", link() + op(L_DELAY, "B", 0) + op(L_DELAY, "B", 2) + op(L_DELAY, "B", 0x80) + \
        op(L_ACCEPT, "B", 0)


def rdma_link_seeds():
    yield from good_rdma_link_seeds()
    yield from bad_rdma_link_seeds()
