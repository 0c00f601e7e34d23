"""Rows of the disk: full, read-only, vanished, a quota."""

import resource
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from integration.faults.act import Act
from integration.faults.front import Front, kept
from integration.faults.rows import NotRun, Row
from integration.faults.world import Topic, World
from integration.harness import remove_folder
from integration.scripted_target import Connection, accept

TMPFS_BYTES: Final = 8_000_000
QUOTA_BYTES: Final = 200_000
REMOVED: Final = ".state.db was removed while it was in use"


class DiskAct(Act, ABC):
    """`tmp.dir` lies in a folder of its own. What comes after the fault is delivered at the next start."""

    stops = True
    own_sink = True

    @property
    def tmp_dir(self) -> Path:
        return self.world.folder / self.row.slug / "tmp"

    def play(self) -> None:
        self.until_delivered()
        before = self.committed()
        self.fault()
        self.topic.produce(300)
        self.until_failed(*self.words)
        self.must(self.committed() == before, f"offsets were committed: {self.committed()}")
        self.must(any(cause in (self.failed() or "") for cause in self.causes), f"no cause is named: {self.failed()}")
        self.saw("stopped and named the cause, offset kept, delivered at the next start")

    words: tuple[str, ...] = ("connect.ems.tmp.dir",)
    causes: tuple[str, ...] = ()
    """Any of them must be in the last words."""

    @abstractmethod
    def fault(self) -> None:
        """Brings it about."""


class FullAct(DiskAct):
    """A small file system, filled to the last byte."""

    causes = ("No space left on device", "disk is full")

    def prepare(self) -> None:
        self.tmp_dir.parent.mkdir()
        mount("-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(self.tmp_dir.parent))

    def fault(self) -> None:
        with suppress(OSError), self._ballast.open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(4096))

    def between(self) -> None:
        self._ballast.unlink()

    def clean_up(self) -> None:
        unmount(self.tmp_dir.parent)

    @property
    def _ballast(self) -> Path:
        return self.tmp_dir.parent / "ballast"


class ReadOnlyAct(DiskAct):
    """The folder is mounted over itself, read-only."""

    causes = ("Read-only file system", "readonly database")

    def prepare(self) -> None:
        self.tmp_dir.mkdir(parents=True)
        self.fault()
        unmount(self.tmp_dir)

    def fault(self) -> None:
        mount("--bind", str(self.tmp_dir), str(self.tmp_dir))
        mount("-o", "remount,bind,ro", str(self.tmp_dir))

    def between(self) -> None:
        unmount(self.tmp_dir)

    def clean_up(self) -> None:
        unmount(self.tmp_dir)


class VanishedAct(DiskAct):
    """Somebody removes the folder with all that is in it: it is made anew, with a warning, and all goes on."""

    stops = False

    def fault(self) -> None:
        remove_folder(self.tmp_dir)

    def play(self) -> None:
        self.until_delivered()
        self.fault()
        self.topic.produce(300)
        self.until_said(REMOVED)
        self.until_delivered()
        self.saw("warned, created the folder again and went on")


class VanishedUploadAct(VanishedAct):
    """The folder goes after the target has taken a file whole, and before the sink hears of it.

    What became of the file is noted nowhere then. Its range comes again as the same file, under the same name.
    """

    def prepare(self) -> None:
        self._front = Front(int(self.world.target.url.rpartition(":")[2]), [None, None, None, kept(self._answered)])
        self._front.__enter__()

    def _answered(self, connection: Connection) -> None:
        """After the first three files, which are all that is there at the start."""
        self.fault()
        accept(connection)

    @property
    def endpoint(self) -> str:
        return self._front.endpoint

    def play(self) -> None:
        self.until_delivered()
        self.topic.produce(300)
        self.until_said(REMOVED)
        self.until_delivered()
        hit, *later = [(one.name, one.digest) for one in self._front.attempts[3:]]
        self.must(hit in later, f"the file {hit[0]} did not come again as it was: {later}")
        self.saw("warned, created the folder again, sent the same file again and went on")

    def clean_up(self) -> None:
        self._front.__exit__(None, None, None)


class QuotaAct(DiskAct):
    """No file of the sink's processes may be larger than 200 kB: RLIMIT_FSIZE, which needs no rights."""

    causes = ("File too large", "disk I/O error")

    def fault(self) -> None:
        for process in self.program.sink.processes():
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (QUOTA_BYTES, resource.RLIM_INFINITY))

    def make_topic(self) -> Topic:
        made = Topic(self.world.broker, self.name, first=1 << 15)
        made.produce(300)
        return made

    def keys(self) -> Mapping[str, str]:
        return {"connect.ems.commit.records": "100000", "connect.ems.parquet.compression.codec": "none"}

    def play(self) -> None:
        self.until_delivered()
        self.fault()
        self.topic.produce(1_000, large=True)
        self.until_failed(*self.words)
        self.must(any(cause in (self.failed() or "") for cause in self.causes), f"no cause is named: {self.failed()}")
        self.saw("stopped and named the cause, offset kept, delivered at the next start")


def mount(*arguments: str) -> None:
    """Raises NotRun where the machine does not allow it."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotRun(f"the machine does not allow a mount: {done.stderr.strip()}")


def unmount(folder: Path) -> None:
    """Whatever still uses it."""
    subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


def acts(world: World) -> list[Act]:
    """The rows of this part."""
    return [
        FullAct(Row("disk", "disk full", "a tmpfs of 8 MB, while running"), world),
        QuotaAct(Row("disk", "file size limit", "RLIMIT_FSIZE, while running"), world),
        ReadOnlyAct(Row("disk", "tmp.dir read-only", "while running"), world),
        VanishedAct(Row("disk", "tmp.dir vanished", "while running"), world),
        VanishedUploadAct(Row("disk", "tmp.dir vanished", "before an upload is noted"), world),
    ]
