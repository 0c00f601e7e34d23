"""Transforms of fields: exact for one record, columns where there are some, failures told one by one."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from parquet_sink.convert.decoded import InferredColumns, SchemaColumns
from parquet_sink.model.rejected import Stage
from parquet_sink.transform.fields.base import Columns, FieldTransform, TypedChange
from parquet_sink.transform.protocol import RecordFault, Side
from parquet_sink.transform.records import Origin, Origins
from tests.addons.transforms.fields.outcomes import exact_form, inferred, outcomes, records_of, trees, typed

ROW = pa.struct([pa.field("n", pa.int64())])


def doubled(value: Any, origin: Origin) -> Any:
    """The record with its number doubled; a negative one is refused, zero is dropped, none becomes the offset."""
    if value is None:
        return {"n": -1}
    number = value["n"]
    if number is not None and number < 0:
        raise RecordFault("the number is negative")
    if number == 0:
        return None
    return {"n": origin.offset if number is None else 2 * number}


class _Doubled(TypedChange):
    def value(self, value: object, origin: Origin) -> object:
        return doubled(value, origin)

    def columns(self, rows: pa.Array, origins: Origins) -> Columns | None:
        return columns(rows, origins)


def columns(rows: pa.StructArray, origins: Origins) -> Columns:
    """The same for many."""
    numbers = pc.coalesce(pc.multiply(rows.field("n"), 2), origins.offsets)
    made = pa.StructArray.from_arrays([numbers], fields=list(ROW), mask=pc.equal(numbers, 0))
    return Columns(made, pc.or_(pc.less(numbers, 0), pc.equal(numbers, 14)))


class Doubled(FieldTransform):
    """One of each form."""

    def __init__(self, side: Side = "value") -> None:
        super().__init__(side)
        self.asked = 0

    def tree(self, tree: object, origin: Origin) -> object:
        return doubled(tree, origin)

    def typed(self, arrow: pa.DataType) -> TypedChange:
        self.asked += 1
        if not pa.types.is_struct(arrow):
            raise RecordFault("it is not a record")
        return _Doubled(arrow)

    def inferred(self, piece: InferredColumns, origins: Origins) -> Columns:
        found = columns(piece.rows, origins)
        return replace(found, doubtful=pc.or_(found.doubtful, pc.equal(found.rows.field("n"), 0)))


VALUES = [1, None, -3, 4, 0, 5]
EXPECTED = {0: 2, 1: 101, 3: 8, 5: 10, 6: -1}


@pytest.mark.parametrize("kind", ["typed", "trees", "inferred"])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_each_record_by_itself(kind: str, one_by_one: bool) -> None:
    """What is refused, or becomes a tombstone, leaves its neighbours alone; a tombstone may become a record."""
    values = [{"n": value} for value in VALUES]
    piece = {
        "typed": typed(values, ROW),
        "trees": trees(*values),
        "inferred": inferred(pa.array(values, ROW), values),
    }[kind]
    transform = exact_form(Doubled()) if one_by_one else Doubled()
    out = transform.apply(records_of(piece, count=7))
    assert out.rejected == {2: (Stage.TRANSFORMATION, "the number is negative")}
    assert out.positions.to_pylist() == [0, 1, 3, 4, 5, 6]
    found = {
        at: value["n"]
        for one in out.values
        for at, value in zip(
            one.positions.to_pylist(),
            one.rows.to_pylist() if isinstance(one, SchemaColumns | InferredColumns) else one.trees,
            strict=True,
        )
    }
    assert dict(sorted(found.items())) == EXPECTED


def test_rows_and_trees_of_columns_are_changed_alike() -> None:
    """What was read as columns stays so, and its trees are changed when they are asked for."""
    values = [{"n": 1}, {"n": 2}, {}]
    out = Doubled().apply(records_of(inferred(pa.array(values, ROW), [{"n": 1}, {"n": 2}, {"n": None}])))
    (piece,) = out.values
    assert isinstance(piece, InferredColumns)
    assert piece.rows.to_pylist() == [piece.tree(row) for row in range(3)] == [{"n": 2}, {"n": 4}, {"n": 102}]


def test_a_type_that_cannot_be_changed() -> None:
    """When no record of a type can be changed all are refused, and the type is looked at once."""
    transform = Doubled()
    for _ in range(2):
        out = transform.apply(records_of(typed(["a", "b"], pa.string())))
        assert out.values == ()
        assert out.rejected == dict.fromkeys((0, 1), (Stage.TRANSFORMATION, "it is not a record"))
    assert transform.asked == 1


def test_keys() -> None:
    """For keys it works on keys alone, and asks for them."""
    transform = Doubled("key")
    assert transform.needs.keys
    assert not Doubled().needs.keys
    records = replace(records_of(trees({"n": 1}, {"n": -1})), keys=(typed([{"n": 7}, {"n": 8}], ROW),))
    out = transform.apply(records)
    assert out.values == records.values
    assert outcomes(out, of_keys=True) == outcomes(replace(records, values=(typed([{"n": 14}, {"n": 16}], ROW),)))


def test_what_is_stored_as_a_number_is_a_number() -> None:
    """Typed values are exact beyond the years and the precision of Python's own types."""
    arrow = pa.struct([("t", pa.timestamp("ms", "UTC")), ("d", pa.date32()), ("m", pa.map_(pa.string(), pa.date32()))])
    rows = pa.StructArray.from_arrays(
        [
            pa.array([2**62, None], pa.int64()).cast(pa.timestamp("ms", "UTC")),
            pa.array([-(2**30), 3], pa.int32()).cast(pa.date32()),
            pa.array([[("k", 2**30)], None], pa.map_(pa.string(), pa.int32())).cast(pa.map_(pa.string(), pa.date32())),
        ],
        fields=list(arrow),
    )
    seen = []

    class Same(Doubled):
        def typed(self, arrow: pa.DataType) -> TypedChange:
            class Change(TypedChange):
                def value(self, value: object, origin: Origin) -> object:
                    seen.append(value)
                    return value

            return Change(arrow)

    out = Same().apply(records_of(SchemaColumns(pa.array([0, 1], pa.int64()), rows)))
    assert seen == [{"t": 2**62, "d": -(2**30), "m": [("k", 2**30)]}, {"t": None, "d": 3, "m": None}]
    (piece,) = out.values
    assert isinstance(piece, SchemaColumns)
    assert piece.rows.equals(rows)


