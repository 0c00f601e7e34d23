"""Decoded pieces to batches: the steps together, against a definition that goes value by value."""

import base64
import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import SchemaColumns, Tree, Untyped
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.model.rejected import Stage
from parquet_sink.rows import added_columns, column_builder
from parquet_sink.rows.column_builder import ColumnBuilder
from parquet_sink.rows.flatten.trees import PendingRows, rows_of, value_types_of
from parquet_sink.rows.run import ColumnBatch, TreeBatch, rejection_of
from parquet_sink.rows.schema.topic_columns import TopicColumns
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from tests.messages import assert_says
from tests.thorough import examples

PLAIN = ShapeSettings(embed_metadata=False)
CHUNKS = replace(PLAIN, chunks=3, chunk_bytes=10_000)


def of(settings: ShapeSettings, piece: SchemaColumns | Untyped) -> list[ColumnBatch]:
    """The batches of a piece, each one sound; records without a schema with the columns that they make alone."""
    parts = ColumnBuilder(settings, added_columns.names(settings)).of(piece)
    assert parts
    found = [part if isinstance(part, ColumnBatch) else as_sheet(settings, part) for part in parts]
    for batch in found:
        positions = batch.positions.to_pylist()
        assert positions == sorted(positions)
        assert not set(positions) & batch.invalid.keys()
        assert len({column.name for column in batch.columns}) == len(batch.columns) == len(batch.arrays)
        for column, array in zip(batch.columns, batch.arrays, strict=True):
            array.validate(full=True)
            assert array.type == column.type
            assert len(array) == len(positions)
            assert column.nullable or not array.null_count
    return found


def _reasons(part: ColumnBatch) -> dict[int, str]:
    """Why records have no row, all at the stage of shaping."""
    assert {one.stage for one in part.invalid.values()} == {Stage.SHAPE}
    return {at: str(one) for at, one in part.invalid.items()}


def as_sheet(settings: ShapeSettings, part: TreeBatch) -> ColumnBatch:
    """Records without a schema that share columns, as a topic's first."""
    topic, made, invalid = TopicColumns(), PendingRows(), dict(part.invalid)
    for position, found in zip(part.positions, part.trees, strict=True):
        try:
            ready = rows_of(found, settings)
            own = value_types_of(ready, frozenset())
        except InvalidValue as error:
            invalid[position] = rejection_of(error)
            continue
        topic.take(own, topic.change_for(own, ready))
        made.add(position, ready)
    return replace(made.batch(topic.columns), invalid=invalid)


def typed(rows: list[object], arrow: pa.DataType) -> SchemaColumns:
    """Records at positions 10, 11, ..."""
    return SchemaColumns(pa.array(range(10, 10 + len(rows)), pa.int64()), pa.array(rows, arrow))


def trees(*found: Tree) -> Untyped:
    """Records without a schema at positions 0, 1, ..."""
    return Untyped(pa.array(range(len(found)), pa.int64()), found)


def rows(batch: ColumnBatch) -> list[dict[str, object]]:
    """What the rows hold."""
    lists = [array.to_pylist() for array in batch.arrays]
    return [{column.name: lists[c][row] for c, column in enumerate(batch.columns)} for row in range(len(batch))]


# --- the definition, value by value -----------------------------------------------------------------------------------

LEAVES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=4),
    pa.binary(): st.binary(max_size=4),
    pa.date32(): st.integers(-50_000, 50_000),
    pa.time32("ms"): st.integers(0, 86_399_999),
    pa.timestamp("ms", "UTC"): st.integers(-(10**13), 10**13),
    pa.decimal128(5, 2): st.decimals(-999, 999, places=2),
    pa.decimal256(50, 20): st.decimals(-(10**29), 10**29, places=20),
    pa.null(): st.none(),
}
NAMES = ["a", "A", "b", "a_b", "b-c", "ä", "é f", "value"]


NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class Pairs(list[tuple[str, object]]):
    """A JSON object: its fields in order."""


class Invalid(Exception):
    """The definition says that records of this type have no row."""


def field(name: str, arrow: pa.DataType, nullable: bool) -> pa.Field:
    """A field; one that can only be null is nullable."""
    return pa.field(name, arrow, nullable=nullable or pa.types.is_null(arrow))


