"""What Kafka and the target say about the run: looked at while it goes on, and read in full at the end."""

import tempfile
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow.parquet as pq
import requests
from confluent_kafka import Consumer, KafkaException, TopicPartition

from parquet_sink.addons.devkit.demo.proof import PartitionOffsets
from parquet_sink.addons.devkit.target.client import TargetClient
from parquet_sink.errors import DemoFailed

KAFKA_S: Final = 15.0
SYNC_S: Final = 60.0
T = TypeVar("T")


@dataclass(frozen=True)
class ArrivedFile:
    """One file as the target has it, and what stands in it: per row partition, offset, Kafka's timestamp."""

    name: str
    bytes: int
    accepted_at_ms: int
    upsert_state: str
    partitions: Sequence[int]
    offsets: Sequence[int]
    timestamps_ms: Sequence[int]

    @property
    def rows(self) -> int:
        return len(self.offsets)


class ConsumerGroup:
    """Reads a group's committed offsets; never joins the group, never commits."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, "log_level": 0})
        self._all = [TopicPartition(topic, number) for number in range(partitions)]
        self._topic = topic

    def committed(self) -> dict[int, int]:
        """The next offset of each topic-partition as committed, 0 without a commit. Raises DemoFailed."""
        found = self._ask(lambda: self._consumer.committed(self._all, timeout=KAFKA_S))
        return {one.partition: max(one.offset, 0) for one in found}

    def offsets(self) -> tuple[PartitionOffsets, ...]:
        """Committed and end offsets, from the broker. Raises DemoFailed."""
        committed = self.committed()
        return tuple(PartitionOffsets(one.partition, self._end(one), committed[one.partition]) for one in self._all)

    def close(self) -> None:
        self._consumer.close()

    def _end(self, one: TopicPartition) -> int:
        return int(self._ask(lambda: self._consumer.get_watermark_offsets(one, timeout=KAFKA_S, cached=False))[1])

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except KafkaException as error:
            raise DemoFailed(f"Topic {self._topic}: Kafka does not answer: {error.args[0].str()}") from None


@dataclass(frozen=True)
class Totals:
    """The target's sums."""

    files: int
    rows: int


class TargetReader:
    """The target's read-outs. Each raises DemoFailed when the target does not answer."""

    def __init__(self, url: str, table: str) -> None:
        self._client, self._table = TargetClient(url), table

    def totals(self) -> Totals:
        found = _answer(self._client.statistics)
        return Totals(int(found["files"]), int(found["rows"]))

    def files(self) -> list[ArrivedFile]:
        """Every accepted file after it was upserted, downloaded and read."""
        self._upserted()
        with tempfile.TemporaryDirectory(prefix="parquet-sink-demo-files-") as folder:
            path = Path(folder) / "file.parquet"
            return [self._read(file, path) for file in _answer(self._client.files)]

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The whole table, or another one, after every accepted file was upserted. Empty when there is none."""
        table = table or self._table
        self._upserted()
        if table not in _answer(self._client.tables):
            return []
        rows: list[dict[str, Any]] = _answer(lambda: self._client.table(table)).to_pylist()
        return rows

    def close(self) -> None:
        self._client.close()

    def _upserted(self) -> None:
        """Wait until every accepted file is; those that cannot be count as well."""
        try:
            _answer(lambda: self._client.sync(SYNC_S))
        except TimeoutError as error:
            raise DemoFailed(f"The target did not upsert in time: {error}.") from None

    def _read(self, file: Mapping[str, Any], path: Path) -> ArrivedFile:
        _answer(lambda: self._client.download(file["id"], path))
        wanted = ["kafkaPartition", "kafkaOffset", "kafkaTimestamp"]
        columns = [array("q", column.to_pylist()) for column in pq.read_table(path, columns=wanted).columns]
        partitions, offsets, timestamps = columns
        return ArrivedFile(
            file["name"],
            int(file["bytes"]),
            int(file["accepted_at_ms"]),
            str(file["upsert_state"]),
            partitions,
            offsets,
            timestamps,
        )


def _answer(question: Callable[[], T]) -> T:
    try:
        return question()
    except requests.RequestException as error:
        raise DemoFailed(f"The target does not answer: {error}") from None


def waits_ms(files: Sequence[ArrivedFile], *, since_ms: int | None = None, before_ms: int | None = None) -> list[int]:
    """For each row, milliseconds from Kafka's timestamp to the target's acceptance of its file.

    since_ms, before_ms: only records with a Kafka timestamp in this span.
    """
    low, high = since_ms if since_ms is not None else 0, before_ms if before_ms is not None else 1 << 62
    return [file.accepted_at_ms - ms for file in files for ms in file.timestamps_ms if low <= ms < high]
