"""The main job on real parts: what is produced arrives, once, with its offsets committed."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from integration.conftest import TopicFactory
from integration.harness import Sink, ends
from integration.numbered import numbered, numbers
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

T0 = 1_700_000_000_000
QUICK_METADATA = {"consumer.override.metadata.max.age.ms": "1000"}


def test_rows_equal_what_was_produced(sink: Sink, broker: Broker, topic: TopicFactory, producer: Producer) -> None:
    """A record is one row with its place in Kafka, a tombstone none, keys and headers change nothing, lag ends at 0."""
    name = topic(2, config={"retention.ms": "-1"})  # the timestamps are old
    for n in range(60):
        value = None if n in (6, 58, 59) else json.dumps({"n": n, "who": {"name": "Ünï", "tags": [n, "x"]}}).encode()
        key = None if n % 3 else b"k"
        producer.produce(name, value, key, partition=n % 2, timestamp=T0 + n, headers=[("h", b"\xff"), ("h", None)])
    assert producer.flush(20) == 0
    run = sink.drain(name)
    assert run.status is Status.DONE
    assert sink.rows() == [
        {
            "n": n,
            "who_name": "Ünï",
            "who_tags": f'[{n},"x"]',
            "kafkaPartition": n % 2,
            "kafkaOffset": n // 2,
            "kafkaTimestamp": T0 + n,
            "kafkaPartitionOffset": f"{n % 2}_{n // 2}",
        }
        for p in (0, 1)
        for n in range(p, 60, 2)
        if n not in (6, 58, 59)
    ]
    assert sink.offsets(name, 2) == ends(broker, name, 2) == [30, 30]


def test_last_value_per_key_is_at_the_target(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """With a primary key, rows carry the offset as order column, and the target keeps the latest of equal keys."""
    name = topic()
    broker.produce(name, [(None, json.dumps({"id": n % 7, "v": n}).encode()) for n in range(100)])
    sink.drain(name, data_primary_key="id", embed_kafka_metadata=False, commit_records=9)
    latest = sorted(sink.rows(), key=lambda row: row["id"])
    assert latest == [{"id": n % 7, "v": n, "__celonis_order": n} for n in (98, 99, 93, 94, 95, 96, 97)]


def test_empty_topic_ends_at_once(sink: Sink, topic: TopicFactory) -> None:
    """Nothing to deliver: no file, and the group stands at the beginning."""
    name = topic(2)
    run = sink.drain(name)
    assert (run.status, run.receipts, sink.offsets(name, 2)) == (Status.DONE, [], [0, 0])


def test_topic_of_tombstones_reaches_lag_0(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Tombstones, and JSON's null, make no file when they are alone, and their offsets are passed."""
    name = topic()
    broker.produce(name, [(b"k", None)] * 4 + [(b"k", b"null")])
    run = sink.drain(name)
    assert (run.status, run.receipts, sink.offsets(name)) == (Status.DONE, [], [5])


def test_several_topics_have_a_schema_each(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """One connector reads several topics; a field that is a number in one and text in the other splits no file."""
    one, two = topic(), topic()
    broker.produce(one, [(None, b'{"a": 1}'), (None, b'{"a": 2}')])
    broker.produce(two, [(None, b'{"b": "x"}'), (None, b'{"b": "y"}')])
    run = sink.drain(f"{one},{two}")
    assert {(r.topic, r.records) for r in run.accepted} == {(one, 2), (two, 2)}
    assert sorted((row["a"] or 0, row["b"] or "") for row in sink.rows()) == [(0, "x"), (0, "y"), (1, ""), (2, "")]
    assert sink.offsets(one) == sink.offsets(two) == [2]


def test_new_topics_and_topic_partitions_are_read_from_their_first_record(
    sink: Sink, broker: Broker, topic: TopicFactory
) -> None:
    """A topic that comes to match, and topic-partitions that are added, are picked up while the connector runs."""
    first = topic(prefix="regex")
    pattern = f"{first}.*"
    properties = {**sink.properties(""), "topics.regex": pattern, **QUICK_METADATA}
    broker.produce(first, numbered(3))
    run = sink.make({k: v for k, v in properties.items() if k != "topics"}).start().until_records(3)
    second = topic(prefix=f"{first}-b")
    broker.produce(second, numbered(4, 100))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(first, 3)])[first].result()
    broker.produce(first, numbered(5, 200), 2)
    run.until_records(12).stop()
    assert sorted(numbers(sink.rows())) == [0, 1, 2, 100, 101, 102, 103, 200, 201, 202, 203, 204]
    assert (sink.offsets(first, 3), sink.offsets(second)) == ([3, 0, 5], [4])