@st.composite
def fields(draw: st.DrawFn, below: st.SearchStrategy[pa.DataType], least: int = 0) -> pa.DataType:
    """A record type."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=least, max_size=4, unique=True))
    return pa.struct([field(name, draw(below), draw(st.booleans())) for name in names])


def types(depth: int) -> st.SearchStrategy[pa.DataType]:
    """Any type, so deep."""
    leaf = st.sampled_from(list(LEAVES))
    if not depth:
        return leaf
    below = types(depth - 1)
    keys = st.sampled_from([pa.string(), pa.string(), pa.int32(), pa.decimal128(5, 2)])
    maps = st.builds(lambda k, v, n: pa.map_(k, field("value", v, n)), keys, below, st.booleans())
    return leaf | fields(below) | st.builds(pa.list_, below) | maps


def values(arrow: pa.DataType, nullable: bool) -> st.SearchStrategy[object]:
    """A value of the type; of null only null, wherever it is."""
    if pa.types.is_struct(arrow):
        found = st.fixed_dictionaries({f.name: values(f.type, f.nullable) for f in arrow})
    elif pa.types.is_list(arrow):
        found = st.lists(values(arrow.value_type, True), max_size=3)
    elif pa.types.is_map(arrow):
        pair = st.tuples(values(arrow.key_type, False), values(arrow.item_type, arrow.item_field.nullable))
        found = st.lists(pair, max_size=2, unique_by=lambda pair: pair[0])
    else:
        found = LEAVES[arrow]
    return st.none() | found if nullable else found


def is_collection(arrow: pa.DataType) -> bool:
    """Whether it is a list or a map."""
    return bool(pa.types.is_list(arrow) or pa.types.is_map(arrow))


def counted(arrow: pa.DataType, discard: bool) -> pa.DataType:
    """Without fields that lower case would make one with another and that do not count. Raises Invalid for two."""
    if pa.types.is_struct(arrow):
        found: dict[str, pa.Field] = {}
        for f in arrow:
            counts = not pa.types.is_null(f.type) and not (discard and is_collection(f.type))
            other = found.get(f.name.lower())
            if other is not None and not counts:
                continue
            if other is not None and not pa.types.is_null(other.type) and not (discard and is_collection(other.type)):
                raise Invalid
            found.pop(f.name.lower(), None)
            found[f.name.lower()] = f.with_type(counted(f.type, discard))
        return pa.struct(list(found.values()))
    if discard or not is_collection(arrow):
        return arrow
    if pa.types.is_list(arrow):
        return pa.list_(counted(arrow.value_type, discard))
    item = arrow.item_field
    below = pa.field("value", counted(item.type, discard), nullable=item.nullable)
    return pa.map_(counted(arrow.key_type, discard), below)


def reduced(value: object, arrow: pa.DataType) -> object:
    """What a value has of a type that `counted` gave."""
    if value is None:
        return None
    if pa.types.is_struct(arrow):
        return {f.name: reduced(value[f.name], f.type) for f in arrow}
    if pa.types.is_list(arrow):
        return [reduced(one, arrow.value_type) for one in value]
    if pa.types.is_map(arrow):
        return [(reduced(k, arrow.key_type), reduced(v, arrow.item_type)) for k, v in value]
    return value


def lower(arrow: pa.DataType) -> pa.DataType:
    """Names in lower case at every depth."""
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(f.name.lower(), lower(f.type), nullable=f.nullable) for f in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(lower(arrow.value_type))
    if pa.types.is_map(arrow):
        item = arrow.item_field
        return pa.map_(lower(arrow.key_type), pa.field("value", lower(item.type), nullable=item.nullable))
    return arrow


def double(arrow: pa.DataType) -> pa.DataType:
    """Doubles for decimals at every depth."""
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(f.name, double(f.type), nullable=f.nullable) for f in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(double(arrow.value_type))
    if pa.types.is_map(arrow):
        item = arrow.item_field
        return pa.map_(double(arrow.key_type), pa.field("value", double(item.type), nullable=item.nullable))
    return pa.float64() if pa.types.is_decimal(arrow) else arrow


def moved(value: object, old: pa.DataType, new: pa.DataType) -> object:
    """The value of a type after `lower` and `double`."""
    if value is None:
        return None
    if pa.types.is_struct(old):
        return {n.name: moved(value[o.name], o.type, n.type) for o, n in zip(old, new, strict=True)}
    if pa.types.is_list(old):
        return [moved(one, old.value_type, new.value_type) for one in value]
    if pa.types.is_map(old):
        return [(moved(k, old.key_type, new.key_type), moved(v, old.item_type, new.item_type)) for k, v in value]
    return float(value) if pa.types.is_decimal(old) and pa.types.is_floating(new) else value


def short(value: float) -> float:
    """A float32 as the double with the fewest digits that still rounds to it."""
    for digits in range(1, 10):
        text = float(f"{value:.{digits}g}")
        try:
            if struct.pack("f", text) == struct.pack("f", value):
                return text
        except OverflowError:
            continue
    raise AssertionError("nine digits are enough")


def text_of(value: object, arrow: pa.DataType) -> object:
    """What the JSON text of a value reads back as."""
    if value is None or pa.types.is_null(arrow):
        return None
    if pa.types.is_struct(arrow):
        return Pairs((f.name, text_of(value[f.name], f.type)) for f in arrow)
    if pa.types.is_list(arrow):
        return [text_of(one, arrow.value_type) for one in value]
    if pa.types.is_map(arrow):
        pairs = [(text_of(k, arrow.key_type), text_of(v, arrow.item_type)) for k, v in value]
        return Pairs(pairs) if pa.types.is_string(arrow.key_type) else [list(pair) for pair in pairs]
    if pa.types.is_floating(arrow):
        value = NO_NUMBERS.get(str(value)) or (short(value) if pa.types.is_float32(arrow) else value)
    if pa.types.is_decimal(arrow):
        return float(value) if arrow.scale else int(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def read(text: str) -> object:
    """JSON text with the order of its fields."""
    return json.loads(text, object_pairs_hook=Pairs)


def flattened(row: object, arrow: pa.DataType, discard: bool, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Columns and values of one record; collections as what their text reads back as."""
    for f in arrow:
        value = None if row is None else row[f.name]
        if pa.types.is_struct(f.type):
            yield from flattened(value, f.type, discard, f"{prefix}{f.name}_")
        elif not pa.types.is_null(f.type) and not (discard and is_collection(f.type)):
            column = "".join(c if c.isascii() and c.isalnum() else "_" for c in prefix + f.name)
            yield column, (text_of(value, f.type) if is_collection(f.type) else value, f.type)


