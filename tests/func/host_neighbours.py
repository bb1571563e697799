#!/usr/bin/python3
"""host_neighbours.py - every file that Weft makes, in a folder where another user was first.

The writers are a table: each makes a file of its own kind under a name that it is given. The traps are
another: what a neighbour can leave under that name, or beside it. Whatever a writer does then, refuse
or go on, the victim's files stay as they were, so do the neighbour's, and nothing is left that the
neighbour can open. The kernel would stop some of this in a folder with the sticky bit, where
fs.protected_* is set; so there is one folder with and one without."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import weft
from command import FAILED, OK, done, fails, run, uri

NEIGHBOUR = 65534
SECRET = b"the secret of a disk".ljust(512, b".") * 2048        # 1 MiB
FOLDERS = {"sticky": 0o1777, "plain": 0o777}


# ---- writers: each is given a path, and returns what it said, or raises Refused

class Refused(Exception):
    """The writer did not go on; what it said."""


def command(*args, **kw):
    result = run(*args, limit_s=20, **kw)
    if result.returncode == FAILED:
        raise Refused(result.stderr)
    assert result.returncode == OK, f"exit status {result.returncode}: {result.stderr}"


def serve(path=None, **kw):
    """A target that lives for a moment."""
    target = weft.Target(**kw)
    if path:
        target.control = path
    try:
        target.process = target.spawn()
        weft.wait_until(lambda: target.process.poll() is not None or target.answers(),
                        "the target to serve, or to refuse")
        if target.process.returncode == FAILED:
            raise Refused(target.log.read_text())
        target.stop()
    finally:
        target.clean()


def state_config(path):
    return (f"subsystems: [ {{ nqn: {weft.NQN}, allow_any_host: true, state: \"file:{path}\", "
            "namespaces: [ { nsid: 1, backend: \"mem:1M\" } ] } ]\n")


def save(world, path):
    try:
        world.target.ctl("save", path=str(path))
    except weft.CtlError as err:
        raise Refused(str(err)) from err


WRITERS = {
    "cp": lambda w, path: command("cp", w.secret, path),
    "cp of a pipe": lambda w, path: command("cp", "-", path, stdin=SECRET),
    "cp --force": lambda w, path: command("cp", "--force", w.secret, path),
    "read -o": lambda w, path: command("read", uri(w.target, 1), "--length", "1M", "-o", path),
    "bench --plot": lambda w, path: command("bench", uri(w.target, 1), "--time", "10ms", "--plot", path),
    "ctl save": save,
    "an image": lambda w, path: serve(ns=[f"file:{path},size=1M"]),
    "a state file": lambda w, path: serve(config=state_config(path)),
    "a control socket": lambda w, path: serve(path, ns=["mem:1M"]),
    "a log file": lambda w, path: serve(ns=["mem:1M"], extra=["--log-file", str(path)]),
    "a pid file": lambda w, path: serve(ns=["mem:1M"], extra=["--pidfile", str(path)]),
}
GO_WITH_IT = ("a control socket", "a pid file")      # with the target
os.umask(0o022)
MODES = {"a log file": 0o640, "bench --plot": 0o644}  # where it is not 0600
PUBLIC = ("bench --plot",)                            # others may read it


# ---- traps: each is set at a path by the neighbour, and returns where the writer is sent

def owned(path, mode=None):
    os.lchown(path, NEIGHBOUR, NEIGHBOUR)
    if mode is not None:
        os.chmod(path, mode)
    return path


def a_file(world, path):
    path.write_bytes(b"bait")
    owned(path, 0o666)


def an_empty_file(world, path):
    path.touch()
    owned(path, 0o666)


def a_link_to_the_victims(world, path):
    path.symlink_to(world.victim)
    owned(path)


def a_link_to_nothing(world, path):
    path.symlink_to(world.folder / "elsewhere")
    owned(path)


def another_name_of_the_victims(world, path):
    os.link(world.victim, path)


def a_fifo(world, path):
    os.mkfifo(path)
    owned(path, 0o666)
    world.fifo = os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def a_folder(world, path):
    path.mkdir()
    owned(path, 0o777)


TRAPS = {body.__name__.replace("_", " "): body for body in (
    a_file, an_empty_file, a_link_to_the_victims, a_link_to_nothing, another_name_of_the_victims,
    a_fifo, a_folder)}


# ---- what was there, and what is there now

def seen(path):
    """Everything about an entry that a neighbour, or a writer that goes wrong, could change."""
    st = os.lstat(path)
    content = b""
    if stat.S_ISREG(st.st_mode):
        content = path.read_bytes()
    elif stat.S_ISLNK(st.st_mode):
        content = os.readlink(path)
    return st.st_ino, st.st_mode, st.st_uid, st.st_nlink, content


def entries(folder):
    return {path: seen(path) for path in sorted(folder.rglob("*"))}


class World:
    """A target with a secret on it, a victim's file, and a folder that everybody can write to."""

    def __enter__(self):
        self.target = weft.Target(ns=["file:{dir}/disk,size=1M"]).start()
        (self.target.dir / "disk").write_bytes(SECRET)
        self.secret = self.target.dir / "secret"
        self.secret.write_bytes(SECRET)
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="weft-neighbours-"))
        self.top.chmod(0o755)
        self.fifo = -1
        return self

    def __exit__(self, *_):
        self.target.stop()
        self.target.clean()
        shutil.rmtree(self.top)

    @contextlib.contextmanager
    def among(self, mode):
        """A folder of that mode, for one writer and one trap."""
        self.folder, self.victim = self.top / "shared", self.top / "precious"
        self.folder.mkdir()
        self.folder.chmod(mode)
        self.victim.write_bytes(b"precious")
        self.victim.chmod(0o640)
        try:
            yield self.folder
        finally:
            if self.fifo >= 0:
                os.close(self.fifo)
                self.fifo = -1
            shutil.rmtree(self.folder)
            self.victim.unlink()

    def leaked(self):
        with contextlib.suppress(BlockingIOError):
            return self.fifo >= 0 and os.read(self.fifo, 64)
        return b""


