"""The Spark data source `parquet_sink_kafka`: blocks of records of the topic-partitions that are due.

Its options come from `parquet_sink.handoff`; its rows are described in `kafka.rows`. Spark calls `initialOffset`,
`latestOffset` and `partitions` in one long-lived process beside the driver, and `read` in workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from parquet_sink import handoff
from parquet_sink.errors import ConnectorError, SinkError
from parquet_sink.kafka import rows
from parquet_sink.kafka.rows import WARM_UP, Span
from parquet_sink.kafka.tasks import by_task
from parquet_sink.logs import configure_worker
from parquet_sink.state import Failure, State

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from parquet_sink.kafka.reader import RangeReader
    from parquet_sink.kafka.stream import Ticker

NAME = "parquet_sink_kafka"
Offset = dict[str, dict[str, list[Any]]]
"""topic -> topic-partition -> [next offset, reason of the range that ended there]"""


FORM = "rows"
"""The option that chooses between one row for each block and one row for each record."""


class Form(StrEnum):
    """What a row of the source is. The sink takes blocks."""

    BLOCKS = "blocks"
    RECORDS = "records"


class Work(InputPartition):
    """Ranges that one Spark task reads, one after the other, and the ids of the topics that they belong to."""

    def __init__(self, spans: Sequence[Span], topic_ids: Mapping[str, str]) -> None:
        super().__init__(None)
        self.spans = tuple(spans)
        self.topic_ids = {span.topic: topic_ids.get(span.topic, "") for span in spans}


class KafkaBlocks(DataSource):
    """Readable by name once `parquet_sink.spark.register` was called."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.handoff = handoff.read(options)
        self.form = Form(options.get(FORM, Form.BLOCKS))

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return rows.DDL if self.form is Form.BLOCKS else rows.RECORDS_DDL

    def streamReader(self, schema: "StructType") -> "BlockReader":
        return BlockReader(self.handoff, self.form)


class BlockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One per query and process. What `read` needs is pickled with it; the rest is made where it is used."""

    def __init__(self, given: handoff.Handoff, form: "Form") -> None:
        self._given, self._form = given, form
        self._ticker: Ticker | None = None
        self._state: State | None = None
        self._draining = False

    def initialOffset(self) -> dict[str, Any]:
        with _told(self._opened()):
            start = self._begun().begin()
            self._opened().say("begun", True)
        return _pack({}, [(*key, offset, "start") for key, offset in start.items()])

    def prepareForTriggerAvailableNow(self) -> None:
        self._draining = True

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        state = self._opened()
        if not self._draining and state.said("warm") and not start.get(""):
            return {**start, "": {"0": [1, WARM_UP]}}
        with _told(state):
            ticker = self._begun()
            if self._draining:
                ticker.drain()
            due = ticker.tick(_flat(start))
        return _pack(start, [(t, p, span.end, str(span.reason)) for t, p, span in due]) if due else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if end.get("") != start.get(""):
            slots = int(self._opened().said("slots") or 1)
            return [Work([Span("", index, 0, 0, WARM_UP)], {}) for index in range(slots)]
        before = self._begun().position(_flat(start))
        spans = [
            Span(topic, int(partition), before[topic, int(partition)], offset, reason)
            for topic, partitions in end.items()
            for partition, (offset, reason) in partitions.items()
            if topic and offset > before.get((topic, int(partition)), offset)  # absent: deleted since
        ]
        ids = self._begun().topic_ids
        return [Work(pile, ids) for pile in by_task(spans, self._given.settings.kafka.tasks_max)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, Work)
        for span in partition.spans:
            topic_id = partition.topic_ids[span.topic]
            yield from self._read(span, topic_id) if self._form is Form.BLOCKS else self._read_records(span, topic_id)

    def _opened_range(self, span: Span, topic_id: str) -> "RangeReader":
        from parquet_sink.kafka.reader import RangeReader  # only where records are read

        kafka = self._given.settings.kafka
        return RangeReader(kafka, span.topic, span.partition, span.start, span.end, topic_id)

    def _read(self, span: Span, topic_id: str) -> "Iterator[pa.RecordBatch]":
        if span.reason == WARM_UP:
            yield rows.at_end(span)
            return
        reader = self._opened_range(span, topic_id)
        try:
            for block in reader.blocks():
                yield rows.with_block(span, reader.next_offset, block)
        except ConnectorError as error:
            yield rows.with_problem(span, reader.next_offset, error)
        else:
            yield rows.at_end(span)

    def _read_records(self, span: Span, topic_id: str) -> "Iterator[pa.RecordBatch]":
        """One row for each record; what cannot be read is raised, since no sink of ours would hear of it."""
        if span.reason != WARM_UP:
            yield from map(rows.of_records, self._opened_range(span, topic_id).blocks())

    def stop(self) -> None:
        if self._ticker is not None:
            self._ticker.close()

    def _opened(self) -> State:
        if self._state is None:
            self._state = State(self._given.state_path)
        return self._state

    def _begun(self) -> "Ticker":
        from parquet_sink.kafka.stream import Ticker  # only in the planner's process

        if self._ticker is None:
            configure_worker()
            self._ticker = Ticker(self._given.settings, self._opened(), self._given.instance)
        return self._ticker

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_given": self._given,
            "_form": self._form,
            "_ticker": None,
            "_state": None,
            "_draining": self._draining,
        }


@contextmanager
def _told(state: State) -> Iterator[None]:
    """Leaves what goes wrong within where the program finds it, because Spark turns exceptions into text."""
    try:
        yield
    except SinkError as error:
        state.fail(Failure(type(error).__name__, str(error)))
        raise


def _flat(offset: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    return {(t, int(p)): entry[0] for t, partitions in offset.items() if t for p, entry in partitions.items()}


def _pack(start: Mapping[str, Any], changes: Sequence[tuple[str, int, int, str]]) -> dict[str, Any]:
    packed = {topic: dict(partitions) for topic, partitions in start.items()}
    for topic, partition, offset, reason in changes:
        packed.setdefault(topic, {})[str(partition)] = [offset, reason]
    return packed
