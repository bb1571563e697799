#!/usr/bin/env python3
"""seeds.py - writes the first inputs of every fuzzer below FOLDER/NAME (default: corpus/).

    tests/fuzz/seeds.py                     into the stored corpora, beside what fuzzing found
    tests/fuzz/seeds.py /tmp/seeds          somewhere else

What fuzzing finds is merged into the stored corpora with
    build-asan/tests/fuzz/NAME -merge=1 tests/fuzz/corpus/NAME FOUND
"""
import pathlib
import struct
import sys

from seeds_host import host_seeds, link_seeds, queue_seeds
from seeds_length import KIB, length_byte
from seeds_rdma import rdma_link_seeds, rdma_seeds
from seeds_state import state_seeds

# ---- fuzz_pdu: rules, limits, a header

READY, HDGST, DDGST, HOST = 1, 2, 4, 8
ICREQ, ICRESP, H2CTERM, C2HTERM, CMD, RESP, H2CDATA, C2HDATA, R2T = 0, 1, 2, 3, 4, 5, 6, 7, 9


def header(rules, type, flags, hlen, pdo, plen, rest=b""):
    return struct.pack("<BII4BI", rules, 8192, 131072, type, flags, hlen, pdo, plen) + rest


def pdu_seeds():
    yield "icreq", header(0, ICREQ, 0, 128, 0, 128, bytes(120))
    yield "icreq-hpda", header(0, ICREQ, 0, 128, 0, 128, b"\0\0\x20".ljust(120, b"\0"))
    yield "icreq-pfv", header(0, ICREQ, 0, 128, 0, 128, b"\1".ljust(120, b"\0"))
    yield "term", header(READY, H2CTERM, 0, 24, 0, 96)
    yield "r2t", header(READY, R2T, 0, 24, 0, 24)
    for rules in (0, HDGST, DDGST, HDGST | DDGST):
        flags, head, tail = rules >> 1, 4 * bool(rules & HDGST), 4 * bool(rules & DDGST)
        yield f"cmd-{rules}", header(READY | rules, CMD, flags & 1, 72, 0, 72 + head)
        yield f"cmd-data-{rules}", header(READY | rules, CMD, flags, 72, 72 + head,
                                          72 + head + 512 + tail)
        yield f"h2c-{rules}", header(READY | rules, H2CDATA, flags | 4, 24, 24 + head,
                                     24 + head + 4096 + tail)
        yield f"c2h-{rules}", header(HOST | READY | rules, C2HDATA, flags | 12, 24, 24 + head,
                                     24 + head + 4096 + tail)
        yield f"resp-{rules}", header(HOST | READY | rules, RESP, flags & 1, 24, 0, 24 + head)
        yield f"r2t-{rules}", header(HOST | READY | rules, R2T, flags & 1, 24, 0, 24 + head)
    yield "c2hterm", header(HOST, C2HTERM, 0, 24, 0, 152)
    yield "icresp", header(HOST, ICRESP, 0, 128, 0, 128, b"\0\0\0\0\0\x10".ljust(120, b"\0"))
    yield "icresp-cpda", header(HOST, ICRESP, 0, 128, 0, 128, b"\0\0\x20".ljust(120, b"\0"))


# ---- fuzz_conn: operations in the order of its table

(TURN, OPEN, SESSION, ICREQ_OP, CONNECT, COMMAND, DATA, RAW, SPOIL, SPLIT, HEAR, CLOSE, CLOCK, NS,
 SUBSYS, SLOW, STARVE, FEED, TERM, LOOK, STOP, LENGTH, STRAY, TAKEOVER, ARRIVE) = range(25)
(READ, WRITE, FLUSH, COMPARE, ZEROES, VERIFY, DSM, COPY, IDENTIFY, LOG, ABORT, SET, GET, AER,
 KEEP_ALIVE, PROPERTY_GET, PROPERTY_SET, DISCONNECT, BYTES, RESV_REGISTER, RESV_ACQUIRE,
 RESV_RELEASE, RESV_REPORT, CCR) = range(24)
IN_CAPSULE, FUSE_FIRST, FUSE_SECOND, SGL, GIVEN, PAD, NO_SGL, LONG = 1, 2, 4, 8, 16, 32, 64, 128
MEM, NULL, STALLED, READ_ONLY = 1, 2, 3, 4
ADMIN, IO = 0, 1        # the hosts that a session takes; the second is on the other reactor
ALL = 0xFF
HOME_TURNS, OTHER_TURNS = 0x40, 0x80
SETTLE = 0x80
WRONG_TAG, WRONG_CID, WRONG_AT, WRONG_LEN, NOT_LAST = 1, 2, 4, 8, 16


