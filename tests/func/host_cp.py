#!/usr/bin/python3
"""host_cp.py - `weft cp` between files, pipes and namespaces in every pairing: the same bytes, the
same holes; stopped or cut off in the middle, a clear state and a clear message.

"In the middle" is a Proxy that lets so many bytes of the host through and then holds the rest."""
import contextlib
import hashlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import weft
from command import FAILED, OK, as_json, done, fails, on_terminal, start, uri
from fixture import with_target

K, M = 1024, 1 << 20
FILES = dict(ns=["file:{dir}/one,size=32M,block=512", "file:{dir}/two,size=32M,block=4096"])


class Proxy:
    """Passes connections on to `addr`; what comes from the host stops after `limit` bytes until
    release(). cut() ends every connection, and new ones come to nothing until `addr` is set."""

    def __init__(self, target, limit=1 << 60):
        self.target_addr, self.nqn, self.limit, self.passed = target.addr, target.nqn, limit, 0
        self.open, self.changed, self.socks = True, threading.Condition(), set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addr = self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                host, _ = self.listener.accept()
                try:
                    peer = socket.create_connection(self.target_addr, 5)
                except OSError:
                    host.close()
                    continue
                peer.settimeout(None)
                self.socks |= {host, peer}
                for pump in ((host, peer, True), (peer, host, False)):
                    threading.Thread(target=self.pump, args=pump, daemon=True).start()

    def pump(self, source, to, counts):
        with contextlib.suppress(OSError):
            while data := source.recv(256 * K):
                if counts:
                    self.wait_for_turn(len(data))
                to.sendall(data)
        for sock in (source, to):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def wait_for_turn(self, size):
        with self.changed:
            self.passed += size
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.passed <= self.limit, 60)

    def wait_until_held(self):
        with self.changed:
            assert self.changed.wait_for(lambda: self.passed > self.limit, 30), self.passed

    def release(self):
        with self.changed:
            self.limit = 1 << 60
            self.changed.notify_all()

    def cut(self):
        for sock in list(self.socks):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self.release()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()
        self.listener.close()


def sha(path, size=None):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(size) if size else file.read()).hexdigest()


def sparse_file(path, size, extents):
    """Random bytes at these (offset, length); holes elsewhere."""
    with open(path, "wb") as file:
        file.truncate(size)
        for offset, length in extents:
            file.seek(offset)
            file.write(os.urandom(length))
    return path


def image(t, name="image", size=32 * M):
    return sparse_file(t.dir / name, size, [(0, 3 * M + 1), (9 * M, 64 * K), (size - 512, 512)])


def allocated(path):
    return os.stat(path).st_blocks * 512


def finish(process, limit_s=60):
    out, err = process.communicate(timeout=limit_s)
    err = err.decode()
    assert not weft.SANITIZER.search(err), err
    return process.returncode, out, err


def ended(process, code, *words):
    """It ends with `code`, and its last line has these words."""
    status, _, err = finish(process)
    assert status == code, f"exit status {status}: {err}"
    last = err.strip().splitlines()[-1]
    for word in words:
        assert word in last, f"no {word!r} in the last line: {last!r}"
    return err


# ---- pairings

@with_target("every pairing of file, pipe and namespace: equal, verified", **FILES)
def _(t):
    source, one, two = image(t), t.dir / "one", t.dir / "two"
    want = sha(source)
    summary = as_json("cp", "--verify", source, uri(t, 1))              # file to namespace
    assert summary["bytes"] == summary["verified"] == 32 * M and summary["flushed"], summary
    assert summary["zeroes"] >= 25 * M, summary
    assert sha(one) == want
    as_json("cp", "--verify", uri(t, 1), uri(t, 2))                     # to a namespace of other blocks
    assert sha(two) == want
    as_json("cp", "--verify", uri(t, 2), t.dir / "out")                 # namespace to file
    assert sha(t.dir / "out") == want
    as_json("cp", "--verify", t.dir / "out", t.dir / "out2")            # file to file
    assert sha(t.dir / "out2") == want
    pipe = done("cp", uri(t, 2), "-")                                   # namespace to pipe
    assert hashlib.sha256(pipe).hexdigest() == want
    assert done("cp", source, "-") == pipe                              # file to pipe
    done("cp", "--verify", "-", t.dir / "out3", stdin=pipe)             # pipe to file
    assert sha(t.dir / "out3") == want
    assert done("cp", "-", "-", stdin=pipe) == pipe                     # pipe to pipe
    other = os.urandom(4 * M)
    as_json("cp", "--verify", "-", uri(t, 2), stdin=other)              # pipe to namespace
    assert sha(two, 4 * M) == hashlib.sha256(other).hexdigest()


