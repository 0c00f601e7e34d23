"""Records without a schema that were read as columns, to payload columns, flattened or nested.

The rows that `trees.flatten` and `trees.nest` give one by one are the definition. Rows that may be another than they
look here (two fields for one column, an object that is `{}` where columns are nested) are told, to be taken one by one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import all_null, either
from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue, Path
from parquet_sink.rows.flatten.trees import SEPARATOR, column_name
from parquet_sink.rows.schema.arrow_types import clash

_EMPTY, _NULL = pa.scalar("{}", pa.string()), pa.scalar(None, pa.string())


# Null counts as if its field were not there; so does what discarding leaves out: lists, and objects without fields.
# Two fields of one object that count and become one make a record invalid. For records with a schema `arrow_types` has
# the same rule.
def lowercased(tree: Tree, *, discard: bool = False) -> Tree:
    """The tree with the names of all fields in lower case, at every depth, inside lists too.

    discard: lists are left out later, and not looked into. Raises InvalidValue when two fields become one.
    """
    return _object(tree, (), discard)


def _object(tree: Tree, path: Path, discard: bool) -> Tree:
    found: Tree = {}
    origin: dict[str, str] = {}
    for key, value in tree.items():
        lower = key.lower()
        if lower in found:
            if _is_left_out(value, discard):
                continue
            if not _is_left_out(found.pop(lower), discard):
                raise InvalidValue(clash((*path, origin[lower]), (*path, key), (*path, lower)))
        origin[lower] = key
        is_plain = type(value) is not dict and type(value) is not list
        found[lower] = value if is_plain else _below(value, (*path, key), discard)
    return found


def _below(value: object, path: Path, discard: bool) -> object:
    if isinstance(value, dict):
        return _object(value, path, discard)
    if isinstance(value, list) and not discard:
        return [_below(element, (*path, index), discard) for index, element in enumerate(value)]
    return value


def _is_left_out(value: object, discard: bool) -> bool:
    return value is None or (discard and (isinstance(value, list) or value == {}))


@dataclass(frozen=True)
class InferredColumns:
    """arrays: by name of the column, those without a value left out. alone: rows to be taken one by one, or None."""

    arrays: dict[str, pa.Array]
    alone: pa.BooleanArray | None


def flat(fields: Mapping[str, pa.Array], discard_collections: bool) -> InferredColumns:
    """One column for each leaf; an object that was always empty is the text `{}`."""
    found = _Flattening(discard_collections)
    for name, array in fields.items():
        found.take((name,), array)
    return InferredColumns(found.arrays, found.alone)


def nested(fields: Mapping[str, pa.Array], discard_collections: bool) -> InferredColumns:
    """The fields as they are; an object without a value is null."""
    found = _Nesting(discard_collections)
    return InferredColumns(found.fields(fields), found.alone)


class _Flattening:
    def __init__(self, discard_collections: bool) -> None:
        self._discard = discard_collections
        self.arrays: dict[str, pa.Array] = {}
        self.alone: pa.BooleanArray | None = None

    def take(self, path: tuple[str, ...], array: pa.Array) -> None:
        """A field, or what is below it. The first field with a value has a column; rows that have another are alone."""
        if array.null_count == len(array):
            return
        if pa.types.is_struct(array.type):
            if array.type.num_fields:
                for name, child in _children(array).items():
                    self.take((*path, name), child)
                return
            if self._discard:
                return
            array = pc.if_else(array.is_valid(), _EMPTY, _NULL)
        column = column_name(SEPARATOR.join(path))
        if column in self.arrays:
            self.alone = either(self.alone, array.is_valid())
        else:
            self.arrays[column] = array


class _Nesting:
    def __init__(self, discard_collections: bool) -> None:
        self._discard = discard_collections
        self.alone: pa.BooleanArray | None = None

    def fields(self, fields: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        found = {}
        for name, array in fields.items():
            if array.null_count == len(array):
                continue
            if not pa.types.is_struct(array.type):
                found[name] = array
            elif array.type.num_fields:
                below = self.fields(_children(array))
                if below:
                    children = list(below.values())
                    found[name] = pa.StructArray.from_arrays(children, names=list(below), mask=all_null(children))
            elif not self._discard:
                self.alone = either(self.alone, array.is_valid())
        return found


def _children(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields of a struct, null where it is."""
    names = [field.name for field in array.type]
    return dict(zip(names, array.flatten(), strict=True))
