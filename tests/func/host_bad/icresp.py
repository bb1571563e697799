"""icresp.py - the first PDU of the target, wrong in every field."""
import pdu
from host_bad import (FIELD, HLEN, PLEN, SEQUENCE, TYPE, UNSUPPORTED, fails, survives, works,
                      write)

HUGE = 0xFFFFFFFF
ANY = [FIELD, UNSUPPORTED]


def answer(**wrong):
    return lambda conn, _got: conn.icresp(**wrong)


def instead(type):
    def step(conn, _got):
        conn.send_pdu(type, bytes(pdu.HLEN.get(type, 24) - 8))
    return step


for pfv in (1, 3, 0xFFFF):
    fails(f"ICResp with PFV {pfv:#x}", rf"ICResp.*PFV.*{pfv}", term=ANY, icreq=answer(pfv=pfv))
for cpda in (32, 128, 255):
    fails(f"ICResp with CPDA {cpda}", "ICResp.*CPDA", term=ANY, cpda=cpda)
for size in (0, 4, 4092):
    fails(f"ICResp with MAXH2CDATA {size:#x}", "ICResp.*MAXH2CDATA", term=ANY, maxh2c=size)
for size in (4097, 4098, 65537, HUGE):
    survives(f"ICResp with MAXH2CDATA {size:#x}", write, maxh2c=size, icd=0)
for dgst in (1, 2, 3):
    fails(f"ICResp with digests {dgst} that were not asked for", "ICResp.*digest", term=ANY,
          icreq=answer(dgst=dgst))
fails("ICResp with the data digest, the header digest was asked for", "ICResp.*digest", term=ANY,
      words=dict(hdgst=1), icreq=answer(dgst=2))
for hlen in (0, 8, 127, 129, 255):
    fails(f"ICResp with HLEN {hlen}", "ICResp|HLEN|header", term=[HLEN], icreq=answer(hlen=hlen))
for plen in (*range(8), 8, 127, 129, 136, HUGE):
    fails(f"ICResp with PLEN {plen:#x}", "ICResp|PLEN|length", term=[PLEN],
          icreq=answer(plen=plen))
for type in (pdu.ICREQ, pdu.H2CTERM, pdu.CMD, pdu.H2CDATA, 8, 0x0A, 0xFF):
    fails(f"PDU type {type:#x} for an ICResp", "PDU|ICResp", term=[TYPE, SEQUENCE],
          icreq=instead(type))
for type in (pdu.RSP, pdu.C2HDATA, pdu.R2T):
    fails(f"PDU type {type} for an ICResp", "PDU|ICResp|set up", term=[SEQUENCE, TYPE],
          icreq=instead(type))


def twice(conn, got):
    conn.held = []
    conn.icresp()
    conn.icresp()
    conn.release()


def again(conn, cmd):
    conn.icresp()
    conn.complete(cmd)


fails("ICResp twice", "ICResp|PDU", term=[SEQUENCE, TYPE], icreq=twice)
fails("ICResp once more, later", "ICResp|PDU", term=[SEQUENCE, TYPE], property_set=again)
fails("ICResp twice on an I/O queue", "ICResp|PDU", term=[SEQUENCE, TYPE],
      icreq=lambda conn, got: (twice if conn.is_io else answer())(conn, got))

# A host that has sent its ICReq cannot tell when the ICResp was.
survives("ICResp before ICReq", accepted=lambda conn: conn.icresp(), icreq=lambda conn, got: None)
# Whether to go on without a digest that the target refuses is the host's choice.
survives("ICResp without the digests that were asked for", words=dict(hdgst=1, ddgst=1), digests=0)
works("ICResp with reserved bytes set", icreq=lambda conn, got: conn.send_pdu(
    pdu.ICRESP, bytes(4) + (0x20000).to_bytes(4, "little") + b"\xff" * 112))
