"""Avro decoded a field at a time equals Avro decoded one datum at a time, whatever the schema and the bytes."""

import io
import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.addons.formats.avro import decoder as avro_decoder
from parquet_sink.addons.formats.avro import fast as avro_fast
from parquet_sink.addons.formats.avro.decoder import AvroDecoder, decoder
from parquet_sink.addons.formats.avro.exact import Exact
from parquet_sink.convert.decoded import Decoded
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from tests.thorough import examples


@pytest.fixture(autouse=True, scope="module")
def _hardly_any_are_few() -> Iterator[None]:
    """Small blocks are decoded at once, too, so that tests need no large ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(avro_decoder, "_FEW", 4)
        yield


SEEDS = st.integers(0, 2**32 - 1)
TEXTS = ("", "a", "für Ada", "日本", "x" * 70, "\x00", "🙂 ok")
INTS = (0, 1, -1, 63, -64, 64, -65, 8191, 8192, 2**31 - 1, -(2**31))
LONGS = (*INTS, 2**34, -(2**41), 2**55, 2**56 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63), 1_700_000_000_000)


def varint(value: int) -> bytes:
    """A zigzag varint, written without the code under test."""
    rest = (value << 1) ^ (value >> 63) if value >= 0 else ((-value - 1) << 1) | 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


@dataclass(frozen=True)
class Value:
    """A value as bytes, as Arrow's column shows it, and as fastavro's writer and reader have it."""

    encoded: bytes
    shown: object
    plain: object


@dataclass(frozen=True)
class Kind:
    """A type with what draws values of it. unique: whether fastavro's writer knows the branches of its unions."""

    schema: object
    draw: Callable[[random.Random], Value]
    label: str
    unique: bool = True


def number(label: str, schema: object, values: tuple[int, ...]) -> Kind:
    """An int or a long."""

    def draw(rng: random.Random) -> Value:
        value = rng.choice(values) if rng.random() < 0.6 else rng.randint(0, 100)
        return Value(varint(value), value, value)

    return Kind(schema, draw, label)


def simple(rng: random.Random) -> Kind:
    """A type without others below."""
    return rng.choice((integers, floats, texts, blobs, enums, decimals, booleans))(rng)


def integers(rng: random.Random) -> Kind:
    """Integers, also those that mean dates and times."""
    return rng.choice(
        [
            number("int", "int", INTS),
            number("long", "long", LONGS),
            number("int", {"type": "int", "logicalType": "date"}, INTS),
            number("int", {"type": "int", "logicalType": "time-millis"}, (0, 1, 86_399_999)),
            number("long", {"type": "long", "logicalType": "timestamp-millis"}, LONGS),
            number("long", {"type": "long", "logicalType": "timestamp-micros"}, LONGS),
            number("int", {"type": "int", "connect.type": "int16"}, (0, -5, 32_767)),
        ]
    )


def floats(rng: random.Random) -> Kind:
    """Fractions of both sizes, with infinities."""
    label, layout = rng.choice([("float", "<f"), ("double", "<d")])

    def draw(rng: random.Random) -> Value:
        value = struct.unpack(layout, struct.pack(layout, rng.choice([0.0, -0.0, 1.5, float("inf"), rng.random()])))[0]
        return Value(struct.pack(layout, value), value, value)

    return Kind(label, draw, label)


def booleans(rng: random.Random) -> Kind:
    """Booleans and nulls."""
    if rng.random() < 0.2:
        return Kind("null", lambda _: Value(b"", None, None), "null")

    def draw(rng: random.Random) -> Value:
        value = rng.random() < 0.5
        return Value(bytes([value]), value, value)

    return Kind("boolean", draw, "boolean")


def texts(rng: random.Random) -> Kind:
    """Strings, some of them with a logical type."""

    def draw(rng: random.Random) -> Value:
        value = rng.choice(TEXTS)
        return Value(varint(len(value.encode())) + value.encode(), value, value)

    return Kind(rng.choice(["string", {"type": "string", "logicalType": "uuid"}]), draw, "string")


def blobs(rng: random.Random) -> Kind:
    """Bytes of a fixed or of any size."""
    size = rng.choice([None, None, 0, 3, 16])

    def draw(rng: random.Random) -> Value:
        value = rng.randbytes(rng.choice([0, 1, 5, 40]) if size is None else size)
        return Value((varint(len(value)) if size is None else b"") + value, value, value)

    if size is None:
        return Kind("bytes", draw, "bytes")
    name = unique_name(rng)
    return Kind({"type": "fixed", "name": name, "size": size}, draw, name)


