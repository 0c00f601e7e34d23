"""Short records and schemas that would fill memory or time: refused by name, and never more than a refusal."""

import json
from bisect import bisect_left
from collections.abc import Sequence

import pyarrow as pa
import pytest

from parquet_sink.addons.formats.avro import decoder as avro_decoder
from parquet_sink.addons.formats.json_schema import decoder as json_schema
from parquet_sink.addons.formats.protobuf import decoder as protobuf_decoder
from parquet_sink.addons.formats.protobuf import expansion as protobuf_cells
from parquet_sink.addons.formats.protobuf.compile import compile_schema
from parquet_sink.convert.decoded import Decoder, SchemaColumns
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import envelope
from parquet_sink.convert.registry import registered
from parquet_sink.convert.registry.registered import RegisteredSchema
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.convert.typed_json.types import (
    Field,
    ListKind,
    MapKind,
    ScalarKind,
    Slot,
    StructKind,
    UnionKind,
    cost,
    counter,
)
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ShapeSettings
from tests.factories import accepted
from tests.messages import assert_says, saying

NESTED = ShapeSettings(flatten=False)
WIDE = [{"field": f"f{number}", "type": "string", "optional": True} for number in range(2_400)]
TEXT = Slot(ScalarKind("string"), optional=True)
MANY_ITEMS = "more items than"


def wide(fields: int) -> Slot:
    """A slot of an object of so many optional fields."""
    return Slot(StructKind(tuple(Field(f"f{number}", TEXT) for number in range(fields))))


def enveloped(schema: object, payload: object) -> bytes:
    """A value as JsonConverter writes it."""
    return json.dumps({"schema": schema, "payload": payload}).encode()


def schema_of(**fields: object) -> dict[str, object]:
    """An envelope's schema of a struct."""
    named = [{"field": name, **one} for name, one in fields.items() if isinstance(one, dict)]
    return {"type": "struct", "fields": named}


def reasons(decoder: Decoder, values: Sequence[bytes]) -> dict[int, str]:
    """Why values have no row, by position."""
    return dict(decoder.decode(pa.array(values, pa.binary())).invalid)


def from_envelope(*values: bytes) -> dict[int, str]:
    """Why envelopes have no row."""
    return reasons(envelope.decoder(ConverterSettings(kind="json_envelope")), values)


