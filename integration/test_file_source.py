"""FileStreamSource on real parts: Kafka's quick start killed in the middle, and a worker whose broker goes away."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL
from typing import Final

import pytest

from integration.commands import Command
from integration.letters import letters
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.sources.offsets.topic import TopicStorage
from parquet_sink.worker_config.offset_storage import OffsetStorageSettings

STANDALONE: Final = """\
bootstrap.servers=localhost:9092
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.file.filename=/tmp/connect.offsets
offset.flush.interval.ms=10000
"""
SOURCE: Final = """\
name=local-file-source
connector.class=FileStreamSource
tasks.max=1
file=test.txt
topic=connect-test
"""
SINK: Final = """\
name=local-file-sink
connector.class=FileStreamSink
tasks.max=1
file=test.sink.txt
topics=connect-test
"""
MANY: Final = 200_000
LONG: Final = 10_000_000
KAFKA_CONNECT_ALTERED: Final = "The offsets for this connector have been altered successfully"
KAFKA_CONNECT_NO_LONG: Final = "The value for the 'position' key in the offset is expected to be a Long value"


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Broker]:
    """A broker that may be stopped, makes topics by itself, and takes lines of 10 MB."""
    with Broker(auto_create_topics=True, properties={"message.max.bytes": "12000000"}) as started:
        yield started


@pytest.mark.in_turn(seconds=60)
def test_kafkas_quick_start_is_killed_in_the_middle(own_broker: Broker, tmp_path: Path) -> None:
    """File, topic, file by Kafka's own files: what it shows is seen, and after kill -9 no line is missing."""
    offsets = tmp_path / "connect.offsets"
    (tmp_path / "connect-standalone.properties").write_text(STANDALONE.replace("/tmp/connect.offsets", str(offsets)))
    (tmp_path / "connect-file-source.properties").write_text(SOURCE)
    (tmp_path / "connect-file-sink.properties").write_text(SINK)
    source, out = tmp_path / "test.txt", tmp_path / "test.sink.txt"
    source.write_text("foo\nbar\n")
    words = ["run", "--worker", "connect-standalone.properties"]
    words += ["connect-file-source.properties", "connect-file-sink.properties"]
    environment = {"PARQUET_SINK_BOOTSTRAP_SERVERS": own_broker.bootstrap_servers}
    killed = Command(tmp_path, words, environment)
    try:
        killed.until(lambda: out.exists() and out.read_text() == "foo\nbar\n")
        lines = [f"Another line {number}" for number in range(MANY)]
        with source.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
        killed.until(lambda: out.stat().st_size > 5_000)
        killed.send(SIGKILL)
        killed.ended()
    finally:
        killed.close()
    assert set(lines) - set(out.read_text().splitlines())
    with source.open("a") as file:
        file.write("the end\n")
    again = Command(tmp_path, words, environment)
    try:
        again.until(lambda: out.read_bytes().endswith(b"\nthe end\n"))
        again.send()
        assert again.ended() == 0, again.said[-3_000:]
    finally:
        again.close()
    found = Counter(out.read_text().splitlines())
    assert set(found) == {"foo", "bar", "the end", *lines}
    assert json.loads(offsets.read_text())["connectors"]["local-file-source"] == [
        {"partition": {"filename": "test.txt"}, "offset": {"position": source.stat().st_size}}
    ]
    first = next(one for one in letters(own_broker, "connect-test") if one.offset() == 0)
    assert (first.key(), first.value()) == (None, b'{"schema":{"type":"string","optional":false},"payload":"foo"}')


