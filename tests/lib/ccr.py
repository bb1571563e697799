"""ccr.py - Cross-Controller Reset: how it names a controller, and asks."""
import struct

import sqe
from nvme import SUCCESS

CCR, CCR_LOG, RMC, IRS = 0x38, 0x1E, 1, 1
OP_DENIED = 0x15


class Instance:
    """A controller as Cross-Controller Reset names it."""

    def __init__(self, ctrl):
        raw = ctrl.identify(1)
        self.cntlid, self.ciu = ctrl.cntlid, raw[135]
        self.cirn = struct.unpack_from("<Q", raw, 136)[0]

    def key(self):
        return self.cntlid, self.ciu, self.cirn


def command(cntlid, ciu, cirn):
    return sqe.Sqe(CCR, dw10=cntlid | ciu << 16, dw12=cirn, dw13=cirn >> 32)


def reset(through, cntlid, ciu, cirn, want=SUCCESS):
    return through.admin.do(command(cntlid, ciu, cirn), want=want).dw0
