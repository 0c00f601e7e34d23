"""The Spark data source `parquet_sink`: takes the ranges that are due, and reports to the driver what became of them.

DataFrames with columns of the user's own are written by `spark.frame_sink`.

What happens to a range, and in which order, is written in `task.task`; here is its last but one step.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from parquet_sink.connectors.kinds import part
from parquet_sink.errors import ConnectorError, Defect
from parquet_sink.model.ranges import Accepted, LearnedSchema, PlannedRange, ValueSizes
from parquet_sink.model.receipts import Failure
from parquet_sink.settings.connector import TopicSettings
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import handoff
from parquet_sink.spark.frame_sink import FrameSaveWriter, FrameStreamWriter, is_frame
from parquet_sink.spark.rows import ranges_in
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.task.outcome import RangeOutcome, events_of, history_of, record_outcomes, sender_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME = "parquet_sink"


@dataclass
class Outcomes(WriterCommitMessage):
    """What one Spark task sends to the driver."""

    ranges: tuple[RangeOutcome, ...]


class PushSink(DataSource):
    """Writable by name once `parquet_sink.spark.register` was called."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.handoff = handoff.read(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "RangeWriter | FrameStreamWriter":
        """Asked twice for each micro-batch, in two long-lived processes: nothing is kept from one to the next."""
        if is_frame(schema):
            return FrameStreamWriter(self.handoff.settings, overwrite)
        writer: RangeWriter = part(self.handoff.settings, "writer")(self.handoff)
        return writer

    def writer(self, schema: "StructType", overwrite: bool) -> FrameSaveWriter:
        return FrameSaveWriter(self.handoff.settings, overwrite)


class RangeWriter(DataSourceStreamArrowWriter):
    """A new one for each micro-batch."""

    def __init__(self, given: handoff.Handoff[TopicSettings]) -> None:
        self._given = given

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Outcomes:
        """In a worker process, for all ranges of one Spark task: all steps but the driver's."""
        ranges = [planned for batch in iterator for planned in ranges_in(batch)]
        outcomes = self._run(ranges)
        if {one.planned for one in outcomes} != set(ranges):  # what is not reported would count as left out
            raise Defect(f"{len(ranges)} ranges were taken, and {len(outcomes)} outcomes came of them")
        return Outcomes(outcomes)

    def _run(self, ranges: Sequence[PlannedRange]) -> tuple[RangeOutcome, ...]:
        raise NotImplementedError

    def _remember(self, outcomes: Sequence[RangeOutcome]) -> None:
        """For those who ask later what was sent; raises nothing."""

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """In the driver's process. Raises ConnectorError when a range failed, which ends the query."""
        failure = self._note(messages)
        if failure is not None:
            raise ConnectorError(failure.message)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """A Spark task failed for good: what the others got accepted counts all the same.

        Spark also calls this after a commit that raised, with the same messages: noting them again changes nothing.
        """
        self._note(messages)

    def _note(self, messages: Sequence[Any]) -> Failure | None:
        ranges = [one for message in messages if isinstance(message, Outcomes) for one in message.ranges]
        failures = [one.failure for one in ranges if one.failure is not None]
        if ranges:
            self._remember(ranges)
        with closing(SqliteStore(self._given.state_path, self._given.state_ids)) as state, state.losses_told():
            state.append_events([event for one in ranges for event in events_of(self._given.settings.name, one)])
            state.record_accepted([_accepted(one) for one in ranges])
            for topic, learned in _together(ranges).items():
                state.learn(topic, learned)
            state.learn_sizes(_sizes(ranges))
            for failure in failures:
                state.record_failure(failure)
        return failures[0] if failures else None


class PushWriter(RangeWriter):
    """Of a sink that writes Parquet files: steps 1 to 8 of `task.task`, and step 9."""

    def __init__(self, given: handoff.Handoff[SinkSettings]) -> None:
        super().__init__(given)
        self._settings = given.settings

    def _run(self, ranges: Sequence[PlannedRange]) -> tuple[RangeOutcome, ...]:
        from parquet_sink.spark.early_events import early_events  # only in workers: planning processes stay small
        from parquet_sink.task.task import TaskFlush

        context = TaskContext.get()
        tried = context is not None and context.attemptNumber() > 0
        with early_events(self._given) as early:
            flush = TaskFlush(self._settings, replans=True, repeated=tried, on_receipt=early.on_receipt)
            return flush.run(ranges)

    def _remember(self, outcomes: Sequence[RangeOutcome]) -> None:
        record_outcomes(history_of(self._settings), sender_of(self._settings), outcomes)


class RecordWriter(RangeWriter):
    """Of a sink that takes records: steps 1 to 6 of `task.record_task`, and step 7."""

    def __init__(self, given: handoff.Handoff[RecordSinkSettings]) -> None:
        super().__init__(given)
        self._settings = given.settings

    def _run(self, ranges: Sequence[PlannedRange]) -> tuple[RangeOutcome, ...]:
        from parquet_sink.task.record_task import RecordTask  # as above

        return RecordTask(self._settings).run(ranges)


def _accepted(one: RangeOutcome) -> Accepted:
    planned = one.planned
    return Accepted(
        topic=planned.topic,
        partition=planned.partition,
        next_offset=one.accepted_until,
        start=planned.start,
        end=planned.end,
        reason=planned.reason,
        again=one.again,
    )


def _together(ranges: Sequence[RangeOutcome]) -> dict[str, LearnedSchema]:
    """What the ranges of one micro-batch taught about each topic."""
    together: dict[str, LearnedSchema] = {}
    for one in ranges:
        before = together.get(one.planned.topic, LearnedSchema())
        together[one.planned.topic] = LearnedSchema(
            _merged(before.schema, one.learned.schema),
            one.learned.bytes_per_row or before.bytes_per_row,
            one.learned.bytes_per_record or before.bytes_per_record,
        )
    return together


def _sizes(ranges: Sequence[RangeOutcome]) -> dict[str, ValueSizes]:
    """Those of each topic in the ranges of one micro-batch that became files as a whole."""
    sums: dict[str, tuple[int, int, float]] = {}
    for one in ranges:
        if (sizes := one.sizes) is not None:
            before = sums.get(one.planned.topic, (0, 0, 0.0))
            sums[one.planned.topic] = (before[0] + sizes[0], before[1] + sizes[1], before[2] + sizes[2])
    return {topic: ValueSizes(values / records, files / records) for topic, (records, values, files) in sums.items()}


def _merged(first: bytes | None, second: bytes | None) -> bytes | None:
    """Two schemas in one. Mostly they are equal, or one is missing."""
    if first is None or second is None or first == second:
        return second if first is None else first
    import pyarrow as pa

    from parquet_sink.rows.schema.topic_columns import merge  # rarely needed: this process stays small

    merged = merge(pa.ipc.read_schema(pa.py_buffer(first)), pa.ipc.read_schema(pa.py_buffer(second)))
    return None if merged is None else merged.serialize().to_pybytes()