def enums(rng: random.Random) -> Kind:
    """Enums of a few symbols or of more than one byte can tell."""
    symbols = [f"S{at}" for at in range(rng.choice([1, 3, 200]))]
    name = unique_name(rng)

    def draw(rng: random.Random) -> Value:
        at = rng.randrange(len(symbols))
        return Value(varint(at), symbols[at], symbols[at])

    return Kind({"type": "enum", "name": name, "symbols": symbols}, draw, name)


def decimals(rng: random.Random) -> Kind:
    """Decimals of all widths, in bytes and in fixed, shortest form or longer."""
    precision = rng.choice([1, 5, 18, 19, 20, 38, 39, 60, 76])
    scale = rng.choice([0, precision // 2, precision, *([-2, precision + 2] if precision <= 60 else [])])
    size = rng.choice([None, 33])
    notes = {"logicalType": "decimal", "precision": precision, "scale": scale}

    def draw(rng: random.Random) -> Value:
        limit = 10 ** rng.choice([1, min(precision, 3), precision]) - 1
        unscaled = rng.choice([0, 1, -1, limit, -limit, rng.randint(-limit, limit)])
        width = size or max(1, (unscaled.bit_length() + 8) // 8) + rng.choice([0, 0, 0, 1])
        value = unscaled.to_bytes(width, signed=True)
        digits = Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))
        return Value((varint(width) if size is None else b"") + value, digits, value)

    if size is None:
        return Kind({"type": "bytes", **notes}, draw, "bytes")
    name = unique_name(rng)
    return Kind({"type": "fixed", "name": name, "size": size, **notes}, draw, name)


def unique_name(rng: random.Random) -> str:
    """A name for a type."""
    return f"T{rng.getrandbits(60)}"


def record(rng: random.Random, depth: int) -> Kind:
    """A record of a few fields, sometimes of none."""
    fields = {f"f{at}": kind(rng, depth - 1) for at in range(rng.choice([0, 1, 2, 3, 5]) if depth < 3 else 4)}
    name = unique_name(rng)
    described = [{"name": field, "type": below.schema} for field, below in fields.items()]

    def draw(rng: random.Random) -> Value:
        values = {field: below.draw(rng) for field, below in fields.items()}
        return Value(
            b"".join(value.encoded for value in values.values()),
            {field: value.shown for field, value in values.items()},
            {field: value.plain for field, value in values.items()},
        )

    unique = all(below.unique for below in fields.values())
    return Kind({"type": "record", "name": name, "fields": described}, draw, name, unique)


def blocks(rng: random.Random, items: list[bytes]) -> bytes:
    """Items in one block or in several, with or without the sizes of blocks."""
    out = b""
    while items:
        size = rng.choice([1, 2, len(items), len(items)])
        block, items = items[:size], items[size:]
        together = b"".join(block)
        sized = varint(-len(block)) + varint(len(together))
        out += (sized if rng.random() < 0.2 else varint(len(block))) + together
    return out + b"\x00"


def array(rng: random.Random, depth: int) -> Kind:
    """Arrays, short ones, seldom longer ones."""
    items = kind(rng, depth - 1)

    def draw(rng: random.Random) -> Value:
        values = [items.draw(rng) for _ in range(rng.choice([0, 0, 1, 2, 3, 5] if depth < 3 else [0, 1, 4, 30]))]
        encoded = blocks(rng, [value.encoded for value in values])
        return Value(encoded, [value.shown for value in values], [value.plain for value in values])

    return Kind({"type": "array", "items": items.schema}, draw, "array", items.unique)


def mapping(rng: random.Random, depth: int) -> Kind:
    """Maps with keys that differ, or now and then do not."""
    below = kind(rng, depth - 1)

    def draw(rng: random.Random) -> Value:
        keys = [rng.choice(TEXTS) for _ in range(rng.choice([0, 1, 2, 3]))]
        values = [(key, below.draw(rng)) for key in keys]
        encoded = [varint(len(key.encode())) + key.encode() + value.encoded for key, value in values]
        shown = {key: value.shown for key, value in values}
        return Value(blocks(rng, encoded), list(shown.items()), {key: value.plain for key, value in values})

    return Kind({"type": "map", "values": below.schema}, draw, "map", below.unique)


def union(rng: random.Random, depth: int) -> Kind:
    """Nullable types, single branches, and unions of several types."""
    branches = {"null": Kind("null", lambda _: Value(b"", None, None), "null")} if rng.random() < 0.8 else {}
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        one = kind(rng, depth - 1)
        if not isinstance(one.schema, list):
            branches[one.label] = one
    ordered = list(branches.values())
    rng.shuffle(ordered)
    if not ordered:
        ordered = [simple(rng)]
    labels = [one.label for one in ordered]
    struct_like = len(ordered) > 1 and not (len(ordered) == 2 and "null" in labels)

    def draw(rng: random.Random) -> Value:
        at = rng.randrange(len(ordered))
        value = ordered[at].draw(rng)
        shown = value.shown
        if struct_like:
            fields = dict.fromkeys(label for label in labels if label != "null")
            shown = None if labels[at] == "null" else {**fields, labels[at]: value.shown}
        return Value(varint(at) + value.encoded, shown, value.plain)

    unique = not struct_like and all(one.unique for one in ordered)
    return Kind([one.schema for one in ordered], draw, "union", unique)


def kind(rng: random.Random, depth: int) -> Kind:
    """A type of at most this many levels."""
    if depth <= 0:
        return simple(rng)
    makers = [record, array, mapping, union, union]
    return rng.choice(makers)(rng, depth) if rng.random() < 0.6 else simple(rng)


def made(schema: object) -> AvroDecoder:
    """The decoder of a schema."""
    found = decoder(RegisteredSchema(1, "AVRO", json.dumps(schema)), ConverterSettings(kind="avro"))
    assert isinstance(found, AvroDecoder)
    return found


def one_by_one(found: AvroDecoder, datums: list[bytes]) -> tuple[list[int], list[object], dict[int, str]]:
    """What the exact decoder says: positions and values of rows, and reasons."""
    positions, values, invalid = [], [], {}
    exact = Exact(found._node)
    for position, datum in enumerate(datums):
        try:
            value = exact.value(datum)
        except InvalidValue as error:
            invalid[position] = str(error)
        else:
            if value is not None:
                positions.append(position)
                values.append(value)
    return positions, values, invalid


def assert_equal(found: AvroDecoder, datums: list[bytes], decoded: Decoded) -> None:
    """`decoded` is what the exact decoder makes of the datums, types and reasons included."""
    positions, values, invalid = one_by_one(found, datums)
    assert decoded.invalid == invalid
    assert [at for piece in decoded.pieces for at in piece.positions.to_pylist()] == positions
    rows = pa.chunked_array([piece.rows for piece in decoded.pieces], found._node.arrow).combine_chunks()
    rows.validate(full=True)
    expected = pa.array(values, found._node.arrow)
    assert rows.type == expected.type
    assert same(rows, expected)


def same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays of one type are equal, NaN being equal to NaN."""
    if one.equals(other):
        return True
    if len(one) != len(other) or not one.is_valid().equals(other.is_valid()):
        return False
    one, other = one.filter(one.is_valid()), other.filter(other.is_valid())
    if pa.types.is_struct(one.type):
        return all(map(same, one.flatten(), other.flatten()))
    if pa.types.is_map(one.type):
        return same(one.keys, other.keys) and same(one.items, other.items) and one.offsets.equals(other.offsets)
    if pa.types.is_list(one.type):
        return one.offsets.equals(other.offsets) and same(one.flatten(), other.flatten())
    nan = pc.is_nan(one) if pa.types.is_floating(one.type) else pa.array([False] * len(one))
    return bool(pc.all(pc.or_(nan, pc.equal(one, other)), min_count=0).as_py())


def mutated(rng: random.Random, datum: bytes) -> bytes:
    """Bytes that are probably not of the schema any more."""
    changed = bytearray(datum)
    how = rng.randrange(5)
    if how == 0:
        return bytes(changed[: rng.randint(0, len(changed))])
    if how == 1:
        return bytes(changed) + rng.randbytes(rng.randint(1, 12))
    for _ in range(rng.randint(1, 3)):
        if changed:
            at = rng.randrange(len(changed))
            changed[at] = rng.choice([0xFF, 0x80, 0, changed[at] ^ (1 << rng.randrange(8)), rng.randrange(256)])
    if how == 2:
        at = rng.randint(0, len(changed))
        changed[at:at] = rng.choice([b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\x80\x80\x80\x80\x20", b"\x01"])
    return bytes(changed)


@settings(max_examples=examples(120), deadline=None)
@given(SEEDS)
def test_what_was_written_comes_out(seed: int) -> None:
    """Values of random schemas come out as they went in, also through fastavro's writer, in any part of a block."""
    rng = random.Random(seed)
    top = rng.choice([record, record, record, kind])(rng, 3)
    values = [top.draw(rng) for _ in range(rng.choice([1, 9, 40, 100]))]
    datums = [value.encoded for value in values]
    if top.unique:
        schema = fastavro.parse_schema(without_meaning(top.schema))
        datums = [written(schema, value) if rng.random() < 0.5 else value.encoded for value in values]
    found = made(top.schema)
    block = pa.array([b"before", *datums, b"behind"], pa.binary()).slice(1, len(datums))
    decoded = found.decode(block)
    assert decoded.invalid == {}
    kept = [(at, value.shown) for at, value in enumerate(values) if value.shown is not None]
    assert [at for piece in decoded.pieces for at in piece.positions.to_pylist()] == [at for at, _ in kept]
    rows = pa.chunked_array([piece.rows for piece in decoded.pieces], found._node.arrow)
    expected = pa.chunked_array([pa.array([shown for _, shown in kept], found._node.arrow)])
    assert rows.equals(expected)
    assert_equal(found, datums, decoded)


def without_meaning(schema: object) -> object:
    """A schema of the same bytes that has no logical types, so that fastavro writes what it is given."""
    if isinstance(schema, list):
        return [without_meaning(one) for one in schema]
    if isinstance(schema, dict):
        return {key: without_meaning(value) for key, value in schema.items() if key != "logicalType"}
    return schema


def written(schema: object, value: Value) -> bytes:
    """The datum as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value.plain)  # type: ignore[arg-type]
    return out.getvalue()


@settings(max_examples=examples(120), deadline=None)
@given(SEEDS)
def test_bad_bytes_are_judged_alike(seed: int) -> None:
    """Some records of a block are damaged: rows, positions and reasons are those of the exact decoder."""
    rng = random.Random(seed)
    top = rng.choice([record, record, record, kind])(rng, 3)
    damage = rng.choice([0.02, 0.3, 1.0])
    datums = [top.draw(rng).encoded for _ in range(rng.choice([9, 30, 80]))]
    datums = [mutated(rng, datum) if rng.random() < damage else datum for datum in datums]
    found = made(top.schema)
    assert_equal(found, datums, found.decode(pa.array(datums, pa.binary())))


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_random_bytes_do_no_harm(seed: int) -> None:
    """Bytes that were never of the schema end as rows or as reasons, equal in both decoders."""
    rng = random.Random(seed)
    top = record(rng, 3)
    datums = [bytes(rng.choices([0, 0, 2, 2, 4, 1, 128, 255, 65], k=rng.randrange(30))) for _ in range(40)]
    found = made(top.schema)
    assert_equal(found, datums, found.decode(pa.array(datums, pa.binary())))


VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}],
}
VARIABLES = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "plain", "type": VARIABLE},
        {"name": "maybe", "type": ["null", "io.debezium.data.VariableScaleDecimal"]},
        {"name": "many", "type": {"type": "array", "items": "io.debezium.data.VariableScaleDecimal"}},
        {"name": "other", "type": ["long", "io.debezium.data.VariableScaleDecimal"]},
    ],
}


def variable_decimal(rng: random.Random) -> bytes:
    """A Debezium decimal, now and then of no bytes or of too many."""
    size = rng.choice([0, 65]) if rng.random() < 0.05 else rng.choice([1, 2, 20, 64])
    return varint(rng.choice([0, 2, -2, 130, -131, 2**31 - 1, -(2**31)])) + varint(size) + rng.randbytes(size)


@settings(max_examples=examples(60), deadline=None)
@given(SEEDS)
def test_decimals_of_any_scale_are_judged_alike(seed: int) -> None:
    """Debezium's decimals of any scale are text in both decoders, wherever they stand."""
    rng = random.Random(seed)
    datums = []
    for _ in range(rng.choice([9, 40])):
        maybe, other = rng.randrange(2), rng.randrange(2)
        datum = variable_decimal(rng) + varint(maybe) + (variable_decimal(rng) if maybe else b"")
        datum += blocks(rng, [variable_decimal(rng) for _ in range(rng.randrange(3))])
        datum += varint(other) + (variable_decimal(rng) if other else varint(7))
        datums.append(mutated(rng, datum) if rng.random() < 0.05 else datum)
    found = made(VARIABLES)
    assert_equal(found, datums, found.decode(pa.array(datums, pa.binary())))


@settings(max_examples=examples(40), deadline=None)
@given(SEEDS)
def test_good_neighbours_are_decoded_at_once(seed: int) -> None:
    """A damaged record does not send the others to the exact decoder."""
    rng = random.Random(seed)
    fields = [rng.choice([integers, floats, texts, blobs, enums])(rng) for _ in range(4)]
    described = [{"name": f"f{at}", "type": ["null", below.schema]} for at, below in enumerate(fields)]
    found = made({"type": "record", "name": "R", "fields": described})
    good = b"".join(b"\x02" + below.draw(rng).encoded for below in fields)
    datums = [good] * 30
    datums[rng.randrange(30)] = b"\xff" * 12
    done = avro_fast.decode(found._node, pa.array(datums, pa.binary()))[1]
    assert np.count_nonzero(done) == 29
