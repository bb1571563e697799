"""seeds_state.py - first inputs of fuzz_state: what is in a state file."""
import struct

RECORDS, SLOTS, RESERVATION, OWNERS, PORTS, RESET = range(6)
GROUPS = 1024


def record(key, value, version=1):
    return struct.pack("<HHIQ", len(key), 0, len(value), version) + key + value


def reservation(rtype, keys, notices=0, session=1):
    head = struct.pack("<4BIQQII", 1, rtype, 0, 0, 7, session, notices, len(keys), notices)
    regs = b"".join(bytes([n + 1] * 16) + struct.pack("<QB7x", key, n == 0)
                    for n, key in enumerate(keys))
    return head + regs + (bytes([9] * 16) + bytes([1, 1]) + bytes(6)) * notices


def slot(parity, revision, body):
    return bytes([parity]) + struct.pack("<IQQQ", 2, revision, 1, len(body)) + body


def state_seeds():
    two = record(b"a", b"1") + record(b"resv/x", reservation(3, [1, 2]), 2)
    inputs = {
        "records": (RECORDS, two), "records-empty": (RECORDS, record(b"k", b"")),
        "slot-odd": (SLOTS, slot(0, 1, two)), "slot-even": (SLOTS, slot(1, 2, two)),
        "slot-wrong": (SLOTS, slot(0, 2, two)),
        "resv-none": (RESERVATION, reservation(0, [])),
        "resv-old": (RESERVATION, reservation(2, [1], session=9)),
        **{f"resv-{t}": (RESERVATION, reservation(t, [1, 2, 1], t)) for t in range(1, 7)},
        "owners": (OWNERS, bytes(8) + bytes([1, 2, 3] + [0] * (GROUPS - 3)) + bytes(GROUPS)),
        "owners-next": (OWNERS, bytes([1] + [0] * 7) + bytes([2] * GROUPS) + bytes([3] * GROUPS)),
        "ports": (PORTS, b"session 1\nnvme+tcp://192.0.2.1:4420?portid=1\n"
                         b"nvme+rdma://[2001:db8::1]:4420?portid=2\n"),
        "reset": (RESET, struct.pack("<4BHxxQQ16s224s", 1, 1, 2, 3, 4, 5, 1, b"id", b"nqn")),
    }
    for name, (kind, content) in inputs.items():
        yield name, bytes([kind]) + content
