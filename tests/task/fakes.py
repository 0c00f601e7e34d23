"""What tests of a Spark task share: a target, a reader, and ranges of records. Files are real."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from parquet_sink.config.secret import Secret
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import VALUES_ONLY, RecordBatch, RecordParts
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.task.outcome import RangeOutcome
from tests.spark_task import flushed

SPAN = PlannedRange("orders", 0, 100, 200, "interval", accepted=100)
ONCE = RetrySettings(max_retries=1, retry_interval_ms=1)
SLOW = replace(ONCE, max_retries=3, retry_interval_ms=10_000)
ACCEPTED = Outcome(Verdict.ACCEPTED, "", "", 200)
BAD_FILE = Outcome(Verdict.REFUSED, "the target answered 422", "Correct what the answer names", 422, of_file=True)
REFUSED = Outcome(Verdict.REFUSED, "the target answered 403", "Give the key the right", 403)
UNKNOWN = Outcome(Verdict.UNKNOWN, "no whole answer came in time", "Check the target")


class Target:
    """A fake client: an outcome for each file, in turn, then acceptance. It reads what it accepts."""

    def __init__(self, *outcomes: Outcome | BaseException) -> None:
        self.outcomes = list(outcomes)
        self.rows: list[dict[str, Any]] = []
        self.files: list[FinishedFile] = []

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        outcome = self.outcomes.pop(0) if self.outcomes else ACCEPTED
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome.verdict is Verdict.ACCEPTED:
            self.files.append(file)
            self.rows += pq.ParquetFile(file.path).read().to_pylist()
        return outcome

    @property
    def offsets(self) -> list[int]:
        """Offsets of all accepted rows."""
        return [row["kafkaOffset"] for row in self.rows]


Feed = tuple[PlannedRange, Sequence[RecordBatch | BaseException]]


def part(item: RecordBatch | BaseException, start: int, end: int) -> RecordBatch | BaseException:
    """The records of a batch from `start` to before `end`."""
    if isinstance(item, BaseException):
        return item
    chosen = [index for index, offset in enumerate(item.offsets.to_pylist()) if start <= offset < end]
    columns = (item.offsets, item.timestamps, item.values)
    offsets, stamps, values = ([column[index].as_py() for index in chosen] for column in columns)
    keys, headers = [b"k%d" % offset for offset in offsets], [[("h", b"%d" % offset)] for offset in offsets]
    return RecordBatch.of(item.topic, item.partition, offsets, stamps, values, keys, headers)


Items = Sequence[RecordBatch | BaseException]


class Run:
    """Runs one task over ranges, each with its batches or an error that reading raises; outcomes by topic-partition.

    asked: for what of a record, last. again: what is there when a part of a range is read again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.asked = VALUES_ONLY
        self.again: Callable[[Items], Items] = list
        self._feeds: dict[PlannedRange, Items] = {}

    def __call__(
        self,
        target: Target,
        *feeds: Feed,
        records: int = 1_000,
        retry: RetrySettings = ONCE,
        errors: ErrorSettings | None = None,
        settings: SinkSettings | None = None,
        **options: Any,
    ) -> dict[PartitionKey, RangeOutcome]:
        """records, retry, errors: of the connector, where no settings are given; options: of `flushed`."""
        self._feeds = dict(feeds)
        used = settings or replace(made(self._folder, records, retry), errors=errors or ErrorSettings())
        return flushed(used, [planned for planned, _ in feeds], target=target, read=self._read, **options)

    def _read(self, kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        self.asked = parts
        for item in self._items(kafka, planned):
            if isinstance(item, BaseException):
                raise item
            yield item

    def _items(self, kafka: KafkaSettings, planned: PlannedRange) -> Items:
        if planned in self._feeds:
            return self._feeds[planned]
        assert kafka.lost_offsets == "STOP", "a part of a range is read again, and what is gone must not be passed over"
        mine = (planned.topic, planned.partition, planned.topic_id)
        (items,) = (found for one, found in self._feeds.items() if (one.topic, one.partition, one.topic_id) == mine)
        return [part(item, planned.start, planned.end) for item in self.again(items)]


def made(folder: Path, records: int, retry: RetrySettings = ONCE) -> SinkSettings:
    """A connector whose files take so many records."""
    return SinkSettings(
        "sink",
        KafkaSettings(("orders",), None, "connect-sink", {}),
        FlushSettings(10**9, records, 2_000),
        ShapeSettings(),
        FileSettings(str(folder)),
        PushSettings("http://localhost/", Secret("AppKey k"), "t"),
        retry=retry,
    )


def block(span: PlannedRange, first: int, values: Sequence[bytes | None]) -> RecordBatch:
    """Consecutive records from `first` on."""
    offsets = range(first, first + len(values))
    return RecordBatch.of(span.topic, span.partition, offsets, [1_000] * len(values), values)


def good(count: int) -> list[bytes | None]:
    """So many records of one kind."""
    return [b'{"id":%d}' % number for number in range(count)]


def left(folder: Path) -> list[str]:
    """Local Parquet files that are still there."""
    return sorted(path.name for path in folder.rglob("*") if ".parquet" in path.name and path.is_file())


def wide(number: int) -> bytes:
    """A record that compresses badly, with a column that only some have and a number that is a fraction at times."""
    text = "".join(f"{(number * 2654435761 + i * 40503) % 65521:x}" for i in range(12))
    late = f',"late{number // 900}":"{text}"' if number % 7 == 0 else ""
    amount = f"{number}.5" if number % 11 == 0 else str(number)
    return f'{{"id":{number},"amount":{amount},"text":"{text}"{late}}}'.encode()


CUT = PlannedRange("orders", 0, 0, 4_000, "records")


def cut_blocks(span: PlannedRange, cut: int) -> list[RecordBatch]:
    """The records of a range in blocks of so many."""
    values = [wide(number) for number in range(span.start, span.end)]
    return [block(span, span.start + n, values[n : n + cut]) for n in range(0, len(values), cut)]


def names(target: Target) -> list[str]:
    """Of the files accepted."""
    return [file.name for file in target.files]
