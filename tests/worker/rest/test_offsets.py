"""`/connectors/{name}/offsets`: read, moved and removed as in Kafka Connect."""

from typing import Any

import pytest

from parquet_sink.worker.herder.errors import OffsetsRefused
from parquet_sink.worker.herder.values import StoredOffset, TargetState
from parquet_sink.worker.rest import offsets
from parquet_sink.worker.rest.call import NumberText, RestError
from tests.messages import saying
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, Client

PATH = "/connectors/c/offsets"
KAFKA_CONNECT_ALTERED = "The offsets for this connector have been altered successfully"
KAFKA_CONNECT_RESET = "The offsets for this connector have been reset successfully"
KAFKA_CONNECT_NOT_STOPPED = "Connectors must be in the STOPPED state before their offsets can be modified."
KAFKA_CONNECT_NOT_ALTERED = "Failed to alter consumer group offsets for connector c"
KAFKA_CONNECT_NOT_READ = "Failed to retrieve consumer group offsets for sink connector c"


@pytest.fixture(autouse=True)
def _stopped(herder: FakeHerder) -> None:
    herder.kept["c"] = Kept(dict(GOOD), TargetState.STOPPED, offsets={("orders", 0): 5, ("orders", 1): 6})


def _entry(topic: object, partition: object, offset: object) -> dict[str, Any]:
    return {
        "partition": {"kafka_topic": topic, "kafka_partition": partition},
        "offset": None if offset is None else {"kafka_offset": offset},
    }


def test_offsets_are_told_by_topic_partition(api: Client) -> None:
    """In Kafka Connect's form for sinks."""
    assert api.get(PATH).json == {"offsets": [_entry("orders", 0, 5), _entry("orders", 1, 6)]}


def test_ends_are_told_where_they_are_asked_for(api: Client) -> None:
    """Kafka Connect has no such thing, so its own form stays as it is; what else is asked is refused."""
    got = api.get(f"{PATH}?ends=true").json
    assert got == {"offsets": [{**_entry("orders", 0, 5), "end": 12}, {**_entry("orders", 1, 6), "end": 13}]}
    assert api.get(f"{PATH}?ends=false").json == api.get(PATH).json


def test_offsets_are_numbers_or_texts_and_null_removes_one(api: Client, herder: FakeHerder) -> None:
    """The last of several for one topic-partition counts."""
    body = [_entry("orders", "0", "7"), _entry("orders", 1, None), _entry("orders", 2, 1), _entry("orders", 2, 9)]
    got = api.ask("PATCH", PATH, {"offsets": body})
    assert got.json == {"message": KAFKA_CONNECT_ALTERED}
    assert herder.kept["c"].offsets == {("orders", 0): 7, ("orders", 2): 9}
    assert len(herder.asked[0]) == 1 + 3


def test_offsets_are_removed_as_often_as_asked(api: Client, herder: FakeHerder) -> None:
    """The second time there is nothing left to remove."""
    for _ in range(2):
        assert api.ask("DELETE", PATH).json == {"message": KAFKA_CONNECT_RESET}
    assert herder.kept["c"].offsets == {}


@pytest.mark.parametrize("target", [TargetState.STARTED, TargetState.PAUSED])
def test_offsets_are_moved_only_while_the_connector_is_stopped(
    api: Client, herder: FakeHerder, target: TargetState
) -> None:
    """400, and which request stops it."""
    herder.kept["c"].target = target
    for got in (api.ask("PATCH", PATH, {"offsets": [_entry("orders", 0, 1)]}), api.ask("DELETE", PATH)):
        status, message = got.error
        assert status == 400
        assert message.startswith(KAFKA_CONNECT_NOT_STOPPED)
        assert "'PUT' request to the '/connectors/c/stop' endpoint" in message
    assert herder.kept["c"].offsets == {("orders", 0): 5, ("orders", 1): 6}


def test_what_the_broker_refuses_is_told_with_its_reason(api: Client, herder: FakeHerder) -> None:
    """500 in Kafka Connect's words, the cause behind them."""
    got = api.ask("PATCH", PATH, {"offsets": [_entry("nowhere", 0, 1)]})
    assert got.error == (500, f"{KAFKA_CONNECT_NOT_ALTERED}: topic nowhere is not there")
    herder.fails = OffsetsRefused("no right")
    assert api.get(PATH).error == (500, f"{KAFKA_CONNECT_NOT_READ}: no right")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "Partitions / offsets need to be provided for an alter offsets request"),
        ({"offsets": []}, 400, "Partitions / offsets need to be provided for an alter offsets request"),
        ({"offsets": {}}, 500, '"offsets" is not a JSON list'),
        ({"offsets": ["x"]}, 500, "is not a JSON object"),
        ({"offsets": [{"offset": None}]}, 400, "The partition for a sink connector offset cannot be null or missing"),
        ({"offsets": [{"partition": {"kafka_topic": "t"}}]}, 400, "must contain the keys 'kafka_topic' and"),
        ({"offsets": [_entry(None, 0, 1)]}, 400, "Kafka topic names must be valid strings and may not be null"),
        ({"offsets": [_entry("t", None, 1)]}, 400, "Kafka partitions must be valid numbers and may not be null"),
        ({"offsets": [_entry("t", "x", 1)]}, 400, "partition value in the provided offsets: 'x'. Partition values"),
        ({"offsets": [_entry("t", 2**31, 1)]}, 400, "'2147483648'. Partition values for sink connectors need to be"),
        ({"offsets": [_entry("t", 0, 1.5)]}, 400, "offset value in the provided offsets: '1.5'. Offset values"),
        ({"offsets": [_entry("t", 0, True)]}, 400, "'true'. Offset values"),
        ({"offsets": [_entry("t", 0, 2**63)]}, 400, "'9223372036854775808'. Offset values"),
        ({"offsets": [_entry("t", 0, "9" * 5000)]}, 400, "Offset values"),
        (
            {"offsets": [{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"x": 1}}]},
            400,
            "'kafka_offset'",
        ),
        ({"offsets": [{"partition": [], "offset": None}]}, 500, '"partition" of an entry'),
        ({"other": 1}, 500, '"other" is not a field'),
    ],
)
def test_offsets_that_make_no_sense_are_refused(
    api: Client, herder: FakeHerder, body: object, status: int, message: str
) -> None:
    """Each is named, and nothing is moved."""
    found, text = api.ask("PATCH", PATH, body).error
    assert (found, message in text) == (status, True), text
    assert herder.kept["c"].offsets == {("orders", 0): 5, ("orders", 1): 6}


@pytest.mark.parametrize("number", ["9" * 5_000, str(2**63), str(-(2**63) - 1), "1e400", "-1e400"])
def test_numbers_of_a_source_are_of_64_bits(number: str) -> None:
    """What Kafka Connect could not store is refused, in a partition and in an offset."""
    for entry in ({"partition": {"a": NumberText(number)}}, {"partition": {}, "offset": {"a": NumberText(number)}}):
        with pytest.raises(RestError, match=saying("number of an entry", "beyond")):
            offsets.read_source_offset(entry)
    good = {"partition": {"a": NumberText("-9223372036854775808"), "b": NumberText("1.5e3")}, "offset": {"p": "x"}}
    assert offsets.read_source_offset(good) == StoredOffset({"a": -(2**63), "b": 1500.0}, {"p": "x"})
