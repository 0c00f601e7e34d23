"""Reads many JSON values at once, less the fallback rows: values that keep the others from being read so.

Arrow's reader ends at the first value that it cannot read, and says why. Bad values of a topic are mostly bad in one
way; so those whose text matches a pattern made of the reader's message (`pattern_of`) are left out together, and the
rest is tried again. Where texts do not show it, values are found by the row at which it fails. A block with some bad
values costs about two reads, and the next one with values that are bad in the same way one.

A pattern may match values that are fine, and miss bad ones: it decides what to leave out of one reading, never what a
value is.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import are_utf8
from parquet_sink.convert.decoded import one_by_one
from parquet_sink.convert.json import fast
from parquet_sink.convert.json.exact import load
from parquet_sink.convert.json.fast import ODD_NUMBER

_SPACE: Final = r"[ \t\r\n]*"
_CHANGED: Final = re.compile(r"\) changed from \w++ to (\w++) in row \d++$")
_TWICE: Final = re.compile(r"\) was specified twice in row \d++$")
_TOO_BIG: Final = "Number too big to be stored in double"
_NOT_CONVERTED: Final = ("Failed to convert JSON to ", " is not a valid decimal")
_BEGINS: Final = {"string": '"', "object": r"\{", "array": r"\[", "boolean": "[tf]", "number": "[-0-9]"}
"""How a value begins, by what the reader calls it."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_ -]+")
_MOST_NAMES: Final = 200


def pattern_of(why: str, schema: pa.Schema) -> str | None:
    """why: the reader's message. None where a fault has no look of its own."""
    if found := _CHANGED.search(why):
        begins = _BEGINS.get(found[1])
        return None if begins is None else _valued(_name_in(why[: found.start()]), begins)
    if found := _TWICE.search(why):
        twice = _valued(_name_in(why[: found.start()]), "")
        return None if twice is None else f"(?s){twice}.*{twice}"
    if _TOO_BIG in why:
        return ODD_NUMBER
    return _numbers(schema) if any(words in why for words in _NOT_CONVERTED) else None


def _name_in(said: str) -> str:
    """The field in `… Column(/a/b`, whatever its name holds."""
    return said.partition("Column(")[2].rpartition("/")[2]


def _valued(name: str, begins: str) -> str | None:
    """A field's name, and how its value begins; None for a name that a text may have in another form."""
    return f'"{name}"{_SPACE}:{_SPACE}{begins}' if _PLAIN_NAME.fullmatch(name) else None


@lru_cache(256)
def _numbers(schema: pa.Schema) -> str | None:
    """Numbers that their field's type has no room for; None where no field may have such ones."""
    names: dict[str, set[str]] = defaultdict(set)
    for name, arrow in _leaves([(field.name, field.type) for field in schema]):
        odd = _beyond(arrow)
        if odd is not None and _PLAIN_NAME.fullmatch(name):
            names[odd].add(name)
    if not 0 < sum(map(len, names.values())) <= _MOST_NAMES:
        return None
    listed = r"(?:\[(?:[^\]]*[ \t\r\n,])?)?"
    return "|".join(
        f'"(?:{"|".join(sorted(some))})"{_SPACE}:{_SPACE}{listed}{odd}' for odd, some in sorted(names.items())
    )


def _leaves(fields: list[tuple[str, pa.DataType]]) -> Iterator[tuple[str, pa.DataType]]:
    """Names and types of fields that are no objects, at all depths; those in lists under the list's name."""
    for name, arrow in fields:
        below = arrow
        while pa.types.is_list(below):
            below = below.value_type
        if pa.types.is_struct(below):
            yield from _leaves([(field.name, field.type) for field in below])
        else:
            yield name, below


def _beyond(arrow: pa.DataType) -> str | None:
    """What a value of this type is not: an integer with a fraction or too many digits, a decimal that has no room."""
    if pa.types.is_signed_integer(arrow):
        return f"-?(?:[0-9]+[.eE]|{_above(str(2 ** (arrow.bit_width - 1) - 1))})"
    if pa.types.is_decimal(arrow):
        whole, scale = arrow.precision - arrow.scale + 1, arrow.scale + 1
        return rf'(?:"|-?(?:[0-9]{{{whole},}}|[0-9]*\.[0-9]{{{scale},}}|[0-9.]*[eE]))'
    return None


def _above(most: str) -> str:
    """Whole numbers with more digits than this one, or as many and above it."""
    size = len(most)
    higher = [
        f"{most[:at]}[{int(digit) + 1}-9][0-9]{{{size - at - 1}}}" for at, digit in enumerate(most) if digit != "9"
    ]
    return "|".join([f"[0-9]{{{size + 1},}}", *higher])


_ROW: Final = re.compile(r" in row (\d+)$")
_LOOKS: Final = 8
"""Ways of being bad in one block that are looked for by text."""
WINDOW: Final = 1_024
"""Values that are tried at once where each bad one is found by itself: each of them costs a copy of those behind it."""
_WINDOW_MOST: Final = 64
"""More bad ones in a window are not looked for."""