def op(code, fmt="", *args, settle=True, tail=b""):
    return bytes([code | SETTLE * settle]) + struct.pack("<" + fmt, *args) + tail


def session(icreq=0, options=0x40, sqsize=31):
    return op(SESSION, "BBB", icreq, options, sqsize, settle=False)


def command(host, kind, nsid=0, a=0, b=0, flags=0, data=b"", sgl=None, settle=True):
    tail = b""
    if sgl:
        flags |= SGL
        tail += struct.pack("<BIB", *sgl)
    if data:
        flags |= GIVEN
        tail += bytes([len(data)]) + data
    return op(COMMAND, "BBBBII", host, kind, flags, nsid, a, b, settle=settle, tail=tail)


def data(host, which=ALL, fill=0, part=0, **kw):
    return op(DATA, "BBBH", host, which, fill, part, **kw)


def connect(host, qid=0, sqsize=31, cntlid=ALL, kato=0, options=4, **kw):
    return op(CONNECT, "BBBHBH", host, options, qid, sqsize, cntlid, kato, **kw)


def length(edge, more=0):
    return op(LENGTH, "B", length_byte(edge, more), settle=False)


def arrive(icreq, edge, more=0, options=0):
    return op(ARRIVE, "BBBHBHB", icreq, options, 0, 31, ALL, 0, length_byte(edge, more))


def stray(host, wrong, *values, which=0):
    tail = b"".join(struct.pack("<H" if bit < WRONG_AT else "<B", value)
                    for bit, value in zip([b for b in (1, 2, 4, 8) if wrong & b], values))
    return op(STRAY, "BBB", host, which, wrong, tail=tail)


def takeover(only_freeze=0, **kw):
    return op(TAKEOVER, "B", only_freeze, **kw)


def dsm_range(slba, count):
    return struct.pack("<IIQ", 0, count, slba)


def copy_range(slba, count):
    return struct.pack("<8xQH14x", slba, count - 1)


def fused(host, nsid, slba=0, blocks=1, **kw):
    return command(host, COMPARE, nsid, slba, blocks - 1, FUSE_FIRST, **kw) + \
        command(host, WRITE, nsid, slba, blocks - 1, FUSE_SECOND, **kw)


def turn(count=1, which=0):
    return op(TURN, "B", count - 1 | which, settle=False)


def stalled_write(**kw):
    """A write that the storage has not ended."""
    return command(IO, WRITE, STALLED, 0, 7, IN_CAPSULE, **kw)


def connect_seeds():
    yield "open", op(OPEN, "BB", 0, 0)
    yield "open-silent", op(OPEN, "BB", 0, 0xFF) + op(CLOCK, "H", 2000)
    yield "icreq-twice", op(OPEN, "BB", 0, 3) + op(ICREQ_OP, "BB", 0, 3)
    for icreq in (0x00, 0x01, 0x02, 0x03, 0x0F, 0xF3):
        yield f"session-{icreq:02x}", session(icreq) + command(IO, READ, MEM, 0, 7)
    yield "session-no-flow", session(0, 0x48) + command(IO, READ, MEM) + command(IO, FLUSH, MEM)
    yield "session-guarded", session(0, 0x41) + command(IO, READ, MEM)
    yield "discovery", session(0, 0x02) + command(ADMIN, IDENTIFY, 0, 1) + \
        command(ADMIN, LOG, 0, 0x70 | 0xFFF << 16) + command(ADMIN, LOG, 0, 0xFF << 16) + \
        command(ADMIN, SET, 0, 11, 1 << 31) + command(ADMIN, AER) + op(NS, "BBH", 0, 1, 0) + \
        op(SUBSYS, "B", 1)
    yield "connect-r2t", op(OPEN, "BB", 0, 3) + connect(0, options=0) + data(0)
    yield "connect-early", op(OPEN, "BB", 0, 0) + command(0, IDENTIFY, 0, 1) + connect(0)
    for options, name in ((5, "guarded"), (21, "stranger"), (7, "nowhere"), (36, "kato")):
        yield f"connect-{name}", op(OPEN, "BB", 0, 0) + connect(0, kato=0xFFFF, options=options)
    for at, name in ((72, "hostid"), (72 + 16, "cntlid"), (72 + 256, "subnqn"), (72 + 512, "host")):
        yield f"connect-spoil-{name}", session() + op(OPEN, "BB", 2, 0) + \
            op(SPOIL, "HB", at, 0x6E) + connect(2, 2, 31, ADMIN) + op(SPOIL, "HB", at, 1) + \
            connect(2, 2, 31, ADMIN)
    yield "connect-deep", session(0x0C, 0x40) + takeover() + op(TURN, "B", 7) * 4 + \
        op(OPEN, "BB", 2, 0x0C) + connect(2, 2, 19999, ADMIN) + \
        command(2, WRITE, MEM, 0, 511) + data(2)
    yield "connect-twice", session() + connect(IO, 1, 31, ADMIN) + connect(ADMIN)
    yield "connect-many", session() + b"".join(
        op(OPEN, "BB", h, 0) + connect(h, h, 31, ADMIN) for h in (2, 3)) + session() + session()
    yield "kato", op(OPEN, "BB", 0, 0) + connect(0, kato=5000) + op(CLOCK, "H", 200) + \
        command(0, KEEP_ALIVE) + op(CLOCK, "H", 400) + op(LOOK) + op(CLOCK, "H", 400)
    yield "set-up-time", op(OPEN, "BB", 0, 0) + op(CLOCK, "H", 2000) + op(TURN, "B", 3)


