"""Which record each row of a file says that it is, and whether it can be that record; by columns, and pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from integration.oracle.records import DIGEST_BYTES, DROP, NEW_FIELDS, digest, value_again

UNLIKE: Final = bytes(DIGEST_BYTES)
"""Of a row that can be no record's."""
_META: Final = ("kafkaPartition", "kafkaOffset", "kafkaPartitionOffset", "__celonis_order", "__deleted")
_OWN: Final = ("id", "key", "amount", "payload", "place_street", "note", "crc")
_KNOWN: Final = frozenset({*_META, *_OWN, "kafkaTimestamp"})
_RAW: Final = ("key", "value", "headers", "timestamp_type")
_RAW_KNOWN: Final = frozenset({*_RAW, "timestamp", "topic", "partition", "offset"})
_HEADERS: Final = [{"key": DROP, "value": b"1"}]


@dataclass(frozen=True)
class Seen:
    """Rows in their order. partitions: (rows,), offsets: (rows,), identities: (rows, 2), 64 bits each."""

    partitions: np.ndarray
    offsets: np.ndarray
    identities: np.ndarray

    @classmethod
    def of(cls, partitions: pa.ChunkedArray, offsets: pa.ChunkedArray, identities: Iterable[bytes]) -> "Seen":
        """A place that is null is that of no record."""
        places = [pc.fill_null(column, -1).to_numpy().astype(np.int64) for column in (partitions, offsets)]
        return cls(*places, words(b"".join(identities)))

    def places(self) -> list[tuple[int, int]]:
        """Partition and offset of each."""
        return [*zip(self.partitions.tolist(), self.offsets.tolist(), strict=True)]

    def identity(self, row: int) -> bytes:
        """Of one row."""
        return bytes(self.identities[row].tobytes())


Reader = Callable[[pa.Table], Seen]


def words(identities: bytes | bytearray) -> np.ndarray:
    """16 bytes each as (count, 2)."""
    return np.frombuffer(identities, np.uint64).reshape(-1, 2)


def shaped(rows: pa.Table) -> Seen:
    """Of a connector that shapes records, and writes where they come from."""
    if not len(rows):
        return _nothing()
    new = [name for name in _filled(rows) if name.startswith(NEW_FIELDS)]
    columns = [*_columns(rows, (*_META, *_OWN)), _rows_with(rows, set(_filled(rows)) - _KNOWN - set(new))]
    identities = map(partial(_shaped, new), *columns, *_columns(rows, new))
    return Seen.of(rows["kafkaPartition"], rows["kafkaOffset"], identities)


def _shaped(
    new: Sequence[str],
    partition: int,
    offset: int,
    place: str,
    order: int,
    deleted: bool,
    number: int | None,
    key: str,
    amount: float | None,
    payload: str | None,
    street: str | None,
    note: str | None,
    crc: int | None,
    alien: bool,
    *since: int | None,
) -> bytes:
    """One row's; its order is its offset."""
    told = key.encode() if isinstance(key, str) else str(key).encode()
    if alien or order != offset or place != f"{partition}_{offset}":
        return UNLIKE
    if deleted:
        others = (number, amount, payload, street, note, crc, *since)
        return UNLIKE if any(one is not None for one in others) else digest(told, None)
    if deleted is None:
        return UNLIKE
    later = {name: value for name, value in zip(new, since, strict=True) if value is not None}
    return digest(told, value_again(number, key, amount, payload, street, note, later, crc))


def raw(rows: pa.Table) -> Seen:
    """Of a connector that keeps records as they came; a row has nothing else."""
    if not len(rows):
        return _nothing()
    alien = _rows_with(rows, set(_filled(rows)) - _RAW_KNOWN)
    return Seen.of(rows["partition"], rows["offset"], map(_raw, *_columns(rows, _RAW), alien))


def _raw(key: bytes | None, value: bytes | None, headers: list[Any], timestamp_type: str, alien: bool) -> bytes:
    if alien or key is None or headers not in ([], _HEADERS) or timestamp_type != "CreateTime":
        return UNLIKE
    return raw_identity(key, value, dropped=headers == _HEADERS)


def raw_identity(key: bytes, value: bytes | None, *, dropped: bool) -> bytes:
    """Of a record with its header. dropped: it has the one by which a connector that shapes drops it."""
    return digest(key + (b"!" if dropped else b"."), value)


def _nothing() -> Seen:
    return Seen(np.zeros(0, np.int64), np.zeros(0, np.int64), words(b""))


def _filled(rows: pa.Table) -> list[str]:
    """Names of columns that are not null in all rows: the others cost much and tell nothing."""
    return [name for name in rows.column_names if rows[name].null_count < len(rows)]


def _columns(rows: pa.Table, names: Iterable[str]) -> Iterator[Iterable[Any]]:
    """By name; nulls for one that is not there."""
    filled = set(_filled(rows))
    return (rows[name].to_pylist() if name in filled else repeat(None) for name in names)


def _rows_with(rows: pa.Table, names: Iterable[str]) -> Iterable[bool]:
    """Whether any of these columns is not null, by row."""
    found = np.zeros(len(rows), bool)
    for name in names:
        found |= rows[name].is_valid().to_numpy()
    return found.tolist()