def holds(arrow: pa.DataType) -> bool:
    """Whether Parquet can hold anything of it."""
    if pa.types.is_struct(arrow):
        return any(holds(f.type) for f in arrow)
    if pa.types.is_list(arrow):
        return holds(arrow.value_type)
    return holds(arrow.item_type) if pa.types.is_map(arrow) else not pa.types.is_null(arrow)


def nested(value: object, arrow: pa.DataType) -> object:
    """A value without what Parquet cannot hold."""
    if value is None:
        return None
    if pa.types.is_struct(arrow):
        return {f.name: nested(value[f.name], f.type) for f in arrow if holds(f.type)}
    if pa.types.is_list(arrow):
        return [nested(one, arrow.value_type) for one in value]
    if pa.types.is_map(arrow):
        pairs = [(k, nested(v, arrow.item_type)) for k, v in value]
        return pairs if pa.types.is_string(arrow.key_type) else [{"key": k, "value": v} for k, v in pairs]
    return python(value, arrow)


def python(value: object, arrow: pa.DataType) -> object:
    """A leaf as Arrow gives it back."""
    return pa.scalar(value, arrow).as_py()


def expected(row: object, arrow: pa.DataType, settings: ShapeSettings) -> dict[str, object]:
    """The row of a record by the definition. Raises Invalid."""
    if settings.lowercase:
        arrow = counted(arrow, settings.discard_collections)
        row = reduced(row, arrow)
    new = lower(arrow) if settings.lowercase else arrow
    new = double(new) if settings.decimals_to_double else new
    row = moved(row, arrow, new)
    if not settings.flatten:
        found = nested(row, new)
        if not found:
            raise Invalid
        return found
    columns = list(flattened(row, new, settings.discard_collections))
    if not columns or len(dict(columns)) < len(columns):
        raise Invalid
    return {name: value if is_collection(t) else python(value, t) for name, (value, t) in columns}


records = fields(types(2), least=1).flatmap(
    lambda arrow: st.tuples(st.just(arrow), st.lists(values(arrow, False), min_size=1, max_size=4))
)
ways = st.builds(
    lambda flatten, **others: replace(PLAIN, flatten=flatten, **others),
    flatten=st.booleans(),
    lowercase=st.booleans(),
    decimals_to_double=st.booleans(),
)


