"""The Spark data source `parquet_sink_kafka`: the ranges of the topic-partitions that are due, or their records.

Its options come from `parquet_sink.spark.handoff`; its rows are described in `spark.rows`. Spark calls `initialOffset`,
`latestOffset` and `partitions` in one long-lived process beside the driver, and `read` in workers.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.events import ConnectorRunning
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.planner.admission import by_task, with_reading
from parquet_sink.process.logs import configure_worker
from parquet_sink.settings.connector import TopicSettings
from parquet_sink.spark import handoff, rows, stream_offsets
from parquet_sink.spark.planning_reader import PlanningReader
from parquet_sink.state.sqlite.store import SqliteStore
from parquet_sink.state.store import BEGUN, SLOTS, STARTED, WARM_UP

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from parquet_sink.planner.planner import Planner

log = logging.getLogger(__name__)

NAME = "parquet_sink_kafka"
FORM = "rows"
"""The option that chooses between one row for each range and one row for each record."""
INCLUDE_HEADERS = "includeHeaders"
"""The option, named as that of Spark's own Kafka source, that adds the records' headers to their rows."""


class Form(StrEnum):
    """What a row of the source is. The sink takes ranges."""

    RANGES = "ranges"
    RECORDS = "records"


class MakePlanner(Protocol):
    """Makes the planner, once for each query and process."""

    def __call__(
        self, settings: TopicSettings, state: SqliteStore, instance: Instance, *, reported: bool
    ) -> "Planner": ...


class ReadRecords(Protocol):
    """Gives the records of a range."""

    def __call__(self, kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterable[RecordBatch]: ...


def planner_beside_the_driver(
    settings: TopicSettings, state: SqliteStore, instance: Instance, *, reported: bool
) -> "Planner":
    """A planner that asks Kafka."""
    from parquet_sink.planner import planner  # only in the planner's process

    return planner.kafka_planner(settings, state, instance, reported=reported)


def records_of(kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterable[RecordBatch]:
    """For rows of records; what cannot be read is raised, since no sink of ours would hear of it."""
    from parquet_sink.kafka.range_reader import RangeReader  # only where records are read

    return RangeReader(
        kafka=kafka,
        topic=planned.topic,
        partition=planned.partition,
        start=planned.start,
        end=planned.end,
        topic_id=planned.topic_id,
        epoch=planned.epoch,
        parts=parts,
    ).batches()


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
        return RangeSource(self.handoff, self.form, RecordParts(keys=True, headers=self.headers))


class RangeSource(PlanningReader):
    """Plans in the process beside the driver, and reads in workers."""

    def __init__(
        self,
        given: handoff.Handoff[TopicSettings],
        form: "Form",
        parts: RecordParts,
        *,
        make_planner: MakePlanner = planner_beside_the_driver,
        read_records: ReadRecords = records_of,
    ) -> None:
        super().__init__(given)
        self._given, self._form, self._parts = given, form, parts
        self._make_planner, self._read_records = make_planner, read_records
        self._planner: Planner | None = None
        self._planned = False
        self._offered: dict[str, Any] | None = None
        self._reading: dict[PartitionKey, int] = {}

    def initialOffset(self) -> dict[str, Any]:
        """Spark asks when it has no checkpoint, up to twice before the first micro-batch ends."""
        with self._failures_recorded():
            self._begun()
        return stream_offsets.first()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Asked at each tick, and only when the micro-batch before is done."""
        state = self._opened()
        with self._failures_recorded():
            planner = self._begun()
            if self._draining:
                planner.drain()
            due = planner.tick(self._done(start))
        if not due and not self._draining and stream_offsets.is_first(start) and state.get(WARM_UP):
            return stream_offsets.warm_up(start)
        if due and not self._planned:
            self._planned = True
            log.debug("start: the first ranges are planned")
        self._offered = stream_offsets.after(start, due) if due else None
        return self._offered or start

    def _done(self, start: Mapping[str, Any]) -> dict[PartitionKey, int]:
        """The ends of the ranges that were read in the micro-batch before, and by this process."""
        ends = {(topic, partition): span.end for topic, partition, span in stream_offsets.ranges(start)}
        return {key: end for key, end in self._reading.items() if ends.get(key) == end}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Asked when a micro-batch begins, and at once for one that an earlier run planned and did not end."""
        slots = int(self._opened().get(SLOTS) or 1)
        if stream_offsets.is_warm_up(end):
            return (
                [Work([PlannedRange("", index, 0, 0, rows.WARM_UP)]) for index in range(slots)] if end != start else []
            )
        due: Sequence[PlannedRange] = []
        with self._failures_recorded():
            planner = self._begun()
            if end == self._offered:
                due = planner.in_flight
            elif end != start:
                due = planner.repeated(stream_offsets.ranges(end))
        self._reading = {(one.topic, one.partition): one.end for one in due}
        return [Work(pile) for pile in with_reading(by_task(due, planner.tasks()), slots, os.cpu_count() or 1)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, Work)
        for planned in partition.ranges:
            if self._form is Form.RANGES:
                yield rows.of_range(planned)
            elif planned.reason != rows.WARM_UP:
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
            "_make_planner": self._make_planner,
            "_read_records": self._read_records,
            "_planner": None,
            "_planned": False,
            "_offered": None,
            "_reading": {},
        }
