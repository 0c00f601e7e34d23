"""Where a record is: which file has an offset, and what became of it; or why no file has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from parquet_sink.history.records import Origin, RangeRecord, UploadOutcome, UploadRecord
from parquet_sink.history.sqlite import SqliteHistory
from parquet_sink.history.store import HistoryQuery


class Place(StrEnum):
    """What the history tells of an offset."""

    FILE = "file"
    """It is within a file; what became of that, its outcome says."""
    NO_ROW = "no row"
    """All around it is done with, and no file has it."""
    UNDER_WAY = "under way"
    """It is in a range of which only the beginning is accepted so far."""
    LATER = "later"
    """It is behind all that the history has."""
    EARLIER = "earlier"
    """It is before all that the history has."""
    GAP = "gap"
    """The history has something before and behind it, and nothing there."""
    NOTHING = "nothing"
    """The history has nothing of this topic-partition."""


@dataclass(frozen=True)
class Location:
    """Where one offset is. file: for FILE. sent: how often it was accepted. former: whether a newer topic has the name.

    bounds: the lowest and the highest offset that the history has, both inclusive, where it has any. done_until: for
    UNDER_WAY, where what is accepted of the range ends.
    """

    topic: str
    partition: int
    offset: int
    place: Place
    file: UploadRecord | None = None
    sent: int = 0
    former: bool = False
    bounds: tuple[int, int] | None = None
    done_until: int | None = None

    @property
    def delivered(self) -> bool:
        """Whether nothing is to be waited for: the target has it, it has no row, or it is kept aside.

        What was delivered of an earlier topic is not what the one that has the name now has there.
        """
        ended = (UploadOutcome.ACCEPTED, UploadOutcome.PASSED_OVER)
        in_file = self.file is not None and self.file.outcome in ended and not self.former
        return self.place is Place.NO_ROW or in_file

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        about = {"topic": self.topic, "partition": self.partition, "offset": self.offset, "place": str(self.place)}
        rest = {"delivered": self.delivered, "sent": self.sent, "former_topic": self.former}
        bounds = None if self.bounds is None else list(self.bounds)
        file = None if self.file is None else self.file.to_dict()
        return {**about, **rest, "bounds": bounds, "done_until": self.done_until, "file": file}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> "Location":
        """The inverse of `to_dict`. Raises ValueError, KeyError or TypeError for anything else."""
        first, last = found["bounds"] or (0, 0)
        return cls(
            *(found["topic"], found["partition"], found["offset"], Place(found["place"])),
            file=None if found["file"] is None else UploadRecord.from_dict(found["file"]),
            sent=found["sent"],
            former=found["former_topic"],
            bounds=None if found["bounds"] is None else (first, last),
            done_until=found["done_until"],
        )


def locate(history: SqliteHistory, topic: str, partition: int, offset: int) -> Location:
    """Where an offset is, of the topic that has the name now. Raises HistoryUnusable."""
    latest = list(history.ranges(HistoryQuery(topic, partition, newest=1)))
    latest_id = latest[0].topic_id if latest else None
    asked = HistoryQuery.offset(topic, partition, offset)
    files = list(history.files(asked))
    mine = [one for one in files if latest_id in (None, one.topic_id)]
    if mine:
        return _in_file(topic, partition, offset, mine)
    ranges = [one for one in history.ranges(asked) if one.topic_id == latest_id]
    if ranges:
        done = max(one.done_until for one in ranges)
        place = Place.NO_ROW if offset < done else Place.UNDER_WAY
        return Location(topic, partition, offset, place, done_until=None if offset < done else done)
    if files:
        found = _in_file(topic, partition, offset, files)
        return Location(topic, partition, offset, Place.FILE, found.file, found.sent, former=True)
    return _outside(history, topic, partition, offset, latest_id)


def _in_file(topic: str, partition: int, offset: int, files: Sequence[UploadRecord]) -> Location:
    """The last acceptance counts, else what was told last."""
    accepted = _of_one_kind([one for one in files if one.outcome is UploadOutcome.ACCEPTED])
    return Location(topic, partition, offset, Place.FILE, (accepted or files)[-1], len(accepted))


def _of_one_kind(accepted: Sequence[UploadRecord]) -> Sequence[UploadRecord]:
    """Those for the target of the connector, if there are any; a replay may have sent some elsewhere.

    A file of parked records has few of the offsets between its first and its last, so it comes last.
    """
    order = {Origin.RUN: 2, Origin.REPLAY: 1, Origin.PARKED: 0}
    best = max(accepted, key=lambda one: (order[one.origin], one.at_ms), default=None)
    if best is None:
        return []
    parked = best.origin is Origin.PARKED
    return [one for one in accepted if one.target == best.target and (one.origin is Origin.PARKED) == parked]


def _outside(history: SqliteHistory, topic: str, partition: int, offset: int, topic_id: str | None) -> Location:
    of_partition = HistoryQuery(topic, partition)
    files = [one for one in history.files(of_partition) if topic_id in (None, one.topic_id)]
    ranges: list[RangeRecord] = [one for one in history.ranges(of_partition) if one.topic_id == topic_id]
    if not files and not ranges:
        return Location(topic, partition, offset, Place.NOTHING)
    lowest = min([one.first_offset for one in files] + [one.start for one in ranges])
    highest = max([one.last_offset for one in files] + [one.end - 1 for one in ranges])
    place = Place.EARLIER if offset < lowest else Place.LATER if offset > highest else Place.GAP
    return Location(topic, partition, offset, place, bounds=(lowest, highest))
