"""What is parked, by topic, stage and reason."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.parked.files import ParkedFile
from parquet_sink.parked.selection import Selection

_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
_FILE_NAME: Final = re.compile(r"(?:file )?(?:topic|connector)-\S+?_rows-\d+\.parquet")
_COLUMNS: Final = ("offset", "timestamp", "key", "value", "stage", "reason", "parked_at")


@dataclass
class Group:
    """Records of one topic that have stage and reason in common.

    payload_bytes: of keys and values. offsets: first and last of each topic-partition. timestamps: the first and the
    last of the records', None where none has one; parked_at: likewise.
    """

    topic: str
    stage: str
    reason: str
    records: int = 0
    payload_bytes: int = 0
    offsets: dict[int, tuple[int, int]] = field(default_factory=dict)
    timestamps: tuple[datetime, datetime] | None = None
    parked_at: tuple[datetime, datetime] | None = None

    def add(self, partition: int, found: dict[str, object]) -> None:
        """Adds what one file has of it."""
        self.records += int(str(found["offset_count"]))
        self.payload_bytes += int(str(found["bytes_sum"] or 0))
        first, last = int(str(found["offset_min"])), int(str(found["offset_max"]))
        before = self.offsets.get(partition, (first, last))
        self.offsets[partition] = (min(before[0], first), max(before[1], last))
        self.timestamps = _span(self.timestamps, found["timestamp_min"], found["timestamp_max"])
        self.parked_at = _span(self.parked_at, found["parked_at_min"], found["parked_at_max"])

    def join(self, other: "Group") -> None:
        """Adds another group's records."""
        self.records += other.records
        self.payload_bytes += other.payload_bytes
        for partition, (first, last) in other.offsets.items():
            before = self.offsets.get(partition, (first, last))
            self.offsets[partition] = (min(before[0], first), max(before[1], last))
        self.timestamps = _span(self.timestamps, *(other.timestamps or (None, None)))
        self.parked_at = _span(self.parked_at, *(other.parked_at or (None, None)))


def summarise(files: Iterable[ParkedFile], selection: Selection) -> list[Group]:
    """All chosen records, the most frequent groups of each topic first. Raises OSError or pa.ArrowException."""
    groups: dict[tuple[str, str, str], Group] = {}
    for file in files:
        table = file.read(_COLUMNS)
        table = table.take(pa.array(selection.rows(table), pa.int64()))
        for found in _by_reason(table).to_pylist():
            key = (file.topic, found["stage"], answer_of(found["reason"]))
            groups.setdefault(key, Group(*key)).add(file.partition, found)
    return sorted(groups.values(), key=lambda one: (one.topic, -one.records, one.stage, one.reason))


def answer_of(reason: str) -> str:
    """A reason without names of files: a target that refuses many files for one thing gives one reason."""
    return _FILE_NAME.sub("a file", reason)


def with_years_of_python(table: pa.Table) -> pa.Table:
    """Records' times before the year 1 and after 9999, for which Python has no dates, as the first and the last."""
    at = table.schema.get_field_index("timestamp")
    field = table.schema.field(at)
    first, last = (pa.scalar(one, field.type).cast(pa.int64()) for one in (datetime.min.replace(tzinfo=UTC), _LAST))
    before_last = pc.min_element_wise(table.column(at).cast(pa.int64()), last, skip_nulls=False)
    within = pc.max_element_wise(before_last, first, skip_nulls=False).cast(field.type)
    return table.set_column(at, field, within)


def _by_reason(table: pa.Table) -> pa.Table:
    sizes = [pc.fill_null(pc.binary_length(table.column(name)), 0) for name in ("key", "value")]
    table = with_years_of_python(table.select(["offset", "timestamp", "stage", "reason", "parked_at"]))
    table = table.append_column("bytes", pc.add(*(size.cast(pa.int64()) for size in sizes)))
    wanted = [("offset", "count"), ("bytes", "sum")]
    wanted += [(name, how) for name in ("offset", "timestamp", "parked_at") for how in ("min", "max")]
    return table.group_by(["stage", "reason"]).aggregate(wanted)


def _span(before: tuple[datetime, datetime] | None, first: object, last: object) -> tuple[datetime, datetime] | None:
    if not isinstance(first, datetime) or not isinstance(last, datetime):
        return before
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    return (first, last) if before is None else (min(before[0], first), max(before[1], last))
