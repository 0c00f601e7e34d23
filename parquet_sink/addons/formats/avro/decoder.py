"""Decodes Avro records of one registered schema to columns.

The exact decoder defines the result; the fast one does what it can of it, and whatever it leaves goes datum by datum
through the exact one. So a bad record costs its own time and nobody else's.

Measured, CPU µs per record, blocks of 10,000 (one by one in brackets): 7 flat fields of 163 bytes as JSON 0.09 (3.4);
three levels with optional records and a decimal 0.13 (4.9); two arrays, one of records, and a map 0.4 (13).
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from parquet_sink.addons.formats.avro import fast as avro_fast
from parquet_sink.addons.formats.avro.exact import Exact, Node
from parquet_sink.addons.formats.avro.fast import offsets_of
from parquet_sink.addons.formats.avro.leaves import Ints
from parquet_sink.addons.formats.avro.schema import parse
from parquet_sink.addons.formats.avro.settings import AvroConverter
from parquet_sink.convert.decoded import Decoded, Decoder, SchemaColumns, one_by_one
from parquet_sink.convert.registry.registered import RegisteredSchema

_MAX_RECORDS = 16_384
_MAX_BYTES = 8 * 2**20
_FEW = 32
"""So few records are decoded one by one, because each column costs about 20 µs however few they are."""

_AT_ONCE = 200
"""Records that are Python values at the same time, where they are decoded one by one."""

_TOO_LARGE = "it is larger than a column can be"

Invalid = dict[int, str]


def decoder(schema: RegisteredSchema, settings: AvroConverter) -> Decoder:
    """What decodes datums of this schema, without the header of the wire format. Raises InvalidValue.

    Types as Confluent's AvroData gives them, as far as `settings` has its options.
    """
    return AvroDecoder(parse(schema, settings))


class AvroDecoder:
    """A decoder for datums of one schema."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._exact = Exact(node)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """One piece for each part of at most 16,384 records or 8 MiB. A null datum is a tombstone."""
        pieces: list[SchemaColumns] = []
        invalid: Invalid = {}
        for start, part in _parts(values):
            few = len(part) <= _FEW
            positions, rows, wrong = self._one_by_one(part, np.arange(len(part))) if few else self._at_once(part)
            invalid.update((start + position, why) for position, why in wrong.items())
            if len(rows):
                pieces.append(SchemaColumns(pa.array(positions + start, pa.int64()), rows))
        return Decoded(tuple(pieces), invalid)

    def _at_once(self, values: pa.BinaryArray) -> "_Rows":
        """All datums at once, and what that leaves one by one."""
        rows, done = avro_fast.decode(self._node, values)
        left = np.flatnonzero(~done)
        kept = done & rows.is_valid().to_numpy(zero_copy_only=False) if self._node.nullable else done
        rows = rows if kept.all() else rows.filter(pa.array(kept))
        at = np.flatnonzero(kept)
        positions, exact_rows, invalid = self._one_by_one(values, left)
        if not len(positions):
            return at, rows, invalid
        both = np.concatenate([at, positions])
        order = np.argsort(both)
        return both[order], pa.concat_arrays([rows, exact_rows]).take(pa.array(order)), invalid

    def _one_by_one(self, values: pa.BinaryArray, which: Ints) -> "_Rows":
        """The datums at these positions, each by itself."""
        positions: list[int] = []
        arrays: list[pa.Array] = []
        invalid: Invalid = {}
        for start in range(0, len(which), _AT_ONCE):
            some = which[start : start + _AT_ONCE]
            part = values if len(some) == len(values) else values.take(pa.array(some))
            at, decoded, wrong = one_by_one(part, self._exact.value)
            places = some.tolist()
            invalid.update((places[index], why) for index, why in wrong.items())
            rows = _rows(decoded, self._node)
            if rows is None:
                invalid.update((places[index], _TOO_LARGE) for index in at)
            else:
                positions += [places[index] for index in at]
                arrays.append(rows)
        rows = pa.concat_arrays(arrays) if arrays else pa.array([], self._node.arrow)
        return np.array(positions, np.int64), rows, invalid


_Rows = tuple[Ints, pa.Array, Invalid]
"""Positions, a row for each, and why others have none."""


def _rows(values: list[object], node: Node) -> pa.Array | None:
    """One array, or None where Arrow cannot hold them in one."""
    try:
        rows = pa.array(values, node.arrow)
    except pa.ArrowCapacityError:
        return None
    return rows if isinstance(rows, pa.Array) else None


def _parts(values: pa.BinaryArray) -> Iterator[tuple[int, pa.BinaryArray]]:
    """Slices of bounded length and size, each with its place."""
    offsets = offsets_of(values)
    start = 0
    while start < len(values):
        end = int(np.searchsorted(offsets, int(offsets[start]) + _MAX_BYTES, side="right")) - 1
        end = min(max(end, start + 1), start + _MAX_RECORDS)
        yield start, values.slice(start, end - start)
        start = end
