"""What is kept of a topic for the next range: columns, and what the decoder learned."""

from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.schema.topic_columns import (
    COLUMNS_KEY,
    DECODER_KEY,
    MAX_COLUMNS,
    EmptyMap,
    LearnedSchema,
    ValueTypes,
    merge,
    of_arrow,
    to_fields,
)
from parquet_sink.rows.settings import ShapeSettings

PLAIN = ShapeSettings(embed_metadata=False)
types_strategy = st.recursive(
    st.sampled_from([int, float, bool, str, EmptyMap]),
    lambda below: st.dictionaries(st.text(min_size=1, max_size=3), below, min_size=1, max_size=4),
    max_leaves=8,
)


def learned(*values: bytes, way: ShapeSettings = PLAIN) -> pa.Schema:
    """What a shaper knows after these records."""
    shaper = RowBuilder(way)
    list(shaper.shape(RecordBatch.of("t", 0, range(len(values)), [0] * len(values), values)))
    assert shaper.known is not None
    return shaper.known


@given(st.dictionaries(st.text(min_size=1, max_size=3), types_strategy, max_size=5))
def test_value_types_and_fields_are_inverse(value_types: ValueTypes) -> None:
    """Types of values survive the way through Arrow types."""
    assert {field.name: of_arrow(field.type) for field in to_fields(value_types)} == value_types


def test_merge_of_schemas() -> None:
    """What two Spark tasks learned is known to the next one: columns, and the decoder's fields."""
    first, second = learned(b'{"a":1,"o":{"x":1},"n":null}'), learned(b'{"a":1.5,"b":"x","n":true}')
    both = merge(first, second)
    assert both is not None
    assert [(field.name, str(field.type)) for field in both] == [
        ("a", "double"),
        ("o_x", "int64"),
        ("b", "string"),
        ("n", "bool"),
    ]
    decoder = LearnedSchema.restored(both, PLAIN).decoder
    assert decoder is not None
    assert all(word in decoder for word in (b'"a":"float"', b'"b":"str"', b'"n":"bool"', b'"o":{"x":"int"}'))


def test_columns_that_cannot_be_united_are_those_learned_last() -> None:
    """Text and a number share no column; nor are there more columns than a topic may have."""
    assert merge(learned(b'{"a":"x","b":1}'), learned(b'{"a":1}')).names == ["a"]  # type: ignore[union-attr]
    many = [("{" + ",".join(f'"{k}{n}":1' for n in range(MAX_COLUMNS)) + "}").encode() for k in "cd"]
    assert merge(learned(many[0]), learned(many[1])).names[0] == "d0"  # type: ignore[union-attr]


def test_merge_with_nothing_or_with_other_settings() -> None:
    """Nothing changes nothing; a schema learned otherwise is replaced by the second."""
    one, other = learned(b'{"a":1}'), learned(b'{"b":1}', way=replace(PLAIN, flatten=False))
    assert merge(None, one) is one
    assert merge(one, None) is one
    assert merge(None, None) is None
    assert merge(one, other) is other


def test_what_an_earlier_version_saved_is_no_trouble() -> None:
    """A schema under another key, or with a decoder's part that nobody can read, begins anew or without that part."""
    old = pa.schema([("a", pa.int64())], {b"parquet_sink.outline": b'{"flat":true,"fields":{"a":1}}'})
    assert LearnedSchema.restored(old, PLAIN) == LearnedSchema()
    found = learned(b'{"a":1}')
    for broken in (b"{", b"[]", b'{"reading":[false,false],"fields":{"a":"nonsense"},"lists":{}}', b"null", b"7"):
        schema = found.with_metadata({**found.metadata, DECODER_KEY: broken})
        shaper = RowBuilder(PLAIN, schema)
        values = [b'{"a":%d}' % number for number in range(100)]
        (run,) = shaper.shape(RecordBatch.of("t", 0, range(100), [0] * 100, values))
        assert isinstance(run.offsets, pa.Int64Array)
        assert merge(found, schema) is not None
        assert merge(schema, found) is not None
    assert COLUMNS_KEY in found.metadata
