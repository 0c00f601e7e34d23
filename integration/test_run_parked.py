"""What a connector passes over is parked, and replayed once the cause is mended: nothing is lost, nothing is twice."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from integration import scripted_target as script
from integration.conftest import TopicFactory
from integration.faults.front import Front, kept
from integration.harness import Run, Sink
from integration.letters import letters
from integration.numbered import numbered, numbers
from integration.sink_process import SinkProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from parquet_sink.model.events import FilePassedOver, RecordsSetAside
from parquet_sink.parked.scan import scan
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

INTEGRATION = Path(__file__).parent
LONG = "x" * 60
CHUNKS = {"flattener_jsonblob_chunks": 1, "error_policy": "CONTINUE"}


def keyed(*values: Mapping[str, Any]) -> list[tuple[bytes | None, bytes]]:
    """Records with a key."""
    return [(b"key", json.dumps(value).encode()) for value in values]


def parked(run: Run) -> list[dict[str, Any]]:
    """What is parked, in the order of its files."""
    return [row for file in scan(run.settings.parked_folder).files for row in file.read().to_pylist()]


class Files:
    """Connector files for the command line."""

    def __init__(self, sink: Sink, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._sink, self._folder, self._capsys = sink, folder, capsys

    def parked(self, action: str, properties: Mapping[str, str], *options: str) -> tuple[int, str]:
        """Exit status and output of `parquet-sink parked ACTION`."""
        worker = {
            "bootstrap.servers": self._sink.broker.bootstrap_servers,
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        }
        paths = [self._folder / name for name in ("c.properties", "w.properties")]
        for path, found in zip(paths, (properties, worker), strict=True):
            path.write_text("".join(f"{key}={value}\n" for key, value in found.items()), encoding="utf-8")
        self._capsys.readouterr()
        status = main(["parked", action, *options, "--worker", str(paths[1]), str(paths[0])])
        return status, self._capsys.readouterr().out


@pytest.fixture
def files(sink: Sink, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    """The commands, for this test's connector."""
    return Files(sink, tmp_path, capsys)


def test_bad_records_are_parked_mended_and_replayed(
    sink: Sink, broker: Broker, topic: TopicFactory, files: Files
) -> None:
    """The table is what it would have been: records too long for a chunk are parked until chunks are longer."""
    name = topic(2)
    for partition in range(2):
        values = [{"n": n, "t": LONG if n % 3 == 1 else "short"} for n in range(10)]
        broker.produce(name, keyed(*values), partition)
    bad = {"data_fallback_varchar_length": 40}
    run = sink.drain(name, **CHUNKS, **bad)
    assert (run.status, sink.offsets(name, 2)) == (Status.DONE, [10, 10])
    rows = parked(run)
    assert sorted((row["partition"], row["offset"]) for row in rows) == [(p, n) for p in (0, 1) for n in (1, 4, 7)]
    assert {(row["key"], row["stage"], row["connector"]) for row in rows} == {(b"key", "SHAPE", sink.name)}
    assert all(json.loads(row["value"])["t"] == LONG for row in rows)
    still = sink.properties(name, **CHUNKS, **bad)
    assert files.parked("replay", still)[0] == 1
    assert len(parked(run)) == 6
    mended = sink.properties(name, **CHUNKS, data_fallback_varchar_length=400)
    status, told = files.parked("list", mended)
    assert (status, f"topic {name}, SHAPE: 6 records" in told) == (0, True)
    status, told = files.parked("replay", mended)
    assert status == 0, told
    assert_says(told, "6 records done with", "0 stay parked")
    assert parked(run) == []
    whole = sink.make(
        {**mended, "name": f"{sink.name}-2", "connect.ems.target.table": f"{sink.table}-2"}, until_caught_up=True
    )
    whole.start().until_ended()
    assert sink.rows() == sink.rows(f"{sink.table}-2")
    assert sink.offsets(name, 2) == [10, 10]


def test_a_refused_file_is_parked_and_an_older_row_overwrites_no_newer_one(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess, files: Files
) -> None:
    """The file in the middle is refused; the next goes on; replayed while it runs, its rows lose to newer ones."""
    name = topic()
    records = [{"n": n % 10, "v": n} for n in range(30)]
    broker.produce(name, [(b"k", b"not JSON"), *keyed(*records)])
    target.client.order_faults(
        {"status": 422, "body": '{"message": "a bad file"}', "match": "firstOffset-11_", "next": 1}
    )
    keys = {"data_primary_key": "n", "commit_records": 10, "error_policy": "CONTINUE"}
    run = sink.start(name, **keys).until_records(20)
    rows = parked(run)
    assert [row["offset"] for row in rows] == [0, *range(11, 21)]
    assert {row["stage"] for row in rows[1:]} == {"TASK_PUT"}
    assert rows[1]["reason"].endswith("answered 422: a bad file")
    assert [json.loads(row["value"])["v"] for row in rows[1:]] == list(range(10, 20))
    assert [(one.first_offset, one.accepted) for one in run.receipts if not one.accepted] == []
    status, told = files.parked("replay", sink.properties(name, **keys), "--stage", "TASK_PUT")
    assert status == 0, told
    assert_says(told, "10 records done with", "0 stay parked")
    assert sorted((row["n"], row["v"]) for row in sink.rows()) == [(n, 20 + n) for n in range(10)]
    broker.produce(name, [(b"k", b"not JSON"), *keyed({"n": 5, "v": 100})])
    assert (run.until_records(21).stop().status, sink.offsets(name)) == (Status.DONE, [33])
    assert [row["offset"] for row in parked(run)] == [0, 31]
    assert [row["v"] for row in sink.rows() if row["n"] == 5] == [100]
    told = [event.count for event in run.events if isinstance(event, RecordsSetAside)]
    assert (sum(told), sum(isinstance(event, FilePassedOver) for event in run.events)) == (12, 1)


