"""Types of fields on their way to DuckDB, and of what it gives on the way back."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Float32, Int32, decimal_type
from parquet_sink.convert.invalid import InvalidValue

MILLISECONDS: Final = pa.timestamp("ms", "UTC")
_TIME: Final = pa.time32("ms")
_DAY_US: Final = 86_400_000_000
_WHOLE: Final = {"tinyint", "smallint", "integer", "utinyint", "usmallint"}
_LONG: Final = {"bigint", "uinteger", "ubigint", "hugeint", "uhugeint"}
_TEXT: Final = {"varchar", "enum", "uuid"}
_TIMESTAMPS: Final = {"timestamp", "timestamp_s", "timestamp_ms", "timestamp with time zone"}
_SCALARS: Final[dict[str, tuple[str, pa.DataType]]] = {
    "null": ('"NULL"', pa.null()),
    "boolean": ("BOOLEAN", pa.bool_()),
    "float": ("FLOAT", pa.float32()),
    "double": ("DOUBLE", pa.float64()),
    "blob": ("BLOB", pa.binary()),
    "date": ("DATE", pa.date32()),
    "time": ("TIME", _TIME),
    **dict.fromkeys(_WHOLE, ("INTEGER", pa.int32())),
    **dict.fromkeys(_LONG, ("BIGINT", pa.int64())),
    **dict.fromkeys(_TEXT, ("VARCHAR", pa.string())),
    **dict.fromkeys(_TIMESTAMPS, ("TIMESTAMP", MILLISECONDS)),
    "timestamp_ns": ("TIMESTAMP_NS", MILLISECONDS),
}
"""By DuckDB's type: what it is cast to there, and what it is then."""
_OF_JSON: Final = frozenset({pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string()})
_UNTYPED: Final = {pa.int32(): ("BIGINT", pa.int64()), pa.float32(): ("DOUBLE", pa.float64())}


def target(duck: Any, *, untyped: bool) -> tuple[str, pa.DataType]:
    """What a type of DuckDB's becomes: a cast in SQL, and the type of records. Raises InvalidValue for what cannot be.

    untyped: of a record without a schema, whose numbers are int64 and double.
    """
    kind = duck.id
    if kind in _SCALARS:
        sql, arrow = _SCALARS[kind]
        return _UNTYPED.get(arrow, (sql, arrow)) if untyped else (sql, arrow)
    if kind == "decimal":
        digits = dict(duck.children)
        return str(duck), decimal_type(digits["precision"], digits["scale"])
    if kind in ("list", "array"):
        sql, arrow = target(dict(duck.children)["child"], untyped=untyped)
        return f"{sql}[]", pa.list_(pa.field("item", arrow))
    if kind == "struct":
        found = [(name, *target(child, untyped=untyped)) for name, child in duck.children]
        if not found:
            raise InvalidValue("it is an object without fields, which no record can have")
        sql = ", ".join(f"{quoted(name)} {own}" for name, own, _ in found)
        return f"STRUCT({sql})", pa.struct([pa.field(name, arrow) for name, _, arrow in found])
    if kind == "map":
        (key, key_arrow), (item, item_arrow) = (target(child, untyped=untyped) for _, child in duck.children)
        return f"MAP({key}, {item})", pa.map_(key_arrow, pa.field("value", item_arrow))
    raise InvalidValue(f"it is of type {duck}, which no record can have; cast it, for example to VARCHAR")


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def is_plain(arrow: pa.DataType) -> bool:
    """Whether a record without a schema can have it: numbers, booleans, texts, and lists and objects of these."""
    if pa.types.is_struct(arrow):
        return all(is_plain(arrow.field(index).type) for index in range(arrow.num_fields))
    if pa.types.is_list(arrow):
        return is_plain(arrow.value_type)
    return arrow in _OF_JSON


def to_duck(array: pa.Array) -> pa.Array:
    """A field for DuckDB. Raises InvalidValue for what it cannot hold."""
    arrow = duck_type(array.type)
    try:
        return array if arrow.equals(array.type) else array.cast(arrow)
    except pa.ArrowInvalid:
        raise InvalidValue("a timestamp is beyond what a query can take") from None


