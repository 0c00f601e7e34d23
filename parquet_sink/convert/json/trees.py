"""JSON without a schema, one tree for each record: for what needs the tree itself.

That is exploding and chunks, and whatever `decoder` does not read at once.
"""

from collections.abc import Sequence

import orjson
import pyarrow as pa

from parquet_sink.convert.decoded import Decoded, Trees, Typed
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import parse, parse_any


class JsonTrees:
    """A decoder. anything, any_tree: as in `convert.decoded.Reading`; text is a string's content, else JSON."""

    def __init__(self, *, anything: bool, any_tree: bool = False) -> None:
        self._anything, self._any_tree = anything, any_tree

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """As `convert.decoded.Decoder` says; `null` is a tombstone, as for Connect's JsonConverter."""
        trees: list[object] = []
        texts: list[str] = []
        at_trees: list[int] = []
        at_texts: list[int] = []
        invalid: dict[int, str] = {}
        for position, value in enumerate(values.to_pylist()):
            try:
                found = self._parse(value)
            except InvalidValue as error:
                invalid[position] = str(error)
                continue
            if isinstance(found, dict) or (self._any_tree and found is not None):
                at_trees.append(position)
                trees.append(found)
            elif isinstance(found, str):
                at_texts.append(position)
                texts.append(found)
        return Decoded((*_trees(at_trees, trees), *_texts(at_texts, texts)), invalid)

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


def _trees(positions: Sequence[int], trees: Sequence[object]) -> tuple[Trees, ...]:
    return (Trees(pa.array(positions, pa.int64()), trees),) if trees else ()


def _texts(positions: Sequence[int], texts: Sequence[str]) -> tuple[Typed, ...]:
    return (Typed(pa.array(positions, pa.int64()), pa.array(texts, pa.string())),) if texts else ()
