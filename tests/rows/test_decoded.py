"""Decoded records become rows: several schemas in one topic, evolution, keys, explosions, and plain JSON alike."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, SchemaColumns, Untyped
from parquet_sink.convert.json.decoder import JsonTrees
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.schema.topic_columns import merge
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from tests.factories import accepted
from tests.messages import assert_says
from tests.thorough import examples

KEY = "connect.ems.data.primary.key"
BARE = ShapeSettings(embed_metadata=False)
A = pa.struct([("id", pa.int64()), ("name", pa.string())])
B = pa.struct([("id", pa.int64()), ("price", pa.float64())])
TEXT_ID = pa.struct([("id", pa.string())])
Record = tuple[pa.DataType, object]


class Scripted:
    """A decoder that gives records of known types, whatever the bytes; a type of None is an invalid record."""

    def __init__(self, records: Sequence[Record | None]) -> None:
        self._records = records

    def decode(self, values: pa.BinaryArray) -> Decoded:
        by_type: dict[pa.DataType, list[int]] = {}
        for position, record in enumerate(self._records):
            if record is not None:
                by_type.setdefault(record[0], []).append(position)
        pieces = [
            SchemaColumns(pa.array(positions, pa.int64()), pa.array([self._value(at) for at in positions], arrow))
            for arrow, positions in by_type.items()
        ]
        bad = {position: "it is bad" for position, record in enumerate(self._records) if record is None}
        return Decoded(tuple(pieces), bad)

    def _value(self, position: int) -> object:
        record = self._records[position]
        assert record is not None
        return record[1]


def block(count: int, start: int = 0) -> RecordBatch:
    """So many records at contiguous offsets of topic-partition 3."""
    return RecordBatch.of("t", 3, range(start, start + count), [0] * count, [b"x"] * count)


def shape(
    config: ShapeSettings, records: Sequence[Record | None], known: pa.Schema | None = None
) -> tuple[list[Run], RowBuilder]:
    """The runs of one block, and the shaper after it."""
    shaper = RowBuilder(config, known, Scripted(records))
    return list(accepted(shaper, block(len(records)))), shaper


def refused(config: ShapeSettings, records: Sequence[Record | None]) -> tuple[list[Run], int, str]:
    """The runs before the record that is invalid, its offset and the reason."""
    found = accepted(RowBuilder(config, None, Scripted(records)), block(len(records)))
    runs: list[Run] = []
    try:
        for run in found:
            runs.append(run)  # noqa: PERF402 - what came before the error counts
    except InvalidRecord as error:
        return runs, error.offset, error.reason
    raise AssertionError("every record has a row")


def test_alternating_schemas_share_one_run() -> None:
    """Two producers of two schemas that can share columns make one run, in offset order, absent columns null."""
    (run,), _ = shape(BARE, [(A, {"id": 1, "name": "a"}), (B, {"id": 2, "price": 0.5})] * 500)
    assert run.records == 1000
    assert run.rows.slice(0, 2).to_pylist() == [
        {"id": 1, "name": "a", "price": None},
        {"id": 2, "name": None, "price": 0.5},
    ]
    assert run.rows.column("id").to_pylist() == [1, 2] * 500
    assert run.offsets.to_pylist() == list(range(1000))


def test_columns_stand_in_the_order_of_first_appearance() -> None:
    """Later records append their columns, whatever their own order."""
    (run,), shaper = shape(BARE, [(B, {"id": 1, "price": 1.0}), (A, {"id": 2, "name": "x"})])
    assert run.rows.schema.names == ["id", "price", "name"]
    assert shaper.known is not None
    assert shaper.known.names == ["id", "price", "name"]


def test_incompatible_types_start_anew_where_they_come() -> None:
    """The run ends before the record of another type; the next one is told to be incompatible."""
    runs, shaper = shape(BARE, [(A, {"id": 1, "name": "a"}), (TEXT_ID, {"id": "x"}), (TEXT_ID, {"id": "y"})])
    assert [(run.rows.schema.names, run.records, run.incompatible) for run in runs] == [
        (["id", "name"], 1, False),
        (["id"], 2, True),
    ]
    assert shaper.known is not None
    assert shaper.known.field("id").type == pa.string()


def test_alternating_incompatible_types_keep_every_row() -> None:
    """Each change is a cut, and nothing is lost or out of order."""
    runs, _ = shape(BARE, [(A, {"id": 1, "name": "a"}), (TEXT_ID, {"id": "x"})] * 50)
    assert [run.first_offset for run in runs] == list(range(100))
    assert all(run.incompatible for run in runs[1:])


def test_integers_widen_without_a_cut() -> None:
    """Nothing is lost when an int32 column takes int64, so all rows share a run."""
    short, long = pa.struct([("n", pa.int32())]), pa.struct([("n", pa.int64())])
    (run,), _ = shape(BARE, [(short, {"n": 1}), (long, {"n": 2**40}), (short, {"n": 3})])
    assert run.rows.column("n").type == pa.int64()
    assert run.rows.column("n").to_pylist() == [1, 2**40, 3]


def test_an_int64_that_meets_a_double_is_cut_once() -> None:
    """The rows before stay int64; from then on integers are doubles, unless a double cannot hold them."""
    whole, fraction = pa.struct([("n", pa.int64())]), pa.struct([("n", pa.float64())])
    runs, _ = shape(BARE, [(whole, {"n": 1}), (fraction, {"n": 0.5}), (whole, {"n": 2})])
    assert [(run.rows.column("n").to_pylist(), run.incompatible) for run in runs] == [([1], False), ([0.5, 2.0], False)]
    runs, _ = shape(BARE, [(fraction, {"n": 0.5}), (whole, {"n": 2**53 + 1})])
    assert [(run.rows.column("n").to_pylist(), run.incompatible) for run in runs] == [
        ([0.5], False),
        ([2**53 + 1], True),
    ]


def test_required_columns_stay_required_until_one_is_absent() -> None:
    """Without flattening, optionality is the schema's, and a column that some records lack becomes optional."""
    nested = replace(BARE, flatten=False)
    one = pa.struct([pa.field("id", pa.int64(), nullable=False), pa.field("a", pa.int32(), nullable=False)])
    other = pa.struct([pa.field("id", pa.int64(), nullable=False)])
    (run,), _ = shape(nested, [(one, {"id": 1, "a": 2})])
    assert [field.nullable for field in run.rows.schema] == [False, False]
    (run,), _ = shape(nested, [(one, {"id": 1, "a": 2}), (other, {"id": 2})])
    assert [field.nullable for field in run.rows.schema] == [False, True]


