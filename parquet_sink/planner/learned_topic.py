"""What the files of a range depend on, in a topic: whoever has the connector next makes the same files of it.

The topic is compacted, and all connectors of a cluster share it. Each row of the state store's learned tables is a
record, under `NAME/knowledge/ID`, `NAME/planned/TOPIC/PARTITION` or `NAME/sizes/TOPIC`; those of one connector are in
one topic-partition. They are written in the transaction in which offsets are committed and ranges recorded: so what
stands beside an offset (a range) and what that range depends on are there together, or neither.
"""

import base64
import json
import logging
import time
import zlib
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from parquet_sink.errors import BrokerAway, KafkaFailed, KafkaRefused
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.rights import to_write
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.cluster.compacted_topic import CompactedTopic, CompactedTopics
from parquet_sink.kafka.group.fence import Fence, StateRecords
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.state.sqlite import LEARNED_KEYS, LearnedRow, LearnedRows, SqliteStore

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 10.0
READ_S: Final = 30.0
"""A transaction of another connector whose owner died hides what comes after it, until brokers end it: 20 s at most."""
VERSION: Final = 1
"""Of the form of a value. A higher one is of a later version of this program, and passed over."""


def wanted_state_topic(name: str) -> CompactedTopic:
    """Return the topic as a connector makes it, with the brokers' defaults."""
    return CompactedTopic(name, "parquet-sink.state.storage.", "what connectors learned", -1, -1)


def record_key(connector: str, table: str, key: tuple[Any, ...]) -> bytes:
    """Of a row. key: the values of LEARNED_KEYS."""
    return "/".join((connector, table, *map(str, key))).encode()


def record_value(row: LearnedRow) -> bytes:
    """Of a row: its columns by name, bytes as base64."""
    plain = {name: base64.b64encode(one).decode() if isinstance(one, bytes) else one for name, one in row.items()}
    return json.dumps({"version": VERSION, **plain}, separators=(",", ":")).encode()


def rows_in(connector: str, records: Mapping[bytes, bytes]) -> LearnedRows:
    """The rows of a connector among records by key; what is none, or of a later version, is passed over."""
    found: LearnedRows = {table: {} for table in LEARNED_KEYS}
    for key, value in records.items():
        for table, columns in LEARNED_KEYS.items():
            row = _row(value) if key.startswith(f"{connector}/{table}/".encode()) else None
            if row is None or not row.keys() >= {*columns}:
                continue
            own = tuple(row[column] for column in columns)
            if record_key(connector, table, own) == key:  # else of a connector whose name has slashes
                found[table][own] = row
    return found


def _row(value: bytes) -> LearnedRow | None:
    try:
        row = json.loads(value)
        if not isinstance(row, dict) or row.pop("version", None) != VERSION:
            return None
        if isinstance(schema := row.get("schema"), str):
            row["schema"] = base64.b64decode(schema)
    except (ValueError, RecursionError):
        return None
    return row


