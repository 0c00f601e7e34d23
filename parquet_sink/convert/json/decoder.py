"""Decodes JSON without a schema: many records at once where what was learned of a topic covers them, else one by one.

A block is read at once (`fast`, with the types of `profile`), less the fallback rows that keep the others from it
(`fallback`). Where these are too many, or have fields that are new, the definition (`exact`) reads each record, and the
profile learns it; those that it covers are read at once all the same, the others are given as trees. So a block with
some invalid records costs about twice a clean one at the most, with some odd ones about four times, and never a try for
each.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.arrays import all_null, anywhere, either, without_byte_order_marks
from parquet_sink.convert.decoded import (
    Decoded,
    InferredColumns,
    LearningDecoder,
    Piece,
    Reading,
    SchemaColumns,
    Tree,
    Untyped,
    one_by_one,
)
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import (
    is_plain,
    load,
    parse,
    parse_any,
    text_of,
    with_digits,
    with_digits_in_lists,
)
from parquet_sink.convert.json.fallback import PartialRead, absent, read_most
from parquet_sink.convert.json.fast import has_empty_object, has_signed_integer_zero, read_in_c
from parquet_sink.convert.json.lists import with_lists_as_text
from parquet_sink.convert.json.profile import JsonProfile

# Scalars are made with their types: PyArrow takes 0.1 ms each time to infer one.
_EXACT_LIMIT = pa.scalar(float(2**53), pa.float64())
_NEGATIVE_ZERO_BITS = pa.scalar(-(2**63), pa.int64())
_Mask: TypeAlias = pa.BooleanArray | None


def ambiguous(batch: pa.RecordBatch, values: pa.BinaryArray, discard_empty: bool) -> pa.BooleanArray | None:
    """For each row whether it may be another than it looks; None when none is.

    An object without values may be `{}`, a fraction may have been an integer beyond 2**53 or not finite, a zero with a
    sign the integer `-0`, which has none. batch: what `fast.read` made of `values`. discard_empty: whether an object
    below is `{}` or has nulls alone makes no difference.
    """
    rows: _Mask = None
    signed: _Mask = None
    hollow = all_null(batch.columns)
    waiting = list(batch.columns)
    while waiting:
        array = waiting.pop()
        if pa.types.is_float64(array.type):
            rows = either(rows, anywhere(pc.invert(pc.less(pc.abs(array), _EXACT_LIMIT))))
            signed = either(signed, anywhere(pc.equal(array.view(pa.int64()), _NEGATIVE_ZERO_BITS)))
        elif pa.types.is_struct(array.type) and array.type.num_fields:
            children = array.flatten()
            nothing = None if discard_empty else all_null(children)
            if nothing is not None:
                hollow = either(hollow, pc.and_(nothing, array.is_valid()))
            waiting += children
    if hollow is not None and pc.any(hollow).as_py():
        rows = either(rows, pc.and_(hollow, has_empty_object(values)))
    if signed is not None:
        rows = either(rows, pc.and_(signed, has_signed_integer_zero(values)))
    return rows if rows is not None and pc.any(rows).as_py() else None


AMBIGUOUS_WORTH_IT = 16
"""When more than one row in so many must be read by itself, all are."""


class JsonTrees:
    """Decodes each value to a tree by itself: for exploding, chunks and transforms.

    anything, any_tree: as in `convert.decoded.Reading`; text is a string's content, else JSON.
    """

    def __init__(self, *, anything: bool, any_tree: bool = False) -> None:
        self._anything, self._any_tree = anything, any_tree

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """As `convert.decoded.Decoder` says; `null` is a tombstone, as for Connect's JsonConverter."""
        positions, found, invalid = one_by_one(without_byte_order_marks(values), self._parse)
        if not self._anything or self._any_tree:
            pieces = (Untyped(pa.array(positions, pa.int64()), found),) if found else ()
            return Decoded(pieces, invalid)
        texts = {at: one for at, one in zip(positions, found, strict=True) if isinstance(one, str)}
        trees = {at: one for at, one in zip(positions, found, strict=True) if at not in texts}
        untyped = (Untyped(pa.array([*trees], pa.int64()), [*trees.values()]),) if trees else ()
        typed = SchemaColumns(pa.array([*texts], pa.int64()), pa.array([*texts.values()], pa.string()))
        return Decoded(((*untyped, typed) if texts else untyped), invalid)

    def _parse(self, value: bytes) -> object:
        if value == b"null":
            return None
        if self._any_tree:
            return parse_any(value)
        if not self._anything:
            return parse(value)
        found = with_digits(parse_any(value), value)
        if isinstance(found, dict) and found:
            return found
        return found if isinstance(found, str) else text_of(found)


