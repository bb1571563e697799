"""fixture.py - cases that start with a target of their own and a host connected to it."""
import contextlib
import threading

import nvme
import tap
import weft


def connect(target, **kw):
    return nvme.Controller(target.addr, kw.pop("nqn", target.nqn), **kw)


def with_target(name, limit_s=180, **target):
    """Register body(target) as a case."""
    def add(body):
        @tap.case(name, limit_s)
        def _():
            with weft.Target(**target) as t:
                body(t)
        return body
    return add


def with_host(name, limit_s=180, host=None, **target):
    """Register body(target, controller) as a case."""
    def add(body):
        @with_target(name, limit_s, **target)
        def _(t):
            with connect(t, **host or {}) as ctrl:
                body(t, ctrl)
        return body
    return add


def refused(target, method, **params):
    """The control socket says no, in words."""
    try:
        target.ctl(method, **params)
    except weft.CtlError as err:
        assert str(err)
        return str(err)
    raise AssertionError(f"{method} {params} was accepted")


@contextlib.contextmanager
def in_background(body):
    """Run body() in a thread beside the block; what it raises, the end of the block raises."""
    errors = []

    def guarded():
        try:
            body()
        except BaseException as err:
            errors.append(err)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
    assert not thread.is_alive(), "the background thread hangs"
    if errors:
        raise errors[0]
