"""The worker on real parts: connectors come and go over REST, pause, stop, change, and come back after a restart."""

import os
import random
import re
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import pytest
import requests
from confluent_kafka import Producer

from integration import isolation
from integration.conftest import TopicFactory
from integration.harness import Sink, ends
from integration.numbered import numbered, numbers
from integration.processes import jvm, listening
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.spark.query import TIDY_S
from parquet_sink.worker.herder.values import WarningKind
from tests.messages import assert_says


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties, rows and offsets of a connector; the Spark is the worker's own."""
    return Sink(cast(Any, None), broker, target, tmp_path)


@pytest.fixture(scope="module")
def shared(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """The worker of all tests here, which stops in order after them; a test may start it again."""
    made = WorkerProcess(tmp_path_factory.mktemp("worker"), broker)
    made.start()
    yield made
    try:
        made.stop()
        assert "Traceback" not in made.command.said
    finally:
        made.close()


@pytest.fixture
def worker(shared: WorkerProcess) -> Iterator[WorkerProcess]:
    """The worker without connectors."""
    yield shared
    for name in shared.do("GET", "/connectors"):
        shared.do("DELETE", f"/connectors/{name}")


def test_a_connector_s_life(worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Made, paused, resumed, changed, refused a wrong change, stopped, set back, and back after a restart."""
    name, path = topic(), f"/connectors/{sink.name}"
    broker.produce(name, numbered(5))
    made = worker.do("POST", "/connectors", {"name": sink.name, "config": sink.properties(name)})
    assert (made["tasks"], made["config"]["connect.ems.authorization.key"]) == ([], "[hidden]")
    worker.until(lambda: sink.offsets(name) == [5])
    worker.until_state(sink.name, "RUNNING")

    worker.do("PUT", f"{path}/pause")
    worker.until_state(sink.name, "PAUSED")
    broker.produce(name, numbered(5, 5))
    worker.until(lambda: _lag(worker, sink.name) == 5)
    time.sleep(2)
    assert sink.offsets(name) == [5]
    worker.do("PUT", f"{path}/resume")
    worker.until(lambda: sink.offsets(name) == [10])

    changed = {**worker.do("GET", f"{path}/config"), "connect.ems.commit.records": "3"}
    worker.do("PUT", f"{path}/config", changed)
    refused = worker.ask("PUT", f"{path}/config", {**changed, "connect.ems.commit.records": "many"})
    assert refused.status_code == 400
    assert "Invalid [connect.ems.commit.records]" in refused.json()["message"]
    worker.until_state(sink.name, "RUNNING")
    broker.produce(name, numbered(6, 10))
    worker.until(lambda: sink.offsets(name) == [16])
    assert worker.do("GET", f"{path}/topics") == {sink.name: {"topics": [name]}}
    assert sorted(numbers(sink.rows())) == list(range(16))

    worker.do("PUT", f"{path}/stop")
    worker.until_state(sink.name, "STOPPED")
    partition = {"kafka_topic": name, "kafka_partition": 0}
    assert worker.do("GET", f"{path}/offsets")["offsets"] == [{"partition": partition, "offset": {"kafka_offset": 16}}]
    assert [one["end"] for one in worker.do("GET", f"{path}/offsets?ends=true")["offsets"]] == [16]
    worker.do("PATCH", f"{path}/offsets", {"offsets": [{"partition": partition, "offset": {"kafka_offset": 14}}]})
    assert sink.offsets(name) == [14]
    worker.do("DELETE", f"{path}/offsets")
    worker.do("DELETE", f"{path}/offsets")
    assert sink.offsets(name) == [None]
    worker.do("PUT", f"{path}/resume")
    worker.until(lambda: sink.offsets(name) == [16])

    worker.do("PUT", f"{path}/pause")
    worker.stop()
    worker.start()
    worker.until_state(sink.name, "PAUSED")
    broker.produce(name, numbered(1, 16))
    worker.do("PUT", f"{path}/resume")
    worker.until(lambda: sink.offsets(name) == [17])
    worker.do("DELETE", path)
    assert worker.do("GET", "/connectors") == []


def test_the_page_shows_what_happened(worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A browser sees the connector with its file, its thresholds and its configuration, and why one has failed."""
    name = topic()
    broker.produce(name, numbered(5))
    broken = {**sink.properties(name), "connect.ems.endpoint": "http://127.0.0.1:9/nobody"}
    worker.do("POST", "/connectors", {"name": sink.name, "config": sink.properties(name)})
    worker.do("POST", "/connectors", {"name": f"{sink.name}-off", "config": {**broken, "name": f"{sink.name}-off"}})
    worker.until(lambda: sink.offsets(name) == [5])
    worker.until(lambda: "1 file," in _page(worker, "/"))
    first, one = _page(worker, "/"), f"/ui/connectors/{sink.name}"
    assert {f'href="{one}"', f'href="{one}-off"'} <= set(re.findall(r'href="/ui/connectors/[^"]+"', first))
    worker.until(lambda: "Connection refused" in _page(worker, f"{one}-off"))
    assert 'aria-label="Trying again"' in _page(worker, "/ui")
    files = _page(worker, f"{one}/files?topic={name}&partition=0&at=3")
    assert "<b>Accepted</b>" in files
    file = re.search(rf'href="({one}/files/[^"]+)"', files)
    assert file is not None
    assert ">201<" in _page(worker, file[1]) or ">200<" in _page(worker, file[1])
    assert "[hidden]" in _page(worker, f"{one}/config")
    assert "No record is parked" in _page(worker, f"{one}/diverted")


def _page(worker: WorkerProcess, path: str) -> str:
    """As a browser gets it."""
    got = requests.get(worker.url + path, headers={"Accept": "text/html"}, timeout=30)
    assert got.status_code == 200, got.text
    assert got.headers["Content-Type"].startswith("text/html")
    return got.text


def _lag(worker: WorkerProcess, name: str) -> int:
    (found,) = [one for one in worker.do("GET", "/progress") if one["status"]["name"] == name]
    return sum(one["lag"] for one in found["partitions"])


def _progress(worker: WorkerProcess, name: str) -> dict[str, Any]:
    (found,) = [one for one in worker.do("GET", "/progress") if one["status"]["name"] == name]
    return cast("dict[str, Any]", found)


def _waiting(worker: WorkerProcess, name: str) -> bool:
    return f'parquet_sink_connector_waiting{{connector="{name}"}} 1.0' in worker.ask("GET", "/metrics").text


def test_a_topic_that_goes_away_is_waited_for(
    worker: WorkerProcess, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """Of any sink: it is named while it is gone, and read anew later; at the start a name without a topic fails."""
    stays, goes, file = topic(), topic(), tmp_path / "out.txt"
    config = {"connector.class": "FileStreamSink", "file": str(file), "value.converter": "StringConverter"}
    config["connect.ems.tmp.dir"] = str(tmp_path / "tmp")
    worker.do("PUT", "/connectors/files/config", {**config, "topics": f"{stays},{goes}"})
    worker.do("PUT", "/connectors/wrong/config", {**config, "topics": f"{stays},{goes}-s"})
    worker.do("PUT", "/connectors/pattern/config", {**config, "topics.regex": f"{goes}-.*"})
    worker.until_state("wrong", "FAILED")
    assert f"Topic {goes}-s does not exist" in worker.do("GET", "/connectors/wrong/status")["connector"]["trace"]
    unmatched = WarningKind.NO_TOPIC_MATCHES
    worker.until(lambda: unmatched in [one["kind"] for one in _progress(worker, "pattern")["live_warnings"]])
    worker.until(lambda: len(_progress(worker, "files")["partitions"]) == 2)
    assert not _waiting(worker, "files")
    broker.delete_topic(goes)
    worker.until(lambda: _waiting(worker, "files"))
    found = _progress(worker, "files")
    assert (found["missing_topics"], found["status"]["state"]) == ([goes], "RUNNING")
    assert_says(found["status"]["waits_for"], f"Topic {goes}", "not there", "deleted")
    broker.create_topic(goes)
    broker.produce(goes, [(None, b"again")])
    worker.until(lambda: file.exists() and file.read_text() == "again\n")
    assert not _waiting(worker, "files")
    assert _progress(worker, "files")["missing_topics"] == []


@pytest.mark.parametrize(
    "restarts",
    [
        pytest.param(4, marks=pytest.mark.in_turn(seconds=30), id="few"),
        pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(3_600)], id="many"),
    ],
)
def test_starts_of_a_query_leave_nothing_in_java(
    worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory, restarts: int
) -> None:
    """Java has as many sockets after many restarts as after none, and few more descriptors and threads."""
    name, before = topic(), len(worker.command.said)
    broker.produce(name, numbered(5))
    worker.do("POST", "/connectors", {"name": sink.name, "config": sink.properties(name)})
    worker.until(lambda: sink.offsets(name) == [5])
    time.sleep(TIDY_S + 2)
    sockets = SocketsOfJava(worker)
    at_first = sockets.open_fds(), sockets.threads()
    for _ in range(restarts):
        worker.do("POST", f"/connectors/{sink.name}/restart")
        worker.until_state(sink.name, "RUNNING")
        time.sleep(1)
    worker.until(lambda: sockets.lately() <= 0)
    worker.until(lambda: sockets.open_fds() <= at_first[0] + FEW and sockets.threads() <= at_first[1] + FEW)
    print(f"{restarts} restarts: descriptors, threads {at_first} -> {(sockets.open_fds(), sockets.threads())}")
    broker.produce(name, numbered(5, 5))
    worker.until(lambda: sink.offsets(name) == [10])
    assert "Exception" not in worker.command.said[before:]


FEW: Final = 60
"""Descriptors, and threads, that Spark keeps for a minute: of workers, and of pools that grow under load."""


class SocketsOfJava:
    """What Spark's Java has open. lately: sockets that it listens on beyond those when this was made."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._java = jvm(worker.command.alive())[0]
        self._at_first = listening(self._java)

    def lately(self) -> int:
        return listening(self._java) - self._at_first

    def open_fds(self) -> int:
        return len(os.listdir(f"/proc/{self._java.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self._java.pid}/task"))


REQUESTS, LOOK = 500, 25


@pytest.mark.slow
@pytest.mark.timeout(2_400)
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_random_requests_under_load_lose_nothing(
    worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory, producer: Producer, seed: int
) -> None:
    """500 requests of all kinds to four connectors whose topics are written meanwhile: all is delivered in the end.

    Each answer has Kafka Connect's status, and now and then all states become what was asked for last.
    """
    connectors = {f"{sink.name}-{n}": topic(2) for n in range(4)}
    for name, one in connectors.items():
        worker.do("POST", "/connectors", {"name": name, "config": _config(sink, name, one, 1_000)})
    wishes = RandomWishes(worker, sink, random.Random(seed), connectors)
    ended, produced = threading.Event(), dict.fromkeys(connectors, 0)
    load = threading.Thread(target=_produce, args=(producer, connectors, produced, ended))
    load.start()
    try:
        for n in range(1, REQUESTS + 1):
            wishes.one()
            time.sleep(wishes.chance.random() * 0.4)
            if n % LOOK == 0:
                worker.until(lambda: worker.states() == wishes.states(), 240)
    finally:
        ended.set()
        load.join()
    assert producer.flush(30) == 0
    for name, one in connectors.items():
        worker.ask("PUT", f"/connectors/{name}/config", _config(sink, name, one, 1_000))
        worker.ask("PUT", f"/connectors/{name}/resume")
    worker.until(lambda: set(worker.states().values()) == {"RUNNING"}, 240)
    for name, one in connectors.items():
        group = f"connect-{name}"
        worker.until(lambda one=one, group=group: sink.offsets(one, 2, group) == ends(broker, one, 2), 240)
        found = sorted({row["n"] for row in sink.rows(name)})
        assert found == list(range(produced[name])), (name, len(found), produced[name])
    print(f"seed {seed}: {sum(produced.values()):,} records; answers {dict(sorted(wishes.answers.items()))}")
    assert set(wishes.answers) == {200, 201, 202, 204, 400, 404, 409}, wishes.answers


def _config(sink: Sink, name: str, topic: str, records: int) -> dict[str, str]:
    more = {
        "name": name,
        "connect.ems.target.table": name,
        "connect.ems.commit.records": str(records),
        "tasks.max": "2",
    }
    return {**sink.properties(topic), **more}


def _produce(producer: Producer, connectors: dict[str, str], produced: dict[str, int], ended: threading.Event) -> None:
    """Some hundred records a second to each topic."""
    while not ended.wait(0.1):
        for name, topic in connectors.items():
            for _ in range(20):
                producer.produce(topic, f'{{"n": {produced[name]}}}'.encode(), partition=produced[name] % 2)
                produced[name] += 1
        producer.poll(0)


class RandomWishes:
    """Random requests to connectors, and what they amount to: the target of each, None for one that is not there."""

    def __init__(self, worker: WorkerProcess, sink: Sink, chance: random.Random, connectors: Mapping[str, str]) -> None:
        self._worker, self._sink, self.chance, self._connectors = worker, sink, chance, connectors
        self._targets: dict[str, str | None] = dict.fromkeys(connectors, "RUNNING")
        self.answers: dict[int, int] = {}

    def states(self) -> dict[str, str]:
        """That all are to have once they have done what was wished for."""
        return {name: target for name, target in self._targets.items() if target is not None}

    def one(self) -> None:
        """Asks for something; fails when the answer is not Kafka Connect's."""
        name = self.chance.choice(list(self._connectors))
        act = self.chance.choice(
            [
                *(self._aim, self._aim, self._aim, self._restart, self._restart_task, self._put, self._put_wrong),
                *(self._patch, self._delete, self._create, self._create, self._read, self._delete_nothing),
            ]
        )
        act(name, f"/connectors/{name}", self._targets[name])

    def _ask(self, method: str, path: str, body: object, *expected: int) -> None:
        answer = self._worker.ask(method, path, body)
        code = answer.status_code
        self.answers[code] = self.answers.get(code, 0) + 1
        assert code in expected, (method, path, code, expected, answer.text)

    def _good(self, name: str) -> dict[str, str]:
        return _config(self._sink, name, self._connectors[name], self.chance.randint(100, 2_000))

    def _aim(self, name: str, path: str, target: str | None) -> None:
        verb, after = self.chance.choice([("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPED")])
        there = 204 if verb == "stop" else 202  # as Kafka Connect has it
        self._ask("PUT", f"{path}/{verb}", None, 404 if target is None else there)
        self._targets[name] = None if target is None else after

    def _restart(self, name: str, path: str, target: str | None) -> None:
        whole = self.chance.random() < 0.5
        there = 202 if whole else 204
        self._ask("POST", f"{path}/restart?includeTasks={str(whole).lower()}", None, 404 if target is None else there)

    def _restart_task(self, name: str, path: str, target: str | None) -> None:
        """A connector that is stopped, or has not begun, has no tasks."""
        self._ask("POST", f"{path}/tasks/0/restart", None, *([404] if target is None else [204, 404]))

    def _put(self, name: str, path: str, target: str | None) -> None:
        self._ask("PUT", f"{path}/config", self._good(name), 201 if target is None else 200)
        self._targets[name] = target or "RUNNING"

    def _put_wrong(self, name: str, path: str, target: str | None) -> None:
        self._ask("PUT", f"{path}/config", {**self._good(name), "connect.ems.commit.records": "many"}, 400)

    def _patch(self, name: str, path: str, target: str | None) -> None:
        changes = {"connect.ems.commit.records": str(self.chance.randint(100, 2_000))}
        self._ask("PATCH", f"{path}/config", changes, 404 if target is None else 200)

    def _delete(self, name: str, path: str, target: str | None) -> None:
        self._ask("DELETE", path, None, 404 if target is None else 204)
        self._targets[name] = None

    def _create(self, name: str, path: str, target: str | None) -> None:
        initial, after = self.chance.choice([("RUNNING", "RUNNING"), ("PAUSED", "PAUSED"), ("STOPPED", "STOPPED")])
        body = {"name": name, "config": self._good(name), "initial_state": initial}
        self._ask("POST", "/connectors", body, 201 if target is None else 409)
        self._targets[name] = target or after

    def _read(self, name: str, path: str, target: str | None) -> None:
        where = self.chance.choice(["/status", "/offsets", "/config", ""])
        self._ask("GET", path + where, None, 404 if target is None else 200)

    def _delete_nothing(self, name: str, path: str, target: str | None) -> None:
        self._ask("DELETE", "/connectors/none", None, 404)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_one_connector_does_not_starve_the_others(
    worker: WorkerProcess, broker: Broker, target: TargetProcess, tmp_path: Path, producer: Producer
) -> None:
    """A trickle goes on beside a dead target, a backlog and invalid records; `integration.isolation` says how fast."""
    neighbours = isolation.Neighbours(worker, broker, target, tmp_path, producer)
    neighbours.make_topics(2_000_000)
    neighbours.make_connectors()
    found = isolation.measure(neighbours, rounds=1, seconds=20)
    print(found.told())
    assert len(found.beside_s) == len(found.alone_s) == 20
    assert worker.states() == {"trickle": "RUNNING", "backlog": "STOPPED", "bad": "STOPPED", "dead": "STOPPED"}
