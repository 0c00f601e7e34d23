"""What a reader found in a file, from the Arrow table that it gives to plain values, each reader's own units undone."""

import math
from decimal import Decimal
from itertools import pairwise
from typing import cast

import pyarrow as pa

from integration.readers.columns import Column, canonical, fields, from_json, is_wide
from integration.readers.samples import Value, unscaled


class Rough:
    """A fraction that stands for a decimal of more digits than the reader has."""

    def __init__(self, number: float) -> None:
        self._number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decimal) and math.isclose(self._number, float(other), rel_tol=1e-12)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"about {self._number}"


def values(found: pa.ChunkedArray, column: Column) -> list[Value]:
    """The values of a column, to be equal to `Column.values`."""
    chunks = [_plain(chunk, column.arrow) for chunk in found.chunks]
    plain = [value for chunk in chunks for value in chunk]
    if column.json_of is not None:
        return [from_json(cast("str | None", text), column.json_of) for text in plain]
    return [canonical(value) for value in plain]


def _plain(array: pa.Array, arrow: pa.DataType) -> list[Value]:
    """arrow: the type that the values went in with."""
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(arrow):
        names = [field.name for field in fields(arrow)]
        assert [field.name for field in fields(array.type)] == names
        inner = [_plain(child, field.type) for child, field in zip(array.flatten(), fields(arrow), strict=True)]
        rows: list[Value] = [dict(zip(names, row, strict=True)) for row in zip(*inner, strict=True)]
        return _where(valid, rows)
    if pa.types.is_list(arrow):
        return _where(valid, _spans(array, _plain(array.values, arrow.value_type)))
    if pa.types.is_map(arrow):
        keys, items = _plain(array.keys, arrow.key_type), _plain(array.items, arrow.item_type)
        return _where(valid, _spans(array, list(zip(keys, items, strict=True))))
    return _leaves(array, arrow)


def _where(valid: list[bool], rows: list[Value]) -> list[Value]:
    return [row if ok else None for row, ok in zip(rows, valid, strict=True)]


def _spans(array: pa.Array, below: list[Value]) -> list[Value]:
    return [below[start:end] for start, end in pairwise(array.offsets.to_pylist())]


def _leaves(array: pa.Array, arrow: pa.DataType) -> list[Value]:
    own = array.type
    if is_wide(arrow) and pa.types.is_floating(own):
        return [None if number is None else Rough(number) for number in array.to_pylist()]
    if is_wide(arrow) and pa.types.is_binary(own):
        digits = [
            None if number is None else int.from_bytes(number, "big", signed=True) for number in array.to_pylist()
        ]
        return [None if number is None else unscaled(number, arrow.scale) for number in digits]
    if pa.types.is_date(own) or pa.types.is_time32(own):
        return list(array.view(pa.int32()).to_pylist())
    if pa.types.is_temporal(own):
        return [_milliseconds(number, own.unit) for number in array.view(pa.int64()).to_pylist()]
    return list(array.to_pylist())


def _milliseconds(number: int | None, unit: str) -> int | None:
    if number is None or unit == "ms":
        return number
    assert (unit, number % 1000) == ("us", 0)
    return number // 1000
