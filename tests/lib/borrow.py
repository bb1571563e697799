"""borrow.py - a descriptor of another process as one of ours: the same open file, as by dup()."""
import ctypes
import os

PIDFD_GETFD = 438


def fd_of(pid, number):
    """The caller closes it. OSError where the kernel forbids it."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    pidfd = os.pidfd_open(pid)
    try:
        fd = syscall(PIDFD_GETFD, pidfd, number, 0)
    finally:
        os.close(pidfd)
    if fd < 0:
        raise OSError(ctypes.get_errno(), f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
    return fd
