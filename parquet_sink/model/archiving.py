"""What became of a file at an archive: by value, from worker to driver to history."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Archiving:
    """place: the archive, without secrets. at_ms: when it was known, epoch milliseconds.

    cause: why the file is not there, None when it is.
    """

    place: str
    at_ms: int
    cause: str | None = None
