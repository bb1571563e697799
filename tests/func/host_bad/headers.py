"""headers.py - PDUs of a live connection whose header is wrong, or whose digest is."""
import nvme
import pdu
from host_bad import (FIELD, FLAGS, HEADER_DIGEST, HLEN, OUT_OF_RANGE, PDO, PLEN, SEQUENCE, SIZE,
                      TYPE, fails, hurts, normally, read, survives, write)

HUGE = 0xFFFFFFFF
WHY = {"type": "PDU|type", "hlen": "HLEN|header|PDU", "plen": "PLEN|length|PDU",
       "pdo": "PDO|DATAL|data offset|PDU", "flags": "flag|digest|DGSTF|PDU"}


def completion(conn, cmd, **wrong):
    conn.live.pop(cmd.cid)
    conn.completion(cmd.cid, **wrong)


def data(conn, cmd, **wrong):
    conn.live.pop(cmd.cid)
    conn.c2hdata(cmd.cid, 0, bytes(cmd.length), **wrong)


def r2t(conn, cmd, **wrong):
    conn.r2t(cmd.cid, 1, 0, cmd.length, **wrong)


def hdr(step, **wrong):
    return lambda conn, cmd: step(conn, cmd, **wrong)


# what, command, replaced step, its PDU, field, wrong values, the errors that may be found first
TABLE = [
    ("CapsuleResp", write, "write", completion, "hlen", (0, 8, 23, 25, 255), [HLEN]),
    ("CapsuleResp", write, "write", completion, "plen", (*range(8), 8, 23, 25, HUGE), [PLEN]),
    ("CapsuleResp", write, "write", completion, "flags", (1, 3), [FLAGS, FIELD]),
    ("C2HData", read, "read", data, "hlen", (0, 23, 25, 255), [HLEN]),
    ("C2HData", read, "read", data, "plen", (0, 7, 23, 24, 24 + SIZE - 1, 24 + SIZE + 1, HUGE),
     [PLEN, PDO, OUT_OF_RANGE, FIELD]),
    ("C2HData", read, "read", data, "pdo", (0, 8, 23, 25, 28, 255), [PDO, PLEN, FIELD]),
    ("C2HData", read, "read", data, "flags", (5, 6, 7), [FLAGS, FIELD]),
    ("R2T", write, "solicit", r2t, "hlen", (0, 23, 25), [HLEN]),
    ("R2T", write, "solicit", r2t, "plen", (0, 7, 23, 25, HUGE), [PLEN]),
    ("CapsuleResp on the admin queue", read, "set_features", completion, "hlen", (0, 25), [HLEN]),
    ("CapsuleResp on the admin queue", read, "set_features", completion, "plen", (0, 25, HUGE),
     [PLEN]),
]
for what, command, method, step, field, values, term in TABLE:
    for value in values:
        fails(f"{what} with {field} {value:#x}", WHY[field], command, term,
              **{method: hdr(step, **{field: value})})


def typed(type):
    return lambda conn, cmd: conn.send_pdu(type, bytes(pdu.HLEN.get(type, 24) - 8))


for type in (pdu.ICREQ, pdu.H2CTERM, pdu.CMD, pdu.H2CDATA, 0x08, 0x0A, 0x0B, 0x10, 0x7F, 0xFF):
    fails(f"PDU type {type:#x} for a Read's answer", WHY["type"], term=[TYPE, SEQUENCE],
          read=typed(type))
    fails(f"PDU type {type:#x} for Connect's answer", WHY["type"], term=[TYPE, SEQUENCE],
          connect=typed(type))
hurts("PDU type 0x8 for a Read's answer", WHY["type"], term=[TYPE], read=typed(8))


# --- digests

def spoiled(which):
    def step(conn, cmd):
        ns = conn.target.namespaces[1].data
        conn.live.pop(cmd.cid)
        start = cmd.slba * 512
        conn.c2hdata(cmd.cid, 0, bytes(ns[start:start + cmd.length]), spoil=which)
        conn.completion(cmd.cid)
    return step


BOTH = dict(hdgst=1, ddgst=1)
hurts("C2HData with a wrong header digest", "header digest", term=[HEADER_DIGEST], words=BOTH,
      read=spoiled("hdgst"))
hurts("C2HData with a wrong data digest", "digest", words=BOTH, read=spoiled("ddgst"))
hurts("CapsuleResp with a wrong header digest", "header digest", write, [HEADER_DIGEST], BOTH,
      write=hdr(completion, spoil="hdgst"))
hurts("R2T with a wrong header digest", "header digest", write, [HEADER_DIGEST], BOTH,
      solicit=hdr(r2t, spoil="hdgst"))
fails("Connect's answer with a wrong header digest", "header digest", term=[HEADER_DIGEST],
      words=BOTH, connect=lambda conn, cmd: conn.completion(cmd.cid, spoil="hdgst"))


def without(conn, *args, hdgst=None, ddgst=None, **kw):
    """Digests were agreed upon, and are not sent."""
    normally(conn, "send_pdu", *args, hdgst=False, ddgst=False, **kw)


def without_data_digest(conn, type, *args, **kw):
    normally(conn, "send_pdu", type, *args, **kw | dict(ddgst=False))


fails("digests agreed upon and not sent", "digest|DGSTF|PLEN|flag|PDU", term=[FLAGS, PLEN, FIELD],
      words=BOTH, send_pdu=without)
fails("the data digest agreed upon and not sent", "digest|DGSTF|PLEN|flag|PDU",
      term=[FLAGS, PLEN, FIELD], words=BOTH, send_pdu=without_data_digest)


def truncated_then_more(conn, cmd):
    """A digest that is right for less than what was sent."""
    conn.live.pop(cmd.cid)
    raw = pdu.encode(pdu.C2HDATA, cmd.cid.to_bytes(2, "little") + bytes(14), bytes(512),
                     hdgst=True, ddgst=True)
    conn.send(raw)


fails("C2HData of length 0 with 512 bytes behind it", "C2HData|PLEN|length|data",
      words=BOTH, term=[PLEN, FIELD, OUT_OF_RANGE], read=truncated_then_more)
survives("a status that does not exist", read=lambda conn, cmd: conn.complete(cmd, 0x7FF))
fails("a read refused", "0x80", read=lambda conn, cmd: conn.complete(cmd, nvme.LBA_RANGE))
fails("a write refused", "0x20", write, write=lambda conn, cmd: conn.complete(cmd, 0x20))