def io_seeds():
    for nsid in (MEM, NULL, STALLED, READ_ONLY):
        yield f"io-{nsid}", session(0x0F) + b"".join([
            command(IO, WRITE, nsid, 0, 7, IN_CAPSULE, b"weft"), op(SLOW, "BB", 9, 0),
            command(IO, READ, nsid, 0, 7), op(SLOW, "BB", 9, 0),
            command(IO, COMPARE, nsid, 0, 7, IN_CAPSULE, b"weft"), op(SLOW, "BB", 9, 0),
            command(IO, ZEROES, nsid, 0, 15, 0), command(IO, VERIFY, nsid, 0, 15),
            op(SLOW, "BB", 9, 3), command(IO, FLUSH, nsid), op(SLOW, "BB", 9, 0)])
        yield f"dsm-{nsid}", session() + command(
            IO, DSM, nsid, 1, 4, IN_CAPSULE, dsm_range(0, 8) + dsm_range(1, 3)) + \
            op(SLOW, "BB", 9, 0)
        yield f"copy-{nsid}", session() + command(
            IO, COPY, nsid, 8, 1, IN_CAPSULE, copy_range(0, 8) + copy_range(1, 3)) + \
            op(SLOW, "BB", 9, 0) * 4
        yield f"fused-{nsid}", session() + fused(IO, nsid, settle=False) + data(IO) + \
            op(SLOW, "BB", 9, 0) * 2
    yield "fused-in-capsule", session() + fused(IO, MEM) + command(
        IO, COMPARE, MEM, 0, 0, FUSE_FIRST | IN_CAPSULE, b"no") + command(
        IO, WRITE, MEM, 0, 0, FUSE_SECOND | IN_CAPSULE)
    yield "fused-alone", session() + command(IO, COMPARE, MEM, 0, 0, FUSE_FIRST) + \
        command(IO, READ, MEM) + command(IO, WRITE, MEM, 0, 0, FUSE_SECOND) + \
        command(IO, COMPARE, MEM, 0, 0, FUSE_FIRST) + op(CLOSE, "BB", IO, 0)
    yield "fused-too-long", session() + fused(IO, MEM, 0, 16)
    keys = struct.pack("<QQ", 7, 7)
    for nsid in (MEM, STALLED):
        yield f"resv-{nsid}", session() + b"".join([
            command(IO, RESV_REGISTER, nsid, 0, 0, IN_CAPSULE, keys),
            command(IO, RESV_ACQUIRE, nsid, 0x200, 0, IN_CAPSULE, keys),
            command(IO, WRITE, nsid, 0, 7), command(IO, RESV_REPORT, nsid, 1023, 1),
            command(IO, RESV_ACQUIRE, nsid, 0x302, 0, IN_CAPSULE, keys), data(IO),
            op(SLOW, "BB", 9, 0), command(IO, RESV_RELEASE, nsid, 0x300, 0, IN_CAPSULE, keys[:8]),
            command(ADMIN, LOG, 0, 0x80 | 15 << 16), command(ADMIN, SET, nsid, 0x83, 0),
            command(IO, RESV_RELEASE, nsid, 1, 0, IN_CAPSULE, keys[:8])])
    yield "copy-too-many", session() + command(IO, COPY, MEM, 0, 128, IN_CAPSULE)
    yield "lba-range", session() + command(IO, READ, MEM, 512) + command(IO, READ, MEM, 1, 0, LONG)
    for icreq in (0x00, 0x0F):
        yield f"r2t-{icreq:02x}", session(icreq) + command(IO, WRITE, MEM, 0, 511) + \
            data(IO, 1, 7, 4096) + data(IO, 0, 7, 512) + data(IO)
    yield "r2t-split", session(3) + command(IO, WRITE, MEM, 0, 127) + op(SPLIT, "H", 25) + \
        data(IO, 0, 1, 1024) + op(SPLIT, "H", 1000) + data(IO, 0, 1, 2048) + data(IO)
    yield "r2t-abort", session() + command(IO, WRITE, MEM, 0, 127) + \
        command(ADMIN, ABORT, 0, 1 | 1 << 16) + data(IO)
    for turns in range(1, 6):
        yield f"r2t-abort-close-{turns}", session() + command(IO, WRITE, MEM, 0, 127) + \
            command(ADMIN, ABORT, 0, 1 | 1 << 16, settle=False) + turn(turns) + \
            op(CLOSE, "BB", IO, 0)
    yield "r2t-abort-full", session(0, 0x40, 2) + command(IO, WRITE, MEM, 0, 127) * 2 + \
        command(ADMIN, ABORT, 0, 1 | 1 << 16) + command(ADMIN, ABORT, 0, 1 | 2 << 16) + \
        command(IO, WRITE, MEM, 0, 127) + command(IO, FLUSH, MEM) + data(IO)
    yield "r2t-spoil", session(3) + command(IO, WRITE, MEM, 0, 15) + \
        op(SPOIL, "HB", 30 | 1 << 15, 1) + data(IO)
    yield "deaf", session(0, 0x48) + op(HEAR, "BB", IO, 1) + \
        command(IO, READ, MEM, 0, 511) * 3 + op(HEAR, "BB", IO, 0) + op(TURN, "B", 7)
    yield "many", session() + command(IO, READ, MEM, 0, 7, settle=False) * 40 + op(TURN, "B", 7)
    yield "small-queue", session(0, 0x40, 1) + stalled_write() * 3 + op(SLOW, "BB", 1, 0) * 3
    yield "sgl", session() + command(IO, WRITE, MEM, 0, 0, 0, b"", (1, 512, 0)) + \
        command(IO, WRITE, MEM, 0, 0, IN_CAPSULE, b"", (1, 512, 1)) + \
        command(IO, READ, MEM, 0, 0, 0, b"", (0x5A, 100, 0)) + command(IO, READ, MEM, 0, 0, NO_SGL)