def test_a_refused_file_goes_to_the_dead_letter_topic_where_one_is_named(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess
) -> None:
    """Record by record, with keys and values as they were; nothing is parked."""
    name, dead = topic(), topic()
    broker.produce(name, keyed(*({"n": n} for n in range(12))))
    target.client.order_faults({"status": 400, "match": "firstOffset-4_", "next": 1})
    keys = {
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    run = sink.drain(name, keys, commit_records=4, error_policy="CONTINUE")
    assert (run.status, sink.offsets(name), parked(run)) == (Status.DONE, [12], [])
    assert numbers(sink.rows()) == [0, 1, 2, 3, 8, 9, 10, 11]
    found = letters(broker, dead)
    assert [(one.key(), json.loads(one.value() or b"")) for one in found] == [(b"key", {"n": n}) for n in range(4, 8)]
    headers = dict(found[0].headers() or [])
    assert headers["__connect.errors.stage"] == b"TASK_PUT"
    assert b"the target answered 400" in headers["__connect.errors.exception.message"]


def test_a_wrong_key_is_never_passed_over(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess
) -> None:
    """CONTINUE is no leave to pass over what every file would be refused for: nothing is committed, nothing parked."""
    name = topic()
    broker.produce(name, numbered(3))
    target.client.order_faults({"status": 401})
    run = sink.drain(name, error_policy="CONTINUE")
    assert (run.status, run.failure.kind, sink.offsets(name), parked(run)) == (Status.FAILED, "UploadRefused", [0], [])


def test_at_the_bound_the_connector_stops(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """What has no room any more stops it, with key and cure; what was parked counts; with more room it goes on."""
    name = topic()
    bad = [(None, os.urandom(100_000)) for _ in range(15)]
    broker.produce(name, [*numbered(2), *bad, *numbered(2, 2)])
    passing = {"error_policy_continue_on_invalid_input": "true"}
    run = sink.drain(name, parked_max_bytes=1_000_000, **passing)
    assert (run.status, run.failure.kind) == (Status.FAILED, "ParkedFull")
    assert "connect.ems.parked.max.bytes=1000000" in run.failure.message
    assert sink.offsets(name)[0] <= 2 + len(parked(run))  # type: ignore[operator]
    again = sink.drain(name, parked_max_bytes=10_000_000, **passing)
    assert (again.status, sink.offsets(name)) == (Status.DONE, [19])
    assert sorted(row["offset"] for row in parked(again)) == list(range(2, 17))
    assert numbers(sink.rows()) == [0, 1, 2, 3]


@pytest.fixture
def program(sink: Sink, topic: TopicFactory, tmp_path: Path) -> Iterator[tuple[SinkProcess, str, Path]]:
    """`parquet-sink run` as a process that can be told to crash, its topic, and the folder of its orders."""
    name, seams = topic(), tmp_path / "seams"
    seams.mkdir()
    properties = sink.properties(name, error_policy="CONTINUE", commit_records=50)
    converter = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    paths = [str(INTEGRATION / "steps"), str(INTEGRATION.parent), os.environ.get("PYTHONPATH", "")]
    environment = {
        "PARQUET_SINK_BOOTSTRAP_SERVERS": sink.broker.bootstrap_servers,
        "PARQUET_SINK_TEST_SEAMS": str(seams),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    made = SinkProcess([{**properties, **converter}], tmp_path, environment)
    yield made, name, seams
    made.end_all()


def test_kill_9_in_the_middle_of_parking_loses_nothing(
    program: tuple[SinkProcess, str, Path], sink: Sink, broker: Broker
) -> None:
    """All processes die when a parked file is whole but not in its place; the next start does all the rest."""
    process, name, seams = program
    records = [(None, b"bad %d" % n if n % 7 == 0 else b'{"n":%d}' % n) for n in range(200)]
    broker.produce(name, records)
    (seams / "armed").write_text(json.dumps({"seam": "Staged.commit", "when": "before", "caller": "", "whole": True}))
    assert process.run_to_end(120, "--until-caught-up") != 0
    assert (seams / "fired").exists(), process.last_words()
    process.end_all()
    run = sink.drain(name, error_policy="CONTINUE", commit_records=50)
    assert run.status is Status.DONE
    folder = sink.tmp_dir / sink.name / ".parked"
    found = scan(str(folder))
    kept = [row for file in found.files for row in file.read().to_pylist()]
    assert [(row["offset"], row["value"]) for row in kept] == [(n, b"bad %d" % n) for n in range(0, 200, 7)]
    assert sorted(set(numbers(sink.rows()))) == [n for n in range(200) if n % 7]
    assert sink.offsets(name) == [200]
    assert list(folder.rglob("*.part")) == []


def test_a_file_that_was_delivered_is_not_parked_for_its_name(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """409 after a lost answer, and in a range that comes again: the connector stops and says where to look."""
    name = topic()
    broker.produce(name, numbered(30))
    known = script.answer(409, b'{"message": "a file of this name is known"}')
    port = int(sink.target.url.rpartition(":")[2])
    with Front(port, [kept(script.cut(None)), known, known]) as front:
        for _ in range(2):
            run = sink.start(name, endpoint=front.endpoint, error_policy="CONTINUE").until_ended()
            assert run.status is Status.FAILED
            assert_says(run.failure.message, "of this name is known", "resetting", "offset to 30")
            assert (parked(run), sink.offsets(name)) == ([], [0])
    assert len({one.name for one in front.attempts}) == 1
    assert numbers(sink.rows()) == list(range(30))
