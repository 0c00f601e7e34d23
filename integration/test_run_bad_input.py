"""Bad records, bad targets, bad disks: a clear error, nothing lost, and nothing committed past the trouble."""

import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.formats.bad import met
from integration.harness import Sink, settings_of
from integration.numbered import numbered
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

DEEP: Final = b'{"a":' * 101 + b"1" + b"}" * 101
BAD: Final = {
    "not JSON": (b'{"n": 1', ("value", "is not JSON")),
    "text behind": (b'{"n": 1} x', ("value", "is not JSON")),
    "empty": (b"", ("value is empty", "not JSON")),
    "invalid UTF-8": (b'{"n": 1, "t": "\xff\xfe"}', ("value", "is not JSON")),
    "cut UTF-8": (b'{"n": 1, "t": "\xc3"}', ("value", "is not JSON")),
    "not a number": (b'{"n": NaN}', ("NaN", "not a JSON number")),
    "list": (b'[{"n": 1}]', ("not a JSON object", "a list")),
    "text": (b'"n"', ("not a JSON object", "a string")),
    "empty object": (b"{}", ("value", "empty JSON object")),
    "empty key": (b'{"n": 1, "": 2}', ("the record", "empty name")),
    "empty key below": (b'{"n": 1, "o": {"": 2}}', ("object at o", "empty name")),
    "too deep": (DEEP, ("deeper than 100 levels",)),
    "same column twice": (b'{"n": 1, "a_b": 1, "a": {"b": 2}}', ("a_b and a.b", "both", "column a_b")),
    "beyond 64 bits": (b'{"n": 9223372036854775808}', ("field n", "integer beyond 64 bits")),
    "our own column": (b'{"n": 1, "kafkaOffset": 2}', ("column kafkaOffset", "Kafka metadata")),
}


def places(sink: Sink) -> list[tuple[int, int]]:
    """Topic-partition and offset of every row at the target."""
    return [(row["kafkaPartition"], row["kafkaOffset"]) for row in sink.rows()]


