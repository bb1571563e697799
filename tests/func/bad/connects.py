"""connects.py - Connect and the other Fabrics commands, wrong or at the wrong time."""
import bad
import nasty
import nvme
import pdu
import sqe
from nvme import CONNECT_FORMAT, CONNECT_HOST, CONNECT_PARAM, INVALID_FIELD, INVALID_OPCODE
from nvme import SEQUENCE_ERROR
from tap import case

IN_DATA = 1 << 16       # IATTR: the offset that follows is in the data, not in the command
INVALID_QUEUE_TYPE = 0x185
OTHER_HOST = "nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-00000000beef"


def differs(raw, at):
    return raw[:at] + bytes([raw[at] ^ 0x80]) + raw[at + 1:]


# What the admin queue's Connect says, its status, and the offset of the invalid parameter
ADMIN = [
    ("record format 1", dict(recfmt=1), CONNECT_FORMAT, None),
    ("record format 0xFFFF", dict(recfmt=0xFFFF), CONNECT_FORMAT, None),
    ("SQSIZE 0", dict(sqsize=0), CONNECT_PARAM, 44),
    ("SQSIZE over MQES", dict(sqsize=0xFFFF), CONNECT_PARAM, 44),
    ("unknown subsystem", dict(nqn="nqn.2026-11.io.weft:none"), CONNECT_PARAM, IN_DATA | 256),
    ("empty SUBNQN", dict(nqn=""), CONNECT_PARAM, IN_DATA | 256),
    ("SUBNQN without end", dict(nqn=b"n" * 256), CONNECT_PARAM, IN_DATA | 256),
    ("HOSTNQN without end", dict(hostnqn=b"n" * 256), (CONNECT_PARAM, CONNECT_HOST), None),
    ("HOSTNQN of 224 bytes", dict(hostnqn=nvme.HOSTNQN.ljust(224, "0")),
     (CONNECT_PARAM, CONNECT_HOST), None),
    *[(f"SUBNQN with {what}", dict(nqn=name), CONNECT_PARAM, IN_DATA | 256)
      for what, name in nasty.NAMES.items()],
    *[(f"HOSTNQN with {what}", dict(hostnqn=name), CONNECT_PARAM, IN_DATA | 512)
      for what, name in nasty.NAMES.items()],
    ("HOSTID zero", dict(hostid=bytes(16)), CONNECT_PARAM, IN_DATA | 0),
    ("CNTLID 0", dict(cntlid=0), CONNECT_PARAM, IN_DATA | 16),
    ("CNTLID 1", dict(cntlid=1), CONNECT_PARAM, IN_DATA | 16),
    ("CNTLID FFFEh in the dynamic model", dict(cntlid=0xFFFE), CONNECT_PARAM, IN_DATA | 16),
    ("data one byte short", dict(data=bytes(1023)), (nvme.SGL_LENGTH, INVALID_FIELD), None),
    ("data missing", dict(data=b""), (nvme.SGL_LENGTH, nvme.SGL_TYPE, INVALID_FIELD), None),
    ("data in a keyed SGL", dict(sgl=sqe.sgl(0, 1024, 0x40)), (nvme.SGL_TYPE, INVALID_FIELD), None),
    ("data outside the capsule", dict(sgl=sqe.sgl_capsule(1024, 8192)),
     (nvme.SGL_OFFSET, INVALID_FIELD), None),
    ("an I/O queue first", dict(qid=1, cntlid=0xFFEF), CONNECT_PARAM, IN_DATA | 16),
]

# The same for an I/O queue of an enabled controller
IO = [
    ("record format 1", dict(recfmt=1), CONNECT_FORMAT, None),
    ("SQSIZE 0", dict(sqsize=0), CONNECT_PARAM, 44),
    ("SQSIZE over MQES", dict(sqsize=0xFFFF), CONNECT_PARAM, 44),
    ("unknown CNTLID", dict(cntlid=0xFFEF), CONNECT_PARAM, IN_DATA | 16),
    ("CNTLID FFFFh", dict(cntlid=0xFFFF), CONNECT_PARAM, IN_DATA | 16),
    *[(f"another host's NQN: {what}", dict(hostnqn=name), CONNECT_PARAM, IN_DATA | 512)
      for what, name in (("all of it", OTHER_HOST), ("its last letter", nvme.HOSTNQN[:-1] + "2"),
                         ("shorter", nvme.HOSTNQN[:-1]), ("longer", nvme.HOSTNQN + "0"),
                         ("none", ""))],
    *[(f"another host's id: byte {at}", dict(hostid=differs(nvme.HOSTID, at)), CONNECT_PARAM,
       IN_DATA | 0) for at in range(16)],
    ("the discovery subsystem", dict(nqn=nvme.DISCOVERY), CONNECT_PARAM, None),
    ("QID 65535", dict(qid=0xFFFF), CONNECT_PARAM, 42),
]


