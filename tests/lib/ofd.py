"""ofd.py - locks of an open file description, as members of a cluster have them: docs/cluster.md.

    STATE_AT            in the state: who writes to it; node N is the Nth behind it, in storage too
    SAID_AT, SAID       in storage: which namespace in which group somebody takes it for"""
import fcntl
import os
import struct

F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW = 36, 37, 38
FLOCK = struct.Struct("hhqqi4x")
STATE_AT = 1 << 62
SAID_AT, SAID = 3 << 61, 1 << 61


def flock(kind, start, length):
    return FLOCK.pack(kind, os.SEEK_SET, start, length, 0)


def lock(file, kind, start, length=1):
    fcntl.fcntl(file, F_OFD_SETLK, flock(kind, start, length))


def wait(file, kind, start, length=1):
    """Lock it as soon as nobody else has it."""
    fcntl.fcntl(file, F_OFD_SETLKW, flock(kind, start, length))


def held(file, start, length=1):
    """Has anybody else locked some of these bytes?"""
    found = fcntl.fcntl(file, F_OFD_GETLK, flock(fcntl.F_WRLCK, start, length))
    return FLOCK.unpack(found)[0] != fcntl.F_UNLCK
