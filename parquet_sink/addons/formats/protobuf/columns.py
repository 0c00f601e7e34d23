"""Decodes Protobuf messages to Arrow: one by one (`row`, the definition), or many at once, field by field (`column`).

One by one go those that come alone, and those that cannot be read together with others. Of many the library is asked
for one field of all, then for the next: one attribute access for each value and nothing else in Python. Lists of
messages are taken in pieces, so that a record with millions of elements does not become as many Python objects.
"""

from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import Any

import pyarrow as pa

from parquet_sink.addons.formats.protobuf.values import Many, Member, Scalar, Shape, Struct, Table
from parquet_sink.convert.invalid import Unfit


def row(shape: Shape, value: Any) -> object:
    """What `value`, as the library gives it, is in a column of Arrow. Raises Unfit with the path below."""
    if isinstance(shape, Scalar):
        if shape.check is not None:
            shape.check(value)
        return value if shape.convert is None else shape.convert(value)
    if isinstance(shape, Struct):
        return {member.name: _member_of_one(member, value) for member in shape.members}
    if isinstance(shape, Many):
        return [_below(index, shape.element, element) for index, element in enumerate(value)]
    for key in {entry.key for entry in value} if shape.explicit else value:
        _below("key", shape.key, key)
    return [(key, _below("value", shape.value, below)) for key, below in entries(shape, value)]


def entries(shape: Table, value: Any) -> list[tuple[Any, Any]]:
    """Keys with values, sorted: the wire has no order that counts. Of equal keys the last one."""
    if shape.explicit:
        return sorted({entry.key: entry.value for entry in value}.items(), key=itemgetter(0))
    return [(key, value[key]) for key in sorted(value)]


def _member_of_one(member: Member, message: Any) -> object:
    if member.has is not None and not member.has(message, member.source):
        return None
    return _below(member.name, member.shape, member.get(message))


def _below(step: str | int, shape: Shape, value: Any) -> object:
    try:
        return row(shape, value)
    except Unfit as unfit:
        raise unfit.below(step) from None


PIECE = 20_000
"""Elements of lists that are Python objects at the same time."""


def column(shape: Shape, values: list[Any], holes: bool = False) -> pa.Array:
    """One Arrow array of what the library gives. holes: some of `values` may be None, which is null.

    Raises Unfit when any value does not fit, with the names on the path to it but no positions in lists.
    """
    if isinstance(shape, Scalar):
        return _scalars(shape, values, holes)
    mask = pa.array([value is None for value in values], pa.bool_()) if holes else None
    if isinstance(shape, Struct):
        return _structs(shape, values, mask)
    present = [() if value is None else value for value in values] if holes else values
    if isinstance(shape, Many):
        elements = _pieces(shape.element, present)
        return pa.ListArray.from_arrays(_offsets(present), elements, type=shape.arrow, mask=mask)
    return _tables(shape, present, mask)


def _scalars(shape: Scalar, values: list[Any], holes: bool) -> pa.Array:
    convert = shape.convert
    if convert is not None:
        values = [None if value is None else convert(value) for value in values] if holes else [*map(convert, values)]
    try:
        return pa.array(values, shape.arrow)
    except (OverflowError, pa.ArrowInvalid):
        raise Unfit("holds a value that its column cannot") from None


def _structs(shape: Struct, messages: list[Any], mask: pa.BooleanArray | None) -> pa.Array:
    if not shape.members:
        return pa.array([None if message is None else {} for message in messages], shape.arrow)
    holes = mask is not None
    if holes and not all(member.nullable for member in shape.members):  # Parquet has no null in a required column
        empty = next((type(message)() for message in messages if message is not None), None)
        if empty is None:
            return pa.array(messages, shape.arrow)
        messages, holes = [empty if message is None else message for message in messages], False
    children = [_member(member, messages, holes) for member in shape.members]
    return pa.StructArray.from_arrays(children, fields=list(shape.arrow), mask=mask)


def _member(member: Member, messages: list[Any], holes: bool) -> pa.Array:
    try:
        values, some_absent = _values(member, messages, holes)
        return column(member.shape, values, some_absent)
    except Unfit as unfit:
        raise unfit.below(member.name) from None


def _values(member: Member, messages: list[Any], holes: bool) -> tuple[list[Any], bool]:
    """One field of each message, and whether some are None: for no message, and for an absent field that can be."""
    get, has, name = member.get, member.has, member.source
    if has is not None:
        there = [message is not None and has(message, name) for message in messages]
        if not all(there):
            return [get(message) if has else None for message, has in zip(messages, there, strict=True)], True
    elif holes:
        return [None if message is None else get(message) for message in messages], True
    return [*map(get, messages)], False


def _offsets(lists: list[Any]) -> pa.Int32Array:
    return pa.array(accumulate(map(len, lists), initial=0), pa.int32())


def _pieces(shape: Shape, lists: list[Any]) -> pa.Array:
    """The elements of all lists, one after the other."""
    elements = chain.from_iterable(lists)
    arrays = []
    while piece := list(islice(elements, PIECE)):
        arrays.append(column(shape, piece))
    if len(arrays) == 1:
        return arrays[0]
    return pa.concat_arrays(arrays) if arrays else pa.array([], shape.arrow)


def _tables(shape: Table, maps: list[Any], mask: pa.BooleanArray | None) -> pa.Array:
    try:
        tables = [entries(shape, value) for value in maps]
        keys = column(shape.key, [key for table in tables for key, _ in table])
    except (TypeError, UnicodeDecodeError):  # texts that are not UTF-8 are bytes: not sorted among texts, nor looked up
        raise Unfit("has a key that its column cannot hold") from None
    try:
        below = _pieces(shape.value, [[value for _, value in table] for table in tables])
    except Unfit as unfit:
        raise unfit.below("value") from None
    return pa.MapArray.from_arrays(_offsets(tables), keys, below, type=shape.arrow, mask=mask)
