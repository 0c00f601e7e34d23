"""What tests of the archive make."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from parquet_sink.archive.settings import URL, ArchiveSettings
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.naming import attempt_name, file_name
from parquet_sink.files.rotation import Reason
from parquet_sink.targets.directory.settings import FolderStore
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict

SECONDS = 60.0


def archive_in(folder: Path, connector: str = "orders", *, required: bool = True) -> ArchiveSettings:
    """An archive in a folder `archive` that is made, with files that wait in `waiting`."""
    (folder / "archive").mkdir(exist_ok=True)
    place = FolderStore(str(folder / "archive"), URL)
    return ArchiveSettings(place, connector, str(folder / "waiting"), required, 10_000_000)


def finished(folder: Path, content: bytes = b"content", number: int = 0, topic: str = "orders") -> FinishedFile:
    """The number-th file of a topic-partition, of ten records, with this content."""
    folder.mkdir(exist_ok=True)
    path = folder / attempt_name(sha256(topic.encode()).hexdigest()[:32], number)
    path.write_bytes(content)
    first, last = number * 10, number * 10 + 9
    name = file_name(topic, 0, first, last, len(content), 10)
    file = FinishedFile(str(path), name, topic, 0, first, last, 10, 10, len(content), Reason.SIZE, 0.0, 0.0, None)
    return replace(file, digest=sha256(content).hexdigest())


def stored(folder: Path) -> dict[str, bytes]:
    """All files below, by their path within the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


TAKEN = Outcome(Verdict.ACCEPTED, "", status=200, answer_id="7")


class Taking:
    """A target that answers the same to every file."""

    name = "taking"

    def __init__(self, outcome: Outcome = TAKEN) -> None:
        self.outcome, self.pushed, self.closed = outcome, 0, False

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        self.pushed += 1
        return self.outcome

    def probe(self, seconds_left: float) -> ProbeResult:
        return ProbeResult(Health.OK, "fine")

    def close(self) -> None:
        self.closed = True
