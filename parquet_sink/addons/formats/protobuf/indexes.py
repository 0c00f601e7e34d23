"""Which message type a record holds: Confluent's message indexes.

Between the schema's id and the message stand zigzag varints: how many, then the place of the message type in the file
and of each nested one in its parent. A single 0 stands for the first message of the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.addons.formats.protobuf.compile import Compiled
from parquet_sink.convert.decoded import one_by_one
from parquet_sink.convert.invalid import InvalidValue

MAX_INDEXES = 100
_MAX_VARINT = 5
_END = 2**31 - 1

Indexes = tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """Records of one message type. positions: int64, increasing; payloads: binary, the messages alone."""

    indexes: Indexes
    positions: pa.Int64Array
    payloads: pa.BinaryArray


def split(values: pa.BinaryArray) -> tuple[list[Group], dict[int, str]]:
    """The values by message type, and those without legible indexes, by position, with the reason.

    values: no nulls. Where all begin with the same bytes, as is usual, nothing is done record by record.
    """
    if not len(values):
        return [], {}
    try:
        indexes, length = read(values[0].as_py())
    except InvalidValue:
        return _one_by_one(values)
    prefix = values[0].as_py()[:length]
    if not pc.all(pc.starts_with(values, prefix)).as_py():
        return _one_by_one(values)
    positions = pa.array(np.arange(len(values)))
    return [Group(indexes, positions, pc.binary_slice(values, length, _END))], {}


def _one_by_one(values: pa.BinaryArray) -> tuple[list[Group], dict[int, str]]:
    positions, found, invalid = one_by_one(values, lambda value: (value, *read(value)))
    by_type: dict[Indexes, tuple[list[int], list[bytes]]] = {}
    for position, (value, indexes, length) in zip(positions, found, strict=True):
        places, payloads = by_type.setdefault(indexes, ([], []))
        places.append(position)
        payloads.append(value[length:])
    groups = [
        Group(indexes, pa.array(places, pa.int64()), pa.array(payloads, pa.binary()))
        for indexes, (places, payloads) in by_type.items()
    ]
    return groups, invalid


def read(value: bytes) -> tuple[Indexes, int]:
    """The indexes at the start of `value`, and how many bytes they take. Raises InvalidValue."""
    count, at = _varint(value, 0)
    if not 0 <= count <= MAX_INDEXES:
        raise InvalidValue(f"the value names {count} message indexes, which cannot be")
    indexes = []
    for _ in range(count):
        index, at = _varint(value, at)
        indexes.append(index)
    return tuple(indexes) or (0,), at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of at most 32 bits, and where the next one begins."""
    number = 0
    for shift, byte in enumerate(value[at : at + _MAX_VARINT]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            number &= 0xFFFFFFFF
            return (number >> 1) ^ -(number & 1), at + shift + 1
    if len(value) - at < _MAX_VARINT:
        raise InvalidValue("the value ends within the message indexes")
    raise InvalidValue("the value's message indexes are not numbers of 32 bits")


def message_at(compiled: Compiled, indexes: Indexes) -> Any:
    """The descriptor of the message type at `indexes`, as ProtobufSchema counts. Raises InvalidValue."""
    file = compiled.file
    if not file.message_types_by_name and len(file.public_dependencies) == 1:
        file = file.public_dependencies[0]
    types = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        if not 0 <= index < len(types):
            raise InvalidValue(f"the schema has no message with the indexes {', '.join(map(str, indexes))}")
        found = types[index]
        types = list(found.nested_types if compiled.serialized else _written(compiled, found))
    return found


def _written(compiled: Compiled, message: Any) -> Iterator[Any]:
    """Nested messages as the text has them: without those that protoc adds for maps and groups."""
    fields = (*message.fields, *message.extensions)
    groups = {field.message_type.full_name for field in fields if is_group(compiled, field)}
    for nested in message.nested_types:
        if not nested.GetOptions().map_entry and nested.full_name not in groups:
            yield nested


def is_group(compiled: Compiled, field: Any) -> bool:
    """Whether the field is a group of proto2, message and field in one."""
    return bool(field.type == field.TYPE_GROUP and field.file.name not in compiled.editions)
