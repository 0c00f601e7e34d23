"""Both data sources by name, from a PySpark program."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from integration.conftest import TopicFactory
from integration.harness import Sink, ends
from integration.numbered import forgotten, numbered, numbers
from parquet_sink import spark as parquet_sink
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import AnotherInstance

WAIT_S = 60.0


def connector_file(sink: Sink, topic: str, folder: Path) -> str:
    """A connector file on disk, as a program is given one."""
    properties = {
        **sink.properties(topic),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    path = folder / "orders.json"
    path.write_text(json.dumps(properties))
    return str(path)


def test_a_program_moves_a_topic_to_the_target(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """Source and sink by name deliver what the command delivers, with the group's offsets."""
    name = topic()
    broker.produce(name, numbered(20))
    parquet_sink.register(sink.spark)
    file = connector_file(sink, name, tmp_path)
    with parquet_sink.connector(file, bootstrap_servers=broker.bootstrap_servers) as options:
        stream = sink.spark.readStream.format("parquet_sink_kafka").options(**options).load()
        writer = stream.writeStream.format("parquet_sink").options(**options)
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        assert query.awaitTermination(int(WAIT_S))
    assert numbers(sink.rows()) == list(range(20))
    assert sink.offsets(name) == ends(broker, name)


def documented(sink: Sink, file: str, options: Mapping[str, str], checkpoint: Path) -> StreamingQuery:
    """The program of docs/how-to/pyspark.md, started."""
    stream = sink.spark.readStream.format("parquet_sink_kafka").options(**options).load()
    writer = stream.writeStream.format("parquet_sink").options(**options)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def once(sink: Sink, broker: Broker, file: str, checkpoint: Path) -> None:
    """One run of the documented program, over a checkpoint that may have been used before."""
    with parquet_sink.connector(file, bootstrap_servers=broker.bootstrap_servers) as options:
        assert documented(sink, file, options, checkpoint).awaitTermination(int(WAIT_S))


def reset(broker: Broker, group: str, topic: str, *to: str) -> None:
    """What an operator does."""
    broker.consumer_groups("--group", group, "--topic", topic, "--reset-offsets", *to, "--execute")


def test_a_kept_checkpoint_is_no_position(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """Over one checkpoint: a second run goes on, and resets of the group, back and forth, are where the next begins."""
    name = topic()
    parquet_sink.register(sink.spark)
    file, checkpoint = connector_file(sink, name, tmp_path), tmp_path / "c"
    broker.produce(name, numbered(10))
    once(sink, broker, file, checkpoint)
    broker.produce(name, numbered(5, 10))
    once(sink, broker, file, checkpoint)
    assert (numbers(sink.rows()), sink.offsets(name)) == (list(range(15)), [15])
    sink.target.client.reset()
    reset(broker, sink.group, name, "--to-offset", "3")
    once(sink, broker, file, checkpoint)
    assert (numbers(sink.rows()), sink.offsets(name)) == (list(range(3, 15)), [15])
    broker.produce(name, numbered(5, 15))
    reset(broker, sink.group, name, "--to-offset", "17")
    once(sink, broker, file, checkpoint)
    assert (numbers(sink.rows()), sink.offsets(name)) == ([*range(3, 15), 17, 18, 19], [20])


def test_a_kept_checkpoint_and_a_topic_made_anew(
    sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """A topic that was deleted and recreated between two runs over one checkpoint is read from its first record."""
    name = topic()
    parquet_sink.register(sink.spark)
    file, checkpoint = connector_file(sink, name, tmp_path), tmp_path / "c"
    broker.produce(name, numbered(10))
    once(sink, broker, file, checkpoint)
    broker.delete_topic(name)
    forgotten(sink, name)
    broker.create_topic(name)
    broker.produce(name, numbered(12, 100))
    once(sink, broker, file, checkpoint)
    assert [row["n"] for row in sink.rows() if row["n"] >= 100] == list(range(100, 112))
    assert sink.offsets(name) == [12]


def test_a_checkpoint_has_no_files_of_checksums(
    sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """Each would cost a program that Java starts for its rights, twice in a micro-batch, and none is ever read."""
    name = topic()
    parquet_sink.register(sink.spark)
    broker.produce(name, numbered(10))
    once(sink, broker, connector_file(sink, name, tmp_path), tmp_path / "c")
    assert numbers(sink.rows()) == list(range(10))
    files = [path.name for path in (tmp_path / "c").rglob("*") if path.is_file()]
    assert files
    assert not [one for one in files if one.endswith(".crc")]


def test_a_micro_batch_that_spark_repeats(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """A failed micro-batch comes again as it was; after a reset the group's offsets decide, and no record is lost."""
    name = topic()
    parquet_sink.register(sink.spark)
    file, checkpoint = connector_file(sink, name, tmp_path), tmp_path / "c"
    broker.produce(name, numbered(3))
    once(sink, broker, file, checkpoint)
    broker.produce(name, [(None, b"no JSON"), *numbered(2, 4)])
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match="offset 3"):
            once(sink, broker, file, checkpoint)
        assert sink.offsets(name) == [3]
    reset(broker, sink.group, name, "--to-offset", "4")
    once(sink, broker, file, checkpoint)
    assert (numbers(sink.rows()), sink.offsets(name)) == ([0, 1, 2, 4, 5], [6])


def test_the_source_alone_gives_records(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """With rows=records each record is a row for any sink, with its key and headers; no secret is among the options."""
    name = topic()
    broker.produce(name, [*numbered(3), (b"k", None)])
    parquet_sink.register(sink.spark)
    file = connector_file(sink, name, tmp_path)
    with parquet_sink.connector(file, bootstrap_servers=broker.bootstrap_servers) as options:
        assert "AppKey" not in str(options)
        source = sink.spark.readStream.format("parquet_sink_kafka").options(**options, rows="records")
        stream = source.option("includeHeaders", "true").load()
        writer = stream.writeStream.format("memory").queryName("records")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        assert query.awaitTermination(int(WAIT_S))
    rows = sink.spark.sql("select * from records order by offset").collect()
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [(name, 0, n) for n in range(4)]
    assert [row["value"] and bytes(row["value"]) for row in rows] == [b'{"n": 0}', b'{"n": 1}', b'{"n": 2}', None]
    assert (bytes(rows[3]["key"]), [row["headers"] for row in rows]) == (b"k", [[]] * 4)


def test_one_connector_runs_once_on_a_machine(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """A program is refused a connector that runs already."""
    file = connector_file(sink, topic(), tmp_path)
    servers: Mapping[str, str] = {"bootstrap_servers": broker.bootstrap_servers}
    with (
        parquet_sink.connector(file, **servers),
        pytest.raises(AnotherInstance),
        parquet_sink.connector(file, **servers),
    ):
        pass
