"""Messages become batches that end at the same records however they came, with what of a record was asked for."""

from collections.abc import Sequence
from itertools import cycle, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.kafka import batch_builder
from parquet_sink.kafka.batch_builder import (
    BATCH_BYTES,
    BATCH_RECORDS,
    HEADER_BYTES,
    POLL_RECORDS,
    BatchBuilder,
    next_poll,
)
from parquet_sink.model.records import VALUES_ONLY, Header, RecordBatch, RecordParts
from tests.thorough import FIXTURES_SHARED

BOTH = RecordParts(keys=True, headers=True)


class Message:
    """A record as the Kafka client hands it out. headers: `Exception` is a name that is not UTF-8."""

    def __init__(
        self,
        offset: int,
        value: bytes | None,
        key: bytes | None = None,
        headers: list[Header] | type[Exception] | None = None,
        kind: int = 1,
    ) -> None:
        self._kind = kind
        self._offset, self._value, self._key, self._headers = offset, value, key, headers
        self.asked = 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return self._key

    def set_value(self, value: None) -> None:
        self._value = value

    def set_key(self, key: None) -> None:
        self._key = key

    def set_headers(self, headers: list[Header]) -> None:
        self._headers = headers

    def headers(self) -> list[Header] | None:
        self.asked += 1
        assert self.asked == 1, "the second answer may end the process"
        if isinstance(self._headers, type):
            raise SystemError("returned a result with an exception set")
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return (self._kind, 1_000 + self._offset)


@pytest.fixture(autouse=True)
def ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages are ours."""
    monkeypatch.setattr(batch_builder, "Message", Message)
    monkeypatch.setattr(batch_builder, "message_offset", Message.offset)
    monkeypatch.setattr(batch_builder, "_value", Message.value)
    monkeypatch.setattr(batch_builder, "_key", Message.key)
    monkeypatch.setattr(batch_builder, "_client_headers", Message.headers)


def built(
    messages: Sequence[Message], parts: RecordParts = VALUES_ONLY, portions: Sequence[int] = (BATCH_RECORDS,)
) -> list[RecordBatch]:
    """The batches of messages that come in portions."""
    builder, found, sizes, done = BatchBuilder("orders", 3, parts), [], cycle(portions), 0
    while done < len(messages):
        some = messages[done : done + min(next(sizes), builder.room)]
        done += len(some)
        builder.add(some)  # type: ignore[arg-type]
        found += builder.full()
    rest = builder.rest()
    assert builder.rest() is None
    return found if rest is None else [*found, rest]


def test_everything_asked_for_is_there() -> None:
    """Offset, timestamp and value of each record, its key and its headers: null, empty and repeated ones told apart."""
    pair = [("a", b"1"), ("a", None), ("", b"")]
    messages = [Message(4, b"x", b"k", pair), Message(6, None, b"", None), Message(7, b"", None, [])]
    (batch,) = built(messages, BOTH)
    assert (batch.topic, batch.partition) == ("orders", 3)
    assert (batch.offsets.to_pylist(), batch.timestamps.to_pylist()) == ([4, 6, 7], [1_004, 1_006, 1_007])
    assert batch.values.to_pylist() == [b"x", None, b""]
    assert batch.keys is not None
    assert batch.keys.to_pylist() == [b"k", b"", None]
    assert [batch.headers_of(index) for index in range(3)] == [tuple(pair), (), ()]


@pytest.mark.parametrize("parts", [VALUES_ONLY, RecordParts(keys=True), RecordParts(headers=True)])
def test_what_nobody_asks_for_is_not_read(parts: RecordParts) -> None:
    """Keys and headers are absent from the batch, and headers are not even taken from the client."""
    messages = [Message(offset, b"x", b"k", [("a", b"1")]) for offset in range(5)]
    (batch,) = built(messages, parts)
    assert (batch.keys is not None, batch.headers is not None) == (parts.keys, parts.headers)
    assert [message.asked for message in messages] == [int(parts.headers)] * 5


@pytest.mark.parametrize("kinds", [(1, 1, 1), (2, 1, 0), (0, 0, 0)])
def test_kinds_of_timestamps_are_read_where_they_are_asked_for(kinds: tuple[int, int, int]) -> None:
    """By Kafka's names, whether all are of one kind or not; without a timestamp there is 0."""
    messages = [Message(offset, b"x", kind=kind) for offset, kind in enumerate(kinds)]
    (batch,) = built(messages, RecordParts(timestamp_types=True), [2, 1])
    names = {0: "NoTimestampType", 1: "CreateTime", 2: "LogAppendTime"}
    assert batch.timestamp_types is not None
    assert batch.timestamp_types.to_pylist() == [names[kind] for kind in kinds]
    assert [batch.timestamp_type_of(index) for index in range(3)] == batch.timestamp_types.to_pylist()
    assert batch.timestamps.to_pylist() == [1_000 + offset if kind else 0 for offset, kind in enumerate(kinds)]
    (plain,) = built(messages)
    assert plain.timestamp_types is None


def test_headers_that_cannot_be_read_are_null() -> None:
    """A header's name that is not UTF-8 makes that record's headers null; its neighbours have theirs."""
    (batch,) = built([Message(0, b"x", None, [("a", b"1")]), Message(1, b"x", None, Exception), Message(2, b"x")], BOTH)
    assert [batch.headers_of(index) for index in range(3)] == [(("a", b"1"),), None, ()]


