"""Rejected records: values in their order, and no trace of them in rows, columns or runs."""

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, Decoder, SchemaColumns, Untyped
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json.exact import parse
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from tests.messages import assert_says
from tests.rows.json_records import eager, facts, shape_settings, values
from tests.thorough import examples

BARE = ShapeSettings(embed_metadata=False)
KEYED = replace(BARE, primary_keys=("id",))
SCHEMAS = (
    pa.struct([("id", pa.int64()), ("a", pa.int64())]),
    pa.struct([("id", pa.int64()), ("a", pa.float64())]),
    pa.struct([("a", pa.string())]),
    pa.struct([("id", pa.int64()), ("l", pa.list_(pa.int64()))]),
)


class BySchema:
    """A decoder: `[2, {...}]` is a record of the third schema, `{...}` one without, anything else is invalid."""

    def decode(self, given: pa.BinaryArray) -> Decoded:
        found: dict[int | None, list[tuple[int, dict[str, object]]]] = {}
        invalid = {}
        for position, value in enumerate(given.to_pylist()):
            try:
                schema, tree = orjson.loads(value) if value.startswith(b"[") else (None, parse(value))
                found.setdefault(schema, []).append((position, tree))
            except (InvalidValue, ValueError):
                invalid[position] = "it is nothing"
        pieces = []
        for schema, those in found.items():
            positions, trees = pa.array([at for at, _ in those], pa.int64()), [tree for _, tree in those]
            pieces.append(
                Untyped(positions, trees)
                if schema is None
                else SchemaColumns(positions, pa.array(trees, SCHEMAS[schema]))
            )
        return Decoded(tuple(pieces), invalid)


def shaped(shaper: RowBuilder, blocks: list[RecordBatch], across: bool) -> tuple[list[Run], list[Rejected]]:
    """All runs, and all rejected records."""
    items = [item for block in blocks for item in shaper.shape(block, across_rejected=across)]
    lasts = [item.offset if isinstance(item, Rejected) else item.last_offset for item in items]
    assert lasts == sorted(lasts)
    return [one for one in items if isinstance(one, Run)], [one for one in items if isinstance(one, Rejected)]


def blocks_of(everything: list[list[tuple[int, bytes | None]]]) -> list[RecordBatch]:
    """Blocks of numbered values."""
    return [
        RecordBatch.of("t", 3, [at for at, _ in some], [at + 5 for at, _ in some], [value for _, value in some])
        for some in everything
    ]


def hold(config: ShapeSettings, decoder: Callable[[], Decoder | None], blocks: list[list[bytes | None]]) -> None:
    """Rows with rejects set aside are the rows of the same records without the rejected ones, in the same runs."""
    numbered = [[(1000 * number + at, value) for at, value in enumerate(block)] for number, block in enumerate(blocks)]
    one, parted = RowBuilder(config, None, decoder()), RowBuilder(config, None, decoder())
    runs, rejected = shaped(one, blocks_of(numbered), across=True)
    gone = {item.offset for item in rejected}
    clean = RowBuilder(config, None, decoder())
    expected, none = shaped(clean, blocks_of([[n for n in some if n[0] not in gone] for some in numbered]), across=True)
    assert none == []
    assert [facts(run) for run in runs] == [facts(run) for run in expected]
    more, same = shaped(parted, blocks_of(numbered), across=False)
    assert same == rejected
    assert not any(run.first_offset < offset < run.last_offset for run in more for offset in gone)
    assert [row for run in more for row in run.offsets.to_pylist()] == [
        row for run in runs for row in run.offsets.to_pylist()
    ]
    sent = dict(pair for some in numbered for pair in some)
    assert [(item.value, item.timestamp_ms) for item in rejected] == [(sent[at], at + 5) for at in sorted(gone)]
    assert columns(one) == columns(parted) == columns(clean)


def columns(shaper: RowBuilder) -> list[tuple[str, str]]:
    """The columns that a shaper knows."""
    return [(field.name, str(field.type)) for field in shaper.known or ()]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(values(), min_size=1, max_size=3), shape_settings)
def test_rejected_json_leaves_no_trace(blocks: list[list[bytes | None]], config: ShapeSettings) -> None:
    """Of plain JSON, whatever the records, the settings and the cut into blocks."""
    with eager():
        hold(config, lambda: None, blocks)


ONE = st.sampled_from(
    [
        *(b'[0,{"id":1,"a":2}]', b'[0,{"a":2}]', b'[1,{"id":1,"a":0.5}]', b'[0,{"id":1,"a":9007199254740993}]'),
        *(b'[2,{"a":"x"}]', b'[3,{"id":3,"l":[1]}]', b'[3,{"l":[1]}]', b'{"id":7,"a":1}', b'{"a":1}', b'{"id":"x"}'),
        *(b"junk", b'{"id":1,"b":{"c":1},"b_c":2}', b"[1,{}]"),
    ]
)


@settings(max_examples=examples(120), deadline=None)
@given(st.lists(st.lists(ONE, max_size=12), min_size=1, max_size=3), st.sampled_from([BARE, KEYED]))
def test_rejected_records_of_many_schemas_leave_no_trace(blocks: list[list[bytes]], config: ShapeSettings) -> None:
    """Of records with and without schemas that alternate: invalid ones, and ones without a key."""
    hold(config, BySchema, [[*block] for block in blocks])