class Gathered:
    """By index among the values, not by position. any_tree: as in `convert.decoded.Reading`."""

    def __init__(self, values: pa.BinaryArray, positions: pa.Int64Array, *, any_tree: bool = False) -> None:
        self.values, self.positions, self._any_tree = values, positions, any_tree
        self.trees: dict[int, Tree] = {}
        self._others: dict[int, object] = {}
        self.invalid: dict[int, str] = {}
        self._loaded: dict[int, Tree] = {}
        self._rows: list[pa.StructArray] = []
        self._which: list[np.ndarray] = []

    def of(self, which: np.ndarray) -> pa.BinaryArray:
        """Some of the values."""
        return self.values if len(which) == len(self.values) else self.values.take(pa.array(which))

    def load(self) -> list[int]:
        """Parse all values; which of them are JSON objects with fields, within no limits yet."""
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
        return list(self._loaded)

    def parse(self, index: int) -> Tree | None:
        """The tree of a value; None when it is invalid."""
        loaded = self._loaded.get(index)
        if loaded is None or not is_plain(loaded.values(), 1):
            self._parse(index)
        else:
            self._add_tree(index, loaded)
        return self.trees.get(index)

    def take(self, batch: pa.RecordBatch, which: np.ndarray, mask: pa.BooleanArray | None) -> None:
        """Rows that were read at once. which: the index of each. mask: rows that must be read by themselves."""
        rows = batch.to_struct_array()
        if mask is not None:
            kept = ~mask.to_numpy(zero_copy_only=False)
            if np.count_nonzero(~kept) * AMBIGUOUS_WORTH_IT > len(kept):
                kept[:] = False
            for index in which[~kept].tolist():
                if index not in self.trees:
                    self.parse(index)
            rows, which = rows.filter(pa.array(kept)), which[kept]
        if len(which):
            self._rows.append(rows)
            self._which.append(which)

    def _tree_of(self, which: np.ndarray) -> Callable[[int], Tree]:
        values, any_tree = self.values, self._any_tree

        def read_tree(row: int) -> Tree:
            value = values[which[row]].as_py()
            return parse(value) if any_tree else with_digits_in_lists(parse(value), value)

        return read_tree

    def _add_tree(self, index: int, tree: Tree) -> None:
        """Add a valid tree. Transforms may look at what is in lists, and know plain fractions alone."""
        self.trees[index] = tree if self._any_tree else with_digits_in_lists(tree, self.values[index].as_py())

    def _parse(self, index: int) -> None:
        value = self.values[index].as_py()
        try:
            found = parse_any(value) if self._any_tree else parse(value)
        except InvalidValue as error:
            self.invalid[index] = str(error)
            return
        if isinstance(found, dict) and found:
            self._add_tree(index, found)
        elif found is not None:
            self._others[index] = found

    def decoded(self, lists: frozenset[str]) -> Decoded:
        """Rows as columns, all others as trees. lists: see `InferredColumns`."""
        pieces: list[Piece] = []
        for rows, which in self._by_schema():
            whole = len(which) == len(self.positions)
            positions = self.positions if whole else self.positions.take(pa.array(which))
            pieces.append(InferredColumns(positions, rows, self._tree_of(which), lists))
        together = set(np.concatenate(self._which).tolist()) if self.trees and self._which else set()
        trees = {**self.trees, **self._others}
        if alone := sorted(trees.keys() - together):
            positions = self.positions.take(pa.array(alone, pa.int64()))
            pieces.append(Untyped(positions, [trees[index] for index in alone]))
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


_NULL, _EMPTY = pa.scalar(b"null", pa.binary()), pa.scalar(b"{}", pa.binary())
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

ONE_IN = 32
"""When more than one object in so many keeps the others from being read at once, each record is read by itself."""

FEW = 1_000
"""When more than one record in so many was odd, the next block is not tried as a whole: that would fail."""

ODD_LISTS = 16
"""Blocks that are not read in C with their lists, after one that could not be."""

ODD_WORTH_IT = 16
"""A profile that covers fewer than all but one in so many records is not kept."""


def decoder() -> LearningDecoder:
    """Reads each value as a tree until `for_topic` is called."""
    return JsonDecoder(Reading(as_trees=True), None)


