"""The REST API, judged by Kafka Connect's own: the same requests to both, compared field by field.

What Kafka Connect answered is recorded (`integration/connect/recorded.json`); a slow test holds the recording true.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from jsonschema import Draft202012Validator, ValidationError

from integration.connect import ours, recording, theirs
from integration.connect.clients import KAFKA_UI, KCCTL, needed
from integration.connect.compare import differences, unknown, unused
from integration.connect.known import KNOWN
from integration.connect.play import Answer, play, titles
from integration.connect.recording import Entry
from integration.connect.script import TOPICS, script
from integration.connect.steps import Ask, Script, Side
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.cli.main import main
from tests.messages import assert_says

SIDE: Final = Side("x", "http://x", "a.Sink", "a.log", {}, "own.", {})


def make_topics(broker: Broker) -> None:
    """Those of the script."""
    for topic, partitions in TOPICS.items():
        broker.create_topic(topic, partitions)


@pytest.fixture(scope="module")
def answers(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, list[Answer]]]:
    """What our worker answered to the script."""
    make_topics(broker)
    with ours.our_worker(broker, tmp_path_factory.mktemp("ours")) as side:
        yield side, play(script(side), side, broker)


@pytest.fixture
def answered(answers: tuple[Side, list[Answer]]) -> list[Entry]:
    """The same, comparable."""
    side, found = answers
    return recording.entries(found, side)


def test_the_recording_is_of_this_script() -> None:
    """Each request of the script has its answer, in its order, and there are no others."""
    recorded = recording.read()
    asked = [title for step in script(SIDE) if isinstance(step, Ask) for title in titles(step)]
    assert [one["title"] for one in recorded] == asked


def test_our_worker_answers_as_kafka_connect_does(answered: list[Entry]) -> None:
    """Status, headers and bodies are the same, but for the differences that are listed with their reasons."""
    found = differences(recording.read(), answered)
    assert [str(one) for one in unknown(found, KNOWN)] == []
    assert unused(found, KNOWN) == []


def test_each_difference_has_a_reason() -> None:
    """In words, and none is given for all that is asked."""
    assert [one for one in KNOWN if len(one.reason) < 20 or (one.titles, one.paths) == ("*", "*")] == []


def test_two_requests_at_once_are_one_after_the_other(answers: tuple[Side, list[Answer]], broker: Broker) -> None:
    """One makes the connector, and one ends it; the others are told so. Kafka Connect may say yes to both."""
    side = answers[0]
    made = Script()
    pair = {"name": "pair", "config": side.config(), "initial_state": "STOPPED"}
    made.ask("create", "POST /connectors", pair, times=2)
    made.ask("put", "PUT /connectors/pair/config", side.config(tasks_max=2), times=2)
    made.ask("reset", "DELETE /connectors/pair/offsets", times=2)
    made.ask("delete", "DELETE /connectors/pair", times=2)
    statuses = [one.status for one in play(made, side, broker)]
    assert statuses[:5] + statuses[6:] == [201, 409, 200, 200, 200, 204, 404]
    assert statuses[5] in (200, 409)  # told to come again, unless the first was done by then


@pytest.mark.parametrize("client", [KCCTL, KAFKA_UI])
def test_clients_can_read_what_they_are_answered(answers: tuple[Side, list[Answer]], client: str) -> None:
    """Each answer to kcctl and Kafka UI has the fields, types and words that these need."""
    told = [one for one in answers[1] if one.client == client]
    wrong = [f"{one.title}: {bad.json_path}: {bad.message}" for one in told for bad in _unreadable(one)]
    assert wrong == []
    assert len(told) > 25


def _unreadable(answer: Answer) -> Iterator[ValidationError]:
    yield from Draft202012Validator(needed(answer)).iter_errors(answer.body)


@pytest.mark.slow
def test_kafka_connect_answers_as_recorded(tmp_path: Path) -> None:
    """The recording is what Kafka Connect of the broker's version says, today as well."""
    with Broker() as broker, theirs.kafka_connect(broker, tmp_path) as side:
        make_topics(broker)
        found = recording.entries(play(script(side), side, broker), side)
    assert [str(one) for one in differences(recording.read(), found)] == []


@pytest.mark.slow
def test_our_commands_know_kafka_connect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`parquet-sink connectors` works with a worker of Kafka Connect."""
    with Broker() as broker, theirs.kafka_connect(broker, tmp_path) as side:
        make_topics(broker)
        broker.produce("judged", [(None, b'{"n": 1}')] * 5, 0)
        file = tmp_path / "kept.properties"
        lines = {"name": "kept", **side.config()}
        file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        for words in (
            ["validate", str(file)],
            ["create", str(file), "--wait"],
            ["update", str(file), "--wait"],
            ["update", "kept", "--set", "errors.log.enable=true", "--wait"],
            ["pause", "kept", "--wait"],
            ["resume", "kept", "--wait"],
            ["restart", "kept", "--include-tasks", "--wait"],
            ["stop", "kept", "--wait"],
            ["offsets", "kept", "--to", "judged:0:2", "--yes"],
            ["offsets", "kept"],
            ["show", "kept"],
            ["list"],
            ["delete", "kept", "--wait"],
        ):
            assert main(["connectors", *words, "--url", side.url]) == 0, words
        assert main(["status", "--url", side.url]) == 1
    said = capsys.readouterr()
    assert ["judged", "0", "2"] in [line.split() for line in said.out.splitlines()]
    assert_says(said.err, "parquet-sink connectors list", "any worker")
