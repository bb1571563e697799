"""apart.py - a cluster whose members see the shared directory through mounts of their own, which do not
share locks: tests/fuse/local_locks.c."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import cluster
import tap
import weft

HELPER = weft.ROOT / "build" / "tests" / "fuse" / "local_locks"


def requires_mounts():
    if not HELPER.exists():
        tap.skip(f"{HELPER} is not there: built without libfuse?")
    if not shutil.which("fusermount3"):
        tap.skip("fusermount3 is not installed")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as err:
        tap.skip(f"no FUSE here: {err}")


class Mount:
    def __init__(self, directory):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="weft-mount-"))
        self.process = subprocess.Popen([HELPER, directory, self.dir, "-f"],
                                        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        weft.wait_until(lambda: os.path.ismount(self.dir), "the mount")

    def close(self):
        self.process.terminate()
        self.process.wait()
        subprocess.run(["fusermount3", "-uqz", self.dir], check=False)
        self.dir.rmdir()


class Apart(cluster.Cluster):
    """Node N has mount N."""

    def __init__(self, of=2):
        requires_mounts()
        super().__init__(of)
        self.mounts = {}

    def dir_of(self, node):
        if node not in self.mounts:
            self.mounts[node] = Mount(self.shared)
        return self.mounts[node].dir

    def launch(self, node):
        """Start it, and wait for nothing."""
        target = self.target(node)
        target.log.write_text("")
        target.process = target.spawn()
        return target

    def start_alone(self, node):
        """Start it; others do not see it."""
        return self.target(node).start()

    def refused(self, node):
        """It does not start, and says why."""
        target = self.launch(node)
        code = target.process.wait(cluster.UNTIL_S)
        assert code == 1, f"exit status {code}:\n{target.log.read_text()}"
        return target.log.read_text().splitlines()[-1]

    def close(self):
        try:
            super().close()
        finally:
            for mount in self.mounts.values():
                mount.close()
