"""Records of several schemas and of none in one topic: any cut into blocks gives the rows of a plain walk over them.

The walk below is the definition, record by record in plain Python; a type is a word, a dict (a struct), or a pair (a
list or a map, and what is in it).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, SchemaColumns, Untyped
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.schema import topic_columns
from parquet_sink.rows.settings import ShapeSettings
from tests.factories import accepted
from tests.thorough import examples

LEAVES = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "bool": pa.bool_(),
}
VALUES = {
    "int32": [0, -5, 2**31 - 1],
    "int64": [0, 3, 2**53, 2**53 + 1, 2**60, 2**63 - 1, -(2**63)],
    "float": [0.5, -2.0],
    "double": [0.1, 1e300, 4.0],
    "text": ["", "x"],
    "bytes": [b"", b"\xff"],
    "bool": [True, False],
}
WHOLE, FRACTION = ("int32", "int64"), ("float", "double")
EMPTY = ("map", "text")
Type = Any


class CannotShare(Exception):
    """Two types for one column, or a value that its column cannot hold."""


@dataclass(frozen=True)
class Record:
    """type: None for a record without a schema. rows: one, or the elements."""

    type: Type
    rows: tuple[Any, ...]


def to_arrow(of: Type, required: frozenset[str] = frozenset()) -> pa.DataType:
    """The Arrow type; fields whose names are required are not nullable."""
    if isinstance(of, dict):
        return pa.struct([pa.field(name, to_arrow(one), nullable=name not in required) for name, one in of.items()])
    if isinstance(of, tuple):
        return pa.list_(to_arrow(of[1])) if of[0] == "list" else pa.map_(pa.string(), to_arrow(of[1]))
    return LEAVES[of]


def together(known: Type, own: Type, *, tree: bool, within: bool = False) -> Type:
    """The type for values of both. tree: `own` is of a record without a schema. within: both are of the same record."""
    if within and known == EMPTY and isinstance(own, dict):
        return own
    if known == own or (tree and own == EMPTY and isinstance(known, dict)):
        return known
    if isinstance(known, dict) and isinstance(own, dict):
        return united(known, own, tree=tree, within=within)
    if isinstance(known, tuple) and isinstance(own, tuple) and known[0] == own[0]:
        return (known[0], together(known[1], own[1], tree=tree))
    if known in WHOLE and own in WHOLE:
        return "int64"
    if known in WHOLE + FRACTION and own in WHOLE + FRACTION:
        return "double"
    raise CannotShare


def united(known: Any, own: Any, *, tree: bool, within: bool = False) -> Any:
    """The fields of both."""
    both = {
        name: together(of, own[name], tree=tree, within=within) if name in own else of for name, of in known.items()
    }
    return both | {name: of for name, of in own.items() if name not in known}


def held(of: Type, value: Any) -> Any:
    """The value as a column of this type holds it, without nulls."""
    if value is None:
        return None
    if isinstance(of, dict):
        return {name: done for name, one in value.items() if (done := held(of[name], one)) is not None}
    if isinstance(of, tuple) and of[0] == "list":
        return [held(of[1], one) for one in value]
    if isinstance(of, tuple):
        return [(key, held(of[1], one)) for key, one in dict(value).items()]
    if of == "double" and isinstance(value, int) and int(float(value)) != value:
        raise CannotShare
    return value


def of_tree(row: Any) -> Any:
    """The type of a row without a schema."""
    names = {int: "int64", float: "double", str: "text", bool: "bool"}
    return {
        name: (of_tree(value) if value else EMPTY) if isinstance(value, dict) else names[type(value)]
        for name, value in row.items()
    }


def hollow(of: Type, row: Any) -> Any:
    """A row without a schema: objects without a value in them, at any depth, are null where columns are structs."""
    if not isinstance(of, dict):
        return row
    within = {name: hollow(of[name], value) for name, value in row.items()}
    return {name: value for name, value in within.items() if value != {} or of[name] == EMPTY}


def grown(known: Any, own: Any, *, tree: bool, most: int) -> Any:
    """The topic's columns with a record's, at most so many."""
    both = united(known, own, tree=tree)
    if known and most < leaves(both) > leaves(known):
        raise CannotShare
    return both


def leaves(of: Type) -> int:
    """Columns, the fields of structs being some each."""
    if isinstance(of, dict):
        return sum(map(leaves, of.values()))
    if isinstance(of, tuple) and of != EMPTY:
        return leaves(of[1]) + (of[0] == "map")
    return 1


@dataclass
class Walked:
    """rows with their offsets; the offsets where the topic started anew; that of an invalid record; the columns."""

    rows: list[tuple[int, Any]] = field(default_factory=list)
    anew: list[int] = field(default_factory=list)
    error: int | None = None
    columns: dict[str, Type] = field(default_factory=dict)


def defined(records: Sequence[Record], most: int) -> Walked:
    """The definition. most: leaves that a topic may have."""
    walked = Walked()
    for offset, record in enumerate(records):
        tree = record.type is None
        try:
            own = record.type
            for row in record.rows if tree else ():
                own = united(own or {}, of_tree(row), tree=True, within=True)
            done = [held(own, hollow(own, row) if tree else row) for row in record.rows]
        except CannotShare:
            walked.error = offset
            break
        if not done:
            continue
        try:
            columns = grown(walked.columns, own, tree=tree, most=most)
            done = [held(columns, hollow(columns, row) if tree else row) for row in record.rows]
        except CannotShare:
            columns = own
            done = [held(own, hollow(own, row) if tree else row) for row in record.rows]
            walked.anew.append(offset)
        if not columns:
            walked.error = offset
            break
        walked.columns = columns
        walked.rows += [(offset, row) for row in done]
    return walked


class Scripted:
    """A decoder that gives these records, whatever the bytes: those of one schema are one piece."""

    def __init__(self, records: Sequence[Record], required: frozenset[str]) -> None:
        self._records, self._required = records, required

    def decode(self, values: pa.BinaryArray) -> Decoded:
        numbers = [int(value) for value in values.to_pylist()]
        schemas: dict[str, list[int]] = {}
        for number in numbers:
            schemas.setdefault(repr(self._records[number].type), []).append(number)
        return Decoded(tuple(self._piece(found, numbers[0]) for found in schemas.values()))

    def _piece(self, numbers: list[int], first: int) -> SchemaColumns | Untyped:
        positions = pa.array([number - first for number in numbers], pa.int64())
        records = [self._records[number] for number in numbers]
        if records[0].type is None:
            return Untyped(positions, [{"m": list(record.rows)} for record in records])
        arrow = pa.struct([("m", pa.list_(to_arrow(records[0].type, self._required)))])
        return SchemaColumns(positions, pa.array([{"m": list(record.rows)} for record in records], arrow))


def shaped(records: Sequence[Record], required: frozenset[str], flat: bool, cuts: Sequence[int]) -> tuple[Walked, str]:
    """The records shaped in blocks that end at the cuts, each by a shaper that knows what the one before did."""
    found, known = Walked(), None
    config = ShapeSettings(embed_metadata=False, explode=True, flatten=flat)
    ends = sorted({cut for cut in cuts if 0 < cut < len(records)} | {len(records)})
    for start, end in zip([0, *ends], ends, strict=False):
        shaper = RowBuilder(config, known, Scripted(records, required))
        texts = [str(number).encode() for number in range(start, end)]
        try:
            for run in accepted(shaper, RecordBatch.of("t", 0, range(start, end), [0] * len(texts), texts)):
                sound(run.rows)
                found.rows += zip(run.offsets.to_pylist(), map(bare, run.rows.to_pylist()), strict=True)
                found.anew += [run.first_offset] if run.incompatible else []
        except InvalidRecord as error:
            found.error = error.offset
        known = shaper.known
        if found.error is not None:
            break
    return found, "" if known is None else known.to_string()


def sound(rows: pa.Table) -> None:
    """No array is broken, and no required column has nulls."""
    rows.validate(full=True)
    assert all(column.nullable or not rows[column.name].null_count for column in rows.schema)


def bare(value: Any) -> Any:
    """The value without nulls in structs, at any depth."""
    if isinstance(value, dict):
        return {name: bare(below) for name, below in value.items() if below is not None}
    return type(value)(bare(below) for below in value) if isinstance(value, list | tuple) else value


NAMES = st.sampled_from("abcd")
NUMBERS = st.sampled_from(["int32", "int64", "int64", "float", "double"])
TYPES = st.recursive(
    NUMBERS | NUMBERS | st.sampled_from(sorted(LEAVES)),
    lambda below: (
        st.dictionaries(NAMES, below, min_size=1, max_size=3) | st.tuples(st.sampled_from(["list", "map"]), below)
    ),
    max_leaves=4,
)
FLAT_TYPES = NUMBERS | NUMBERS | st.sampled_from(sorted(LEAVES))


def values(of: Type, required: bool) -> st.SearchStrategy[Any]:
    """Values of a type; nulls in structs, unless it is required."""
    if isinstance(of, dict):
        some: Any = st.fixed_dictionaries({name: values(one, required) for name, one in of.items()})
    elif isinstance(of, tuple) and of[0] == "list":
        some = st.lists(values(of[1], True), max_size=2)
    elif isinstance(of, tuple):
        some = st.dictionaries(st.sampled_from("kl"), values(of[1], True), max_size=2).map(
            lambda found: [*found.items()]
        )
    else:
        some = st.sampled_from(VALUES[of])
    return some if required else some | some | some | st.none()


TREES = st.recursive(
    st.sampled_from([0, 1, 2**53 + 1, 2**60, 0.5, 2.0, "x", True]),
    lambda below: st.dictionaries(NAMES, below, max_size=2),
    max_leaves=3,
)


@st.composite
def topics(draw: st.DrawFn, flat: bool) -> tuple[list[Record], frozenset[str]]:
    """Records of a few schemas and of none, in any order, and which names are required where they are."""
    required = draw(st.sampled_from([frozenset(), frozenset("ab"), frozenset("abcd")]))
    pool = draw(st.lists(st.dictionaries(NAMES, FLAT_TYPES if flat else TYPES, min_size=1, max_size=3), max_size=3))
    below = st.sampled_from([1, 2**53 + 1, 2**60, 0.5, "x"]) if flat else TREES
    trees = st.dictionaries(NAMES, below, min_size=1, max_size=3)

    def one() -> Iterator[Any]:
        yield st.builds(Record, st.none(), st.lists(trees, max_size=3).map(tuple))
        for of in pool:
            rows = st.lists(values(of, True) if required else values(of, False).filter(bool), max_size=2)
            yield st.builds(Record, st.just(of), rows.map(tuple))

    return draw(st.lists(st.one_of(*one()), min_size=1, max_size=10)), required


@settings(max_examples=examples(150), deadline=None)
@given(st.data(), st.booleans(), st.lists(st.integers(1, 9), max_size=4), st.sampled_from([2500, 2500, 5]))
def test_any_cut_gives_the_rows_of_the_definition(data: st.DataObject, flat: bool, cuts: list[int], most: int) -> None:
    """In one block, one by one and cut at random: rows, where the topic starts anew, and the columns after."""
    records, required = data.draw(topics(flat))
    wanted = defined(records, most)
    with patch.object(topic_columns, "MAX_COLUMNS", most):
        whole, known = shaped(records, required, flat, [])
        others = [shaped(records, required, flat, way) for way in (range(len(records)), cuts)]
    for found, learned in [(whole, known), *others]:
        assert (found.rows, found.anew, found.error) == (wanted.rows, wanted.anew, wanted.error)
        assert learned == known