def test_origins() -> None:
    """Topic, offset and timestamp of one record and of many are the same; 0 is not a timestamp."""
    routed = replace(records_of(count=4), topics=pa.array(["a", "b", "c", "d"]))
    origins = Origins(routed, pa.array([1, 2], pa.int64()))
    assert [origins.of(0), origins.of(1)] == [Origin("b", 3, 101, 1_700_000_000_124), Origin("c", 3, 102, None)]
    assert origins.topics.to_pylist() == ["b", "c"]
    assert origins.offsets.to_pylist() == [101, 102]
    assert origins.timestamps.to_pylist() == [1_700_000_000_124, None]
    assert Origins(records_of(count=2), pa.array([1], pa.int64())).topics.to_pylist() == ["t"]


def test_rows_of_one_record_keep_their_order() -> None:
    """Of a record that has become several rows each is changed, one by one or not; one that fails takes all along."""
    positions = pa.array([0, 0, 0, 1, 1, 2], pa.int64())
    rows = pa.array([{"n": value} for value in (1, 7, 3, 4, -5, 6)], ROW)
    out = Doubled().apply(records_of(SchemaColumns(positions, rows), count=3))
    assert out.rejected.keys() == {1}
    (piece,) = out.values
    assert isinstance(piece, SchemaColumns)
    assert piece.positions.to_pylist() == [0, 0, 0, 2]
    assert piece.rows.field("n").to_pylist() == [2, 14, 6, 12]
