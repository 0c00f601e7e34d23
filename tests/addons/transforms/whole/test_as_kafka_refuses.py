"""What Kafka Connect's transforms of whole records refuse, found by the comparison with them."""

import pyarrow as pa

from parquet_sink.addons.transforms.whole.structure import HoistField, SetSchemaMetadata
from parquet_sink.convert.decoded import Untyped
from parquet_sink.transform.records import DecodedRecords
from tests.addons.transforms.fields.made import made
from tests.addons.transforms.fields.outcomes import records_of, trees, typed
from tests.messages import assert_says


def test_hoist_field_makes_no_nameless_field_of_a_schema() -> None:
    """A struct has no field without a name; an object may have one."""
    hoist = made(HoistField, {"field": ""})
    found = hoist.apply(records_of(typed([{"a": 1}], pa.struct([("a", pa.int32())]))))
    assert_says(rejected(found), "HoistField", "field without a name", "a schema")
    (piece,) = hoist.apply(records_of(trees({"a": 1}))).values
    assert isinstance(piece, Untyped)
    assert list(piece.trees) == [{"": {"a": 1}}]


def test_set_schema_metadata_takes_records_alone() -> None:
    """A number with a schema is rejected, a struct is not."""
    metadata = made(SetSchemaMetadata, {"schema.name": "n"})
    found = metadata.apply(records_of(typed([5], pa.int32())))
    assert_says(rejected(found), "SetSchemaMetadata", "takes records", "none")
    assert not metadata.apply(records_of(typed([{"a": 1}], pa.struct([("a", pa.int32())])))).rejected


def rejected(found: DecodedRecords) -> str:
    """Why the one record was rejected."""
    assert found.values == ()
    ((_, reason),) = found.rejected.values()
    return reason
