"""The Spark data source `parquet_sink_kafka`: the ranges of the topic-partitions that are due, or their records.

Its options come from `parquet_sink.spark.handoff`; its rows are described in `spark.rows`. Spark calls `initialOffset`,
`latestOffset` and `partitions` in one long-lived process beside the driver, and `read` in workers.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from parquet_sink.files.rotation import Reason
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.events import ConnectorRunning
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner.admission import Candidate, Range, by_task, tick_ms, with_reading
from parquet_sink.process.logs import configure_worker
from parquet_sink.settings.connector import TopicSettings
from parquet_sink.spark import handoff, rows
from parquet_sink.spark.planning_reader import PlanningReader
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import BEGUN, SLOTS, STARTED, WARM_UP

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from parquet_sink.model.records import RecordBatch, RecordParts
    from parquet_sink.planner.planner import Planner

    ReadRecords = Callable[[KafkaSettings, PlannedRange, RecordParts], Iterable[RecordBatch]]
    """Gives the records of a range."""

log = logging.getLogger(__name__)

NAME = "parquet_sink_kafka"
FORM = "rows"
"""The option that chooses between one row for each range and one row for each record."""
INCLUDE_HEADERS = "includeHeaders"
"""The option, named as that of Spark's own Kafka source, that adds the records' headers to their rows."""

_NUMBER: Final = "batch"
_RANGES: Final = "ranges"
_WARM_UP: Final = "warm-up"
# What Spark keeps as an offset of the source: the number of a micro-batch, and the ranges that it reads.
#
# Spark only asks whether two offsets are equal. Over a kept checkpoint it never asks for an initial one, and may ask
# for the partitions of a micro-batch that an earlier run planned before it asks for anything else. So they need not say
# where topic-partitions stand, which Spark's checkpoint cannot know: the group's offsets say that, and they may have
# been set back, or belong to a recreated topic, since an offset was kept. The number makes each micro-batch another
# one, also when a range comes again.
Offset = dict[str, Any]
"""{"batch": number, "ranges": {topic: {topic-partition: [start, end, reason]}}}"""


class Form(StrEnum):
    """What a row of the source is. The sink takes ranges."""

    RANGES = "ranges"
    RECORDS = "records"


MakePlanner = Callable[..., "Planner"]
"""Makes the planner, once for each query and process: `planner_beside_the_driver`, or a double of it."""


def planner_beside_the_driver(
    settings: TopicSettings, state: SqliteStore, instance: Instance, *, reported: bool
) -> "Planner":
    """A planner that asks Kafka."""
    from parquet_sink.planner import planner  # only in the planner's process

    return planner.kafka_planner(settings, state, instance, reported=reported)


def records_of(kafka: KafkaSettings, planned: PlannedRange, parts: "RecordParts") -> "Iterable[RecordBatch]":
    """For rows of records; what cannot be read is raised, since no sink of ours would hear of it."""
    from parquet_sink.kafka.range_reader import RangeReader, require_values  # only where records are read

    reader = RangeReader(
        kafka=kafka,
        topic=planned.topic,
        partition=planned.partition,
        start=planned.start,
        end=planned.end,
        topic_id=planned.topic_id,
        epoch=planned.epoch,
        parts=parts,
    )
    return require_values(reader.batches())


class Work(InputPartition):
    """Ranges that one Spark task takes, one after the other."""

    def __init__(self, ranges: Sequence[PlannedRange]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


class KafkaRanges(DataSource):
    """Readable by name once `parquet_sink.spark.register` was called."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.handoff: handoff.Handoff[TopicSettings] = handoff.read(options)
        self.form = Form(options.get(FORM, Form.RANGES))
        self.headers = options.get(INCLUDE_HEADERS, "false").lower() == "true"

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        if self.form is Form.RANGES:
            return rows.DDL
        return rows.HEADERS_DDL if self.headers else rows.RECORDS_DDL

    def streamReader(self, schema: "StructType") -> "RangeSource":
        from parquet_sink.model.records import RecordParts  # loads Arrow, which the program does without

        return RangeSource(self.handoff, self.form, RecordParts(keys=True, headers=self.headers))


