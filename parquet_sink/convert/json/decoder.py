"""JSON without a schema: many records at once where what was learned of a topic covers them, else one by one.

A block is read at once (`fast`, with the types of `profile`). Where that fails, each record is parsed by the definition
(`exact`), which tells the invalid ones and teaches the rest; those that the profile covers are read at once all the
same, the others are given as trees. So a block with some odd or invalid records costs about three times a clean one,
and never a try for each.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Decoded, Inferred, LearningDecoder, Piece, Reading, Tree, Trees
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import fast
from parquet_sink.convert.json.doubts import doubtful
from parquet_sink.convert.json.exact import parse
from parquet_sink.convert.json.lists import with_lists_as_text
from parquet_sink.convert.json.profile import JsonProfile
from parquet_sink.convert.json.trees import JsonTrees

_NULL = pa.scalar(b"null", pa.binary())
_FIELDS_A_BYTE = 4
_ALWAYS_READ = 200
"""With many more fields known than an average record has bytes, nearly all are absent, and reading one by one, which
takes time for those that are there alone, is the cheaper one. So few fields are never too many."""

FEWEST = 64
"""Fewer records than this are not worth reading at once."""

SMALLEST = 256
"""A failed try of so many records or fewer is not halved."""

FIRST = 256
"""Records that a profile is begun with."""

FEW = 1_000
"""When more than one record in so many was odd, the next block is not tried as a whole: that would fail."""

ODD_WORTH_IT = 16
"""When more than one record in so many is odd, none is read at once; nor is a profile kept that covers so few."""


def decoder() -> LearningDecoder:
    """Reads each value as a tree until it is told of a topic."""
    return JsonDecoder(Reading(as_trees=True), None)


class JsonDecoder:
    """A `convert.decoded.LearningDecoder`."""

    def __init__(self, reading: Reading, learned: bytes | None) -> None:
        self._reading = reading
        self._trees = JsonTrees(anything=reading.anything)
        self._profile = self._empty()
        self._profile.restore(learned)
        self._odd_ones = False

    def for_topic(self, reading: Reading, learned: bytes | None) -> LearningDecoder:
        """As `convert.decoded.LearningDecoder` says."""
        return JsonDecoder(reading, learned)

    @property
    def learned(self) -> bytes | None:
        """The profile."""
        return self._profile.serialize()

    def forget(self) -> None:
        """Learn from the next block as from the first."""
        self._profile = self._empty()

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """As `convert.decoded.Decoder` says; `null` is a tombstone, as for Connect's JsonConverter."""
        if self._reading.as_trees:
            return self._trees.decode(values)
        live = pc.not_equal(values, _NULL)
        positions = pa.array(np.arange(len(values)))
        if live.false_count:
            values, positions = values.filter(live), positions.filter(live)
        size = values.nbytes / max(len(values), 1)
        if not self._profile.fields:
            self._learn_first(values)
        found = None
        if not self._odd_ones and len(values) >= FEWEST and self._is_worth_it(size):
            found = self._at_once(values, self._profile.schema)
        if found is None:
            return self._sorted_out(values, positions, size)
        gathered = _Gathered(values, positions, bool(self._profile.lists))
        gathered.read(found, np.arange(len(values)))
        return gathered.decoded()

    def _learn_first(self, values: pa.BinaryArray) -> None:
        """Learn from some records, so that a topic's first block may be read at once."""
        for value in values.slice(0, FIRST).to_pylist():
            with suppress(InvalidValue):
                self._profile.learn(parse(value))

    def _empty(self) -> JsonProfile:
        return JsonProfile(self._reading.discard_lists, self._reading.ignore_case)

    def _is_worth_it(self, size: float) -> bool:
        """size: bytes of an average record."""
        profile = self._profile
        return bool(profile.fields) and profile.size <= max(size * _FIELDS_A_BYTE, _ALWAYS_READ)

    def _at_once(self, values: pa.BinaryArray, schema: pa.Schema) -> "_Read | None":
        """All the values as rows of the schema, None when one of them does not fit."""
        reading, profile = self._reading, self._profile
        readable: pa.BinaryArray | None = values
        if profile.lists:
            discard, lower = reading.discard_lists, reading.ignore_case
            readable = with_lists_as_text(values, profile.lists, discard, reading.rewrite, lower=lower)
        batch = None if readable is None else fast.read(readable, schema)
        if batch is None or readable is None:
            return None
        return _Read(batch, doubtful(batch, readable, reading.discard_lists))

    def _sorted_out(self, values: pa.BinaryArray, positions: pa.Int64Array, size: float) -> Decoded:
        """Each value parsed, and those that the profile covers then read at once.

        Records before one that makes a whole number a fraction are read with what was known before.
        """
        gathered, profile = _Gathered(values, positions), self._profile
        covered: list[int] = []
        odd = 0
        for index, value in enumerate(values.to_pylist()):
            try:
                tree = gathered.trees[index] = parse(value)
            except InvalidValue as error:
                gathered.invalid[index] = str(error)
                continue
            is_covered = profile.learn(tree)
            if covered and (narrower := profile.narrower()) is not None:
                self._read_covered(gathered, covered, narrower, size)
                covered = []
            covered += [index] if is_covered else []
            odd += not is_covered
        self._read_covered(gathered, covered, profile.schema, size)
        gathered.has_lists = bool(profile.lists)
        self._odd_ones = (odd + len(gathered.invalid)) * FEW > len(values)
        if odd * ODD_WORTH_IT > len(gathered.trees):
            self.forget()
        return gathered.decoded()

    def _read_covered(self, gathered: "_Gathered", covered: list[int], schema: pa.Schema, size: float) -> None:
        if len(covered) >= FEWEST and self._is_worth_it(size):
            self._read_halves(gathered, np.array(covered), schema)

    def _read_halves(self, gathered: "_Gathered", which: np.ndarray, schema: pa.Schema) -> None:
        """Read records at once, halved where that fails, until it is not worth it."""
        values = gathered.values if len(which) == len(gathered.values) else gathered.values.take(pa.array(which))
        found = self._at_once(values, schema)
        if found is not None:
            gathered.read(found, which)
        elif len(which) > SMALLEST:
            middle = len(which) // 2
            self._read_halves(gathered, which[:middle], schema)
            self._read_halves(gathered, which[middle:], schema)