@settings(max_examples=examples(200), deadline=None)
@given(records, ways, st.booleans(), st.integers(0, 2))
def test_rows_are_as_the_definition_says(
    drawn: tuple[pa.DataType, list[object]], way: ShapeSettings, discard: bool, start: int
) -> None:
    """Flattened or nested, names lowered, decimals doubled: whole columns give what single values give."""
    arrow, found = drawn
    if way.flatten:
        way = replace(way, discard_collections=discard)
    whole = typed(found, arrow)
    piece = SchemaColumns(whole.positions.slice(start), whole.rows.slice(start))
    (batch,) = of(way, piece)
    try:
        wanted = [expected(row, arrow, way) for row in found]
    except Invalid:
        assert batch.invalid.keys() == set(piece.positions.to_pylist())
        assert not batch.columns
        return
    assert not batch.invalid
    assert batch.positions.equals(piece.positions)
    if way.flatten:
        assert all(column.nullable for column in batch.columns)
    for row, want in zip(rows(batch), wanted[start:], strict=True):
        assert list(row) == list(want)
        shown = {
            name: read(value) if isinstance(value, str) and isinstance(want[name], list) else value
            for name, value in row.items()
        }
        assert repr(shown) == repr(want)


@settings(max_examples=examples(100), deadline=None)
@given(records, st.integers(0, 2))
def test_chunks_hold_the_text_of_the_record(drawn: tuple[pa.DataType, list[object]], start: int) -> None:
    """Put together and read back, chunks are the record by the definition; nothing is left out of it."""
    arrow, found = drawn
    whole = typed(found, arrow)
    (batch,) = of(CHUNKS, SchemaColumns(whole.positions.slice(start), whole.rows.slice(start)))
    assert [column.name for column in batch.columns] == ["payload_chunk1", "payload_chunk2", "payload_chunk3"]
    for row, value in zip(rows(batch), found[start:], strict=True):
        text = "".join(chunk or "" for chunk in row.values())
        assert repr(read(text)) == repr(text_of(value, arrow))


@settings(max_examples=examples(60), deadline=None)
@given(
    fields(types(1), least=1).flatmap(
        lambda arrow: st.tuples(st.just(arrow), st.lists(values(pa.list_(arrow), True), min_size=1, max_size=4))
    ),
    ways,
)
def test_exploded_rows_are_as_the_definition_says(
    drawn: tuple[pa.DataType, list[list[object] | None]], way: ShapeSettings
) -> None:
    """An element of a list is what it would be as a record of its own."""
    element, lists = drawn
    piece = typed([{"Wrapper": one} for one in lists], pa.struct([("Wrapper", pa.list_(element))]))
    (batch,) = of(replace(way, explode=True), piece)
    elements = [(10 + index, one) for index, many in enumerate(lists) for one in many or () if one is not None]
    plain = SchemaColumns(
        pa.array([at for at, _ in elements], pa.int64()), pa.array([one for _, one in elements], element)
    )
    (alone,) = of(way, plain)
    assert (batch.positions, batch.columns) == (alone.positions, alone.columns)
    assert repr(rows(batch)) == repr(rows(alone))
    assert batch.invalid.keys() == (set(piece.positions.to_pylist()) if not alone.columns else set())


# --- what else is promised --------------------------------------------------------------------------------------------


def test_a_value_that_is_no_record_is_invalid() -> None:
    """Text, numbers and lists have no columns of their own."""
    (batch,) = of(PLAIN, typed(["a", "b"], pa.string()))
    reasons = _reasons(batch)
    assert reasons.keys() == {10, 11}
    for reason in reasons.values():
        assert_says(reason, "not a record", "a string", "connect.ems.flattener.jsonblob.chunks")
    assert len(batch) == 0


@pytest.mark.parametrize(
    ("arrow", "value", "text"),
    [
        (pa.string(), 'say "hi"', 'say "hi"'),
        (pa.string(), "", ""),
        (pa.int64(), 7, "7"),
        (pa.binary(), b"a", '"YQ=="'),
        (pa.list_(pa.int32()), [1, None], "[1,null]"),
        (pa.map_(pa.string(), pa.bool_()), [("a", True)], '{"a":true}'),
        (pa.struct([]), {}, "{}"),
    ],
)
def test_chunks_take_any_value(arrow: pa.DataType, value: object, text: str) -> None:
    """A text is stored as it is, everything else as its JSON text."""
    (batch,) = of(CHUNKS, typed([value], arrow))
    assert rows(batch) == [{"payload_chunk1": text, "payload_chunk2": None, "payload_chunk3": None}]


