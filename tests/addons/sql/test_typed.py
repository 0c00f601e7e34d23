"""Records with a schema: their types reach DuckDB and come back, and what does not fit the schema is told."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from parquet_sink.convert.decoded import Decoded, SchemaColumns
from parquet_sink.rows.settings import ShapeSettings
from tests.addons.sql.asked import Asked
from tests.messages import assert_says

NESTED = ShapeSettings(embed_metadata=False, flatten=False)
AT = datetime(2024, 2, 29, 12, 30, 15, 123_000, tzinfo=UTC)
RECORD = pa.struct(
    [
        pa.field("i", pa.int32(), nullable=False),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("b", pa.bool_()),
        pa.field("s", pa.string()),
        pa.field("y", pa.binary()),
        pa.field("dec", pa.decimal128(9, 2)),
        pa.field("wide", pa.decimal256(50, 2)),
        pa.field("day", pa.date32()),
        pa.field("clock", pa.time32("ms")),
        pa.field("ts", pa.timestamp("ms", "UTC")),
        pa.field("ls", pa.list_(pa.field("item", pa.int64()))),
        pa.field("m", pa.map_(pa.string(), pa.field("value", pa.int64()))),
        pa.field("st", pa.struct([pa.field("x", pa.int32()), pa.field("ts", pa.timestamp("ms", "UTC"))])),
        pa.field("n", pa.null()),
    ]
)
ONE = {
    "i": 1,
    "l": 2**62,
    "f": 0.5,
    "d": 2.5,
    "b": True,
    "s": "text",
    "y": b"\x00\xff",
    "dec": Decimal("12.34"),
    "wide": Decimal("1.25"),
    "day": date(1969, 12, 31),
    "clock": datetime(2024, 1, 1, 1, 2, 3, 4_000).time(),  # noqa: DTZ001
    "ts": AT,
    "ls": [1, None, 3],
    "m": [("k", 1)],
    "st": {"x": 7, "ts": AT},
    "n": None,
}
NONE = {**dict.fromkeys(ONE), "i": 2}


class Given:
    """Gives the same typed records, whatever the bytes."""

    def __init__(self, rows: Sequence[object], arrow: pa.DataType = RECORD) -> None:
        self._rows = pa.array(rows, arrow)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return Decoded((SchemaColumns(pa.array(range(len(self._rows))), self._rows),))


def asked(query: str, rows: Sequence[object] = (ONE, NONE), arrow: pa.DataType = RECORD) -> Asked:
    """What a query makes of them."""
    return Asked(query, [b"x"] * len(rows), decoder=Given(rows, arrow), shape=NESTED)


@pytest.mark.parametrize("name", [field.name for field in RECORD if field.name not in ("wide", "n")])
def test_both_ways(name: str) -> None:
    """A value that DuckDB was given comes back as it was, of the same type; null comes back as null."""
    kept, through = asked(f"SELECT {name} AS x FROM records"), asked(f"SELECT coalesce({name}, NULL) AS x FROM records")
    assert through.rows == kept.rows
    assert dict(through.columns)["x"].replace(" not null", "") == dict(kept.columns)["x"].replace(" not null", "")
    assert through.rejected == {}


def test_what_duckdb_cannot_carry() -> None:
    """A decimal of more digits passes as it is, and is refused by name where an expression uses it."""
    assert asked("SELECT wide FROM records").plain == [{"wide": Decimal("1.25")}, {}]
    refused = asked("SELECT wide * 2 AS x FROM records")
    (reason,) = set(refused.rejected.values())
    assert_says(reason, "field wide", "more than 38 digits", "in an expression")


def test_exact_decimals() -> None:
    """With a schema a number with a point is a decimal, so that money stays exact."""
    found = asked("SELECT dec * 1.19 AS gross FROM records", [ONE])
    assert found.plain == [{"gross": Decimal("14.6846")}]


def test_whole_numbers() -> None:
    """Small ones are int32, others int64; one that is beyond is an error of its record."""
    found = asked(
        "SELECT i::TINYINT AS t, i::UINTEGER AS u, list_sum(ls) AS s, l * 4::HUGEINT AS h FROM records", [NONE]
    )
    assert found.columns == [("t", "int32"), ("u", "int64"), ("s", "int64"), ("h", "int64")]
    beyond = asked("SELECT l * 4::HUGEINT AS h FROM records")
    assert list(beyond.rejected) == [0]


def test_milliseconds() -> None:
    """Timestamps are in UTC; what is finer than a millisecond is cut off."""
    zoned = "TIMESTAMPTZ '2024-01-01 00:00:00+02' AS z"
    found = asked(f"SELECT ts + INTERVAL 900 MICROSECONDS AS a, ts::VARCHAR AS t, {zoned} FROM records", [ONE])
    assert found.plain == [
        {"a": AT, "t": "2024-02-29 12:30:15.123", "z": datetime(2023, 12, 31, 22, tzinfo=UTC)},
    ]
    assert dict(found.columns)["a"] == "timestamp[ms, tz=UTC]"


def test_star_keeps_everything() -> None:
    """A star gives all fields with their types and whether they may be null; what can only be null has no column."""
    plain = asked("SELECT * FROM records")
    assert [name for name, _ in plain.columns] == [field.name for field in RECORD if field.name != "n"]
    assert plain.plain[0] == {name: value for name, value in ONE.items() if value is not None}


def test_a_field_that_the_schema_lacks() -> None:
    """Records of that schema are rejected, and the reason names what is there."""
    found = asked("SELECT i, nowhere FROM records")
    assert set(found.rejected) == {0, 2}
    assert_says(found.rejected[0], "nowhere", "no such field", "i, l, f")
    below = asked("SELECT st.z + 1 AS x FROM records")
    assert_says(below.rejected[0], "st.z", "field st", "no such field", "x, ts")
    of_text = asked("SELECT s.z AS x FROM records")
    assert_says(of_text.rejected[0], "field s", "not a record", "s.z")


def test_a_type_that_does_not_fit() -> None:
    """It is an invalid record with what DuckDB says of the types."""
    found = asked("SELECT i FROM records WHERE ls > 1")
    assert set(found.rejected) == {0, 2}
    assert_says(found.rejected[0], "does not fit", "Cannot compare", "BIGINT[]")


def test_no_record() -> None:
    """A value that is no struct has no fields."""
    found = asked("SELECT a + 1 AS a FROM records", ["x", "y"], pa.string())
    assert_says(found.rejected[0], "the value", "not a record", "asks for a")
    star = asked("SELECT * FROM records", ["x"], pa.string())
    assert_says(star.rejected[0], "the value", "not a record")


def test_unnest_of_records() -> None:
    """A list of records becomes rows with the columns of each, and the record's other fields beside them."""
    item = pa.struct([pa.field("sku", pa.string()), pa.field("price", pa.decimal128(5, 2))])
    arrow = pa.struct([pa.field("id", pa.int64()), pa.field("items", pa.list_(pa.field("item", item)))])
    rows = [
        {"id": 1, "items": [{"sku": "a", "price": Decimal("1.50")}, {"sku": "b", "price": None}]},
        {"id": 2, "items": []},
        {"id": 3, "items": [{"sku": "c", "price": Decimal("2.00")}]},
    ]
    found = asked("SELECT id, unnest(items).sku AS sku, unnest(items).price * 2 AS p FROM records", rows, arrow)
    assert found.rows == [
        (0, {"id": 1, "sku": "a", "p": Decimal("3.00")}),
        (0, {"id": 1, "sku": "b"}),
        (4, {"id": 3, "sku": "c", "p": Decimal("4.00")}),
    ]


def test_offsets_stay() -> None:
    """Ten thousand rows, filtered and unnested, have the offsets of their records."""
    arrow = pa.struct([pa.field("id", pa.int64()), pa.field("l", pa.list_(pa.field("item", pa.int64())))])
    rows = [{"id": n, "l": list(range(n % 4))} for n in range(10_000)]
    found = asked("SELECT id, unnest(l) AS one FROM records WHERE id % 3 = 0", rows, arrow)
    wanted = [(2 * n, {"id": n, "one": one}) for n in range(0, 10_000, 3) for one in range(n % 4)]
    assert found.rows == wanted
