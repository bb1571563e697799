#!/usr/bin/python3
"""host_mount.py - weft mount: namespaces as files, used by programs that know nothing of NVMe."""
import contextlib
import ctypes
import errno
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import nvme
import sqe
import tap
import weft
from fixture import in_background, with_target
from recorder import DEAC, FUA, recording
from stranger import Away, GivenUp
from target import Namespace, Target, normally

MIB = 1 << 20
NEIGHBOUR = 65534
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, ZERO_RANGE = 1, 2, 8, 16
libc = ctypes.CDLL(None, use_errno=True)


def requires(*programs):
    for program in programs:
        if not shutil.which(program):
            tap.skip(f"{program} is not installed")


def requires_fuse():
    requires("fusermount3")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as err:
        tap.skip(f"no FUSE here: {err}")


def run(*argv, limit_s=120):
    done = subprocess.run([*map(str, argv)], stdin=subprocess.DEVNULL, text=True, timeout=limit_s,
                          capture_output=True)
    assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def uri(t):
    return f"nvme+tcp://{t.addr[0]}:{t.addr[1]}/{t.nqn}"


class Mount:
    """weft mount --foreground, so that how it ends can be seen."""

    def __init__(self, uri, folder, *words):
        requires_fuse()
        folder = pathlib.Path(folder)
        self.dir, self.log = folder / "mnt", folder / "mount.log"
        self.dir.mkdir(exist_ok=True)
        self.status = 0                         # with which it is to end
        self.argv = [weft.BINARY, "mount", "--foreground", *words, uri, str(self.dir)]

    def __enter__(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        try:
            weft.wait_until(self.is_mounted, "the mount")
        except BaseException:
            self.process.kill()
            self.unmount_anyway()
            raise
        return self

    def is_mounted(self):
        assert self.process.poll() is None, f"weft mount ended:\n{self.said()}"
        return os.path.ismount(self.dir)

    def said(self):
        return self.log.read_text(errors="replace")

    def end(self, how=signal.SIGINT):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(30)

    def unmount_anyway(self):
        subprocess.run(["fusermount3", "-uz", str(self.dir)], capture_output=True)

    def __exit__(self, kind, *_):
        try:
            status = self.end()
            assert kind or status == self.status, f"weft mount's status {status}:\n{self.said()}"
            if status == 0:     # else it has left threads in the middle of their work
                assert not weft.SANITIZER.search(self.said()), self.said()
        finally:
            self.process.kill()
            self.process.wait()
            self.unmount_anyway()

    def names(self):
        return sorted(os.listdir(self.dir))

    def file(self, nsid=1):
        return self.dir / f"ns{nsid}"


def with_mount(name, words=(), query="", limit_s=120, **target):
    """Register body(target, mount) as a case."""
    def add(body):
        @with_target(name, limit_s, **target)
        def _(t):
            with Mount(uri(t) + query, t.dir, *words) as mount:
                body(t, mount)
        return body
    return add


def fails_with(error, body, *args):
    try:
        body(*args)
    except OSError as err:
        assert err.errno == error, f"{errno.errorcode[err.errno]}: {err}"
    else:
        raise AssertionError(f"it succeeded, expected {errno.errorcode[error]}")


def fallocate(fd, mode, offset, length):
    args = [ctypes.c_int(fd), ctypes.c_int(mode), ctypes.c_long(offset), ctypes.c_long(length)]
    if libc.fallocate(*args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Open:
    """A file descriptor for the length of a block."""

    def __init__(self, path, flags=os.O_RDWR):
        self.path, self.flags = path, flags

    def __enter__(self):
        self.fd = os.open(self.path, self.flags)
        return self.fd

    def __exit__(self, *_):
        with contextlib.suppress(OSError):      # of a mount that is gone
            os.close(self.fd)


# ---- the directory

@with_mount("each namespace is a file", ns=["mem:8M,nsid=1", "mem:16M,nsid=20,ro,block=4096"])
def _(t, mount):
    assert mount.names() == ["ns1", "ns20"]
    one, twenty = mount.file(1).stat(), mount.file(20).stat()
    assert (one.st_size, one.st_mode & 0o7777) == (8 * MIB, 0o600)
    assert (twenty.st_size, twenty.st_mode & 0o7777) == (16 * MIB, 0o400)
    assert mount.dir.stat().st_mode & 0o7777 == 0o700
    assert one.st_blocks * 512 == 8 * MIB and one.st_uid == os.getuid()
    fails_with(errno.EROFS, os.open, mount.file(20), os.O_RDWR)
    fails_with(errno.ENOENT, os.stat, mount.file(2))
    fails_with(errno.ENOENT, os.stat, mount.dir / "ns01")
    assert os.statvfs(mount.dir).f_blocks * os.statvfs(mount.dir).f_frsize == 24 * MIB


def neighbour_may(path, mode):
    """Whether another user can open it so."""
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setresgid(NEIGHBOUR, NEIGHBOUR, NEIGHBOUR)
        os.setresuid(NEIGHBOUR, NEIGHBOUR, NEIGHBOUR)
        try:
            os.close(os.open(path, mode))
        except OSError:                         # EACCES, EROFS
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


for words, reads, writes in (((), False, False), (("--mode", "0644"), True, False),
                             (("--mode", "666"), True, True), (("--mode", "660"), False, False),
                             (("--mode", "666", "-r"), True, False)):
    @with_mount(f"another user, with --allow-other {' '.join(words)}", ["--allow-other", *words],
                ns=["mem:8M"])
    def _(t, mount, reads=reads, writes=writes):
        if os.geteuid():
            tap.skip("needs root, to become another user")
        t.dir.chmod(0o755)
        mount.file().open("rb").close()
        assert neighbour_may(mount.file(), os.O_RDONLY) == reads
        assert neighbour_may(mount.file(), os.O_RDWR) == writes
        assert neighbour_may(mount.dir, os.O_RDONLY | os.O_DIRECTORY) == reads


@with_mount("the directory cannot be changed, and says so as one does", ns=["mem:8M"])
def _(t, mount):
    new, old = mount.dir / "new", mount.file(1)
    for body, *args in ((os.open, new, os.O_CREAT | os.O_RDWR), (os.mkdir, new), (os.mknod, new),
                        (os.unlink, old), (os.rename, old, new), (os.link, old, new),
                        (os.symlink, "ns1", new)):
        fails_with(errno.EPERM, body, *args)
    assert mount.names() == ["ns1"]


@with_mount("nsid=N in the URI: that namespace alone", query="?nsid=2", ns=["mem:8M", "mem:8M"])
def _(t, mount):
    assert mount.names() == ["ns2"]


@with_mount("namespaces come, grow and go", ns=["mem:8M"])
def _(t, mount):
    t.ctl("namespace-add", backend="mem:4M", nsid=5)
    weft.wait_until(lambda: mount.names() == ["ns1", "ns5"], "ns5 to come")
    with Open(mount.file(1)) as fd:
        t.ctl("namespace-resize", nsid=1, size="16M")
        weft.wait_until(lambda: mount.file(1).stat().st_size == 16 * MIB, "ns1 to grow")
        assert os.pwrite(fd, b"grown", 12 * MIB) == 5
        assert os.pread(fd, 5, 12 * MIB) == b"grown"
    with Open(mount.file(5)) as fd:
        t.ctl("namespace-remove", nsid=5)
        weft.wait_until(lambda: mount.names() == ["ns1"], "ns5 to go")
        fails_with(errno.ENODEV, os.pread, fd, 4096, 0)
        t.ctl("namespace-add", backend="mem:2M", nsid=5)
        weft.wait_until(lambda: mount.names() == ["ns1", "ns5"], "another ns5 to come")
        assert mount.file(5).stat().st_size == 2 * MIB
        fails_with(errno.ESTALE, os.pread, fd, 4096, 0)     # the old one is not the new one


def identifies(t, since):
    return t.commands[since:].count((0, "identify"))


def grow(t, mount, nsid):
    """Returns when the event has been acted upon: the last thing is that the namespaces are listed."""
    before = t.listed
    t.namespaces[nsid].data += bytes(4096)
    t.changed = [nsid]
    t.event(2, 0, 4)
    weft.wait_until(lambda: t.listed > before, "the namespaces to be listed", timeout=60)
    assert mount.file(nsid).stat().st_size == len(t.namespaces[nsid].data)


for count, pages in (10, 1), (1000, 1), (3000, 3):
    @tap.case(f"one of {count} namespaces grows: that one is looked at, no other", limit_s=180)
    def _(count=count, pages=pages):
        def identified(conn, cns, nsid):
            page = normally(conn, "identified", cns, nsid)
            conn.target.listed += cns == 2 and not any(page[-4:])       # the last page
            return page

        with Target(identified=identified) as t, tempfile.TemporaryDirectory() as folder:
            t.listed = 0
            t.namespaces = {nsid: Namespace(bytes(4096)) for nsid in range(1, count + 1)}
            with Mount(t.uri(kato=0), folder) as mount:
                assert len(mount.names()) == count
                grow(t, mount, 2)
                since = len(t.commands)
                for nsid in 3, 4, 5:
                    grow(t, mount, nsid)
                assert identifies(t, since) == 3 * (2 + pages), identifies(t, since)


class Mute:
    """A target that does not answer Identify of one namespace, while it is told not to."""
    NSID = 2

    def __init__(self, **script):
        self.asked, self.on = threading.Event(), False
        self.script = dict(identify=self.identify) | script

    def identify(self, conn, cmd):
        if self.on and cmd.nsid == self.NSID and cmd.dw(10) & 0xFF in (0, 3):
            self.asked.set()
        else:
            normally(conn, "identify", cmd)


def others_are_there(mount, fd):
    """Nobody waits: each of these would, for the target, for as long as it is silent."""
    assert mount.names() == ["ns1", "ns2", "ns3"]
    assert [mount.file(nsid).stat().st_size for nsid in (1, 2, 3)] == [MIB] * 3
    assert os.statvfs(mount.dir).f_files == 3
    with Open(mount.file(3)):
        pass
    if fd:
        assert os.pread(fd, 4096, 0) == bytes(4096)


@tap.case("a target that is silent about one namespace: the others' files go on")
def _():
    mute = Mute()
    with Target(**mute.script) as t, tempfile.TemporaryDirectory() as folder:
        t.namespaces = {nsid: Namespace(bytes(MIB)) for nsid in (1, 2, 3)}
        with Mount(t.uri(kato=0, admin_timeout="60m"), folder) as mount, Open(mount.file(1)) as fd:
            mute.on, t.changed = True, [2]
            t.event(2, 0, 4)
            assert mute.asked.wait(30)
            others_are_there(mount, fd)


@with_mount("--read-only", words=["--read-only"], ns=["mem:8M"])
def _(t, mount):
    assert mount.file().stat().st_mode & 0o7777 == 0o400
    fails_with(errno.EROFS, os.open, mount.file(), os.O_RDWR)
    fails_with(errno.EROFS, os.unlink, mount.file())
    assert mount.file().read_bytes() == bytes(8 * MIB)


# ---- data

def random_mix(mount, block, seed, rounds=400):
    """dd with odd offsets and sizes, beside the same on memory."""
    rng = random.Random(seed)
    model = bytearray(mount.file().stat().st_size)
    with Open(mount.file()) as fd:
        for i in range(rounds):
            offset = rng.randrange(len(model))
            length = rng.randrange(1, min(rng.choice([10, 3 * block, 600_000]),
                                          len(model) - offset) + 1)
            what = rng.randrange(5)
            if what < 2:
                data = rng.randbytes(length)
                assert os.pwrite(fd, data, offset) == length
                model[offset:offset + length] = data
            elif what == 2:
                mode = rng.choice([KEEP_SIZE | PUNCH_HOLE, ZERO_RANGE, KEEP_SIZE | ZERO_RANGE])
                fallocate(fd, mode, offset, length)
                model[offset:offset + length] = bytes(length)
            else:
                assert os.pread(fd, length, offset) == model[offset:offset + length], i
    assert mount.file().read_bytes() == bytes(model)


for block in 512, 4096:
    @with_mount(f"any offset, any length, blocks of {block}", ns=[f"mem:3M,block={block}"])
    def _(t, mount, block=block):
        random_mix(mount, block, seed=block)


@with_mount("dd with odd sizes", ns=["mem:4M,block=4096"])
def _(t, mount):
    data = nvme.pattern(7, 1_000_003)
    source, back = t.dir / "in", t.dir / "out"
    source.write_bytes(data)
    run("dd", f"if={source}", f"of={mount.file()}", "bs=1237", "seek=333", "conv=notrunc,fsync")
    run("dd", f"if={mount.file()}", f"of={back}", "bs=4001", f"skip={1237 * 333}",
        f"count={len(data)}", "iflag=skip_bytes,count_bytes")
    assert back.read_bytes() == data
    assert mount.file().read_bytes()[:1237 * 333] == bytes(1237 * 333)


@with_mount("neighbours in one block do not lose each other's bytes", ns=["mem:1M,block=4096"])
def _(t, mount):
    lost = []

    def work(lane):
        with Open(mount.file()) as fd:
            for i in range(300):
                offset = i % 4 * 800 + lane * 100
                if i >= 4 and os.pread(fd, 100, offset) != bytes([(i - 4) % 251]) * 100:
                    lost.append((lane, i))
                os.pwrite(fd, bytes([i % 251]) * 100, offset)

    threads = [threading.Thread(target=work, args=(lane,)) for lane in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not lost, lost[:5]


@with_mount("the end of the file is the end of the namespace", ns=["mem:1M"])
def _(t, mount):
    with Open(mount.file()) as fd:
        assert os.pread(fd, 100, MIB) == b""
        assert len(os.pread(fd, 100, MIB - 10)) == 10
        assert os.pwrite(fd, bytes(100), MIB - 10) == 10
        fails_with(errno.ENOSPC, os.pwrite, fd, b"x", MIB)
        fails_with(errno.EINVAL, os.ftruncate, fd, 4096)
        os.ftruncate(fd, MIB)
        fails_with(errno.ENOSPC, fallocate, fd, 0, MIB, 4096)
        fallocate(fd, 0, 0, MIB)
        fails_with(errno.EOPNOTSUPP, fallocate, fd, COLLAPSE, 0, 4096)
    with Open(mount.file(), os.O_RDWR | os.O_TRUNC):       # as of a disk: no effect
        assert mount.file().stat().st_size == MIB


@with_mount("a hole gives space back and reads as zeroes",
            ns=["file:{dir}/disk.img,size=32M"])
def _(t, mount):
    disk = t.dir / "disk.img"
    with Open(mount.file()) as fd:
        for at in range(8):
            os.pwrite(fd, b"\xa5" * MIB, at * MIB)
        os.fsync(fd)
        full = disk.stat().st_blocks
        fallocate(fd, ZERO_RANGE, 0, 2 * MIB)
        fallocate(fd, KEEP_SIZE | PUNCH_HOLE, 2 * MIB - 100, 2 * MIB + 200)
        assert disk.stat().st_blocks < full
        assert os.pread(fd, MIB, 0) == os.pread(fd, MIB, 2 * MIB) == bytes(MIB)
        assert os.pread(fd, 200, 4 * MIB) == bytes(100) + b"\xa5" * 100
        assert os.pread(fd, MIB, 5 * MIB) == b"\xa5" * MIB


for kind in ("file:{dir}/disk.img,size=32M", "mem:32M"):
    @with_mount(f"SEEK_DATA and SEEK_HOLE find what is allocated: {kind}", ns=[kind])
    def _(t, mount):
        with Open(mount.file()) as fd:
            fails_with(errno.ENXIO, os.lseek, fd, 0, os.SEEK_DATA)
            assert os.lseek(fd, 0, os.SEEK_HOLE) == 0
            for at in (1, 9, 31):
                os.pwrite(fd, b"\xa5" * MIB, at * MIB)
            assert extents(fd, 32 * MIB) == [(at * MIB, MIB) for at in (1, 9, 31)]
            assert os.lseek(fd, 9 * MIB + 100, os.SEEK_DATA) == 9 * MIB + 100
            assert os.lseek(fd, 9 * MIB + 100, os.SEEK_HOLE) == 10 * MIB
            assert os.lseek(fd, 31 * MIB, os.SEEK_HOLE) == 32 * MIB
            fails_with(errno.ENXIO, os.lseek, fd, 32 * MIB, os.SEEK_DATA)
            fallocate(fd, KEEP_SIZE | PUNCH_HOLE, 9 * MIB, MIB)
            assert extents(fd, 32 * MIB) == [(at * MIB, MIB) for at in (1, 31)]


@with_mount("a target that does not know: all is data", ns=["null:8M"])
def _(t, mount):
    with Open(mount.file()) as fd:
        assert extents(fd, 8 * MIB) == [(0, 8 * MIB)]


def extents(fd, size):
    """[(offset, length)] of data, as a program that copies files looks for it."""
    found, at = [], 0
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_DATA)
        except OSError as err:
            assert err.errno == errno.ENXIO
            break
        at = os.lseek(fd, start, os.SEEK_HOLE)
        found.append((start, at - start))
    return found


@tap.case("fsync, O_SYNC and holes arrive as they were meant")
def _():
    size, nlb = 4096, 4096 // 512 - 1
    with recording() as t, tempfile.TemporaryDirectory() as folder, \
            Mount(t.uri(), folder) as mount, Open(mount.file()) as fd, \
            Open(mount.file(), os.O_RDWR | os.O_DSYNC) as dsync, \
            Open(mount.file(), os.O_RDWR | os.O_SYNC) as sync:
        assert t.sent(os.pwrite, fd, bytes(size), 0) == [(sqe.WRITE, nlb)]
        assert (sqe.WRITE, nlb | FUA) in t.sent(os.pwrite, dsync, bytes(size), 0)
        assert (sqe.WRITE, 0 | FUA) in t.sent(os.pwrite, sync, b"xyz", 100)
        for body in os.fsync, os.fdatasync:
            assert [opcode for opcode, _ in t.sent(body, fd)] == [sqe.FLUSH]
        assert t.sent(fallocate, fd, PUNCH_HOLE | KEEP_SIZE, 0, size) == \
            [(sqe.WRITE_ZEROES, nlb | DEAC)]
        assert t.sent(fallocate, fd, ZERO_RANGE, 0, size) == [(sqe.WRITE_ZEROES, nlb)]
        assert t.sent(fallocate, fd, 0, 0, size) == []


@with_mount("O_SYNC, O_DSYNC and O_DIRECT", ns=["mem:8M,block=512"])
def _(t, mount):
    for flag in os.O_SYNC, os.O_DSYNC:
        with Open(mount.file(), os.O_RDWR | flag) as fd:
            assert os.pwrite(fd, b"abc", 1000) == 3
            assert os.pread(fd, 3, 1000) == b"abc"
    requires("dd")
    run("dd", "if=/dev/zero", f"of={mount.file()}", "bs=64k", "count=8", "oflag=direct",
        "conv=notrunc")


# ---- other people's programs

@with_mount("mkfs and fsck find a disk they like", ns=["file:{dir}/disk.img,size=64M,block=4096"])
def _(t, mount):
    requires("mkfs.ext4", "e2fsck", "debugfs")
    text = t.dir / "text"
    text.write_text("woven\n" * 1000)
    run("mkfs.ext4", "-q", "-F", mount.file())
    run("debugfs", "-w", "-R", f"write {text} text", mount.file())
    run("e2fsck", "-fn", mount.file())
    assert run("debugfs", "-R", "cat text", mount.file()) == text.read_text()


def fio(mount, *words, limit_s=120):
    requires("fio")
    return run("fio", "--name=v", f"--filename={mount.file()}", "--verify=crc32c", "--verify_state_save=0",
               "--verify_fatal=1", "--allow_file_create=0", "--fallocate=none", *words,
               limit_s=limit_s)


@with_mount("fio with verify: libaio and O_DIRECT, then odd sizes", ns=["mem:32M,block=512"])
def _(t, mount):
    fio(mount, "--ioengine=libaio", "--direct=1", "--rw=randwrite", "--bs=4k", "--iodepth=32",
        "--size=32M")
    fio(mount, "--ioengine=psync", "--rw=randwrite", "--bsrange=300-70000", "--bs_unaligned=1",
        "--size=16M", "--fsync=20")


def fix_port(t):
    """The target comes back where it was."""
    argv = [word.replace(weft.ANY_PORT, f"nvme+tcp://127.0.0.1:{t.addr[1]}") for word in t.argv()]
    t.argv = lambda: argv


@with_mount("fio with verify while the target is killed and comes back", limit_s=200,
            query="?reconnect_delay=100ms&kato=2s", ns=["file:{dir}/disk.img,size=32M,block=512"])
def _(t, mount):
    fix_port(t)
    with in_background(lambda: fio(mount, "--ioengine=libaio", "--direct=1", "--rw=randwrite",
                                   "--bs=4k", "--iodepth=16", "--size=32M", "--loops=3",
                                   "--rate_iops=4000", limit_s=150)):
        for _ in range(3):
            time.sleep(1)
            t.kill9()
            time.sleep(0.3)
            t.start()


# ---- the target is away

DISK = ["file:{dir}/disk.img,size=8M,block=512"]


def cat(mount, count=1):
    """Somebody who reads, and waits."""
    return [subprocess.Popen(["dd", f"if={mount.file()}", "of=/dev/null", "bs=4k", "count=1"],
                             stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(count)]


def await_reading(task):
    """Until this process or thread waits for what it reads, and the mount had time to hear of it."""
    def reads_now():
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{task}/syscall").read_text().split()[0] in READS
    weft.wait_until(reads_now, "the reader to wait")
    time.sleep(1)


READS = ("0", "17") if os.uname().machine == "x86_64" else ("63", "67")      # read, pread64


@with_mount("who waits for a lost target can be interrupted", ns=DISK,
            query="?reconnect_delay=100ms&kato=1s")
def _(t, mount):
    fix_port(t)
    t.kill9()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)    # nohup's children would ignore it
    readers = cat(mount, 4)
    writer = subprocess.Popen(["dd", "if=/dev/zero", f"of={mount.file()}", "bs=1000", "count=1",
                               "conv=notrunc"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    assert all(process.poll() is None for process in [*readers, writer]), "nobody waits"
    for process, how in zip([*readers, writer], [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP] * 2):
        process.send_signal(how)
    for process in [*readers, writer]:
        assert process.wait(30) < 0
    assert mount.file().stat().st_size == 8 * MIB
    t.start()
    with Open(mount.file()) as fd:          # after the write that was given up, not before it
        assert os.pwrite(fd, b"later" * 100, 10) == 500
        assert os.pread(fd, 1000, 0) == bytes(10) + b"later" * 100 + bytes(490)


@with_mount("many who gave up do not keep the others out", ns=DISK, limit_s=200,
            query="?reconnect_delay=100ms&kato=1s")
def _(t, mount):
    fix_port(t)
    t.kill9()
    for _ in range(4):
        readers = cat(mount, 16)
        time.sleep(0.3)
        for process in readers:
            process.kill()
        for process in readers:
            process.wait(30)
        assert mount.names() == ["ns1"]
    with Open(mount.file()) as fd:
        fails_with(errno.EIO, os.pread, fd, 4096, 0)
        t.start()
        weft.wait_until(lambda: reads(fd), "the file to be there again", timeout=60)


def reads(fd):
    try:
        return os.pread(fd, 4096, 0) is not None
    except OSError as err:
        assert err.errno == errno.EIO, err
        return False


@with_mount("a signal that is handled does not end I/O on a target that is there", ns=DISK)
def _(t, mount):
    with Open(mount.file()) as fd:
        previous = signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        try:
            for i in range(300):
                assert libc.pread(fd, ctypes.create_string_buffer(65536), 65536, 0) == 65536, i
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)


LOST = "?reconnect_delay=100ms&kato=5s&loss_timeout=1s"


@with_mount("after loss_timeout I/O fails, until the target is back", ns=DISK, query=LOST)
def _(t, mount):
    fix_port(t)
    with Open(mount.file()) as fd:
        os.pwrite(fd, b"kept", 0)
        for _ in range(2):
            t.kill9()
            fails_with(errno.EIO, os.pread, fd, 4, 0)
            fails_with(errno.EIO, os.pwrite, fd, b"lost", 0)
            assert mount.names() == ["ns1"]
            t.start()
            weft.wait_until(lambda: reads(fd), "the file to be there again", timeout=60)
            assert os.pread(fd, 4, 0) == b"kept"
    assert "until the target is back" in mount.said() and "connected again" in mount.said()


@with_mount("what comes back as another namespace is another file", ns=["mem:8M"], query=LOST)
def _(t, mount):
    fix_port(t)
    with Open(mount.file()) as fd:
        t.kill9()
        fails_with(errno.EIO, os.pread, fd, 4, 0)
        t.argv = lambda argv=[word.replace("mem:8M", "mem:4M") for word in t.argv()]: argv
        t.start()
        weft.wait_until(lambda: stale(fd), "the old file to be stale", timeout=60)
        weft.wait_until(lambda: mount.file().stat().st_size == 4 * MIB, "the new one", timeout=60)
        assert mount.file().read_bytes() == bytes(4 * MIB)
        assert stale(fd)


@tap.case("a write that may yet be carried out is not sent again by the next connection")
def _():
    with GivenUp() as s, tempfile.TemporaryDirectory() as folder, \
            Mount(s.target.uri(**s.WORDS), folder) as mount, Open(mount.file()) as fd:
        fails_with(errno.EIO, os.pwrite, fd, b"A" * 4096, 0)
        weft.wait_until(lambda: reads(fd), "the file to be there again", timeout=60)
        assert os.pwrite(fd, b"B" * 4096, 0) == 4096
        s.late.wait(30)
        assert s.target.namespaces[1].data[:4096] == b"B" * 4096, s.order
        assert s.order == ["late", "again"], s.order


def lose(s, fd):
    """The target is away for longer than loss_timeout, and is there again."""
    s.lose()
    weft.wait_until(lambda: reads(fd), "the file to be there again", timeout=60)


@tap.case("fsync after a connection died with unflushed writes: every open file is told once")
def _():
    with Away() as s, tempfile.TemporaryDirectory() as folder, \
            Mount(s.target.uri(**s.WORDS), folder) as mount, Open(mount.file()) as fd, \
            Open(mount.file()) as other:
        assert os.pwrite(fd, b"A" * 4096, 0) == 4096
        lose(s, fd)
        with Open(mount.file()) as late:
            for one in fd, other, late:
                fails_with(errno.EIO, os.fsync, one)
                os.fsync(one)
        with Open(mount.file()) as later:
            os.fsync(later)
        lose(s, fd)                             # nothing was written since
        os.fsync(fd)


@tap.case("… of a namespace that controllers do not share: every fsync fails, in every connection")
def _():
    with Away(nmic=0) as s, tempfile.TemporaryDirectory() as folder, \
            Mount(s.target.uri(**s.WORDS), folder) as mount, Open(mount.file()) as fd:
        assert os.pwrite(fd, b"A" * 4096, 0) == 4096
        for _ in range(2):
            lose(s, fd)
            with Open(mount.file()) as late:
                for one in fd, fd, late:
                    fails_with(errno.ENOTRECOVERABLE, os.fsync, one)


for what, script, flags in (("without a volatile cache", dict(vwc=0), os.O_RDWR),
                            ("that were durable", {}, os.O_RDWR | os.O_DSYNC)):
    @tap.case(f"fsync after a connection died with writes {what}: nothing is lost")
    def _(script=script, flags=flags):
        with Away(**script) as s, tempfile.TemporaryDirectory() as folder, \
                Mount(s.target.uri(**s.WORDS), folder) as mount, Open(mount.file(), flags) as fd:
            assert os.pwrite(fd, b"A" * 4096, 0) == 4096
            lose(s, fd)
            os.fsync(fd)


def nameless(conn, cns, nsid):
    """A namespace without UUID, NGUID and EUI64."""
    return None if cns == 3 else normally(conn, "identified", cns, nsid)


@tap.case("what has no identity is another file after a new connection, whatever it looks like")
def _():
    with GivenUp(identified=nameless) as s, tempfile.TemporaryDirectory() as folder, \
            Mount(s.target.uri(**s.WORDS), folder) as mount, Open(mount.file()) as fd:
        assert os.pread(fd, 4096, 0) == s.target.namespaces[1].data[:4096]
        s.target.namespaces[1] = Namespace(b"\xEE" * MIB)
        s.lose()
        weft.wait_until(lambda: stale(fd), "the old file to be stale", timeout=60)
        weft.wait_until(lambda: holds(mount.file(), b"\xEE" * MIB), "the new one", timeout=60)
        assert stale(fd)


@tap.case("a target that is back, and silent about one namespace: the others' files are there")
def _():
    mute = Mute()
    with GivenUp(**mute.script) as s, tempfile.TemporaryDirectory() as folder:
        s.target.namespaces = {nsid: Namespace(bytes(MIB)) for nsid in (1, 2, 3)}
        words = s.WORDS | dict(admin_timeout="60m", kato=0)
        with Mount(s.target.uri(**words), folder) as mount, Open(mount.file(1)) as fd:
            mute.on = True
            s.lose()
            threading.Thread(target=read_until, args=(mute.asked, fd), daemon=True).start()
            assert mute.asked.wait(30)
            others_are_there(mount, None)
            mount.status = 1
            assert mount.end() == 1, mount.said()


def read_until(asked, fd):
    """The first that finds the line dead connects again."""
    while not asked.wait(0.1):
        try_to(os.pread, fd, 4096, 0)


def holds(path, data):
    """False: it is the old file still."""
    try:
        return path.read_bytes() == data
    except OSError as err:
        assert err.errno == errno.ESTALE, err
        return False


def stale(fd):
    try:
        os.pread(fd, 4096, 0)
    except OSError as err:
        return err.errno == errno.ESTALE
    raise AssertionError("it is another namespace")


# ---- beginning and end

@with_target("in the background; unmounted by fusermount3, or by Ctrl-C in the foreground")
def _(t):
    requires_fuse()
    directory = t.dir / "mnt"
    directory.mkdir()
    run(weft.BINARY, "mount", uri(t), directory)
    try:
        assert os.path.ismount(directory)
        assert len((directory / "ns1").read_bytes()) == 64 * MIB
        weft.wait_until(lambda: len(t.controllers()) == 1, "a controller")
    finally:
        run("fusermount3", "-u", directory)
    weft.wait_until(lambda: not t.controllers(), "the controller to go")
    for how in signal.SIGINT, signal.SIGTERM:
        with Mount(uri(t), t.dir) as mount:
            assert mount.end(how) == 0, mount.said()
            assert not os.path.ismount(directory)


@with_target("I/O that waits for a lost target does not keep it from ending", limit_s=90)
def _(t):
    with Mount(uri(t) + "?kato=1s", t.dir) as mount:
        with Open(mount.file()) as fd:
            t.kill9()
            reader = threading.Thread(target=lambda: try_to(os.pread, fd, 4096, 0), daemon=True)
            reader.start()
            await_reading(f"self/task/{reader.native_id}")
            mount.status = 1
            assert mount.end() == 1, mount.said()
            assert "given up" in mount.said(), mount.said()
            reader.join(60)
            assert not reader.is_alive()
        assert not os.path.ismount(mount.dir)


@with_target("unmounted while I/O that was given up is under way, it ends too", limit_s=90)
def _(t):
    for words in ["-u"], ["-uz"]:
        with Mount(uri(t) + "?kato=1s", t.dir) as mount:
            fix_port(t)
            t.kill9()
            reader, = cat(mount)
            await_reading(reader.pid)
            if words == ["-uz"]:            # it goes when its last user does
                run("fusermount3", *words, mount.dir)
                assert not os.path.ismount(mount.dir)
            reader.kill()
            reader.wait(30)
            if words == ["-u"]:
                run("fusermount3", *words, mount.dir)
            weft.wait_until(lambda: mount.process.poll() is not None, "it to end", timeout=60)
            mount.status = 1
            assert "given up" in mount.said(), mount.said()
        t.start()


@tap.case("… nor does a write that its target may still carry out, when another is there already",
          limit_s=120)
def _():
    with GivenUp(counts_s=30, kas=300) as s, tempfile.TemporaryDirectory() as folder, \
            Mount(s.target.uri(**s.WORDS), folder) as mount, Open(mount.file()) as fd:
        writer = threading.Thread(target=lambda: try_to(os.pwrite, fd, bytes(4096), 0), daemon=True)
        writer.start()
        weft.wait_until(lambda: not s.attempts, "it to be given up")
        reader = threading.Thread(target=lambda: try_to(os.pread, fd, 4096, 0), daemon=True)
        reader.start()                      # it connects again, and waits for the write
        weft.wait_until(lambda: any(c.queues for c in s.target.controllers.values()),
                        "the next connection's queue")
        await_reading(f"self/task/{reader.native_id}")
        assert mount.names() == ["ns1"] and mount.file().stat().st_size == MIB
        assert os.statvfs(mount.dir).f_blocks * 4096 == MIB
        os.close(os.open(mount.file(), os.O_RDONLY))
        assert s.order == [], "somebody who only looked has waited for the write"
        mount.status = 1
        assert mount.end() == 1, mount.said()
        assert s.order == [], s.order
        s.late.set()


def try_to(call, *args):
    try:
        call(*args)
    except OSError:
        pass


def refused(code, *args):
    done = subprocess.run([weft.BINARY, "mount", *map(str, args)], text=True, timeout=60,
                          stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == code, f"status {done.returncode}: {done.stderr}"
    assert not weft.SANITIZER.search(done.stderr), done.stderr
    return done.stderr.strip().splitlines()[-1]


@with_target("what is wrong is said before it goes into the background")
def _(t):
    requires_fuse()
    directory = t.dir / "mnt"
    assert f'{directory}: No such file or directory; "mkdir -p" makes it' in refused(1, uri(t), directory)
    directory.mkdir()
    assert "discover" in refused(1, f"nvme+tcp://127.0.0.1:{t.addr[1]}", directory)
    assert 'is "weft serve" running' in refused(1, f"nvme+tcp://127.0.0.1:1/{t.nqn}", directory)
    nobody = f"nvme+tcp://127.0.0.1:{t.addr[1]}/nqn.2026-11.io.weft:nobody"
    assert '"weft discover nvme+tcp://' in refused(1, nobody, directory)
    said = refused(1, uri(t) + "?nsid=99", directory)
    assert "no namespace 99" in said and "weft ls" in said, said
    (directory / "file").touch()
    assert "not empty" in refused(1, uri(t), directory)
    (directory / "file").unlink()
    with Mount(uri(t), t.dir):
        assert "mounted" in refused(1, uri(t), directory)
    assert "expected URI and DIR" in refused(2, uri(t))
    refused(2, directory, uri(t))
    refused(2, uri(t) + "?hostnqn=me", directory)
    refused(2, "--queues", "none", uri(t), directory)
    refused(2, "--frobnicate", uri(t), directory)
    for mode in ("0755", "8", "", "0200", "1600", "-1"):
        assert "--mode takes" in refused(2, "--mode", mode, uri(t), directory), mode
    assert not os.path.ismount(directory)


sys.exit(tap.run())