def test_a_bad_record_ends_the_rows_before_it() -> None:
    """What came before is given, and the error names the record; it leaves no trace in the columns."""
    runs, offset, reason = refused(BARE, [(A, {"id": 1, "name": "a"}), None, (B, {"id": 2, "price": 1.0})])
    assert ([run.rows.to_pylist() for run in runs], offset, reason) == ([[{"id": 1, "name": "a"}]], 1, "it is bad")
    shaper = RowBuilder(BARE, None, Scripted([(A, {"id": 1, "name": "a"}), None, (B, {"id": 2, "price": 1.0})]))
    with pytest.raises(InvalidRecord):
        list(accepted(shaper, block(3)))
    assert shaper.known is not None
    assert shaper.known.names == ["id", "name"]


def test_null_and_missing_keys_are_told_apart() -> None:
    """A key column that no record had is missing, one that earlier records had is null."""
    keyed = replace(BARE, primary_keys=("name",))
    for record in ((A, {"id": 2, "name": None}), (B, {"id": 2, "price": 0.0})):
        _, offset, reason = refused(keyed, [(A, {"id": 1, "name": "a"}), record])
        assert offset == 1
        assert_says(reason, KEY, "column name is null", "connect.ems.allow.null.pk=true")
    _, offset, reason = refused(keyed, [(B, {"id": 2, "price": 0.0})])
    assert offset == 0
    assert_says(reason, KEY, "column name is missing")


def test_null_keys_may_be_allowed_but_not_missing_ones() -> None:
    """Permission for nulls is none for records without the column at all."""
    keyed = replace(BARE, primary_keys=("name",), allow_null_primary_keys=True)
    (run,), _ = shape(keyed, [(A, {"id": 1, "name": None}), (B, {"id": 2, "price": 0.0})])
    assert run.records == 2
    _, offset, reason = refused(keyed, [(B, {"id": 2, "price": 0.0}), (A, {"id": 1, "name": "x"})])
    assert offset == 0
    assert_says(reason, KEY, "column name is missing")


