"""The Spark data source `parquet_sink`: blocks become rows, rows files, files uploads.

The one place where the order of effects is written. For each range [start, end) of a topic-partition:

  1. its blocks arrive in offset order                                  (`kafka.reader`)
  2. records become rows; an invalid one ends the range before it       (`shape.shaper`)
  3. rows become local files; a finished file's footer is verified      (`files.accumulator`)
  4. a file is sent, the next only after this one was accepted          (`upload.uploader`)
  5. the accepted file is removed from the disk                         (`upload.deliver`)
  6. what the range taught and how far it got goes to the driver        (`RangeOutcome`)
  7. the driver notes receipts and accepted offsets, then any failure   (`PushWriter.commit`)
  8. the next tick commits the accepted offsets to the group            (`kafka.stream`, or the program after a failure)

A crash before 4 leaves nothing behind but local files, which the next start removes. A crash between 4 and 8 sends
the same files again, under the same names, with the same rows. Nothing is committed before 4 is done for all below.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from parquet_sink import handoff
from parquet_sink.errors import ConnectorError
from parquet_sink.state import Accepted, Failure, Known, State
from parquet_sink.upload.receipts import Receipt

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NAME = "parquet_sink"


@dataclass(frozen=True)
class RangeOutcome:
    """How far a range got. Everything of it below `accepted_until` (exclusive) is accepted or has no row."""

    topic: str
    partition: int
    end: int
    reason: str
    accepted_until: int
    receipts: tuple[Receipt, ...]
    failure: Failure | None
    learned: Known


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

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "PushWriter":
        state = State(self.handoff.state_path)
        try:
            return PushWriter(self.handoff, state.known())
        finally:
            state.close()


class PushWriter(DataSourceStreamArrowWriter):
    """Made anew for each micro-batch, with what earlier ones taught about each topic."""

    def __init__(self, given: handoff.Handoff, known: Mapping[str, Known]) -> None:
        self._given, self._known = given, dict(known)

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Outcomes:
        """Steps 1 to 6, in a worker process, for all ranges of one Spark task."""
        from parquet_sink.flush import TaskFlush  # only in workers: planning processes stay small

        return Outcomes(TaskFlush(self._given.settings, self._known).run(iterator))

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Step 7. Raises ConnectorError when a range failed, which ends the query."""
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
        state = State(self._given.state_path)
        try:
            state.add_receipts([receipt for one in ranges for receipt in one.receipts])
            state.accept([Accepted(r.topic, r.partition, r.accepted_until, r.end, r.reason) for r in ranges])
            for topic, learned in _together(ranges).items():
                state.learn(topic, learned)
            for failure in failures:
                state.fail(failure)
        finally:
            state.close()
        return failures[0] if failures else None


def _together(ranges: Sequence[RangeOutcome]) -> dict[str, Known]:
    """What the ranges of one micro-batch taught about each topic."""
    together: dict[str, Known] = {}
    for one in ranges:
        before = together.get(one.topic, Known())
        together[one.topic] = Known(
            _merged(before.schema, one.learned.schema),
            one.learned.bytes_per_row or before.bytes_per_row,
            one.learned.bytes_per_record or before.bytes_per_record,
        )
    return together


def _merged(first: bytes | None, second: bytes | None) -> bytes | None:
    """Two schemas in one. Mostly they are equal, or one is missing."""
    if first is None or second is None or first == second:
        return second if first is None else first
    import pyarrow as pa

    from parquet_sink.shape.schema import merge  # rarely needed: this process stays small

    merged = merge(pa.ipc.read_schema(pa.py_buffer(first)), pa.ipc.read_schema(pa.py_buffer(second)))
    return None if merged is None else merged.serialize().to_pybytes()
