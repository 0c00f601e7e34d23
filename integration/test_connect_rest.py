"""The REST API, judged by Kafka Connect's own: the same requests to both, compared field by field.

What Kafka Connect answered is recorded (`integration/connect/recorded.json`); a slow test holds the recording true.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from integration.connect import ours, recording, theirs
from integration.connect.compare import ABSENT, Difference, Known, differences, unknown, unused
from integration.connect.known import KNOWN
from integration.connect.play import Answer, play
from integration.connect.recording import Entry
from integration.connect.script import TOPICS, script
from integration.connect.steps import Ask, Side
from parquet_sink.cli import main
from parquet_sink.devkit.broker import Broker

FEWEST_REQUESTS: Final = 150
STATES: Final = {"RUNNING", "FAILED", "PAUSED", "STOPPED", "UNASSIGNED", "RESTARTING"}
TYPES: Final = {"BOOLEAN", "CLASS", "DOUBLE", "INT", "LIST", "LONG", "PASSWORD", "SHORT", "STRING"}
WIDTHS: Final = {"SHORT", "MEDIUM", "LONG", "NONE"}
SIDE: Final = Side("x", "http://x", "a.Sink", {"own.key": "1"}, "own.", {"127.0.0.1:1": "<worker>"})


def make_topics(broker: Broker) -> None:
    """Those of the script."""
    for topic, partitions in TOPICS.items():
        broker.create_topic(topic, partitions)


@pytest.fixture(scope="module")
def answered(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Answer], list[Entry]]]:
    """What our worker answered to the script, as it came and comparable."""
    make_topics(broker)
    with ours.our_worker(broker, tmp_path_factory.mktemp("ours")) as side:
        answers = play(script(side), side, broker)
        yield answers, recording.entries(answers, side)


def test_the_recording_is_of_this_script() -> None:
    """Each request of the script has its answer, in its order, and there are no others."""
    recorded = recording.read()
    asked = [step.title for step in script(SIDE) if isinstance(step, Ask)]
    assert [one["title"] for one in recorded] == asked
    assert len(asked) > FEWEST_REQUESTS


def test_our_worker_answers_as_kafka_connect_does(answered: tuple[list[Answer], list[Entry]]) -> None:
    """Status, headers and bodies are the same, but for the differences that are listed with their reasons."""
    found = differences(recording.read(), answered[1])
    assert [str(one) for one in unknown(found, KNOWN)] == []
    assert unused(found, KNOWN) == []


def test_each_difference_has_a_reason() -> None:
    """In words, and none is given for all that is asked."""
    assert [one for one in KNOWN if len(one.reason) < 20 or (one.titles, one.paths) == ("*", "*")] == []


def test_words_are_those_that_clients_know(answered: tuple[list[Answer], list[Entry]]) -> None:
    """States, kinds, types and widths are of closed lists in Kafka UI; kcctl wants a message in each error."""
    for one in answered[0]:
        for name, allowed in (("state", STATES), ("width", WIDTHS), ("importance", {"LOW", "MEDIUM", "HIGH"})):
            assert values_of(one.body, name) <= allowed, one
        if one.status >= 400 and one.request.split()[0] != "HEAD":
            assert set(one.body) == {"error_code", "message"}, one
            assert one.body["error_code"] == one.status
    for one in answered[0]:
        if one.title.startswith("keys of"):
            assert values_of(one.body, "type") <= TYPES
    assert len(values_of([one.body for one in answered[0]], "state")) >= 4


def values_of(body: Any, name: str) -> set[str]:
    """All values of a field, wherever it is; configurations of connectors are others' words."""
    if isinstance(body, list):
        return set[str]().union(*(values_of(one, name) for one in body))
    if not isinstance(body, dict):
        return set()
    inner = set[str]().union(*(values_of(one, name) for key, one in body.items() if key != "config"))
    return inner | ({body[name]} if isinstance(body.get(name), str) else set())


def test_versions_turn_features_on(answered: tuple[list[Answer], list[Entry]]) -> None:
    """Kcctl offers stop from 3.5 on, offsets from 3.6, levels of a cluster from 3.7."""
    version = answered[0][0].body["version"]
    assert tuple(map(int, version.split(".")[:2])) >= (3, 7)


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
    assert [line.split() for line in said.out.splitlines() if line.startswith("judged ")] == [["judged", "0", "2"]]
    assert "parquet-sink connectors list works with any worker" in said.err


def entry(**more: Any) -> Entry:
    """One answer."""
    return {"title": "t", "request": "GET /", "status": 200, "headers": {"a": "b"}, "body": {"x": [1, "2"]}, **more}


@pytest.mark.parametrize(
    ("ours", "path"),
    [
        (entry(status=201), "status"),
        (entry(headers={}), "headers.a"),
        (entry(headers={"a": "b", "c": "d"}), "headers.c"),
        (entry(body={"x": [1, 2]}), "body.x.1"),
        (entry(body={"x": [1.0, "2"]}), "body.x.0"),
        (entry(body={"x": [True, "2"]}), "body.x.0"),
        (entry(body={"x": [1]}), "body.x"),
        (entry(body={"x": [1, "2"], "y": None}), "body.y"),
        (entry(body=None), "body"),
        (entry(title="u"), "request"),
    ],
)
def test_whatever_differs_is_found(ours: Entry, path: str) -> None:
    """Statuses, headers, fields that are missing or too many, other types and other lengths."""
    found = differences([entry()], [ours])
    assert found[0].path == path
    assert differences([entry()], [entry()]) == []


def test_reasons_cover_what_they_name() -> None:
    """A difference without a reason is told, and so is a reason without a difference."""
    found = [Difference("create again", "body.message", "a", "b"), Difference("list", "status", 200, ABSENT)]
    known = [Known("create*", "body.message", "words"), Known("list", "headers.*", "of another server")]
    assert unknown(found, known) == [found[1]]
    assert unused(found, known) == [known[1]]


def test_what_must_differ_is_replaced() -> None:
    """Addresses, clusters, traces, texts of documentation, and keys of the class; lists of names are put in order."""
    body = {
        "kafka_cluster_id": "MkU3OEVBNTcwNTJENDM2Qk",
        "trace": "at x",
        "config": {"connector.class": "a.Sink", "own.key": "1", "topics": "t"},
        "configs": definitions("z", "own.b", "a"),
    }
    answer = Answer("t", "GET /", 200, {"date": "today", "location": "http://127.0.0.1:1/x"}, body)
    found = recording.entries([answer], SIDE)[0]
    assert found["headers"] == {"location": "http://<worker>/x"}
    assert found["body"]["config"] == {"connector.class": "a.Sink", "topics": "t"}
    assert list(found["body"]["configs"]) == ["a", "z"]
    assert (found["body"]["trace"], found["body"]["kafka_cluster_id"]) == ("<trace>", "<cluster>")
    assert found["body"]["configs"]["a"]["definition"]["documentation"] == "<documentation>"


def definitions(*names: str) -> Sequence[dict[str, Any]]:
    """Of keys, as a validation has them."""
    return [{"definition": {"name": name, "documentation": "Why"}, "value": {"name": name}} for name in names]


def test_a_recording_comes_back(tmp_path: Path) -> None:
    """What is written is what is read, whatever letters it has."""
    found = [entry(body="ü \u2028"), entry(title="u")]
    recording.write(found, tmp_path / "x.json")
    assert recording.read(tmp_path / "x.json") == found
