"""What a replay sends, worked out before anything is read: ranges, what files they gave the first time, what is gone.

A file depends on all rows before it in its range, so a range that the history knows is read again as a whole, with what
was known when it was planned first; of its files only those are sent that have an offset that was chosen. What the
history does not know is cut anew, by admission's own rules.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from typing import Any

from parquet_sink.addons.replay.copies import Copy, ReplayFile, Span, common, file_of, merged, overlap, taken, without
from parquet_sink.history.records import RangeRecord, UploadRecord
from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import LearnedSchema, PlannedRange
from parquet_sink.planner.admission import due_range, select_batch
from parquet_sink.spark.slots import LEAST_SLOTS


@dataclass(frozen=True)
class Held:
    """What Kafka holds of one topic-partition now: offsets [low, high). topic_id: "" when unknown.

    thinned: whether records between may be gone, as compaction takes them; None when that is not known.
    """

    low: int
    high: int
    topic_id: str = ""
    thinned: bool | None = None


@dataclass(frozen=True)
class Survey:
    """What Kafka said of the topic-partitions that may be chosen.

    held: what Kafka holds. delivered: up to where the group stands, of those with an offset; exclusive.

    since, until: where the times of the selection are, where it has some.
    """

    held: Mapping[PartitionKey, Held]
    delivered: Mapping[PartitionKey, int]
    since: Mapping[PartitionKey, int]
    until: Mapping[PartitionKey, int]


@dataclass(frozen=True)
class ReplayRange:
    """A range to be read. windows: files with an offset in one of them are sent, in order of offsets.

    recorded: whether the history has it, with what was known of the topic; settings_digest, version: of that time.
    expected: the files of the first time that are to be sent. deleted: offsets at its begin that Kafka no longer has.
    thinned: see `Held`. copy: the file of an archive that is sent in its place; nothing of it is read from Kafka then.
    """

    planned: PlannedRange
    windows: tuple[Span, ...]
    recorded: bool = False
    settings_digest: str = ""
    version: str = ""
    expected: tuple[ReplayFile, ...] = ()
    deleted: Span | None = None
    thinned: bool | None = None
    copy: Copy | None = None

    @property
    def key(self) -> PartitionKey:
        return self.planned.topic, self.planned.partition

    @property
    def foretold(self) -> bool:
        """Whether the history says all of what comes out: nothing of it need be read to know."""
        in_kafka = self.recorded and bool(self.expected) and self.deleted is None and self.thinned is False
        return in_kafka or self.copy is not None

    def wants(self, first: int, last: int) -> bool:
        """Whether a file with these offsets, both inclusive, is sent."""
        return any(overlap((first, last + 1), window) for window in self.windows)

    def from_here(self, offset: int) -> "ReplayRange | None":
        """What is left of it when it begins anew at an offset; None when that is nothing."""
        windows = tuple(common((offset, self.planned.end), self.windows))
        if not windows:
            return None
        planned = replace(self.planned, start=offset, accepted=offset)
        left = tuple(one for one in self.expected if one.last >= offset)
        return replace(self, planned=planned, windows=windows, recorded=False, expected=left)


@dataclass(frozen=True)
class Missing:
    """Offsets [start, end) that were chosen and are gone. files, rows: of them by the history, as far as it goes."""

    topic: str
    partition: int
    start: int
    end: int
    files: int = 0
    rows: int = 0

    def __str__(self) -> str:
        files = f"{self.files:,} file{'' if self.files == 1 else 's'}"
        known = f", {files} with {self.rows:,} rows by the history" if self.files else ""
        where = f"topic {self.topic}, topic-partition {self.partition}"
        return f"{where}: offsets {self.start} to {self.end - 1} ({self.end - self.start:,}{known})"


@dataclass(frozen=True)
class ReplayPlan:
    """Ranges in the order of topic-partition and offset. missing: what Kafka no longer has of what was chosen."""

    ranges: tuple[ReplayRange, ...]
    missing: tuple[Missing, ...] = ()

    def by_partition(self) -> dict[PartitionKey, list[ReplayRange]]:
        """The ranges of each topic-partition, in order."""
        found: dict[PartitionKey, list[ReplayRange]] = {}
        for one in self.ranges:
            found.setdefault(one.key, []).append(one)
        return found

    @property
    def offsets_read(self) -> int:
        """How many offsets are read to send all of it once."""
        return sum(one.planned.end - one.planned.start for one in self.ranges)


@dataclass(frozen=True)
class Past:
    """What the history has of one topic-partition: ranges in order of time, and accepted files of the first time."""

    ranges: Sequence[RangeRecord] = ()
    files: Sequence[UploadRecord] = ()


@dataclass(frozen=True)
class Cutting:
    """How ranges are cut that the history does not know. known: what was learned of each topic until now."""

    flush: FlushSettings
    known: Mapping[str, LearnedSchema] = field(default_factory=dict)


NOTHING_PAST = Past()


def make_plan(
    chosen: Mapping[PartitionKey, Sequence[Span]],
    held: Mapping[PartitionKey, Held],
    past: Mapping[PartitionKey, Past],
    cutting: Cutting,
    copies: Mapping[PartitionKey, Sequence[Copy]] | None = None,
) -> ReplayPlan:
    """The ranges that hold what was chosen. chosen: spans of offsets of each topic-partition, all of them in `held`.

    copies: files of an archive, in order of offsets.
    """
    ranges: list[ReplayRange] = []
    missing: list[Missing] = []
    for key in sorted(chosen):
        there, before = held[key], of_topic(past.get(key, NOTHING_PAST), held[key].topic_id)
        mine, wanted = taken(
            merged(chosen[key]), (copies or {}).get(key, ()), there.low, there.thinned, before.ranges, before.files
        )
        gone = common((0, there.low), wanted)
        missing += [_missing(key, span, before) for span in gone]
        found = [_reachable(one, there) for one in _cover(key, wanted, before, cutting, there)]
        reached = [*map(_copied, mine), *(one for one in found if one is not None)]
        ranges += sorted(reached, key=lambda one: one.windows[0])
    return ReplayPlan(tuple(ranges), tuple(missing))


def of_topic(past: Past, topic_id: str) -> Past:
    """What belongs to the topic that has the name now, and not to one that was deleted."""

    def same(one: str) -> bool:
        return not one or not topic_id or one == topic_id

    ranges = [one for one in past.ranges if same(one.topic_id)]
    return Past(ranges, [one for one in past.files if same(one.topic_id)])


def _copied(one: Copy) -> ReplayRange:
    planned = PlannedRange(one.topic, one.partition, *one.span, "archive", accepted=one.first)
    return ReplayRange(planned, (one.span,), recorded=True, expected=(one.file,), copy=one)


def _missing(key: PartitionKey, span: Span, past: Past) -> Missing:
    gone = [one for one in _files(past.files) if overlap(one.span, span)]
    return Missing(*key, *span, len(gone), sum(one.rows for one in gone))


def _files(records: Sequence[UploadRecord]) -> list[ReplayFile]:
    """Each file once, in order of offsets."""
    found = {one.file_name: file_of(one) for one in reversed(records)}
    return sorted(found.values(), key=lambda one: (one.first, one.last))


def _cover(key: PartitionKey, wanted: Sequence[Span], past: Past, cutting: Cutting, held: Held) -> list[ReplayRange]:
    """Ranges of the history where it has them, the latest of several; between them ranges cut anew."""
    left = list(wanted)
    pieces: list[tuple[Span, RangeRecord | None]] = []
    for before in reversed(past.ranges):
        if not left:
            break
        span = (before.start, min(before.end, before.done_until or before.end))
        if before.end <= held.high and (mine := common(span, left)):
            pieces += [(one, before) for one in mine]
            left = without(left, span)
    pieces += [(one, None) for one in left]
    files = _files(past.files)
    found: list[ReplayRange] = []
    for record, windows in _neighbours(sorted(pieces, key=lambda one: one[0])):
        if record is None:
            found += [_with_files(one, files) for span in windows for one in _anew(key, span, cutting, held)]
        else:
            recorded = ReplayRange(record.planned(), windows, True, record.recipe, record.version)
            found.append(_with_files(replace(recorded, thinned=held.thinned), files))
    return found


def _neighbours(
    pieces: Sequence[tuple[Span, RangeRecord | None]],
) -> list[tuple[RangeRecord | None, tuple[Span, ...]]]:
    """Pieces of one range that no other range parts are one, so that it is read once."""
    found: list[tuple[RangeRecord | None, tuple[Span, ...]]] = []
    for span, record in pieces:
        if record is not None and found and found[-1][0] is record:
            found[-1] = (record, (*found[-1][1], span))
        else:
            found.append((record, (span,)))
    return found


def _anew(key: PartitionKey, span: Span, cutting: Cutting, held: Held) -> list[ReplayRange]:
    """The ranges that admission would make of a backlog with as many slots as `run` has; only what Kafka holds."""
    topic, partition = key
    at, end = max(span[0], held.low), min(span[1], held.high)
    known = cutting.known.get(topic, LearnedSchema())
    found: list[ReplayRange] = []
    while at < end:
        due = due_range(at, end, None, known.bytes_per_record, cutting.flush, 0, draining=True)
        assert due is not None
        ((_, _, cut),) = select_batch([(0, (topic, partition, due))], cutting.flush, LEAST_SLOTS)
        planned = PlannedRange(
            topic=topic,
            partition=partition,
            start=at,
            end=cut.end,
            reason=str(cut.reason),
            accepted=at,
            topic_id=held.topic_id,
            known=known,
        )
        found.append(ReplayRange(planned, ((at, cut.end),), thinned=held.thinned))
        at = cut.end
    return found


def _with_files(one: ReplayRange, files: Sequence[ReplayFile]) -> ReplayRange:
    """With those of the first time that lie within the range and are wanted."""
    start, end = one.planned.start, one.planned.end
    begin, behind = (bisect_left(files, offset, key=attrgetter("first")) for offset in (start, end))
    mine = tuple(f for f in files[begin:behind] if f.last < end and one.wants(f.first, f.last))
    return replace(one, expected=mine)


def _reachable(one: ReplayRange, held: Held) -> ReplayRange | None:
    """The range as far as Kafka has it; None when nothing that is wanted is there."""
    planned = one.planned
    windows = tuple(common((held.low, held.high), one.windows))
    if not windows:
        return None
    topic_id = planned.topic_id or held.topic_id
    if planned.start >= held.low:
        return replace(one, planned=replace(planned, topic_id=topic_id), windows=windows)
    deleted = (planned.start, min(held.low, planned.end))
    planned = replace(planned, start=held.low, accepted=held.low, topic_id=topic_id)
    return replace(one, planned=planned, windows=windows, deleted=deleted)


def range_to_dict(one: ReplayRange) -> dict[str, Any]:
    """As JSON has it, for a replay that goes on later."""
    return {
        "planned": one.planned.to_json(),
        "windows": [list(window) for window in one.windows],
        "recorded": one.recorded,
        "recipe": one.settings_digest,
        "version": one.version,
        "expected": [[f.name, f.first, f.last, f.rows, f.records, f.size_bytes, f.digest] for f in one.expected],
        "deleted": one.deleted and list(one.deleted),
        "thinned": one.thinned,
        "copy": one.copy and asdict(one.copy),
    }


def range_from_dict(fields: Mapping[str, Any]) -> ReplayRange:
    """The inverse of `range_to_dict`. Raises ValueError, KeyError or TypeError for anything else."""
    deleted, planned = fields["deleted"], PlannedRange.from_json(fields["planned"])
    return ReplayRange(
        planned,
        tuple((int(start), int(end)) for start, end in fields["windows"]),
        bool(fields["recorded"]),
        str(fields["recipe"]),
        str(fields["version"]),
        tuple(ReplayFile(planned.topic, planned.partition, *one) for one in fields["expected"]),
        None if deleted is None else (int(deleted[0]), int(deleted[1])),
        fields["thinned"],
        None if fields.get("copy") is None else Copy(**fields["copy"]),
    )
