"""Several workers of one group on real parts: who has what, takeovers, and REST through any of them."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM
from typing import Any, Final, cast

import pytest
import requests

from integration.connect import ours
from integration.connect.play import play
from integration.connect.steps import Script
from integration.harness import Sink
from integration.letters import letters
from integration.numbered import numbered, numbers
from integration.worker_group import WorkerGroup, create
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from tests.notify.receiver import Receiver, receiver

__all__ = ["receiver"]

COUNT: Final = 4
FEW: Final = 2
"""Connectors where it does not matter how many a worker has: one for each worker. A start of one takes 2 s of CPU."""
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture(scope="module")
def shared(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerGroup]:
    """Two workers that all tests share; use `group`, which has both of them."""
    made = WorkerGroup(tmp_path_factory.mktemp("group"), broker, 2)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def group(shared: WorkerGroup) -> WorkerGroup:
    """Two workers that have found each other, without connectors; started again if the last test ended one."""
    for worker in shared.workers:
        if worker.started:
            worker.command.signal_all(SIGCONT)
    living = [one for one in shared.workers if one.started and one.command.process.poll() is None]
    _until_found(shared, living)
    for name in living[0].do("GET", "/connectors") if living else ():  # before others are given a share of them
        living[0].do("DELETE", f"/connectors/{name}")
    for worker in shared.workers:
        if worker not in living:
            worker.start()
    _until_found(shared, shared.workers)
    return shared


def _until_found(group: WorkerGroup, workers: Sequence[WorkerProcess]) -> None:
    """Each of these workers sees all of them, and no other."""
    group.until(lambda: [len(group.placed(one)) for one in workers] == [len(workers)] * len(workers))


@pytest.fixture
def sinks(broker: Broker, target: TargetProcess, tmp_path: Path) -> list[Sink]:
    """Properties, rows and offsets of connectors."""
    return [Sink(cast(Any, None), broker, target, tmp_path) for _ in range(COUNT)]


@pytest.fixture
def topics(broker: Broker) -> list[str]:
    """A topic for each of them."""
    names = [f"topic-{time.time_ns()}-{number}" for number in range(COUNT)]
    for name in names:
        broker.create_topic(name, 2)
    return names


def _arrived(sinks: list[Sink], count: int) -> bool:
    return all(sorted(numbers(sink.rows())) == list(range(count)) for sink in sinks)


def _files(sinks: list[Sink]) -> set[str]:
    """Names of all that the target has accepted."""
    return {one["name"] for sink in sinks for one in sink.target.client.files(sink.table)}


def _page_with_files(group: WorkerGroup, url: str) -> str:
    """A worker's first screen, once it has the files of all connectors."""
    seen: list[str] = []

    def whole() -> bool:
        seen.append(requests.get(f"{url}/ui", timeout=30).text)
        return seen[-1].count('<svg class="bars"') == COUNT

    group.until(whole)
    return seen[-1]