class Scene:
    """A worker with one source, whose positions are in a topic."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker, self.file, self.topic = broker, folder / "log.txt", "lines"
        keys = {
            "offset.storage.topic": "connect-offsets",
            "offset.storage.partitions": "1",
            "offset.storage.replication.factor": "1",
        }
        self.worker = WorkerProcess(folder, broker, keys)
        self.partition = {"filename": str(self.file)}
        self.config = {
            "connector.class": "FileStreamSource",
            "file": str(self.file),
            "topic": "unused",
            "connect.ems.tmp.dir": str(folder / "tmp"),
            "connect.ems.restart.interval.ms": "500",
            "connect.ems.restart.interval.max.ms": "1000",
            "transforms": "MakeMap,InsertSource,route",
            "transforms.MakeMap.type": "org.apache.kafka.connect.transforms.HoistField$Value",
            "transforms.MakeMap.field": "line",
            "transforms.InsertSource.type": "org.apache.kafka.connect.transforms.InsertField$Value",
            "transforms.InsertSource.static.field": "data_source",
            "transforms.InsertSource.static.value": "test-file-source",
            "transforms.route.type": "RegexRouter",
            "transforms.route.regex": "unused",
            "transforms.route.replacement": self.topic,
        }

    def add(self, *lines: str) -> None:
        with self.file.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))

    def lines(self) -> list[str]:
        """What the topic has, each as the transforms made it."""
        found = [json.loads(one.value() or b"") for one in letters(self.broker, self.topic)]
        assert {one["data_source"] for one in found} <= {"test-file-source"}
        return [one["line"] for one in found]

    def stored(self) -> int | None:
        """The position, as the worker tells it."""
        found = self.worker.do("GET", "/connectors/files/offsets")["offsets"]
        assert [one["partition"] for one in found] in ([], [self.partition])
        return found[0]["offset"]["position"] if found else None

    def until_all_stored(self) -> None:
        self.worker.until(lambda: self.stored() == self.file.stat().st_size)


def test_a_source_in_a_worker(own_broker: Broker, tmp_path: Path) -> None:
    """By REST: lines are transformed and routed, follow rotation, outlive a broker, and positions are told and set."""
    scene = Scene(own_broker, tmp_path)
    scene.worker.start()
    try:
        _goes_and_counts(scene)
        _outlives_the_broker(scene)
        _stops_at_a_long_line(scene)
        _is_told_where_to_go_on(scene)
        scene.worker.stop()
    finally:
        scene.worker.close()


def _goes_and_counts(scene: Scene) -> None:
    scene.add("one", "two")
    worker = scene.worker
    worker.do("POST", "/connectors", {"name": "files", "config": scene.config})
    worker.until(lambda: scene.stored() == 8)
    scene.file.rename(scene.file.with_suffix(".1"))
    with scene.file.with_suffix(".1").open("a") as old:
        old.write("rest")
    scene.add("three")
    scene.until_all_stored()
    assert scene.lines() == ["one", "two", "rest", "three"]
    worker.until(lambda: worker.do("GET", "/connectors/files/topics") == {"files": {"topics": [scene.topic]}})
    (progress,) = worker.do("GET", "/progress")
    assert (progress["records"], progress["kind"]) == (4, "source")
    assert worker.do("GET", "/connectors/files/status")["type"] == "source"
    page = worker.ask("GET", "/metrics").text
    for name in ("poll", "write"):
        figure = f'kafka_connect_source_task_metrics_source_record_{name}_total{{connector="files",task="0"}} 4.0'
        assert figure in page
    assert 'kafka_connect_connector_metrics{connector="files",connector_type="source"} 1.0' in page


def _outlives_the_broker(scene: Scene) -> None:
    scene.broker.stop()
    scene.add(*map(str, range(500)))
    scene.worker.until(lambda: bool(scene.worker.do("GET", "/progress")[0]["last_error"]))
    assert scene.worker.states() == {"files": "RUNNING"}
    scene.broker.start()
    scene.until_all_stored()
    assert {*map(str, range(500))} <= set(scene.lines())


def _stops_at_a_long_line(scene: Scene) -> None:
    before = scene.file.stat().st_size
    scene.add("short", "x" * LONG)
    worker = scene.worker
    worker.until_state("files", "FAILED")
    trace = worker.do("GET", "/connectors/files/status")["tasks"][0]["trace"]
    assert "[producer.override.max.request.size]" in trace
    assert scene.stored() == before + len("short\n")
    worker.do("PUT", "/connectors/files/config", {**scene.config, "producer.override.max.request.size": "12000000"})
    scene.until_all_stored()
    assert max(map(len, scene.lines())) == LONG


def _is_told_where_to_go_on(scene: Scene) -> None:
    worker, path = scene.worker, "/connectors/files/offsets"
    busy = worker.ask("PATCH", path, {"offsets": [{"partition": scene.partition, "offset": {"position": 0}}]})
    assert busy.status_code == 400
    worker.do("PUT", "/connectors/files/stop")
    worker.until_state("files", "STOPPED")
    wrong = worker.ask("PATCH", path, {"offsets": [{"partition": scene.partition, "offset": {"position": "0"}}]})
    assert (wrong.status_code, wrong.json()["message"]) == (500, KAFKA_CONNECT_NO_LONG)
    assert worker.do("PATCH", path, {"offsets": [{"partition": scene.partition, "offset": {"position": 4}}]}) == {
        "message": KAFKA_CONNECT_ALTERED
    }
    assert scene.stored() == 4
    kept = [one for one in letters(scene.broker, "connect-offsets") if one.value() == b'{"position":4}']
    assert [one.key() for one in kept] == [f'["files",{{"filename":"{scene.file}"}}]'.encode()]
    worker.do("DELETE", path)
    assert scene.stored() is None


def test_a_topic_that_is_not_compacted_is_refused(own_broker: Broker) -> None:
    """Positions in a topic that deletes by age would be lost, so it is refused by name."""
    name = "deleting"
    own_broker.create_topic(name, config={"cleanup.policy": "delete"})
    settings = OffsetStorageSettings(topic=name, client={"bootstrap.servers": own_broker.bootstrap_servers})
    storage = TopicStorage(settings, name)
    with pytest.raises(Exception, match=r"has cleanup\.policy=delete"):
        storage.read("files")
    storage.close()