for words in ({}, {"hdgst": 1, "ddgst": 1}, {"queues": 1, "depth": 4}):
    @with_target(f"with {words or 'the defaults'}: sizes of a piece, jobs and depth", **FILES)
    def _(t, words=words):
        source = sparse_file(t.dir / "image", 5 * M + 4 * K, [(0, 5 * M + 4 * K)])
        for options in (["--bs", "4K"], ["--bs", "64M", "--depth", 1], ["--jobs", 1, "--depth", 1],
                        ["--jobs", 16, "--bs", "12K", "--depth", 64]):
            done("cp", *options, "--verify", source, uri(t, 2, **words))
            assert sha(t.dir / "two", 5 * M + 4 * K) == sha(source)
            done("cp", "--force", *options, uri(t, 2, **words), t.dir / "out")
            assert sha(t.dir / "out", 5 * M + 4 * K) == sha(source)


@with_target("a slow pipe, in small pieces", **FILES)
def _(t):
    data = os.urandom(M + 512)
    copy = start("cp", "-", uri(t, 1), stdin=subprocess.PIPE)
    for at in range(0, len(data), 100_000):
        copy.stdin.write(data[at:at + 100_000])
        copy.stdin.flush()
    status, _, err = finish(copy)
    assert status == OK, err
    assert (t.dir / "one").read_bytes()[:len(data)] == data


@with_target("a terminal gets a bar that fits, with rate and time left, and a summary", **FILES)
def _(t):
    source = sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)])
    for columns, locale in ((80, "C"), (100, "C.UTF-8"), (40, "C")):
        code, shown = on_terminal("cp", "--verify", source, uri(t, 1), columns=columns,
                                  env={"LC_ALL": locale})
        assert code == OK and "\r\x1b[K" in shown, shown
        bars = [part for part in shown.replace("\x1b[K", "").split("\r") if " of 32 MiB" in part]
        assert any(bar.startswith("copying ") for bar in bars), shown
        assert any(bar.startswith("verifying ") for bar in bars), shown
        assert all(len(bar) < columns for bar in bars), bars
        if columns > 60:
            assert all("iB/s" in bar or "bytes/s" in bar for bar in bars), bars
            assert ("█" if locale != "C" else "#") in bars[-1], bars
        assert "copied 32 MiB in" in shown.splitlines()[-1], shown
    assert "copying" not in on_terminal("cp", "-q", source, uri(t, 1))[1]


@with_target("a terminal is neither read nor written as if it were a pipe", **FILES)
def _(t):
    code, shown = on_terminal("cp", uri(t, 1), "-")
    assert code == FAILED and "standard output is a terminal" in shown, shown
    code, shown = on_terminal("cp", "-", uri(t, 1))
    assert code == FAILED and "standard input is a terminal" in shown, shown


# ---- holes

@with_target("holes stay holes, and old data becomes zeroes", **FILES)
def _(t):
    source, one, two, out = image(t), t.dir / "one", t.dir / "two", t.dir / "out"
    for nsid in (1, 2):
        with open("/dev/urandom", "rb") as noise:
            done("cp", "--no-sparse", "-", uri(t, nsid), stdin=noise.read(32 * M))
    assert allocated(one) >= 32 * M
    done("cp", source, uri(t, 1))
    assert sha(one) == sha(source) and allocated(one) < 8 * M, allocated(one)
    done("cp", uri(t, 1), uri(t, 2))
    assert sha(two) == sha(source) and allocated(two) < 8 * M, allocated(two)
    done("cp", uri(t, 2), out)
    assert sha(out) == sha(source) and allocated(out) < 8 * M, allocated(out)
    done("cp", "--no-sparse", source, uri(t, 1))
    assert sha(one) == sha(source) and allocated(one) >= 32 * M, allocated(one)


