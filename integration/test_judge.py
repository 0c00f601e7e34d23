"""The script of requests that judges the REST API: what plays it, what compares, and what clients need of each answer.

Here our REST API answers over a herder that keeps connectors in memory.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from integration.connect import ours, recording
from integration.connect.compare import ABSENT, Difference, Known, differences, unknown, unused
from integration.connect.play import Answer, send
from integration.connect.recording import Entry
from integration.connect.script import script
from integration.connect.steps import Ask, Side
from tests.worker.rest.fake_herder import FakeHerder
from tests.worker.rest.serving import serving

FEWEST_REQUESTS: Final = 150
STATES: Final = {"RUNNING", "FAILED", "PAUSED", "STOPPED", "UNASSIGNED", "RESTARTING"}
TYPES: Final = {"BOOLEAN", "CLASS", "DOUBLE", "INT", "LIST", "LONG", "PASSWORD", "SHORT", "STRING"}
WIDTHS: Final = {"SHORT", "MEDIUM", "LONG", "NONE"}
SIDE: Final = Side("x", "http://x", "a.Sink", "a.log", {"own.key": "1"}, "own.", {"127.0.0.1:1": "<worker>"})


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Answer]]:
    """What our REST API answers to each request of the script."""
    with serving(FakeHerder()) as server:
        side = ours.side(server.port, folder=tmp_path_factory.mktemp("ours"))
        yield [send(side.url, step) for step in script(side) if isinstance(step, Ask)]


def test_the_script_is_the_same_for_both_sides() -> None:
    """Only classes, loggers and keys of the class differ; requests are many, and each has a title of its own."""
    asked = [step for step in script(SIDE) if isinstance(step, Ask)]
    other = [step for step in script(ours.side(1, folder=Path("/x"))) if isinstance(step, Ask)]
    assert [(step.title, step.method, step.client) for step in asked] == [
        (step.title, step.method, step.client) for step in other
    ]
    assert len({step.title for step in asked}) == len(asked) > FEWEST_REQUESTS
    assert {step.client for step in asked} == {"", "kcctl", "Kafka UI"}


def test_words_are_those_that_clients_know(answered: list[Answer]) -> None:
    """States, kinds, types and widths are of closed lists in Kafka UI; kcctl wants a message in each error."""
    for one in answered:
        for name, allowed in (("state", STATES), ("width", WIDTHS), ("importance", {"LOW", "MEDIUM", "HIGH"})):
            assert values_of(one.body, name) <= allowed, one
        if one.status >= 400 and one.request.split()[0] != "HEAD":
            assert set(one.body) == {"error_code", "message"}, one
            assert one.body["error_code"] == one.status
    for one in answered:
        if one.title.startswith("keys of"):
            assert values_of(one.body, "type") <= TYPES
    assert len(values_of([one.body for one in answered], "state")) >= 4


def values_of(body: Any, name: str) -> set[str]:
    """All values of a field, wherever it is; configurations of connectors are others' words."""
    if isinstance(body, list):
        return set[str]().union(*(values_of(one, name) for one in body))
    if not isinstance(body, dict):
        return set()
    inner = set[str]().union(*(values_of(one, name) for key, one in body.items() if key != "config"))
    return inner | ({body[name]} if isinstance(body.get(name), str) else set())


def test_versions_turn_features_on(answered: list[Answer]) -> None:
    """Kcctl offers stop from 3.5 on, offsets from 3.6, levels of a cluster from 3.7."""
    version = answered[0].body["version"]
    assert tuple(map(int, version.split(".")[:2])) >= (3, 7)


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