def test_a_rejected_record_tells_where_it_came_from() -> None:
    """The stage is the converter's or the shape's; the reason has no content; the value is as Kafka had it."""
    texts = [b'{"id":1}', b"junk", b'{"id":null,"a":1}']
    block = RecordBatch.of("t", 3, [5, 7, 9], [1, 2, 3], texts)
    run, bad, keyless = RowBuilder(KEYED).shape(block)
    assert isinstance(run, Run)
    assert isinstance(bad, Rejected)
    assert_says(bad.reason, "not JSON", "unexpected character", "position 1")
    assert "junk" not in bad.reason
    assert bad == Rejected("t", 3, 7, Stage.VALUE_CONVERTER, bad.reason, None, b"junk", None, 2)
    assert isinstance(keyless, Rejected)
    assert (keyless.offset, keyless.stage, keyless.value) == (9, Stage.SHAPE, texts[2])
    assert_says(keyless.reason, "connect.ems.data.primary.key", "column id is null")


def test_a_rejected_record_has_its_key_and_headers_where_they_were_read() -> None:
    """They stand beside the right value, tombstones before it left out."""
    headers = [[], [("h", b"1"), ("h", None)], None]
    block = RecordBatch.of("t", 0, [1, 2, 3], [0, 0, 0], [None, b"junk", b"{"], [b"k1", b"k2", None], headers)
    first, second = RowBuilder(BARE).shape(block)
    assert isinstance(first, Rejected)
    assert isinstance(second, Rejected)
    assert (first.offset, first.key, first.headers) == (2, b"k2", (("h", b"1"), ("h", None)))
    assert (second.offset, second.key, second.headers) == (3, None, None)


@pytest.mark.parametrize("across", [True, False])
def test_few_rejects_among_many_keep_the_rest_together(across: bool) -> None:
    """With 1 % of invalid records the others are read at once all the same, and with `across` in one run a block."""
    chance = random.Random(4)
    texts = [b"junk" if chance.random() < 0.01 else b'{"id":%d,"a":"x"}' % number for number in range(10_000)]
    shaper = RowBuilder(BARE)
    list(shaper.shape(RecordBatch.of("t", 0, range(200), [0] * 200, texts[:200])))
    block = RecordBatch.of("t", 0, range(10_000), [0] * 10_000, texts)
    runs, rejected = shaped(shaper, [block], across)
    assert len(rejected) == texts.count(b"junk")
    assert sum(run.records for run in runs) == 10_000 - len(rejected)
    assert len(runs) == 1 if across else len(runs) > 50


class OnlySome:
    """A source that has keys and headers of the records at some places, and fails for all others."""

    def __init__(self, *places: int) -> None:
        self.places = places

    def key(self, index: int) -> bytes:
        assert index in self.places
        return b"k%d" % index

    def timestamp_type(self, index: int) -> str:
        assert index in self.places
        return "LogAppendTime"

    def headers(self, index: int) -> tuple[tuple[str, bytes], ...]:
        assert index in self.places
        return (("place", b"%d" % index),)


def test_key_and_headers_are_looked_up_for_rejected_records_alone() -> None:
    """Also behind tombstones, which have no row and are no failure."""
    given: list[bytes | None] = [b'{"a":1}', None, b"no", b'{"a":2}', None, None, b"[]"]
    offsets = [10 * at for at in range(7)]
    block = RecordBatch.of("orders", 3, offsets, offsets, given, source=OnlySome(2, 6))
    for across in (True, False):
        _, found = shaped(RowBuilder(BARE), [block], across)
        assert [(one.offset, one.timestamp_ms, one.value, one.key, one.headers) for one in found] == [
            (20, 20, b"no", b"k2", (("place", b"2"),)),
            (60, 60, b"[]", b"k6", (("place", b"6"),)),
        ]


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("flatten", [False, True])
def test_what_cannot_be_obfuscated_is_told_apart(across: bool, flatten: bool) -> None:
    """However the records are read: nobody may pass over it as over any other record that has no row."""
    way = replace(BARE, flatten=flatten, obfuscation=ObfuscationSettings(("a.b",), "FIX"))
    fine, number, dead_end = b'{"a":{"b":"x"},"c":1}', b'{"a":{"b":7},"c":1}', b'{"a":7,"c":1}'
    block = RecordBatch.of("orders", 0, [0, 1, 2, 3], [0] * 4, [fine, number, dead_end, b"no"])
    for reading in (eager, nullcontext):
        with reading():
            _, found = shaped(RowBuilder(way), [block], across)
        assert [(one.offset, one.stage) for one in found] == [
            (1, Stage.OBFUSCATION),
            (2, Stage.OBFUSCATION),
            (3, Stage.VALUE_CONVERTER),
        ]
    typed = pa.struct([("a", pa.struct([("b", pa.int64())]))])

    class Fixed:
        def decode(self, given: pa.BinaryArray) -> Decoded:
            rows = pa.array([{"a": {"b": 1}}] * len(given), typed)
            return Decoded((SchemaColumns(pa.array(range(len(given)), pa.int64()), rows),))

    _, found = shaped(
        RowBuilder(way, decoder=Fixed()), [RecordBatch.of("orders", 0, [0, 1], [0, 0], [b"", b""])], across
    )
    assert [one.stage for one in found] == [Stage.OBFUSCATION] * 2
