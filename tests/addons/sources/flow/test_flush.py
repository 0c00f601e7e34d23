"""One Spark task of a source: nothing counts before brokers acknowledged it, and a bad record stops what is behind."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import pyarrow as pa
import pytest

from parquet_sink.addons.sources.flow.flush import SourceEncoding, SourceFlush, Unwritable
from parquet_sink.addons.sources.flow.outcome import SourceWork
from parquet_sink.addons.sources.flow.record_sender import Delivered, Outgoing, RecordSender
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.addons.sources.task import Memory, Place, Reached
from parquet_sink.config.class_settings import ClassSettings
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.errors import BrokerAway
from parquet_sink.model.source_records import SourceHeader, SourceRecord
from parquet_sink.transform.settings import StepSettings
from tests.messages import assert_says

PLACE = '{"part":"a"}'
TEXT = pa.string()


def record(position: int, value: object = "x", **more: Any) -> SourceRecord:
    """A record behind which the source is at this position."""
    return SourceRecord("t", value, TEXT, source_partition={"part": "a"}, source_offset={"at": position}, **more)


class Numbers:
    """A task that gives what the test says, and remembers how often it was asked."""

    polls: ClassVar[list[Sequence[SourceRecord] | Exception]] = []
    told: ClassVar[list[object]] = []

    def start(self, settings: Mapping[str, str], reached: Reached) -> None:
        self._left = list(self.polls)
        self.told.append((dict(settings), reached.offset({"part": "a"}), dict(reached.memory)))

    def poll(self) -> Sequence[SourceRecord]:
        found = self._left.pop(0) if self._left else ()
        if isinstance(found, Exception):
            raise found
        return found

    def remember(self) -> Memory:
        return {"left": len(self._left)}

    def stop(self) -> None:
        self.told.append("stopped")


class Within(Numbers):
    """One that also knows what goes with each place."""

    def remember_at(self, partition: Place, offset: Place) -> Memory:
        return {"at": offset["at"]}


class Sender:
    """Takes records, and acknowledges them when it is flushed, unless brokers are away."""

    def __init__(self, *, away: bool = False) -> None:
        self.away = away
        self.sent: list[Outgoing] = []
        self.delivered: dict[tuple[str, int], Delivered] = {}

    def send(self, one: Outgoing) -> None:
        self.sent.append(one)

    def flush(self) -> None:
        if self.away:
            raise BrokerAway("nobody answers")
        self.delivered = {("t", 0): Delivered(len(self.sent), 0, len(self.sent) - 1)} if self.sent else {}

    def close(self) -> None:
        """Nothing is kept."""


def settings(**changes: Any) -> SourceSettings:
    """A source of one task, whose values are text."""
    made = SourceSettings(
        "s", f"{__name__}:Numbers", ({"a": "b"},), "numbers", ("t",), None, value=ConverterSettings("string")
    )
    return replace(made, **changes)


def flush(
    polls: Sequence[Sequence[SourceRecord] | Exception], monkeypatch: pytest.MonkeyPatch, sender: Sender, **changes: Any
) -> Any:
    """The outcome of a task that gives these."""
    monkeypatch.setattr(Numbers, "polls", list(polls))
    monkeypatch.setattr(Numbers, "told", [])
    monkeypatch.setattr("parquet_sink.addons.sources.flow.flush.task_class", lambda path: Numbers)
    made = SourceFlush(settings(**changes), lambda settings: cast(RecordSender, sender))
    return made.run(SourceWork(0, {PLACE: {"at": 3}}, {"left": 9}))


def test_what_is_acknowledged_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places and memory of the last record go to the driver once brokers have all, and the task is ended."""
    sender = Sender()
    found = flush([[record(4), record(5)], [record(6)]], monkeypatch, sender)
    assert (found.places, found.memory, found.polled, found.failure) == ({PLACE: {"at": 6}}, {"left": 0}, 3, None)
    assert found.delivered == {("t", 0): Delivered(3, 0, 2)}
    assert Numbers.told == [({"a": "b"}, {"at": 3}, {"left": 9}), "stopped"]


def test_nothing_counts_that_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    """When brokers do not answer, no place goes to the driver, and it waits for them."""
    found = flush([[record(4)]], monkeypatch, Sender(away=True))
    assert (found.places, found.away, found.failure.kind) == ({}, True, "BrokerAway")


@pytest.mark.parametrize("bad", [b"no text", "x" * 2_000_000])
def test_a_bad_record_stops_before_itself(monkeypatch: pytest.MonkeyPatch, bad: object) -> None:
    """What is before a record that cannot be converted, or is too large, is sent, and the place stays before it."""
    given = [record(4), replace(record(5, bad), value_type=None), record(6)]
    sender = Sender()
    found = flush([given], monkeypatch, sender)
    assert (found.places, found.memory, len(sender.sent)) == ({PLACE: {"at": 4}}, {}, 1)
    assert found.failure.kind == "SourceFailed"


NO_PLACES: list[tuple[str, object, tuple[str, ...]]] = [
    ("source_offset", {"at": b"x"}, ("source_offset['at']", "\"b'x'\"", "type bytes")),
    ("source_offset", {"at": 2**63}, ("source_offset['at']", '"9223372036854775808"', "type int")),
    ("source_offset", {"at": float("nan")}, ("source_offset['at']", '"nan"', "type float")),
    ("source_offset", {"at": {"b": 1}}, ("source_offset['at']", "\"{'b': 1}\"", "type dict")),
    ("source_offset", 7, ("source_offset", '"7"', "type int")),
    ("source_partition", {"part": {1}}, ("source_partition['part']", '"{1}"', "type set")),
    ("source_partition", {1: "a"}, ("source_partition[1]", "\"'a'\"", "type str")),
]


