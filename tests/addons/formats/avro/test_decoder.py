"""Blocks of Avro datums to columns: pieces, positions, tombstones, and neighbours of bad records."""

import json
import struct

import pyarrow as pa
import pytest

from parquet_sink.addons.formats.avro import decoder as avro_decoder
from parquet_sink.addons.formats.avro import fast as avro_fast
from parquet_sink.addons.formats.avro.decoder import AvroDecoder, decoder
from parquet_sink.convert.decoded import Decoded, SchemaColumns
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from tests.messages import assert_says

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "attrs", "type": {"type": "map", "values": "int"}},
    ],
}
GOOD = b"\x02\x02\x04hi\x04\x02x\x02y\x00\x02\x02k\x0e\x00"
ROW = {"id": 1, "note": "hi", "tags": ["x", "y"], "attrs": [("k", 7)]}
NUMBERS = [1, 5, 40, 100, 500]


def made(schema: object) -> AvroDecoder:
    """The decoder of a schema."""
    found = decoder(RegisteredSchema(1, "AVRO", json.dumps(schema)), ConverterSettings(kind="avro"))
    assert isinstance(found, AvroDecoder)
    return found


def decode(schema: object, datums: list[bytes]) -> Decoded:
    """Datums of a schema, decoded."""
    return made(schema).decode(pa.array(datums, pa.binary()))


def rows(decoded: Decoded) -> dict[int, object]:
    """All rows, by position."""
    found: dict[int, object] = {}
    for piece in decoded.pieces:
        assert isinstance(piece, SchemaColumns)
        piece.rows.validate(full=True)
        assert piece.rows.null_count == 0
        found.update(zip(piece.positions.to_pylist(), piece.rows.to_pylist(), strict=True))
    return found


def test_nothing_gives_nothing() -> None:
    """No values, no pieces."""
    assert decode(ORDER, []) == Decoded()


@pytest.mark.parametrize("count", NUMBERS)
def test_records_become_rows(count: int) -> None:
    """Any number of records, few or many, gives the same rows."""
    assert rows(decode(ORDER, [GOOD] * count)) == dict.fromkeys(range(count), ROW)


