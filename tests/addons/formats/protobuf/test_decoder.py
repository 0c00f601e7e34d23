"""Batches of Protobuf records: each becomes what it would become alone, whatever stands beside it."""

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.addons.formats.protobuf import columns as protobuf_columns
from parquet_sink.addons.formats.protobuf import decoder as protobuf_decoder
from parquet_sink.addons.formats.protobuf.decoder import decoder
from parquet_sink.convert.decoded import Decoded
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import RegisteredSchema
from tests.addons.formats.protobuf.messages import (
    DEFAULTS,
    EDITION,
    PROTO2,
    PROTO3,
    SIMPLE,
    VARIANTS,
    alone,
    decode,
    decoding,
    message_class,
    records,
)
from tests.messages import assert_says
from tests.thorough import examples


@given(
    st.sampled_from([PROTO3, PROTO2, EDITION]),
    st.integers(0, len(VARIANTS) - 1),
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.sampled_from([0.0, 0.0, 0.03, 0.5]),
)
@example(PROTO2, 0, 4754, 21, 0.5)  # a map whose only key is no UTF-8
@settings(deadline=None, max_examples=examples(80))
def test_a_batch_is_its_records(text: str, variant: int, seed: int, count: int, damage: float) -> None:
    """Random records, some damaged, become together what each becomes alone: rows, reasons, types."""
    values = records(text, seed, count, damage)
    found = decode(text, variant, values)
    assert sorted(found) == list(range(len(values)))
    for position, value in enumerate(values):
        expected = alone(text, variant, value)
        if isinstance(expected, list):
            assert_says(found[position], *expected)
        else:
            assert found[position] == expected


@given(st.integers(0, 2**32), st.lists(st.integers(1, 30), min_size=1, max_size=4))
@settings(deadline=None, max_examples=examples(25))
def test_batches_may_be_cut_anywhere(seed: int, lengths: list[int]) -> None:
    """The same records in other batches become the same."""
    values = records(PROTO3, seed, sum(lengths), 0.05)
    found: list[tuple[int, object]] = []
    start = 0
    for length in lengths:
        batch = decode(PROTO3, 0, values[start : start + length])
        found += [(start + position, what) for position, what in batch.items()]
        start += length
    assert dict(found) == decode(PROTO3, 0, values)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 3))
@settings(deadline=None, max_examples=examples(25))
def test_chunks_and_pieces_do_not_show(seed: int, chunk: int, piece: int) -> None:
    """How many records and elements are in memory at once changes nothing."""
    values = records(PROTO3, seed, 30, 0.02)
    expected = decode(PROTO3, 1, values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protobuf_decoder, "CHUNK", chunk)
        patch.setattr(protobuf_columns, "PIECE", piece)
        assert decode(PROTO3, 1, values) == expected


@given(st.lists(st.binary(max_size=40), max_size=12))
@settings(deadline=None, max_examples=examples(100))
def test_any_bytes_are_a_row_or_invalid(values: list[bytes]) -> None:
    """Bytes of any kind never raise, and each value is in one place."""
    assert sorted(decode(PROTO2, 0, [b"\0" + value for value in values])) == list(range(len(values)))


def test_no_records_are_no_pieces() -> None:
    """An empty batch has nothing."""
    assert decoding(SIMPLE, 0).decode(pa.array([], pa.binary())) == Decoded()


def test_empty_messages_are_rows() -> None:
    """A message of no bytes has the defaults of all fields."""
    found = decode(SIMPLE, 0, [b"\0"] * 9)
    assert [what[1] for what in found.values() if isinstance(what, tuple)] == ["{'a': 0, 'n': None}"] * 9


