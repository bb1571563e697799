"""resv.py - reservations as a host sees them: Register, Acquire, Release, Report, the log."""
import contextlib
import struct
from collections import namedtuple

import fixture
import sqe
from nvme import SUCCESS

WE, EA, WERO, EARO, WEAR, EAAR = range(1, 7)
TYPES = (WE, EA, WERO, EARO, WEAR, EAAR)
REGISTER, UNREGISTER, REPLACE = range(3)
ACQUIRE, PREEMPT, PREEMPT_ABORT = range(3)
RELEASE, CLEAR = range(2)
LOG, MASK, PERSIST = 0x80, 0x82, 0x83
SHARE = 64      # registrants of one host NQN
REG_PREEMPTED, RELEASED, RESV_PREEMPTED = 1, 2, 3
EVENT = (6, 0, LOG)

Report = namedtuple("Report", "generation rtype ptpl hosts")     # hosts: {host id: (key, holds)}
Notice = namedtuple("Notice", "count type more nsid")


@contextlib.contextmanager
def made_up(target, count, **kw):
    """Hosts of one name, with identifiers that it made up."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Host(target, 100 + n, nqn="nqn.2026-11.io.weft:greedy", **kw))
               for n in range(count)]


class Host:
    """A host with an identifier of its own, and one controller of it."""

    def __init__(self, target, number, key=None, nsid=1, nqn=None, **kw):
        self.id = bytes([number] * 16)
        nqn = nqn or f"nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-{number:012x}"
        self.ctrl = fixture.connect(target, hostnqn=nqn, hostid=self.id, **kw)
        self.queue = self.ctrl.open()
        self.disk = self.ctrl.disk(nsid, self.queue)
        self.key, self.nsid = number if key is None else key, nsid

    def command(self, opcode, dw10, keys, want):
        return self.queue.do(sqe.Sqe(opcode, self.nsid, dw10=dw10),
                             struct.pack(f"<{len(keys)}Q", *keys), want=want)

    def register(self, action=REGISTER, crkey=None, nrkey=None, iekey=0, cptpl=0, want=SUCCESS):
        keys = (self.key if crkey is None else crkey, self.key if nrkey is None else nrkey)
        return self.command(sqe.RESV_REGISTER, action | iekey << 3 | cptpl << 30, keys, want)

    def unregister(self, want=SUCCESS):
        return self.register(UNREGISTER, want=want)

    def acquire(self, rtype, action=ACQUIRE, prkey=0, crkey=None, want=SUCCESS):
        keys = (self.key if crkey is None else crkey, prkey)
        return self.command(sqe.RESV_ACQUIRE, action | rtype << 8, keys, want)

    def release(self, rtype, action=RELEASE, want=SUCCESS):
        return self.command(sqe.RESV_RELEASE, action | rtype << 8, (self.key,), want)

    def report(self, length=4096):
        data = self.queue.do(sqe.Sqe(sqe.RESV_REPORT, self.nsid, dw10=length // 4 - 1, dw11=1),
                             length=length).data
        generation, rtype, count, ptpl = struct.unpack_from("<IBHxxB", data)
        hosts = {}
        for at in range(64, min(64 + 64 * count, length - 63), 64):
            cntlid, status, key, host = struct.unpack_from("<HB5xQ16s", data, at)
            assert cntlid == 0xFFFF
            hosts[host] = (key, bool(status & 1))
        assert len(hosts) == min(count, length // 64 - 1)
        return Report(generation, rtype, ptpl, hosts)

    def holders(self):
        return sorted(host[0] for host, (_, holds) in self.report().hosts.items() if holds)

    def registrants(self):
        return sorted(host[0] for host in self.report().hosts)

    def notice(self, **kw):
        return Notice(*struct.unpack_from("<QBBxxI", self.ctrl.log(LOG, 64, **kw)))

    def close(self):
        self.ctrl.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
