"""Decodes JSON without a schema to one tree for each record, and trees to JSON text.

Trees are for what needs them: exploding, chunks, and whatever `decoder` does not read at once.
"""

from collections.abc import Sequence
from math import isfinite, isnan

import numpy as np
import orjson
import pyarrow as pa

from parquet_sink.convert.decoded import Decoded, Float32, Trees, Typed, one_by_one
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import parse, parse_any


class JsonTrees:
    """A decoder. anything, any_tree: as in `convert.decoded.Reading`; text is a string's content, else JSON."""

    def __init__(self, *, anything: bool, any_tree: bool = False) -> None:
        self._anything, self._any_tree = anything, any_tree

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """As `convert.decoded.Decoder` says; `null` is a tombstone, as for Connect's JsonConverter."""
        positions, found, invalid = one_by_one(values, self._parse)
        if not self._anything or self._any_tree:
            return Decoded(_trees(positions, found), invalid)
        texts = {at: one for at, one in zip(positions, found, strict=True) if isinstance(one, str)}
        trees = {at: one for at, one in zip(positions, found, strict=True) if at not in texts}
        typed = Typed(pa.array([*texts], pa.int64()), pa.array([*texts.values()], pa.string()))
        return Decoded((*_trees([*trees], [*trees.values()]), *((typed,) if texts else ())), invalid)

    def _parse(self, value: bytes) -> object:
        if value == b"null":
            return None
        if self._any_tree:
            return parse_any(value)
        if not self._anything:
            return parse(value)
        found = parse_any(value)
        if isinstance(found, dict) and found:
            return found
        return found if isinstance(found, str) else orjson.dumps(found).decode()


def text_of(tree: object) -> str:
    """The JSON text of a value without a schema, as transforms may have left it. Raises InvalidValue.

    Dates and times are the numbers that columns store, numbers that are none text, as in `rows.json_text`.
    """
    try:
        text = orjson.dumps(tree, default=_number).decode()
        return text if "null" not in text else orjson.dumps(_finite(tree), default=_number).decode()
    except (orjson.JSONEncodeError, RecursionError):
        raise InvalidValue(
            "its text cannot be made: it is nested too deeply, or has an integer beyond 64 bits, or what no JSON has"
        ) from None


def _finite(tree: object) -> object:
    """The same, with text for each number that is none, of which orjson makes null."""
    if isinstance(tree, float):
        return tree if isfinite(tree) else "NaN" if isnan(tree) else "Infinity" if tree > 0 else "-Infinity"
    if type(tree) is list:
        return [_finite(one) for one in tree]
    return {name: _finite(one) for name, one in tree.items()} if type(tree) is dict else tree


def _number(value: object) -> float:
    """Of what orjson does not know. A fraction of 32 bits has as few digits as tell it from others of these."""
    if isinstance(value, Float32):
        return float(str(np.float32(value)))
    if not isinstance(value, pa.Scalar):
        raise TypeError
    number: int = value.value
    return number


def _trees(positions: Sequence[int], trees: Sequence[object]) -> tuple[Trees, ...]:
    return (Trees(pa.array(positions, pa.int64()), trees),) if trees else ()