Unexpected = Literal["error", "ignore"]


@dataclass(frozen=True)
class PartialRead:
    """batch: what `fast.read` gives for `values`, which stood at these places, increasing.

    faults: patterns of texts that were left out, for the next block.
    """

    places: np.ndarray
    values: pa.BinaryArray
    batch: pa.RecordBatch
    faults: tuple[str, ...]


def read_most(
    values: pa.BinaryArray, schema: pa.Schema, unexpected: Unexpected, most: int, faults: tuple[str, ...] = ()
) -> PartialRead | None:
    """As many values as can be read at once; None when that cannot be found out, or when it would leave out too many.

    most: so many may be left out, not counting those that are no JSON objects; some of them may be fine. Fields that
    are not in the schema, where they are an error, make it None. faults: of the block before; texts that have them are
    left out untried.
    """
    return _Sieve(values, schema, unexpected, most).read(faults)


class _Sieve:
    """The values that are left, and what they have been looked at for."""

    def __init__(self, values: pa.BinaryArray, schema: pa.Schema, unexpected: Unexpected, most: int) -> None:
        self._values, self._places = values, np.arange(len(values))
        self._schema, self._unexpected, self._most = schema, unexpected, most
        self._faults: list[str] = []
        self._framed = self._parsed = False

    def read(self, faults: tuple[str, ...]) -> PartialRead | None:
        for fault in faults:
            self._leave_out_alike(fault)
        for _ in range(_LOOKS):
            found = fast.attempt(self._values, self._schema, self._unexpected)
            if isinstance(found, pa.RecordBatch):
                return PartialRead(self._places, self._values, found, tuple(self._faults))
            if fast.UNEXPECTED in found:
                return None
            if not self._look(found):
                break
        return self._one_by_one()

    def _look(self, why: str) -> bool:
        """Leave values out that may have kept the last try from success; False when there are none."""
        count = len(self._places)
        if not self._framed:
            self._framed = True
            self._leave_out(np.flatnonzero(~objects(self._values)))
        if len(self._places) == count:
            fault = pattern_of(why, self._schema)
            if fault is not None and fault not in self._faults:
                self._leave_out_alike(fault)
        if len(self._places) == count and not self._parsed:
            self._parsed = True
            self._leave_out([*one_by_one(self._values, load)[2]])
        return len(self._places) < count

    def _leave_out(self, bad: Sequence[int] | np.ndarray) -> None:
        if len(bad):
            kept = np.delete(np.arange(len(self._places)), bad)
            self._places, self._values = self._places[kept], self._values.take(pa.array(kept))

    def _leave_out_alike(self, fault: str) -> None:
        """Values whose text has this fault, unless these are too many."""
        matching = pc.match_substring_regex(self._values, fault)
        bad = np.flatnonzero(matching.to_numpy(zero_copy_only=False))
        if 0 < len(bad) <= self._most:
            self._most -= len(bad)
            self._faults.append(fault)
            self._leave_out(bad)

    def _one_by_one(self) -> PartialRead | None:
        """Each bad value found by the row at which reading fails."""
        bad: list[int] = []
        for start in range(0, len(self._values), WINDOW):
            window = self._values.slice(start, WINDOW)
            rows = _rows(window, self._schema, self._unexpected, min(self._most - len(bad), _WINDOW_MOST))
            if rows is None:
                return None
            bad += [start + row for row in rows]
        self._leave_out(bad)
        found = fast.attempt(self._values, self._schema, self._unexpected) if bad else ""
        if not isinstance(found, pa.RecordBatch):
            return None
        return PartialRead(self._places, self._values, found, tuple(self._faults))


def absent(places: np.ndarray, count: int) -> list[int]:
    """Of so many places those that are none of these."""
    if len(places) == count:
        return []
    left = np.ones(count, np.bool_)
    left[places] = False
    return np.flatnonzero(left).tolist()


def objects(values: pa.BinaryArray) -> np.ndarray:
    """For each value whether it is UTF-8 and looks like an object."""
    utf8 = are_utf8(values)
    text = values if utf8.all() else pc.if_else(pa.array(utf8), values, b"")
    plain = fast.framed(text)
    if plain.false_count:
        plain = fast.framed(pc.ascii_trim(text.cast(pa.string()), fast.JSON_SPACE))
    found: np.ndarray = plain.to_numpy(zero_copy_only=False).copy()
    found &= utf8
    return found


def _rows(values: pa.BinaryArray, schema: pa.Schema, unexpected: Unexpected, most: int) -> list[int] | None:
    """Positions in a window; None when they cannot be found, or exceed `most`."""
    found: list[int] = []
    start = 0
    while start < len(values):
        try:
            fast.parsed(fast.lines(values.slice(start)), schema, unexpected)
        except pa.ArrowInvalid as error:
            row = _ROW.search(str(error))
            if row is None or len(found) >= most or start + int(row[1]) >= len(values):
                return None
            found.append(start + int(row[1]))
            start = found[-1] + 1
        else:
            return found
    return found
