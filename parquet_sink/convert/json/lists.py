"""Lists in JSON records as the JSON text that their column holds, before Arrow's reader sees the records.

A list is cut out of a record's bytes by its name, parsed alone, and put back as a string; nothing else of the record is
parsed for that. `[{,]"name":[` is in no string of a valid record, because a quote has a backslash before it there, and
a list that is valid JSON ends where its value ends. So the record is valid with the string in the list's place exactly
when it is valid as it was. A record whose lists cannot be cut so (a bracket in one of their strings, a name that other
text fields have, too) is parsed as a whole and written again.

CPU to the columns of a record of 1 KB and 40 fields, one of them a list of 110 bytes: 6.3 µs, written again 13.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import MAX_DEPTH, Tree
from parquet_sink.convert.invalid import InvalidValue, Path
from parquet_sink.convert.json.exact import is_plain

Lists: TypeAlias = dict[str, "Lists"]
"""Fields that may be lists, or objects with such fields below."""

_BRACKET: Final = r"\[|\\u005[bB]"
_PERHAPS_BEYOND_INT64: Final = r"[0-9]{19}|[0-9][eE]\+?[0-9]"
_PLAIN_NAME: Final = re.compile(r"[ !#$%(-.0-;?-\[\]-~]+")
"""What nobody writes with a backslash."""
_MOST_SPACE: Final = 64
_MOST_BYTES: Final = 2**28
"""Of values in which lists are cut: their text may grow to some times its size, as `1e15` does."""
_SPACE: Final = np.isin(np.arange(256), list(b" \t\r\n"))
Bytes: TypeAlias = np.ndarray
Positions: TypeAlias = np.ndarray


@dataclass(frozen=True)
class KnownLists:
    """Where lists are looked for. names: by which they may be cut, of one byte a character; None: by no name."""

    lists: Lists
    names: tuple[bytes, ...] | None
    depth: int

    @classmethod
    def of(cls, lists: Lists, texts: Iterable[Path]) -> "KnownLists":
        """texts: paths of all fields whose column is text."""
        paths = set(_paths(lists, ()))
        names = {path[-1] for path in paths}
        by_name = all(map(_PLAIN_NAME.fullmatch, names)) and names.isdisjoint(
            path[-1] for path in texts if path not in paths
        )
        return cls(lists, tuple(sorted(map(str.encode, names))) if by_name else None, max(map(len, paths), default=0))


def _paths(lists: Lists, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, below in lists.items():
        yield (*above, key)
        yield from _paths(below, (*above, key))


def with_lists_as_text(
    values: pa.BinaryArray,
    known: KnownLists,
    discard: bool,
    prepare: Callable[[Tree], Tree] | None,
    *,
    lower: bool = False,
) -> pa.BinaryArray:
    """The values with known lists as strings; those that are for the exact path are empty.

    values: no nulls. discard: lists are null. prepare: gives the tree that lists are taken from, with the same fields
    outside of them; lower: their names in lower case.
    """
    if prepare is None and known.names is not None and values.nbytes <= _MOST_BYTES:
        values, left = _with_cut_lists(values, known.names, MAX_DEPTH - known.depth, discard)
    else:
        left = pc.match_substring_regex(values, _BRACKET)
    if not left.true_count:
        return values
    naming = str.lower if lower and prepare is not None else str
    written = [
        _written_again(value, known.lists, discard, prepare, naming) for value in values.filter(left).to_pylist()
    ]
    return pc.replace_with_mask(values, left, pa.array(written, pa.binary()))


def _with_cut_lists(
    values: pa.BinaryArray, names: tuple[bytes, ...], room: int, discard: bool
) -> tuple[pa.BinaryArray, pa.BooleanArray]:
    """The values with lists as strings where all of a record's could be cut, and which records have others.

    room: levels that a list and what is in it may have.
    """
    _, ends, content = values.buffers()
    offsets = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(content or b"", np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    starts, closing = np.flatnonzero(data == ord("[")), np.flatnonzero(data == ord("]"))
    rows = np.searchsorted(offsets, starts, "right") - 1
    stops = np.minimum(_stops(starts, closing), offsets[rows + 1])
    which = np.flatnonzero(_named(data, starts, offsets[rows], names))
    reached = np.maximum.accumulate(np.append(0, stops[which]))[:-1]
    which = which[starts[which] >= reached]  # none within another
    starts, stops, rows = starts[which], stops[which], rows[which]

    raw = data.tobytes()
    texts = [raw[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
    strings = _strings(texts, room, discard)
    left = np.zeros(len(values), np.bool_)
    left[rows[[string is None for string in strings]]] = True
    kept = np.flatnonzero(~left[rows])
    starts, stops, rows = starts[kept], stops[kept], rows[kept]
    put = [strings[index] or b"" for index in kept.tolist()]

    gaps = [raw[start:stop] for start, stop in zip([0, *stops.tolist()], [*starts.tolist(), len(raw)], strict=True)]
    joined = b"".join(chain.from_iterable(zip(gaps, [*put, b""], strict=True)))
    growth = np.zeros(len(values) + 1, np.int64)
    np.add.at(growth, rows + 1, np.fromiter(map(len, put), np.int64, len(put)) - (stops - starts))
    moved = pa.py_buffer((offsets + growth.cumsum()).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, moved, pa.py_buffer(joined)]), pa.array(left)


def _stops(starts: Positions, closing: Positions) -> Positions:
    """Behind each opening bracket the place behind the closing one that matches, as far as brackets do."""
    at = np.concatenate([starts, closing])
    order = np.argsort(at, kind="stable")
    opens = order < len(starts)
    level = np.cumsum(np.where(opens, 1, -1)) + ~opens
    by_level = np.argsort(level, kind="stable")
    found = np.empty_like(at)
    found[by_level] = np.append(at[order][by_level][1:], -1)
    return found[opens] + 1


def _named(data: Bytes, starts: Positions, begins: Positions, names: tuple[bytes, ...]) -> np.ndarray:
    """For each opening bracket whether a member of one of these names begins with it. begins: of its record."""
    at, colon = _token(data, starts - 1)
    at, quote = _token(data, at - 1)
    keyed = (colon == ord(":")) & (quote == ord('"'))
    found = np.zeros(len(starts), np.bool_)
    for size in {len(name) for name in names}:
        which = np.flatnonzero(keyed & (at - size - 2 >= begins))
        first = at[which] - size
        keys = data[first[:, None] + np.arange(size)].view(f"S{size}")[:, 0]
        hit = np.isin(keys, [name for name in names if len(name) == size]) & (data[first - 1] == ord('"'))
        which, first = which[hit], first[hit]
        before, token = _token(data, first - 2)
        found[which] |= ((token == ord("{")) | (token == ord(","))) & (before >= begins[which])
    return found


def _token(data: Bytes, at: Positions) -> tuple[Positions, Bytes]:
    """The last places from these back that hold no white space, and the bytes there."""
    at = np.maximum(at, 0)
    for _ in range(_MOST_SPACE):
        space = _SPACE[data[at]] & (at > 0)
        if not space.any():
            break
        at = at - space
    return at, data[at]


def _strings(texts: Sequence[bytes], room: int, discard: bool) -> list[bytes | None]:
    """Each list as the JSON of its column; None where it is none, or holds what may have to be looked at closely."""
    odd = pc.match_substring_regex(pa.array(texts, pa.binary()), _PERHAPS_BEYOND_INT64)
    found: list[bytes | None] = []
    for text, is_odd in zip(texts, odd.to_pylist(), strict=True):
        deep = len(text) > 2 * room and text.count(b"[") + text.count(b"{") > room
        try:
            tree = orjson.loads(text)
            if deep or (is_odd and not is_plain(tree, 1)):
                found.append(None)
            else:
                found.append(b"null" if discard else orjson.dumps(orjson.dumps(tree).decode()))
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            found.append(None)
    return found


def _written_again(
    value: bytes,
    lists: Lists,
    discard: bool,
    prepare: Callable[[Tree], Tree] | None,
    naming: Callable[[str], str],
) -> bytes:
    """One value with its lists as strings; empty, which nobody takes for a record, where the exact path must look."""
    try:
        tree = orjson.loads(value)
        prepared = tree if prepare is None or type(tree) is not dict else prepare(tree)
        if type(tree) is dict and _replace(tree, prepared, lists, discard, 1, naming):
            return orjson.dumps(tree)
    except (InvalidValue, orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        pass  # orjson writes 254 levels, and reads 1,024
    return b""


def _replace(tree: Tree, prepared: Tree, lists: Lists, discard: bool, depth: int, naming: Callable[[str], str]) -> bool:
    """Lists to text, in place; False where the exact path must look. naming: of fields in `prepared`."""
    for key, below in lists.items():
        value = tree.get(key)
        kind = type(value)
        if kind is list:
            if not is_plain(value, depth + 1):  # type: ignore[arg-type]
                return False
            tree[key] = None if discard else orjson.dumps(prepared[naming(key)]).decode()
        elif kind is dict and below:
            inner = prepared[naming(key)]
            if not _replace(value, inner, below, discard, depth + 1, naming):  # type: ignore[arg-type]
                return False
    return True