def test_exploded_records_have_rows_of_one_offset() -> None:
    """Each element is a row with its record's metadata; an empty list has none; records are counted, not rows."""
    lines = pa.struct([("lines", pa.list_(A))])
    records: list[Record | None] = [
        (lines, {"lines": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}),
        (lines, {"lines": []}),
        (lines, {"lines": [{"id": 3, "name": "c"}]}),
    ]
    (run,), _ = shape(ShapeSettings(explode=True, primary_keys=("id",)), records)
    assert run.rows.column("kafkaOffset").to_pylist() == [0, 0, 2]
    assert run.rows.column("id").to_pylist() == [1, 2, 3]
    assert (run.records, run.first_offset, run.last_offset) == (2, 0, 2)
    assert run.offsets.to_pylist() == [0, 0, 2]


def test_an_exploded_record_with_one_bad_row_has_none() -> None:
    """A null key in any element makes the whole record invalid."""
    lines = pa.struct([("lines", pa.list_(A))])
    keyed = replace(BARE, explode=True, primary_keys=("id",))
    rows = [{"id": 1, "name": "a"}, {"id": None, "name": "b"}]
    runs, offset, _ = refused(keyed, [(lines, {"lines": rows[:1]}), (lines, {"lines": rows})])
    assert (runs[-1].rows.num_rows, offset) == (1, 1)


def exploded(*values: bytes) -> list[tuple[list[int], list[object]]]:
    """For each run of exploded JSON records the offsets and the values of column a; a refusal at the end."""
    shaper = RowBuilder(replace(BARE, explode=True), None, JsonTrees(anything=False))
    found: list[tuple[list[int], list[object]]] = []
    try:
        runs = accepted(shaper, RecordBatch.of("t", 3, range(len(values)), [0] * len(values), values))
        found.extend((run.offsets.to_pylist(), run.rows.column("a").to_pylist()) for run in runs)
    except InvalidRecord as error:
        assert_says(error.reason, "connect.ems.explode.mode=List", "cannot share columns")
        found.append(([error.offset], ["refused"]))
    return found


def test_a_run_never_divides_an_exploded_record() -> None:
    """Where a type changes within a record, all of its rows have the new one; what cannot share is refused."""
    assert exploded(b'{"m":[{"a":1}]}', b'{"m":[{"a":2},{"a":1.5}]}', b'{"m":[{"a":3}]}') == [
        ([0], [1]),
        ([1, 1, 2], [2.0, 1.5, 3.0]),
    ]
    assert exploded(b'{"m":[{"a":1}]}', b'{"m":[{"a":2},{"a":"x"}]}') == [
        ([0], [1]),
        ([1], ["refused"]),
    ]
    assert exploded(b'{"m":[{"a":1,"b":"x"}]}', b'{"m":[{"a":2},{"a":3,"b":5}]}') == [([0], [1]), ([1, 1], [2, 3])]
    assert exploded(b'{"m":[{"a":9007199254740993},{"a":0.5}]}') == [([0], ["refused"])]


def test_an_exploded_record_without_its_key_has_no_row() -> None:
    """Also when only a later element lacks the key: nothing of the record is given."""
    shaper = RowBuilder(replace(BARE, explode=True, primary_keys=("id",)), None, JsonTrees(anything=False))
    values = [b'{"m":[{"id":1,"a":1}]}', b'{"m":[{"id":2,"a":2},{"a":"x"}]}']
    rows: list[object] = []
    with pytest.raises(InvalidRecord) as caught:
        rows.extend(run.rows.to_pylist() for run in accepted(shaper, RecordBatch.of("t", 3, [0, 1], [0, 0], values)))
    assert caught.value.offset == 1
    shaper = RowBuilder(replace(BARE, explode=True, primary_keys=("id",)), None, JsonTrees(anything=False))
    runs = accepted(shaper, RecordBatch.of("t", 3, [0, 1], [0, 0], values))
    assert next(runs).offsets.to_pylist() == [0]
    with pytest.raises(InvalidRecord):
        next(runs)


def test_parts_never_divide_a_record() -> None:
    """Cut to at most one record each, an exploded record's rows stay together."""
    lines = pa.struct([("lines", pa.list_(A))])
    value = {"lines": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]}
    (run,), _ = shape(replace(BARE, explode=True), [(lines, value)] * 3)
    assert [(part.records, part.rows.num_rows) for part in run.parts(1)] == [(1, 2)] * 3


def test_what_was_learned_survives() -> None:
    """A new shaper that is given the columns of the one before, as bytes, knows them, unless settings changed."""
    _, shaper = shape(BARE, [(A, {"id": 1, "name": "a"})])
    assert shaper.known is not None
    known = pa.ipc.read_schema(pa.py_buffer(shaper.known.serialize().to_pybytes()))
    (run,), _ = shape(BARE, [(B, {"id": 1, "price": 1.0})], known)
    assert run.rows.schema.names == ["id", "name", "price"]
    (run,), _ = shape(replace(BARE, lowercase=True), [(B, {"id": 1, "price": 1.0})], known)
    assert run.rows.schema.names == ["id", "price"]


