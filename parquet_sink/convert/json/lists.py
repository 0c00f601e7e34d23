"""JSON records with their lists turned into text, so that the fast path can read them.

What `exact` and `rows.flatten.trees` make of a record stays the same: a list becomes the JSON text that its column
holds. Only records that have a `[`, escaped or not, are parsed here and written anew. A record of 1 KB and 40 fields,
one of them a list, costs 13 µs to its columns so, and 24 the exact way.
"""

from collections.abc import Callable
from typing import TypeAlias

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Tree
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import is_plain

Lists: TypeAlias = dict[str, "Lists"]
"""Fields that may be lists, or objects with such fields below."""

_BRACKET = r"\[|\\u005[bB]"


def with_lists_as_text(
    values: pa.BinaryArray,
    lists: Lists,
    discard: bool,
    prepare: Callable[[Tree], Tree] | None,
    *,
    lower: bool = False,
) -> pa.BinaryArray | None:
    """The values, those with lists written anew; None when one of them is for the exact path.

    values: no nulls. lists: where lists are looked for; elsewhere they stay. discard: lists are left out. prepare:
    gives the tree that lists are taken from, with the same fields outside of them; lower: their names in lower case.
    """
    mask = pc.match_substring_regex(values, _BRACKET)
    count = mask.true_count
    if not count:
        return values
    written = []
    naming = str.lower if lower and prepare is not None else str
    try:
        for value in values.filter(mask).to_pylist():
            tree = orjson.loads(value)
            prepared = tree if prepare is None or type(tree) is not dict else prepare(tree)
            if type(tree) is not dict or not _replace(tree, prepared, lists, discard, 1, naming):
                return None
            written.append(orjson.dumps(tree))
    except (InvalidValue, orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        return None  # orjson writes 254 levels, and reads 1,024
    replacements = pa.array(written, pa.binary())
    return replacements if count == len(values) else pc.replace_with_mask(values, mask, replacements)


def _replace(tree: Tree, prepared: Tree, lists: Lists, discard: bool, depth: int, naming: Callable[[str], str]) -> bool:
    """Lists to text, in place; False where the exact path must look. naming: of fields in `prepared`."""
    for key, below in lists.items():
        value = tree.get(key)
        kind = type(value)
        if kind is list:
            if not is_plain(value, depth + 1):  # type: ignore[arg-type]
                return False
            if discard:
                del tree[key]
            else:
                tree[key] = orjson.dumps(prepared[naming(key)]).decode()
        elif kind is dict and below:
            inner = prepared[naming(key)]
            if not _replace(value, inner, below, discard, depth + 1, naming):  # type: ignore[arg-type]
                return False
    return True