def test_invalid_records_stop_their_topic_partitions(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Each at its offset, by a reason of its own; what is before it is delivered and committed, and so are others."""
    name, last = topic(len(BAD) + 1), len(BAD)
    settings = settings_of(sink.properties(name), broker.bootstrap_servers)
    told = []
    for partition, (value, reason) in enumerate(BAD.values()):
        values = [*numbered(5), (None, value), *numbered(3)]
        count, error = met(settings, [one for _, one in values])
        assert (count, error.offset) == (5, 5)
        assert_says(error.reason, *reason)
        told.append(f"topic {name}, topic-partition {partition}, offset 5: {error.reason}. ")
        broker.produce(name, values, partition)
    broker.produce(name, numbered(4), last)
    run = sink.drain(name)
    assert (run.status, run.failure.kind) == (Status.FAILED, "InvalidRecord")
    assert any(run.failure.message.startswith(one) for one in told)
    assert places(sink) == [*((at, n) for at in range(last) for n in range(5)), *((last, n) for n in range(4))]
    assert sink.offsets(name, last + 1) == [*([5] * last), 4]


def test_invalid_record_can_be_passed_by_an_operator(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """The cure in the message works: reset the group's offset behind the record, and start again."""
    name = topic()
    broker.produce(name, [*numbered(2), (None, b"bad"), *numbered(2)])
    assert_says(sink.drain(name).failure.message, "resetting", "offset to 3")
    where = ("--group", sink.group, "--topic", name)
    broker.consumer_groups("--reset-offsets", *where, "--to-offset", "3", "--execute")
    assert sink.drain(name).status is Status.DONE
    assert (places(sink), sink.offsets(name)) == ([(0, 0), (0, 1), (0, 3), (0, 4)], [5])


def test_invalid_first_record_commits_nothing(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """There is nothing before it: no file is sent, and the offset stays; a second start says the same."""
    name = topic()
    broker.produce(name, [(None, b"bad"), *numbered(2)])
    for _ in range(2):
        run = sink.drain(name)
        assert (run.failure.kind, run.receipts, sink.offsets(name)) == ("InvalidRecord", [], [0])


def test_missing_primary_key_is_invalid(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A record without the primary key's column is named as such."""
    name = topic()
    broker.produce(name, [*numbered(2), (None, b'{"m": 1}')])
    run = sink.drain(name, data_primary_key="n")
    assert_says(run.failure.message, "offset 2: ", "connect.ems.data.primary.key", "column n is null")
    assert sink.offsets(name) == [2]


def test_odd_names_and_values_arrive(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Names and text with odd characters do no harm: columns get letters, digits and underscores, text stays."""
    name = topic()
    text = "\u0000\u001b[31m \U0001f600 \u202e '\"; drop table x; --"
    value = {"a b": 1, "größe": 2, "x-y": {"z.": text}, "1st": True, "'; --": 0.5, "\U0001f600": "x"}
    broker.produce(name, [(None, json.dumps(value).encode()), (None, json.dumps(value, ensure_ascii=False).encode())])
    assert sink.drain(name, embed_kafka_metadata=False).status is Status.DONE
    expected = {"a_b": 1, "gr__e": 2, "x_y_z_": text, "1st": True, "_____": 0.5, "_": "x"}
    assert sink.rows() == [expected, expected]


def test_large_record_arrives(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A record of 10 MB between small ones arrives whole."""
    name = topic(config={"max.message.bytes": "20000000"})
    text = "".join(map(str, range(10_000_000 // 7)))[:10_000_000]
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "message.max.bytes": 20_000_000})
    for value in ({"n": 1}, {"n": 2, "text": text}, {"n": 3}):
        producer.produce(name, json.dumps(value).encode())
    assert producer.flush(30) == 0
    assert sink.drain(name).status is Status.DONE
    assert [(row["n"], row["text"] == text) for row in sink.rows()] == [(1, False), (2, True), (3, False)]


def refusing(sink: Sink, broker: Broker, topic: TopicFactory, **ems: Any) -> str:
    """The error of a connector whose target takes nothing; nothing may be committed."""
    name = topic()
    broker.produce(name, numbered(3))
    run = sink.drain(name, **ems)
    assert (run.status, sink.offsets(name)) == (Status.FAILED, [0])
    assert_says(run.failure.message, f"Topic {name}", "topic-partition 0", "offsets 0 to 2")
    return f"{run.failure.kind}: {run.failure.message}"


def test_target_that_is_not_there(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """After the attempts that are allowed the error names the address's key."""
    endpoint = f"http://127.0.0.1:{free_port()}/continuous-batch-processing/api/v1/x/items"
    said = refusing(sink, broker, topic, endpoint=endpoint, max_retries=2)
    assert_says(said, "UploadExhausted", "no connection", "after 2 attempts", "connect.ems.endpoint")


def test_wrong_key_names_its_setting_and_not_its_value(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """401 is final at once, names the setting, and never the key."""
    said = refusing(sink, broker, topic, authorization_key="AppKey canary-4711")
    assert_says(said, "UploadRefused", "401", "after 1 attempt", "Correct connect.ems.authorization.key")
    assert "canary-4711" not in said


def test_wrong_path_names_the_endpoint(sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess) -> None:
    """404 is final at once and names the setting."""
    said = refusing(sink, broker, topic, endpoint=f"{target.url}/elsewhere")
    assert_says(said, "UploadRefused", "404", "after 1 attempt", "Correct connect.ems.endpoint")


def test_web_page_is_no_push_target(sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess) -> None:
    """200 with HTML is not an acceptance."""
    target.client.order_faults({"status": 200, "body": "<html>Welcome</html>"})
    said = refusing(sink, broker, topic, max_retries=2)
    assert_says(said, "UploadExhausted", "may or may not", "text/html", "not a push target")


def test_redirect_is_refused(sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess) -> None:
    """A redirect is not followed: the key goes to the configured address only."""
    target.client.order_faults({"location": f"{target.url}/elsewhere"})
    said = refusing(sink, broker, topic)
    assert_says(said, "UploadRefused", "redirects are never followed")


@pytest.mark.parametrize(
    ("fault", "repeated"),
    [
        ({"status": 503, "retry_after": "1", "next": 2}, 0),
        ({"status": 500, "store": True, "next": 1}, 1),
        ({"cut": "before", "next": 2}, 0),
        ({"cut": "during", "next": 1}, 1),
        ({"cut": "after", "next": 1}, 1),
    ],
)
def test_passing_trouble_is_overcome(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess, fault: dict[str, Any], repeated: int
) -> None:
    """The same file is sent again under the same name until it is accepted, and every row arrives once."""
    name = topic()
    broker.produce(name, numbered(5))
    target.client.order_faults(fault)
    run = sink.drain(name)
    assert (run.status, run.accepted[0].attempts) == (Status.DONE, fault["next"] + 1)
    statistics = target.client.statistics()
    assert (statistics["files"], statistics["repeated"], statistics["altered"]) == (1, repeated, 0)
    assert (places(sink), sink.offsets(name)) == ([(0, n) for n in range(5)], [5])


def test_refusal_in_the_middle_commits_what_was_accepted(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess
) -> None:
    """Files before the refused one count, later ones are not sent, other topic-partitions are not held up."""
    name = topic(2)
    broker.produce(name, numbered(20), 0)
    broker.produce(name, numbered(20), 1)
    target.client.order_faults({"status": 400, "match": "partition-0_firstOffset-10", "next": 1})
    run = sink.drain(name, commit_records=5)
    assert (run.status, run.failure.kind) == (Status.FAILED, "UploadRefused")
    assert_says(run.failure.message, f"Topic {name}", "topic-partition 0", "offsets 10 to 14")
    assert places(sink) == [(0, n) for n in range(10)] + [(1, n) for n in range(20)]
    assert sink.offsets(name, 2) == [10, 20]
    assert sink.drain(name, commit_records=5).records == 10
    assert (target.client.statistics()["repeated"], sink.offsets(name, 2)) == (0, [20, 20])


def test_tmp_dir_that_cannot_be_made(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """A tmp.dir below a file is told at the start, with the key and the cause."""
    (tmp_path / "file").write_text("")
    run = sink.start(topic(), tmp_dir=tmp_path / "file" / "below")
    assert (run.status, run.failure.kind) == (Status.FAILED, "StorageFailed")
    for part in ("connect.ems.tmp.dir", str(tmp_path / "file" / "below"), "Not a directory"):
        assert part in run.failure.message


def test_tmp_dir_that_turns_bad(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """A folder that cannot be made while records are there stops the connector; nothing is committed."""
    name = topic()
    broker.produce(name, numbered(3))
    place = sink.tmp_dir / sink.name / name
    place.parent.mkdir(parents=True)
    place.write_text("in the way")
    run = sink.drain(name)
    assert (run.status, run.failure.kind, sink.offsets(name)) == (Status.FAILED, "StorageFailed", [0])
    for part in ("connect.ems.tmp.dir", str(place), "Nothing is lost"):
        assert part in run.failure.message
    place.unlink()
    assert (sink.drain(name).records, sink.offsets(name)) == (3, [3])


def test_full_disk(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """When a file cannot grow, what was accepted before it is committed, and the rest is sent after the cure."""
    name = topic()
    broker.produce(name, numbered(2))
    assert sink.drain(name).records == 2  # now Spark has the workers to limit
    filler = "".join(map(str, range(60_000)))
    large = [(None, json.dumps({"n": n, "t": filler[n:]}).encode()) for n in range(5)]
    broker.produce(name, [*numbered(5), *large, *numbered(2)])
    with workers_limited_to(1_000_000):
        run = sink.drain(name, commit_records=5, parquet_compression_codec="none")
    assert (run.status, run.failure.kind) == (Status.FAILED, "StorageFailed")
    for part in (str(sink.tmp_dir), "bytes free", "File too large", "Nothing is lost"):
        assert part in run.failure.message
    reached = len(sink.rows())
    assert (places(sink), sink.offsets(name)) == ([(0, n) for n in range(reached)], [reached])
    assert reached < 12
    assert not list(sink.tmp_dir.rglob("*.part"))
    assert sink.drain(name).status is Status.DONE
    assert (places(sink), sink.offsets(name)) == ([(0, n) for n in range(14)], [14])


def test_full_disk_under_the_state_file(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """When not even the connector's notes can be written, the error names the folder, and nothing is lost."""
    name = topic()
    broker.produce(name, numbered(2))
    sink.drain(name)
    broker.produce(name, numbered(3))
    with workers_limited_to(20_000):
        run = sink.drain(name)
    assert (run.status, run.failure.kind) == (Status.FAILED, "StorageFailed")
    for part in (str(sink.tmp_dir), "connect.ems.tmp.dir", "Nothing is lost"):
        assert part in run.failure.message
    assert sink.drain(name).status is Status.DONE
    assert (sorted(set(places(sink))), sink.offsets(name)) == ([(0, n) for n in range(5)], [5])


@contextmanager
def workers_limited_to(size_bytes: int) -> Iterator[None]:
    """No file of Spark's Python workers grows beyond this size: a full disk that needs no rights to make."""
    processes = python_workers()
    assert processes, "Spark has no Python workers yet"
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in processes}
    try:
        for pid, (_, hard) in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size_bytes, hard))
        yield
    finally:
        for pid in python_workers():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, next(iter(before.values())))


def python_workers() -> list[int]:
    """Processes of Spark's Python daemons below this one: where Spark tasks run, and what plans and commits them."""
    parents: dict[int, int] = {}
    workers: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat, command = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            if b".daemon\0" in command:  # of tasks, and of what plans and commits
                workers.append(int(entry.name))
    return [pid for pid in workers if os.getpid() in ancestors(pid, parents)]


def ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    """The parents of a process, nearest first."""
    found: list[int] = []
    while pid in parents and pid not in found:
        found.append(pid)
        pid = parents[pid]
    return [*found, pid]


def test_two_connectors_of_one_name_are_refused(sink: Sink, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line names both files and starts nothing."""
    files = [tmp_path / "a.properties", tmp_path / "b.properties"]
    for file in files:
        file.write_text("".join(f"{key}={value}\n" for key, value in sink.properties("orders").items()))
    worker = tmp_path / "worker.properties"
    worker.write_text("value.converter=JsonConverter\nvalue.converter.schemas.enable=false\n")
    assert main(["run", "--worker", str(worker), *map(str, files)]) == 2
    said = capsys.readouterr().err
    assert_says(said, "Invalid [name]", sink.name, "is used", *map(str, files))