def test_a_lost_worker_s_connectors_go_on_at_another(
    group: WorkerGroup, sinks: list[Sink], topics: list[str], broker: Broker, receiver: Receiver
) -> None:
    """Both have some; what a killed one had is taken over once its session is over.

    Nothing is lost, and no accepted file is without its notice, in the topic or at the webhook.
    """
    follower = next(one for one in group.workers if one is not group.leader(group.workers[0]))
    notices = f"notices-{time.time_ns()}"
    broker.create_topic(notices, 1)
    create(follower, sinks, topics, notify_topic=notices, notify_url=receiver.url)
    names = {sink.name for sink in sinks}
    assert set(follower.do("GET", "/connectors")) == names
    for topic in topics:
        for partition in (0, 1):  # left to the client one may get all of them
            broker.produce(topic, numbered(100)[partition::2], partition)
    group.until(lambda: _arrived(sinks, 100))
    placed = group.placed(follower)
    assert sorted(map(len, placed.values())) == [COUNT // 2, COUNT // 2]
    group.until(lambda: set(follower.states().values()) == {"RUNNING"})

    for worker in group.workers:  # each one's page has all of them, and asks the other for its files
        first = _page_with_files(group, worker.url)
        for sink, topic in zip(sinks, topics, strict=True):
            assert f'href="/ui/connectors/{sink.name}"' in first
            asked = f"/ui/connectors/{sink.name}/files?topic={topic}&partition=0&at=0"
            group.until(lambda url=worker.url + asked: "<b>Accepted</b>" in requests.get(url, timeout=30).text)

    lost, left = follower, next(one for one in group.workers if one is not follower)
    lost.command.signal_all(SIGKILL)
    for topic in topics:
        broker.produce(topic, numbered(100, 100))
    group.until(lambda: _arrived(sinks, 200))
    assert set(left.states().values()) == {"RUNNING"}
    assert set(group.placed(left)) == {left.url.removeprefix("http://")}
    group.until(lambda: {json.loads(one.value() or b"")["file"] for one in letters(broker, notices)} == _files(sinks))
    group.until(lambda: {one["file"] for _, one in receiver.taken} == _files(sinks))


@pytest.mark.in_turn(seconds=50)
def test_a_killed_worker_that_is_started_again_is_not_waited_for(
    broker: Broker, sinks: list[Sink], topics: list[str], tmp_path: Path
) -> None:
    """It knows that its former life ended, and says so: others go on while brokers still list that one."""
    sinks, topics = sinks[:FEW], topics[:FEW]
    group = WorkerGroup(tmp_path, broker, 2, {"session.timeout.ms": "120000"})
    try:
        group.start()
        killed = next(one for one in group.workers if one is not group.leader(group.workers[0]))
        left = next(one for one in group.workers if one is not killed)
        create(left, sinks, topics)
        for topic in topics:
            broker.produce(topic, numbered(50))
        group.until(lambda: _arrived(sinks, 50))
        group.until(lambda: set(left.states().values()) == {"RUNNING"})
        moved = group.placed(left)[killed.url.removeprefix("http://")]
        assert moved
        killed.command.signal_all(SIGKILL)
        killed.start()
        for topic in topics:
            broker.produce(topic, numbered(50, 50))
        group.until(lambda: _arrived(sinks, 100))
        for name in moved:
            assert re.search(f"connector {name}: .*has it now", left.command.said)
        assert "this worker was killed as member" in killed.command.said
        assert "was lost" not in left.command.said
    finally:
        group.close()


def test_a_stopping_worker_hands_over_at_once_and_a_new_one_gets_a_share(
    group: WorkerGroup, sinks: list[Sink], topics: list[str], broker: Broker
) -> None:
    """Its connectors go on elsewhere within seconds of SIGTERM, also those of the leader; who joins is given some.

    Some had files at both workers by then: a purge by any of them removes all.
    """
    sinks, topics = sinks[:FEW], topics[:FEW]
    leaving = group.leader(group.workers[0])
    left = next(one for one in group.workers if one is not leaving)
    create(leaving, sinks, topics)
    for topic in topics:
        broker.produce(topic, numbered(50))
    group.until(lambda: _arrived(sinks, 50))
    group.until(lambda: set(left.states().values()) == {"RUNNING"})

    leaving.command.send(SIGTERM)
    for topic in topics:
        broker.produce(topic, numbered(50, 50))
    group.until(lambda: _arrived(sinks, 100))
    assert leaving.command.ended() == 0, leaving.command.said[-3_000:]
    assert set(left.states().values()) == {"RUNNING"}
    group.until(lambda: group.leader(left) is left)

    leaving.start()
    group.until(lambda: sorted(map(len, group.placed(left).values())) == [FEW // 2, FEW // 2])
    group.until(lambda: set(leaving.states().values()) == {"RUNNING"})
    for topic in topics:
        broker.produce(topic, numbered(50, 100))
    group.until(lambda: _arrived(sinks, 150))

    tmp = Path(sinks[0].properties(topics[0])["connect.ems.tmp.dir"])
    had = [path for sink in sinks for path in tmp.glob(f"*/{sink.name}")]
    assert len(had) > FEW
    asked = group.worker_of(sinks[0].name, left)  # it has this one, and not the other
    for sink in sinks:
        assert asked.do("DELETE", f"/connectors/{sink.name}?purge=true") == {"left": [], "warnings": []}
    assert left.do("GET", "/connectors") == []
    assert [path for path in had if path.exists()] == []
    assert "stays in the state topic" not in group.said()


@pytest.mark.in_turn
def test_a_frozen_worker_delivers_nothing_once_it_is_taken_over(
    group: WorkerGroup, sinks: list[Sink], topics: list[str], broker: Broker
) -> None:
    """Others have its connectors; when it wakes up it gives way, commits nothing, and is given a share again."""
    sinks, topics = sinks[:FEW], topics[:FEW]
    frozen = group.leader(group.workers[0])
    left = next(one for one in group.workers if one is not frozen)
    create(frozen, sinks, topics)
    for topic in topics:
        broker.produce(topic, numbered(50))
    group.until(lambda: _arrived(sinks, 50))
    frozen.command.signal_all(SIGSTOP)
    for topic in topics:
        broker.produce(topic, numbered(50, 50))
    group.until(lambda: _arrived(sinks, 100))
    committed = [sink.offsets(topic) for sink, topic in zip(sinks, topics, strict=True)]
    frozen.command.signal_all(SIGCONT)
    group.until(lambda: sorted(map(len, group.placed(left).values())) == [FEW // 2, FEW // 2])
    for topic in topics:
        broker.produce(topic, numbered(50, 100))
    group.until(lambda: _arrived(sinks, 150))
    group.until(lambda: set(frozen.states().values()) == {"RUNNING"})
    after = [sink.offsets(topic) for sink, topic in zip(sinks, topics, strict=True)]
    pairs = [pair for each in zip(committed, after, strict=True) for pair in zip(*each, strict=True)]
    assert all((new or 0) >= (old or 0) for old, new in pairs)


def _check_what_one_worker_has(group: WorkerGroup, path: str) -> None:
    """Files of the worker that has the connector are told by both, and a job there is begun and seen by both."""

    def told() -> list[Any]:
        return [worker.do("GET", f"{path}/history")["files"] for worker in group.workers]

    group.until(lambda: bool(told()[0]))
    assert told()[0] == told()[1]
    jobs = []
    for begins in group.workers:  # one after the other: a connector has one replay at a time
        jobs.append(begins.do("POST", f"{path}/replay", {"dry_run": True})["id"])
        for worker in group.workers:
            group.until(lambda: {one["exit_status"] for one in worker.do("GET", f"{path}/jobs")} == {0})  # noqa: B023
            assert [one["id"] for one in worker.do("GET", f"{path}/jobs")] == jobs


def test_every_worker_answers_and_changes_everything(
    group: WorkerGroup, sinks: list[Sink], topics: list[str], broker: Broker
) -> None:
    """What is written by one is read by the other at once: pause, stop, offsets, change, restart, delete."""
    one, other = group.workers
    sinks, topics = sinks[:FEW], topics[:FEW]
    create(one, sinks, topics)
    name, path = sinks[0].name, f"/connectors/{sinks[0].name}"
    assert other.do("GET", f"{path}/config")["name"] == name
    assert other.ask("POST", "/connectors", {"name": name, "config": sinks[0].properties(topics[0])}).status_code == 409
    for topic in topics:
        broker.produce(topic, numbered(20))
    group.until(lambda: _arrived(sinks, 20))
    _check_what_one_worker_has(group, path)
    for worker, reader, action, state in (
        (one, other, "pause", "PAUSED"),
        (other, one, "resume", "RUNNING"),
        (one, other, "stop", "STOPPED"),
    ):
        worker.do("PUT", f"{path}/{action}")
        reader.until_state(name, state)
    assert other.ask("DELETE", f"/connectors/{sinks[1].name}/offsets").status_code == 400
    for worker in (one, other):
        offsets = worker.do("GET", f"{path}/offsets")["offsets"]
        assert sum(found["offset"]["kafka_offset"] for found in offsets) == 20
    for worker in (one, other):
        worker.until_state(name, "STOPPED")
        worker.do("DELETE", f"{path}/offsets")
    assert one.do("GET", f"{path}/offsets")["offsets"] == []
    for worker in (one, other):
        config = {**worker.do("GET", f"{path}/config"), "connect.ems.commit.records": "7"}
        worker.do("PUT", f"{path}/config", config)
    other.do("PUT", f"{path}/resume")
    one.until_state(name, "RUNNING")
    for worker in (one, other):
        assert worker.ask("POST", f"{path}/restart?includeTasks=true").status_code == 202
        group.until(lambda: set(one.states().values()) == {"RUNNING"})
    assert {found["status"]["name"] for found in other.do("GET", "/progress")} == {sink.name for sink in sinks}
    group.until(lambda: all(found["partitions"] for found in other.do("GET", "/progress")))
    assert one.do("GET", f"{path}/topics") == {name: {"topics": [topics[0]]}}
    for worker, sink in zip((one, other), sinks, strict=True):
        worker.do("DELETE", f"/connectors/{sink.name}")
        assert sink.name not in group.workers[1].do("GET", "/connectors")
    assert one.do("GET", "/connectors") == []
    figures = [worker.ask("GET", "/metrics").text for worker in group.workers]
    assert [f'parquet_sink_workers{{group="{group.group_id}"}} 2.0' in text for text in figures] == [True, True]
    assert sorted(f'parquet_sink_leads{{group="{group.group_id}"}} 1.0' in text for text in figures) == [False, True]
    logger = "/admin/loggers/parquet_sink.distributed.leader"
    assert other.ask("PUT", f"{logger}?scope=cluster", {"level": "WARN"}).status_code == 204
    group.until(lambda: {worker.do("GET", logger)["level"] for worker in group.workers} == {"WARN"})
    assert other.ask("PUT", f"{path}/pause").status_code == 404


def test_two_requests_at_once_at_two_workers_are_one_after_the_other(
    group: WorkerGroup, sinks: list[Sink], topics: list[str], broker: Broker, tmp_path: Path
) -> None:
    """One makes the connector, and one ends it; the other is told so. Kafka Connect says 201 twice at times."""
    name, urls, made = sinks[0].name, cycle(one.url for one in group.workers), Script()
    body = {"name": name, "config": sinks[0].properties(topics[0]), "initial_state": "STOPPED"}
    for number in range(5):
        made.ask(f"create {number}", "POST /connectors", body, times=2)
        made.ask(f"delete {number}", f"DELETE /connectors/{name}", times=2)
    side = ours.side(*(int(one.url.rpartition(":")[2]) for one in group.workers), folder=tmp_path)
    statuses = [one.status for one in play(made, side, broker, pick=lambda ask: next(urls))]
    assert statuses == [201, 409, 204, 404] * 5


def test_any_worker_takes_a_flush(group: WorkerGroup, sinks: list[Sink], topics: list[str], broker: Broker) -> None:
    """What waits within an interval of an hour goes out; who does not have the connector asks the one that has it."""
    sinks, topics = sinks[:FEW], topics[:FEW]
    create(group.workers[0], sinks, topics, commit_interval_ms=3_600_000)
    group.until(lambda: all(one["partitions"] for one in _progress(group)))
    for topic in topics:
        broker.produce(topic, numbered(4))
    group.until(lambda: [sum(part["lag"] for part in one["partitions"]) for one in _progress(group)] == [4] * FEW)
    assert not _arrived(sinks, 4)
    for sink in sinks:
        for asked in group.workers:
            assert main(["connectors", "flush", sink.name, "--wait", "--url", asked.url]) == 0
    assert _arrived(sinks, 4)


def _progress(group: WorkerGroup) -> list[dict[str, Any]]:
    """Of all connectors, as one of the workers tells it."""
    found: list[dict[str, Any]] = group.workers[0].do("GET", "/progress")
    return found if len(found) == FEW else [{"partitions": []}]


@pytest.mark.in_turn
def test_a_source_and_a_sink_go_on_at_another_worker(group: WorkerGroup, broker: Broker, tmp_path: Path) -> None:
    """A lost worker's source goes on from its stored position, and no line is missing behind the sink beside it."""
    one, other = group.workers
    source, out, topic = tmp_path / "lines.txt", tmp_path / "out.txt", f"lines-{time.time_ns()}"
    broker.create_topic(topic, 1)
    plain = {"key.converter": STRING, "value.converter": STRING}
    source.write_text("".join(f"line {number}\n" for number in range(100)))
    reads = {"connector.class": "FileStreamSource", "file": str(source), "topic": topic, **plain}
    writes = {"connector.class": "FileStreamSink", "file": str(out), "topics": topic, **plain}
    for worker, name, config in ((one, "lines-in", reads), (other, "lines-out", writes)):
        worker.do("POST", "/connectors", {"name": name, "config": config})
    group.until(lambda: out.exists() and len(set(out.read_text().splitlines())) == 100)
    lost = group.worker_of("lines-in", one)
    left = other if lost is one else one
    assert group.worker_of("lines-out", one) is left
    lost.command.signal_all(SIGKILL)
    with source.open("a") as file:
        file.write("".join(f"line {number}\n" for number in range(100, 200)))
    group.until(lambda: len(set(out.read_text().splitlines())) == 200)
    assert left.do("GET", "/connectors/lines-in/offsets")["offsets"][0]["offset"]["position"] == source.stat().st_size
    assert set(out.read_text().splitlines()) == {f"line {number}" for number in range(200)}
