"""Records that name a schema in the registry: the wire format, one decoder for each schema."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

import pyarrow as pa

from parquet_sink.convert.decoded import Decoded, Decoder, Piece
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.registry.settings import SchemaKind
from parquet_sink.convert.registry.wire import Group, split
from parquet_sink.process.lru_cache import LruCache

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
        self._decoders: LruCache[int, _Kept] = LruCache(cache_size, weigh=lambda kept: kept.size, max_weight=MOST_TEXT)
        self._unknown: LruCache[int, tuple[str, float]] = LruCache(MOST_UNKNOWN)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """values: no nulls. Raises RegistryFailed when a schema that is needed cannot be had."""
        found = split(values, self._id_bytes)
        pieces: list[Piece] = []
        invalid = dict(found.invalid)
        for group in found.groups:
            decoder = self._decoder(group.schema_id)
            if isinstance(decoder, str):
                invalid.update(dict.fromkeys(group.places(), decoder))
                continue
            decoded = decoder.decode(group.payloads)
            pieces += [_placed(piece, group) for piece in decoded.pieces]
            if decoded.invalid:
                places = list(group.places())
                invalid.update({places[position]: reason for position, reason in decoded.invalid.items()})
        return Decoded(tuple(pieces), invalid)

    def _decoder(self, schema_id: int) -> Decoder | str:
        """The decoder of a schema, or why its records have no row."""
        if (known := self._decoders.get(schema_id)) is not None:
            return known.decoder
        unknown = self._unknown.get(schema_id)
        if unknown is not None and self._clock() < unknown[1]:
            return unknown[0]
        try:
            schema = self._schemas.get(schema_id)
        except InvalidValue as error:
            self._unknown.put(schema_id, (str(error), self._clock() + ASK_AGAIN_S))
            return str(error)
        made = self._made(schema)
        self._decoders.put(schema_id, _Kept(made, schema.size))
        return made

    def _made(self, schema: RegisteredSchema) -> Decoder | str:
        if schema.kind != self._kind:
            return f"schema id {schema.id} is registered as {schema.kind}, and the converter reads {self._kind}"
        try:
            return self._make(schema)
        except InvalidValue as error:
            return f"schema id {schema.id}: {error}"


@dataclass(frozen=True)
class _Kept:
    """decoder: or why there is none. size: characters of its schema."""

    decoder: Decoder | str
    size: int


def _placed(piece: Piece, group: Group) -> Piece:
    return replace(piece, positions=group.placed(piece.positions))
