"""Confluent's wire format, many values at once: which schema each names, and what comes after that name.

A value is the byte 0x00, the schema's id (4 bytes, big-endian; 8 where Apicurio is set so), and the payload.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

MAGIC: Final = 0
_LOOKS: Final = (
    (b"\x1f\x8b", "0x1f8b, as gzip does"),
    (b"\x28\xb5\x2f\xfd", "0x28b52ffd, as zstd does"),
    (b"Obj\x01", "as an Avro container file does"),
    (b"{", "0x7b: it looks like JSON without a schema id"),
    (b"[", "0x5b: it looks like JSON without a schema id"),
    (b'"', "0x22: it looks like JSON without a schema id"),
    (b"<", "0x3c: it looks like XML"),
)
_LONGEST: Final = 2**31 - 1
"""No value is longer. PyArrow's binary_slice without an end (26.0) overflows, and fails."""


@dataclass(frozen=True)
class Group:
    """Records of one schema. positions: increasing; None when these are all the values, in their order.

    payloads: one for each, without the header; may be a slice of a longer array (offset above 0).
    """

    schema_id: int
    payloads: pa.BinaryArray
    positions: pa.Int64Array | None = None

    def places(self) -> Iterable[int]:
        """The positions, one by one."""
        return range(len(self.payloads)) if self.positions is None else self.positions.to_pylist()

    def placed(self, within: pa.Int64Array) -> pa.Int64Array:
        """Where payloads at these positions of the group stand among all values."""
        return within if self.positions is None else self.positions.take(within)


@dataclass(frozen=True)
class Split:
    """Each value is in one group, or in `invalid`: by position, why it names no schema."""

    groups: tuple[Group, ...] = ()
    invalid: Mapping[int, str] = field(default_factory=dict)


def split(values: pa.BinaryArray, id_bytes: int) -> Split:
    """values: no nulls. id_bytes: 4 or 8. Costs the same for one bad value as for none; groups come in any order."""
    if not len(values):
        return Split()
    size = 1 + id_bytes
    first = bytes(values[0].as_buffer()[:size])
    if refusal(first, size) is None and pc.all(pc.starts_with(values, first)).as_py():
        return Split((Group(_schema_id(first), _after(values, size)),))
    return _apart(values, size)


def refusal(header: bytes, size: int) -> str | None:
    """Why a value that begins with these bytes (all of it, when it is shorter than `size`) names no schema."""
    parts = f"the byte 0x00, a schema id of {size - 1} bytes, the data"
    wanted = f"Confluent's wire format, which value.converter asks for ({parts})"
    if not header:
        return f"the value is empty, and not in {wanted}"
    if header[0] != MAGIC:
        return f"the value is not in {wanted}: it begins with {_look(header)}"
    if len(header) < size:
        return f"the value has {len(header)} bytes, too few for {wanted}"
    if _schema_id(header) < 0:
        return f"the value is not in {wanted}: the id would be negative"
    return None


def _look(header: bytes) -> str:
    return next((look for start, look in _LOOKS if header.startswith(start)), f"0x{header[0]:02x}")


def _schema_id(header: bytes) -> int:
    return int.from_bytes(header[1:], "big", signed=True)


def _after(values: pa.BinaryArray, size: int) -> pa.BinaryArray:
    return pc.binary_slice(values, size, _LONGEST)


def _apart(values: pa.BinaryArray, size: int) -> Split:
    """Brings records of one header together: a stable sort by header keeps positions increasing."""
    headers = pc.binary_slice(values, 0, size).dictionary_encode()
    positions = pc.array_sort_indices(headers.indices).cast(pa.int64())
    payloads = _after(values.take(positions), size)
    counts = pc.value_counts(headers.indices)
    sizes = dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))
    groups: list[Group] = []
    invalid: dict[int, str] = {}
    start = 0
    for code, header in enumerate(headers.dictionary.to_pylist()):
        count = sizes[code]
        mine = positions.slice(start, count)
        if reason := refusal(header, size):
            invalid.update(dict.fromkeys(mine.to_pylist(), reason))
        else:
            groups.append(Group(_schema_id(header), payloads.slice(start, count), mine))
        start += count
    return Split(tuple(groups), invalid)