def length_seeds():
    """SGLs of all lengths: none makes an R2T more than the host takes."""
    for icreq in range(0, 16, 4):
        for edge in (0, KIB, 64 * KIB, 256 * KIB, 1024 * KIB):
            yield f"arrive-{icreq:02x}-{edge}", arrive(icreq, edge) + data(0)
    for icreq, edge in ((4, 128 * KIB), (8, 192 * KIB), (12, 256 * KIB)):     # one R2T too many, once
        yield f"arrive-{icreq:02x}-{edge + 1}", arrive(icreq, edge, 1) + data(0)
    yield "arrive-odd", op(OPEN, "BB", 0, 0) + length(KIB, 1) + connect(0, options=7) + connect(0)
    yield "arrive-digests", arrive(0x0F, 192 * KIB) + data(0, 0, 0, 4096) + data(0)
    yield "arrive-in-capsule", arrive(0, 8 * KIB, options=4) + arrive(0, KIB, 4, options=4)
    yield "arrive-stray", arrive(0x0C, 512 * KIB) + data(0, 1, 0, 512) + \
        stray(0, WRONG_AT, length_byte(64 * KIB))
    yield "arrive-largest", arrive(4, 0, -1)
    for name, kind, nsid, a, b in (("set", SET, 0, 0x16, 0), ("dsm", DSM, MEM, 1, 4),
                                   ("copy", COPY, MEM, 8, 1), ("write", WRITE, MEM, 0, 7),
                                   ("compare", COMPARE, STALLED, 0, 7),
                                   ("register", RESV_REGISTER, MEM, 0, 0),
                                   ("property", PROPERTY_SET, 0, 0x14, 0x460001),
                                   ("identify", IDENTIFY, 1, 0, 0), ("log", LOG, 0, 0xFF0002, 0)):
        host = ADMIN if kind in (SET, PROPERTY_SET, IDENTIFY, LOG) else IO
        yield f"length-{name}", session(0x0C) + b"".join(
            length(edge) + command(host, kind, nsid, a, b) + data(host)
            for edge in (16, 4 * KIB, 16 * KIB, 256 * KIB, 1024 * KIB, 2048 * KIB))
        yield f"length-{name}-capsule", session(3) + b"".join(
            length(edge) + command(host, kind, nsid, a, b, IN_CAPSULE)
            for edge in (16, 4 * KIB, 8 * KIB, 16 * KIB)) + op(SLOW, "BB", 9, 0)
    for blocks in (1, 8, 128, 255, 384, 511, 512):
        yield f"blocks-{blocks}", session(0x08) + command(IO, WRITE, MEM, 0, blocks - 1) + \
            data(IO, 0, 5, 1024) + data(IO) + command(IO, READ, MEM, 0, blocks - 1)
    for wrong, values, name in ((WRONG_TAG, [9], "tag"), (WRONG_CID, [9], "cid"),
                                (WRONG_AT, [length_byte(64)], "at"),
                                (WRONG_LEN, [length_byte(16)], "len"), (NOT_LAST, [], "not-last")):
        yield f"stray-{name}", session(0x0C) + command(IO, WRITE, MEM, 0, 511) + \
            data(IO, 0, 1, 4096) + stray(IO, wrong, *values) + data(IO)
    yield "stray-early", session() + stray(IO, WRONG_LEN, length_byte(4 * KIB))