@with_target("a large sparse file: holes cost nothing", ns=["file:{dir}/big,size=4G"])
def _(t):
    source = sparse_file(t.dir / "image", 4 << 30, [((3 << 30) + 12345, 70000)])
    summary = as_json("cp", source, uri(t, 1))
    assert summary["bytes"] == 4 << 30 and summary["zeroes"] > (4 << 30) - M, summary
    with open(source, "rb") as a, open(t.dir / "big", "rb") as b:
        a.seek(3 << 30), b.seek(3 << 30)
        assert a.read(M) == b.read(M)
    assert allocated(t.dir / "big") < M


@contextlib.contextmanager
def loop_device(path):
    result = subprocess.run(["losetup", "-f", "--show", path], capture_output=True, text=True,
                            check=False)
    if result.returncode:
        tap.skip(f"no loop device: {result.stderr.strip()}")
    try:
        yield result.stdout.strip()
    finally:
        subprocess.run(["losetup", "-d", result.stdout.strip()], check=False)


@with_target("a block device, both ways", **FILES)
def _(t):
    if os.geteuid():
        tap.skip("needs root")
    source = image(t)
    (t.dir / "disk").write_bytes(os.urandom(33 * M))
    with loop_device(t.dir / "disk") as device:
        done("cp", source, uri(t, 1))
        done("cp", "--verify", uri(t, 1), device)
        assert sha(t.dir / "disk", 32 * M) == sha(source)
        fails("cp", device, uri(t, 2), words=["nothing was written"])
        done("cp", "-v", device, t.dir / "out")
        assert sha(t.dir / "out", 32 * M) == sha(source) and os.stat(t.dir / "out").st_size == 33 * M


@with_target("a reader that goes away: as if SIGPIPE had ended it, and not a word", **FILES)
def _(t):
    reader, writer = os.pipe()
    os.close(reader)
    copy = start("cp", uri(t, 1), "-", stdout=writer)
    os.close(writer)
    status, _, err = finish(copy)
    assert status == 128 + signal.SIGPIPE and not err, (status, err)


@with_target("standard output that is full: what it got, and no advice to try again", **FILES)
def _(t):
    with open("/dev/full", "wb") as full:
        copy = start("cp", uri(t, 1), "-", stdout=full)
        err = ended(copy, FAILED, "weft cp: standard output: No space left on device (standard "
                    "output got nothing)")
    assert "again" not in err, err


@with_target("SIGINT while a pipe is copied: no advice to try again, its bytes are gone", **FILES)
def _(t):
    copy = start("cp", "-", uri(t, 1), stdin=subprocess.PIPE)
    copy.stdin.write(b"x" * 2 * M)
    copy.stdin.flush()
    with open(t.dir / "one", "rb") as file:
        weft.wait_until(lambda: os.pread(file.fileno(), 2 * M, 0) == b"x" * 2 * M,
                        "the pieces to be written")
    copy.send_signal(signal.SIGINT)
    copy.wait(30)               # the pipe stays open until then
    err = ended(copy, 130, "stopped by SIGINT (the first 2 MiB (2097152 bytes) are copied and "
                "flushed)")
    assert "again" not in err, err


@with_target("a summary tells the rate of what was moved, and no other", ns=["file:{dir}/big,size=4G"])
def _(t):
    source = sparse_file(t.dir / "image", 4 << 30, [(0, M)])
    said = done("cp", source, uri(t, 1)).decode()
    assert said.startswith("copied 4 GiB in ") and "1 MiB of it data" in said, said
    assert "GiB/s" not in said and said.endswith(", the rest zeroes\n"), said
    empty = sparse_file(t.dir / "empty", M, [])
    assert ", all of it zeroes" in done("cp", empty, uri(t, 1)).decode()


# ---- what is refused, before anything is written

