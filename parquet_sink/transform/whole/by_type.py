"""Values of any type, record by record, to groups of records whose values have the same types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.transform.headers import ABSENT, HeaderValue
from parquet_sink.transform.whole.additions import Column, Group

_FEW: Final = 16
"""Fewer values are not looked through for equal ones."""

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

    def groups_by_row(self, fields: Iterable[Mapping[str, int]]) -> Iterator[Group]:
        """Rows by the fields that they get, and the types of these.

        fields: of each row, by the field's name, where its value is; the names may be any.
        """
        found: dict[tuple[tuple[str, int], ...], tuple[list[int], list[list[int]]]] = {}
        for row, places in enumerate(fields):
            signature = tuple((name, self._kind(at)) for name, at in places.items())
            rows, values = found.setdefault(signature, ([], []))
            rows.append(row)
            values.append(list(places.values()))
        for signature, (rows, values) in found.items():
            places_of = np.array(values, np.int64).reshape(len(rows), len(signature)).T
            named = zip(signature, places_of, strict=True)
            yield Group(np.array(rows, np.int64), {name: self._column(kind, places) for (name, kind), places in named})

    def groups(self, places: Mapping[str, np.ndarray]) -> Iterator[Group]:
        """Rows by the types of their fields, which have the same names.

        places: for each name, of which there is one at least, where each row's value is; ABSENT for none: null.
        """
        kinds = [self._kinds_of(one) for one in places.values()]
        which = np.zeros(len(kinds[0]), np.int64)
        for column in kinds:
            _, which = np.unique(which * len(self._types) + column, return_inverse=True)
        distinct, first = np.unique(which, return_index=True)
        for number, row in zip(distinct.tolist(), first.tolist(), strict=True):
            mine = np.flatnonzero(which == number)
            named = zip(places.items(), kinds, strict=True)
            yield Group(mine, {name: self._column(int(kind[row]), one[mine]) for (name, one), kind in named})

    def _kinds_of(self, places: np.ndarray) -> np.ndarray:
        distinct, which = np.unique(places, return_inverse=True)
        kinds = np.array([0 if at == ABSENT else self._kind(at) for at in distinct.tolist()], np.int64)
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
        if len(places) < _FEW:
            return pa.array([self._values[at] for at in places.tolist()], arrow)
        distinct, which = np.unique(places, return_inverse=True)
        return pa.array([self._values[at] for at in distinct.tolist()], arrow).take(pa.array(which))
