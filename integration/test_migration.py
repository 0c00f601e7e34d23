"""A cluster of Kafka Connect becomes ours and goes back: one worker file, its group and topics, and no record is lost.

Kafka Connect is real. It is one play, of which each test looks at a part: Java's worker runs, then ours, then Java's.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from integration.commands import Command
from integration.connect import theirs
from integration.connect.play import send, until_ready
from integration.connect.steps import JSON, Ask
from integration.harness import committed
from integration.transforms.kafka import compiler
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.errors import SetupError
from tests.messages import assert_says

KAFKAS_FILE: Final = """\
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
offset.flush.interval.ms=10000
"""
"""config/connect-distributed.properties of Kafka 4.1, without its comments and the brokers' address."""
SINKS: Final = tuple(f"sink-{number:02}" for number in range(20))
PAUSED, STOPPED = SINKS[16:18], SINKS[18:]
"""While Java's worker runs the first time."""
CHANGED, REMADE, DELETED, ENDED, RESUMED, MADE = *SINKS[:4], SINKS[18], "sink-20"
"""What becomes of these while ours does."""
SOURCE: Final = "source"
OTHER: Final = "other"
"""A sink of a class that Java's worker has alone."""
SOURCE_CLASS: Final = "org.apache.kafka.connect.file.FileStreamSourceConnector"
OTHER_CLASS: Final = "example.OtherSinkConnector"
JAVA: Final = """\
package example;
public class OtherSinkConnector extends org.apache.kafka.connect.file.FileStreamSinkConnector {}
"""
SERVICE: Final = "META-INF/services/org.apache.kafka.connect.sink.SinkConnector"
TEXT: Final = "org.apache.kafka.connect.storage.StringConverter"
EACH: Final = 50
"""Records that each topic gets at a time."""
TIMEOUT_S: Final = 120.0
pytestmark = pytest.mark.slow
Record = tuple[str, Any]
"""Key and value, of the config topic."""


class Scene:
    """The worker that runs now, asked by REST; connectors, each with a topic of its name; and their files."""

    def __init__(self, broker: Broker, folder: Path, classes: Path) -> None:
        self._broker, self._folder, self._classes = broker, folder, classes
        self._file, self._url = self._worker_file()
        self._said: Callable[[], str] = str
        self._files: dict[str, list[Path]] = {}
        self.sent: dict[str, list[str]] = {}

    def _worker_file(self) -> tuple[Path, str]:
        """Kafka's own, with a port of its own and a word by which Java starts sooner; and its URL."""
        port = free_port()
        path, url = self._folder / f"connect-{port}.properties", f"http://127.0.0.1:{port}"
        own = {
            "bootstrap.servers": self._broker.bootstrap_servers,
            "listeners": url,
            "plugin.discovery": "service_load",
        }
        path.write_text(KAFKAS_FILE + "".join(f"{key}={value}\n" for key, value in own.items()))
        return path, url

    @contextmanager
    def java(self) -> Iterator[None]:
        """Kafka Connect's worker."""
        with theirs.started(self._file, self._folder, self._classes) as process:
            self._said = lambda: (self._folder / theirs.LOG).read_text(errors="replace")
            until_ready(self._url, lambda: process.poll() is None, self._said, TIMEOUT_S)
            yield

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Our worker, with the same file."""
        with closing(Command(self._folder, ["worker", str(self._file)], {})) as worker:
            self._said = lambda: worker.said
            until_ready(self._url, lambda: worker.process.poll() is None, self._said, TIMEOUT_S)
            yield
            worker.send()
            assert worker.ended() == 0, worker.said[-3_000:]

    def ours_refused(self) -> tuple[int, str]:
        """Exit status of one of ours that is started beside, and what it said."""
        with closing(Command(self._folder, ["worker", str(self._worker_file()[0])], {})) as worker:
            return worker.ended(TIMEOUT_S), worker.said

    def java_refused(self, words: str) -> str:
        """What one of Java's says that is started beside, up to these words: it takes a minute to end after them."""
        file, folder = self._worker_file()[0], self._folder / "beside"
        folder.mkdir()
        with theirs.started(file, folder, self._classes) as process:
            self.until(lambda: words in (folder / theirs.LOG).read_text() or process.poll() is not None)
            process.kill()
        return (folder / theirs.LOG).read_text()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        answer = send(self._url, Ask("", method, f"/connectors{path}", data, {"content-type": JSON}))
        assert answer.status < 400, (answer, self._said()[-3_000:])
        return answer.body

    def make(self, name: str, connector_class: str = theirs.CLASS, file: str = "") -> None:
        """Or changes it: from then on it has another file."""
        path = self._folder / (file or name)
        topics = {"topic" if connector_class == SOURCE_CLASS else "topics": name}
        own = {"connector.class": connector_class, "tasks.max": "1", "file": str(path), "value.converter": TEXT}
        self._files.setdefault(name, []).append(path)
        self.ask("PUT", f"/{name}/config", {**own, **topics})

    def states(self) -> dict[str, str]:
        """Of connectors by name; where one of its tasks is in another state, that one."""
        found = self.ask("GET", "?expand=status")
        return {name: _state(one["status"]) for name, one in found.items()}

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, (self.states(), self._said()[-3_000:])
            time.sleep(0.2)

    def until_states(self, wanted: Mapping[str, str]) -> None:
        self.until(lambda: self.states() == wanted)

    def send(self, text: str) -> None:
        """Records to each topic of a sink, and lines to the file of the source."""
        values = [f"{text} {number}" for number in range(EACH)]
        for topic in (*SINKS, MADE, OTHER):
            self._broker.produce(topic, [(None, value.encode()) for value in values])
            self.sent.setdefault(topic, []).extend(values)
        with (self._folder / SOURCE).open("a") as file:
            file.writelines(f"{value}\n" for value in values)
        self.sent.setdefault(SOURCE, []).extend(values)

    def lines(self, name: str) -> list[list[str]]:
        """In each file that a sink was given; of a source the records in its topic."""
        if name == SOURCE:
            return [[value for _, value in self._records(SOURCE)]]
        return [path.read_text().splitlines() if path.exists() else [] for path in self._files[name]]

    def until_arrived(self, names: Sequence[str]) -> None:
        """All that was sent."""
        self.until(lambda: all(not self.missing(name) for name in names))

    def missing(self, name: str) -> set[str]:
        """What was sent and is in none of its files."""
        return set(self.sent[name]) - {line for lines in self.lines(name) for line in lines}

    def records(self) -> list[Record]:
        """Of the config topic."""
        return [(key, json.loads(value) if value else None) for key, value in self._records("connect-configs")]

    def _records(self, topic: str) -> list[tuple[str, str]]:
        options = {"bootstrap.servers": self._broker.bootstrap_servers, "group.id": "looks"}
        found: list[tuple[str, str]] = []
        with closing(Consumer({**options, "enable.partition.eof": True})) as reader:
            reader.assign([TopicPartition(topic, 0, 0)])
            while (message := reader.poll(30)) is not None and message.error() is None:
                key, value = message.key() or b"", message.value() or b""
                found.append((bytes(key).decode(), bytes(value).decode()))
        return found

    def of_other(self) -> object:
        """Records and offset of the connector of the other class."""
        records = [(key, value) for key, value in self.records() if OTHER in key]
        return records, committed(self._broker, f"connect-{OTHER}", OTHER)


