"""The worker on real parts: connectors come and go over REST, pause, stop, change, and come back after a restart."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.harness import Sink, ends
from integration.numbered import numbered, numbers
from integration.worker_process import WorkerProcess
from parquet_sink.devkit.broker import Broker
from parquet_sink.devkit.ports import free_port
from parquet_sink.devkit.target.process import TargetProcess


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties, rows and offsets of a connector; the Spark is the worker's own."""
    return Sink(cast(Any, None), broker, target, tmp_path)


@pytest.fixture
def worker(broker: Broker, tmp_path: Path) -> Iterator[WorkerProcess]:
    """A worker without connectors."""
    made = WorkerProcess(tmp_path, broker)
    made.start()
    yield made
    made.close()


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
    worker.stop()
    assert "Traceback" not in worker.command.said


def _lag(worker: WorkerProcess, name: str) -> int:
    (found,) = [one for one in worker.do("GET", "/progress") if one["status"]["name"] == name]
    return sum(one["lag"] for one in found["partitions"])


REQUESTS = 500


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_random_requests_under_load_lose_nothing(
    worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory, producer: Producer, target: TargetProcess
) -> None:
    """500 requests of all kinds to four connectors whose topics are written meanwhile: all is delivered in the end."""
    chance = random.Random(11)
    connectors = {f"{sink.name}-{n}": topic(2) for n in range(4)}
    for name, one in connectors.items():
        worker.do("POST", "/connectors", {"name": name, "config": _config(sink, name, one, 1_000)})
    ended, produced = threading.Event(), dict.fromkeys(connectors, 0)
    load = threading.Thread(target=_produce, args=(producer, connectors, produced, ended))
    load.start()
    answers: dict[int, int] = {}
    try:
        for _ in range(REQUESTS):
            code = _ask(worker, sink, chance, connectors)
            answers[code] = answers.get(code, 0) + 1
            time.sleep(chance.random() * 0.4)
    finally:
        ended.set()
        load.join()
    assert producer.flush(30) == 0
    for name, one in connectors.items():
        worker.ask("PUT", f"/connectors/{name}/config", _config(sink, name, one, 1_000))
        worker.ask("PUT", f"/connectors/{name}/resume")
    worker.until(lambda: set(worker.states().values()) == {"RUNNING"}, 180)
    for name, one in connectors.items():
        group = f"connect-{name}"
        worker.until(lambda one=one, group=group: sink.offsets(one, 2, group) == ends(broker, one, 2), 180)
        found = sorted({row["n"] for row in sink.rows(name)})
        assert found == list(range(produced[name])), (name, len(found), produced[name])
    assert sorted(answers) == [200, 201, 202, 204, 400, 404, 409], answers
    worker.stop()
    assert "Traceback" not in worker.command.said


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


def _ask(worker: WorkerProcess, sink: Sink, chance: random.Random, connectors: dict[str, str]) -> int:
    """One random request; its status."""
    name = chance.choice(list(connectors))
    path = f"/connectors/{name}"
    good = _config(sink, name, connectors[name], chance.randint(100, 2_000))
    bad = {**good, "connect.ems.commit.records": "many"}
    method, where, body = chance.choice(
        [
            *[("PUT", f"{path}/pause", None), ("PUT", f"{path}/resume", None), ("PUT", f"{path}/resume", None)],
            *[
                ("PUT", f"{path}/stop", None),
                ("POST", f"{path}/restart", None),
                ("POST", f"{path}/tasks/0/restart", None),
            ],
            *[("POST", f"{path}/restart?includeTasks=true", None), ("PUT", f"{path}/config", good)],
            *[("PUT", f"{path}/config", bad), ("PATCH", f"{path}/config", {"connect.ems.commit.records": "500"})],
            *[("DELETE", path, None), ("POST", "/connectors", {"name": name, "config": good})],
            *[("GET", f"{path}/status", None), ("GET", f"{path}/offsets", None), ("DELETE", "/connectors/none", None)],
        ]
    )
    code = worker.ask(method, where, body).status_code
    assert code < 500, (method, where, code)
    return code


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_one_connector_does_not_starve_the_others(
    worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory, producer: Producer
) -> None:
    """A trickle beside a dead target, a backlog and invalid records: its p99 stays within twice what it has alone."""
    trickle, backlog, bad, dead = topic(), topic(4), topic(), topic()
    one = f"{sink.name}-trickle"
    worker.do("POST", "/connectors", {"name": one, "config": _config(sink, one, trickle, 10_000)})
    worker.until_state(one, "RUNNING")
    _freshness(worker, broker, one, trickle, 10)
    alone_s = _freshness(worker, broker, one, trickle, 60)
    for n in range(3_000_000):
        producer.produce(backlog, b'{"n": 1, "who": "somebody", "where": "somewhere"}', partition=n % 4)
        if n % 10_000 == 0:
            producer.poll(0.5)
    assert producer.flush(120) == 0
    broker.produce(bad, [(None, b"{" if n % 2 else b'{"n": 1}') for n in range(1_000)])
    broker.produce(dead, numbered(1_000))
    away = {"connect.ems.endpoint": f"http://127.0.0.1:{free_port()}/", "connect.ems.error.policy": "RETRY"}
    for name, where, more in (
        ("backlog", backlog, {}),
        ("bad", bad, {"errors.tolerance": "all"}),
        ("dead", dead, {**away, "connect.ems.max.retries": "1000"}),
    ):
        config = {**_config(sink, f"{sink.name}-{name}", where, 100_000), **more}
        worker.do("POST", "/connectors", {"name": f"{sink.name}-{name}", "config": config})
    worker.until(lambda: _lag(worker, f"{sink.name}-backlog") > 0)
    beside_s = _freshness(worker, broker, one, trickle, 60)
    still = _lag(worker, f"{sink.name}-backlog")
    print(f"p99 alone {alone_s:.2f} s, beside {beside_s:.2f} s; lag of the backlog then {still:,}")
    assert worker.states() == dict.fromkeys(worker.states(), "RUNNING")
    assert still > 0, "the backlog was too small to say anything"


def _freshness(worker: WorkerProcess, broker: Broker, name: str, topic: str, count: int) -> float:
    """p99 of the seconds from a record's production to its delivery, one record a second."""
    found = []
    for _ in range(count):
        began = time.monotonic()
        (end,) = ends(broker, topic)
        broker.produce(topic, [(None, f'{{"n": {end}}}'.encode())])
        worker.until(lambda end=end: _uploaded(worker, name) >= end)
        found.append(time.monotonic() - began)
    return sorted(found)[int(len(found) * 0.99) - 1]


def _uploaded(worker: WorkerProcess, name: str) -> int:
    (found,) = [one for one in worker.do("GET", "/progress") if one["status"]["name"] == name]
    return -1 if found["last_upload"] is None else int(found["last_upload"]["last_offset"])
