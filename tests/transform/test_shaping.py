"""Transforms stand between the decoder and the shaper: what they change is what is shaped, and nothing else changes."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.convert.decoded import InferredColumns, Tree
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.classes import find_transform
from parquet_sink.transform.records import DecodedRecords
from tests.thorough import examples
from tests.transform.doubles import DropAll, EachTree, Identity, Stamp, Where, is_tombstone

FLAT = ShapeSettings()
JSON = ConverterSettings()
ENVELOPE = ConverterSettings("json_envelope")


def batches(values: Sequence[bytes | None], cut: int = 10_000) -> list[RecordBatch]:
    """Records at offsets 0, 2, ... in batches of so many."""
    return [
        RecordBatch.of("orders", 3, [2 * n for n in range(at, at + len(part))], [7] * len(part), part)
        for at in range(0, len(values), cut)
        for part in [values[at : at + cut]]
    ]


def shaped(
    given_batches: Iterable[RecordBatch],
    transforms: TransformChain | None = None,
    converter: ConverterSettings = JSON,
    shape: ShapeSettings = FLAT,
) -> list[Run | Rejected]:
    """What becomes of records, with transforms or without."""
    shaper = RowBuilder(shape, None, decoder_for(converter), transforms)
    return [item for batch in given_batches for item in shaper.shape(batch)]


def rows(items: Iterable[Run | Rejected]) -> list[dict[str, object]]:
    """All rows."""
    return [row for item in items if isinstance(item, Run) for row in item.rows.to_pylist()]


def plain(count: int) -> list[bytes | None]:
    """Plain JSON that is read as columns: one record in some is a tombstone, has a list, or lacks a field."""
    out: list[bytes | None] = []
    for n in range(count):
        record = {"id": n, "name": f"n{n}", "in": {"x": n / 2}, "tags": [n, "t"], "far": None if n % 3 else n}
        out.append(None if n % 50 == 7 else json.dumps(record).encode())
    return out


def enveloped(count: int) -> list[bytes | None]:
    """JSON with its schema."""
    fields = [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "name", "type": "string", "optional": True},
    ]
    schema = {"type": "struct", "optional": False, "fields": fields}
    made = [{"schema": schema, "payload": {"id": n, "name": None if n % 4 else "x"}} for n in range(count)]
    return [None if n % 50 == 7 else json.dumps(one).encode() for n, one in enumerate(made)]


FORMATS = [(JSON, plain), (ENVELOPE, enveloped)]
SHAPES = [
    FLAT,
    ShapeSettings(flatten=False),
    ShapeSettings(discard_collections=True, lowercase=True),
    ShapeSettings(obfuscation=ObfuscationSettings(("name", "tags"))),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("converter", "values"), FORMATS)
def test_an_identity_changes_no_row(converter: ConverterSettings, values: object, shape: ShapeSettings) -> None:
    """The same runs, with tombstones among them and invalid records, whether records are columns or trees."""
    made = values(400)  # type: ignore[operator]
    made[333] = b"{"
    for cut in (400, 90):
        chain = TransformChain([Step(Identity()), Step(Identity())])
        assert shaped(batches(made, cut), chain, converter, shape) == shaped(batches(made, cut), None, converter, shape)


def test_plain_json_stays_on_its_fast_path() -> None:
    """An identity gets columns, and they are taken as columns."""
    identity = Identity()
    shaped(batches(plain(2_000), 500), TransformChain([Step(identity)]))
    kinds = {type(piece) for records in identity.seen for piece in records.values}
    assert InferredColumns in kinds


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(st.integers(0, 5), min_size=1, max_size=200), st.integers(1, 90), st.sampled_from(range(2)))
def test_predicates_change_no_row(picks: list[int], cut: int, which: int) -> None:
    """However records are chosen, and cut into batches: those that are transformed come back to their places."""
    converter, values = FORMATS[which]
    made = values(len(picks))
    steps = [
        Step(Identity(), Where(lambda records, at, n=n: picks[records.batch.offsets[at].as_py() // 2] == n))
        for n in range(3)
    ]
    found, expected = (rows(shaped(batches(made, cut), chain, converter)) for chain in (TransformChain(steps), None))
    assert found == expected


@pytest.mark.parametrize(("converter", "values"), FORMATS)
def test_what_a_transform_adds_is_a_column(converter: ConverterSettings, values: object) -> None:
    """A field that a transform writes is shaped as one that the record brought; on columns as on trees."""
    made = values(600)  # type: ignore[operator]
    found = rows(shaped(batches(made, 200), TransformChain([Step(Stamp("at"))]), converter))
    assert [row["at"] for row in found] == [row["kafkaOffset"] for row in found]
    without = [{name: value for name, value in row.items() if name != "at"} for row in found]
    assert without == rows(shaped(batches(made, 200), None, converter))


def test_columns_and_trees_give_the_same_rows() -> None:
    """The exact form, record by record, defines what a transform of columns does."""

    def stamp(tree: Tree, records: DecodedRecords, at: int) -> Tree:
        return {**tree, "at": records.batch.offsets[at].as_py()}

    made = plain(600)
    by_tree, by_column = (TransformChain([Step(how)]) for how in (EachTree(stamp), Stamp("at")))
    assert rows(shaped(batches(made, 200), by_tree)) == rows(shaped(batches(made, 200), by_column))


def nested(levels: int) -> object:
    """Objects in each other."""
    found: object = 1
    for _ in range(levels):
        found = {"a": found}
    return found


LEFT: list[tuple[object, str | None]] = [
    ([pa.scalar(3, pa.date32()), {"at": pa.scalar(5, pa.timestamp("ms", "UTC"))}], '[3,{"at":5}]'),
    ([pa.scalar(7, pa.time32("ms")), None], "[7,null]"),
    ([float("nan"), float("inf"), {"b": [float("-inf")]}, None], '["NaN","Infinity",{"b":["-Infinity"]},null]'),
    ([1.5, "null"], '[1.5,"null"]'),
    ([nested(90)], "[" + '{"a":' * 90 + "1" + "}" * 90 + "]"),
    ([nested(400)], None),
    ([nested(5_000)], None),
]


@pytest.mark.parametrize("shape", [FLAT, ShapeSettings(flatten=False), ShapeSettings(chunks=2, chunk_bytes=900)])
def test_what_transforms_leave_in_lists_is_text_or_refused(shape: ShapeSettings) -> None:
    """Dates are numbers, numbers that are none are text, and what is too deep is refused, that record alone."""
    change = EachTree(lambda tree, _, at: {**tree, "l": LEFT[at][0]})
    found = shaped(batches([b'{"id": 1}'] * len(LEFT)), TransformChain([Step(change)]), shape=shape)
    texts = [text for _, text in LEFT if text is not None]
    whole = "l" if shape.chunks is None else "payload_chunk1"
    assert [row[whole] for row in rows(found)] == [
        text if shape.chunks is None else f'{{"id":1,"l":{text}}}' for text in texts
    ]
    bad = [one for one in found if isinstance(one, Rejected)]
    assert [one.offset for one in bad] == [10, 12]
    assert all("cannot be made" in one.reason for one in bad)


def cast(spec: str) -> TransformChain:
    """Cast's chain."""
    found, side = find_transform("Cast$Value")
    return TransformChain(
        [Step(found(read(tuple(found.keys), Resolved({"spec": spec}, {"spec": spec}), Report()), side))]
    )