def takeover_seeds():
    """Another target goes on with what hosts have begun."""
    read = command(IO, READ, MEM, 0, 7)
    for name, before in (
            ("idle", read), ("stalled", stalled_write()), ("event", command(ADMIN, AER) * 3),
            ("owing", command(IO, WRITE, MEM, 0, 127)), ("open", op(OPEN, "BB", 2, 0)),
            ("half", command(IO, COMPARE, MEM, 0, 0, FUSE_FIRST)),
            ("features", command(ADMIN, SET, 0, 0xB, 0x100) + command(ADMIN, SET, 0, 0x16, 0,
                                                                      IN_CAPSULE, b"\1")),
            ("reserved", command(IO, RESV_REGISTER, MEM, 0, 0, IN_CAPSULE, struct.pack("<QQ", 7, 7))),
            ("split", op(SPLIT, "H", 40)), ("deaf", op(HEAR, "BB", IO, 1)),
            ("shut", op(CLOSE, "BB", IO, 1, settle=False)),
            ("removed", op(NS, "BBH", 0, NULL, 0))):
        yield f"takeover-{name}", session(3) + before + takeover(settle=False) + \
            command(IO, WRITE, MEM, 0, 7, IN_CAPSULE, settle=False) + read + data(IO) + \
            op(SLOW, "BB", 9, 0) + op(CLOCK, "H", 200) + read + command(ADMIN, KEEP_ALIVE)
    for turns in range(1, 5):
        yield f"takeover-turns-{turns}", session() + stalled_write() + takeover(settle=False) + \
            turn(turns) + op(SLOW, "BB", 1, 0, settle=False) + turn(turns) + read
    yield "takeover-many", session() + takeover(settle=False) + \
        command(IO, READ, MEM, 0, 7, settle=False) * 40 + op(TURN, "B", 7) + takeover()
    yield "takeover-two", session() + session(3, 0x50) + takeover() + \
        command(2, IDENTIFY, 0, 1) + command(3, READ, MEM, 0, 7) + op(LOOK) + takeover(1) + read
    yield "takeover-discovery", session(0, 2) + command(ADMIN, AER) + takeover() + \
        command(ADMIN, LOG, 0, 0x70 | 0xFFF << 16)
    yield "takeover-pending", session() + command(ADMIN, SET, 0, 0xB, 0x100) + \
        op(NS, "BBH", 0, NULL, 0) + command(IO, READ, 77) + takeover() + op(TURN, "B", 7) + \
        command(ADMIN, AER) + command(ADMIN, LOG, 0, 4 | 0xFF << 16)
    yield "takeover-ccr", session() + session() + stalled_write() + command(2, CCR) + \
        op(CLOCK, "H", 600) + op(SLOW, "BB", 9, 0) + takeover() + op(TURN, "B", 7) + \
        command(2, LOG, 0, 0x1E | 0x7F << 16)
    yield "takeover-stop", session() + stalled_write() + takeover() + op(STOP)


