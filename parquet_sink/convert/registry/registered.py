"""Decodes records that name a schema in the registry, in Confluent's wire format, by one decoder for each schema.

A value is the byte 0x00, the schema's id (4 bytes, big-endian; 8 where Apicurio is set so), and the payload.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Decoded, Decoder, Piece
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.settings import SchemaKind
from parquet_sink.process.lru_cache import LruCache

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


def split(values: pa.BinaryArray, id_bytes: int) -> tuple[list[Group], dict[int, str]]:
    """The values by schema, in any order, and by position why others name none.

    values: no nulls. id_bytes: 4 or 8. Costs the same for one bad value as for none.
    """
    if not len(values):
        return [], {}
    size = 1 + id_bytes
    first = bytes(values[0].as_buffer()[:size])
    if refusal(first, size) is None and pc.all(pc.starts_with(values, first)).as_py():
        return [Group(_schema_id(first), pc.binary_slice(values, size, _LONGEST))], {}
    return _apart(values, size)


def refusal(header: bytes, size: int) -> str | None:
    """Why a value that begins with these bytes (all of it, when it is shorter than `size`) names no schema."""
    parts = f"the byte 0x00, a schema id of {size - 1} bytes, the data"
    wanted = f"Confluent's wire format, which value.converter asks for ({parts})"
    if not header:
        return f"the value is empty, and not in {wanted}"
    if header[0] != MAGIC:
        look = next((look for start, look in _LOOKS if header.startswith(start)), f"0x{header[0]:02x}")
        return f"the value is not in {wanted}: it begins with {look}"
    if len(header) < size:
        return f"the value has {len(header)} bytes, too few for {wanted}"
    if _schema_id(header) < 0:
        return f"the value is not in {wanted}: the id would be negative"
    return None


def _schema_id(header: bytes) -> int:
    return int.from_bytes(header[1:], "big", signed=True)


def _apart(values: pa.BinaryArray, size: int) -> tuple[list[Group], dict[int, str]]:
    """Brings records of one header together: a stable sort by header keeps positions increasing."""
    headers = pc.binary_slice(values, 0, size).dictionary_encode()
    positions = pc.array_sort_indices(headers.indices).cast(pa.int64())
    payloads = pc.binary_slice(values.take(positions), size, _LONGEST)
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
    return groups, invalid


ASK_AGAIN_S: Final = 5.0
"""How long an id that is not registered is not asked for again."""
MOST_UNKNOWN: Final = 10_000
MOST_TEXT: Final = 8 * 1024 * 1024
"""Characters of all schemas whose decoders are kept, the newest apart. A decoder has about 30 times as many bytes."""


@dataclass(frozen=True)
class Referenced:
    """A schema that another one refers to. name: as the reference has it (a full name, a file name, a URL)."""

    name: str
    text: str


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as it was registered.

    references: everything it refers to, directly or through others, each after those that it refers to itself.
    """

    id: int
    kind: SchemaKind
    text: str
    references: tuple[Referenced, ...] = ()

    @property
    def size(self) -> int:
        """Characters of all texts."""
        return len(self.text) + sum(len(reference.text) for reference in self.references)


class Schemas(Protocol):
    """Where schemas come from."""

    def get(self, schema_id: int) -> RegisteredSchema:
        """Raises InvalidValue for an id that is not registered, RegistryFailed when nobody answers."""
        ...


class RegisteredDecoder:
    """Decodes values in the wire format, each with the schema that it names; not for several threads.

    make: a decoder of payloads for one schema; raises InvalidValue for a schema that it cannot read.
    id_bytes: 4 or 8. cache_size: schemas whose decoders (or refusals) are kept. clock: seconds, never backwards.
    """

    def __init__(
        self,
        schemas: Schemas,
        kind: SchemaKind,
        make: Callable[[RegisteredSchema], Decoder],
        id_bytes: int,
        cache_size: int,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._schemas, self._kind, self._make, self._id_bytes, self._clock = schemas, kind, make, id_bytes, clock
        self._decoders: LruCache[int, tuple[Decoder | str, int]] = LruCache(
            cache_size, weigh=itemgetter(1), max_weight=MOST_TEXT
        )
        self._unknown: LruCache[int, tuple[str, float]] = LruCache(MOST_UNKNOWN)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """values: no nulls. Raises RegistryFailed when a schema that is needed cannot be had."""
        groups, invalid = split(values, self._id_bytes)
        pieces: list[Piece] = []
        for group in groups:
            decoder = self._decoder(group.schema_id)
            if isinstance(decoder, str):
                invalid.update(dict.fromkeys(group.places(), decoder))
                continue
            decoded = decoder.decode(group.payloads)
            pieces += [replace(piece, positions=group.placed(piece.positions)) for piece in decoded.pieces]
            if decoded.invalid:
                places = list(group.places())
                invalid.update({places[position]: reason for position, reason in decoded.invalid.items()})
        return Decoded(tuple(pieces), invalid)

    def schema_id_of(self, value: bytes) -> int | None:
        """The id that a value names, whether it is registered or not; None for a value in another form."""
        header = value[: 1 + self._id_bytes]
        return None if refusal(header, 1 + self._id_bytes) else _schema_id(header)

    def _decoder(self, schema_id: int) -> Decoder | str:
        """The decoder of a schema, or why its records have no row."""
        if (known := self._decoders.get(schema_id)) is not None:
            return known[0]
        unknown = self._unknown.get(schema_id)
        if unknown is not None and self._clock() < unknown[1]:
            return unknown[0]
        try:
            schema = self._schemas.get(schema_id)
        except InvalidValue as error:
            self._unknown.put(schema_id, (str(error), self._clock() + ASK_AGAIN_S))
            return str(error)
        made = self._made(schema)
        self._decoders.put(schema_id, (made, schema.size))
        return made

    def _made(self, schema: RegisteredSchema) -> Decoder | str:
        if schema.kind != self._kind:
            return f"schema id {schema.id} is registered as {schema.kind}, and the converter reads {self._kind}"
        try:
            return self._make(schema)
        except InvalidValue as error:
            return f"schema id {schema.id}: {error}"
