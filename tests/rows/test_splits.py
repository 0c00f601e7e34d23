"""However records are cut into blocks, they give the rows that a plain walk over each record gives; nothing crashes.

The walk in `definition` is the definition.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from tests.factories import accepted
from tests.rows.definition import Json, Shaped, Topic, defined, shown
from tests.thorough import examples

BARE = ShapeSettings(embed_metadata=False)


def shaped(config: ShapeSettings, records: Sequence[Json], cuts: Sequence[int], *, handed_on: bool = False) -> Shaped:
    """The records shaped in blocks that end at the cuts. handed_on: a new shaper for each block."""
    found, shaper = Shaped(), RowBuilder(config)
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
            shaper = RowBuilder(config, shaper.known)
    return found


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


@settings(max_examples=examples(150), deadline=None)
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


@settings(max_examples=examples(150), deadline=None)
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
