"""Names of fields that a header of each record lists, to be left out of it."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from parquet_sink.addons.transforms.fields.errors import kind, tree_kind
from parquet_sink.config.report import quoted
from parquet_sink.convert.decoded import Piece, SchemaColumns, Untyped
from parquet_sink.transform.fields.plain import columns_of, records
from parquet_sink.transform.headers import ABSENT, Headers
from parquet_sink.transform.protocol import RecordFault
from parquet_sink.transform.records import as_trees, rows_of

Names = frozenset[str]
NONE: Final[Names] = frozenset()


class LeftOut:
    """What the records of a batch leave out. headers: None: nothing. name: of the header; the first of a record counts.

    only_optional: of records with a schema only fields that may be null.
    """

    def __init__(self, headers: Headers | None, name: str, *, only_optional: bool) -> None:
        self._headers, self._name, self._only_optional = headers, name, only_optional
        self._at = None if headers is None or not name else headers.first(name)
        self._known: dict[int, Names | str] = {int(ABSENT): NONE}

    def of(self, position: int) -> Names:
        """The names of a record. Raises RecordFault where its header is not a list."""
        found = NONE if self._at is None else self._read(int(self._at[position]))
        if isinstance(found, str):
            raise RecordFault(found)
        return found

    def groups(self, positions: np.ndarray, rejected: dict[int, str]) -> Iterator[tuple[Names, np.ndarray]]:
        """Places in `positions` by the names that they leave out. rejected: gets those whose header is not a list."""
        if self._at is None:
            yield NONE, np.arange(len(positions))
            return
        found: dict[Names, list[int]] = {}
        for place, at in enumerate(self._at[positions].tolist()):
            names = self._read(at)
            if isinstance(names, str):
                rejected[int(positions[place])] = names
            else:
                found.setdefault(names, []).append(place)
        for each, places in found.items():
            yield each, np.array(places, np.int64)

    def keeps(self, field: pa.Field, names: Names) -> bool:
        """Whether a field of a schema stays."""
        return field.name not in names or (self._only_optional and not field.nullable)

    def from_keys(self, keys: Sequence[Piece], chosen: np.ndarray, rejected: dict[int, str]) -> Iterator[Piece]:
        """The keys without those fields. chosen: a mask over the batch, of the records that leave something out."""
        for piece in keys:
            at = piece.positions.to_numpy()
            places = np.flatnonzero(chosen[at])
            yield from _some(piece, np.flatnonzero(~chosen[at]))
            for names, rows in self.groups(at[places], {}):
                part = rows_of(piece, places[rows])
                yield from self._from_key(part, names, rejected) if names else (part,)

    def _from_key(self, part: Piece, names: Names, rejected: dict[int, str]) -> Iterator[Piece]:
        if isinstance(part, SchemaColumns):
            if not pa.types.is_struct(part.rows.type):
                rejected |= dict.fromkeys(part.positions.to_pylist(), _no_key(kind(part.rows.type)))
                return
            fields = [one for one in part.rows.type if self.keeps(one, names)]
            arrays = columns_of(part.rows)
            rows = records(fields, [arrays[one.name] for one in fields], len(part.rows))
            yield SchemaColumns(part.positions, rows)
            return
        found = as_trees(part)
        positions, trees = [], []
        for position, tree in zip(found.positions.to_pylist(), found.trees, strict=True):
            if isinstance(tree, dict):
                positions.append(position)
                trees.append({name: value for name, value in tree.items() if name not in names})
            else:
                rejected[position] = _no_key(tree_kind(tree))
        if trees:
            yield Untyped(pa.array(positions, pa.int64()), trees)

    def _read(self, at: int) -> Names | str:
        if at not in self._known:
            assert self._headers is not None
            value = self._headers.value(at)
            plain = value.as_py() if isinstance(value, pa.Scalar) else value
            if plain is None:
                self._known[at] = NONE
            elif isinstance(plain, list):
                self._known[at] = frozenset(one for one in plain if isinstance(one, str))
            else:
                self._known[at] = f"drop.fields.header.name={quoted(self._name)}: the record's header is not a list"
        return self._known[at]


def _some(piece: Piece, rows: np.ndarray) -> tuple[Piece, ...]:
    return (rows_of(piece, rows),) if len(rows) else ()


def _no_key(what: str) -> str:
    return f"drop.fields.from.key=true takes fields from the key, and the key is {what}"
