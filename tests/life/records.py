"""Records of these tests: each has a number that no other has, in its value and in its row."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from parquet_sink.convert.decoded import Decoded, LearningDecoder, Reading


class Kind(StrEnum):
    """What a record is to the connector."""

    GOOD = "good"
    WIDE = "wide"  # with a column that others lack
    TEXT = "text"  # text where others have a number
    TOMBSTONE = "tombstone"
    POISON = "poison"  # no row, ever
    LATER = "later"  # no row until schemas are registered after it came


PREFIX = b"\x00later"


@dataclass
class Record:
    """offset: set when it is appended."""

    id: int
    kind: Kind
    at_ms: int
    offset: int = -1
    headers = ()

    @property
    def key(self) -> bytes:
        return b"k%d" % self.id

    @property
    def value(self) -> bytes | None:
        match self.kind:
            case Kind.GOOD:
                return b'{"id":%d,"a":%d}' % (self.id, self.id)
            case Kind.WIDE:
                return b'{"id":%d,"a":%d,"late":"%d"}' % (self.id, self.id, self.id * 7919)
            case Kind.TEXT:
                return b'{"id":%d,"a":"text"}' % self.id
            case Kind.TOMBSTONE:
                return None
            case Kind.POISON:
                return b'{"id":%d,' % self.id
            case Kind.LATER:
                return PREFIX + b'{"id":%d,"a":1}' % self.id

    @property
    def always_has_a_row(self) -> bool:
        return self.kind in {Kind.GOOD, Kind.WIDE, Kind.TEXT}


class Registry:
    """The real decoder, and records of schemas that it cannot read before those are registered.

    registered: the number of the last record whose schema is, if it needs one.
    """

    def __init__(self) -> None:
        self.registered = 0

    def around(self, make: Callable[..., LearningDecoder]) -> Callable[..., "LateDecoder"]:
        return lambda settings: LateDecoder(self, make(settings))


class LateDecoder:
    """Implements `LearningDecoder`."""

    def __init__(self, registry: Registry, real: LearningDecoder) -> None:
        self._registry, self._real = registry, real

    def for_topic(self, reading: Reading, learned: bytes | None) -> "LateDecoder":
        return LateDecoder(self._registry, self._real.for_topic(reading, learned))

    @property
    def learned(self) -> bytes | None:
        return self._real.learned

    def forget(self) -> None:
        self._real.forget()

    def decode(self, values: pa.BinaryArray) -> Decoded:
        if self._registry.registered:
            values = pa.array([self._readable(value) for value in values.to_pylist()], pa.binary())
        return self._real.decode(values)

    def _readable(self, value: bytes) -> bytes:
        text = value.removeprefix(PREFIX)
        late = len(text) < len(value) and json.loads(text)["id"] > self._registry.registered
        return value if late else text


def kinds_of(records: Sequence[Record]) -> dict[Any, int]:
    """How many there are of each kind, for notes."""
    return {kind: sum(record.kind is kind for record in records) for kind in Kind}