def duck_type(arrow: pa.DataType) -> pa.DataType:
    """The type under which DuckDB is lent a field: timestamps without a zone, in microseconds. Raises InvalidValue."""
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us")
    if pa.types.is_time(arrow):
        return pa.time64("us")
    if pa.types.is_decimal(arrow) and arrow.precision > 38:
        raise InvalidValue("a decimal of more than 38 digits cannot be used in an expression")
    if pa.types.is_struct(arrow):
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
        if not fields:
            raise InvalidValue("an object without fields cannot be used in an expression")
        if len({field.name.lower() for field in fields}) < len(fields):
            raise InvalidValue("an object whose fields differ in upper and lower case alone cannot be used as a whole")
        return pa.struct([pa.field(field.name, duck_type(field.type)) for field in fields])
    if pa.types.is_list(arrow):
        return pa.list_(pa.field("item", duck_type(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(duck_type(arrow.key_type), pa.field("value", duck_type(arrow.item_type)))
    return arrow


def from_duck(column: pa.ChunkedArray, arrow: pa.DataType) -> pa.Array:
    """What DuckDB gave, as the type of records that `target` told. What is finer than a millisecond is cut."""
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    array = _floored(array)
    return array if array.type.equals(arrow) else array.cast(arrow, safe=False)


def _floored(array: pa.Array) -> pa.Array:
    """Timestamps at every depth in whole milliseconds: a cast alone would round those before 1970 up."""
    arrow = array.type
    if pa.types.is_timestamp(arrow):
        return pc.floor_temporal(array, unit="millisecond")
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(arrow) and arrow.num_fields:
        children = [_floored(array.field(index)) for index in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=mask)
    if pa.types.is_map(arrow):
        offsets = pc.add(array.offsets, 0)
        return pa.MapArray.from_arrays(offsets, _floored(array.keys), _floored(array.items), type=arrow, mask=mask)
    if pa.types.is_list(arrow):
        return pa.ListArray.from_arrays(pc.add(array.offsets, 0), _floored(array.values), type=arrow, mask=mask)
    return array


def no_timestamps(column: pa.ChunkedArray) -> np.ndarray:
    """Where DuckDB gave a date or time that no record can have: infinity, and the end of a day as its time."""
    if pa.types.is_time64(column.type):
        odd = pc.greater_equal(column.cast(pa.int64()), _DAY_US)
    elif pa.types.is_date32(column.type):
        odd = pc.equal(pc.abs(column.cast(pa.int32())), 2**31 - 1)
    elif pa.types.is_timestamp(column.type):
        odd = pc.equal(pc.abs(column.cast(pa.int64())), 2**63 - 1)
    else:
        return np.array([], np.int64)
    return np.flatnonzero(pc.fill_null(odd, fill_value=False).to_numpy())


def type_of(value: object, names: frozenset[str] = frozenset()) -> pa.DataType:
    """The type of a value without a schema, by itself; transforms may leave an Arrow scalar in a record.

    names: fields that each object has, if only as null.
    Raises InvalidValue for a list whose elements have no type in common.
    """
    if isinstance(value, dict):
        fields = {name: type_of(below, names) for name, below in value.items()}
        there = {name.lower() for name in fields}
        fields |= {name: pa.null() for name in sorted(names) if name.lower() not in there}
        return pa.struct([pa.field(name, arrow) for name, arrow in fields.items()])
    if isinstance(value, list):
        common = pa.null()
        for one in value:
            common = _common(common, type_of(one, names))
        return pa.list_(pa.field("item", common))
    found = value.type if isinstance(value, pa.Scalar) else _TYPES.get(type(value))
    if found is None:
        raise InvalidValue(f"a value of type {type(value).__name__} cannot be used in a query")
    return found


def fitted(value: Any, arrow: pa.DataType) -> Any:
    """A value for the type that `type_of` gave: whole numbers among fractions are fractions.

    Raises InvalidValue for one that a fraction cannot hold.
    """
    if isinstance(value, list):
        return [fitted(one, arrow.value_type) for one in value]
    if isinstance(value, dict):
        return {name: fitted(below, arrow.field(name).type) for name, below in value.items()}
    if type(value) is int and pa.types.is_floating(arrow):
        if int(float(value)) != value:
            raise InvalidValue("a list of fractions and a whole number beyond 2**53 cannot be used in a query")
        return float(value)
    return value


_TYPES: Final[dict[type, pa.DataType]] = {
    type(None): pa.null(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    Int32: pa.int32(),
    Float32: pa.float32(),
}


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type that holds both. Raises InvalidValue."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(pa.field("item", _common(one.value_type, other.value_type)))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        fields = {one.field(index).name: one.field(index).type for index in range(one.num_fields)}
        for index in range(other.num_fields):
            name, arrow = other.field(index).name, other.field(index).type
            fields[name] = _common(fields[name], arrow) if name in fields else arrow
        return pa.struct([pa.field(name, arrow) for name, arrow in fields.items()])
    raise InvalidValue("a list whose elements have no type in common cannot be used in a query")