def check_connect(queue, kw, want, offset):
    kw = dict(nqn=bad.target.nqn) | kw
    cqe = queue.connect(kw.pop("nqn"), want=want, **kw)
    assert cqe.dnr == 1, "a Connect that can never work is marked retryable"
    if offset is not None:
        assert cqe.dw0 & 0x1FFFF == offset, f"invalid parameter at {cqe.dw0:#x}"


def wrong_admin(name, kw, want, offset):
    @case(f"Connect: {name}")
    def _():
        with bad.initialized() as queue:
            check_connect(queue, kw, want, offset)


def wrong_io(name, kw, want, offset):
    @case(f"I/O Connect: {name}")
    def _():
        with bad.controller() as ctrl, bad.initialized() as queue:
            check_connect(queue, dict(qid=1, cntlid=ctrl.cntlid) | kw, want, offset)


for row in ADMIN:
    wrong_admin(*row)
for row in IO:
    wrong_io(*row)


@case("Connect: a HOSTID that is zero but for one byte is as good as any")
def _():
    for at in range(16):
        with bad.initialized() as queue:
            queue.connect(bad.target.nqn, hostid=differs(bytes(16), at))


@case("I/O Connect: QID above the number granted")
def _():
    with bad.controller() as ctrl, bad.initialized() as queue:
        granted = (ctrl.set_feature(7, 0).dw0 & 0xFFFF) + 1
        want = dict(qid=granted + 1, cntlid=ctrl.cntlid)
        check_connect(queue, want, CONNECT_PARAM, 42)


@case("I/O Connect: QID in use")
def _():
    with bad.controller() as ctrl, bad.initialized() as queue:
        first = ctrl.open(1)
        queue.connect(ctrl.nqn, 1, cntlid=ctrl.cntlid, want=(SEQUENCE_ERROR, CONNECT_PARAM))
        bad.usable(first)


@case("I/O Connect: controller not enabled")
def _():
    with bad.controller(enable=False) as ctrl, bad.initialized() as queue:
        queue.connect(ctrl.nqn, 1, cntlid=ctrl.cntlid,
                      want=(SEQUENCE_ERROR, CONNECT_PARAM, nvme.CONNECT_BUSY))


@case("Connect twice on the admin queue")
def _():
    with bad.admin() as queue:
        queue.connect(bad.target.nqn, want=SEQUENCE_ERROR)
        queue.ctrl.identify(1)


@case("Connect twice on an I/O queue")
def _():
    with bad.controller() as ctrl:
        queue = ctrl.open(1)
        queue.connect(ctrl.nqn, 1, cntlid=ctrl.cntlid, want=SEQUENCE_ERROR)
        bad.usable(queue)


@case("Connect through an R2T")
def _():
    """Spec: Connect's data is in the capsule; a target may refuse or ask for it, not break."""
    with bad.initialized() as queue:
        data = sqe.connect_data(bad.target.nqn, nvme.HOSTNQN, nvme.HOSTID)
        queue.do(sqe.connect(), data, capsule=False,
                 want=(nvme.SUCCESS, nvme.SGL_TYPE, INVALID_FIELD, nvme.SGL_OFFSET))


# Lengths at which a split into pages, or into as many R2Ts as the host takes, has a remainder.
LENGTHS = [n + d for n in (4096, 16384, 65536, 131072, 262144, 524288, 1 << 20)
           for d in (-1, 0, 1)] + [1025, 0x7FFFFFFF, 0xFFFFFFFF]


@case("Connect that says 262,145 bytes and takes four R2Ts")
def _():
    """A quarter of that is whole pages, and a byte is left over: not for a fifth R2T."""
    with bad.initialized(maxr2t=3) as queue:
        queue.send_pdu(pdu.CMD, sqe.connect().encode(0, sqe.sgl_transport(262145)))
        assert queue.recv_pdu().type in (pdu.R2T, pdu.RSP)


def large(maxr2t):
    @case(f"Connect with an SGL larger than its data, MAXR2T {maxr2t}")
    def _():
        """It may be refused; what it is asked for is what a Connect has, and the Connect works."""
        data = sqe.connect_data(bad.target.nqn, nvme.HOSTNQN, nvme.HOSTID)
        for length in LENGTHS:
            with bad.initialized(maxr2t=maxr2t) as queue:
                cid = queue.submit(sqe.connect(sgl=sqe.sgl_transport(length)), data, capsule=False)
                queue.wait(cid, (nvme.SUCCESS, nvme.SGL_LENGTH, INVALID_FIELD))


for maxr2t in (0, 1, 2, 3, 4, 7, 0xFFFF, 0xFFFFFFFF):
    large(maxr2t)

BEFORE_CONNECT = [
    ("Identify", sqe.identify(1), 4096),
    ("Property Get", sqe.property_get(nvme.CAP, 8), 0),
    ("Property Set", sqe.property_set(nvme.CC, nvme.CC_ENABLE), 0),
    ("Keep Alive", sqe.Sqe(sqe.KEEP_ALIVE), 0),
    ("Read", sqe.blocks(sqe.READ, 1, 0, 1), 4096),
    ("Flush", sqe.Sqe(sqe.FLUSH, 1), 0),
    ("Disconnect", sqe.disconnect(), 0),
    ("an unknown opcode", sqe.Sqe(0xFF), 0),
]


