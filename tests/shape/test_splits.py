"""However records are cut into blocks, they give the rows that a plain walk over each record gives; nothing crashes.

The walk below is the definition, record by record in plain Python: it knows no Arrow, no blocks and no fast path.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.shape.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.shape.shaper import Shaper
from tests.factories import accepted

Json = dict[str, Any]
BARE = ShapeSettings(embed_metadata=False)


class CannotShare(Exception):
    """Two types of values for one column."""


@dataclass
class Topic:
    """What the definition remembers: columns with their types, and where the topic started anew."""

    config: ShapeSettings
    columns: dict[str, Any] = field(default_factory=dict)
    rows: list[tuple[int, str]] = field(default_factory=list)
    anew: list[int] = field(default_factory=list)
    error: tuple[int, str] | None = None

    def take(self, offset: int, record: Json) -> bool:
        """One record; whether it has rows, or none without being invalid."""
        if not (elements := self.elements(record)):
            return True
        try:
            rows = [self.row(element) for element in elements]
            own: dict[str, Any] = {}
            for row in rows:
                own = together(own, kinds_of(row))
            done = [fitted(own, row) for row in rows]
        except CannotShare:
            self.error = (offset, "")
            return False
        try:
            columns = together(self.columns, own, one_by_one=True)
            done = [fitted(columns, row) for row in rows]
            anew = False
        except CannotShare:
            columns, anew = own, True
        if not columns:
            self.error = (offset, "")
            return False
        for key in self.config.primary_keys:
            nulls = any(row.get(key) is None for row in done) and not self.config.allow_null_primary_keys
            if key not in columns or nulls:
                self.error = (offset, "")
                return False
        self.columns = columns
        self.rows += [(offset, shown(row)) for row in done]
        self.anew += [offset] if anew else []
        return True

    def elements(self, record: Json) -> list[Json]:
        if not self.config.explode or len(record) != 1:
            return [record]
        (only,) = record.values()
        if only is None:
            return []
        if not isinstance(only, list) or not all(one is None or isinstance(one, dict) for one in only):
            return [record]
        return [one for one in only if one is not None]

    def row(self, element: Json) -> Json:
        if not element:
            raise CannotShare
        if self.config.lowercase:
            element = lower(element)
        return self.flat(element, "") if self.config.flatten else self.nested(element)

    def flat(self, below: Json, prefix: str) -> Json:
        row: Json = {}
        for key, value in below.items():
            if isinstance(value, dict) and value:
                row |= self.flat(value, f"{prefix}{key}_")
            elif isinstance(value, dict | list):
                if not self.config.discard_collections:
                    row[prefix + key] = orjson.dumps(value).decode()
            elif value is not None:
                row[prefix + key] = value
        return row

    def nested(self, below: Json) -> Json:
        row: Json = {}
        for key, value in below.items():
            if isinstance(value, list):
                row[key] = orjson.dumps(value).decode()
            elif isinstance(value, dict):
                row |= {key: inner} if (inner := self.nested(value)) or not value else {}
            elif value is not None:
                row[key] = value
        return row


def lower(value: Any) -> Any:
    """The value with names in lower case."""
    if isinstance(value, list):
        return [lower(below) for below in value]
    return {key.lower(): lower(below) for key, below in value.items()} if isinstance(value, dict) else value


def kinds_of(row: Json) -> Any:
    """The kind of each value: its type's name, a dict for an object, `{}` for an empty one."""
    return {
        name: (kinds_of(value) if value else "{}") if isinstance(value, dict) else type(value).__name__
        for name, value in row.items()
    }


