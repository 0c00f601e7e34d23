"""Typed records to columns: what each rule does, by example. The rules together are in `test_shape_sheets`."""

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.arrays import reinterpreted
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.rows.flatten import columns
from parquet_sink.rows.schema.arrow_types import (
    check_depth,
    conformed,
    distinct,
    doubled,
    lowercased,
    storable,
    type_name,
)
from tests.messages import saying
from tests.thorough import examples

NOTHING: frozenset[str] = frozenset()
INNER = pa.struct([pa.field("zip-code", pa.string(), nullable=False), pa.field("since", pa.date32())])
RECORD = pa.struct(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("größe", pa.float32()),
        pa.field("address", INNER),
        pa.field("tags", pa.list_(INNER)),
        pa.field("counts", pa.map_(pa.string(), pa.int64())),
        pa.field("never", pa.null()),
        pa.field("empty", pa.struct([])),
        pa.field("hollow", pa.list_(pa.struct([("x", pa.null())]))),
    ]
)
ROWS = [
    {"id": 1, "größe": 0.5, "address": {"zip-code": "1", "since": 0}, "tags": [], "counts": [("a", 1)], "hollow": [{}]},
    {"id": 2, "address": None, "tags": [None, {"zip-code": "2", "since": None}], "counts": None},
]

METADATA = ("connect.ems.embed.kafka.metadata", "column kafkaOffset", "metadata column", "set it to false", "rename")
NO_RECORD = ("not a record", "connect.ems.flattener.jsonblob.chunks")


def test_flattening_makes_a_nullable_column_of_each_leaf() -> None:
    """Names are joined and cleaned, lists and maps are JSON text, and what can only be null gives no column."""
    layout = columns.flat(RECORD, False, NOTHING)
    assert layout.columns == (
        pa.field("id", pa.int32()),
        pa.field("gr__e", pa.float32()),
        pa.field("address_zip_code", pa.string()),
        pa.field("address_since", pa.date32()),
        pa.field("tags", pa.string()),
        pa.field("counts", pa.string()),
        pa.field("hollow", pa.string()),
    )
    found = [array.to_pylist() for array in layout.arrays(pa.array(ROWS, RECORD))]
    assert found[2] == ["1", None]
    assert found[4] == ["[]", '[null,{"zip-code":"2","since":null}]']
    assert found[5:] == [['{"a":1}', None], ['[{"x":null}]', None]]


def test_discarding_leaves_lists_and_maps_out() -> None:
    """With collections discarded only plain leaves are columns."""
    names = [column.name for column in columns.flat(RECORD, True, NOTHING).columns]
    assert names == ["id", "gr__e", "address_zip_code", "address_since"]


def test_a_null_record_hides_what_lies_below_it() -> None:
    """The leaves of a null record are null, also where an array still has values there."""
    inner = pa.StructArray.from_arrays([pa.array([1, 2])], ["b"], mask=pa.array([True, False]))
    records = pa.StructArray.from_arrays([inner], ["a"])
    (column,) = columns.flat(records.type, False, NOTHING).arrays(records)
    assert column.to_pylist() == [None, 2]


def test_nesting_keeps_records_and_whether_a_field_may_be_null() -> None:
    """Records, lists and maps stay, and what Parquet cannot hold is left out at every depth."""
    layout = columns.nested(RECORD, NOTHING)
    assert layout.columns == tuple(RECORD.field(name) for name in ("id", "größe", "address", "tags", "counts"))
    assert layout.columns[0].nullable is False
    assert layout.columns[2].type.field("zip-code").nullable is False
    found = layout.arrays(pa.array(ROWS, RECORD))
    assert found[2].to_pylist()[1] is None
    assert found[4].to_pylist() == [[("a", 1)], None]


def test_a_map_without_string_keys_becomes_a_list_of_records() -> None:
    """PrimaryKeys and values become fields of these names, at any depth."""
    arrow = pa.struct([("m", pa.map_(pa.int32(), pa.map_(pa.bool_(), pa.field("value", pa.string(), nullable=False))))])
    (column,) = columns.nested(arrow, NOTHING).columns
    inner = pa.struct([pa.field("key", pa.bool_(), nullable=False), pa.field("value", pa.string(), nullable=False)])
    values = pa.field("value", pa.list_(pa.field("item", inner, nullable=False)))
    pair = pa.struct([pa.field("key", pa.int32(), nullable=False), values])
    assert column.type == pa.list_(pa.field("item", pair, nullable=False))
    records = pa.array([{"m": [(1, [(True, "x")])]}, {"m": None}, {"m": [(2, None)]}], arrow)
    (array,) = columns.nested(arrow, NOTHING).arrays(records.slice(1))
    assert array.to_pylist() == [None, [{"key": 2, "value": None}]]


