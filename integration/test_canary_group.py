"""Secrets stay where they belong in a group of workers: none in what they say, keep, or write to their topics."""

import base64
import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from integration.canary_scene import (
    NAMES,
    OURS,
    Scene,
    at_the_target,
    delivered,
    failed,
    in_kafka,
    produce,
    serves,
    staged,
)
from integration.commands import Command
from integration.conftest import TopicFactory
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from tests.messages import assert_says

FILES: Final = {*OURS, "refused.properties", "sealed.properties", "beside.properties", "sealing"}
TOPICS: Final = ("configs", "status", "state")


@pytest.fixture
def scene(broker: Broker, topic: TopicFactory, tmp_path: Path) -> Iterator[Scene]:
    """See `staged`."""
    with staged(broker, topic, tmp_path) as made:
        yield made


@pytest.mark.in_turn(seconds=100)
def test_no_secret_is_in_the_group_s_topics_or_said(scene: Scene) -> None:
    """Passwords in the clear are refused, or sealed: by the leader, to which another worker sends them on by TLS.

    Connectors deliver, move to a worker that joins, and one fails with words that quote its secret.
    """
    beside, group = replace(scene, port=free_port()), f"group-{scene.topics[0]}"
    write_files(scene, beside, group)
    with ExitStack() as stack:
        refusing = started(stack, scene, "refused")
        shown = [scene.ask("GET", "/workers")]
        refusing.until(lambda: leads(scene, scene))
        other = started(stack, beside, "beside")
        other.until(lambda: '"leads":true' in beside.ask("GET", "/workers"))
        told = beside.ask("POST", "/connectors", scene.configuration("by-key"), 400)
        assert_says(told, "[transforms.sealed.key]", "password in the clear")
        refusing.send()
        assert refusing.ended() == 0
        other.until(lambda: leads(beside, beside))
        produce(scene, 0)
        shown += [told, *(beside.ask("POST", "/connectors", scene.configuration(name), 201) for name in NAMES)]
        other.until(lambda: delivered(scene, 5))
        joined = started(stack, scene, "sealed")
        joined.until(lambda: all(count == 1 for count in loads(scene)))
        shown.append(scene.ask("POST", "/connectors", scene.configuration("by-code"), 201))
        produce(scene, 5)
        joined.until(lambda: delivered(scene, 10) and failed(scene, "by-code"))
        paths = (
            "/workers",
            "/progress",
            "/metrics",
            "/connectors?expand=info&expand=status",
            "/connectors/by-code/status",
        )
        shown += [one.ask("GET", path) for one in (scene, beside) for path in paths]
        for command in (other, joined):
            command.send()
            assert command.ended() == 0
        said = "".join(command.said for command in (refusing, other, joined))
    written = {name: "".join(records(scene.broker, f"{group}-{name}")) for name in TOPICS}
    assert written["configs"].count("${sealed:first:") >= 5
    assert "RuntimeError: ***** does not open this" in said
    assert '"state":"FAILED"' in written["status"]
    assert all(f"{name}/" in written["state"] for name in NAMES)
    leaks = {
        "answers": scene.canaries.within("".join(shown)),
        "log lines": scene.canaries.within(said),
        **{f"the {name} topic": scene.canaries.within(text) for name, text in written.items()},
        "files for all": scene.canaries.open_to_others(scene.folder / "store", scene.folder),
        "files": scene.canaries.below(scene.folder, lambda path: path.name in FILES),
        "Kafka": in_kafka(scene),
        "the target": at_the_target(scene),
    }
    assert not any(leaks.values()), "\n".join(f"{place}: {sorted(found)}" for place, found in leaks.items() if found)


def write_files(scene: Scene, beside: Scene, group: str) -> None:
    """The worker files, as the scene has its own, and the key that seals."""
    key = scene.canaries("sealing")[-32:]
    data = base64.b64encode(key.encode()).decode()
    for text in (key, data):
        scene.canaries.add("sealing", text)
    (scene.folder / "sealing").write_text(f"key=first:{data}\n")
    (scene.folder / "sealing").chmod(0o600)
    text = (scene.folder / "worker.properties").read_text()
    keys = {
        "group.id": group,
        **{
            f"{what}.storage.topic": f"{group}-{name}" for what, name in zip(("config", "status"), TOPICS, strict=False)
        },
        "offset.storage.topic": f"{group}-offsets",
        **{f"{what}.storage.replication.factor": "1" for what in ("config", "status", "offset")},
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "listeners.https.ssl.truststore.location": scene.file("authority.pem"),
        "parquet-sink.config.sealing.keys": f"${{file:{scene.file('sealing')}:key}}",
    }
    lines = text + "".join(f"{key}={value}\n" for key, value in keys.items())
    for name, mode, url in (
        ("refused", "refused", scene.url),
        ("sealed", "sealed", scene.url),
        ("beside", "sealed", beside.url),
    ):
        own = lines.replace(f"listeners={scene.url}\n", f"listeners={url}\n")
        (scene.folder / f"{name}.properties").write_text(f"{own}parquet-sink.config.secrets={mode}\n")


def started(stack: ExitStack, scene: Scene, name: str) -> Command:
    """A worker of this file, as soon as it serves."""
    command = Command(scene.folder, ["worker", scene.file(f"{name}.properties")], scene.environment)
    stack.callback(command.close)
    command.until(lambda: serves(scene))
    return command


def leads(asked: Scene, worker: Scene) -> bool:
    """Whether a worker leads, as one tells."""
    return any(one["leads"] and one["url"] == worker.url for one in workers(asked))


def loads(asked: Scene) -> list[int]:
    """How many connectors each worker has, as one tells."""
    found = [len(one["connectors"]) for one in workers(asked)]
    return found if len(found) == 2 else [0]


def workers(asked: Scene) -> list[dict[str, object]]:
    """As a worker tells."""
    found = json.loads(asked.ask("GET", "/workers").partition("\n")[2])["workers"]
    assert isinstance(found, list)
    return found


def records(broker: Broker, topic: str) -> Iterator[str]:
    """All of a topic, also what was written in transactions that were aborted."""
    options = {"bootstrap.servers": broker.bootstrap_servers, "group.id": uuid.uuid4().hex, "log_level": 0}
    uncommitted = {"isolation.level": "read_uncommitted", "enable.partition.eof": True}
    with closing(Consumer({**options, **uncommitted})) as consumer:
        ends = set(consumer.list_topics(topic, 10).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in ends])
        while ends:
            found = consumer.poll(10)
            assert found is not None, f"{topic} was not read to its end"
            if found.error() is None:
                yield repr((found.key(), found.value(), found.headers()))
            else:
                assert found.error().code() == KafkaError._PARTITION_EOF, found.error()
                ends.discard(found.partition())
