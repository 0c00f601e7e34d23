"""Transforms stand between the decoder and the shaper: what they change is what is shaped, and nothing else changes."""

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Inferred, Tree
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.shape.run import Run
from parquet_sink.shape.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.shape.shaper import Shaper
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.records import DecodedRecords
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
    shaper = Shaper(shape, None, decoder_for(converter), transforms)
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
    assert Inferred in kinds


@settings(deadline=None, max_examples=40)
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
