"""failover.py - two paths to one namespace, and what takes one of them away.

    with KINDS["reset"](folder) as rig, rig.app() as app:
        rig.wait(app)           both paths live
        at = rig.cut()          one of them is taken away; when, by CLOCK_MONOTONIC. It takes little
                                time itself: who measures shares the CPUs with what is measured
        seen = app.until(lambda seen: seen["stalls"])       # what the application has seen of it
        rig.mend()

A rig is one target with two ports, or two targets that are members of a cluster."""
import os
import pathlib
import subprocess
import time

import borrow
import cables
import ofd
import pause
import weft

SIZE = "64M"
ENDED_S = 0.0001        # between two looks at it
WORDS = "reconnect_delay=20ms&reconnect_delay_max=100ms&nsid=1"


class Unable(Exception):
    """This machine does not have what the rig needs."""


def pins():
    """What keeps the targets on one CPU and the application on another, where there are two."""
    cpus = sorted(os.sched_getaffinity(0))
    return [["taskset", "-c", str(cpu)] for cpu in cpus[:2]] if len(cpus) > 1 else [[], []]


class Rig:
    """@folder is where its files are. @pinned: targets and application have a CPU each."""
    words = ""
    limit_s = 5         # then an application that has noticed nothing will not any more

    def __init__(self, folder, pinned=False):
        self.folder, self.ports = pathlib.Path(folder), (weft.free_port(), weft.free_port())
        self.hosts = ("127.0.0.1", "127.0.0.1")
        self.target_wrap, self.wrap = pins() if pinned else ([], [])
        self.targets = []

    def listen(self, which):
        return f'"nvme+tcp://{self.hosts[which]}:{self.ports[which]}?portid={which + 1}"'

    def uri(self, words=""):
        return ",".join(f"nvme+tcp://{host}:{port}/{weft.NQN}?{WORDS}{self.words}{words}"
                        for host, port in zip(self.hosts, self.ports))

    def app(self, depth=32, words=""):
        """An application on both paths."""
        return pause.App(self.uri(words), depth, self.wrap)

    def storage(self):
        return f"mem:{SIZE}"

    def add(self, listeners, text):
        """A target of this rig, which is started."""
        config = (f"listen: [ {', '.join(map(self.listen, listeners))} ]\n"
                  f"subsystems:\n  - nqn: {weft.NQN}\n    allow_any_host: true\n{text}"
                  f"    namespaces: [ {{ backend: \"{self.storage()}\" }} ]\n")
        self.targets.append(weft.Target(config=config, wrap=self.target_wrap))
        self.targets[-1].start()

    def has_queues(self):
        return sum(ctrl["queues"] for target in self.targets for ctrl in target.controllers()) == 2

    def wait(self, app):
        """Until both paths are there, with their queues, and we are ready to take one away; what is
        seen while nothing happens."""
        app.until(lambda seen: seen["live"] == 2 and self.has_queues())
        self.aim()
        return weft.wait_until(app.watch, "I/O that nothing holds up")

    def aim(self):
        """Whatever takes time before cut()."""

    def ended(self, at):
        """When nothing of what was taken away could write any more, if cut() was at @at."""
        return at

    def mend(self):
        pass

    def __enter__(self):
        try:
            self.set_up()
        except BaseException:
            self.__exit__(True)
            raise
        return self

    def __exit__(self, kind, *_):
        for target in self.targets:
            if not kind and target.process.poll() is None:
                target.stop()
            target.clean()
        for path in self.folder.iterdir():
            path.unlink()


# ---- one target with two ports

class Reset(Rig):
    """Every connection of a port is reset, from the target's end."""
    turn, socks = 0, ()

    def set_up(self):
        self.add((0, 1), "")

    def connections(self, port):
        """Those of the target, as sockets of ours."""
        try:
            found = borrow.connections(self.targets[0].process.pid)
        except PermissionError as err:
            raise Unable(str(err)) from err
        return [sock for sock in found if sock.getsockname()[1] == port]

    def aim(self):
        self.socks = self.connections(self.ports[self.turn])
        assert len(self.socks) >= 2, f"{len(self.socks)} connections"

    def cut(self):
        at = time.monotonic_ns()
        for sock in self.socks:
            borrow.reset(sock)
        return at

    def mend(self):
        for sock in self.socks:
            sock.close()
        self.turn = 1 - self.turn


class Ana(Rig):
    """One port lets the group in, the other does not: they change places."""
    turn = 0

    def rules(self):
        return [{"group": 1, "portid": port + 1, "state": state}
                for port, state in ((self.turn, "optimized"), (1 - self.turn, "inaccessible"))]

    def set_up(self):
        self.add((0, 1), "")
        self.targets[0].ctl("ana-set", rules=self.rules())

    def cut(self):
        self.turn = 1 - self.turn
        at = time.monotonic_ns()
        self.answer = self.targets[0].ask("ana-set", rules=self.rules())
        return at

    def mend(self):
        self.answer()


class Silent(Rig):
    """One of two networks drops every packet, both ways."""
    turn, cables = 0, None
    words = "&connect_timeout=3s"       # a network may be dead, or its machine just busy

    def set_up(self):
        try:
            self.cables = cables.Cables()
        except (OSError, subprocess.CalledProcessError) as err:
            raise Unable(f"no network namespaces with cables between them: {err}") from err
        self.hosts = tuple(map(self.cables.far, range(2)))
        self.wrap = [*self.wrap, *self.cables.ends[0]]
        self.target_wrap = [*self.target_wrap, *self.cables.ends[1]]
        self.add((0, 1), "")

    def cut(self):
        at = time.monotonic_ns()
        self.cables.cut(self.turn)
        return at

    def mend(self):
        self.cables.mend(self.turn)
        self.turn = 1 - self.turn

    def __exit__(self, kind, *_):
        super().__exit__(kind)
        if self.cables:
            self.cables.close()


# ---- two targets, members of a cluster

class Members(Rig):
    owner = 0

    def storage(self):
        return f"file:{self.folder}/disk,size={SIZE}"

    def set_up(self):
        for node in range(2):
            self.add((node,), f"    state: \"file:{self.folder}/state\"\n"
                              f"    cluster: {{ node: {node + 1}, of: 2 }}\n")


class Killed(Members):
    """The member that serves the namespace is killed; the other takes it over."""

    def cut(self):
        at = time.monotonic_ns()
        self.targets[self.owner].kill9()
        return at

    def ended(self, at):
        """When the kernel has ended the I/O that the killed process had begun, and let go of its files:
        before that nobody may take its place."""
        with open(self.folder / "disk", "rb") as disk, open(self.folder / "state", "rb") as state:
            while any(ofd.held(file, ofd.STATE_AT + self.owner + 1) for file in (disk, state)):
                time.sleep(ENDED_S)
        return time.monotonic_ns()

    def mend(self):
        self.targets[self.owner].start()
        self.owner = 1 - self.owner


class Bystander(Members):
    """The member that does not serve the namespace is killed: there is nothing to take over."""
    limit_s = 0.2

    def cut(self):
        at = time.monotonic_ns()
        self.targets[1].kill9()
        return at

    def mend(self):
        self.targets[1].start()


class Moved(Members):
    """The namespace's group is moved to the other member."""

    def cut(self):
        self.owner = 1 - self.owner
        at = time.monotonic_ns()
        self.answer = self.targets[0].ask("move", group=1, node=self.owner + 1)
        return at

    def mend(self):
        self.answer()


KINDS = {"killed": Killed, "bystander": Bystander, "reset": Reset, "ana": Ana, "moved": Moved,
         "silent": Silent}
