"""What became of the values of a block: rows that were read at once, trees, invalid ones."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from parquet_sink.convert.decoded import Decoded, Inferred, Piece, Tree, Trees
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import is_plain, load, parse, parse_any

DOUBTS_WORTH_IT = 16
"""When more than one row in so many must be read by itself, all are."""


class AtOnce:
    """Rows, and which of them must be read by themselves; all of them where too many must."""

    def __init__(self, batch: pa.RecordBatch, mask: pa.BooleanArray | None) -> None:
        self.batch = batch
        self.doubtful = np.array([], np.int64) if mask is None else np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        if len(self.doubtful) * DOUBTS_WORTH_IT > batch.num_rows:
            self.doubtful = np.arange(batch.num_rows)


class Gathered:
    """By index among the values, not by position. any_tree: as in `convert.decoded.Reading`."""

    def __init__(self, values: pa.BinaryArray, positions: pa.Int64Array, *, any_tree: bool = False) -> None:
        self.values, self.positions, self._any_tree = values, positions, any_tree
        self.trees: dict[int, Tree] = {}
        self._others: dict[int, object] = {}
        self.invalid: dict[int, str] = {}
        self._loaded: dict[int, Tree] | None = None
        self._rows: list[pa.StructArray] = []
        self._which: list[np.ndarray] = []

    def of(self, which: np.ndarray) -> pa.BinaryArray:
        """Some of the values."""
        return self.values if len(which) == len(self.values) else self.values.take(pa.array(which))

    def load(self) -> np.ndarray:
        """Parse all values, once; which of them are JSON objects with fields, within no limits yet."""
        if self._loaded is None:
            self._loaded = {}
            for index, value in enumerate(self.values.to_pylist()):
                try:
                    tree = load(value)
                except InvalidValue as error:
                    self.invalid[index] = str(error)
                    continue
                if tree and type(tree) is dict:
                    self._loaded[index] = tree
                else:
                    self._parse(index)
        return np.fromiter(self._loaded, np.int64, len(self._loaded))

    def judge(self, index: int) -> Tree | None:
        """The tree of a value; None when it is invalid."""
        loaded = None if self._loaded is None else self._loaded.get(index)
        if loaded is None or not is_plain(loaded.values(), 1):
            self._parse(index)
        else:
            self.trees[index] = loaded
        return self.trees.get(index)

    def read(self, found: AtOnce, which: np.ndarray) -> None:
        """Take rows that were read at once. which: the index of each."""
        for index in which[found.doubtful].tolist():
            if index not in self.trees:
                self.judge(index)
        rows = found.batch.to_struct_array()
        if len(found.doubtful):
            kept = np.ones(len(which), np.bool_)
            kept[found.doubtful] = False
            rows, which = rows.filter(pa.array(kept)), which[kept]
        if len(which):
            self._rows.append(rows)
            self._which.append(which)

    def _tree_of(self, which: np.ndarray) -> Callable[[int], Tree]:
        values = self.values
        return lambda row: parse(values[which[row]].as_py())

    def _parse(self, index: int) -> None:
        value = self.values[index].as_py()
        try:
            found = parse_any(value) if self._any_tree else parse(value)
        except InvalidValue as error:
            self.invalid[index] = str(error)
            return
        if isinstance(found, dict) and found:
            self.trees[index] = found
        elif found is not None:
            self._others[index] = found

    def decoded(self, lists: frozenset[str]) -> Decoded:
        """Rows as columns, all others as trees. lists: see `Inferred`."""
        pieces: list[Piece] = []
        for rows, which in self._by_schema():
            whole = len(which) == len(self.positions)
            positions = self.positions if whole else self.positions.take(pa.array(which))
            pieces.append(Inferred(positions, rows, self._tree_of(which), lists))
        together = set(np.concatenate(self._which).tolist()) if self.trees and self._which else set()
        trees = {**self.trees, **self._others}
        if alone := sorted(trees.keys() - together):
            positions = self.positions.take(pa.array(alone, pa.int64()))
            pieces.append(Trees(positions, [trees[index] for index in alone]))
        invalid = {self.positions[index].as_py(): reason for index, reason in self.invalid.items()}
        return Decoded(tuple(pieces), invalid)

    def _by_schema(self) -> Iterator[tuple[pa.StructArray, np.ndarray]]:
        """Rows that were read with one schema put together, and the index of each."""
        types = {rows.type: None for rows in self._rows}
        for one in types:
            mine = [(rows, which) for rows, which in zip(self._rows, self._which, strict=True) if rows.type.equals(one)]
            if len(mine) == 1:
                yield mine[0]
            else:
                yield pa.concat_arrays([rows for rows, _ in mine]), np.concatenate([which for _, which in mine])