@pytest.mark.parametrize(("name", "place", "told"), NO_PLACES)
def test_a_place_that_cannot_be_stored_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, place: object, told: tuple[str, ...]
) -> None:
    """What is before its record is sent and counts; the message has key, value and what a place is."""
    changed: dict[str, Any] = {name: place}
    sender = Sender()
    found = flush([[record(4), replace(record(5), **changed)]], monkeypatch, sender)
    assert (found.places, len(sender.sent), found.failure.kind) == ({PLACE: {"at": 4}}, 1, "SourceFailed")
    assert_says(found.failure.message, *told, "correct the source's code")


@pytest.mark.parametrize(("before", "remembered"), [(0, {"left": 9}), (1, {"at": 4}), (2, {"at": 5})])
def test_memory_goes_with_a_place_in_the_middle_of_a_poll(
    monkeypatch: pytest.MonkeyPatch, before: int, remembered: Memory
) -> None:
    """What a task remembers is that of the last record that was sent; of none, what it remembered before."""
    given = [record(4), record(5), record(6)]
    given[before] = replace(given[before], value=b"no text", value_type=None)
    monkeypatch.setitem(globals(), "Numbers", Within)
    found = flush([given], monkeypatch, Sender())
    assert (found.places.get(PLACE), found.memory) == ({"at": 3 + before} if before else None, remembered)


def test_tolerance_passes_over_what_cannot_be_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With errors.tolerance=all such a record is counted and passed over, but one that is too large never is."""
    given = [record(4), replace(record(5, b"no text"), value_type=None), record(6)]
    found = flush([given], monkeypatch, Sender(), tolerant=True)
    assert (found.places, found.passed_over, found.failure) == ({PLACE: {"at": 6}}, 1, None)
    assert '{"at":5}' in found.first_fault
    large = flush([[record(5, "x" * 2_000_000)]], monkeypatch, Sender(), tolerant=True)
    assert "[producer.override.max.request.size]" in large.failure.message


def test_what_a_tasks_code_raises_is_its_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was given before it is sent; the error is told without its text, which may quote a record."""
    found = flush([[record(4)], ValueError("secret content")], monkeypatch, Sender())
    assert found.places == {PLACE: {"at": 4}}
    assert "ValueError" in found.failure.message
    assert "secret content" not in found.failure.message


def step(name: str, type_: str, **texts: str) -> StepSettings:
    """One transform."""
    return StepSettings(ClassSettings(name, type_, tuple(texts.items())), None, False)


def test_transforms_work_on_records_of_a_source() -> None:
    """A line becomes a record with a schema, a router chooses the topic, and a header goes with it."""
    steps = (
        step("hoist", "HoistField$Value", field="line"),
        step("route", "RegexRouter", regex="t", replacement="routed"),
        step("header", "InsertHeader", header="h", **{"value.literal": "7"}),
    )
    made = SourceEncoding(settings(transforms=steps, value=ConverterSettings("json")), clock=lambda: 0.0)
    first, second = made.encoded([record(1, "a"), record(2, "b", headers=(SourceHeader("own", "v"),))])
    assert not isinstance(first, Unwritable)
    assert not isinstance(second, Unwritable)
    assert [(one.topic, one.value, one.headers) for one in (*first, *second)] == [
        ("routed", b'{"line":"a"}', [("h", b"7")]),
        ("routed", b'{"line":"b"}', [("own", b"v"), ("h", b"7")]),
    ]


@pytest.mark.parametrize(
    ("date", "ms"),
    [("0000-00-00", -62_170_156_800_000), ("0001-01-01", -62_135_769_600_000), ("99999-12-31", 3_093_527_894_400_000)],
)
def test_dates_beyond_the_years_of_python_are_written(date: str, ms: int) -> None:
    """MySQL's `0000-00-00` is a date for Kafka Connect, and so are others outside the years 1 to 9999."""
    convert = step("date", "TimestampConverter$Value", format="yyyy-MM-dd", **{"target.type": "Timestamp"})
    steps = (convert, step("header", "InsertHeader", header="h", **{"value.literal": "0001-01-01"}))
    hoist = step("hoist", "HoistField$Value", field="at")
    json, header = ConverterSettings("json"), ConverterSettings("simple_header")
    made = SourceEncoding(settings(transforms=(*steps, hoist), value=json, header=header))
    (found,) = made.encoded([record(1, date, headers=(SourceHeader("own", ms, pa.timestamp("ms", "UTC")),))])
    assert not isinstance(found, Unwritable), found.reason
    assert [one.value for one in found] == [b'{"at":%d}' % ms]
    assert found[0].headers[1] == ("h", b"00:00:00.000Z")


def test_a_record_that_a_transform_cannot_take_is_told() -> None:
    """The fault names the transform, and the others go on."""
    steps = (step("cast", "Cast$Value", spec="int32"),)
    made = SourceEncoding(settings(transforms=steps, value=ConverterSettings("json")))
    good, bad = made.encoded([record(1, "12"), record(2, "twelve")])
    assert not isinstance(good, Unwritable)
    assert good[0].value == b"12"
    assert isinstance(bad, Unwritable)
    assert "Cast" in bad.reason
