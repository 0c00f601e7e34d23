"""Names of fields in lower case, for records without a schema, and which of two fields that become one counts.

Null counts as if its field were not there; so does what discarding leaves out: lists, and objects without fields.
Two fields of one object that count and become one make a record invalid. For records with a schema `arrow_types`
has the same rule.
"""

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue, Path
from parquet_sink.rows.schema.arrow_types import clash


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
