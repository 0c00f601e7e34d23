"""One case through the task that the running connector has: real converters, transforms, rows and files, no broker."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow.parquet as pq

from parquet_sink.addons.cases.records import CaseRecord
from parquet_sink.addons.commands.trial import column_text, of_array
from parquet_sink.config.secret import Secret
from parquet_sink.convert.registry.converter import RegistryConverter
from parquet_sink.convert.registry.folder import SCHEME
from parquet_sink.convert.settings import Converter
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files.parquet import FinishedFile
from parquet_sink.files.storage import prepare_connector
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import Header, RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict
from parquet_sink.task.record_steps import steps_for
from parquet_sink.task.task import TaskFlush

Came = dict[str, Any]
"""`files`, `rejected`, and `failed` where the connector would stop: as JSON has them."""
_SALT: Final = Secret("salt")
_BATCH: Final = 1_000
_BYTES: Final = re.compile(r"_bytes-[0-9]+")


@dataclass(frozen=True, eq=False)
class _Kept:
    """A target that keeps what its files hold, by topic-partition and first offset."""

    target_table: str
    files: dict[tuple[str, int, int], Came] = field(default_factory=dict)
    name: str = "a test"

    def open(self) -> "_Kept":
        """As `targets.settings.TargetSettings` says."""
        return self

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """As `targets.settings.Target` says."""
        table = pq.read_table(file.path)
        columns = [of_array(column.combine_chunks()) for column in table.columns]
        self.files[file.topic, file.partition, file.first_offset] = {
            "table": file.table or self.target_table,
            "name": _BYTES.sub("_bytes-N", file.name),
            "columns": [column_text(one) for one in table.schema],
            "rows": [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)],
        }
        return Outcome(Verdict.ACCEPTED, "kept")

    def probe(self, seconds_left: float) -> ProbeResult:
        """It takes all that comes."""
        return ProbeResult(Health.OK, "it keeps what comes")

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class _Diverted:
    """A `RejectPolicy` that takes every record, as with `errors.tolerance=all`."""

    taken: list[Rejected] = field(default_factory=list)
    diverts: bool = True
    needs: RecordParts = field(default_factory=lambda: RecordParts(single=True))

    def decide(self, rejected: Rejected) -> None:
        """It goes on."""
        self.taken.append(rejected)

    def flush(self, planned: PlannedRange) -> None:
        """All is kept."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class _Source:
    records: Sequence[CaseRecord]

    def key(self, index: int) -> bytes | None:
        return self.records[index].key

    def headers(self, index: int) -> tuple[Header, ...] | None:
        return self.records[index].headers

    def timestamp_type(self, index: int) -> str:
        return _timestamp_type(self.records[index])


def came_of(settings: SinkSettings, records: Sequence[CaseRecord], schemas: Path) -> Came:
    """What becomes of the records of a case. schemas: a folder, in place of the registry.

    Raises InvalidConfiguration for a topic that the connector cannot have, and SinkError.
    """
    by_partition: dict[PartitionKey, list[CaseRecord]] = {}
    for one in records:
        by_partition.setdefault((one.topic, one.partition), []).append(one)
    unusable = (settings.why_unusable(topic) for topic in dict.fromkeys(topic for topic, _ in by_partition))
    if problems := [reason for reason in unusable if reason is not None]:
        raise InvalidConfiguration(problems)
    kept, policy = _Kept(settings.target.target_table), _Diverted()

    def read(kafka: KafkaSettings, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        own = by_partition[planned.topic, planned.partition]
        for first in range(0, len(own), _BATCH):
            yield _batch(own[first : first + _BATCH], parts)

    ranges = [
        PlannedRange(topic, partition, own[0].offset, own[-1].offset + 1, "interval", read_ahead=False)
        for (topic, partition), own in sorted(by_partition.items())
    ]
    with TemporaryDirectory(prefix="parquet-sink-test-") as folder:
        own_settings = _here(settings, kept, folder, schemas)
        prepare_connector(folder, settings.name)
        outcomes = TaskFlush(own_settings, steps_for(own_settings, policy), read).run(ranges)
    failed = [one.failure.message for one in outcomes if one.failure is not None]
    rejected = sorted(policy.taken, key=lambda one: (one.topic, one.partition, one.offset))
    return {
        "files": [kept.files[key] for key in sorted(kept.files)],
        "rejected": [_shown(one) for one in rejected],
        **({"failed": failed} if failed else {}),
    }


def _shown(rejected: Rejected) -> Mapping[str, object]:
    return {
        "topic": rejected.topic,
        "partition": rejected.partition,
        "offset": rejected.offset,
        "stage": str(rejected.stage),
        "reason": rejected.reason,
    }


def _here(settings: SinkSettings, target: _Kept, folder: str, schemas: Path) -> SinkSettings:
    """The connector with files in a folder of the test, no archive, schemas of the case and no random salt."""
    shape = settings.shape
    hidden = shape.obfuscation
    if hidden is not None and hidden.random_salt:
        shape = replace(shape, obfuscation=replace(hidden, random_salt=False, salt=_SALT))
    return replace(
        settings,
        target=target,
        files=replace(settings.files, tmp_dir=folder, keep_files=False),
        shape=shape,
        archive=None,
        value=_offline(settings.value, schemas),
        key=settings.key and _offline(settings.key, schemas),
        header=_offline(settings.header, schemas),
    )


def _offline(converter: Converter, schemas: Path) -> Converter:
    if not isinstance(converter, RegistryConverter):
        return converter
    return replace(converter, registry=replace(converter.registry, urls=(f"{SCHEME}{schemas}",)))


def _timestamp_type(record: CaseRecord) -> str:
    return "CreateTime" if record.timestamp else "NoTimestampType"


def _batch(records: Sequence[CaseRecord], parts: RecordParts) -> RecordBatch:
    """What is asked for of some records of one topic-partition."""
    return RecordBatch.of(
        records[0].topic,
        records[0].partition,
        [one.offset for one in records],
        [one.timestamp for one in records],
        [one.value for one in records],
        [one.key for one in records] if parts.keys else None,
        [list(one.headers) for one in records] if parts.headers else None,
        _Source(records) if parts.single else None,
        [_timestamp_type(one) for one in records] if parts.timestamp_types else None,
    )