def test_decimals_and_names_change_before_chunks_are_cut() -> None:
    """The steps are the same with chunks."""
    piece = typed([{"A": Decimal("1.5")}], pa.struct([("A", pa.decimal128(3, 1))]))
    (batch,) = of(replace(CHUNKS, lowercase=True, decimals_to_double=True), piece)
    assert rows(batch)[0]["payload_chunk1"] == '{"a":1.5}'


def test_one_element_that_does_not_fit_leaves_the_record_without_rows() -> None:
    """Of an exploded record either all rows are there, or none and a reason."""
    arrow = pa.struct([("m", pa.list_(pa.struct([("a", pa.string())])))])
    way = replace(PLAIN, explode=True, chunks=1, chunk_bytes=10)
    piece = typed([{"m": [{"a": "x"}]}, {"m": [{"a": "y"}, {"a": "far too long"}]}, {"m": [{"a": "z"}]}], arrow)
    (batch,) = of(way, piece)
    assert batch.positions.to_pylist() == [10, 12]
    ((at, reason),) = _reasons(batch).items()
    assert at == 11
    assert_says(reason, "connect.ems.flattener.jsonblob.chunks", "20 bytes", "1 chunks of 10 bytes", "set it to 2")
    (same,) = of(way, trees(*piece.rows.to_pylist()))
    assert (same.positions.to_pylist(), set(same.invalid)) == ([0, 2], {1})
    assert rows(same) == rows(batch)


def test_much_text_makes_more_sheets() -> None:
    """No array comes near the size that Arrow cannot hold, and a record's rows stay together even so."""
    arrow = pa.struct([("m", pa.list_(pa.struct([("a", pa.list_(pa.string()))])))])
    found = [{"m": [{"a": [letter]}, {"a": [letter * 2]}]} for letter in "abcd"]
    way = replace(PLAIN, explode=True)
    (whole,) = of(way, typed(found, arrow))
    with patch.object(column_builder, "MOST_TEXT", 50):
        parts = of(way, typed(found, arrow))
        assert len(parts) > 1
        assert [row for part in parts for row in rows(part)] == rows(whole)
        with patch.object(column_builder, "LONGEST_TEXT", 50):
            found[1]["m"][1]["a"] = ["b" * 100]
            parts = of(way, typed(found, arrow))
    assert [at for part in parts for at in part.positions.to_pylist()] == [10, 10, 12, 12, 13, 13]
    ((at, reason),) = _reasons(parts[0]).items()
    assert at == 11
    assert_says(reason, "JSON text", "more than 50 bytes")


def test_obfuscation_comes_before_flattening_and_chunks() -> None:
    """Text below a dotted path is obfuscated in columns, in JSON text, in elements of a list, and in trees alike."""
    inner = pa.struct([("Name", pa.string())])
    way = replace(PLAIN, lowercase=True, obfuscation=ObfuscationSettings(("a.name",)))
    piece = typed([{"A": {"Name": "Ada"}}], pa.struct([("A", inner)]))
    assert [rows(batch) for batch in of(way, piece)] == [[{"a_name": "*****"}]]
    assert [rows(batch) for batch in of(way, trees({"A": {"Name": "Ada"}}))] == [[{"a_name": "*****"}]]
    (batch,) = of(replace(way, chunks=1, chunk_bytes=100), piece)
    assert rows(batch) == [{"payload_chunk1": '{"a":{"name":"*****"}}'}]
    (batch,) = of(replace(way, chunks=1, chunk_bytes=100), typed(["Ada"], pa.string()))
    assert rows(batch) == [{"payload_chunk1": "Ada"}]
    way = replace(way, explode=True)
    wrapped = typed([{"m": [{"A": {"Name": "Ada"}}]}], pa.struct([("m", pa.list_(pa.struct([("A", inner)])))]))
    assert [rows(batch) for batch in of(way, wrapped)] == [[{"a_name": "*****"}]]
    assert [rows(batch) for batch in of(way, trees({"m": [{"A": {"Name": "Ada"}}]}))] == [[{"a_name": "*****"}]]