@pytest.mark.parametrize("count", NUMBERS)
def test_a_bad_record_changes_nothing_for_others(count: int) -> None:
    """It is in `invalid` with its reason; all others are in one piece."""
    datums = [GOOD] * count
    datums[count // 2] = GOOD + b"\x00"
    decoded = decode(ORDER, datums)
    assert decoded.invalid.keys() == {count // 2}
    assert_says(decoded.invalid[count // 2], "Avro schema", "1 byte more")
    assert rows(decoded) == {at: ROW for at in range(count) if at != count // 2}
    assert len(decoded.pieces) == (count > 1)


def test_all_bad() -> None:
    """A block without a good record has no piece."""
    decoded = decode(ORDER, [b""] * 50)
    assert decoded.pieces == ()
    assert set(decoded.invalid) == set(range(50))


def test_a_part_of_an_array_is_decoded_by_itself() -> None:
    """Positions count from the start of the array that is given, also when it is a slice of another."""
    whole = pa.array([b"\xff", GOOD, b"", *[GOOD] * 40, b"\xff"], pa.binary())
    decoded = made(ORDER).decode(whole.slice(1, 42))
    assert set(decoded.invalid) == {1}
    assert rows(decoded) == {at: ROW for at in range(42) if at != 1}


@pytest.mark.parametrize("count", NUMBERS)
def test_a_null_datum_is_a_tombstone(count: int) -> None:
    """With a union of null and a record at the top, null is neither a row nor invalid."""
    schema = ["null", {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}]
    decoded = decode(schema, [b"\x00" if at % 3 else b"\x02\x0e" for at in range(count)])
    assert decoded.invalid == {}
    assert rows(decoded) == {at: {"a": 7} for at in range(0, count, 3)}
    assert decode("null", [b""] * count) == Decoded()


@pytest.mark.parametrize(
    ("schema", "datum", "value"),
    [
        ("string", b"\x04hi", "hi"),
        ("double", struct.pack("<d", 1.5), 1.5),
        ({"type": "array", "items": "int"}, b"\x02\x02\x00", [1]),
        (["int", "string"], b"\x02\x04hi", {"int": None, "string": "hi"}),
        ({"type": "record", "name": "Empty", "fields": []}, b"", {}),
    ],
)
@pytest.mark.parametrize("count", NUMBERS)
def test_what_is_no_record_is_handed_on(schema: object, datum: bytes, value: object, count: int) -> None:
    """A schema that is not a record gives rows of its own type."""
    assert rows(decode(schema, [datum] * count)) == dict.fromkeys(range(count), value)


@pytest.mark.parametrize("count", NUMBERS)
def test_the_last_of_equal_keys_counts(count: int) -> None:
    """In maps, in few records and in many."""
    datums = [b"\x06\x02a\x02\x02b\x04\x02a\x06\x00", b"\x04\x02a\x02\x02b\x04\x00"] * count
    found = rows(decode({"type": "map", "values": "int"}, datums))
    assert found == {at: [("a", 1 if at % 2 else 3), ("b", 2)] for at in range(2 * count)}


def test_invalid_text_is_found_wherever_it_is() -> None:
    """In a field, in an item and in a key, each with its record alone."""
    datums = [GOOD] * 40
    datums[3] = GOOD.replace(b"hi", b"\xc3\x28")
    datums[5] = GOOD.replace(b"\x02y", b"\x02\xff")
    datums[7] = GOOD.replace(b"\x02k", b"\x02\xff")
    decoded = decode(ORDER, datums)
    where = {3: "note", 5: "tags[1]", 7: "attrs[0].key"}
    assert decoded.invalid.keys() == where.keys()
    for at, path in where.items():
        assert_says(decoded.invalid[at], f"field {path} ", "not UTF-8")
    assert rows(decoded) == {at: ROW for at in range(40) if at not in where}


def test_lists_of_very_different_lengths() -> None:
    """A few very long lists among short ones, in several blocks, keep their order."""
    schema = {"type": "array", "items": {"type": "array", "items": "int"}}
    inner = b"\x04\x02\x04\x00"
    lengths = [0, 1, 2, 60, 3] * 30
    datums = [(b"\x02" + inner) * length + b"\x00" for length in lengths]
    found = rows(decode(schema, datums))
    assert found == {at: [[1, 2]] * length for at, length in enumerate(lengths)}


def test_large_blocks_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """More records, or more bytes, than are decoded at once give several pieces with rising positions."""
    monkeypatch.setattr(avro_decoder, "_MAX_RECORDS", 40)
    monkeypatch.setattr(avro_decoder, "_MAX_BYTES", 35 * len(GOOD))
    datums = [GOOD] * 120
    datums[31] = GOOD[:1] + b"\x02\xc8\x01" + b"x" * 100 + GOOD[5:]
    decoded = decode(ORDER, datums)
    assert len(decoded.pieces) > 3
    assert list(rows(decoded)) == list(range(120))
    assert rows(decoded)[31] == {**ROW, "note": "x" * 100}


def test_what_no_column_can_hold_is_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that Arrow cannot hold in one column is refused, and the others are not."""
    monkeypatch.setattr(avro_decoder, "_rows", lambda values, node: None)
    datums = [GOOD] * 40
    datums[4] = GOOD.replace(b"\x02y", b"\x02x") + b"\x00"
    datums[6] = GOOD[:-1] + b"\x02\x02k\x10\x00"
    decoded = decode(ORDER, datums)
    assert_says(decoded.invalid[6], "larger than a column")
    assert set(decoded.invalid) == {4, 6}
    assert rows(decoded) == {at: ROW for at in range(40) if at not in {4, 6}}


def test_good_records_beside_a_damaged_one_are_decoded_at_once() -> None:
    """Only the damaged record goes through the exact decoder."""
    datums = [GOOD] * 200
    datums[17] = b"\xff" * 30
    done = avro_fast.decode(made(ORDER)._node, pa.array(datums, pa.binary()))[1]
    assert done.tolist() == [at != 17 for at in range(200)]
