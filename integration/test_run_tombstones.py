"""Tombstones as rows on a real broker: the target's table ends as the last state of each key, deletions included."""

import json
import struct
from typing import Any

import pytest

from integration.conftest import TopicFactory
from integration.formats.expected import flat_of
from integration.formats.records import FORMATS
from integration.harness import Sink
from integration.registry import RegistryServer
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

JSON_KEYS = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
}
COUNT = 3_000


def records(count: int, partition: int) -> list[tuple[bytes, bytes | None]]:
    """Half of them tombstones, keys coming again and again; the last of a key decides."""
    found = []
    for n in range(count):
        key = {"id": 1_000 * partition + n * 7 % 97}
        gone = (n * 5 + n // 97) % 2 == 0
        found.append((json.dumps(key).encode(), None if gone else json.dumps({**key, "n": n}).encode()))
    return found


def last_states(produced: list[list[tuple[bytes, bytes | None]]]) -> dict[int, int]:
    """What a table of these records must be: the last value of each key that was not deleted after it."""
    last = {key: value for partition in produced for key, value in partition}
    return {json.loads(value)["id"]: json.loads(value)["n"] for value in last.values() if value is not None}


def states(rows: list[dict[str, Any]]) -> dict[int, int]:
    """The same of rows."""
    return {row["id"]: row["n"] for row in rows}


def test_half_of_the_records_delete(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Two topic-partitions, many files: the table is the last state of each key, and stays so when all comes again."""
    name = topic(2)
    produced = [records(COUNT, partition) for partition in range(2)]
    for partition, found in enumerate(produced):
        broker.produce(name, found, partition)
    properties = {**sink.properties(name, data_primary_key="id", tombstones="row", commit_records=500), **JSON_KEYS}
    run = sink.make(properties, until_caught_up=True).start().until_ended()
    assert run.status is Status.DONE
    wanted = last_states(produced)
    assert 0 < len(wanted) < 2 * 97
    assert states(sink.rows()) == wanted
    assert sum(receipt.rows for receipt in run.accepted) == 2 * COUNT
    assert sink.offsets(name, 2) == [COUNT, COUNT]
    first = [receipt.file_name for receipt in run.accepted]
    sink.remove_files()
    again = {**properties, "consumer.override.group.id": f"again-{sink.name}"}
    repeated = sink.make(again, until_caught_up=True).start().until_ended()
    assert sorted(receipt.file_name for receipt in repeated.accepted) == sorted(first)
    assert states(sink.rows()) == wanted


@pytest.mark.parametrize("format_", ["avro", "protobuf", "json_schema", "xml"])
def test_keys_of_every_format(
    sink: Sink, broker: Broker, topic: TopicFactory, registry: RegistryServer, format_: str
) -> None:
    """A key with the fields of its value deletes its row and no other, whatever types are among the primary keys."""
    name, found = topic(), FORMATS[format_]
    first, second = found.values(registry, name)
    broker.produce(name, [(first, None), (first, first), (second, second), (first, None)])
    columns, rows = flat_of(format_)
    converters = found.properties(registry) | found.properties(registry, "key")
    own = ",".join(column for column in columns if rows[0][column] is not None)
    keys = {"data_primary_key": own, "allow_null_pk": True, "tombstones": "row"}
    assert sink.drain(name, converters, **keys).status is Status.DONE
    left = [{column: row[column] for column in columns} for row in sink.rows()]
    assert [row["kafkaOffset"] for row in sink.rows()] == [2]
    assert left == rows[1:]


def test_only_tombstones(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A topic without a value makes files of keys alone; a value that comes later finds its column."""
    name = topic()
    broker.produce(name, [(struct.pack(">q", n), None) for n in range(5)])
    keys = {"key.converter": "org.apache.kafka.connect.converters.LongConverter"}
    run = sink.start(name, keys, data_primary_key="id", tombstones="row").until_records(5)
    assert sink.rows() == []
    broker.produce(name, [(struct.pack(">q", 3), b'{"id": 3, "v": "x"}'), (struct.pack(">q", 4), b'{"id": 4}')])
    run.until_records(7).stop()
    assert [(row["id"], row["v"], row["__deleted"]) for row in sink.rows()] == [(3, "x", False), (4, None, False)]
    assert {receipt.reason for receipt in run.accepted} == {"interval"}


def test_a_tombstone_that_says_nothing_stops_the_connector(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """What is before it is delivered, nothing is committed past it, and the message names it and the key."""
    name = topic()
    broker.produce(name, [(b'{"id": 1}', b'{"id": 1}'), (b'{"id": 1}', None), (b'"1"', None), (b"2", b'{"id": 2}')])
    run = sink.drain(name, JSON_KEYS, data_primary_key="id", tombstones="row")
    assert run.status is Status.FAILED
    assert_says(run.failure.message, f"topic {name}, topic-partition 0, offset 2: ", "connect.ems.tombstones=row")
    assert_says(run.failure.message, "key's id is a string", "no row can have")
    assert (run.records, sink.offsets(name), sink.rows()) == (2, [2], [])


def test_a_key_that_a_transform_makes(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """What a transform leaves of a key is the key of the row that is deleted."""
    name = topic()
    broker.produce(name, [(b'{"order": 1}', b'{"id": 1}'), (b'{"order": 2}', b'{"id": 2}'), (b'{"order": 1}', None)])
    renamed = {
        **JSON_KEYS,
        "transforms": "rename",
        "transforms.rename.type": "org.apache.kafka.connect.transforms.ReplaceField$Key",
        "transforms.rename.renames": "order:id",
    }
    assert sink.drain(name, renamed, data_primary_key="id", tombstones="row").status is Status.DONE
    assert [row["id"] for row in sink.rows()] == [2]


def test_a_tombstone_that_is_filtered_deletes_nothing(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """What a transform drops has no row, and its offset is committed; a key that a transform takes out is the key."""
    name = topic()
    broker.produce(name, [(b'{"id": 1}', b'{"id": 1}'), (b'{"id": 2}', b'{"id": 2}'), (b'{"id": 1}', None)])
    keys = {
        **JSON_KEYS,
        "transforms": "drop,key",
        "transforms.drop.type": "Filter",
        "transforms.drop.predicate": "gone",
        "predicates": "gone",
        "predicates.gone.type": "RecordIsTombstone",
        "transforms.key.type": "ExtractField$Key",
        "transforms.key.field": "id",
    }
    assert sink.drain(name, keys, data_primary_key="id", tombstones="row").status is Status.DONE
    assert [row["id"] for row in sink.rows()] == [1, 2]
    assert sink.offsets(name) == [3]
    later = {**keys, "transforms": "key", "consumer.override.group.id": f"later-{sink.name}"}
    assert sink.drain(name, later, data_primary_key="id", tombstones="row").status is Status.DONE
    assert [row["id"] for row in sink.rows()] == [2]
