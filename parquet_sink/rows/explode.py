"""Records that only wrap a list of records, to one row for each element.

A record matches when it has exactly one field and that is a list of records. Elements that are null are dropped; an
empty list gives no row, nor does one that is null. What does not match is taken as it is.
"""

import logging
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Tree

_LOG = logging.getLogger(__name__)


def matches(arrow: pa.DataType) -> bool:
    """Whether records of this type are to be exploded."""
    if not pa.types.is_struct(arrow) or arrow.num_fields != 1:
        return False
    only = arrow.field(0).type
    return bool(pa.types.is_list(only) and pa.types.is_struct(only.value_type))


def rows(positions: pa.Int64Array, records: pa.Array) -> tuple[pa.Int64Array, pa.Array]:
    """The elements of records whose type `matches`, each with its record's position; other records as they are."""
    if not matches(records.type):
        report(records.type)
        return positions, records
    lists = records.field(0)
    if lists.null_count:
        valid = lists.is_valid()  # what an array still has where it is null counts for its parents, not its elements
        lists, positions = lists.filter(valid), positions.filter(valid)
    elements, origins = pc.list_flatten(lists), pc.list_parent_indices(lists)
    if elements.null_count:
        valid = elements.is_valid()
        elements, origins = elements.filter(valid), origins.filter(valid)
    return positions.take(origins), elements


def trees(tree: Tree) -> Sequence[Tree]:
    """The elements of a record, or the record alone when it does not match."""
    found = next(iter(tree.values())) if len(tree) == 1 else tree
    if found is None:
        return ()
    if isinstance(found, list) and all(element is None or isinstance(element, dict) for element in found):
        return [element for element in found if element is not None]
    report(None)
    return (tree,)


@lru_cache(maxsize=256)
def report(schema: pa.DataType | None) -> None:
    """Warn that records are not exploded: once for each schema in a process, None standing for those without one."""
    _LOG.warning(
        "connect.ems.explode.mode=List: a record %s is not exactly one list of records; such records are taken as "
        "they are",
        "without a schema" if schema is None else "with a schema",
    )
