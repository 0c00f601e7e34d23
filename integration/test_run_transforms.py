"""Connector files with transforms, through the running sink from Kafka to the target."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from integration.conftest import TopicFactory
from integration.harness import Run, Sink, until_ends
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says

OWN: Final = "integration.own_transforms"
CONNECT: Final = "org.apache.kafka.connect.transforms"
STEPS: Final = {
    "transforms": "rename,drop,text,at,hide",
    "transforms.rename.type": f"{CONNECT}.ReplaceField$Value",
    "transforms.rename.renames": "qty:quantity",
    "transforms.drop.type": f"{OWN}.DropEvery",
    "transforms.drop.number": "3",
    "transforms.text.type": "Cast",
    "transforms.text.spec": "quantity:string",
    "transforms.text.predicate": "later",
    "transforms.text.negate": "true",
    "transforms.at.type": "InsertField$Value",
    "transforms.at.offset.field": "at",
    "transforms.hide.type": "MaskField",
    "transforms.hide.fields": "name",
    "transforms.hide.replacement": "?",
    "predicates": "later",
    "predicates.later.type": f"{OWN}.From",
    "predicates.later.offset": "0",
}
ENVELOPE: Final = {
    "type": "struct",
    "fields": [{"field": "qty", "type": "int64"}, {"field": "name", "type": "string", "optional": True}],
}


def plain(number: int) -> bytes:
    """JSON without a schema."""
    return json.dumps({"qty": number, "name": f"n{number}"}).encode()


def enveloped(number: int) -> bytes:
    """The same with its schema."""
    return json.dumps({"schema": ENVELOPE, "payload": {"qty": number, "name": f"n{number}"}}).encode()


@pytest.mark.parametrize(("record", "enabled"), [(plain, "false"), (enveloped, "true")])
def test_several_transforms_in_their_order(
    sink: Sink, broker: Broker, topic: TopicFactory, record: Callable[[int], bytes], enabled: str
) -> None:
    """Each record once, as all of them leave it; what one drops is committed."""
    name = topic(2)
    for partition in range(2):
        broker.produce(name, [(None, record(number)) for number in range(100)], partition)
    worker = {"value.converter.schemas.enable": enabled}
    run = sink.make({**sink.properties(name, commit_records=30), **STEPS}, until_caught_up=True, worker=worker)
    run.start().until_ended()
    assert (run.status, sink.offsets(name, 2)) == (Status.DONE, [100, 100])
    rows = [(row["kafkaPartition"], row["at"], row["quantity"], row["name"]) for row in sink.rows()]
    assert rows == [(partition, n, n, "?") for partition in range(2) for n in range(100) if n % 3]


def test_a_restart_in_the_middle_sends_the_same_files(
    sink: Sink, broker: Broker, topic: TopicFactory, target: TargetProcess
) -> None:
    """Names and rows are those of a run that nobody stopped."""
    name = topic()
    broker.produce(name, [(None, plain(number)) for number in range(100)])
    whole = {**sink.properties(name, commit_records=10), **STEPS}
    other = {**whole, "name": f"{sink.name}-2", "connect.ems.target.table": f"{sink.table}-2"}
    undisturbed = sink.make(other, until_caught_up=True).start().until_ended()
    third = undisturbed.accepted[2]
    target.client.order_faults({"status": 503, "match": f"{sink.name}.*firstOffset-{third.first_offset}_"})
    first = sink.make(whole).start().until(lambda: len(first_accepted(sink)) >= 2)
    first.stop()
    target.client.clear_faults()
    second = sink.make(whole, until_caught_up=True).start().until_ended()
    assert second.status is Status.DONE
    sent = {one.file_name for run in (first, second) for one in run.accepted}
    assert sent == {one.file_name for one in undisturbed.accepted}
    assert sink.rows() == sink.rows(f"{sink.table}-2")
    assert sink.offsets(name) == [100]


def first_accepted(sink: Sink) -> list[Any]:
    """Files that the target has of the connector's table."""
    return sink.target.client.files(sink.table)