@with_target("too large, not a multiple, the same: refused, and nothing is written", **FILES)
def _(t):
    large = sparse_file(t.dir / "large", 33 * M, [(0, M)])
    odd = sparse_file(t.dir / "odd", 5000, [(0, 5000)])
    fails("cp", large, uri(t, 1), sentence=(
        f"weft cp: {large} has 33 MiB (34603008 bytes) and {uri(t, 1)} has room for 32 MiB "
        "(33554432 bytes); nothing was written"))
    fails("cp", odd, uri(t, 2), sentence=(
        f"weft cp: {odd} has 4.9 KiB (5000 bytes), and {uri(t, 2)} has blocks of 4096; --pad fills "
        "up the last one with zeroes"))
    fails("cp", uri(t, 1), uri(t, 1), words=["are the same namespace"])
    fails("cp", uri(t, 1), uri(t, 1, host="localhost"), words=["are the same namespace"])
    fails("cp", "--force", odd, odd, words=["are the same file"])
    fails("cp", "--bs", "6000", odd, uri(t, 2), words=["--bs 6000 is not a multiple"])
    fails("cp", t.dir / "nothing", uri(t, 2), words=["nothing: No such file or directory"])
    fails("cp", t.dir, uri(t, 2), words=["is a directory"])
    fails("cp", uri(t, 2), t.dir / "no" / "where", words=["No such file or directory"])
    assert allocated(t.dir / "one") == allocated(t.dir / "two") == 0
    done("cp", "--pad", "--verify", odd, uri(t, 2))
    assert (t.dir / "two").read_bytes()[:8 * K] == odd.read_bytes().ljust(8 * K, b"\0")


@with_target("a pipe that does not fit: as much as fits, and a word about it", **FILES)
def _(t):
    data = os.urandom(32 * M)
    done("cp", "-", uri(t, 1), stdin=data)
    fails("cp", "-", uri(t, 1), stdin=data + b"x", sentence=(
        "weft cp: standard input is longer than the 32 MiB (33554432 bytes) that fit into "
        f"{uri(t, 1)} (the first 32 MiB (33554432 bytes) are copied and flushed)"))


@with_target("a file that is there: only with --force, and the old one stays until the end", **FILES)
def _(t):
    out = t.dir / "out"
    out.write_text("precious")
    out.chmod(0o640)
    fails("cp", uri(t, 1), out, sentence=f"weft cp: {out} is there already; --force replaces it")
    assert out.read_text() == "precious"
    link = t.dir / "link"
    link.symlink_to("out")
    done("cp", "--force", uri(t, 1), link)
    assert link.is_symlink() and out.stat().st_size == 32 * M and out.stat().st_mode & 0o777 == 0o640
    assert not (t.dir / "out.part").exists()


# ---- verify

@with_target("--verify finds what changed behind the target's back", **FILES)
def _(t):
    copy = start("cp", "--verify", "--no-sparse", "-", uri(t, 1), stdin=subprocess.PIPE)
    copy.stdin.write(b"\x5a" * 4 * M)
    copy.stdin.flush()
    backing = t.dir / "one"
    with open(backing, "r+b") as file:
        weft.wait_until(lambda: os.pread(file.fileno(), 4 * M, 0) == b"\x5a" * 4 * M,
                        "the pieces to be written")
        file.seek(2 * M + 77)
        file.write(b"\0")
    ended(copy, FAILED, f"{uri(t, 1)} is not what was written: read back, 1 of 4 pieces of 1 MiB "
          "differ, the first at 2097152; do not trust it")


# ---- in the middle

def copying(proxy, *args):
    process = start("cp", *args)
    proxy.wait_until_held()
    return process


def interrupt(process, number):
    """Returns when the process has taken the signal."""
    process.send_signal(number)
    status = pathlib.Path(f"/proc/{process.pid}/status")
    weft.wait_until(lambda: not int(re.search(r"ShdPnd:\s*(\w+)", status.read_text())[1], 16)
                    >> number - 1 & 1, "the signal to be taken")


@with_target("SIGINT and SIGTERM: what is under way is finished, flushed and told", **FILES)
def _(t):
    source = sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)])
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with Proxy(t, 9 * M) as proxy:
            copy = copying(proxy, "--jobs", 2, "--depth", 2, source, uri(proxy, 1))
            interrupt(copy, number)
            proxy.release()
            err = ended(copy, code, f"weft cp: stopped by {number.name}; the first ",
                        " bytes) of 32 MiB are copied and flushed, the rest is not: run the same "
                        "command again")
            complete = int(re.search(r"the first .*?\((\d+) bytes\)", err)[1])
            assert complete and sha(t.dir / "one", complete) == sha(source, complete)


