"""Values without a schema that are no records: transforms leave some, and chunks take them all the same."""

from collections.abc import Iterable

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.config.key import ems
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue

_NAMES = {list: "a list", str: "text", int: "a number", float: "a number", bool: "a boolean"}


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


def texts(trees: Iterable[object]) -> pa.StringArray:
    """JSON of each; text is itself. Dates and times are the numbers that columns store, as in `json_text`."""
    made = [tree.encode() if isinstance(tree, str) else orjson.dumps(tree, default=_number) for tree in trees]
    return pa.array(made, pa.binary()).cast(pa.string())


def _number(moment: pa.Scalar) -> int:
    number: int = moment.value
    return number
