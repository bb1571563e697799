"""stages.py - at every stage of a connection, every way in which it can end."""
import pdu
import nvme
from host_bad import HASTY, Silence, fails, normally, once, read, works, write

ANY = r"\w"
CLOSED = "closed|reset|lost|end|broken"
LATE = "time|answer|within"


def silence(_conn):
    raise Silence


def rst(conn):
    conn.reset()


def fin(conn):
    raise nvme.Closed("the script closes")


def half(conn):
    conn.send(pdu.encode(pdu.RSP, bytes(16))[:12])
    raise nvme.Closed("the script closes")


def half_then_silence(conn):
    conn.send(pdu.encode(pdu.RSP, bytes(16))[:12])
    raise Silence


def c2hterm(conn):
    conn.term(2)
    raise nvme.Closed("the script closes")


def c2hterm_then_silence(conn):
    conn.term(1, 4, b"\4\0\x48\0\xff\xff\0\0")
    raise Silence


def not_nvme(conn):
    conn.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" * 4)
    raise nvme.Closed("the script closes")


def endless(conn):
    conn.send(pdu.encode(pdu.C2HDATA, bytes(16), plen=0xFFFFFFFF))
    for _ in range(1000):
        conn.send(bytes(65536))
    raise Silence


# The method that a stage replaces, and which of its calls.
STAGES = {
    "accept": ("accepted", lambda conn: not conn.is_io),
    "ICReq": ("icreq", lambda conn, got: not conn.is_io),
    "Connect": ("connect", lambda conn, cmd: not conn.is_io),
    "Property Get CAP": ("property_get", lambda conn, cmd: cmd.dw(11) == nvme.CAP),
    "Property Set CC": ("property_set", lambda conn, cmd: True),
    "Property Get CSTS": ("property_get", lambda conn, cmd: cmd.dw(11) == nvme.CSTS),
    "Identify controller": ("identify", lambda conn, cmd: cmd.dw(10) & 0xFF == 1),
    "Identify namespace": ("identify", lambda conn, cmd: cmd.dw(10) & 0xFF == 0),
    "Set Features": ("set_features", lambda conn, cmd: True),
    "I/O queue accept": ("accepted", lambda conn: conn.is_io),
    "I/O queue ICReq": ("icreq", lambda conn, got: conn.is_io),
    "I/O queue Connect": ("connect", lambda conn, cmd: conn.is_io),
    "Read": ("read", lambda conn, cmd: True),
    "R2T": ("solicit", lambda conn, cmd: True),
    "Write": ("write", lambda conn, cmd: True),
}
ENDS = {
    "silence": (silence, LATE), "RST": (rst, CLOSED), "FIN": (fin, CLOSED),
    "half a PDU": (half, f"{CLOSED}|PDU|set up"),
    "half a PDU and silence": (half_then_silence, ANY),
    "C2HTermReq": (c2hterm, "C2HTermReq|terminat|target.*error"),
    "C2HTermReq and silence": (c2hterm_then_silence, "C2HTermReq|terminat|target.*error"),
    "another protocol": (not_nvme, "PDU|ICResp|header"),
    "an endless PDU": (endless, "PDU|C2HData|ICResp|length"),
}
# The first connection was live: what ends every later one is over when that is lost for good.
LOST = {"Identify namespace": dict(loss_timeout="2s")}
# Ways to end that a reconnect gets over, once the controller was live.
RECOVERS = ("RST", "FIN", "half a PDU", "C2HTermReq", "an endless PDU")


def ending(method, chosen, end):
    def step(conn, *args):
        if chosen(conn, *args):
            return end(conn)
        return normally(conn, method, *args)
    return step


def stage(name, method, chosen):
    command = write if method in ("write", "solicit") else read
    for how, (end, why) in ENDS.items():
        words = HASTY if why in (LATE, ANY) else LOST.get(name)
        fails(f"{how} at {name}", why, command, words=words,
              **{method: ending(method, chosen, end)})


for name, (method, chosen) in STAGES.items():
    stage(name, method, chosen)


def recovers(name, method, how, command):
    end = ENDS[how][0]
    works(f"{how} at {name}, once", command, **{method: once(method, lambda conn, *_: end(conn))})


for how in RECOVERS:
    recovers("Read", "read", how, read)
    recovers("R2T", "solicit", how, write)
    recovers("Write", "write", how, write)


def passes(name, how):
    """An I/O queue that is being opened: the controller may be on its way out, and back."""
    method, chosen = STAGES[name]
    left = [ENDS[how][0]]

    def step(conn, *args):
        if left and chosen(conn, *args):
            return left.pop()(conn)
        return normally(conn, method, *args)
    works(f"{how} at {name}, once", **{method: step})


for how in ("RST", "FIN", "half a PDU", "C2HTermReq"):
    for name in ("I/O queue accept", "I/O queue ICReq", "I/O queue Connect"):
        passes(name, how)
