"""JSON without a schema where it need be no object: keys of records, which are often a number or a text.

Objects are read as values are (`decoder`); whatever else is there becomes a tree as it is.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Decoded, LearningDecoder, Reading, Trees
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import decoder as json
from parquet_sink.convert.json.exact import parse_any

_OBJECT = "{"
"""What begins otherwise is read one by one, also an object after white space."""


def decoder() -> LearningDecoder:
    """A `convert.decoded.LearningDecoder`: `Trees.trees` may hold text, numbers, booleans and lists."""
    return JsonKeyDecoder(json.decoder())


class JsonKeyDecoder:
    """objects: reads those that are objects."""

    def __init__(self, objects: LearningDecoder) -> None:
        self._objects = objects

    def for_topic(self, reading: Reading, learned: bytes | None) -> LearningDecoder:
        """As `convert.decoded.LearningDecoder` says."""
        return JsonKeyDecoder(self._objects.for_topic(reading, learned))

    @property
    def learned(self) -> bytes | None:
        """What was learned of objects."""
        return self._objects.learned

    def forget(self) -> None:
        """Learn from the next block as from the first."""
        self._objects.forget()

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """As `convert.decoded.Decoder` says; `null` is no key, as for Connect's JsonConverter."""
        objects = pc.starts_with(values, _OBJECT)
        if not objects.false_count:
            return self._objects.decode(values)
        places = pc.indices_nonzero(objects).cast(pa.int64())
        found = self._objects.decode(values.filter(objects)) if len(places) else Decoded()
        moved = tuple(replace(piece, positions=places.take(piece.positions)) for piece in found.pieces)
        rest = _one_by_one(values, np.flatnonzero(~objects.to_numpy(zero_copy_only=False)).tolist())
        invalid = {places[at].as_py(): reason for at, reason in found.invalid.items()}
        return Decoded((*moved, *rest.pieces), {**invalid, **rest.invalid})


def _one_by_one(values: pa.BinaryArray, which: Sequence[int]) -> Decoded:
    trees: dict[int, Any] = {}
    invalid: dict[int, str] = {}
    for position in which:
        try:
            tree = parse_any(values[position].as_py())
        except InvalidValue as error:
            invalid[position] = str(error)
            continue
        if tree is not None:
            trees[position] = tree
    pieces = (Trees(pa.array(list(trees), pa.int64()), list(trees.values())),) if trees else ()
    return Decoded(pieces, invalid)