def become_neighbour():
    os.setgroups([])
    os.setresgid(NEIGHBOUR, NEIGHBOUR, NEIGHBOUR)
    os.setresuid(NEIGHBOUR, NEIGHBOUR, NEIGHBOUR)


def neighbour_opens(path, *ways):
    """Whether the other user gets at it in any of these ways."""
    child = os.fork()
    if not child:
        become_neighbour()
        os._exit(any(os.access(path, way) for way in ways))
    return os.waitpid(child, 0)[1] != 0


def judge(world, writer, before, victim):
    """What went wrong, in words."""
    now = entries(world.folder)
    ways = (os.W_OK,) if writer in PUBLIC else (os.R_OK, os.W_OK)
    for path, was in before.items():
        if now.get(path) != was:
            yield f"the neighbour's {path.name} was {was[:4]} and is {now.get(path, 'gone')[:4]}"
    if seen(world.victim) != victim:
        yield f"the victim's file is {seen(world.victim)}"
    if world.leaked():
        yield "the neighbour's FIFO got data"
    for path in now.keys() - before.keys():
        if os.lstat(path).st_uid != os.geteuid() or neighbour_opens(path, *ways):
            yield f"the neighbour can open {path.name}: {os.lstat(path)}"


def attempt(world, writer, path):
    """Judges one writer at one path, with what is there."""
    before, victim = entries(world.folder), seen(world.victim)
    try:
        WRITERS[writer](world, path)
    except Refused as why:
        if str(path) not in str(why):
            yield f"it does not say which file it refuses: {why}"
    except (AssertionError, subprocess.TimeoutExpired) as why:
        yield f"it neither refused nor went on: {why}"
    yield from judge(world, writer, before, victim)


def needs_root():
    if os.geteuid():
        tap.skip("needs root, to set another user's traps")