def together(known: Any, own: Any, *, one_by_one: bool = False) -> Any:
    """The types of both. one_by_one: what was only empty before cannot hold an object now."""
    both = dict(known)
    for name, kind in own.items():
        was = both.get(name, kind)
        if isinstance(was, dict) and isinstance(kind, dict):
            both[name] = together(was if name in known else {}, kind, one_by_one=one_by_one)
        elif was == kind or (isinstance(was, dict) and kind == "{}"):
            both[name] = was
        elif was == "{}" and isinstance(kind, dict) and not one_by_one:
            both[name] = kind
        elif {was, kind} == {"int", "float"} if isinstance(was, str) and isinstance(kind, str) else False:
            both[name] = "float"
        else:
            raise CannotShare
    return both


def fitted(value_types: Any, row: Json) -> Json:
    """The row as its columns hold it."""
    done: Json = {}
    for name, value in row.items():
        kind = value_types[name]
        if kind == "float" and isinstance(value, int):
            if int(float(value)) != value:
                raise CannotShare
            done[name] = float(value)
        elif isinstance(kind, dict):
            if value:
                done[name] = fitted(kind, value)
        else:
            done[name] = value
    return done


def defined(config: ShapeSettings, records: Sequence[Json]) -> Topic:
    """The definition."""
    topic = Topic(config)
    for offset, record in enumerate(records):
        if not topic.take(offset, record):
            break
    return topic


@dataclass
class Shaped:
    """What shaping gave."""

    rows: list[tuple[int, str]] = field(default_factory=list)
    anew: list[int] = field(default_factory=list)
    error: tuple[int, str] | None = None
    known: list[str] = field(default_factory=list)


def shaped(config: ShapeSettings, records: Sequence[Json], cuts: Sequence[int], *, handed_on: bool = False) -> Shaped:
    """The records shaped in blocks that end at the cuts. handed_on: a new shaper for each block."""
    found, shaper = Shaped(), Shaper(config)
    ends = sorted({cut for cut in cuts if 0 < cut < len(records)} | {len(records)})
    start = 0
    for end in ends:
        values = [json.dumps(record).encode() for record in records[start:end]]
        block = RecordBatch.of("t", 0, range(start, end), [0] * len(values), values)
        start = end
        try:
            for run in accepted(shaper, block):
                run.rows.validate(full=True)
                found.rows += zip(run.offsets.to_pylist(), map(shown, run.rows.to_pylist()), strict=True)
                found.anew += [run.first_offset] if run.incompatible else []
        except InvalidRecord as error:
            found.error = (error.offset, error.reason)
        if shaper.known is not None:
            found.known = [str(column) for column in shaper.known]
        if found.error:
            break
        if handed_on:
            shaper = Shaper(config, shaper.known)
    return found


def shown(row: Json) -> str:
    """A row to compare: 1 is not 1.0, nulls and the order of columns do not count, an empty map is `{}`."""
    return repr(ordered(row))


def ordered(value: Any) -> Any:
    """The value without nulls and with names in order, at every depth."""
    if isinstance(value, dict):
        return {name: ordered(below) for name, below in sorted(value.items()) if below is not None}
    return {} if value == [] else value


NUMBERS = st.sampled_from([0, 1, -7, 2**53, 2**53 + 1, 2**60, -(2**63), 2**63 - 1]) | st.sampled_from([0.5, 1.0, -0.0])
SCALARS = NUMBERS | NUMBERS | st.sampled_from(["x", "", "{}"]) | st.booleans() | st.none()