def wide(count: int) -> pa.DataType:
    """A record of so many fields."""
    return pa.struct([(f"f{number}", pa.int32()) for number in range(count)])


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    ("arrow", "reason"),
    [
        (pa.list_(pa.int32()), ("a list", *NO_RECORD)),
        (pa.map_(pa.string(), pa.int32()), ("a map", *NO_RECORD)),
        (pa.string(), ("a string", *NO_RECORD)),
        (pa.binary(), ("bytes", *NO_RECORD)),
        (pa.bool_(), ("a boolean", *NO_RECORD)),
        (pa.decimal128(3, 1), ("a number", *NO_RECORD)),
        (pa.date32(), ("a date", *NO_RECORD)),
        (pa.time32("ms"), ("a time,", *NO_RECORD)),
        (pa.timestamp("ms", "UTC"), ("a timestamp", *NO_RECORD)),
        (pa.struct([]), ("no field", "hold a value")),
        (pa.struct([("a", pa.null()), ("b", pa.struct([]))]), ("no field", "hold a value")),
        (pa.struct([("kafkaOffset", pa.int32())]), METADATA),
        (wide(2_501), ("2,501 columns", "limit of 2,500")),
        (pa.struct([("n" * 1_001, pa.int32())]), (f"column {'n' * 200}... ", "longer than 1,000 characters")),
    ],
)
def test_some_schemas_have_no_columns(arrow: pa.DataType, reason: tuple[str, ...], flatten: bool) -> None:
    """What is wrong with a record type is said once, in the words of records without a schema."""
    with pytest.raises(InvalidValue, match=saying(*reason)):
        columns.flat(arrow, False, frozenset({"kafkaOffset"})) if flatten else columns.nested(
            arrow, frozenset({"kafkaOffset"})
        )


def test_fields_of_lists_and_maps_count_when_they_stay() -> None:
    """Without flattening each leaf below a list or a map is a column of Parquet."""
    arrow = pa.struct([("l", pa.list_(wide(1_300))), ("m", pa.map_(pa.string(), wide(1_300)))])
    assert len(columns.flat(arrow, False, NOTHING).columns) == 2
    with pytest.raises(InvalidValue, match="2,601 columns"):
        columns.nested(arrow, NOTHING)


def test_two_fields_may_not_become_one_column() -> None:
    """Names that are equal once joined make the record invalid, unless one of them is discarded."""
    arrow = pa.struct([("a_b", pa.int32()), ("a", pa.struct([("b", pa.list_(pa.int32()))]))])
    said = ("a_b and a.b", "both become", "column a_b", "connect.ems.flattener.enable=false")
    with pytest.raises(InvalidValue, match=saying(*said)):
        columns.flat(arrow, False, NOTHING)
    assert len(columns.flat(arrow, True, NOTHING).columns) == 1
    assert len(columns.nested(arrow, NOTHING).columns) == 2


def test_a_field_has_a_name() -> None:
    """An empty name is refused where it would have to name a column."""
    with pytest.raises(InvalidValue, match=saying("the record", "empty name")):
        columns.flat(pa.struct([("", pa.int32())]), False, NOTHING)
    with pytest.raises(InvalidValue, match=saying("object at a ", "empty name")):
        columns.flat(pa.struct([("a", pa.struct([("", pa.int32())]))]), False, NOTHING)


def deep(levels: int, list_at_end: bool) -> pa.DataType:
    """Records in each other, so many of them, or all but the last, which is a list."""
    arrow = pa.list_(pa.int32()) if list_at_end else pa.struct([("a", pa.int32())])
    for _ in range(levels - 1):
        arrow = pa.struct([("a", arrow)])
    return arrow


@pytest.mark.parametrize("list_at_end", [True, False])
def test_depth_has_a_limit(list_at_end: bool) -> None:
    """A hundred levels are taken, one more is not, and no depth breaks anything."""
    check_depth(deep(100, list_at_end))
    for levels in (101, 2_000):
        with pytest.raises(InvalidValue, match=saying("field a.a.", "deeper than 100 levels")):
            check_depth(deep(levels, list_at_end))


