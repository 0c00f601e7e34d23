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


_ONE_TYPE: Final = (
    *(pa.NullScalar, pa.BooleanScalar, pa.StringScalar, pa.BinaryScalar, pa.Date32Scalar),
    *(pa.Int8Scalar, pa.Int16Scalar, pa.Int32Scalar, pa.Int64Scalar, pa.FloatScalar, pa.DoubleScalar),
)
"""Scalars of one type each: to look at the class takes a tenth of the time."""


class Pool:
    """Values, and which types they have."""

    def __init__(self, values: Sequence[HeaderValue]) -> None:
        self._values = values
        self._types: list[pa.DataType | None] = [pa.null()]
        self._known: dict[object, int] = {pa.null(): 0, pa.NullScalar: 0}

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
        kinds = [self._kinds_of(places[name][rows], absent) for name in places]
        which = np.zeros(len(rows), np.int64)
        for column in kinds:
            _, which = np.unique(which * (len(self._types) + 1) + column + 1, return_inverse=True)
        _, first = np.unique(which, return_index=True)
        distinct = np.stack([column[first] for column in kinds], axis=1)
        for number, signature in enumerate(distinct.tolist()):
            mine = rows[which == number]
            named = zip(places, signature, strict=True)
            yield Group(
                mine, {name: self._column(kind, places[name][mine]) for name, kind in named if kind != _LEFT_OUT}
            )

    def _kinds_of(self, places: np.ndarray, absent: int) -> np.ndarray:
        distinct, which = np.unique(places, return_inverse=True)
        kinds = np.array([absent if at == ABSENT else self._kind(at) for at in distinct.tolist()], np.int64)
        return kinds[which]

    def _kind(self, at: int) -> int:
        value = self._values[at]
        shape = type(value)
        known: object = shape
        if shape not in _ONE_TYPE:
            known = value.type if isinstance(value, pa.Scalar) else None
        if known not in self._known:
            self._known[known] = len(self._types)
            self._types.append(value.type if isinstance(value, pa.Scalar) else None)
        return self._known[known]

    def _column(self, kind: int, places: np.ndarray) -> Column:
        arrow = self._types[kind]
        if arrow is None:
            return [self._values[at] for at in places.tolist()]
        if pa.types.is_null(arrow):
            return pa.nulls(len(places))
        distinct, which = np.unique(places, return_inverse=True)
        return pa.array([self._values[at] for at in distinct.tolist()], arrow).take(pa.array(which))