def walk(writer, spots):
    """Every trap at each of these places, in both kinds of folders. `spots`: the writer's path, and
    the trap's, from the folder."""
    wrong = []
    with World() as world:
        for kind, mode in FOLDERS.items():
            for trap, set_at in TRAPS.items():
                for path, at in spots:
                    with world.among(mode) as folder:
                        set_at(world, folder / at)
                        wrong += [f"{kind}: {trap} at {at}: {fault}"
                                  for fault in attempt(world, writer, folder / path)]
    assert not wrong, "\n" + "\n".join(wrong)


for name in WRITERS:
    @tap.case(f"{name}: a trap under its name, or under that of its .part", limit_s=240)
    def _(name=name):
        needs_root()
        walk(name, [("out.svg", "out.svg"), ("out.svg", "out.svg.part")])


for name in WRITERS:
    @tap.case(f"{name}: in a folder that is the neighbour's, or a link of his to another")
    def _(name=name):
        needs_root()
        wrong = []
        with World() as world:
            for mode in FOLDERS.values():
                with world.among(mode) as folder:
                    a_folder(world, folder / "theirs")
                    os.chmod(folder / "theirs", 0o755)
                    wrong += attempt(world, name, folder / "theirs" / "out.svg")
                    wrong += ["made in the neighbour's folder"] * any((folder / "theirs").iterdir())
                with world.among(mode) as folder:
                    (world.top / "private").mkdir(exist_ok=True)
                    (folder / "link").symlink_to(world.top / "private")
                    owned(folder / "link")
                    wrong += attempt(world, name, folder / "link" / "out.svg")
                    wrong += ["made where the neighbour led it"] * any((world.top / "private").iterdir())
        assert not wrong, "\n" + "\n".join(wrong)


for name in WRITERS:
    @tap.case(f"{name}: where nobody was before, it is made, with its mode")
    def _(name=name):
        needs_root()
        with World() as world:
            for mode in FOLDERS.values():
                with world.among(mode) as folder:
                    path = folder / "out.svg"
                    wrong = list(attempt(world, name, path))
                    assert not wrong, wrong
                    left = [p.name for p in folder.iterdir()]
                    assert left == ([] if name in GO_WITH_IT else ["out.svg"]), left
                    assert all(p.stat().st_mode & 0o7777 == MODES.get(name, 0o600)
                               for p in folder.iterdir())


