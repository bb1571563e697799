"""crowd.py - load over many connections, made outside of libweft.

    nvme.py opens them ──descriptors──▶ bench/crowd sends and counts

What the load costs hardly depends on how many there are: if something grows, it is the server's.
"""

import json
import socket
import struct
import sys

import load
import servers

sys.path.insert(0, str(servers.ROOT / "tests" / "lib"))

import nvme
import pdu
import sqe

BLOCK = 4096
QUEUES = 100                            # of one controller
RING = 8192                             # requests; each has another offset
REQUEST, REPLY = 72, 24 + BLOCK
WARM_S = 0.3


def requests(namespaces, share, blocks):
    """Reads of one block anywhere, of each namespace in turn. Command ids go round with what a
    connection has in flight."""
    out = bytearray()
    for i in range(-(-RING // share) * share):
        command = sqe.Sqe(sqe.READ, nsid=1 + i % namespaces, dw10=i * 7919 % blocks)
        out += pdu.encode(pdu.CMD, command.encode(i % share, sqe.sgl_transport(BLOCK)))
    return bytes(out)


def connect(server, nqns, count, share):
    """Controllers with so many queues in all; all of these subsystems have some."""
    controllers, each = [], min(QUEUES, -(-count // len(nqns)))
    for at in range(0, count, each):
        controller = nvme.Controller((server.host, server.port), nqns[at // each % len(nqns)])
        controller.set_feature(7, (each - 1) << 16 | (each - 1))
        for _ in range(min(each, count - at)):
            controller.open(depth=max(share + 1, 32), flow=False)
        controllers.append(controller)
    return controllers


def connect_bare(server, count):
    sockets = []
    for _ in range(count):
        sock = socket.create_connection((server.host, server.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(struct.pack("<II", REQUEST, REPLY))
        sock.setblocking(False)
        sockets.append(sock)
    return sockets


def crowd(server, sockets, ring, first, depth, seconds):
    fds = [sock.fileno() for sock in sockets]
    command = [servers.BUILD / "bench" / "crowd", REQUEST, REPLY, first, depth, WARM_S, seconds,
               *fds]
    text, disturbed = load.run(server, command, seconds, stdin=ring, fds=fds)
    return json.loads(text) | {"disturbed": disturbed, "resident_mib": server.resident_mib()}


def run_weft(server, count, depth, seconds):
    with server.turn():
        controllers = connect(server, server.nqns[:count], count, depth // count)
        try:
            queues = [queue.sock for controller in controllers for queue in controller.queues]
            ring = requests(server.namespaces, depth // count, server.blocks)
            return crowd(server, queues, ring, pdu.C2HDATA, depth, seconds)
        finally:
            for controller in controllers:
                controller.close()


def run_bare(server, count, depth, seconds):
    with server.turn():
        sockets = connect_bare(server, count)
        try:
            return crowd(server, sockets, bytes(REQUEST * RING), 0, depth, seconds)
        finally:
            for sock in sockets:
                sock.close()
