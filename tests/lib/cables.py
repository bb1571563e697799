"""cables.py - two network namespaces with cables between them, that can be cut.

      near: 10.99.0.1 ────────── 10.99.0.2 :far
            10.99.1.1 ────────── 10.99.1.2

A cable that is cut takes every packet and delivers none, as a switch without power does. No right
of the machine is needed, only that it lets users have namespaces."""
import subprocess

STAY = ("sh", "-c", "echo; exec cat")


class Cables:
    """ends[0] and ends[1] are prefixes for commands that run there. OSError or CalledProcessError
    where it cannot be done."""

    def __init__(self, count=2):
        self.stays, self.ends = [], []
        try:
            self.make_end("unshare", "-rn")
            self.make_end(*self.ends[0], "unshare", "-n")
            for cable in range(count):
                self.lay(cable)
        except BaseException:
            self.close()
            raise

    def make_end(self, *words):
        stay = subprocess.Popen([*words, *STAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        self.stays.append(stay)
        if not stay.stdout.readline():
            raise OSError(stay.stderr.read().decode().strip())
        self.ends.append(["nsenter", "--preserve-credentials", "-t", str(stay.pid), "-U", "-n"])

    def tool(self, end, *words):
        subprocess.run([*self.ends[end], *map(str, words)], check=True, capture_output=True)

    def lay(self, cable):
        self.tool(0, "ip", "link", "add", f"cable{cable}", "type", "veth", "peer", "name",
                  f"cable{cable}", "netns", self.stays[1].pid)
        for end in range(2):
            self.tool(end, "ip", "addr", "add", f"10.99.{cable}.{end + 1}/24", "dev",
                      f"cable{cable}")
            self.tool(end, "ip", "link", "set", f"cable{cable}", "up")

    @staticmethod
    def far(cable):
        """The address at the far end."""
        return f"10.99.{cable}.2"

    def cut(self, cable):
        """A queue that has no room for any packet: every kernel has that one."""
        for end in range(2):
            self.tool(end, "tc", "qdisc", "add", "dev", f"cable{cable}", "root", "bfifo",
                      "limit", 1)

    def mend(self, cable):
        for end in range(2):
            self.tool(end, "tc", "qdisc", "del", "dev", f"cable{cable}", "root")

    def close(self):
        for stay in reversed(self.stays):
            stay.communicate()          # which ends it: nothing more to read