def test_restart_sends_nothing_again(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """After a stop in order the next start goes on with the next record."""
    name = topic()
    broker.produce(name, numbered(10))
    run = sink.start(name).until_records(10).stop()
    assert (run.status, sink.offsets(name)) == (Status.DONE, [10])
    broker.produce(name, numbered(5, 10))
    assert sink.drain(name).records == 5
    assert numbers(sink.rows()) == list(range(15))
    assert sink.target.client.statistics()["repeated"] == 0


def test_offsets_reset_while_stopped_are_honoured(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """`kafka-consumer-groups` shows lag 0, and what it sets is where the next start begins."""
    name = topic()
    broker.produce(name, numbered(10))
    sink.drain(name)
    where = ("--group", sink.group)
    described = broker.consumer_groups("--describe", *where)
    assert [line.split()[1:6] for line in described.splitlines() if name in line] == [[name, "0", "10", "10", "0"]]
    broker.consumer_groups("--reset-offsets", *where, "--topic", name, "--to-offset", "7", "--execute")
    assert sink.drain(name).records == 3
    assert numbers(sink.rows()) == [0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 8, 9, 9]
    assert sink.offsets(name) == [10]


def test_until_caught_up_delivers_what_was_there(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess
) -> None:
    """It ends with what Kafka held at the start, changed schemas in files of their own, and nothing that came later."""
    name = topic()
    broker.produce(name, [*numbered(5), (None, b'{"n": "text"}'), (None, b'{"n": "more"}')])
    target.client.order_faults({"latency_s": 1.0, "next": 1})
    run = sink.make(sink.properties(name), until_caught_up=True).start()
    run.until(lambda: target.client.faults()[0]["fired"] == 1)
    broker.produce(name, numbered(3, 100))
    run.until_ended()
    assert [(r.records, r.reason) for r in run.accepted] == [(5, "schema"), (2, "end_of_input")]
    assert (run.status, sink.offsets(name), ends(broker, name)) == (Status.DONE, [7], [10])


def test_reset_to_latest_begins_at_the_end(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """With auto.offset.reset=latest a group without offsets begins behind what is there."""
    name = topic()
    broker.produce(name, numbered(5))
    run = sink.start(name, {"consumer.override.auto.offset.reset": "latest"}).until(lambda: sink.offsets(name) == [5])
    broker.produce(name, numbered(3, 5))
    run.until_records(3).stop()
    assert numbers(sink.rows()) == [5, 6, 7]


def test_two_connectors_have_targets_of_their_own(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess
) -> None:
    """Two connectors in one session read the same topic, each to its own target with its own key."""
    name = topic()
    broker.produce(name, numbered(4))
    with TargetProcess(authorization="Bearer other") as other:
        own = {"endpoint": other.endpoint("own"), "authorization_key": "Bearer other", "target_table": "other"}
        properties = {**sink.properties(name, **own), "name": f"{sink.name}-other"}
        runs = [sink.make(sink.properties(name)).start(), sink.make(properties).start()]
        for run in runs:
            run.until_records(4)
        for run in runs:
            run.stop()
        other.client.sync()
        assert (other.client.tables(), sink.rows() != []) == ({"other": 4}, True)
    assert target.client.tables() == {sink.table: 4}
    assert sink.offsets(name, group=f"{sink.group}-other") == sink.offsets(name) == [4]


def test_one_task_works_off_all_topic_partitions(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """With tasks.max=1, four topic-partitions share one Spark task, and each has its files."""
    name = topic(4)
    for partition in range(4):
        broker.produce(name, numbered(20, 100 * partition), partition)
    run = sink.drain(name, {"tasks.max": "1"}, commit_records=8)
    assert numbers(sink.rows()) == [100 * p + n for p in range(4) for n in range(20)]
    assert sorted((r.partition, r.records) for r in run.accepted) == [(p, n) for p in range(4) for n in (4, 8, 8)]
    assert sink.offsets(name, 4) == [20, 20, 20, 20]


def test_one_task_fetches_decodes_and_writes_long_ranges_at_once(
    sink: Sink, broker: Broker, topic: TopicFactory
) -> None:
    """Each in a thread of its own, over topic-partitions of many files, an empty one and one with invalid records."""
    name, many, bad = topic(6), 2_500, (0, 1_234, 2_499)
    for partition in (0, 1, 2, 4, 5):
        values = [json.dumps({"n": n}).encode() for n in range(many)]
        for n in bad if partition == 2 else ():
            values[n] = b"no JSON"
        broker.produce(name, [(None, value) for value in values], partition=partition)
    run = sink.drain(name, {"tasks.max": "1", "errors.tolerance": "all"}, commit_records=700)
    assert run.status is Status.DONE
    expected = [(p, n) for p in (0, 1, 2, 4, 5) for n in range(many) if not (p == 2 and n in bad)]
    assert [(row["kafkaPartition"], row["n"]) for row in sink.rows()] == expected
    assert sink.offsets(name, 6) == ends(broker, name, 6) == [many, many, many, 0, many, many]


def test_files_rotate_by_records(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A backlog makes full files, then one with the rest; each says why it was closed and what it holds."""
    name = topic()
    broker.produce(name, numbered(25))
    run = sink.drain(name, commit_records=10)
    assert [(r.first_offset, r.last_offset, r.records, r.reason) for r in run.accepted] == [
        (0, 9, 10, "records"),
        (10, 19, 10, "records"),
        (20, 24, 5, "end_of_input"),
    ]


def test_files_rotate_by_size(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """No file is larger than commit.size.bytes by more than a row group, and most are near to it."""
    name = topic()
    filler = "".join(chr(33 + (i * 7919 + i * i) % 90) for i in range(500)).replace('"', "_").replace("\\", "_")
    broker.produce(name, [(None, json.dumps({"n": n, "t": filler[n:] + str(n * n)}).encode()) for n in range(400)] * 5)
    run = sink.drain(name, commit_size_bytes=100_000, parquet_compression_codec="none")
    sizes = [(r.size_bytes, r.reason) for r in run.accepted]
    assert all(size < 120_000 for size, _ in sizes)
    assert [reason for _, reason in sizes[:-1]] == ["size"] * (len(sizes) - 1)
    assert (len(sizes) > 5, run.records) == (True, 2_000)


def test_files_rotate_by_interval(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A few records on an otherwise idle topic leave when the oldest is old enough, more than once."""
    name = topic()
    run = sink.start(name)
    run.until(lambda: run.looked)
    broker.produce(name, numbered(2))
    run.until_records(2)
    broker.produce(name, numbered(3, 2))
    run.until_records(5).stop()
    assert {r.reason for r in run.accepted} == {"interval"}
    assert numbers(sink.rows()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "none"])
def test_codec_is_as_configured(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess, tmp_path: Path, codec: str
) -> None:
    """Every column of an uploaded file has the codec that was asked for."""
    name = topic()
    broker.produce(name, numbered(100))
    sink.drain(name, parquet_compression_codec=codec)
    [file] = target.client.files()
    target.client.download(file["id"], tmp_path / "file")
    group = pq.read_metadata(tmp_path / "file").row_group(0)
    names = {group.column(index).compression.lower() for index in range(group.num_columns)}
    assert names == {"uncompressed" if codec == "none" else codec}


def test_nested_objects_stay_when_not_flattened(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Without the flattener an object is a column with fields, and a list is JSON text as ever."""
    name = topic()
    broker.produce(name, [(None, b'{"o": {"a": 1, "b": {"c": "x"}}, "l": [1, 2]}')])
    sink.drain(name, flattener_enable=False, embed_kafka_metadata=False)
    assert sink.rows() == [{"o": {"a": 1, "b": {"c": "x"}}, "l": "[1,2]"}]


def test_accepted_files_are_kept_only_when_asked(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """With debug.keep.parquet.files a file stays as <last offset>.parquet; else nothing stays behind."""
    name = topic()
    broker.produce(name, numbered(10))
    sink.drain(name, commit_records=6, debug_keep_parquet_files=True)
    kept = sink.tmp_dir / sink.name / name / "0"
    assert {path.name for path in kept.iterdir()} == {"5.parquet", "9.parquet"}
    broker.produce(name, numbered(10, 10))
    sink.drain(name, commit_records=6)
    assert {path.name for path in kept.iterdir()} == {"5.parquet", "9.parquet"}


def test_files_go_out_with_tokens_that_come_and_go(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Renewed before they end, awaited while there are none; a client that is refused ends the run, and is told."""
    name = topic()
    with TargetProcess(oauth_client="sink:canary:s3cret", token_s=4) as target:
        ems = {"endpoint": target.endpoint(), "oauth2_client_id": "sink", "oauth2_client_secret": "canary:s3cret"}
        keys = sink.properties(name, **ems, max_retries=9)
        del keys["connect.ems.authorization.key"]
        run, rows = sink.make(keys).start(), 0
        while target.client.statistics()["tokens_by_status"].get("200", 0) < 2:
            broker.produce(name, [(None, b'{"n": 1}')] * 10)
            rows += 10
            run.until_records(rows)
        target.client.order_faults({"at": "token", "status": 503, "next": 2})
        target.client.withdraw_tokens()
        broker.produce(name, [(None, b'{"n": 2}')] * 10)
        run.until_records(rows + 10)
        assert {"200", "503"} <= target.client.statistics()["tokens_by_status"].keys()
        target.client.order_faults({"at": "token", "status": 401, "body": '{"error": "invalid_client"}'})
        target.client.withdraw_tokens()
        broker.produce(name, [(None, b'{"n": 3}')])
        run.until_ended()
        assert_says(run.failure.message, "answered 401: invalid_client", "Correct connect.ems.oauth2.client.id")
        assert "connect.ems.oauth2.client.secret" in run.failure.message
        target.client.clear_faults()
        assert sink.make(keys, until_caught_up=True).start().until_ended().status is Status.DONE
        target.client.sync()
        assert target.client.table(sink.table).num_rows == rows + 11
