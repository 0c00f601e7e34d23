"""What a target is: where files go. The push API is one, a folder another.

A target knows how to hand over one file once, and what that came to. Order, retries, receipts and the end of a
connector are the same for all of them, and are not its business (`uploader`, `retry`, `delivery`).
"""

from typing import Final, Protocol

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.process.per_process import PerProcess
from parquet_sink.targets.outcome import Outcome, ProbeResult
from parquet_sink.targets.settings import TargetSettings


class Target(Protocol):
    """Takes files of one connector; threads may share it."""

    @property
    def name(self) -> str:
        """Where files go, for a message: an address or a folder, without secrets."""
        ...

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt to hand over a file under its name, within so many seconds.

        ACCEPTED only when the target has the whole file durably. A file of the same name and content that is there
        already is accepted; one of another content is never silently replaced by half of this one. Leaves the local
        file alone. Raises StorageFailed when the local file cannot be read, and nothing else on purpose.
        """
        ...

    def probe(self, seconds_left: float) -> ProbeResult:
        """Tries whether files would be taken, within so many seconds. Stores nothing. Raises nothing on purpose."""
        ...

    def close(self) -> None:
        """Lets go of what is open. May be called twice."""
        ...


def _open(settings: TargetSettings) -> Target:
    return settings.open()


_targets: Final = PerProcess(_open)


def target_for(settings: TargetSettings) -> Target:
    """The process's target for these settings: opened when there is none, and kept. Raises as `settings.open`."""
    return _targets.get(settings)
