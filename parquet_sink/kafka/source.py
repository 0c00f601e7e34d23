"""The Spark data source `parquet_sink_kafka`: the ranges of the topic-partitions that are due, or their records.

Its options come from `parquet_sink.handoff`; its rows are described in `kafka.rows`. Spark calls `initialOffset`,
`latestOffset` and `partitions` in one long-lived process beside the driver, and `read` in workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from parquet_sink import handoff
from parquet_sink.errors import SinkError
from parquet_sink.kafka import rows
from parquet_sink.kafka.rows import WARM_UP
from parquet_sink.kafka.tasks import by_task
from parquet_sink.logs import configure_worker
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.state import Failure, State

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from parquet_sink.kafka.reader import RangeReader
    from parquet_sink.kafka.stream import Ticker

NAME = "parquet_sink_kafka"
Offset = dict[str, dict[str, list[Any]]]
"""topic -> topic-partition -> [next offset, reason of the range that ended there, its start, number of the micro-batch]

The number makes a range that is tried again something new to Spark, which plans nothing where offsets are the same.
"""
STARTED: Final = "start"
"""The reason that stands beside an offset where no range has ended yet."""

FORM = "rows"
"""The option that chooses between one row for each range and one row for each record."""


class Form(StrEnum):
    """What a row of the source is. The sink takes ranges."""

    RANGES = "ranges"
    RECORDS = "records"


class Work(InputPartition):
    """Ranges that one Spark task takes, one after the other."""

    def __init__(self, ranges: Sequence[PlannedRange]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)


class KafkaRanges(DataSource):
    """Readable by name once `parquet_sink.spark.register` was called."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.handoff = handoff.read(options)
        self.form = Form(options.get(FORM, Form.RANGES))

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return rows.DDL if self.form is Form.RANGES else rows.RECORDS_DDL

    def streamReader(self, schema: "StructType") -> "RangeSource":
        return RangeSource(self.handoff, self.form)


class RangeSource(DataSourceStreamReader, SupportsTriggerAvailableNow):
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
        return _pack({}, {key: [offset, STARTED] for key, offset in start.items()})

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
        ends = {(one.topic, one.partition): [one.end, one.reason, one.start, ticker.batch] for one in due}
        return _pack(start, ends) if due else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if end.get("") != start.get(""):
            slots = int(self._opened().said("slots") or 1)
            return [Work([PlannedRange("", index, 0, 0, WARM_UP)]) for index in range(slots)]
        ticker = self._begun()
        changed = {key: entry for key, entry in _entries(end).items() if _entries(start).get(key) != entry}
        ranges = [ticker.under_way.get(key) or _as_written(key, entry) for key, entry in changed.items()]
        return [Work(pile) for pile in by_task([one for one in ranges if one.start < one.end], ticker.tasks())]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, Work)
        for planned in partition.ranges:
            if self._form is Form.RANGES:
                yield rows.of_range(planned)
            elif planned.reason != WARM_UP:
                yield from map(rows.of_records, self._reader(planned).blocks())

    def _reader(self, planned: PlannedRange) -> "RangeReader":
        """For rows of records; what cannot be read is raised, since no sink of ours would hear of it."""
        from parquet_sink.kafka.reader import RangeReader  # only where records are read

        kafka = self._given.settings.kafka
        topic, partition, topic_id = planned.topic, planned.partition, planned.topic_id
        return RangeReader(kafka, topic, partition, planned.start, planned.end, topic_id)

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


def _entries(offset: Mapping[str, Any]) -> dict[tuple[str, int], list[Any]]:
    return {(t, int(p)): entry for t, partitions in offset.items() if t for p, entry in partitions.items()}


def _flat(offset: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    return {key: entry[0] for key, entry in _entries(offset).items()}


def _as_written(key: tuple[str, int], entry: Sequence[Any]) -> PlannedRange:
    """A range by Spark's offsets alone; empty where none was planned."""
    end, reason, *rest = entry
    return PlannedRange(*key, rest[0] if rest else end, end, reason)


def _pack(start: Mapping[str, Any], changes: Mapping[tuple[str, int], list[Any]]) -> dict[str, Any]:
    packed = {topic: dict(partitions) for topic, partitions in start.items()}
    for (topic, partition), entry in changes.items():
        packed.setdefault(topic, {})[str(partition)] = entry
    return packed