class LearnedTopic:
    """Of one connector, for one process. kafka: with a fence and a state topic."""

    def __init__(self, connector: str, kafka: KafkaSettings, cluster: KafkaCluster, client_log: ClientLog) -> None:
        assert kafka.owned.state_topic is not None
        self._connector, self._kafka, self._topic = connector, kafka, kafka.owned.state_topic
        self._cluster, self._client_log = cluster, client_log
        self._partition = 0
        self._state: SqliteStore | None = None
        self._sent: LearnedRows = {}

    def load(self, state: SqliteStore) -> None:
        """Has the store know what the topic has; once. To be called when the fence was taken. Raises KafkaFailed."""
        if self._state is not None or not self._is_there():
            return
        found = self._read()
        state.take_learned(found)
        self._state, self._sent = state, found

    def _is_there(self) -> bool:
        """Make the topic in a cluster that does not have it. Return False if that is refused. Raise KafkaFailed."""
        try:
            CompactedTopics(self._kafka, self._client_log).ensure(wanted_state_topic(self._topic))
        except KafkaRefused as error:
            log.warning(
                "connector %s: a worker that takes it over repeats rows in other files. %s", self._connector, error
            )
            return False
        return True

    def changes(self) -> StateRecords:
        """What differs from what the topic has."""
        return self._records_for({} if self._state is None else self._state.learned_rows())

    def forget(self, fence: Fence) -> None:
        """Removes the connector's rows from the topic. Raises KafkaException, KafkaFailed."""
        self._sent = self._read()
        fence.commit([], None, self._records_for({}))

    def _records_for(self, now: LearnedRows) -> StateRecords:
        before = self._sent
        changed: list[tuple[bytes, bytes | None]] = [
            (record_key(self._connector, table, key), record_value(row))
            for table, rows in now.items()
            for key, row in rows.items()
            if before.get(table, {}).get(key) != row
        ]
        changed += [
            (record_key(self._connector, table, key), None)
            for table, rows in before.items()
            for key in rows.keys() - now.get(table, {}).keys()
        ]

        def on_committed() -> None:
            self._sent = now

        return StateRecords(self._topic, self._partition, changed, on_committed, self.failed)

    def _read(self) -> LearnedRows:
        options = client_options.state_options(self._kafka)
        try:
            with closing(client_options.build(Consumer, options, self._client_log)) as consumer:
                self._partition = zlib.crc32(self._connector.encode()) % self._partitions(consumer)
                return rows_in(self._connector, self._records(consumer))
        except KafkaException as error:
            raise self.failed(error.args[0]) from None

    def _partitions(self, consumer: Consumer) -> int:
        found = consumer.list_topics(self._topic, timeout=TIMEOUT_S).topics[self._topic]
        if found.error is not None:
            raise self.failed(found.error)
        return len(found.partitions)

    def _records(self, consumer: Consumer) -> dict[bytes, bytes]:
        """The last value of each key of the connector; without those that are gone."""
        ends, deadline = self._cluster.high_watermarks([(self._topic, self._partition)]), time.monotonic() + READ_S
        if not ends:
            raise BrokerAway(f"{self._what}, topic-partition {self._partition} has no leader.")
        (end,) = ends.values()
        consumer.assign([TopicPartition(self._topic, self._partition, OFFSET_BEGINNING)])
        found: dict[bytes, bytes] = {}
        position, prefix = 0, f"{self._connector}/".encode()
        while position < end:
            if time.monotonic() > deadline:
                raise BrokerAway(
                    f"{self._what}, topic-partition {self._partition}: offsets {position} to {end - 1} could not be "
                    f"read within {READ_S:g} s, because no broker answers, or a transaction goes on there."
                )
            message = consumer.poll(1.0)
            error = None if message is None else message.error()
            if message is None or (error is not None and error.code() in client_errors.PASSING):
                continue
            if error is not None and error.code() != client_options.END_OF_PARTITION:
                raise self.failed(error)
            offset, key, value = message.offset() or 0, message.key() or b"", message.value()
            position = offset if error is not None else offset + 1
            if error is not None or not key.startswith(prefix):
                continue
            found.pop(key, None)
            if value is not None:
                found[key] = value
        return found

    @property
    def _what(self) -> str:
        return f"Topic {self._topic} (parquet-sink.state.storage.topic)"

    def failed(self, error: Any) -> KafkaFailed:
        """The error for one of a broker."""
        if error.code() in client_errors.UNKNOWN:
            return KafkaRefused(
                f"{self._what} is not there. Make it, compacted, or start the worker again, which does."
            )
        return client_errors.failure(error, self._what, cause=self._client_log.cause(), needs=(to_write(self._topic),))


def forget(connector: str, kafka: KafkaSettings) -> None:
    """Removes what the topic has of a connector that is deleted. Raises KafkaFailed."""
    client_log = ClientLog(kafka.whose)
    topic = LearnedTopic(connector, kafka, KafkaCluster(kafka, client_log), client_log)
    fence = Fence(kafka, client_log)
    try:
        fence.take()
        topic.forget(fence)
    except KafkaException as error:
        raise topic.failed(error.args[0]) from None
    finally:
        fence.close()