def test_a_transform_that_cannot_work_now_is_tried_again(
    sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """The connector waits for it, and then delivers everything once."""
    name, needed = topic(), tmp_path / "needed"
    broker.produce(name, [(None, plain(number)) for number in range(20)])
    steps = {"transforms": "w", "transforms.w.type": f"{OWN}.WaitFor", "transforms.w.file": str(needed)}
    run = sink.start(name, {**steps, "errors.retry.timeout": "60000", "errors.retry.delay.max.ms": "1000"})
    run.until(lambda: postponed(run) >= 2)
    assert sink.rows() == []
    needed.touch()
    run.until_records(20).stop()
    assert [row["qty"] for row in sink.rows()] == list(range(20))


def postponed(run: Run) -> int:
    """How often a range was put off."""
    return sum(type(event).__name__ == "RangePostponed" for event in run.events)


def test_a_mistake_in_a_transform_stops_the_connector(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """With the transform's name and class; nothing is committed past it."""
    name = topic()
    broker.produce(name, [(None, plain(number)) for number in range(5)])
    run = sink.drain(name, {"transforms": "b", "transforms.b.type": f"{OWN}.Breaks"})
    assert (run.status, run.failure.kind, sink.offsets(name)) == (Status.FAILED, "TransformFailed", [0])
    assert_says(run.failure.message, "transforms.b", f"{OWN}.Breaks", "KeyError")


def test_keys_and_headers(sink: Sink, topic: TopicFactory, producer: Producer) -> None:
    """They are read, decoded by their converters, and become columns; records are chosen by header and by null."""
    name = topic()
    for number in range(30):
        headers = [("kind", b"test")] if number % 5 == 0 else [("kind", b"order"), ("retries", b"%d" % number)]
        value = None if number % 7 == 0 else plain(number)
        producer.produce(name, value, json.dumps({"id": number}).encode(), headers=headers)
    assert producer.flush(30) == 0
    steps = {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "transforms": "test,null,key,header",
        "transforms.test.type": f"{CONNECT}.Filter",
        "transforms.test.predicate": "plain",
        "transforms.test.negate": "true",
        "transforms.null.type": "Filter",
        "transforms.null.predicate": "null",
        "transforms.key.type": "KeyToValue",
        "transforms.key.fields": "id:order_id",
        "transforms.header.type": "HeaderToValue",
        "transforms.header.headers": "retries",
        "predicates": "plain,null",
        "predicates.plain.type": f"{CONNECT}.predicates.HasHeaderKey",
        "predicates.plain.name": "retries",
        "predicates.null.type": "RecordIsTombstone",
    }
    run = sink.drain(name, steps)
    assert (run.status, sink.offsets(name)) == (Status.DONE, [30])
    expected = [number for number in range(30) if number % 5 and number % 7]
    assert [(row["qty"], row["order_id"], row["retries"]) for row in sink.rows()] == [(n, n, n) for n in expected]


def test_a_converter_of_ones_own(sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """Its records arrive; at what it calls invalid the connector stops, and names the record."""
    name = topic()
    broker.produce(name, [(None, b"id=%d;name=n" % number) for number in range(20)])
    own = {"value.converter": f"{OWN}.Pairs"}
    assert sink.drain(name, own).status is Status.DONE
    assert [(row["id"], row["name"]) for row in sink.rows()] == [(str(number), "n") for number in range(20)]
    broker.produce(name, [(None, b"nothing")])
    run = sink.drain(name, own)
    assert (run.status, run.failure.kind, sink.offsets(name)) == (Status.FAILED, "InvalidRecord", [20])
    assert_says(run.failure.message, "offset 20: ", "value has no =")


class Command:
    """The command line, with a connector file of this test."""

    def __init__(self, sink: Sink, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._sink, self._folder, self._capsys = sink, folder, capsys

    def run(self, command: str, properties: dict[str, str], *options: str) -> tuple[int, str, str]:
        """Exit status, standard output, standard error."""
        path = self._folder / "c.properties"
        found = {"value.converter": "json", "value.converter.schemas.enable": "false", **properties}
        path.write_text("".join(f"{key}={value}\n" for key, value in found.items()), encoding="utf-8")
        self._capsys.readouterr()
        status = main([command, "--bootstrap-servers", self._sink.broker.bootstrap_servers, *options, str(path)])
        said = self._capsys.readouterr()
        return status, said.out, said.err


@pytest.fixture
def command(sink: Sink, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line."""
    return Command(sink, tmp_path, capsys)


def test_one_record_of_kafka_is_tried(sink: Sink, broker: Broker, topic: TopicFactory, command: Command) -> None:
    """After each step, and its row, or as received where it cannot be decoded; the group has no offset by it."""
    name = topic(2)
    broker.produce(name, [(b"k%d" % number, plain(number)) for number in range(5)], 1)
    properties = {**sink.properties(name), **STEPS}
    status, out, _ = command.run("try", properties, "--partition", "1", "--offset", "4", "--json")
    found = json.loads(out)
    assert status == 0
    assert [step["step"].split()[0] for step in found["steps"]] == [
        *("decoded", "transforms.rename", "transforms.drop", "transforms.text", "transforms.at", "transforms.hide"),
    ]
    assert found["steps"][0]["key"]["value"] == "k4"
    assert found["rows"][0] | {"kafkaTimestamp": 0} == {
        "quantity": 4,
        "name": "?",
        "at": 4,
        "kafkaPartition": 1,
        "kafkaOffset": 4,
        "kafkaTimestamp": 0,
        "kafkaPartitionOffset": "1_4",
    }
    status, out, _ = command.run("try", properties, "--partition", "1", "--offset", "3")
    assert status == 0
    assert_says(out, "no row", "transforms.drop")
    broker.produce(name, [(b"k5", b"{")], 1)
    status, out, _ = command.run("try", properties, "--partition", "1", "--offset", "5")
    assert (status, '  key      "k5"\n' in out, '  value    "7b"\n' in out) == (1, True, True)
    assert sink.offsets(name, 2) == [None, None]


def test_a_record_that_is_not_there(
    sink: Sink, broker: Broker, topic: TopicFactory, producer: Producer, command: Command
) -> None:
    """Each case says what is there instead."""
    name, empty = topic(), topic()
    transactional = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "log_level": 0})
    transactional.init_transactions(30)
    transactional.begin_transaction()
    transactional.produce(name, plain(0))
    transactional.commit_transaction(30)
    until_ends(broker, name, [2])
    broker.produce(name, [(None, plain(1))])
    properties = sink.properties(name)
    cases = {
        ("--offset", "1"): ("offset 1", "no record", "marker of a transaction"),
        ("--offset", "9"): ("no offset 9 yet", "0 to 2"),
        ("--offset", "0", "--partition", "7"): (f"Topic {name}", "no topic-partition 7", "name one of 0"),
        ("--offset", "0", "--topic", f"{name}-x"): (f"Topic {name}-x",),
        ("--offset", "0", "--topic", empty): ("holds no record now",),
    }
    for options, said in cases.items():
        status, _, error = command.run("try", properties, *options)
        assert status != 0, error
        assert_says(error, *said)
    broker.produce(name, [(None, plain(2))])
    assert command.run("try", properties, "--offset", "3")[0] == 0


def test_misspelt_transforms_at_the_command_line(sink: Sink, topic: TopicFactory, command: Command) -> None:
    """Check names each with its whole key, before anything is connected to; a right file has its steps in order."""
    properties = {**sink.properties(topic()), **STEPS}
    wrong = {
        "transforms.rename.type": "RepalceField",
        "transforms.text.spec": "quantity:int7",
        "transforms.at.predicate": "latr",
        "transforms.hide.feilds": "name",
    }
    status, out, _ = command.run("check", properties | wrong)
    assert status == 2
    assert_says(out, "Invalid [transforms.rename.type]", '"RepalceField" is not a known')
    assert "Invalid [transforms.text.spec]." in out
    assert_says(out, "Invalid [transforms.at.predicate]", '"latr" is not among predicates', "Did you mean later?")
    assert "Warning [transforms.hide.feilds]" in out
    status, out, _ = command.run("check", properties)
    steps = [line.partition("transforms.")[2].partition(":")[0] for line in out.splitlines() if ". transforms." in line]
    assert (status, steps) == (0, ["rename", "drop", "text", "at", "hide"])
    assert_says(out, "for other records", f"predicates.later ({OWN}.From)")
