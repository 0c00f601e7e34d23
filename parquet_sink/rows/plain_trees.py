"""Values without a schema that are no records: transforms leave some, and chunks take them all the same."""

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Float32, Int32, Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.trees import text_of

_NAMES = {
    **dict.fromkeys((int, float, Int32, Float32), "a number"),
    list: "a list",
    str: "text",
    bool: "a boolean",
}


def no_fields(tree: object) -> InvalidValue:
    """Why a value has no row."""
    if tree == {}:
        return InvalidValue("the value is an empty object")
    what = _NAMES.get(type(tree), "a date or time")
    return InvalidValue(f"the value is not an object but {what}, which only {ems('flattener.jsonblob.chunks')} takes")


def with_fields(tree: Tree) -> Tree:
    """The record. Raises InvalidValue when transforms have left it no field."""
    if not tree:
        raise no_fields(tree)
    return tree


def without_values(rows: pa.StructArray) -> pa.BooleanArray | None:
    """Records that transforms may have left no field, among those that were read as columns; None: none of them."""
    found = pa.repeat(pa.scalar(True, pa.bool_()), len(rows))
    for column in rows.flatten():
        if not column.null_count:
            return None
        found = pc.and_(found, column.is_null())
    return found if found.true_count else None


def text(tree: object) -> str:
    """The JSON text of a value; text is itself. Raises InvalidValue."""
    return tree if isinstance(tree, str) else text_of(tree)