def objects(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Objects of a few names."""
    return st.dictionaries(st.sampled_from("abcde"), below, max_size=4)


ANYTHING = st.recursive(SCALARS, lambda below: objects(below) | st.lists(below, max_size=2), max_leaves=5)
ELEMENTS = objects(st.integers(0, 9).flatmap(lambda one: NUMBERS if one < 6 else ANYTHING)).filter(bool)
WRAPPED = st.lists(ELEMENTS | ELEMENTS | ELEMENTS | st.none(), max_size=3).map(lambda found: {"m": found})
ALIKE = st.sampled_from([{"a": 1}, {"a": 2, "b": {"a": 1}}, {"a": 0.5, "b": {"a": 0.25}}, {"b": {}}, {"c": "x"}])
PLAIN_WRAPPED = st.lists(ALIKE, min_size=1, max_size=3).map(lambda found: {"m": found})
RECORDS = WRAPPED | PLAIN_WRAPPED | PLAIN_WRAPPED | ALIKE | ELEMENTS

SETTINGS = st.builds(
    ShapeSettings,
    explode=st.sampled_from([True, True, False]),
    flatten=st.booleans(),
    discard_collections=st.booleans(),
    lowercase=st.booleans(),
    embed_metadata=st.just(False),
    primary_keys=st.sampled_from([(), (), (), ("a",)]),
    order_field=st.just("a"),
).map(lambda made: replace(made, discard_collections=made.discard_collections and made.flatten))


def same(found: Shaped, wanted: Topic) -> None:
    """Check everything but the words of an error."""
    assert found.rows == wanted.rows
    assert (found.error or (None,))[0] == (wanted.error or (None,))[0]
    assert found.anew == wanted.anew


@settings(max_examples=150, deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=12), SETTINGS, st.lists(st.integers(1, 11), max_size=4), st.booleans())
@example([{"m": [{"a": 1}, {"b": 1, "a": 0.5}]}], replace(BARE, explode=True), [], False)
@example([{"m": [{"a": 1, "b": 1}, {"a": 0.5}]}], replace(BARE, explode=True), [], False)
@example([{"m": [{"a": {}}]}, {"m": [{"a": {"b": 1}}]}], replace(BARE, explode=True, flatten=False), [1], False)
@example([{"m": [{"a": {"b": 1}}]}, {"m": [{"a": {}}]}], replace(BARE, explode=True, flatten=False), [1], False)
@example([{"m": [{"a": "x"}]}, {"m": [{"a": 1}, {"a": 0.5}]}], replace(BARE, explode=True), [], False)
@example([{"m": [{"a": 0.5}]}, {"m": [{"a": 2**60}]}], replace(BARE, explode=True), [1], False)
def test_any_cut_gives_the_rows_of_the_definition(
    records: list[Json], config: ShapeSettings, cuts: list[int], handed_on: bool
) -> None:
    """In one block, one by one and cut at random: rows, types, where the topic starts anew, and the columns after."""
    wanted = defined(config, records)
    whole = shaped(config, records, [])
    for one in (
        whole,
        shaped(config, records, range(len(records))),
        shaped(config, records, cuts, handed_on=handed_on),
    ):
        same(one, wanted)
        assert one.known == whole.known


EVERYTHING = st.builds(
    ShapeSettings,
    explode=st.booleans(),
    flatten=st.booleans(),
    discard_collections=st.booleans(),
    lowercase=st.booleans(),
    embed_metadata=st.booleans(),
    primary_keys=st.sampled_from([(), ("a",), ("b", "kafkaOffset"), ("payload_chunk1",)]),
    allow_null_primary_keys=st.booleans(),
    order_field=st.sampled_from([None, "a"]),
    decimals_to_double=st.booleans(),
    chunks=st.sampled_from([None, None, None, 2]),
    chunk_bytes=st.just(20),
    obfuscation=st.sampled_from([None, None, ObfuscationSettings(("a", "b.a")), ObfuscationSettings(("m.value.b",))]),
)
ODD = st.dictionaries(st.sampled_from(["a", "A", "", "a_b", "kafkaOffset", "m"]), ANYTHING, min_size=1, max_size=3)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(RECORDS.filter(bool) | RECORDS.filter(bool) | ODD, min_size=1, max_size=8),
    EVERYTHING,
    st.lists(st.integers(1, 7), max_size=3),
)
def test_every_record_has_rows_or_a_reason(records: list[Json], config: ShapeSettings, cuts: list[int]) -> None:
    """Whatever the settings, also such as do not belong together: no other error, and no cut changes anything."""
    whole = shaped(config, records, [])
    assert whole == shaped(config, records, range(len(records)))
    assert whole == shaped(config, records, cuts, handed_on=True)