def test_paths_of_the_wrapping_record_obfuscate_its_elements() -> None:
    """A path may lead through the list that is exploded, as in the Celonis connector; no value is hashed twice."""
    element = pa.struct([("name", pa.string()), ("id", pa.int32())])
    wrapped = typed([{"m": [{"name": "bob", "id": 1}]}], pa.struct([("m", pa.list_(element))]))
    tree = trees({"m": [{"name": "bob", "id": 1}]}, {"m": []})
    for fields in (("m.value.name",), ("name",), ("m.value.name", "name"), ("name", "m.name")):
        way = replace(PLAIN, explode=True, obfuscation=ObfuscationSettings(fields, "sha1"))
        for piece in (wrapped, tree):
            found = [row for batch in of(way, piece) for row in rows(batch)]
            assert found == [{"name": "61584b76f6ece8fb9a328e7cf198094b2fac55c7", "id": 1}]
    way = replace(PLAIN, explode=True, obfuscation=ObfuscationSettings(("m.value.id",)))
    assert [set(of(way, piece)[0].invalid) for piece in (wrapped, tree)] == [{10}, {0}]
    mixed = trees({"m": [{"name": "eve", "id": 1}], "more": 1}, {"other": [{"name": "eve"}]}, {"name": "bob"})
    way = replace(PLAIN, explode=True, obfuscation=ObfuscationSettings(("m.value.name",)))
    found = [row for batch in of(way, mixed) for row in rows(batch)]
    assert [row["m"] or row["name"] for row in found] == ['[{"name":"*****","id":1}]', "eve", "bob"]


def test_what_cannot_be_obfuscated_makes_records_invalid() -> None:
    """A setting that points at a number concerns every record of a schema, or the one tree."""
    way = replace(PLAIN, obfuscation=ObfuscationSettings(("a",)))
    (batch,) = of(way, typed([{"a": 1}, {"a": None}], pa.struct([("a", pa.int32())])))
    assert set(batch.invalid) == {10, 11}
    (batch,) = of(way, trees({"a": 1}, {"a": "x"}))
    assert (set(batch.invalid), rows(batch)) == ({0}, [{"a": "*****"}])


def test_a_plan_is_made_once_for_a_schema() -> None:
    """Batches of one schema share what was worked out on its type."""
    shaping = ColumnBuilder(PLAIN, frozenset())
    piece = typed([{"a": 1}], pa.struct([("a", pa.int32())]))
    with patch.object(column_builder.columns, "flat", wraps=column_builder.columns.flat) as flat:
        shaping.of(piece)
        shaping.of(typed([{"a": 2}], pa.struct([("a", pa.int32())])))
    assert flat.call_count == 1


# --- records without a schema -----------------------------------------------------------------------------------------


def test_trees_in_lower_case() -> None:
    """Names change at every depth, inside lists too; two that become one are refused by their paths."""
    way = replace(PLAIN, lowercase=True)
    (batch,) = of(way, trees({"A": {"B": [{"C": "D"}]}}, {"x": [{"a": 1, "A": 2}]}))
    assert rows(batch) == [{"a_b": '[{"c":"D"}]'}]
    ((at, reason),) = _reasons(batch).items()
    assert at == 1
    assert_says(reason, "connect.ems.convert.lowercase.fields", "x[0].a and x[0].A", "both become", "field x[0].a")


def test_a_tree_of_nulls_is_a_row_without_columns() -> None:
    """What the topic's columns are then decides what it holds."""
    (batch,) = of(PLAIN, trees({"a": None}, {"b": {"c": None}}))
    assert (batch.columns, batch.positions.to_pylist(), dict(batch.invalid)) == ((), [0, 1], {})


def test_trees_in_chunks() -> None:
    """The text is the record's, compact, fields in order and nulls kept; a record of nothing but null is one, too."""
    (batch,) = of(CHUNKS, trees({"b": [1, {"ä": None}], "a": 1.0}, {"x": None}))
    assert [row["payload_chunk1"] for row in rows(batch)] == ['{"b":[1,{"ä":null}],"a":1.0}', '{"x":null}']


def test_trees_that_do_not_explode_are_rows() -> None:
    """One record that is not a list of records does not change what becomes of the others."""
    column_builder.report_unwrapped.cache_clear()
    (batch,) = of(replace(PLAIN, explode=True), trees({"m": [{"a": 1}, None, {"a": 2}]}, {"m": []}, {"a": 3}))
    assert (batch.positions.to_pylist(), [row["a"] for row in rows(batch)]) == ([0, 0, 2], [1, 2, 3])
