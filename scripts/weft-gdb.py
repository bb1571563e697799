"""weft-gdb.py - gdb reads Weft's objects.

    gdb -x scripts/weft-gdb.py -p PID
    (gdb) weft-queues                      a target: its connections, and their requests
    (gdb) weft-list &$weft_target()->listeners tgt_listener link
                                           any intrusive list: its head, the type, the member
    (gdb) print *req                       requests, queue pairs and errors print in one line
"""
import gdb


def name(value):
    """An enumerator, in lower case and without the words that all of them begin with."""
    text = str(value).lower()
    for prefix in ("weft_req_", "tgt_queue_io_", "tgt_queue_"):
        if text.startswith(prefix):
            return text[len(prefix):].replace("_", "-")
    return text


def links(head):
    """The links of a list, whose head is an address."""
    link, seen = head["next"], 0
    while link and link != head and seen < 1 << 20:
        yield link
        link, seen = link["next"], seen + 1


def container(link, type_name, member):
    """The object that a link is the member of; a member may be a path: a.b"""
    object_type = gdb.lookup_type(type_name)
    offset = gdb.parse_and_eval(f"(unsigned long)&(({object_type} *)0)->{member}")
    at = int(link.cast(gdb.lookup_type("unsigned long"))) - int(offset)
    return gdb.Value(at).cast(object_type.pointer())


def opcode(req, admin):
    code = int(req["cmd"]["common"]["opcode"])
    enum = gdb.lookup_type("enum nvme_admin_opcode" if admin else "enum nvme_io_opcode")
    for field in enum.fields():
        if field.enumval == code and code != 0x7F:
            return field.name.replace("nvme_admin_", "").replace("nvme_cmd_", "").replace("_", " ")
    return "fabrics" if code == 0x7F else f"opcode {code:#x}"


def request_text(req):
    common = req["cmd"]["common"]
    text = f"{opcode(req, not int(req['qp']['sqid']))}, cid {int(common['cid'])}"
    if int(common["nsid"]):
        text += f", nsid {int(common['nsid'])}"
    if int(req["data_len"]):
        text += f", {int(req['data_len'])} bytes"
    return f"{text}: {name(req['state'])}"


def queue_text(qp):
    """With its host, if there is one."""
    transport = {1: "rdma", 3: "tcp"}.get(int(qp["transport"]["trtype"]), "?")
    text = f"{transport} queue {int(qp['sqid'])}: {int(qp['inflight'])} of " \
           f"{int(qp['depth'])} in flight"
    if int(qp["closing"]):
        text += f", closing ({qp['why'].string()})"
    if not qp["owner"]:
        return f"{text}, before Connect"
    queue = qp["owner"].cast(gdb.lookup_type("struct tgt_queue").pointer())
    return f"{text}, {name(queue['state'])}, of {queue['ctrl']['hostnqn'].string()}"


class Line:
    """A printer of one line."""

    def __init__(self, value, text):
        self.value, self.text = value, text

    def to_string(self):
        return self.text(self.value)


def err_text(err):
    return err["text"].string() or "no error"


PRINTERS = {"weft_req": request_text, "weft_qpair": queue_text, "weft_err": err_text}


def printer_of(value):
    tag = value.type.strip_typedefs().tag
    return Line(value, PRINTERS[tag]) if tag in PRINTERS else None


def daemon():
    """The target's process keeps everything in a local of weft_serve(), in its first thread."""
    before = gdb.selected_thread()
    min(gdb.selected_inferior().threads(), key=lambda t: t.num).switch()
    try:
        frame = gdb.newest_frame()
        while frame and frame.name() != "weft_serve":
            frame = frame.older()
        if not frame:
            raise gdb.GdbError("this process is not a target: no weft_serve() in its first thread")
        return frame.read_var("d")
    finally:
        before.switch()


class Target(gdb.Function):
    """$weft_target(): the struct weft_target of a running target."""

    def __init__(self):
        super().__init__("weft_target")

    def invoke(self):
        return daemon()["target"]


class Queues(gdb.Command):
    """weft-queues: the connections of a running target by reactor, and their requests."""

    def __init__(self):
        super().__init__("weft-queues", gdb.COMMAND_DATA)

    def invoke(self, arg, from_tty):
        target = daemon()["target"]
        for i in range(int(target["npoll_groups"])):
            group = target["poll_groups"][i]
            print(f"reactor {i}:")
            for link in links(group["qpairs"].address):
                qp = container(link, "struct weft_qpair", "link")
                print(f"  {qp} {queue_text(qp)}")
                for index in range(int(qp["high_water"])):
                    if qp["reqs"][index]:
                        print(f"    {qp['reqs'][index]} {request_text(qp['reqs'][index])}")


class List(gdb.Command):
    """weft-list HEAD TYPE MEMBER: the objects of an intrusive list; HEAD is the address of its head."""

    def __init__(self):
        super().__init__("weft-list", gdb.COMMAND_DATA)

    def invoke(self, arg, from_tty):
        words = arg.rsplit(maxsplit=2)
        if len(words) != 3:
            raise gdb.GdbError("usage: weft-list HEAD TYPE MEMBER")
        head, type_name, member = words
        for link in links(gdb.parse_and_eval(head)):
            item = container(link, f"struct {type_name}", member)
            print(f"{item} {item.dereference()}")


gdb.pretty_printers.append(printer_of)
Target()
Queues()
List()