def host_pair_seeds():
    """Two controllers: of two hosts, or of one."""
    ours, theirs = struct.pack("<QQ", 7, 7), struct.pack("<QQ", 9, 9)
    preempt = struct.pack("<QQ", 9, 7)
    both = session() + session(0, 0x50) + \
        command(IO, RESV_REGISTER, STALLED, 0, 0, IN_CAPSULE, b"\0" * 8 + ours[:8]) + \
        command(3, RESV_REGISTER, STALLED, 0, 0, IN_CAPSULE, b"\0" * 8 + theirs[:8]) + \
        command(2, AER) + command(ADMIN, AER)
    for rtype in range(1, 7):
        yield f"resv-two-{rtype}", both + \
            command(IO, RESV_ACQUIRE, STALLED, rtype << 8, 0, IN_CAPSULE, ours) + \
            command(3, WRITE, STALLED, 0, 7, IN_CAPSULE) + command(3, READ, STALLED, 0, 7) + \
            command(3, RESV_ACQUIRE, STALLED, 1 | rtype << 8, 0, IN_CAPSULE, preempt) + \
            op(SLOW, "BB", 9, 0) + command(IO, READ, STALLED, 0, 0) + \
            command(ADMIN, LOG, 0, 0x80 | 15 << 16) + command(3, RESV_REPORT, STALLED, 1023, 1)
    yield "resv-two-abort", both + stalled_write() + fused(IO, STALLED) + data(IO) + \
        command(3, RESV_ACQUIRE, STALLED, 2 | 1 << 8, 0, IN_CAPSULE, preempt) + \
        op(SLOW, "BB", 1, 0) * 4
    yield "resv-two-clear", both + command(3, RESV_RELEASE, STALLED, 1, 0, IN_CAPSULE, theirs[:8]) + \
        command(IO, WRITE, STALLED, 0, 7, IN_CAPSULE) + op(CLOSE, "BB", IO, 0)
    yield "connect-other-host", session() + op(OPEN, "BB", 2, 0) + \
        connect(2, 2, 31, ADMIN, options=4 + 16) + connect(2, 2, 31, ADMIN, options=4 + 64)
    for which in (0, 1):
        yield f"ccr-{which}", session() + session() + stalled_write() + command(2, AER) + \
            command(2, CCR, 0, which) + op(CLOCK, "H", 600) + op(SLOW, "BB", 9, 0) + \
            command(2, LOG, 0, 0x1E | 0x7F << 16)
    yield "ccr-idle", session() + session() + command(2, CCR) + op(CLOSE, "BB", 2, 0)
    yield "ccr-asker-goes", session() + session() + stalled_write() + command(2, CCR) + \
        op(CLOSE, "BB", 2, 0) + op(SLOW, "BB", 9, 0)
    yield "resv-sweep", session() + \
        command(IO, RESV_REGISTER, NULL, 0, 0, IN_CAPSULE, b"\0" * 8 + ours[:8]) + \
        command(IO, RESV_REGISTER, NULL, 1, 0, IN_CAPSULE, ours) + op(NS, "BBH", 0, NULL, 0)
    yield "ccr-not-there", session() + command(ADMIN, CCR, 0, 5 | 1 << 16, 77, LONG) + \
        command(ADMIN, CCR, 0, 1 | 1 << 16, 77, LONG)
    yield "ccr-other-host", session() + session(0, 0x50) + command(2, CCR)