class JsonDecoder:
    """A `convert.decoded.LearningDecoder`."""

    def __init__(self, reading: Reading, learned: bytes | None) -> None:
        self._reading = reading
        self._trees = JsonTrees(anything=reading.anything, any_tree=reading.any_tree)
        self._profile = self._empty()
        self._profile.restore(learned)
        self._odd_ones = False
        self._blocks_with_lists = 0
        self._faults: tuple[str, ...] = ()

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
        values = without_byte_order_marks(values)
        live = pc.not_equal(values, _NULL)
        positions = pa.array(np.arange(len(values)))
        if live.false_count:
            values, positions = values.filter(live), positions.filter(live)
        size = values.nbytes / max(len(values), 1)
        if not self._profile.fields:
            self._learn_first(values)
        gathered, profile = Gathered(values, positions, any_tree=self._reading.any_tree), self._profile
        promising = not self._odd_ones and len(values) >= FEWEST and self._is_worth_it(size)
        if not (promising and self._read_most(gathered)):
            self._sorted_out(gathered, size)
        return gathered.decoded(frozenset(profile.lists))  # of the profile read with, which may be forgotten by now

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

    def _read_most(self, gathered: Gathered) -> bool:
        """Read all records at once, or all but those that keep the others from it; False when that does not do."""
        count = len(gathered.values)
        found = self._read_at_once(gathered, np.arange(count), self._profile.schema)
        if found is None:
            return False
        for index in absent(found, count):
            tree = gathered.parse(index)
            if tree is not None:
                self._profile.learn(tree)
        return True

    def _read_at_once(self, gathered: Gathered, which: np.ndarray, schema: pa.Schema) -> np.ndarray | None:
        """Which of these values have rows of the schema now; None when too many do not fit."""
        values = gathered.of(which)
        if pc.any(pc.equal(values, _EMPTY)).as_py():
            there = np.flatnonzero(pc.not_equal(values, _EMPTY).to_numpy(zero_copy_only=False))
            which, values = which[there], values.take(pa.array(there))
        found = self._read_with_lists(values, schema)
        if found is None:
            found = read_most(self._readable(values), schema, "error", len(values) // ONE_IN, self._faults)
        if found is None:
            return None
        self._faults = found.faults
        which = which[found.places]
        gathered.take(found.batch, which, ambiguous(found.batch, found.values, self._reading.discard_lists))
        return which

    def _read_with_lists(self, values: pa.BinaryArray, schema: pa.Schema) -> PartialRead | None:
        """Read all values in C if their lists become text as they stand; return None otherwise."""
        reading, profile = self._reading, self._profile
        as_it_is = reading.rewrite is None and not (reading.discard_lists or reading.any_tree)
        if not (as_it_is and profile.lists and profile.schema is schema):
            return None
        self._blocks_with_lists += 1
        if self._blocks_with_lists <= 0 or (fields := profile.fields_in_c) is None:
            return None
        batch = read_in_c(values, schema, fields)
        if batch is None:
            self._blocks_with_lists = -ODD_LISTS
            return None
        return PartialRead(np.arange(len(values)), values, batch, self._faults)

    def _readable(self, values: pa.BinaryArray) -> pa.BinaryArray:
        """The values with lists as text."""
        reading, lists = self._reading, self._profile.known_lists
        if lists is None:
            return values
        lower, told_apart = reading.ignore_case, reading.any_tree
        return with_lists_as_text(
            values, lists, reading.discard_lists, reading.rewrite, lower=lower, told_apart=told_apart
        )

    def _sorted_out(self, gathered: Gathered, size: float) -> None:
        """Each value read by itself, and those that the profile covers then read at once.

        Records before one that makes a whole number a fraction are read with what was known before.
        """
        profile = self._profile
        valid = gathered.load()
        covered: list[int] = []
        odd = refused = 0
        for index in valid:
            tree = gathered.parse(index)
            if tree is None:
                refused += 1
                continue
            is_covered = profile.learn(tree)
            if covered and (narrower := profile.narrower()) is not None:
                self._read_covered(gathered, covered, narrower, size)
                covered = []
            covered += [index] if is_covered else []
            odd += not is_covered
        self._read_covered(gathered, covered, profile.schema, size)
        self._odd_ones = (odd + refused) * FEW > len(gathered.values)
        if odd * ODD_WORTH_IT > len(valid) - refused:
            self.forget()

    def _read_covered(self, gathered: Gathered, covered: list[int], schema: pa.Schema, size: float) -> None:
        if len(covered) >= FEWEST and self._is_worth_it(size):
            self._read_halves(gathered, np.array(covered), schema)

    def _read_halves(self, gathered: Gathered, which: np.ndarray, schema: pa.Schema) -> None:
        """Read records at once, halved where that fails, until it is not worth it."""
        if self._read_at_once(gathered, which, schema) is None and len(which) > SMALLEST:
            middle = len(which) // 2
            self._read_halves(gathered, which[:middle], schema)
            self._read_halves(gathered, which[middle:], schema)
