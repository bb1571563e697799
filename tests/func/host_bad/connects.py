"""connects.py - Connect refused with every status, and controllers that do not come up."""
import nvme
from host_bad import HASTY, discover, fails, id, normally, run, survives, works

# status -> what the sentence must say besides the number
STATUSES = {
    0x01: "opcode", 0x02: "field", 0x06: "internal", 0x0C: "sequence", 0x10: "", 0x15: "denied",
    0x22: "transport", 0x180: "format", 0x181: "busy", 0x182: "param", 0x183: "",
    0x184: "host not allowed|invalid host", 0x185: "", 0x186: "", 0x191: "auth", 0x1FF: "",
    0x281: "", 0x7FF: "",
}


def refused(status, io, dw0=0, dnr=1):
    def step(conn, cmd):
        if conn.is_io == io:
            return conn.complete(cmd, status, dw0, dnr=dnr)
        return normally(conn, "connect", cmd)
    return step


for status, words in STATUSES.items():
    fails(f"Connect refused with {status:#x}", rf"Connect.*({words}).*0x{status:x}\b",
          connect=refused(status, io=False))
    fails(f"Connect of an I/O queue refused with {status:#x}",
          rf"Connect.*({words}).*0x{status:x}\b", connect=refused(status, io=True))
    fails(f"discovery: Connect refused with {status:#x}", rf"0x{status:x}\b", discover,
          connect=refused(status, io=False))
fails("Connect refused, a retry may help", "busy", connect=refused(0x181, io=False, dnr=0))
fails("Connect refused for SUBNQN", r"(?i)subnqn|subsystem|0x182",
      connect=refused(0x182, False, 1 << 16 | 256))
fails("Connect refused for HOSTNQN", r"(?i)hostnqn|0x182",
      connect=refused(0x182, False, 1 << 16 | 512))
fails("another subsystem", "0x182",
      lambda t, words: run("id", t.uri("nqn.2026-11.io.weft:other", **words)))


# --- what Connect answers

def cntlid(value, io=False):
    def step(conn, cmd):
        if conn.is_io != io:
            return normally(conn, "connect", cmd)
        complete = conn.complete
        conn.complete = lambda cmd, **_: complete(cmd, dw0=value)
        normally(conn, "connect", cmd)
        conn.complete = complete
    return step


for value in (0xFFFF, 0xFFF0, 0xFFFE):
    fails(f"Connect answers with cntlid {value:#x}", "cntlid|controller id|Connect",
          connect=cntlid(value))
survives("Connect of an I/O queue answers with another cntlid", connect=cntlid(0x55, io=True))
survives("Connect asks for authentication", connect=cntlid(1 | 2 << 16))

# --- properties


def property(offset, value):
    return lambda conn, at, right: value if at == offset else right


WHOLE_CAP = 127 | 1 << 16 | 4 << 24 | 1 << 37
fails("CAP with MQES 0", "MQES|CAP|queue", mqes=0)
survives("CAP of all ones", mqes=0xFFFF, property_value=property(nvme.CAP, (1 << 64) - 1))
fails("CAP of all zeroes", "MQES|CAP", property_value=property(nvme.CAP, 0))
survives("CAP without the NVM command set",
         property_value=property(nvme.CAP, WHOLE_CAP & ~(1 << 37)))
survives("CAP with MPSMIN 15",
         property_value=property(nvme.CAP, WHOLE_CAP | 15 << 48))
fails("CSTS never says ready", "ready|RDY|CSTS", words=HASTY, ready_after=1 << 30,
      timeout_500ms=1)
fails("CSTS says fatal", "fatal|CFS|CSTS", property_value=property(nvme.CSTS, 2))
fails("CSTS says ready and fatal", "fatal|CFS|CSTS", property_value=property(nvme.CSTS, 3))
survives("CSTS of all ones", property_value=property(nvme.CSTS, 0xFFFFFFFF))
survives("VS 0", property_value=property(nvme.VS, 0))
survives("VS of all ones", property_value=property(nvme.VS, 0xFFFFFFFF))
fails("Property Get refused", "Property|0x2", property_get=lambda conn, cmd: conn.complete(
    cmd, nvme.INVALID_FIELD))
fails("Property Set refused", "Property|0x2", property_set=lambda conn, cmd: conn.complete(
    cmd, nvme.INVALID_FIELD))
fails("Identify refused", "Identify|0x2", identify=lambda conn, cmd: conn.complete(
    cmd, nvme.INVALID_FIELD))
fails("Set Features: number of queues refused", "queues|Features|0x2",
      set_features=lambda conn, cmd: conn.complete(cmd, nvme.INVALID_FIELD))
survives("Set Features: no queues", set_features=lambda conn, cmd: conn.complete(
    cmd, dw0=0xFFFFFFFF))
works("Set Features: one queue", words=dict(queues=4),
      set_features=lambda conn, cmd: conn.complete(cmd))
survives("Set Features: four queues, and only one connects", words=dict(queues=4),
         connect=lambda conn, cmd: (conn.complete(cmd, 0x182) if cmd.dw(10) >> 16 > 1
                                    else normally(conn, "connect", cmd)))
works("CSTS.RDY after 20 looks", ready_after=20, timeout_500ms=20)
works("CSTS.RDY after 3 looks, CAP.TO 0", ready_after=3, timeout_500ms=0)
works("the controller of the second try", id, connect=cntlid(1))
works("every PDU by the byte", id, accepted=lambda conn: setattr(conn, "segment", 1))