def admin_seeds():
    for at in (0, 4, 1024, 2048, 1 << 20):
        yield f"log-at-{at}", session(0, 2) + command(ADMIN, LOG, 0, 0x70 | 0xFF << 16, at, LONG)
        yield f"log-errors-at-{at}", session() + command(IO, READ, 77) * 3 + \
            command(ADMIN, LOG, 0, 1 | 0xFF << 16, at, LONG)
    for cns in (0, 1, 2, 3, 5, 6, 7, 8, 0x10, 0x11, 0x12, 0x13, 0x1C):
        yield f"identify-{cns:02x}", session() + command(ADMIN, IDENTIFY, 1, cns)
    for lid in (0, 1, 2, 3, 4, 5, 9, 0x12, 0x70):
        yield f"log-{lid:02x}", session() + command(IO, READ, 77) + \
            command(ADMIN, LOG, 0, lid | 0x7F << 16, 1 << 16)
    for fid in (1, 2, 4, 5, 6, 7, 0xA, 0xB, 0xE, 0xF, 0x16, 0x19, 0x81, 0x82, 0x83):
        yield f"feature-{fid:02x}", session() + \
            command(ADMIN, SET, 0, fid, 1, IN_CAPSULE) + command(ADMIN, GET, 0, fid, 1) + \
            command(ADMIN, GET, 0, fid | 3 << 8)
    for at in (0, 8, 0x14, 0x1C, 0x68):
        yield f"property-{at:02x}", session() + command(ADMIN, PROPERTY_GET, 0, at) + \
            command(ADMIN, PROPERTY_GET, 0, at, 0, LONG)
    yield "reset", session() + stalled_write() + command(ADMIN, AER) + \
        command(ADMIN, PROPERTY_SET, 0, 0x14, 0x460000) + op(SLOW, "BB", 9, 0) + \
        command(ADMIN, PROPERTY_SET, 0, 0x14, 0x460001)
    yield "reset-enable", session() + stalled_write() + \
        command(ADMIN, PROPERTY_SET, 0, 0x14, 0x460000) + \
        command(ADMIN, PROPERTY_SET, 0, 0x14, 0x460001) + op(SLOW, "BB", 9, 0)
    yield "shutdown", session() + command(ADMIN, PROPERTY_SET, 0, 0x14, 0x464001) + \
        op(SLOW, "BB", 9, 0) + command(ADMIN, PROPERTY_GET, 0, 0x1C)
    yield "disconnect", session() + command(IO, DISCONNECT) + command(ADMIN, DISCONNECT)
    yield "events", session() + command(ADMIN, SET, 0, 0xB, 0x100) + command(ADMIN, AER) * 5 + \
        op(NS, "BBH", 0, 1, 0) + command(ADMIN, LOG, 0, 4 | 0xFF << 16) + op(NS, "BBH", 1, 1, 0)
    yield "events-full", op(OPEN, "BB", 0, 0) + connect(0, 0, 1) + \
        command(0, PROPERTY_SET, 0, 0x14, 0x460001) + command(0, AER) * 3 + op(CLOSE, "BB", 0, 0)
    yield "abort-event", session() + command(ADMIN, AER) + command(ADMIN, ABORT, 0, 2 << 16)
    yield "bytes", session() + op(COMMAND, "BBBBII", IO, BYTES, 0, 0, 0, 0,
                                  tail=bytes([2, 0x40, 0, 0, 1]).ljust(64, b"\0"))


