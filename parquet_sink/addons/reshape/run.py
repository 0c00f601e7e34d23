"""Raw files take the way of records from Kafka: decoder, transforms, shape, files, names and target are the same.

One topic-partition after the other, each as one range:

  1. the records of its files are read in offset order, each once           (`addons.reshape.reading`)
  2. they become blocks, however the files cut them                         (`addons.reshape.reading`)
  3. rows, files, the target; rejected records are stopped at or set aside  (`task.task`)

A crash leaves whole files alone. The next run over the same raw files makes the same ones, under the same names.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from parquet_sink.addons.reshape.reading import blocks, merged, tables
from parquet_sink.addons.reshape.spans import RawFile, RawRange
from parquet_sink.files.rotation import Reason
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.record_steps import policy_for, steps_for
from parquet_sink.task.replay import flush_to_the_end
from parquet_sink.task.task import TaskFlush

Progress = Callable[[RawRange, int], None]


@dataclass(frozen=True)
class Reshaped:
    """What became of a topic-partition's records. files: accepted ones. records: read; rejected: of these set aside.

    failure: why it ended there.
    """

    range: RawRange
    files: tuple[Receipt, ...]
    records: int
    rejected: int
    failure: Failure | None = None

    @property
    def resent(self) -> int:
        """Records that were in several files."""
        return 0 if self.failure is not None else self.range.rows - self.records


class Reshape:
    """settings: of a shaped connector, with the target to write to, and the folder for temporary files.

    progress: told how many records of a topic-partition were read. tables: the records of a file.
    """

    def __init__(
        self,
        settings: SinkSettings,
        progress: Progress = lambda one, records: None,
        *,
        tables: Callable[[RawFile], Iterator[pa.Table]] = tables,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._progress, self._tables = settings, progress, tables
        self._sleep, self._monotonic = sleep, monotonic

    def run(self, ranges: Iterable[RawRange]) -> Iterator[Reshaped]:
        """Topic-partition by topic-partition; after a failure nothing more."""
        for one in ranges:
            found = self._range(one)
            yield found
            if found.failure is not None:
                return

    def _range(self, one: RawRange) -> Reshaped:
        def flush(ranges: Sequence[PlannedRange]) -> Sequence[RangeOutcome]:
            steps = steps_for(self._settings, policy_for(self._settings))
            return TaskFlush(self._settings, steps, self._reader(one)).run(ranges)

        planned = PlannedRange(one.topic, one.partition, one.first, one.last + 1, str(Reason.END_OF_INPUT), one.first)
        (outcome,), receipts = flush_to_the_end(flush, [planned], sleep=self._sleep, monotonic=self._monotonic)
        files = tuple(receipt for receipt in receipts if receipt.accepted)
        rejected = 0 if outcome.diverted is None else outcome.diverted.count
        return Reshaped(one, files, outcome.read, rejected, outcome.failure)

    def _reader(self, one: RawRange) -> Callable[[KafkaSettings, PlannedRange, RecordParts], Iterator[RecordBatch]]:
        def read(_kafka: KafkaSettings, planned: PlannedRange, _parts: RecordParts) -> Iterator[RecordBatch]:
            groups = (merged([(file.path, self._tables(file)) for file in group]) for group in one.groups)
            done = 0
            for block in blocks(table for group in groups for table in group):
                yield block
                done += len(block)
                self._progress(one, done)

        return read


def settings_for(settings: SinkSettings, work: str, rejected: str) -> SinkSettings:
    """Of a connector, for its raw files: nothing of it is touched, and Kafka is asked for nothing.

    work: the folder for temporary files. rejected: where records are set aside.
    """
    return replace(
        settings,
        files=replace(settings.files, tmp_dir=work, keep_files=False),
        errors=replace(settings.errors, refused_files=False, dead_letters=None),
        parked=replace(settings.parked, base=rejected),
        history=replace(settings.history, enabled=False),
        archive=None,
        notify=None,
    )
