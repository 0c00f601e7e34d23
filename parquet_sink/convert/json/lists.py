"""Lists in JSON records as the JSON text that their column holds, before Arrow's reader sees the records.

A list is cut out of a record's bytes by its name, parsed alone, and put back as a string; nothing else of the record is
parsed for that. `[{,]"name":[` is in no string of a valid record, because a quote has a backslash before it there, and
a list that is valid JSON ends where its value ends. So the record is valid with the string in the list's place exactly
when it is valid as it was. Lists that are not found by a name stay lists, and leave their record to the exact path.

CPU to the columns of a record of 1 KB and 40 fields, one of them a list of 110 bytes: 6.3 µs, the exact way 24. Lists
that stand there as they will be become text in C, where that was built: then it is half.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import MAX_DEPTH, Tree
from parquet_sink.convert.json.exact import is_plain, text_of, with_digits
from parquet_sink.convert.json.fast import MOST_LEVELS, Lists, extension
from parquet_sink.process.native import is_turned_off

Names: TypeAlias = tuple[str, ...]
Places: TypeAlias = np.ndarray
Rewrite: TypeAlias = Callable[[Tree], Tree]
Cut: TypeAlias = tuple[pa.BinaryArray, np.ndarray]
"""Values with strings in place of lists, and those of which one is for the exact path."""

_TEXT_LIKE_A_LIST: Final = r':[ \t\r\n]*"(\[|\\u005[bB])'
_PERHAPS_BEYOND_INT64: Final = r"[0-9]{19}|[0-9][eE]\+?[0-9]"
_MOST_SPACE: Final = 64
_MOST_BYTES: Final = 2**28
"""Of values in which lists are cut: their text may grow to some times its size, as `1e15` does."""
_MOST_SEARCHED: Final = 2**14
"""Bytes in which the end of one list is looked for where brackets do not tell it: there may be many such lists."""
_MOST_PATHS: Final = 4
"""A list is rewritten by each path that it may stand at; where there are more, the exact path is the cheaper one."""
_SPACE: Final = np.isin(np.arange(256), list(b" \t\r\n"))
_EMPTY: Final = pa.scalar(b"", pa.binary())
_SCAN: Final = json.JSONDecoder().raw_decode


@dataclass(frozen=True)
class KnownLists:
    """paths: of lists, by each form in which records write their last name. shared: forms of other text fields, too.

    depth: the longest path.
    """

    paths: Mapping[bytes, tuple[Names, ...]]
    shared: frozenset[bytes]
    depth: int

    @classmethod
    def of(cls, lists: Lists, texts: Iterable[Names]) -> "KnownLists":
        """texts: paths of all fields whose column is text."""
        known = sorted(_paths(lists, ()))
        by_form: dict[bytes, list[Names]] = defaultdict(list)
        for path in known:
            if path[-1].lstrip()[:1] not in ":,]}":  # such a one may follow a string, and be in none
                for form in _forms(path[-1]):
                    by_form[form].append(path)
        shared = {form for path in set(texts).difference(known) for form in _forms(path[-1])}
        paths = {form: tuple(found) for form, found in by_form.items()}
        return cls(paths, frozenset(shared & paths.keys()), max(map(len, known), default=0))


def _paths(lists: Lists, above: Names) -> Iterator[Names]:
    for key, below in lists.items():
        yield (*above, key)
        yield from _paths(below, (*above, key))


def _forms(name: str) -> set[bytes]:
    """With the fewest escapes, and in ASCII alone."""
    return {json.dumps(name, ensure_ascii=in_ascii)[1:-1].encode() for in_ascii in (False, True)}


def with_lists_as_text(
    values: pa.BinaryArray,
    known: KnownLists,
    discard: bool,
    rewrite: Rewrite | None,
    *,
    lower: bool = False,
    told_apart: bool = False,
) -> pa.BinaryArray:
    """The values with known lists as strings; some of those that are for the exact path are empty.

    values: no nulls. discard: lists are null. rewrite: gives the tree that lists are taken from; lower: its names are
    in lower case. told_apart: it must be known which text is that of a list, as it must be where lists are rewritten.
    """
    if values.nbytes > _MOST_BYTES:
        return values
    keep_digits = not told_apart
    most_paths = len(known.paths) if rewrite is None else _MOST_PATHS
    told_apart = told_apart or rewrite is not None
    names = [
        form
        for form, paths in known.paths.items()
        if len(paths) <= most_paths and not (told_apart and form in known.shared)
    ]
    naming = str.lower if lower else str

    def string_of(tree: object, text: bytes, raw: bytes, start: int) -> bytes | None:
        if keep_digits:
            tree = with_digits(tree, text)
        if rewrite is None:
            return b"null" if discard else orjson.dumps(text_of(tree))
        paths = known.paths.get(_name_before(raw, start), ())
        found = {_rewritten(tree, path, rewrite, discard, naming) for path in paths}
        return found.pop() if len(found) == 1 else None

    def by_python(some: pa.BinaryArray) -> Cut:
        return _with_cut_lists(some, names, MAX_DEPTH - known.depth, string_of)

    as_it_is = rewrite is None and not discard
    cut, left = _cut_in_c(values, names, MAX_DEPTH - known.depth, by_python) if as_it_is else by_python(values)
    if rewrite is not None:
        left |= pc.match_substring_regex(values, _TEXT_LIKE_A_LIST).to_numpy(zero_copy_only=False)
    return pc.if_else(pa.array(left), _EMPTY, cut) if left.any() else cut


def _cut_in_c(values: pa.BinaryArray, names: list[bytes], room: int, by_python: Callable[[pa.BinaryArray], Cut]) -> Cut:
    """As `_with_cut_lists`, of lists that stand there as they will be, but for white space, where C was built.

    What is not so plain is left to Python: other escapes, numbers in other forms, equal names, many levels.
    """
    module = None if is_turned_off() else extension()
    _, offsets, data = values.buffers()
    if module is None or data is None:
        return by_python(values)
    levels = min(room, MOST_LEVELS)
    text, ends, others = module.lists_as_text(tuple(names), data, offsets, values.offset, len(values), levels)
    cut = pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(text)])
    left = np.frombuffer(others, np.bool_).copy()
    if left.any():
        which = pa.array(left)
        rest, left[left] = by_python(values.filter(which))
        cut = pc.replace_with_mask(cut, which, rest)
    return cut, left


def _rewritten(tree: object, path: Names, rewrite: Rewrite, discard: bool, naming: Callable[[str], str]) -> bytes:
    """The string in place of a list that stands at the end of a path. Raises InvalidValue."""
    found: Any = rewrite(reduce(lambda below, step: {step: below}, reversed(path), tree))  # type: ignore[arg-type]
    if discard:
        return b"null"
    return orjson.dumps(text_of(reduce(lambda below, step: below[naming(step)], path, found)))


def _name_before(raw: bytes, start: int) -> bytes:
    """The name of the list that begins there, as it is written."""
    end = raw.rfind(b'"', 0, start)
    return raw[raw.rfind(b'"', 0, end) + 1 : end]


def _with_cut_lists(
    values: pa.BinaryArray, names: list[bytes], room: int, string_of: Callable[..., bytes | None]
) -> Cut:
    """Lists of these names are parsed alone, each in Python.

    room: levels that a list and what is in it may have. string_of: a list, its text, all bytes, its place in them.
    """
    _, ends, content = values.buffers()
    offsets = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(content or b"", np.uint8)[offsets[0] : offsets[-1]]
    offsets, raw = offsets - offsets[0], data.tobytes()
    starts = np.flatnonzero(data == ord("["))
    rows = np.searchsorted(offsets, starts, "right") - 1
    which = np.flatnonzero(_named(data, starts, offsets[rows], names))
    stops = _stops(starts, np.flatnonzero(data == ord("]")))[which]
    starts, rows = starts[which], rows[which]
    stops = np.minimum(stops, offsets[rows + 1])
    outer = _outermost(starts, stops)
    starts, stops, rows = starts[outer], stops[outer], rows[outer]

    strings, stops = _strings(raw, starts, stops, offsets[rows + 1], room, string_of)
    left = np.zeros(len(values), np.bool_)
    left[rows[[string is None for string in strings]]] = True
    kept = np.flatnonzero(_outermost(starts, stops) & ~left[rows])
    starts, stops, rows = starts[kept], stops[kept], rows[kept]
    put = [strings[index] or b"" for index in kept.tolist()]

    gaps = [raw[start:stop] for start, stop in zip([0, *stops.tolist()], [*starts.tolist(), len(raw)], strict=True)]
    joined = b"".join(chain.from_iterable(zip(gaps, [*put, b""], strict=True)))
    growth = np.zeros(len(values) + 1, np.int64)
    np.add.at(growth, rows + 1, np.fromiter(map(len, put), np.int64, len(put)) - (stops - starts))
    moved = pa.py_buffer((offsets + growth.cumsum()).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(values), [None, moved, pa.py_buffer(joined)]), left


def _named(data: np.ndarray, starts: Places, begins: Places, names: list[bytes]) -> np.ndarray:
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


def _token(data: np.ndarray, at: Places) -> tuple[Places, np.ndarray]:
    """The last places from these back that hold no white space, and the bytes there."""
    at = np.maximum(at, 0)
    for _ in range(_MOST_SPACE):
        space = _SPACE[data[at]] & (at > 0)
        if not space.any():
            break
        at = at - space
    return at, data[at]


def _stops(starts: Places, closing: Places) -> Places:
    """For each opening bracket the place behind the closing one that matches, brackets in strings included."""
    at = np.concatenate([starts, closing])
    order = np.argsort(at, kind="stable")
    opens = order < len(starts)
    level = np.cumsum(np.where(opens, 1, -1)) + ~opens
    by_level = np.argsort(level, kind="stable")
    found = np.empty_like(at)
    found[by_level] = np.append(at[order][by_level][1:], -1)
    return found[opens] + 1


def _outermost(starts: Places, stops: Places) -> np.ndarray:
    """Which lists are not within one before."""
    return starts >= np.maximum.accumulate(np.append(0, stops))[:-1]


def _strings(
    raw: bytes, starts: Places, stops: Places, limits: Places, room: int, string_of: Callable[..., bytes | None]
) -> tuple[list[bytes | None], Places]:
    """What becomes of each list, None for what is for the exact path; and where each ends. limits: of their records."""
    places = [*zip(starts.tolist(), stops.tolist(), limits.tolist(), strict=True)]
    texts = pa.array([raw[start:stop] for start, stop, _ in places], pa.binary())
    odd = pc.match_substring_regex(texts, _PERHAPS_BEYOND_INT64).to_pylist()
    found: list[bytes | None] = []
    ends: list[int] = []
    for (start, stop, limit), is_odd in zip(places, odd, strict=True):
        string, size = None, stop - start
        try:
            tree, size = _list_in(raw, start, stop, limit)
            is_deep = size > 2 * room and sum(raw.count(one, start, start + size) for one in (b"[", b"{")) > room
            is_certain = not (is_odd or is_deep or size != stop - start)
            if is_certain or is_plain(tree, MAX_DEPTH - room + 1):
                string = string_of(tree, raw[start : start + size], raw, start)
        except (ValueError, TypeError, RecursionError):
            pass  # no JSON, or nothing that is written, or rewritten
        found.append(string)
        ends.append(start + size)
    return found, np.array(ends, np.int64)


def _list_in(raw: bytes, start: int, stop: int, limit: int) -> tuple[list[object], int]:
    """The list that begins at a place, and how many bytes it takes. Raises ValueError or RecursionError."""
    try:
        return orjson.loads(raw[start:stop]), stop - start
    except orjson.JSONDecodeError:  # a bracket may be in one of its strings
        rest = raw[start : min(limit, start + _MOST_SEARCHED)].decode()
        text = rest[: _SCAN(rest)[1]].encode()
        return orjson.loads(text), len(text)
