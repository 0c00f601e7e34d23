"""What `reshape` put into a folder: one empty file for each range, begun before the range's first file is.

So a second run into the folder finds out whether it would mix: other settings, or other raw files of the same offsets,
whose rows would be there twice.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, Self

from parquet_sink.addons.reshape.spans import RawRange
from parquet_sink.files.naming import component
from parquet_sink.files.storage import sync_folder

FOLDER = ".reshaped"


@dataclass(frozen=True)
class Mark:
    """One range in a folder. settings, covered: digests of the connector's settings, and of what the files span."""

    settings: str
    topic: str
    partition: int
    first: int
    last: int
    covered: str

    @classmethod
    def of(cls, settings: str, one: RawRange) -> Self:
        return cls(settings, component(one.topic), one.partition, one.first, one.last, one.digest)

    @classmethod
    def read(cls, name: str) -> Self:
        """The inverse of `name`. Raises ValueError for another name."""
        settings, _, rest = name.partition("_")
        topic, partition, first, last, covered = rest.rsplit("_", 4)
        return cls(settings, topic, int(partition), int(first), int(last), covered)

    @property
    def name(self) -> str:
        return f"{self.settings}_{self.topic}_{self.partition}_{self.first}_{self.last}_{self.covered}"

    def overlaps(self, other: Self) -> bool:
        """Whether both are of one topic-partition, and may share offsets."""
        same = (self.topic, self.partition) == (other.topic, other.partition)
        return same and self.first <= other.last and other.first <= self.last


def why_mixed(there: Iterable[Mark], wanted: Iterable[Mark]) -> str | None:
    """Why ranges cannot join those that are in a folder; None when they can, or are there already."""
    found = list(there)
    for one in wanted:
        if any(other.settings != one.settings for other in found):
            return "it was filled with other settings, or by another version"
        for other in found:
            if one != other and one.overlaps(other):
                where = f"topic {one.topic}, topic-partition {one.partition}"
                shared = f"offsets {other.first} to {other.last}"
                return f"it has {where}, {shared}, of other raw files, so rows would be there twice"
    return None


class Marks(Protocol):
    """What stands in one place that takes files. Any of it raises what that place raises."""

    def read(self) -> list[Mark]: ...
    def in_the_way(self) -> bool:
        """Whether anything is there but marks."""
        ...

    def add(self, marks: Iterable[Mark]) -> None: ...


class MarkFolder:
    """The marks of a folder; it is made where it is not there. All of it raises OSError."""

    def __init__(self, out: str) -> None:
        with suppress(FileExistsError):
            os.mkdir(out)
        self._out, self._folder = out, os.path.join(out, FOLDER)

    def read(self) -> list[Mark]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return [Mark.read(name) for name in names if name.count("_") >= 5]

    def in_the_way(self) -> bool:
        return any(name != FOLDER for name in os.listdir(self._out))

    def add(self, marks: Iterable[Mark]) -> None:
        """For good."""
        os.makedirs(self._folder, exist_ok=True)
        for mark in marks:
            with open(os.path.join(self._folder, mark.name), "ab"):
                pass
        sync_folder(self._folder)
