"""A Protobuf message, row by row, to what Arrow takes: the definition of what a record becomes.

Records are few here: those that come alone, and those that cannot be read together with others. `columns`
gives the same for many at once.
"""

from operator import itemgetter
from typing import Any

from parquet_sink.convert.protobuf.shape import Many, Member, Scalar, Shape, Struct, Table
from parquet_sink.convert.protobuf.values import Unfit


def row(shape: Shape, value: Any) -> object:
    """What `value`, as the library gives it, is in a column of `rows.arrow`. Raises Unfit with the path below."""
    if isinstance(shape, Scalar):
        if shape.check is not None:
            shape.check(value)
        return value if shape.convert is None else shape.convert(value)
    if isinstance(shape, Struct):
        return {member.name: _member(member, value) for member in shape.members}
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


def _member(member: Member, message: Any) -> object:
    if member.has is not None and not member.has(message, member.source):
        return None
    return _below(member.name, member.shape, member.get(message))


def _below(step: str | int, shape: Shape, value: Any) -> object:
    try:
        return row(shape, value)
    except Unfit as unfit:
        raise unfit.below(step) from None
