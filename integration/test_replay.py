"""What was delivered is sent again from a real topic to a real target: the same files, and nothing else is touched."""

import json
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import TopicFactory
from integration.harness import Sink, committed
from integration.numbered import numbered, numbers
from integration.replaying import Command, replay
from parquet_sink.addons.devkit.broker import Broker

__all__ = ["replay"]


def files(sink: Sink) -> dict[str, tuple[int, str]]:
    """How often each file of the table came again, and its digest."""
    return {one["name"]: (one["repeated"], one["sha256"]) for one in sink.target.client.files(sink.table)}


def test_what_was_delivered_comes_again_as_the_same_files(
    sink: Sink, broker: Broker, topic: TopicFactory, replay: Command
) -> None:
    """Ranges of two runs, cut as then; the target has each twice more, byte for byte; offsets stay."""
    name = topic(2)
    keys = {"commit_records": 40, "data_primary_key": "n", "embed_kafka_metadata": False}
    properties = sink.properties(name, **keys)
    broker.produce(name, numbered(150))
    sink.drain(name, **keys)
    broker.produce(name, [(None, json.dumps({"n": n, "late": f"x{n}"}).encode()) for n in range(150, 230)])
    sink.drain(name, **keys)
    before, group, rows = files(sink), committed(broker, sink.group, name, 2), sink.rows()
    status, foretold = replay(properties, "--dry-run")
    assert status == 0
    assert sum(one["files"] for one in foretold["ranges"]) == len(before)
    assert {one["by"] for one in foretold["ranges"]} == {"by the history"}
    assert files(sink) == before
    status, found = replay(properties, "--times", "2")
    assert (status, found["same"], found["different"], found["new"]) == (0, 2 * len(before), 0, 0)
    assert files(sink) == {one: (2, digest) for one, (_, digest) in before.items()}
    assert committed(broker, sink.group, name, 2) == group
    assert sink.rows() == rows


def test_beside_the_running_connector(sink: Sink, broker: Broker, topic: TopicFactory, replay: Command) -> None:
    """While it delivers new records the old ones come again, at its share of the time; neither disturbs the other."""
    name = topic()
    run = sink.start(name, commit_records=50)
    broker.produce(name, numbered(200))
    run.until_records(200).until(lambda: sink.offsets(name) == [200])
    broker.produce(name, numbered(100, 200))
    status, found = replay(dict(sink.properties(name, commit_records=50)), "--from", "0", "--to", "199", "--times", "3")
    run.until_records(300).stop()
    assert (status, found["rate"], found["different"], found["new"]) == (0, "25% of the time", 0, 0)
    assert found["same"] == 3 * (found["files"] // 3) > 0
    assert numbers(sink.rows()) == list(range(300))
    assert sum(repeated == 3 for repeated, _ in files(sink).values()) == found["same"] // 3


def test_times_retention_and_another_target(
    sink: Sink, broker: Broker, topic: TopicFactory, producer: Producer, replay: Command, tmp_path: Path
) -> None:
    """Records are chosen by Kafka's timestamps and go where --target says; what Kafka deleted is refused."""
    name = topic(config={"retention.ms": "-1"})
    for n in range(60):
        producer.produce(name, json.dumps({"n": n}).encode(), timestamp=1_700_000_000_000 + 1_000 * n)
    assert producer.flush(20) == 0
    properties = sink.properties(name, commit_records=20)
    (tmp_path / "other").mkdir()
    elsewhere = ["--target", f"directory:{tmp_path / 'other'}"]
    between = ["--since", "2023-11-14T22:13:30Z", "--until", "1700000030000"]
    status, found = replay(properties, *between, *elsewhere)
    assert (status, [(one["first"], one["last"]) for one in found["sent"]]) == (0, [(10, 29)])
    assert len(list((tmp_path / "other").rglob("*.parquet"))) == 1
    assert sink.rows() == []
    assert replay(properties, "--since", "2023-11-15T00:00Z", *elsewhere)[1]["files"] == 0
    _delete(broker, name, 25)
    assert replay(properties, "--from", "10", "--to", "40")[0] == 2
    status, found = replay(properties, "--from", "10", "--to", "40", "--skip-missing")
    assert (status, found["missing"][0]["to"], found["rows"]) == (0, 24, 16)


def _delete(broker: Broker, topic: str, before: int) -> None:
    """As retention does."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(20)
