"""The Spark data source `parquet_sink_source`: both ends of a source connector's query.

A row is the work of one task of the source; the task that writes it polls, sends, and returns how far it got.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit

from parquet_sink.addons.sources.flow.outcome import SourceOutcome, SourceWork
from parquet_sink.addons.sources.flow.reached import SourceReached
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.errors import ConnectorError
from parquet_sink.model.events import Event, RecordsDelivered, SourcePolled
from parquet_sink.model.receipts import Failure
from parquet_sink.process.logs import configure_worker
from parquet_sink.spark import handoff
from parquet_sink.spark.planning_reader import PlanningReader
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import SENT, SLOTS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from parquet_sink.addons.sources.flow.planner import SourcePlanner

NAME: Final = "parquet_sink_source"
_BATCH: Final = "batch"
Given = handoff.Handoff[SourceSettings]

log = logging.getLogger(__name__)


@dataclass
class SourceOutcomes(WriterCommitMessage):
    """What one Spark task sends to the driver."""

    tasks: tuple[SourceOutcome, ...]


class Works(InputPartition):
    """What one Spark task does, one after the other, as JSON."""

    def __init__(self, works: Sequence[str]) -> None:
        super().__init__(None)
        self.works = tuple(works)


class SourceStream(DataSource):
    """Readable and writable by name once `parquet_sink.spark.register` was called."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.handoff: Given = handoff.read(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "work string"

    def streamReader(self, schema: "StructType") -> "SourceReader":
        return SourceReader(self.handoff)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "SourceWriter":
        return SourceWriter(self.handoff)


class SourceReader(PlanningReader):
    """The planner lives in the one beside the driver.

    Its offsets are numbers of micro-batches: where the source stands is what its offset storage says.
    """

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._given = given
        self._planner: SourcePlanner | None = None
        self._planned: tuple[int, list[SourceWork]] = (0, [])

    def initialOffset(self) -> dict[str, Any]:
        with self._failures_recorded():
            self._begun()
        return {_BATCH: 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Asked at each tick, and only when the micro-batch before is done."""
        with self._failures_recorded():
            due = self._begun().tick()
        if not due:
            return start
        self._planned = (int(start[_BATCH]) + 1, due)
        return {_BATCH: self._planned[0]}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        number, due = self._planned
        if int(end[_BATCH]) != number or end == start:
            return []
        slots = max(int(self._opened().get(SLOTS) or 1), 1)
        texts = [one.to_json() for one in due]
        return [Works(texts[index::slots]) for index in range(min(slots, len(texts)))]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        assert isinstance(partition, Works)
        yield pa.RecordBatch.from_pydict({"work": pa.array(partition.works, pa.string())})

    def stop(self) -> None:
        if self._planner is not None:
            self._planner.close()

    def _begun(self) -> "SourcePlanner":
        if self._planner is None:
            from parquet_sink.addons.sources.flow.planner import SourcePlanner  # only in the planner's process
            from parquet_sink.addons.sources.flow.positions import SourcePositions

            settings = self._given.settings
            configure_worker(settings.name)
            planner = SourcePlanner(settings, self._opened(), SourcePositions(settings, self._given.folder))
            planner.begin()
            self._planner = planner
        self._planner.draining = self._draining
        return self._planner

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_given": self._given, "_planner": None, "_planned": (0, [])}


class SourceWriter(DataSourceStreamArrowWriter):
    """Made again for each micro-batch."""

    def __init__(self, given: Given) -> None:
        self._given = given

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> SourceOutcomes:
        """Steps 1 to 6 of `addons.sources.flow.flush`, in a worker process, for all work of one Spark task."""
        from parquet_sink.addons.sources.flow.flush import SourceFlush  # only in workers: planning processes stay small

        configure_worker(self._given.settings.name)
        flush = SourceFlush(self._given.settings)
        works = [text for batch in iterator for text in batch.column("work").to_pylist()]
        return SourceOutcomes(tuple(flush.run(SourceWork.from_json(text)) for text in works))

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Step 7. Raises ConnectorError when a task failed, which ends the query."""
        failure = self._note(messages)
        if failure is not None:
            raise ConnectorError(failure.message)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """A Spark task failed for good: what the others sent counts all the same.

        Spark also calls this after a commit that raised, with the same messages: noting them again changes nothing,
        because equal events are kept once.
        """
        self._note(messages)

    def _note(self, messages: Sequence[Any]) -> Failure | None:
        outcomes = [one for message in messages if isinstance(message, SourceOutcomes) for one in message.tasks]
        failures = [one.failure for one in outcomes if one.failure is not None and not one.away]
        with closing(SqliteStore(self._given.state_path, self._given.state_ids)) as state, state.losses_told():
            if outcomes:
                state.set(SENT, SourceReached.of(outcomes).to_json())
                state.append_events([event for one in outcomes for event in _events(self._given.settings.name, one)])
            for failure in failures:
                state.record_failure(failure)
        return failures[0] if failures else None


def _events(connector: str, one: SourceOutcome) -> Iterator[Event]:
    """What was sent, by topic-partition, and what was polled; nothing of a task that had nothing.

    The same outcome always gives equal events.
    """
    at_s = one.ended_at_s
    for (topic, partition), found in one.delivered.items():
        yield RecordsDelivered(connector, at_s, topic, partition, found.count, found.first, found.last, "Kafka")
    if one.polled:
        yield SourcePolled(
            connector=connector,
            at_s=at_s,
            task=one.task,
            polled=one.polled,
            passed_over=one.passed_over,
            first_fault=one.first_fault,
            polls=one.polls,
            polls_s=one.polls_s,
            longest_poll_s=one.longest_poll_s,
        )
