"""The form of a decoder that is written for one value."""

from abc import ABC, abstractmethod

import pyarrow as pa

from parquet_sink.convert.decoded import Decoded, Tree, Trees
from parquet_sink.convert.invalid import InvalidValue


class OneByOne(ABC):
    """A decoder that is written for one value: a record without a schema, in Python's own types."""

    @abstractmethod
    def record(self, value: bytes) -> Tree | None:
        """The record: a dict, with dict, list, str, int within 64 bits, finite float, bool and None below.

        None: a tombstone. Raises InvalidValue with a reason that holds no content.
        """

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """All of them, each independent of the others."""
        positions: list[int] = []
        trees: list[Tree] = []
        invalid: dict[int, str] = {}
        for position, value in enumerate(values.to_pylist()):
            try:
                tree = self.record(value)
            except InvalidValue as error:
                invalid[position] = str(error)
                continue
            if tree is not None:
                positions.append(position)
                trees.append(tree)
        pieces = (Trees(pa.array(positions, pa.int64()), trees),) if trees else ()
        return Decoded(pieces, invalid)