class _Read:
    """Rows, and which of them must be read by themselves; all of them where too many must."""

    def __init__(self, batch: pa.RecordBatch, mask: pa.BooleanArray | None) -> None:
        self.batch = batch
        self.doubtful = np.array([], np.int64) if mask is None else np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        if len(self.doubtful) * ODD_WORTH_IT > batch.num_rows:
            self.doubtful = np.arange(batch.num_rows)


class _Gathered:
    """What became of some values: by index among them, not by position."""

    def __init__(self, values: pa.BinaryArray, positions: pa.Int64Array, has_lists: bool = False) -> None:
        self.values, self.positions, self.has_lists = values, positions, has_lists
        self.trees: dict[int, Tree] = {}
        self.invalid: dict[int, str] = {}
        self._rows: list[pa.StructArray] = []
        self._which: list[np.ndarray] = []

    def read(self, found: _Read, which: np.ndarray) -> None:
        """Take rows that were read at once. which: the index of each."""
        for index in which[found.doubtful].tolist():
            if index not in self.trees:
                self._parse(index)
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
        try:
            self.trees[index] = parse(self.values[index].as_py())
        except InvalidValue as error:
            self.invalid[index] = str(error)

    def decoded(self) -> Decoded:
        """Rows as columns, all others as trees."""
        pieces: list[Piece] = []
        for rows, which in self._by_schema():
            whole = len(which) == len(self.positions)
            positions = self.positions if whole else self.positions.take(pa.array(which))
            pieces.append(Inferred(positions, rows, self._tree_of(which), self.has_lists))
        together = set(np.concatenate(self._which).tolist()) if self.trees and self._which else set()
        if alone := sorted(self.trees.keys() - together):
            positions = self.positions.take(pa.array(alone, pa.int64()))
            pieces.append(Trees(positions, [self.trees[index] for index in alone]))
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