def before_connect(name, command, length):
    @case(f"before Connect: {name}")
    def _():
        with bad.initialized() as queue:
            queue.do(command, length=length, want=SEQUENCE_ERROR)


for row in BEFORE_CONNECT:
    before_connect(*row)


@case("before Connect: a write that needs an R2T")
def _():
    with bad.initialized() as queue:
        queue.hold = True
        queue.do(sqe.blocks(sqe.WRITE, 1, 0, 1), bytes(4096), capsule=False, want=SEQUENCE_ERROR)
        assert not queue.r2ts, "data solicited before Connect"


@case("before CC.EN: Identify and Get Features wait for the host to enable the controller")
def _():
    with bad.controller(enable=False) as ctrl:
        ctrl.admin.do(sqe.identify(1), length=4096, want=(SEQUENCE_ERROR, nvme.SUCCESS))
        ctrl.enable()


# Fabrics commands on a connected admin queue
FABRICS = [
    ("unknown FCTYPE", sqe.Sqe(sqe.FABRICS, 0x7E), (INVALID_OPCODE, INVALID_FIELD)),
    ("vendor FCTYPE", sqe.Sqe(sqe.FABRICS, 0xC0), (INVALID_OPCODE, INVALID_FIELD)),
    ("Disconnect of the admin queue", sqe.disconnect(), (INVALID_QUEUE_TYPE, INVALID_FIELD)),
    ("Property Get at 0xFFFFFFF8", sqe.property_get(0xFFFFFFF8, 8), INVALID_FIELD),
    ("Property Get at 0x1000", sqe.property_get(0x1000), INVALID_FIELD),
    ("Property Get in the middle of CAP", sqe.property_get(2), INVALID_FIELD),
    ("Property Get of CAP as 4 bytes", sqe.property_get(nvme.CAP, 4),
     (INVALID_FIELD, nvme.SUCCESS)),
    ("Property Get of CC as 8 bytes", sqe.property_get(nvme.CC, 8), INVALID_FIELD),
    ("Property Get of size 7", sqe.Sqe(sqe.FABRICS, sqe.PROPERTY_GET, dw10=7, dw11=nvme.CC),
     INVALID_FIELD),
    ("Property Set of CAP", sqe.property_set(nvme.CAP, 0, 8), INVALID_FIELD),
    ("Property Set of VS", sqe.property_set(nvme.VS, 0), INVALID_FIELD),
    ("Property Set of CSTS", sqe.property_set(nvme.CSTS, 0), (INVALID_FIELD, nvme.SUCCESS)),
    ("Property Set of CC as 8 bytes", sqe.property_set(nvme.CC, nvme.CC_ENABLE, 8), INVALID_FIELD),
    ("Property Set at 0x1000", sqe.property_set(0x1000, 0), INVALID_FIELD),
]


def wrong_fabrics(name, command, want):
    @case(f"Fabrics: {name}")
    def _():
        with bad.admin() as queue:
            queue.do(command, want=want)
            queue.ctrl.identify(1)


for row in FABRICS:
    wrong_fabrics(*row)

ON_IO_QUEUE = [
    ("Property Get", sqe.property_get(nvme.CAP, 8)),
    ("Property Set", sqe.property_set(nvme.CC, 0)),
    ("unknown FCTYPE", sqe.Sqe(sqe.FABRICS, 0x7E)),
]


def fabrics_on_io(name, command):
    @case(f"I/O queue: {name}")
    def _():
        with bad.io() as queue:
            queue.do(command, want=(INVALID_OPCODE, INVALID_FIELD, SEQUENCE_ERROR))
            bad.usable(queue)


for row in ON_IO_QUEUE:
    fabrics_on_io(*row)


@case("Disconnect with record format 1")
def _():
    with bad.io() as queue:
        queue.do(sqe.disconnect(recfmt=1), want=CONNECT_FORMAT)
        bad.usable(queue)


@case("CC with a memory page size, command set or entry size that is not supported")
def _():
    for value in (0x00460781, 0x00460071, 0x00FF0001, 0x00000001):
        with bad.controller(enable=False) as ctrl:
            ctrl.admin.do(sqe.property_set(nvme.CC, value), want=None)
            ctrl.get(nvme.CSTS)         # what it says is not specified; that it answers is


@case("the connection of a failed Connect can try again")
def _():
    with bad.initialized() as queue:
        queue.connect("nqn.2026-11.io.weft:none", want=CONNECT_PARAM)
        try:
            assert queue.connect(bad.target.nqn).dw0 & 0xFFFF != 0xFFFF
        except nvme.Closed:
            pass                # a target may hang up on it