def without_nulls(items: Iterable[Run | Rejected]) -> list[dict[str, object]]:
    """The rows; which null columns they have depends on what came before."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows(items)]


SIZES = {"int8": "int32", "int16": "int32", "int32": "int32", "int64": "int64", "float32": "float", "float64": "double"}


@settings(deadline=None, max_examples=examples(15))
@given(
    st.sampled_from([*SIZES]),
    st.lists(st.sampled_from(["1", "-7.0", "2.5", '"3"', "300", "null", "true", "1e300"]), min_size=1, max_size=150),
    st.sampled_from([FLAT, ShapeSettings(flatten=False), ShapeSettings(lowercase=True)]),
)
def test_a_column_has_the_type_that_cast_was_asked_for(target: str, texts: list[str], shape: ShapeSettings) -> None:
    """So it is for one record and for many that are read together, beside fields of the same names in objects."""
    values: list[bytes | None] = [b'{"id": 1, "a": %s, "o": {"a": 5, "f": 0.5}}' % text.encode() for text in texts]
    whole = shaped(batches(values), cast(f"a:{target}"), shape=shape)
    found = {(field.name, str(field.type)) for run in whole if isinstance(run, Run) for field in run.rows.schema}
    assert {arrow for name, arrow in found if name == "a"} <= {SIZES[target]}
    alone = shaped(batches(values, 1), cast(f"a:{target}"), shape=shape)
    assert repr(without_nulls(alone)) == repr(without_nulls(whole))
    assert {one.offset for one in alone if isinstance(one, Rejected)} == {
        one.offset for one in whole if isinstance(one, Rejected)
    }


@pytest.mark.parametrize("count", [1, 63, 64, 200])
def test_sizes_of_numbers_go_together(count: int) -> None:
    """Records that Cast did not see widen the column; nothing is lost, and later casts find numbers."""
    step = replace(cast("a:int32,f:float32")._steps[0], predicate=Where(lambda _, at: at % 3 == 0))
    values: list[bytes | None] = [b'{"a": %d, "f": 0.1}' % (n if n % 3 == 0 else 2**40 + n) for n in range(count)]
    made = shaped(batches(values), TransformChain([step]))
    assert [row["a"] for row in rows(made)] == [n if n % 3 == 0 else 2**40 + n for n in range(count)]
    assert [row["f"] for row in rows(made)] == [0.10000000149011612 if n % 3 == 0 else 0.1 for n in range(count)]
    both = [*cast("a:int32,f:float32")._steps, *cast("a:string,f:string")._steps]
    again = shaped(batches(values[:1] * count), TransformChain(both))
    assert {(row["a"], row["f"]) for row in rows(again)} == {("0", "0.1")}


def test_fractions_of_32_bits_are_short_in_json() -> None:
    """In chunks and in lists a float32 has as few digits as tell it from its neighbours, as with a schema."""
    (run,) = shaped(
        batches([b'{"f": 0.1, "i": 300}']), cast("f:float32,i:int8"), shape=ShapeSettings(chunks=1, chunk_bytes=99)
    )
    assert isinstance(run, Run)
    assert run.rows.column("payload_chunk1").to_pylist() == ['{"f":0.1,"i":44}']


def test_what_is_dropped_has_no_row_and_is_not_rejected() -> None:
    """Records that a filter takes out leave a gap; their neighbours have their own offsets."""
    drop = Step(DropAll(), Where(lambda records, at: records.batch.offsets[at].as_py() % 4 == 0))
    items = shaped(batches(plain(100)), TransformChain([drop, Step(DropAll(), Where(is_tombstone))]))
    assert all(isinstance(item, Run) for item in items)
    expected = [row for row in rows(shaped(batches(plain(100)))) if row["kafkaOffset"] % 4]  # type: ignore[operator]
    assert rows(items) == expected


def test_what_a_transform_rejects_is_named() -> None:
    """By its offset, the stage and the reason; the rows before it come before it."""

    def refuse(tree: Tree, records: DecodedRecords, at: int) -> Tree | str:
        return "field id is odd" if tree["id"] == 5 else tree

    items = shaped(batches(plain(7)), TransformChain([Step(EachTree(refuse))]))
    before, rejected, after = items
    assert isinstance(before, Run)
    assert isinstance(rejected, Rejected)
    assert isinstance(after, Run)
    assert (rejected.offset, rejected.stage, rejected.reason) == (10, Stage.TRANSFORMATION, "field id is odd")
    assert rejected.value == plain(7)[5]
    assert (before.last_offset, after.first_offset) == (8, 12)
