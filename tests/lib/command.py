"""command.py - `weft` as its users run it: arguments in; exit status, output and last line out."""
import errno
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import termios

import weft

OK, FAILED, USAGE = 0, 1, 2


def uri(target, nsid=None, nqn=None, host=None, **words):
    """The URI of a target's subsystem; nqn="" is its discovery service."""
    name, port = target.addr[0] if host is None else host, target.addr[1]
    if nsid is not None:
        words["nsid"] = nsid
    query = "&".join(f"{key}={value}" for key, value in words.items())
    path = target.nqn if nqn is None else nqn
    return f"nvme+tcp://{name}:{port}/{path}" + (f"?{query}" if query else "")


def start(*args, env=None, **kw):
    """A running `weft`; the caller ends it."""
    return subprocess.Popen([weft.BINARY, *map(str, args)], env=os.environ | (env or {}),
                            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                               "stderr": subprocess.PIPE} | kw)


def await_taken(process):
    status = pathlib.Path(f"/proc/{process.pid}/status")
    weft.wait_until(lambda: not int(re.search(r"ShdPnd:\s*(\w+)", status.read_text())[1], 16),
                    "the signal to be taken")


def interrupt(process, number):
    """Returns when the process has taken the signal."""
    process.send_signal(number)
    await_taken(process)


def interrupt_twice(process):
    """Two signals, of which the process can take none before the other is sent. One kind would not do:
    a signal that waits to be taken does not wait twice."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        process.send_signal(number)
    await_taken(process)


def run(*args, stdin=b"", env=None, limit_s=120):
    """It, finished; what it printed is in bytes, its messages in text."""
    result = subprocess.run([weft.BINARY, *map(str, args)], input=stdin, capture_output=True,
                            timeout=limit_s, env=os.environ | (env or {}), check=False)
    result.stderr = result.stderr.decode()
    assert not weft.SANITIZER.search(result.stderr), result.stderr
    return result


def messages(err):
    """But for those about waiting: on a busy machine everything waits."""
    return [line for line in err.splitlines()
            if ": waiting " not in line and "there is a path again" not in line]


def done(*args, **kw):
    """It succeeded; what it printed."""
    result = run(*args, **kw)
    assert result.returncode == OK, f"exit status {result.returncode}: {result.stderr}"
    return result.stdout


def text(*args, **kw):
    return done(*args, **kw).decode()


def as_json(*args, **kw):
    return json.loads(done(*args, "--json", **kw))


def fails(*args, sentence=None, words=(), code=FAILED, **kw):
    """It failed, and its last line is this sentence, or has these words."""
    result = run(*args, **kw)
    last = result.stderr.strip().splitlines()[-1] if result.stderr.strip() else ""
    assert result.returncode == code, f"exit status {result.returncode}: {result.stderr}"
    if sentence is not None:
        assert last == sentence, f"said    {last!r}\nwanted  {sentence!r}"
    for word in words:
        assert str(word) in last, f"no {word!r} in the last line: {last!r}"
    return last


def on_terminal(*args, rows=24, columns=80, env=None, look=None):
    """Exit status and all that it shows on a terminal of its own; {look}(process, shown so far)."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    process = start(*args, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = bytearray()
    try:
        while data := os.read(ours, 65536):
            shown += data
            if look:
                look(process, shown.decode(errors="replace"))
    except OSError as err:          # nobody has the terminal open any more
        assert err.errno == errno.EIO, err
    finally:
        os.close(ours)
    return process.wait(60), shown.decode()