def json_schema_decoder(schema: object) -> Decoder:
    """The decoder of a JSON Schema."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return json_schema.decoder(RegisteredSchema(1, "JSON", text), ConverterSettings(kind="json_schema"))


def protobuf(text: str) -> Decoder:
    """The decoder of a .proto text."""
    settings = ConverterSettings(kind="protobuf", optional_for_proto2=False)
    return protobuf_decoder.decoder(RegisteredSchema(1, "PROTOBUF", text), settings)


def test_objects_of_nothing_in_a_list_of_an_envelope() -> None:
    """A list of `{}` whose schema has thousands of optional fields is refused, and a neighbour is read all the same."""
    schema = schema_of(l={"type": "array", "items": {"type": "struct", "fields": WIDE}})
    bad, good = enveloped(schema, {"l": [{}] * 20_000}), enveloped(schema, {"l": [{"f1": "x"}] * 10})
    found = from_envelope(good, bad, good)
    assert list(found) == [1]
    assert MANY_ITEMS in found[1]


def test_what_is_counted_does_not_depend_on_what_came_before() -> None:
    """A value that is just within its bounds is read, first of its schema or not; one item more is refused always."""
    schema = schema_of(l={"type": "array", "items": {"type": "struct", "fields": WIDE[:500]}})

    def value(count: int) -> bytes:
        return enveloped(schema, {"l": [{}] * count})

    first = bisect_left(range(4_000), 1, key=lambda count: len(from_envelope(value(count))))
    within, beyond = value(first - 1), value(first)
    assert list(from_envelope(within, beyond, within, beyond)) == [1, 3]
    assert list(from_envelope(beyond, within)) == [0]


def test_objects_of_nothing_in_a_list_of_json_schema() -> None:
    """The same with a registered JSON Schema."""
    item = {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(2_400)}}
    decoder = json_schema_decoder({"type": "object", "properties": {"l": {"type": "array", "items": item}}})
    found = reasons(decoder, [json.dumps({"l": [{}] * 20_000}).encode(), b'{"l":[{"f1":"x"}]}'])
    assert list(found) == [0]
    assert MANY_ITEMS in found[0]


def test_messages_of_nothing_in_a_list_of_protobuf() -> None:
    """Two bytes for each message of thousands of fields: refused before the library makes them, alone or in a block."""
    fields = " ".join(f"int64 f{number} = {number};" for number in range(1, 2_400))
    decoder = protobuf(f'syntax="proto3"; message R {{ repeated W l = 1; }} message W {{ {fields} }}')
    good = b"\x00" + b"\x0a\x02\x08\x01"
    found = reasons(decoder, [good, b"\x00" + b"\x0a\x00" * 100_000, good])
    assert list(found) == [1]
    assert MANY_ITEMS in found[1]


@pytest.mark.parametrize("size", [8_000, 200_000])
def test_defaults_are_bounded(size: int) -> None:
    """A default stands in every record that lacks a value: one of 20,000 bytes makes a schema that nobody can use."""
    default = {"type": "string", "optional": True, "default": "x" * size}
    found = from_envelope(enveloped(schema_of(a=default, b={"type": "int32"}), {"b": 1}))
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "default": "x" * size}, "b": {"type": "integer"}},
    }
    if size < 20_000:
        assert not found
        assert not reasons(json_schema_decoder(schema), [b'{"b":1}'])
    else:
        assert_says(found[0], "defaults", "more than 20,000 bytes")
        with pytest.raises(InvalidValue, match=saying("defaults", "more than 20,000 bytes")):
            json_schema_decoder(schema)


def test_defaults_in_items_count_as_items() -> None:
    """Nulls in a list that each stand for a long default are refused when they are many."""
    item = {"type": "string", "optional": True, "default": "x" * 10_000}
    found = from_envelope(enveloped(schema_of(l={"type": "array", "items": item}), {"l": [None] * 20_000}))
    assert MANY_ITEMS in found[0]


def test_only_types_that_can_grow_are_counted() -> None:
    """Lists of small items, of which the bytes are many enough, are not looked at."""
    assert counter(ListKind(wide(20))) is None
    assert counter(StructKind((Field("a", TEXT), Field("l", Slot(ListKind(TEXT)))))) is None
    assert counter(ListKind(wide(100))) is not None


def test_items_are_counted_wherever_they_are() -> None:
    """In lists of lists, in maps of all three forms, below keys, in unions, in structs; other shapes count nothing."""
    rows = ListKind(wide(99))
    forms = {
        "object": {"k": [{}, {}]},
        "pairs": [["k", [{}, {}]]],
        "entries": [{"key": "k", "value": [{}, {}]}],
    }
    for form, value in forms.items():
        count = counter(MapKind(TEXT, Slot(rows), form))  # type: ignore[arg-type]
        assert count is not None
        assert count(value) == 200
        assert count(7) == 0
    nested = counter(StructKind((Field("u", Slot(UnionKind((Field("x", Slot(ListKind(Slot(rows)))),)))),)))
    assert nested is not None
    assert nested({"u": [[{}], [{}, {}], 5]}) == 300
    assert nested({"u": None}) == nested([]) == 0
    assert cost({"a": ["x" * 80, (1, b"")]}) == 1 + 1 + 11 + 1 + 1 + 1


def growth_of(text: str) -> protobuf_cells.Growth:
    """What is counted of the first message of a .proto text."""
    file = compile_schema(RegisteredSchema(1, "PROTOBUF", text)).file
    return protobuf_cells.Growth(next(iter(file.message_types_by_name.values())))


def test_items_of_protobuf_are_counted_wherever_they_are() -> None:
    """In messages, maps and groups, and below other items; what is no message is not beyond anything."""
    fields = " ".join(f"optional int64 f{number} = {number};" for number in range(1, 1_000))
    others = fields.replace("f1 ", "fx ").replace("= 1;", "= 1001;")
    growth = growth_of(
        f'syntax="proto2"; message R {{ optional S s = 1; map<int32, W> m = 2; repeated S ss = 3; '
        f"repeated group G = 4 {{ optional int32 x = 1; {others} }} }} "
        f"message S {{ repeated W l = 1; optional R again = 2; }} message W {{ {fields} }}"
    )
    item = b"\x0a\x00" * 3_000
    sized = b"\x0a" + b"\xf0\x2e" + item
    assert growth.counts
    assert growth.is_beyond(sized)
    assert growth.is_beyond(b"\x1a\xf0\x2e" + item)
    assert growth.is_beyond(b"\x12\x00" * 3_000)
    assert growth.is_beyond(b"\x23\x24" * 3_000)
    assert growth.is_beyond(b"\x0a\xf3\x2e\x12\xf0\x2e" + b"\x12\x00" * 3_000)
    assert not growth.is_beyond(b"\x0a\x00" * 3_000)
    assert not growth.is_beyond(b"\x08\x01" * 3_000)
    for broken in (b"\xff" * 6_000, b"\x0a\xff\xff\xff\xff\x0f" + item, b"\x24" * 6_000, b"\x09" * 6_000, b"\x0d"):
        assert not growth.is_beyond(broken)


def test_most_protobuf_types_are_not_counted() -> None:
    """A type without wide items in lists costs nothing."""
    schema = 'syntax="proto3"; message R { repeated S s = 1; } message S { int32 a = 1; R r = 2; }'
    assert not growth_of(schema).counts


@pytest.mark.parametrize(
    "fraction", ["1e-99999999999999999999999", "-0e99999999999999999999999", "5.25E-9999999999999999999"]
)
def test_an_exponent_that_no_decimal_has(fraction: str) -> None:
    """Where a neighbour's digits count, so that fractions are read as decimals, it is next to nothing, as otherwise."""
    schema = json.dumps(schema_of(whole={"type": "int64"}, part={"type": "double"}))
    value = f'{{"schema": {schema}, "payload": {{"whole": 9007199254740993.0, "part": {fraction}}}}}'.encode()
    decoded = envelope.decoder(ConverterSettings(kind="json_envelope")).decode(pa.array([value] * 3, pa.binary()))
    assert not decoded.invalid
    (piece,) = decoded.pieces
    assert isinstance(piece, SchemaColumns)
    assert piece.rows.to_pylist() == [{"whole": 9007199254740993, "part": float(fraction)}] * 3
    amount = schema_of(
        d={"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    )
    found = from_envelope(f'{{"schema": {json.dumps(amount)}, "payload": {{"d": {fraction}}}}}'.encode())
    if fraction.startswith("-0"):
        assert found == {}
    else:
        assert_says(found[0], "field d", "more than 2 digits", "point")


def test_a_schema_nested_deeper_than_it_can_be_written() -> None:
    """What the parser of JSON reads, and its writer does not write, is too deep."""
    deep = '{"type":"array","items":' * 900 + '{"type":"string"}' + "}" * 900
    default = '{"type":"string","default":' + "[" * 600 + "]" * 600 + "}"
    for schema in (deep, default):
        found = from_envelope(f'{{"schema":{schema},"payload":[]}}'.encode())
        assert_says(found[0], "the schema", "too deeply")
    with pytest.raises(InvalidValue, match=saying("default", "properties.a", "too deeply")):
        json_schema_decoder(f'{{"type":"object","properties":{{"a":{default}}}}}')


def laughs(word: str, leaf: dict[str, object], levels: int = 60) -> dict[str, object]:
    """A schema in which each level refers to the next one twice."""
    places: dict[str, object] = {f"a{level}": {word: [{"$ref": f"#/d/a{level + 1}"}] * 2} for level in range(levels)}
    return {"$ref": "#/d/a0", "d": {**places, f"a{levels}": leaf}}


LARGE: dict[str, object] = {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(2_400)}}
SMALL: dict[str, object] = {"type": "object", "properties": {"x": {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [
        laughs("allOf", SMALL),
        laughs("anyOf", SMALL),
        laughs("oneOf", SMALL),
        {"allOf": [{"$ref": "#/d/b"}] * 19_000, "d": {"b": LARGE}},
        {"allOf": [{"$ref": "#/d/b"}] * 19_000, "d": {"b": {**SMALL, "required": ["x"] * 20_000}}},
        {"allOf": [{"$ref": "#" + "/a" * 300}] * 5_000, **json.loads('{"a":' * 300 + json.dumps(SMALL) + "}" * 300)},
        {
            "type": "object",
            "properties": {f"f{n}": {"$ref": "#/d"} for n in range(2_000)},
            "d": {"enum": [*range(9_000)]},
        },
        {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(100_000)}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
    ],
    ids=["allOf", "anyOf", "oneOf", "large", "required", "long", "values", "wide", "itself"],
)
def test_json_schemas_that_unfold(schema: object) -> None:
    """A schema that becomes very large by references is refused, and soon."""
    with pytest.raises(InvalidValue, match=r"too much|deeper than|fields|refers to itself"):
        json_schema_decoder(schema)


def test_ids_of_json_schemas_are_found_within_bounds() -> None:
    """Ids far down or very long are not found; neither they nor lists far down take the memory of their paths."""
    deep = "[" * 1_000 + ",".join(["{}"] * 50_000) + "]" * 1_000
    ids = {f"f{n}": {"$id": f"x{n}", "type": "string"} for n in range(1_000)}
    schema = json.dumps({"$id": "http://localhost/" + "b/" * 50_000, "type": "object", "properties": ids})
    assert not reasons(json_schema_decoder(f'{schema[:-1]},"q":{deep}}}'), [b'{"f1":"x"}'])


def avro(schema: object) -> Decoder:
    """The decoder of an Avro schema."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return avro_decoder.decoder(RegisteredSchema(1, "AVRO", text), ConverterSettings(kind="avro"))


@pytest.mark.parametrize("items", ["null", {"type": "record", "name": "E", "fields": []}])
def test_an_avro_array_that_claims_a_thousand_million_items(items: object) -> None:
    """Items of no bytes are refused by their number, and no neighbour with them."""
    decoder = avro(
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": items}}]}
    )
    claim = b"\x80\xa8\xd6\xb9\x07\x00"
    found = reasons(decoder, [b"\x00", claim, b"\x02\x00"] * 20)
    assert set(found) == set(range(1, 60, 3))


@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"array","items":' * 900 + '"string"' + "}" * 900,
        '{"type":' * 900 + '"string"' + "}" * 900,
        "[" * 900 + "]" * 900,
        '{"type":"array","items":' * 100_000,
    ],
)
def test_avro_schemas_that_are_too_deep(schema: str) -> None:
    """They are refused before they are followed."""
    with pytest.raises(InvalidValue, match="cannot be used"):
        avro(schema)


def test_avro_types_that_unfold() -> None:
    """Named types that use the one before twice are refused by the columns they would have."""
    type_: dict[str, object] = {"type": "record", "name": "A0", "fields": [{"name": "x", "type": "int"}]}
    for level in range(1, 40):
        fields = [{"name": "a", "type": type_}, {"name": "b", "type": f"A{level - 1}"}]
        type_ = {"type": "record", "name": f"A{level}", "fields": fields}
    with pytest.raises(InvalidValue, match="more than 2500 columns"):
        avro(type_)


def refusal(values: list[bytes], settings: ShapeSettings) -> str:
    """Why the first of some records of plain JSON has no row."""
    block = RecordBatch.of("t", 0, range(len(values)), [0] * len(values), values)
    with pytest.raises(InvalidRecord) as caught:
        list(accepted(RowBuilder(settings), block))
    return caught.value.reason


def test_a_long_name_above_many_fields() -> None:
    """Flattening makes names of a long one and each field below it: the first of them is refused."""
    below = b",".join(b'"c%d":1' % number for number in range(50_000))
    value = b'{"' + b"a" * 40_000 + b'":{' + below + b"}}"
    for settings in (ShapeSettings(), ShapeSettings(lowercase=True), ShapeSettings(explode=True)):
        reason = refusal([value], settings)
        assert_says(reason, "name", "longer than 1,000 characters")
        assert len(reason) < 400


def test_thousands_of_runs_of_one_row() -> None:
    """Records whose types exclude each other in turn make a run each, decoded record by record or not."""
    values: list[bytes | None] = [b'{"a":1}', b'{"a":"x"}'] * 1_000
    block = RecordBatch.of("t", 0, range(len(values)), [0] * len(values), values)
    for settings in (ShapeSettings(), ShapeSettings(explode=True), NESTED):
        runs = list(accepted(RowBuilder(settings), block))
        assert [run.first_offset for run in runs] == list(range(2_000))
        assert all(run.incompatible for run in runs[1:])


def test_a_schema_of_its_own_in_each_record() -> None:
    """Thousands of schemas, each with a column that no other has, still are rows of one run, each in its column."""
    values: list[bytes | None] = [
        enveloped(schema_of(**{f"a{number}": {"type": "int32"}}), {f"a{number}": number}) for number in range(1_500)
    ]
    block = RecordBatch.of("t", 0, range(len(values)), [0] * len(values), values)
    shaper = RowBuilder(
        ShapeSettings(embed_metadata=False), None, envelope.decoder(ConverterSettings(kind="json_envelope"))
    )
    (run,) = accepted(shaper, block)
    assert run.rows.shape == (1_500, 1_500)
    assert all(run.rows[f"a{n}"].to_pylist() == [None] * n + [n] + [None] * (1_499 - n) for n in (0, 1, 700, 1_499))
    assert run.rows.column(3).null_count == 1_499


@pytest.mark.parametrize(("time", "date"), [(2**62, None), (None, 2**31 - 1), (-(2**62), -(2**31))])
def test_dates_that_python_does_not_have(time: int | None, date: int | None) -> None:
    """They are values as others: kept to the last bit, also beside a primary key that is missing."""
    connect = "org.apache.kafka.connect.data."
    schema = schema_of(
        id={"type": "int64", "optional": True},
        t={"type": "int64", "name": f"{connect}Timestamp", "optional": True},
        d={"type": "int32", "name": f"{connect}Date", "optional": True},
    )
    values: list[bytes | None] = [
        enveloped(schema, {"id": 1, "t": time, "d": date}),
        enveloped(schema, {"t": time, "d": date}),
    ]
    decoder = envelope.decoder(ConverterSettings(kind="json_envelope"))
    runs = accepted(
        RowBuilder(ShapeSettings(primary_keys=("id",)), None, decoder), RecordBatch.of("t", 0, range(2), [0, 0], values)
    )
    rows = next(runs).rows
    assert rows["t"].cast(pa.int64()).to_pylist() == [time]
    assert rows["d"].cast(pa.int32()).to_pylist() == [date]
    with pytest.raises(InvalidRecord, match="column id is null"):
        next(runs)


class _Registry:
    """A registry in which every id is a schema of a thousand characters."""

    def get(self, schema_id: int) -> RegisteredSchema:
        return RegisteredSchema(schema_id, "AVRO", "x" * 1_000)


def test_decoders_of_large_schemas_are_not_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoders are forgotten when their schemas are too much together; records read the same for it."""
    monkeypatch.setattr(registered, "MOST_TEXT", 3_500)
    made: list[int] = []

    def make(schema: RegisteredSchema) -> Decoder:
        made.append(schema.id)
        return decoder_for(ConverterSettings(kind="bytes"))

    decoder = registered.RegisteredDecoder(_Registry(), "AVRO", make, 4, 1_000, clock=lambda: 0.0)
    for schema_id in (1, 2, 3, 2, 3, 1, 4, 2):
        found = decoder.decode(pa.array([b"\0" + schema_id.to_bytes(4, "big") + b"x"], pa.binary()))
        assert not found.invalid
    assert made == [1, 2, 3, 4, 2]


def exploded(elements: list[dict[str, object]]) -> bytes:
    """A record that only wraps a list."""
    return json.dumps({"l": elements}).encode()


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        ([{f"a{number}": 1} for number in range(20_000)], "too many columns"),
        ([{"x": {f"a{number}": 1}} for number in range(20_000)], "too many columns"),
        ([{"a": 1}, {"a": "x"}] * 20_000, "cannot share columns"),
    ],
    ids=["apart", "apart below", "at odds"],
)
def test_elements_with_little_in_common(elements: list[dict[str, object]], reason: str) -> None:
    """They would be rows of one run that are nearly all nulls: the record is refused, and its neighbours have rows."""
    good = exploded([{"a": 1}, {"b": 2}])
    settings = ShapeSettings(flatten=False, explode=True, embed_metadata=False)
    values: list[bytes | None] = [good, exploded(elements), good]
    runs = accepted(RowBuilder(settings), RecordBatch.of("t", 0, range(3), [0] * 3, values))
    assert next(runs).rows.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": 2}]
    with pytest.raises(InvalidRecord, match=saying("connect.ems.explode.mode=List", reason)):
        next(runs)


def test_columns_that_many_rows_lack() -> None:
    """Where a topic has thousands of columns, rows that have one of them share the nulls of all the others."""
    wide_first = exploded([{f"a{number}": number for number in range(2_400)}])
    many = exploded([{"a1": 1}] * 20_000)
    shaper = RowBuilder(ShapeSettings(explode=True, embed_metadata=False))
    (first,) = accepted(shaper, RecordBatch.of("t", 0, [0], [0], [wide_first]))
    (run,) = accepted(shaper, RecordBatch.of("t", 0, [1], [0], [many]))
    assert first.rows.num_columns == run.rows.num_columns == 2_400
    assert run.rows.column("a1").to_pylist() == [1] * 20_000
    assert run.rows.get_total_buffer_size() < 10_000_000


def test_long_names_in_items_that_become_text() -> None:
    """Items of nothing whose fields have long names would be long texts: many of them are refused, some are not."""
    item = {"type": "struct", "fields": [{**field, "field": "x" * 900 + str(field["field"])} for field in WIDE[:40]]}
    schema = schema_of(l={"type": "array", "items": item})
    found = from_envelope(*(enveloped(schema, {"l": [{}] * count}) for count in (1, 20_000)))
    assert list(found) == [1]
    fields = [{"name": "x" * 900 + str(number), "type": ["null", "string"]} for number in range(8)]
    record = {"type": "record", "name": "W", "fields": fields}
    decoder = avro(
        {"type": "record", "name": "R", "fields": [{"name": "l", "type": {"type": "array", "items": record}}]}
    )
    found = reasons(decoder, [b"\x02" + b"\0" * 9, b"\x80\xb5\x18" + b"\0" * 1_600_001])
    assert list(found) == [1]
