"""Both data sources by name, from a PySpark program."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.conftest import TopicFactory
from integration.harness import Sink, ends
from integration.test_run_basic import numbered, numbers
from parquet_sink import spark as parquet_sink
from parquet_sink.errors import AnotherInstance
from parquet_sink.kafka.broker import Broker

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


def test_the_source_alone_gives_records(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """With rows=records each record is a row for any sink; nothing secret is among the options."""
    name = topic()
    broker.produce(name, [*numbered(3), (None, None)])
    parquet_sink.register(sink.spark)
    file = connector_file(sink, name, tmp_path)
    with parquet_sink.connector(file, bootstrap_servers=broker.bootstrap_servers) as options:
        assert "AppKey" not in str(options)
        stream = sink.spark.readStream.format("parquet_sink_kafka").options(**options, rows="records").load()
        writer = stream.writeStream.format("memory").queryName("records")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        assert query.awaitTermination(int(WAIT_S))
    rows = sink.spark.sql("select * from records order by offset").collect()
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [(name, 0, n) for n in range(4)]
    assert [row["value"] and bytes(row["value"]) for row in rows] == [b'{"n": 0}', b'{"n": 1}', b'{"n": 2}', None]


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