def trouble_seeds():
    yield "raw", op(OPEN, "BB", 0, 0xFF) + op(RAW, "BH", 0, 8, tail=bytes(8))
    yield "raw-late", session() + op(RAW, "BH", IO, 16, tail=b"\4\0\x48\0\x48\0\0\0" * 2)
    yield "term", session() + op(TERM, "BB", IO, 1)
    yield "spoil-digest", session(1) + op(SPOIL, "HB", 72 | 1 << 15, 1) + command(IO, FLUSH, MEM)
    yield "spoil-hlen", session(1) + op(SPOIL, "HB", 2, 1) + command(IO, FLUSH, MEM)
    yield "spoil-linger", session() + op(SPOIL, "HB", 0, 8) + command(IO, FLUSH, MEM) + \
        op(CLOCK, "H", 200) + op(TURN, "B", 3)
    yield "shut", session() + op(CLOSE, "BB", IO, 1) + op(TURN, "B", 3)
    yield "vanish", session() + stalled_write() + op(CLOSE, "BB", IO, 0) + op(CLOSE, "BB", ADMIN, 0)
    yield "split", session(1) + op(SPLIT, "H", 5) + command(IO, FLUSH, MEM) + \
        op(SPLIT, "H", 80) + command(IO, WRITE, MEM, 0, 7, IN_CAPSULE | PAD)
    for pool in range(7, 14):
        yield f"starve-{pool}", session(2) + op(STARVE, "BB", pool, 0) + b"".join(
            command(IO, kind, MEM, 0, blocks, flags) for kind, blocks, flags in
            ((WRITE, 0, 0), (WRITE, 127, 0), (WRITE, 511, 0), (READ, 0, 0), (READ, 127, 0),
             (READ, 511, 0), (WRITE, 0, IN_CAPSULE), (WRITE, 0, IN_CAPSULE))) + \
            (op(FEED, "B", pool) + data(IO)) * 2
    yield "starve-stalled", session() + op(STARVE, "BB", 13, 0) + stalled_write() * 4
    for pool in range(10, 13):
        for end, name in ((op(CLOSE, "BB", IO, 0), "close"),
                          (command(ADMIN, ABORT, 0, 1 | 1 << 16), "abort")):
            yield f"starve-{pool}-{name}", session(2) + op(STARVE, "BB", pool, 0) + b"".join(
                command(IO, kind, nsid, 0, 511, IN_CAPSULE) for kind, nsid in
                ((READ, MEM), (COMPARE, STALLED), (VERIFY, NULL), (COPY, STALLED))) + \
                data(IO) + end
    yield "starve-close", session(0, 0x48, 1) + op(STARVE, "BB", 7, 1) + \
        command(IO, WRITE, MEM) * 2 + op(TERM, "BB", IO, 0)
    yield "starve-term", session() + op(STARVE, "BB", 7, 1) + command(IO, WRITE, MEM) * 2 + \
        op(ICREQ_OP, "BB", IO, 0) + op(FEED, "B", 7)
    yield "resize", session() + stalled_write() + op(NS, "BBH", 2, STALLED, 64) + \
        command(IO, READ, STALLED) + op(SLOW, "BB", 9, 0) * 2
    yield "remove", session() + stalled_write() + op(NS, "BBH", 0, STALLED, 0) + \
        command(IO, READ, STALLED) + op(NS, "BBH", 1, STALLED, 0) + op(SLOW, "BB", 9, 0)
    yield "remove-fused", session() + fused(IO, STALLED) + data(IO, settle=False) + \
        op(NS, "BBH", 0, STALLED, 0, settle=False) + turn(3, OTHER_TURNS) + turn(1, HOME_TURNS)
    yield "remove-fused-early", session() + fused(IO, MEM) + op(NS, "BBH", 0, MEM, 0) + data(IO)
    yield "resize-remove-stop", session() + stalled_write() + op(NS, "BBH", 2, STALLED, 64) * 2 + \
        op(NS, "BBH", 0, STALLED, 0) + op(STOP)
    yield "remove-subsystem-stop", session() + stalled_write() + op(SUBSYS, "B", 2) + op(STOP) + \
        turn(3) + op(OPEN, "BB", 2, 0)
    yield "any-host", session(0, 0x41) + op(SUBSYS, "B", 7) + op(SUBSYS, "B", 1) + \
        op(OPEN, "BB", 2, 0) + connect(2, options=4 + 1 + 16) + op(SUBSYS, "B", 3)
    yield "refuse", session(0, 0x41) + op(SUBSYS, "B", 1)
    yield "remove-subsystem", session() + stalled_write() + op(SUBSYS, "B", 2)
    yield "refused-io", session() + op(SLOW, "BB", 1, 0xFF) + stalled_write() + op(LOOK)
    yield "stop", session() + stalled_write() + command(ADMIN, AER) + op(STOP)
    yield "stop-early", op(OPEN, "BB", 0, 0) + op(STOP)


def conn_seeds():
    yield from connect_seeds()
    yield from io_seeds()
    yield from length_seeds()
    yield from admin_seeds()
    yield from host_pair_seeds()
    yield from takeover_seeds()
    yield from trouble_seeds()


def main():
    here = pathlib.Path(__file__).resolve().parent
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "corpus"
    for name, seeds in (("fuzz_pdu", pdu_seeds()), ("fuzz_conn", conn_seeds()),
                        ("fuzz_link", link_seeds()), ("fuzz_queue", queue_seeds()),
                        ("fuzz_host", host_seeds()), ("fuzz_rdma", rdma_seeds()),
                        ("fuzz_rdma_link", rdma_link_seeds()), ("fuzz_state", state_seeds())):
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for seed, content in seeds:
            (folder / seed).write_bytes(content)


main()
