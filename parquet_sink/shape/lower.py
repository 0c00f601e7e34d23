"""Names of fields in lower case, for records without a schema. Pure."""

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue, Path
from parquet_sink.shape.typed_types import clash


def lowercased(tree: Tree) -> Tree:
    """The tree with the names of all fields in lower case, at every depth, inside lists too.

    Raises InvalidValue when two fields of one object become one.
    """
    return _object(tree, ())


def lists_lowercased(tree: Tree) -> Tree:
    """The same for what is inside lists only: the names outside become those of columns, in lower case, later."""
    return _outside(tree, ())


def _outside(tree: Tree, path: Path) -> Tree:
    return {key: _value_outside(value, (*path, key)) for key, value in tree.items()}


def _value_outside(value: object, path: Path) -> object:
    if isinstance(value, dict):
        return _outside(value, path)
    return _value(value, path) if isinstance(value, list) else value


def _object(tree: Tree, path: Path) -> Tree:
    found: Tree = {}
    origin: dict[str, str] = {}
    for key, value in tree.items():
        lower = key.lower()
        if lower in found:
            raise InvalidValue(clash((*path, origin[lower]), (*path, key), (*path, lower)))
        origin[lower] = key
        found[lower] = _value(value, (*path, key))
    return found


def _value(value: object, path: Path) -> object:
    if isinstance(value, dict):
        return _object(value, path)
    if isinstance(value, list):
        return [_value(element, (*path, index)) for index, element in enumerate(value)]
    return value