NO_MESSAGE = ("not a Protobuf message", "message M")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", ("ends within", "message indexes")),
        (b"\x02\x08", ("schema has no message", "indexes 4")),
        (b"\x00\x0a\x05ab", NO_MESSAGE),
        (b"\x00\xff", NO_MESSAGE),
        (b"\x00\x12\x04\x0a\x02\x10\xff", NO_MESSAGE),
        (b"\x00\x12\x08\x0a\x06\x10\x80\x94\xeb\xdc\x03", ("field n.at[0]", "timestamp", "1 to 9999")),
        (b"\x00" + b"\x0b" * 200 + b"\x0c" * 200, NO_MESSAGE),
    ],
)
def test_one_bad_record_does_not_touch_its_neighbours(value: bytes, said: tuple[str, ...]) -> None:
    """A bad record is named, alone or among good ones, and these are rows."""
    good = b"\x00\x08\x05"
    (one,) = decode(SIMPLE, 0, [value]).values()
    assert_says(one, *said)
    found = decode(SIMPLE, 0, [good] * 20 + [value] + [good] * 20)
    assert found.pop(20) == one
    assert {what[1] for what in found.values() if isinstance(what, tuple)} == {"{'a': 5, 'n': None}"}
    assert len(found) == 40


def test_text_that_is_not_utf8_is_invalid() -> None:
    """Proto3 refuses it when it parses; in proto2 the field is named, in keys of maps as well."""
    damaged = b"\x00\x72\x01\xff"
    assert_says(decode(PROTO3, 0, [damaged])[0], "not a Protobuf message", "Rich")
    required = b"\xb8\x04\x00"
    assert_says(decode(PROTO2, 0, [damaged + required])[0], "field f14", "UTF-8")
    keys = b"\x00\xca\x02\x03\x0a\x01a\xca\x02\x03\x0a\x01\xff"
    found = decode(PROTO2, 0, [keys + required, *[b"\x00" + required] * 9])
    assert_says(found.pop(0), "field m1.key", "UTF-8")
    assert all(isinstance(what, tuple) for what in found.values())


def test_a_large_record_that_fails_is_named() -> None:
    """A bad timestamp in a list of many makes the record invalid, named without its position."""
    payload = message_class(SIMPLE)(a=1)
    payload.n.at.extend([type(payload.n.at.add())(seconds=1)] * 40_000)
    payload.n.at.add(seconds=2**50)
    values = [b"\0" + payload.SerializeToString(), b"\0"]
    found = decode(SIMPLE, 0, values)
    assert_says(found[0], "field n.at ", "timestamp", "1 to 9999")
    assert isinstance(found[1], tuple)


def test_a_record_of_megabytes_is_a_row() -> None:
    """A message of 10 MB is read."""
    text = 'syntax = "proto3"; message M { string a = 1; repeated int32 b = 2; }'
    payload = message_class(text)(a="x" * 10_000_000, b=range(1000))
    rows = decoding(text, 0).decode(pa.array([b"\0" + payload.SerializeToString()], pa.binary())).pieces[0].rows
    assert (len(rows[0]["a"].as_py()), len(rows[0]["b"])) == (10_000_000, 1000)


def test_a_type_without_columns_makes_its_records_invalid() -> None:
    """Records of a recursive message are invalid, those of another message of the schema are rows."""
    text = 'syntax = "proto3"; message M { M m = 1; } message N { int32 x = 1; }'
    found = decode(text, 0, [b"\0", b"\x02\x02\x08\x01", b"\0"])
    assert found[0] == found[2]
    assert_says(found[0], "message M", "recursive", "field m)", "no column")
    assert isinstance(found[1], tuple)


def test_a_record_that_is_a_wrapper_is_a_scalar() -> None:
    """Records of a wrapper type are handed on as what they hold."""
    text = 'syntax = "proto3"; import public "google/protobuf/wrappers.proto";'
    found = decode(text, 0, [b"\x02\x06\x08" + b"\xff" * 9 + b"\x01", b"\x02\x06\x08\x05", *[b"\x02\x06"] * 9])
    assert_says(found.pop(0), "integer", "64 bits")
    assert found[1] == (pa.int64(), "5")
    assert found[10] == (pa.int64(), "0")


def test_a_schema_that_does_not_compile_is_invalid() -> None:
    """The decoder of a schema that is no Protobuf is refused when it is made."""
    with pytest.raises(InvalidValue, match="does not compile"):
        decoder(RegisteredSchema(1, "PROTOBUF", '{"type": "record"}'), DEFAULTS)