def part_of_killed(path, content=b"half of it"):
    """What a copy that was killed leaves."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.chmod(0o1600)
    return part


PARTS = {
    "a file of the user's own, which is something else": lambda part: part.chmod(0o600),
    "one that others could write to": lambda part: part.chmod(0o1620),
    "one that has another name": lambda part: os.link(part, part.with_name("other")),
    "one of another user": lambda part: os.chown(part, NEIGHBOUR, NEIGHBOUR),
}

for name in ("cp", "cp --force", "bench --plot", "ctl save"):
    @tap.case(f"{name}: removes the .part that is provably its own, and no other")
    def _(name=name):
        needs_root()
        with World() as world:
            for change in PARTS.values():
                with world.among(0o755) as folder:
                    change(part_of_killed(folder / "out.svg"))
                    wrong = list(attempt(world, name, folder / "out.svg"))
                    assert not wrong and not (folder / "out.svg").exists(), wrong
            with world.among(0o1777) as folder, open(part_of_killed(folder / "out.svg")) as early:
                WRITERS[name](world, folder / "out.svg")
                assert [p.name for p in folder.iterdir()] == ["out.svg"]
                assert early.read() == "half of it", "who had the old one open sees the new one"


@tap.case("cp --force keeps the mode of what it replaces, and adds nothing to it")
def _():
    needs_root()
    with World() as world, world.among(0o755) as folder:
        for mode, kept in ((0o640, 0o640), (0o4755, 0o755), (0o600, 0o600)):
            out = folder / "out"
            out.write_text("old")
            out.chmod(mode)
            done("cp", "--force", world.secret, out)
            assert out.stat().st_mode & 0o7777 == kept, oct(out.stat().st_mode)


@tap.case("… and its mode is for no other group than before")
def _():
    needs_root()
    acl = struct.pack("<I" + "HHI" * 5, 2, *(1, 6, -1 & 0xFFFFFFFF), *(2, 6, NEIGHBOUR), *(4, 0, -1 & 0xFFFFFFFF),
                      *(0x10, 6, -1 & 0xFFFFFFFF), *(0x20, 0, -1 & 0xFFFFFFFF))
    with World() as world, world.among(0o755) as folder:
        out = folder / "out"
        out.write_text("old")
        os.chown(out, 0, NEIGHBOUR)
        out.chmod(0o660)
        done("cp", "--force", world.secret, out)
        st = out.stat()
        assert (st.st_gid, st.st_mode & 0o7777) == (NEIGHBOUR, 0o660), (st.st_gid, oct(st.st_mode))
        try:
            os.setxattr(out, "system.posix_acl_access", acl)
        except OSError as err:
            tap.skip(f"{folder}: no access control lists: {err}")
        done("cp", "--force", world.secret, out)
        assert out.stat().st_mode & 0o7777 == 0o600, oct(out.stat().st_mode)


@tap.case("what the owner of a folder put there is used, and so is a link of one's own")
def _():
    needs_root()
    with World() as world, world.among(0o1777) as folder:
        os.chown(folder, NEIGHBOUR, NEIGHBOUR)
        a_file(world, folder / "image")
        serve(ns=[f"file:{folder}/image,size=1M"])
        (folder / "link").symlink_to("new")
        done("cp", world.secret, folder / "link")
        assert (folder / "new").stat().st_uid == 0
        done("cp", world.secret, "/dev/null")
        assert done("cp", world.secret, "/dev/stdout") == SECRET
        fails("cp", world.secret, f"{folder}/new/", words=["new/: Not a directory"])


# ---- weft ctl: whom it talks to

@contextlib.contextmanager
def impostor(path):
    """The neighbour answers at this path. What he is asked is in the list, when the block ends."""
    heard, ours, theirs = [], *os.pipe()
    listener = socket.socket(socket.AF_UNIX)
    child = os.fork()
    if not child:
        become_neighbour()
        listener.bind(str(path))
        os.chmod(path, 0o666)
        listener.listen()
        os.write(theirs, b"listening")
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                os.write(theirs, client.recv(65536))
                client.sendall(b'{"jsonrpc": "2.0", "id": 1, "result": "what he likes"}\n')
                client.close()
        os._exit(0)
    os.close(theirs)
    assert os.read(ours, 100) == b"listening"
    try:
        yield heard
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while data := os.read(ours, 65536):
            heard.append(data)
        os.close(ours)
        listener.close()


def theirs_in(parent):
    """A folder of the neighbour's, for him alone."""
    a_folder(None, parent / "theirs")
    os.chmod(parent / "theirs", 0o700)
    return parent / "theirs"


SOCKETS = {     # where, what becomes of the name, the words of the refusal
    "his socket in a folder of all": (lambda shared: shared, None, "could have put it there"),
    "his folder in a folder of all": (theirs_in, None, "could have put it there"),
    "a name of ours at which he answers": (lambda shared: shared, lambda path: os.chown(path, 0, 0),
                                           "user 65534 answers there"),
}

for name, (place, change, words) in SOCKETS.items():
    @tap.case(f"ctl: {name}: refused, and nothing is told")
    def _(place=place, change=change, words=words):
        needs_root()
        with World() as world, world.among(0o1777) as folder:
            path = place(folder) / "control.sock"
            with impostor(path) as heard:
                if change:
                    change(path)
                fails("ctl", "--control", path, "status", words=[path, words])
                fails("serve", "--takeover", "--control", path, "--ns", "mem:1M", words=[path])
            assert not heard, heard


@tap.case("ctl: root talks to a service's user, whose folder root has made")
def _():
    needs_root()
    with World() as world:
        path = theirs_in(world.top) / "control.sock"
        with impostor(path) as heard:
            assert done("ctl", "--control", path, "status", "--json") == b'"what he likes"\n'
        assert heard


sys.exit(tap.run())
