"""A flush over REST: asked for, followed, waited for, refused."""

import pytest

from parquet_sink.worker.herder.values import TargetState
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, Client

PATH = "/connectors/c/flush"


@pytest.fixture(autouse=True)
def _connector(herder: FakeHerder) -> None:
    herder.kept["c"] = Kept({**GOOD, "name": "c"})


def test_a_flush_is_taken_and_followed(api: Client, herder: FakeHerder) -> None:
    """202 says where to look; there it is done in the end, and says from where to where."""
    taken = api.ask("POST", PATH)
    assert (taken.status, taken.json["state"], herder.asked) == (202, "waiting", [("flush", "c")])
    assert taken.headers["Location"].endswith(f"{PATH}/f1")
    found = api.get(f"{PATH}/f1").json
    assert (found["state"], found["partitions"][0]["start"], found["partitions"][0]["reached"]) == ("done", 10, 20)


def test_a_request_waits_as_long_as_it_says(api: Client, herder: FakeHerder) -> None:
    """200 once all is committed; 202 with what is not, when the time is over."""
    herder.flush_looks = 2
    assert api.ask("POST", f"{PATH}?wait=30").status == 200
    herder.flush_looks = 1_000
    late = api.ask("POST", f"{PATH}?wait=0.3")
    assert (late.status, late.json["partitions"][0]["reached"]) == (202, 10)


def test_some_topic_partitions_are_named_in_the_body(api: Client, herder: FakeHerder) -> None:
    """By topic and number, or all of a topic."""
    body = {"partitions": [{"kafka_topic": "orders", "kafka_partition": 3}, {"kafka_topic": "orders"}]}
    assert api.ask("POST", PATH, body).status == 202
    assert herder.asked == [("flush", "c", ("orders", 3), ("orders", None))]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"partitions": []}, "leave it out"),
        ({"partitions": [7]}, "kafka_topic"),
        ({"partitions": [{"kafka_partition": 1}]}, "name a topic"),
        ({"partitions": [{"kafka_topic": "orders", "kafka_partition": -1}]}, "whole number"),
        ({"partitions": [{"kafka_topic": "orders", "kafka_partition": 1.5}]}, "whole number"),
        ({"topics": ["orders"]}, "partitions"),
        ([], "one"),
    ],
)
def test_a_body_of_another_shape_is_refused(api: Client, herder: FakeHerder, body: object, words: str) -> None:
    """With what is wrong; nothing is asked for."""
    answer = api.ask("POST", PATH, body)
    assert (answer.status, words in answer.json["message"], herder.asked) == (500, True, [])


@pytest.mark.parametrize("wait", ["long", "-1", "61", "nan"])
def test_a_wait_that_is_none_is_refused(api: Client, wait: str) -> None:
    """With the bound that holds."""
    answer = api.ask("POST", f"{PATH}?wait={wait}")
    assert (answer.status, "60" in answer.json["message"]) == (400, True)


def test_what_cannot_be_flushed_is_told_with_the_cure(api: Client, herder: FakeHerder) -> None:
    """A stopped connector, topics that it does not have, a flush and a connector that nobody knows."""
    assert api.ask("POST", "/connectors/none/flush").status == 404
    unknown = api.ask("POST", PATH, {"partitions": [{"kafka_topic": "others"}]})
    assert (unknown.status, "others" in unknown.json["message"]) == (404, True)
    assert api.get(f"{PATH}/other").status == 404
    herder.kept["c"].target = TargetState.STOPPED
    stopped = api.ask("POST", PATH)
    assert (stopped.status, "resume" in stopped.json["message"]) == (409, True)