@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize("headers", [True, False])
def test_keys_and_headers_count_only_where_they_are_read(keys: bool, headers: bool) -> None:
    """A batch is bounded in all that it holds; what it does not hold cuts nothing."""
    quarter = b"x" * (BATCH_BYTES // 4)
    messages = [Message(offset, b"v", quarter, [("h", quarter)]) for offset in range(9)]
    sizes = list(map(len, built(messages, RecordParts(keys, headers))))
    expected = {0: [9], 1: [3, 3, 3], 2: [1] * 9}
    assert sizes == expected[keys + headers]


def test_many_empty_headers_are_bounded() -> None:
    """Headers without bytes take memory all the same."""
    each = BATCH_BYTES // HEADER_BYTES // 4
    messages = [Message(offset, b"", None, [("", None)] * each) for offset in range(9)]
    assert list(map(len, built(messages, BOTH))) == [4, 4, 1]


sizes = st.sampled_from([0, 1, 10, 40, 100, 101, 500])
records = st.lists(st.tuples(sizes, sizes, st.lists(sizes, max_size=2)), min_size=1, max_size=120)
portions = st.lists(st.integers(1, 50), min_size=1, max_size=9)


@settings(suppress_health_check=FIXTURES_SHARED, deadline=None)
@given(records, st.sampled_from([VALUES_ONLY, RecordParts(keys=True), RecordParts(headers=True), BOTH]), portions)
def test_batches_do_not_depend_on_how_messages_came(
    monkeypatch: pytest.MonkeyPatch,
    records: list[tuple[int, int, list[int]]],
    parts: RecordParts,
    portions: list[int],
) -> None:
    """However many messages come at once, a batch is filled up to exactly its limits, of records and of bytes."""
    monkeypatch.setattr(batch_builder, "BATCH_RECORDS", 25)
    monkeypatch.setattr(batch_builder, "BATCH_BYTES", 300)

    def held(record: tuple[int, int, list[int]]) -> int:
        value, key, headers = record
        return value + key * parts.keys + sum(HEADER_BYTES + 1 + size for size in headers) * parts.headers

    def messages() -> list[Message]:
        return [
            Message(2 * number, b"v" * value or None, b"k" * key or None, [("h", b"x" * size) for size in headers])
            for number, (value, key, headers) in enumerate(records)
        ]

    found, others = built(messages(), parts, portions), built(messages(), parts, [1])
    assert found == others
    assert [offset for batch in found for offset in batch.offsets.to_pylist()] == [2 * n for n in range(len(records))]
    weights = [[held(records[offset // 2]) for offset in batch.offsets.to_pylist()] for batch in found]
    for batch, following in pairwise(weights):
        assert len(batch) == 25 or sum(batch) + following[0] > 300
    assert all(len(batch) <= 25 and (len(batch) == 1 or sum(batch) <= 300) for batch in weights)


def test_large_records_are_asked_for_in_small_numbers() -> None:
    """After a poll of large records the next one asks for about a batch of them, keys included."""

    def after(value: bytes | None, key: bytes | None, asked: int) -> int:
        return next_poll([Message(0, b"x"), Message(1, value, key)], asked)  # type: ignore[list-item]

    assert after(b"x" * (BATCH_BYTES // 4), None, 1_000) == 4
    assert after(None, b"x" * (BATCH_BYTES // 4), 1_000) == 4
    assert after(b"x" * (2 * BATCH_BYTES), None, 1_000) == 1
    assert after(None, None, 100) == 400
    assert after(b"x", None, 19_000) == POLL_RECORDS


def test_key_and_headers_of_single_records_come_from_their_messages() -> None:
    """Only those that are asked for are looked at, once each, and each batch has its own."""
    messages = [Message(n, b"v" * 1_000, b"k%d" % n, [("n", b"%d" % n)]) for n in range(BATCH_RECORDS)]
    messages[8_000] = Message(8_000, b"v", None, Exception)
    builder = BatchBuilder("orders", 0, RecordParts(single=True))
    builder.add(messages)  # type: ignore[arg-type]
    batches = [*builder.full(), builder.rest()]
    assert len(batches) == 3
    for batch in batches:
        assert batch is not None
        assert (batch.keys, batch.headers) == (None, None)
        offset = batch.offsets[5].as_py()
        for _ in range(2):
            assert (batch.key_of(5), batch.headers_of(5)) == (b"k%d" % offset, (("n", b"%d" % offset),))
        if batch.offsets[0].as_py() <= 8_000 <= batch.offsets[-1].as_py():
            at = 8_000 - batch.offsets[0].as_py()
            assert (batch.key_of(at), batch.headers_of(at), batch.headers_of(at)) == (None, None, None)
    assert sum(message.asked for message in messages) == 4


def test_what_nobody_asks_for_is_not_kept() -> None:
    """Without a source there is no key, and no header."""
    builder = BatchBuilder("orders", 0)
    builder.add([Message(0, b"v", b"k", [("a", b"b")])])  # type: ignore[list-item]
    batch = builder.rest()
    assert batch is not None
    assert (batch.source, batch.key_of(0), batch.headers_of(0)) == (None, None, None)


def test_a_record_above_the_bound_is_a_batch_of_its_own_without_its_value() -> None:
    """A record that is larger than the bound is alone in its batch, with its key and size, and without its value."""
    parts = RecordParts(keys=True, headers=True)
    builder = BatchBuilder("orders", 0, parts, record_bytes=100)
    messages = [Message(0, b"a"), Message(1, b"x" * 200, b"k"), Message(2, b"b"), Message(3, b"c", b"k" * 200)]
    builder.add(messages)  # type: ignore[arg-type]
    found = [
        (one.offsets.to_pylist(), one.unread and one.unread.size, one.values.to_pylist(), one.key_of(0))
        for one in builder.full()
    ]
    assert found == [
        ([0], None, [b"a"], None),
        ([1], 201, [None], b"k"),
        ([2], None, [b"b"], None),
        ([3], 201, [None], None),
    ]
    assert builder.rest() is None
