"""Values of any type, record by record, to groups of records whose values have the same types."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.transform.headers import ABSENT, HeaderValue
from parquet_sink.transform.whole.additions import Column, Group

_CELLS: Final = 2_000_000
"""Values looked at together."""
_LEFT_OUT: Final = -1


class Pool:
    """Values, and which types they have."""

    def __init__(self, values: Sequence[HeaderValue]) -> None:
        self._values = values
        self._types: list[pa.DataType | None] = [pa.null()]
        known: dict[pa.DataType | None, int] = {pa.null(): 0}
        self._kinds = np.zeros(len(values), np.int64)
        for at, value in enumerate(values):
            arrow = value.type if isinstance(value, pa.Scalar) else None
            if arrow not in known:
                known[arrow] = len(self._types)
                self._types.append(arrow)
            self._kinds[at] = known[arrow]

    def groups(self, count: int, places: Mapping[str, np.ndarray], *, absent_is_null: bool) -> Iterator[Group]:
        """Rows 0 to count by the fields that they get, and the types of these.

        places: for each name where each row's value is, ABSENT for none, which is null or left out.
        """
        step = max(_CELLS // max(len(places), 1), 1)
        for start in range(0, count, step):
            rows = np.arange(start, min(start + step, count))
            yield from self._groups(rows, places, 0 if absent_is_null else _LEFT_OUT)

    def _groups(self, rows: np.ndarray, places: Mapping[str, np.ndarray], absent: int) -> Iterator[Group]:
        if not places:
            yield Group(rows, {})
            return
        kinds = np.stack([self._kinds_of(places[name][rows], absent) for name in places], axis=1)
        distinct, which = np.unique(kinds, axis=0, return_inverse=True)
        which = which.reshape(-1)
        for number, signature in enumerate(distinct.tolist()):
            mine = rows[which == number]
            named = zip(places, signature, strict=True)
            yield Group(
                mine, {name: self._column(kind, places[name][mine]) for name, kind in named if kind != _LEFT_OUT}
            )

    def _kinds_of(self, places: np.ndarray, absent: int) -> np.ndarray:
        found = np.full(len(places), absent, np.int64)
        there = places != ABSENT
        found[there] = self._kinds[places[there]]
        return found

    def _column(self, kind: int, places: np.ndarray) -> Column:
        arrow = self._types[kind]
        if arrow is None:
            return [self._values[at] for at in places.tolist()]
        if pa.types.is_null(arrow):
            return pa.nulls(len(places))
        distinct, which = np.unique(places, return_inverse=True)
        return pa.array([self._values[at] for at in distinct.tolist()], arrow).take(pa.array(which.reshape(-1)))