def test_lower_case_reaches_every_field() -> None:
    """Names inside lists, maps and their keys change, and nothing else does."""
    arrow = pa.struct(
        [
            pa.field("ID", pa.int32(), nullable=False),
            pa.field("List", pa.list_(pa.field("item", pa.struct([("Ä", pa.int32())]), nullable=False))),
            pa.field("Map", pa.map_(pa.struct([("K", pa.int32())]), pa.struct([("V", pa.int32())]))),
        ]
    )
    assert distinct(arrow) == arrow
    lower = lowercased(arrow)
    assert lower == pa.struct(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("list", pa.list_(pa.field("item", pa.struct([("ä", pa.int32())]), nullable=False))),
            pa.field("map", pa.map_(pa.struct([("k", pa.int32())]), pa.struct([("v", pa.int32())]))),
        ]
    )
    values = [{"ID": 1, "List": [{"Ä": 1}], "Map": [({"K": 1}, {"V": 2})]}, {"ID": 2, "List": None, "Map": []}]
    found = reinterpreted(pa.array(values, arrow).slice(1), lower)
    assert found.to_pylist() == [{"id": 2, "list": None, "map": []}]


def test_lower_case_may_not_make_two_fields_one() -> None:
    """The message names both, wherever they are."""
    arrow = pa.struct([("X", pa.list_(pa.struct([("a", pa.int32()), ("A", pa.int32())])))])
    said = ("connect.ems.convert.lowercase.fields", "X.a and X.A", "both become", "field X.a")
    with pytest.raises(InvalidValue, match=saying(*said)):
        distinct(arrow)
    assert distinct(arrow, discard=True) == arrow
    assert lowercased(arrow, discard=True) == pa.struct([("x", arrow.field(0).type)])


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 76), st.integers(-(10**76) + 1, 10**76 - 1), st.integers(0, 75))
def test_a_decimal_becomes_the_nearest_double(scale: int, unscaled: int, shorter: int) -> None:
    """To the last bit, as Java's BigDecimal.doubleValue and Python's float."""
    unscaled = unscaled // 10**shorter
    sign, digits = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
    value = Decimal((sign, digits, -scale))
    arrow = pa.decimal128(38, scale) if len(digits) <= 38 and scale <= 38 else pa.decimal256(76, scale)
    found = conformed(pa.array([None, value], arrow), pa.float64()).to_pylist()
    assert found[0] is None
    assert found[1] == float(value)


def test_decimals_become_doubles_at_every_depth() -> None:
    """In records, lists, keys and values of maps; what may be null stays so."""
    number = pa.decimal128(4, 1)
    arrow = pa.struct(
        [pa.field("l", pa.list_(pa.field("item", number, nullable=False))), ("m", pa.map_(number, number))]
    )
    assert doubled(arrow) == pa.struct(
        [
            pa.field("l", pa.list_(pa.field("item", pa.float64(), nullable=False))),
            ("m", pa.map_(pa.float64(), pa.float64())),
        ]
    )
    tenth = Decimal("0.1")
    values = [{"l": [Decimal("9.5")], "m": []}, {"l": [tenth], "m": [(tenth, None)]}, {"l": None, "m": None}]
    found = conformed(pa.array(values, arrow).slice(1), doubled(arrow))
    assert found.to_pylist() == [{"l": [0.1], "m": [(0.1, None)]}, {"l": None, "m": None}]


def test_what_parquet_cannot_hold_takes_along_what_holds_it() -> None:
    """A list or a map of nothing is nothing, too."""
    for nothing in (pa.null(), pa.struct([]), pa.list_(pa.null()), pa.map_(pa.string(), pa.struct([("a", pa.null())]))):
        assert storable(nothing) is None
        assert storable(pa.map_(pa.int32(), nothing)) is None
        assert storable(pa.struct([("a", pa.list_(nothing)), ("b", pa.int32())])) == pa.struct([("b", pa.int32())])


def test_each_type_has_a_name_for_messages() -> None:
    """Records and nulls have one, too."""
    assert (type_name(RECORD), type_name(pa.null()), type_name(pa.float32())) == ("a record", "null", "a number")
