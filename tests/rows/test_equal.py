"""The fast path gives exactly what the exact path gives: rows, types, runs, errors, and what was learned."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.json import fast as json_fast
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.process.native import SWITCH
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from tests.factories import accepted
from tests.rows.json_records import eager, facts, hidden, lists_of_records, regular, shape_settings, values
from tests.thorough import examples


@contextmanager
def exact_only() -> Iterator[None]:
    """The fast path covers nothing."""
    with patch.object(json_fast, "attempt", lambda values, schema, unexpected="error": ""):
        yield


def outcome(one: RowBuilder, blocks: list[list[bytes | None]]) -> list[object]:
    """Everything that can be seen of shaping blocks one after the other; rejected records among them."""
    seen: list[object] = []
    for number, block_values in enumerate(blocks):
        offsets = [1000 * number + 2 * index for index in range(len(block_values))]
        block = RecordBatch.of("t", 3, offsets, [offset + 5 for offset in offsets], block_values)
        items = one.shape(block)
        seen.extend((item.offset, item.reason) if isinstance(item, Rejected) else facts(item) for item in items)
        seen.append("" if one.known is None else one.known.remove_metadata().to_string())
    return seen


@settings(max_examples=examples(70), deadline=None)
@given(st.lists(values(), min_size=1, max_size=4), shape_settings)
def test_fast_equals_exact(blocks: list[list[bytes | None]], config: ShapeSettings) -> None:
    """Whatever the records, the settings and the cut into blocks, both paths give the same."""
    with eager():
        fast = outcome(RowBuilder(config), blocks)
    with eager(), patch.dict(os.environ, {SWITCH: "1"}):
        in_c = outcome(RowBuilder(config), blocks)
    with exact_only():
        exact = outcome(RowBuilder(config), blocks)
    assert fast == exact
    assert in_c == exact


@settings(max_examples=examples(70), deadline=None)
@given(st.lists(lists_of_records(), min_size=1, max_size=3), shape_settings, hidden)
def test_fast_equals_exact_where_records_have_lists(
    blocks: list[list[bytes | None]], config: ShapeSettings, obfuscation: ObfuscationSettings | None
) -> None:
    """Whatever is in them, wherever they stand, and also where they are obfuscated and in lower case."""
    config = replace(config, obfuscation=obfuscation)
    with eager():
        fast = outcome(RowBuilder(config), blocks)
    with exact_only():
        exact = outcome(RowBuilder(config), blocks)
    assert fast == exact


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(values(), min_size=2, max_size=4), shape_settings)
def test_known_carries_everything(blocks: list[list[bytes | None]], config: ShapeSettings) -> None:
    """A new shaper for each block, given what the one before knew as bytes, equals one shaper for all."""
    with eager():
        one = outcome(RowBuilder(config), blocks)
        many: list[object] = []
        known: bytes | None = None
        for number, block in enumerate(blocks):
            schema = None if known is None else pa.ipc.read_schema(pa.py_buffer(known))
            each = RowBuilder(config, schema)
            many.extend(outcome(each, [*([[]] * number), block])[number:])
            known = None if each.known is None else each.known.serialize().to_pybytes()
    assert one == many


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(regular(), max_size=40), st.integers(1, 40), shape_settings)
def test_cut_into_blocks_changes_no_row(texts: list[str], size: int, config: ShapeSettings) -> None:
    """However records are cut into blocks, each row has the same values where it has the same columns."""
    everything = [text.encode("utf-8", "surrogateescape") for text in texts]
    with eager():
        whole = rows_by_offset(RowBuilder(config), everything, len(everything) or 1)
        parts = rows_by_offset(RowBuilder(config), everything, size)
    assert whole == parts


def rows_by_offset(one: RowBuilder, everything: list[bytes], size: int) -> list[object]:
    """Rows without nulls, and errors, in the order of offsets."""
    seen: list[object] = []
    for start in range(0, len(everything), size):
        part = everything[start : start + size]
        try:
            for run in accepted(one, RecordBatch.of("t", 0, range(start, start + len(part)), [0] * len(part), part)):
                seen.extend(repr(bare(row)) for row in run.rows.to_pylist())
        except InvalidRecord as error:
            return [*seen, (error.offset, error.reason)]
    return seen


def bare(value: object) -> object:
    """The value without nulls at any depth."""
    return {k: bare(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value