class RangeSource(PlanningReader):
    """Plans in the process beside the driver, and reads in workers."""

    def __init__(
        self,
        given: handoff.Handoff[TopicSettings],
        form: "Form",
        parts: "RecordParts",
        *,
        make_planner: MakePlanner = planner_beside_the_driver,
        read_records: "ReadRecords" = records_of,
    ) -> None:
        super().__init__(given)
        self._given, self._form, self._parts = given, form, parts
        self._half_tick_s = tick_ms(given.settings.flush) / 2_000
        self._make_planner, self._read_records = make_planner, read_records
        self._planner: Planner | None = None
        self._planned = False
        self._offered: dict[str, Any] | None = None
        self._reading: dict[PartitionKey, int] = {}

    def initialOffset(self) -> dict[str, Any]:
        """Spark asks when it has no checkpoint, up to twice before the first micro-batch ends."""
        with self._failures_recorded():
            self._begun()
        return _first()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Asked at each tick, and only when the micro-batch before is done; where nothing is due it looks once more."""
        state = self._opened()
        with self._failures_recorded():
            planner = self._begun()
            if self._draining:
                planner.drain()
            due = planner.tick(self._done(start))
            if not due and not self._draining and not _is_first(start) and planner.fills(self._half_tick_s):
                due = planner.tick({})
        if not due and not self._draining and _is_first(start) and state.get(WARM_UP):
            return _warm_up(start)
        if due and not self._planned:
            self._planned = True
            log.debug("start: the first ranges are planned")
        self._offered = _after(start, due) if due else None
        return self._offered or start

    def _done(self, start: Mapping[str, Any]) -> dict[PartitionKey, int]:
        """The ends of the ranges that were read in the micro-batch before, and by this process."""
        ends = {(topic, partition): span.end for topic, partition, span in _ranges(start)}
        return {key: end for key, end in self._reading.items() if ends.get(key) == end}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Asked when a micro-batch begins, and at once for one that an earlier run planned and did not end."""
        slots = int(self._opened().get(SLOTS) or 1)
        if _is_warm_up(end):
            return (
                [Work([PlannedRange("", index, 0, 0, rows.WARM_UP)]) for index in range(slots)] if end != start else []
            )
        due: Sequence[PlannedRange] = []
        with self._failures_recorded():
            planner = self._begun()
            if end == self._offered:
                due = planner.in_flight
            elif end != start:
                due = planner.repeated(_ranges(end))
        self._reading = {(one.topic, one.partition): one.end for one in due}
        return [Work(pile) for pile in with_reading(by_task(due, planner.tasks()), slots, os.cpu_count() or 1)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, Work)
        if self._form is Form.RANGES:
            for at in range(0, len(partition.ranges), rows.TOGETHER):
                yield rows.of_ranges(partition.ranges[at : at + rows.TOGETHER])
            return
        for planned in partition.ranges:
            if planned.reason != rows.WARM_UP:
                found = self._read_records(self._given.settings.kafka, planned, self._parts)
                yield from map(rows.of_records, found)

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()

    def _begun(self) -> "Planner":
        """Begins where the group's offsets say, once for each query: Spark's checkpoint is no position."""
        if self._planner is None:
            settings, to_sink = self._given.settings, self._form is Form.RANGES
            configure_worker(settings.name)
            planner = self._make_planner(settings, self._opened(), self._given.instance, reported=to_sink)
            planner.begin(settings.errors.dead_letters if to_sink else None)
            self._planner = planner
            self._opened().set(STARTED, True)
            self._opened().set(BEGUN, True)
            self._opened().append_events([ConnectorRunning(settings.name, time.time())])
            log.debug("start: the topic-partitions are known")
        return self._planner

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {
            "_given": self._given,
            "_form": self._form,
            "_parts": self._parts,
            "_half_tick_s": self._half_tick_s,
            "_make_planner": self._make_planner,
            "_read_records": self._read_records,
            "_planner": None,
            "_planned": False,
            "_offered": None,
            "_reading": {},
        }


def _first() -> Offset:
    """Before the first micro-batch."""
    return {_NUMBER: 0, _RANGES: {}}


def _warm_up(start: Mapping[str, Any]) -> Offset:
    """The micro-batch after `start`, that only loads and compiles everything."""
    return {_NUMBER: _number(start) + 1, _RANGES: {}, _WARM_UP: True}


def _is_warm_up(offset: Mapping[str, Any]) -> bool:
    """Whether the micro-batch that ends at this offset is one of `_warm_up`."""
    return offset.get(_WARM_UP) is True


def _is_first(offset: Mapping[str, Any]) -> bool:
    """Whether no micro-batch came before this offset."""
    return _number(offset) == 0


def _after(start: Mapping[str, Any], due: Sequence[PlannedRange]) -> Offset:
    """The micro-batch after `start`, of the ranges that are due."""
    ranges: dict[str, dict[str, list[Any]]] = {}
    for one in due:
        ranges.setdefault(one.topic, {})[str(one.partition)] = [one.start, one.end, one.reason]
    return {_NUMBER: _number(start) + 1, _RANGES: ranges}


def _ranges(offset: Mapping[str, Any]) -> list[Candidate]:
    """The ranges that the micro-batch which ends at this offset reads; none for offsets of earlier versions."""
    if _number(offset) == 0:
        return []
    return [
        (topic, int(partition), Range(start, end, Reason(reason)))
        for topic, partitions in offset[_RANGES].items()
        for partition, (start, end, reason) in partitions.items()
    ]


def _number(offset: Mapping[str, Any]) -> int:
    """0 also for offsets of earlier versions, whose keys are topics."""
    found = offset.get(_NUMBER)
    return found if isinstance(found, int) else 0
