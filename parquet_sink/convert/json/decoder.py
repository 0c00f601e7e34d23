"""JSON without a schema: many records at once where what was learned of a topic covers them, else one by one.

A block is read at once (`fast`, with the types of `profile`), less the records that keep the others from it
(`misfits`). Where these are too many, or have fields that are new, the definition (`exact`) judges each record, and the
profile learns it; those that it covers are read at once all the same, the others are given as trees. So a block with
some invalid records costs about twice a clean one at the most, with some odd ones about four times, and never a try for
each.
"""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Decoded, LearningDecoder, Reading
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.doubts import doubtful
from parquet_sink.convert.json.exact import parse
from parquet_sink.convert.json.gathered import AtOnce, Gathered
from parquet_sink.convert.json.lists import with_lists_as_text
from parquet_sink.convert.json.misfits import absent, objects, sifted
from parquet_sink.convert.json.profile import JsonProfile
from parquet_sink.convert.json.trees import JsonTrees

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
"""When more than one object in so many keeps the others from being read at once, each record is judged by itself."""

FEW = 1_000
"""When more than one record in so many was odd, the next block is not tried as a whole: that would fail."""

ODD_WORTH_IT = 16
"""A profile that covers fewer than all but one in so many records is not kept."""


def decoder() -> LearningDecoder:
    """Reads each value as a tree until it is told of a topic."""
    return JsonDecoder(Reading(as_trees=True), None)


class JsonDecoder:
    """A `convert.decoded.LearningDecoder`."""

    def __init__(self, reading: Reading, learned: bytes | None) -> None:
        self._reading = reading
        self._trees = JsonTrees(anything=reading.anything, any_tree=reading.any_tree)
        self._profile = self._empty()
        self._profile.restore(learned)
        self._odd_ones = False
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
        found = self._sifted(gathered.values, self._profile.schema)
        if found is None:
            return False
        gathered.read(*found)
        for index in absent(found[1], len(gathered.values)):
            tree = gathered.judge(index)
            if tree is not None:
                self._profile.learn(tree)
        return True

    def _sifted(self, values: pa.BinaryArray, schema: pa.Schema) -> tuple[AtOnce, np.ndarray] | None:
        """Rows of the schema, and where the values stand that they are of; None when too many values do not fit."""
        places = np.arange(len(values))
        readable = self._readable(values)
        if readable is None or pc.any(pc.equal(readable, _EMPTY)).as_py():
            places = np.flatnonzero(objects(values) & pc.not_equal(values, _EMPTY).to_numpy(zero_copy_only=False))
            readable = self._readable(values.take(pa.array(places)))
        found = None
        if readable is not None:
            found = sifted(readable, schema, "error", len(readable) // ONE_IN, self._faults)
        if found is None:
            return None
        self._faults = found.faults
        doubts = doubtful(found.batch, found.values, self._reading.discard_lists)
        return AtOnce(found.batch, doubts), places[found.places]

    def _readable(self, values: pa.BinaryArray) -> pa.BinaryArray | None:
        """The values with lists as text; None where one of them is no JSON."""
        reading, lists = self._reading, self._profile.lists
        if not lists:
            return values
        return with_lists_as_text(values, lists, reading.discard_lists, reading.rewrite, lower=reading.ignore_case)

    def _sorted_out(self, gathered: Gathered, size: float) -> None:
        """Each value judged by itself, and those that the profile covers then read at once.

        Records before one that makes a whole number a fraction are read with what was known before.
        """
        profile, count = self._profile, len(gathered.values)
        valid = gathered.load()
        covered: list[int] = []
        odd = refused = 0
        for index in valid.tolist():
            tree = gathered.judge(index)
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
        self._odd_ones = _too_many(odd + refused, count)
        if odd * ODD_WORTH_IT > len(valid) - refused:
            self.forget()

    def _read_covered(self, gathered: Gathered, covered: list[int], schema: pa.Schema, size: float) -> None:
        if len(covered) >= FEWEST and self._is_worth_it(size):
            self._read_halves(gathered, np.array(covered), schema)

    def _read_halves(self, gathered: Gathered, which: np.ndarray, schema: pa.Schema) -> None:
        """Read records at once, halved where that fails, until it is not worth it."""
        found = self._sifted(gathered.of(which), schema)
        if found is not None:
            rows, places = found
            gathered.read(rows, which[places])
        elif len(which) > SMALLEST:
            middle = len(which) // 2
            self._read_halves(gathered, which[:middle], schema)
            self._read_halves(gathered, which[middle:], schema)


def _too_many(odd: int, count: int) -> bool:
    return odd * FEW > count
