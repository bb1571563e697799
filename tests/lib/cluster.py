"""cluster.py - several targets that serve one subsystem, and what a host sees of its groups."""
import contextlib
import pathlib
import shutil
import signal
import struct
import tempfile

import borrow
import ofd
import pdu
import tap
import weft

ANA_LOG, OPTIMIZED, INACCESSIBLE = 0x0C, 1, 3
UNTIL_S = 60

CONFIG = """listen: [ "nvme+tcp://127.0.0.1:{port}" ]
subsystems:
  - nqn: nqn.2026-11.io.weft:test
    state: "file:{shared}/state"
    cluster: {{ node: {node}, of: {of} }}
    namespaces:
      - {{ backend: "file:{shared}/a,size=16M" }}
      - {{ backend: "file:{shared}/b,size=16M", ana_group: 2 }}
"""


class Cluster:
    """Targets on the same files; nodes are 1, 2, …"""

    def __init__(self, of=2):
        self.shared, self.of = pathlib.Path(tempfile.mkdtemp(prefix="weft-shared-")), of
        self.nodes = {}

    def dir_of(self, node):
        """Where it finds the shared files."""
        return self.shared

    def target(self, node):
        if node not in self.nodes:
            text = CONFIG.format(port=weft.free_port(), shared=self.dir_of(node), node=node,
                                 of=self.of)
            self.nodes[node] = weft.Target(config=text)
        return self.nodes[node]

    def start(self, node):
        """Start a node, again perhaps; the others see it."""
        self.target(node).start()
        for other, target in self.nodes.items():
            if target.process.poll() is None:
                weft.wait_until(lambda n=other: self.cluster(n)["members"][node - 1]["alive"],
                                f"node {node} at node {other}", UNTIL_S)
        return self.nodes[node]

    def cluster(self, node):
        return self.nodes[node].subsystem()["cluster"]

    def groups(self, node):
        """How many groups each node serves, as this one sees it."""
        return [len(m["ana_groups"]) for m in self.cluster(node)["members"]]

    def until(self, node, groups):
        weft.wait_until(lambda: self.groups(node) == groups, f"groups {groups}", UNTIL_S)

    def pause(self, node):
        """It stands still, and not while it has the state locked: nobody else could change it."""
        def paused():
            self.nodes[node].process.send_signal(signal.SIGSTOP)
            weft.wait_until(lambda: is_stopped(self.nodes[node]), "all of its threads to stand")
            if not is_locked(self.shared / "state"):
                return True
            self.resume(node)
            return False
        weft.wait_until(paused, f"node {node} to be stopped", UNTIL_S)

    def resume(self, node):
        self.nodes[node].process.send_signal(signal.SIGCONT)

    def tell(self):
        """What the nodes have said last, for who reads that a case has failed."""
        for node, target in self.nodes.items():
            tap.diag(f"node {node}: …\n" + "\n".join(target.log.read_text().splitlines()[-20:]))

    def close(self):
        try:
            for target in self.nodes.values():
                if target.process.returncode is None:
                    target.stop()
                target.check_log()
        finally:
            for target in self.nodes.values():
                target.clean()
            shutil.rmtree(self.shared, ignore_errors=True)


def is_stopped(target):
    return all("T (stopped)" in (task / "status").read_text() for task in target.proc("task").iterdir())


def is_locked(path):
    """Does anybody have the state in a file locked?"""
    with path.open("rb+") as file:
        return ofd.held(file, ofd.STATE_AT)


def start_all(cluster):
    """One after the other: groups that nobody has yet would be shared out."""
    for node in range(1, cluster.of + 1):
        cluster.start(node)
        cluster.until(node, [2] + [0] * (cluster.of - 1))
    return cluster.nodes.values()


def with_cluster(name, of=2, limit_s=180):
    """body(cluster, node 1, …), all started one after the other: the first serves everything."""
    def add(body):
        @tap.case(name, limit_s)
        def _():
            with contextlib.closing(Cluster(of)) as cluster:
                try:
                    body(cluster, *start_all(cluster))
                except Exception:
                    cluster.tell()
                    raise
        return body
    return add


def ana(ctrl, group):
    page = ctrl.log(ANA_LOG, 4096)
    at, count = 16, struct.unpack_from("<H", page, 8)[0]
    for _ in range(count):
        which, nsids = struct.unpack_from("<II", page, at)
        if which == group:
            return page[at + 16] & 15
        at += 32 + 4 * nsids
    raise AssertionError(f"no group {group}")


def storage_of(target, name):
    """A second descriptor of what this target has open: the kernel has it as long as we do."""
    fds = target.proc("fd")
    number = next(int(fd.name) for fd in fds.iterdir() if fd.resolve().name == name)
    try:
        return borrow.fd_of(target.process.pid, number)
    except OSError as err:
        tap.skip(str(err))


SLOTS = (64 << 10, (64 << 10) + (16 << 20))         # of odd revisions, of even ones
SLOT = struct.Struct("<8sIIQQQ")                    # magic, checksum, nodes, revision, session, length


def newest_slot(path):
    """Nodes, revision, session and records of the newest slot of a state file."""
    with path.open("rb") as file:
        slots = []
        for at in SLOTS:
            file.seek(at)
            _, _, nodes, revision, session, length = SLOT.unpack(file.read(40).ljust(40, b"\0"))
            slots.append((revision, nodes, session, file.read(length)))
    revision, nodes, session, raw = max(slots)
    records, at = {}, 0
    while at < len(raw):
        key_len, _, length, version = struct.unpack_from("<HHIQ", raw, at)
        at += 16
        records[raw[at:at + key_len].decode()] = (version, raw[at + key_len:at + key_len + length])
        at += key_len + length
    return nodes, revision, session, records


def state_keys(path):
    """The keys of all records in a state file, as its newest slot has them."""
    return list(newest_slot(path)[3])


def forge(path, key, value):
    """A record that no member wrote, with a checksum that is right."""
    nodes, revision, session, records = newest_slot(path)
    revision += 1
    records[key] = (revision, value)
    raw = b"".join(struct.pack("<HHIQ", len(name), 0, len(content), version) + name.encode() + content
                   for name, (version, content) in sorted(records.items()))
    head = SLOT.pack(b"weftslot", 0, nodes, revision, session, len(raw))
    crc = pdu.crc32c(head[12:] + raw) ^ 0xFFFFFFFF  # theirs is not inverted at the end
    with path.open("rb+") as file:
        file.seek(SLOTS[1 - revision % 2])
        file.write(head[:8] + struct.pack("<I", crc) + head[12:] + raw)
