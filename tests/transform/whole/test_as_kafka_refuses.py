"""What Kafka Connect's transforms of whole records refuse, found by the comparison with them."""

import pyarrow as pa

from parquet_sink.convert.decoded import Untyped
from parquet_sink.transform.whole.structure import HoistField, SetSchemaMetadata
from tests.transform.fields.made import made
from tests.transform.fields.outcomes import outcomes, records_of, trees, typed


def test_hoist_field_makes_no_nameless_field_of_a_schema() -> None:
    """A struct has no field without a name; an object may have one."""
    hoist = made(HoistField, {"field": ""})
    rejected = "rejected: HoistField makes a field without a name, which a schema cannot have"
    found = outcomes(hoist.apply(records_of(typed([{"a": 1}], pa.struct([("a", pa.int32())])))))
    assert found == outcomes_of(rejected)
    (piece,) = hoist.apply(records_of(trees({"a": 1}))).values
    assert isinstance(piece, Untyped)
    assert list(piece.trees) == [{"": {"a": 1}}]


def test_set_schema_metadata_takes_records_alone() -> None:
    """A number with a schema is rejected, a struct is not."""
    metadata = made(SetSchemaMetadata, {"schema.name": "n"})
    found = outcomes(metadata.apply(records_of(typed([5], pa.int32()))))
    assert found == outcomes_of("rejected: SetSchemaMetadata takes records, and this is none")
    assert not metadata.apply(records_of(typed([{"a": 1}], pa.struct([("a", pa.int32())])))).rejected


def outcomes_of(reason: str) -> dict[int, object]:
    """Of one record, in the form of `outcomes`."""
    return {0: ("str", repr(reason))}
