"""Connectors of one process do not wait for each other's targets."""

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from integration.commands import Command
from integration.conftest import TopicFactory
from integration.scripted_target import ScriptedTarget, hang
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.client import TargetClient
from parquet_sink.addons.devkit.target.process import TargetProcess

PARTITIONS = 11
HEALTHY = 3
ROUNDS = 3


@pytest.fixture
def dead() -> Iterator[ScriptedTarget]:
    """A target that takes every file and never answers."""
    with ScriptedTarget(*[hang] * 1_000) as target:
        yield target


def connector(folder: Path, name: str, endpoint: str, *more: str) -> str:
    """The path of a connector file for the topic of that name, with an interval of a second."""
    lines = (
        f"name={name}\nconnector.class=com.celonis.kafka.connect.ems.sink.EmsSinkConnector\ntopics={name}",
        "value.converter=org.apache.kafka.connect.json.JsonConverter\nvalue.converter.schemas.enable=false",
        f"connect.ems.endpoint={endpoint}\nconnect.ems.authorization.key=AppKey demo\nconnect.ems.target.table={name}",
        "connect.ems.commit.interval.ms=1000\nconnect.ems.commit.records=1000\nconnect.ems.commit.size.bytes=1000000",
        f"connect.ems.tmp.dir={folder / 'files'}\nconnect.ems.stop.timeout.ms=2000",
        *more,
    )
    path = folder / f"{name}.properties"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def delivered(client: TargetClient, name: str, rows: int) -> bool:
    """Whether the table of that name has got so many rows."""
    return sum(int(file["rows"]) for file in client.files(name)) == rows


def asked_more(dead: ScriptedTarget, before: int) -> bool:
    """Whether a further request came to the dead target."""
    return len(dead.requests) > before


@pytest.mark.in_turn
@pytest.mark.timeout(600)
def test_a_dead_target_holds_up_nobody_else(
    broker: Broker, target: TargetProcess, dead: ScriptedTarget, topic: TopicFactory, tmp_path: Path
) -> None:
    """While one connector's eleven topic-partitions wait for a target that never answers, three others deliver.

    Its attempts go on all the while, one Spark slot at most waits for them, and a stop does not.
    """
    stuck, others = topic(PARTITIONS, prefix="stuck"), [topic(2, prefix="well") for _ in range(HEALTHY)]
    for partition in range(PARTITIONS):
        broker.produce(stuck, [(None, b'{"n":1}')] * 5, partition=partition)
    files = [
        connector(
            tmp_path,
            stuck,
            dead.endpoint,
            "connect.ems.http.response.timeout.ms=5000",
            "connect.ems.retry.interval=4000",
        )
    ]
    files += [connector(tmp_path, name, target.endpoint()) for name in others]
    command = Command(tmp_path, ["run", "--no-live", "--bootstrap-servers", broker.bootstrap_servers, *files], {})
    try:
        command.until(lambda: len(dead.requests) > 0)
        with closing(target.client) as client:
            for number in range(1, ROUNDS + 1):
                before = len(dead.requests)
                for name in others:
                    broker.produce(name, [(None, json.dumps({"n": number}).encode())] * number)
                expected = sum(range(1, number + 1))
                for name in others:
                    command.until(partial(delivered, client, name, expected))
                command.until(partial(asked_more, dead, before))
        command.process.terminate()
        assert command.process.wait(120) == 0, command.said[-3_000:]
    finally:
        command.process.kill()
        command.process.wait()
    assert "next attempt in" in command.said
    assert f"connector {stuck}" in command.said