def test_two_tasks_learnings_are_merged() -> None:
    """Topic-partitions of one topic that were flushed at the same time share their columns afterwards."""
    _, first = shape(BARE, [(A, {"id": 1, "name": "a"})])
    _, second = shape(BARE, [(B, {"id": 1, "price": 1.0})])
    merged = merge(first.known, second.known)
    assert merged is not None
    assert merged.names == ["id", "name", "price"]
    (run,), _ = shape(BARE, [(A, {"id": 1, "name": "a"})], merged)
    assert run.rows.schema.names == ["id", "name", "price"]


def test_text_is_a_row_only_in_chunks() -> None:
    """A value that is not a record is refused, unless it is stored as text."""
    _, offset, reason = refused(BARE, [(pa.string(), "hello")])
    assert (offset, "not a record" in reason) == (0, True)
    chunked = replace(BARE, chunks=2, chunk_bytes=3)
    (run,), _ = shape(chunked, [(pa.string(), "hällo")])
    assert run.rows.to_pylist() == [{"payload_chunk1": "hä", "payload_chunk2": "llo"}]


JSON_VALUES = [
    *(
        b'{"a":1}',
        b'{"a":2,"b":"x"}',
        b'{"a":0.5}',
        b'{"a":"text"}',
        b'{"a":null}',
        b'{"c":{"d":true,"e":[1,"x",null]}}',
    ),
    *(b'{"c":{}}', b'{"c":{"d":null}}', b'{"b":[]}', b'{"a":9007199254740993}', b'{"b":"y","a":3}', b"null", b'{"a":'),
    *(b'{"a":[{"x":1},{"x":2}]}', b'{"c":{"d":false}}', b'{"b":null,"c":null}'),
]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.sampled_from(JSON_VALUES), max_size=30), st.booleans(), st.booleans(), st.booleans())
def test_json_by_either_way_is_the_same(values: list[bytes], flat: bool, discard: bool, metadata: bool) -> None:
    """Schemaless JSON as trees gives the rows, columns, cuts and errors that the way for plain JSON gives."""
    config = ShapeSettings(
        flatten=flat,
        discard_collections=discard,
        embed_metadata=metadata,
        obfuscation=ObfuscationSettings(("b", "c.e.value")),
    )
    plain = outcome(RowBuilder(config), values)
    assert outcome(RowBuilder(config, None, JsonTrees(anything=False)), values) == plain


def outcome(shaper: RowBuilder, values: list[bytes]) -> list[object]:
    """Rows with their columns by run, then the error."""
    seen: list[object] = []
    try:
        for run in accepted(shaper, RecordBatch.of("t", 3, range(len(values)), [0] * len(values), values)):
            run.rows.validate(full=True)
            seen.append((repr(run.rows.to_pylist()), str(run.rows.schema), run.first_offset, run.incompatible))
    except InvalidRecord as error:
        seen.append((error.offset, error.reason))
    return seen


def test_trees_and_typed_records_share_a_topic() -> None:
    """Records with and without a schema are woven together, too."""

    class Both:
        def decode(self, values: pa.BinaryArray) -> Decoded:
            typed = SchemaColumns(
                pa.array([0, 2], pa.int64()), pa.array([{"id": 1, "name": "a"}, {"id": 3, "name": None}], A)
            )
            return Decoded((typed, Untyped(pa.array([1], pa.int64()), [{"id": 2, "more": True}])))

    (run,) = accepted(RowBuilder(BARE, None, Both()), block(3))
    assert run.rows.to_pylist() == [
        {"id": 1, "name": "a", "more": None},
        {"id": 2, "name": None, "more": True},
        {"id": 3, "name": None, "more": None},
    ]


def test_paths_that_match_nothing_are_told() -> None:
    """After the first records it is known which obfuscated fields do not exist."""
    config = replace(BARE, obfuscation=ObfuscationSettings(("name", "nmae")))
    shaper = RowBuilder(config, None, Scripted([(A, {"id": 1, "name": "a"})]))
    assert shaper.unmatched() == ()
    (run,) = accepted(shaper, block(1))
    assert run.rows.to_pylist() == [{"id": 1, "name": "*****"}]
    assert shaper.unmatched() == ("nmae",)
