#!/usr/bin/python3
"""host_examples.py - examples/ built as a user would, against an installed libweft, and run."""
import atexit
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

import tap
import weft
from command import done, uri
from fixture import with_target

EXAMPLES = weft.ROOT / "examples"
STRICT = ["-Wall", "-Wextra", "-Werror", "-O1"]
MIB = 1 << 20


def must(*argv, **kw):
    """Its output; it must succeed."""
    result = subprocess.run([*map(str, argv)], stdin=subprocess.DEVNULL, capture_output=True,
                            text=True, timeout=120, check=False, **kw)
    assert result.returncode == 0, f"{argv[0]}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout


def scratch():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-examples-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def installed():
    """The build under test, installed into a folder of its own: its prefix."""
    if not shutil.which("meson"):
        tap.skip("meson is not installed")
    folder = scratch()
    must("meson", "install", "-C", pathlib.Path(weft.BINARY).parent, "--no-rebuild", "--quiet",
         "--destdir", folder)
    pc = next(folder.rglob("weft.pc"))
    prefix = next(line for line in pc.read_text().splitlines() if line.startswith("prefix="))
    return folder / prefix.removeprefix("prefix=").lstrip("/"), pc.parent


@functools.cache
def pkg_config(*words):
    if not shutil.which("pkg-config"):
        tap.skip("pkg-config is not installed")
    prefix, folder = installed()
    return must("pkg-config", f"--define-variable=prefix={prefix}", *words, "weft",
                env=os.environ | {"PKG_CONFIG_PATH": str(folder)}).split()


@functools.cache
def compiled(name):
    program = scratch() / name
    must("cc", *STRICT, EXAMPLES / f"{name}.c", "-o", program, *pkg_config("--cflags", "--libs"))
    return program


def environment():
    return os.environ | {"LD_LIBRARY_PATH": pkg_config("--variable=libdir")[0]}


def run(name, *args):
    return must(compiled(name), *args, env=environment())


class Running:
    """An example that goes on until told; what it prints is looked at line by line."""

    def __init__(self, name, *args):
        self.log = scratch() / "out"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen([compiled(name), *args], stdin=subprocess.PIPE,
                                            stdout=out, stderr=out, env=environment())

    def text(self):
        return self.log.read_text()

    def says(self, line, times=1):
        def seen():
            assert self.process.poll() is None, f"it ended:\n{self.text()}"
            return self.text().count(line) >= times
        weft.wait_until(seen, f"{line!r} {times} times in:\n{self.text()}", 40)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait(30)


# ---- they compile

@tap.case("every example is short and says how it is compiled")
def _():
    for path in sorted(EXAMPLES.glob("*.c")):
        text = path.read_text()
        assert text.startswith(f"/* {path.name} - "), f"{path.name} does not open with its idea"
        assert f"cc {path.name} -o {path.stem} $(pkg-config --cflags --libs weft)" in text, path
        assert len(text.splitlines()) < 120, f"{path.name} is long"


for path in sorted(EXAMPLES.glob("*.c")):
    @tap.case(f"{path.name} compiles without a warning")
    def _(name=path.stem):
        compiled(name)


@tap.case("the program in libweft(3) compiles as well")
def _():
    page = (weft.ROOT / "docs" / "man" / "libweft.3").read_text()
    text = re.search(r"^(#include.*?)^\.Ed", page, re.M | re.S)[1].replace("\\e", "\\")
    source = scratch() / "first.c"
    source.write_text(text)
    must("cc", *STRICT, "-Wno-unused-parameter", source, "-o", source.with_suffix(""),
         *pkg_config("--cflags", "--libs"))


@tap.case("the headers are C++ as well, each on its own")
def _():
    compiler = shutil.which("c++") or shutil.which("clang++")
    if not compiler:
        tap.skip("there is no C++ compiler")
    for header in ("weft/weft.h", "weft/host.h"):
        source = scratch() / "use.cc"
        source.write_text(f"#include <{header}>\nint main() {{ return !weft_version(); }}\n")
        must(compiler, *STRICT, "-std=c++17", "-fsyntax-only", *pkg_config("--cflags"), source)


@tap.case("every call has a manual page of its name where libweft is installed")
def _():
    folder = installed()[0] / "share" / "man" / "man3"
    for name in ("libweft", "weft_connect", "weft_read", "weft_queue_fd", "weft_version"):
        assert (folder / f"{name}.3").exists(), f"{name}.3 is not installed"


# ---- they run

@with_target("hello: writes a block, reads it back", ns=["mem:8M"])
def _(t):
    assert run("hello", uri(t, nsid=1)) == "Hello, fabric.\n"


@with_target("async: every byte of a namespace, scattered", ns=["mem:8M,block=512", "mem:16M"])
def _(t):
    data = (bytes(range(251)) * (8 * MIB // 251 + 1))[:8 * MIB]
    done("write", uri(t, nsid=1), "--offset", "0", stdin=data)
    assert run("async", uri(t, nsid=1)) == f"128 reads, {8 * MIB} bytes, sum {sum(data)}\n"
    assert run("async", uri(t, nsid=2)) == f"256 reads, {16 * MIB} bytes, sum 0\n"


@with_target("raw: a log page, one that there is not, a Flush", ns=["mem:8M"])
def _(t):
    assert run("raw", uri(t, nsid=1)).splitlines() == [
        "log page 02h: spare 100 %, used 0 %, warnings 0x00",
        "log page c0h: refused: invalid log page (status 0x109)",
        "flush of namespace 1: done, result 0",
    ]


@with_target("raw: what fails is a sentence", ns=["mem:8M"])
def _(t):
    result = subprocess.run([compiled("raw"), uri(t, nsid=7)], capture_output=True, text=True,
                            timeout=60, env=environment(), check=False)
    assert result.returncode == 1, result
    assert result.stderr == "raw: command: invalid namespace or format (NVMe status 0xb)\n", result


@with_target("loop: reads, events, a resize, a lost connection, an orderly end", ns=["mem:8M"])
def _(t):
    done("write", uri(t, nsid=1), "--offset", "0", stdin=b"\xde\xad\xbe\xef" * 1024)
    with Running("loop", uri(t, nsid=1)) as loop:
        loop.says("block 0: de ad be ef\n")
        t.ctl("namespace-resize", nqn=t.nqn, nsid=1, size="16M")
        loop.says(f"event: namespaces changed\nnamespace 1: {16 * MIB} bytes\n")
        t.ctl("host-refuse", nqn=t.nqn, host="any")     # throws it out: final
        loop.says("event: resetting: ")
        loop.says("event: dead: Connect: host not allowed (NVMe status 0x184); this host is ")
        loop.process.stdin.close()
        assert loop.process.wait(30) == 0, loop.text()


@with_target("discover: follows the log as it changes", ns=["mem:8M"])
def _(t):
    with Running("discover", uri(t, nqn="")) as follower:
        follower.says(f"  {t.nqn} tcp ")
        t.ctl("subsystem-add", nqn="nqn.2026-11.io.weft:late")
        follower.says("  nqn.2026-11.io.weft:late tcp ")
        t.ctl("subsystem-remove", nqn="nqn.2026-11.io.weft:late")
        follower.says("2 entries\n", times=2)
        follower.process.send_signal(signal.SIGTERM)


@with_target("discover: what is no discovery service is told", ns=["mem:8M"])
def _(t):
    result = subprocess.run([compiled("discover"), uri(t)], capture_output=True, text=True,
                            timeout=60, env=environment(), check=False)
    assert result.returncode == 1 and "is no discovery service" in result.stderr, result


sys.exit(tap.run())