def _state(status: Mapping[str, Any]) -> str:
    state = str(status["connector"]["state"])
    return next((str(task["state"]) for task in status["tasks"] if task["state"] != state), state)


@dataclass
class Seen:
    """What the play showed; what is missing did not come to pass."""

    scene: Scene
    refused: tuple[int, str] = (0, "")
    written_by_refused: Sequence[Record] = ()
    trace: str = ""
    other: Sequence[object] = ()
    java_refused: str = ""
    written_by_java_refused: Sequence[Record] = ()
    tasks: Sequence[str] = ()
    ended: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of connectors that Java's worker has alone."""
    javac = compiler()
    if javac is None:
        pytest.skip("no Java compiler (javac) here: install a JDK for a connector class that is Java's alone")
    folder = tmp_path_factory.mktemp("classes")
    source = folder / "OtherSinkConnector.java"
    source.write_text(JAVA)
    subprocess.run([javac, "-proc:none", "-nowarn", "-d", folder, "-cp", theirs.class_path(), source], check=True)
    (folder / SERVICE).parent.mkdir(parents=True)
    (folder / SERVICE).write_text(OTHER_CLASS)
    return folder


@pytest.fixture(scope="module")
def seen(classes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """The play."""
    with Broker(properties={"group.initial.rebalance.delay.ms": "0"}) as broker:
        for topic in (*SINKS, MADE, SOURCE, OTHER):
            broker.create_topic(topic)
        found = Seen(Scene(broker, tmp_path_factory.mktemp("play"), classes))
        with found.scene.java():
            _first(found)
        found.scene.send("between")
        with found.scene.ours():
            _second(found)
        before = len(found.scene.records())
        found.scene.send("back")
        with found.scene.java():
            _third(found, before)
        yield found


def _first(seen: Seen) -> None:
    """Java's worker: all is made, some is paused, some is stopped; ours cannot join."""
    scene = seen.scene
    for name in SINKS:
        scene.make(name)
    scene.make(SOURCE, SOURCE_CLASS)
    scene.make(OTHER, OTHER_CLASS)
    scene.send("java")
    scene.until_arrived((*SINKS, SOURCE, OTHER))
    for names, action in ((PAUSED, "pause"), (STOPPED, "stop")):
        for name in names:
            scene.ask("PUT", f"/{name}/{action}")
    scene.until(lambda: set(scene.states().values()) == {"RUNNING", "PAUSED", "STOPPED"})
    before = len(scene.records())
    seen.refused = scene.ours_refused()
    seen.written_by_refused = scene.records()[before:]


def _second(seen: Seen) -> None:
    """Our worker: each as it was; then some are changed, and Java's cannot join."""
    scene, before = seen.scene, seen.scene.of_other()
    scene.until_states(
        {
            **dict.fromkeys((*SINKS, SOURCE), "RUNNING"),
            **dict.fromkeys(PAUSED, "PAUSED"),
            **dict.fromkeys(STOPPED, "STOPPED"),
            OTHER: "FAILED",
        }
    )
    seen.trace = scene.ask("GET", f"/{OTHER}/status")["connector"]["trace"]
    scene.until_arrived((*SINKS[:16], SOURCE))
    scene.make(CHANGED, file="changed")
    for name in (REMADE, DELETED):
        scene.ask("DELETE", f"/{name}")
    scene.make(REMADE, file="remade")
    scene.make(MADE)
    scene.ask("PUT", f"/{ENDED}/stop")
    scene.ask("PUT", f"/{RESUMED}/resume")
    scene.until(lambda: scene.states()[ENDED] == "STOPPED")
    written = len(scene.records())
    seen.java_refused = scene.java_refused("InconsistentGroupProtocolException")
    seen.written_by_java_refused = scene.records()[written:]
    scene.send("ours")
    scene.until_arrived((CHANGED, REMADE, *SINKS[4:16], RESUMED, MADE, SOURCE))
    seen.other = before, scene.of_other()


def _third(seen: Seen, before: int) -> None:
    """Java's worker again."""
    scene = seen.scene
    scene.until_states(
        {
            **dict.fromkeys((CHANGED, REMADE, *SINKS[4:16], RESUMED, MADE, SOURCE, OTHER), "RUNNING"),
            **dict.fromkeys(PAUSED, "PAUSED"),
            **dict.fromkeys((ENDED, SINKS[19]), "STOPPED"),
        }
    )
    scene.until_arrived((CHANGED, REMADE, *SINKS[4:16], RESUMED, MADE, SOURCE, OTHER))
    seen.tasks = [key for key, _ in scene.records()[before:] if key.startswith("task-")]
    seen.ended = scene.states()


def test_our_worker_does_not_start_beside_kafka_connect_s(seen: Seen) -> None:
    """It ends with status 2, names group.id and the cure, and has written nothing to the config topic."""
    status, said = seen.refused
    assert status == SetupError.exit_status
    last = said.splitlines()[-1]
    assert_says(last, "[group.id] connect-cluster", "members of another kind", "Stop them", "group.id of its own")
    assert "Traceback" not in said
    assert seen.written_by_refused == []


def test_kafka_connect_s_worker_does_not_join_ours(seen: Seen) -> None:
    """The broker refuses it, so that it neither leads nor writes."""
    assert "InconsistentGroupProtocolException" in seen.java_refused
    assert seen.written_by_java_refused == []


def test_a_connector_of_a_class_that_is_not_here_is_left_alone(seen: Seen) -> None:
    """It is FAILED and says what is wrong; its records and its offset stay, and Kafka Connect goes on with it."""
    assert_says(seen.trace, "Invalid [connector.class]", OTHER_CLASS, "not a known connector class")
    before, after = seen.other
    assert before == after
    assert seen.scene.missing(OTHER) == set()


def test_no_record_is_lost_on_the_way_there_and_back(seen: Seen) -> None:
    """Each connector that ran in the end has all that was ever sent to it; what is paused or stopped got nothing."""
    running = [name for name, state in seen.ended.items() if state == "RUNNING"]
    assert len(running) == 18
    assert {name: found for name in running if (found := seen.scene.missing(name))} == {}
    for name in (*PAUSED, STOPPED[1]):
        assert seen.scene.lines(name) == [seen.scene.sent[name][:EACH]]


def test_kafka_connect_begins_with_what_was_changed_here(seen: Seen) -> None:
    """It makes tasks anew of what was made, changed or resumed here, and none runs as it was made before that."""
    changed = (CHANGED, REMADE, RESUMED, MADE)
    assert sorted(seen.tasks) == sorted(f"task-{name}-0" for name in changed)
    for name in (CHANGED, REMADE):
        former, latter = seen.scene.lines(name)
        assert {line.split()[0] for line in former} == {"java", "between"}
        assert {line.split()[0] for line in latter} == {"ours", "back"}
    for name in (DELETED, ENDED):
        (lines,) = seen.scene.lines(name)
        assert {line.split()[0] for line in lines} == {"java", "between"}
