"""Decodes JSON values of known types: fast where that works, exactly where it does not.

`exact` is the definition; `fast` must give the same where it gives anything. Where a try fails, Arrow's reader mostly
tells at which value, and why (`json.fallback`); without those the rest is read at once. Where it does not, the try is
cut in eight, down to some hundred values, so a bad value in a block of 10,000 costs at most three more tries at its
neighbourhood and sends only that hundred the exact way.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parquet_sink.convert.decoded import Decoded, SchemaColumns, Tree, Untyped
from parquet_sink.convert.json.fallback import absent
from parquet_sink.convert.typed_json.exact import ExactReader
from parquet_sink.convert.typed_json.fast import FastReader, Mode, Read, can_read
from parquet_sink.convert.typed_json.types import Slot, StructKind, counter, to_arrow

FEWEST = 64
"""Fewer values than this are not worth a try: it has a fixed cost worth about that many on the exact path."""

SMALLEST = 256
"""A failed try of this many or fewer is not cut again."""

_PARTS = 8
ONE_IN = 2
"""More bad values than one in so many are not left out of one reading: cutting finds where the others stand."""


class TypedReader:
    """Reads values of one slot, both ways. It remembers only what makes the next try likelier to succeed.

    ignores: whether fields that the type does not name may be in what was read fast last.
    """

    def __init__(self, slot: Slot) -> None:
        self.ignores = False
        self.type = to_arrow(slot.kind)
        self.exact = ExactReader(slot)
        self._fast: FastReader | None = None
        if isinstance(slot.kind, StructKind) and can_read(slot.kind) and counter(slot.kind) is None:
            self._fast = FastReader(slot.kind)
        self._mode = Mode()

    def read_fast(self, values: pa.BinaryArray) -> tuple[list[SchemaColumns], list[int]]:
        """What can be read many at once, and the positions of all other values: those are for the exact reader."""
        self.ignores = False
        count, fast = len(values), self._fast
        if fast is None or count < FEWEST:
            return [], list(range(count))
        if count <= SMALLEST:
            return self._in_parts(values, [(0, count)])
        for mode in self._modes(fast, whole=True):
            found = fast.read_most(values, mode, count // ONE_IN)
            if found is not None:
                self._mode = mode
                self.ignores = mode.unexpected == "ignore"
                return [_certain(found)], sorted([*_ambiguous(found), *absent(found.places, count)])
        return self._in_parts(values, _cuts(0, count))

    def expect_named(self) -> None:
        """Try next whether all fields are named by the type: the values that were read last had no others."""
        self._mode = replace(self._mode, unexpected="error")

    def _in_parts(self, values: pa.BinaryArray, parts: list[tuple[int, int]]) -> tuple[list[SchemaColumns], list[int]]:
        """As `read_fast`, of values among which the bad ones are not known: what cannot be read is cut smaller.

        parts: where each starts, and its size.
        """
        pieces: list[SchemaColumns] = []
        left: list[int] = []
        waiting = parts[::-1]
        while waiting:
            start, count = waiting.pop()
            found = self._try(values.slice(start, count), whole=count == len(values))
            if found is not None:
                found = replace(found, places=found.places + start)
                pieces.append(_certain(found))
                left += _ambiguous(found)
            elif count > SMALLEST:
                waiting += _cuts(start, count)[::-1]
            else:
                left += range(start, start + count)
        return pieces, left

    def _try(self, values: pa.BinaryArray, *, whole: bool) -> Read | None:
        """Read all the values; where the mode that worked last fails, others may work, and are kept."""
        if self._fast is None or len(values) < FEWEST:
            return None
        for mode in self._modes(self._fast, whole):
            found = self._fast.read(values, mode)
            if found is not None:
                self._mode = mode if whole else self._mode
                self.ignores = self.ignores or mode.unexpected == "ignore"
                return found
        return None

    def _modes(self, fast: FastReader, whole: bool) -> list[Mode]:
        """Those worth a try. Parts are tried after the whole failed, so they ignore what is unexpected."""
        lenient = Mode("ignore", self._mode.numbers)
        modes = [self._mode, lenient] if whole and self._mode != lenient else [lenient]
        modes = [*modes, Mode("ignore", not self._mode.numbers)] if fast.has_decimals else modes
        if not fast.has_others:
            return modes
        return [*dict.fromkeys(replace(mode, unexpected="error") for mode in modes)]


def _cuts(start: int, count: int) -> list[tuple[int, int]]:
    """Parts of so many values, eight or fewer: where each starts, and its size."""
    step = max(-(-count // _PARTS), FEWEST)
    return [(start + cut, min(step, count - cut)) for cut in range(0, count, step)]


def _ambiguous(found: Read) -> list[int]:
    places: list[int] = found.places[found.ambiguous].tolist()
    return places


def _certain(found: Read) -> SchemaColumns:
    """The rows that are not ambiguous."""
    places, rows = found.places, found.rows
    if found.ambiguous:
        kept = np.delete(np.arange(len(places)), found.ambiguous)
        places, rows = places[kept], rows.take(pa.array(kept))
    return SchemaColumns(pa.array(places, pa.int64()), rows)


@dataclass
class _Gathered:
    """What was read of one type."""

    parts: list[SchemaColumns] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    values: list[object] = field(default_factory=list)


class Pieces:
    """What becomes of the values of one block, put in as it is found."""

    def __init__(self) -> None:
        self._typed: dict[TypedReader, _Gathered] = defaultdict(_Gathered)
        self._trees: list[tuple[int, Tree]] = []
        self._invalid: dict[int, str] = {}

    def add(self, reader: TypedReader, position: int, value: object) -> None:
        """A value that the exact reader gave; None gives no row."""
        if value is not None:
            gathered = self._typed[reader]
            gathered.positions.append(position)
            gathered.values.append(value)

    def add_part(self, reader: TypedReader, part: SchemaColumns, positions: pa.Int64Array | None = None) -> None:
        """Values that the fast reader gave; positions: where those that it was given stand, None: as it says."""
        if len(part.rows):
            taken = part if positions is None else SchemaColumns(positions.take(part.positions), part.rows)
            self._typed[reader].parts.append(taken)

    def add_tree(self, position: int, tree: Tree) -> None:
        """A value without a schema."""
        self._trees.append((position, tree))

    def add_invalid(self, position: int, reason: str) -> None:
        """A value that has no row."""
        self._invalid[position] = reason

    def to_decoded(self) -> Decoded:
        """Everything, one piece for each reader and one for trees, positions increasing."""
        pieces: list[SchemaColumns | Untyped] = [
            _to_typed(reader.type, gathered) for reader, gathered in self._typed.items()
        ]
        if self._trees:
            trees = sorted(self._trees, key=lambda pair: pair[0])
            pieces.append(Untyped(pa.array([at for at, _ in trees], pa.int64()), [tree for _, tree in trees]))
        return Decoded(tuple(pieces), self._invalid)


def _to_typed(arrow: pa.DataType, gathered: _Gathered) -> SchemaColumns:
    parts = list(gathered.parts)
    if len(parts) == 1 and not gathered.positions:
        return parts[0]
    if gathered.positions:
        parts.append(SchemaColumns(pa.array(gathered.positions, pa.int64()), pa.array(gathered.values, arrow)))
    positions = pa.concat_arrays([part.positions for part in parts])
    order = pc.sort_indices(positions)
    return SchemaColumns(positions.take(order), pa.concat_arrays([part.rows for part in parts]).take(order))