@with_target("SIGINT while the connection hangs: it ends, and claims nothing", **FILES)
def _(t):
    source = sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)])
    with Proxy(t, 5 * M) as proxy:
        copy = copying(proxy, source, uri(proxy, 1))
        copy.send_signal(signal.SIGINT)
        ended(copy, 130, "stopped by SIGINT", "incomplete")


@with_target("SIGINT while a file is made: it is not there, nor half of it", **FILES)
def _(t):
    done("cp", sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)]), uri(t, 1))
    out = t.dir / "out"
    os.mkfifo(t.dir / "fifo")
    copy = start("cp", t.dir / "fifo", out)
    with open(t.dir / "fifo", "wb") as fifo:
        fifo.write(b"x" * 2 * M)
        weft.wait_until(lambda: (t.dir / "out.part").exists(), "the file to be begun")
        copy.send_signal(signal.SIGINT)
        ended(copy, 130, f"stopped by SIGINT ({out} is not made)")
    assert not out.exists() and not (t.dir / "out.part").exists()


@with_target("kill -9 while a file is made: only a .part file, which the next copy takes", **FILES)
def _(t):
    source = sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)])
    done("cp", source, uri(t, 1))
    out, part = t.dir / "out", t.dir / "out.part"
    os.mkfifo(t.dir / "fifo")
    copy = start("cp", t.dir / "fifo", out)
    with open(t.dir / "fifo", "wb") as fifo:
        fifo.write(b"x" * 2 * M)
        weft.wait_until(part.exists, "the file to be begun")
        fails("cp", uri(t, 1), out, words=["is being written by another copy"])
        copy.kill()
        copy.communicate(timeout=20)
    assert part.exists() and not out.exists()
    done("cp", "--verify", uri(t, 1), out)
    assert sha(out) == sha(source) and not part.exists()


@with_target("kill -9 while a namespace is written: the same command again completes it", **FILES)
def _(t):
    source = sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)])
    with Proxy(t, 9 * M) as proxy:
        copy = copying(proxy, source, uri(proxy, 1))
        copy.kill()
        copy.communicate(timeout=20)
    done("cp", "--verify", source, uri(t, 1))
    assert sha(t.dir / "one") == sha(source)


@with_target("connections cut again and again: the copy completes", **FILES)
def _(t):
    source = sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)])
    with Proxy(t, 4 * M) as proxy:
        copy = copying(proxy, "--verify", source, uri(proxy, 1))
        for _ in range(3):
            with proxy.changed:
                proxy.passed, proxy.limit = 0, 4 * M
                proxy.changed.notify_all()
            for sock in list(proxy.socks):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
            proxy.wait_until_held()
        proxy.release()
        status, _, err = finish(copy)
        assert status == OK and "reconnect" in err, err
    assert sha(t.dir / "one") == sha(source)


@with_target("the target is killed and comes back: the copy completes, both ways", limit_s=90, **FILES)
def _(t):
    source = sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)])
    for args, result in (((source, "TO"), "one"), (("TO", t.dir / "out"), "out")):
        with Proxy(t, 9 * M if result == "one" else 2 * K) as proxy:
            place = uri(proxy, 1)
            copy = copying(proxy, *(place if word == "TO" else word for word in args))
            t.kill9()
            proxy.cut()
            t.start()
            proxy.target_addr = t.addr
            status, _, err = finish(copy)
            assert status == OK and "reconnect" in err, err
        assert sha(t.dir / result) == sha(source), result


@with_target("the target is gone for good: told after loss_timeout, with what is complete", **FILES)
def _(t):
    source = sparse_file(t.dir / "image", 32 * M, [(0, 32 * M)])
    with Proxy(t, 9 * M) as proxy:
        copy = copying(proxy, "--jobs", 1, "--depth", 2, source,
                       uri(proxy, 1, loss_timeout="1s"))
        t.kill9()
        proxy.cut()
        proxy.listener.close()
        ended(copy, FAILED, "of 32 MiB are copied but not flushed, the rest is not: run the same "
              "command again")
    t.start()


sys.exit(tap.run())
