"""Names in lower case: one rule for two fields that become one, whatever else is set and however records are read."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded, SchemaColumns
from parquet_sink.convert.invalid import InvalidValue
from parquet_sink.convert.json import decoder as json_decoder
from parquet_sink.convert.json import fast as json_fast
from parquet_sink.errors import InvalidRecord
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.flatten.trees import lowercased
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.schema.arrow_types import distinct
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from tests.factories import accepted
from tests.messages import assert_says, saying
from tests.thorough import examples

KEY = "connect.ems.convert.lowercase.fields"
LOWER = ShapeSettings(embed_metadata=False, lowercase=True)
HIDDEN = ObfuscationSettings(("nothing.here",))
WAYS = [
    replace(LOWER, flatten=flatten, discard_collections=discard, obfuscation=obfuscation, explode=explode)
    for flatten, discard, obfuscation, explode in product([True, False], [True, False], [None, HIDDEN], [False, True])
    if flatten or not discard
]
CHUNKS = replace(LOWER, chunks=1, chunk_bytes=1_000)

leaves = st.none() | st.integers(0, 3) | st.just([]) | st.just({})
values = st.recursive(
    leaves,
    lambda below: (
        st.dictionaries(st.sampled_from(["a", "A", "b", "B", "äx", "Äx"]), below, max_size=4)
        | st.lists(below, max_size=2)
    ),
    max_leaves=6,
)
trees = st.dictionaries(st.sampled_from(["a", "A", "b", "B", "c"]), values, min_size=1, max_size=5)


def is_refused(record: dict[str, object], way: ShapeSettings) -> bool:
    """Whether names in the record clash; the elements of a record that explodes are the records."""
    only = next(iter(record.values())) if len(record) == 1 else None
    records: list[object] = [record]
    if way.explode and isinstance(only, list) and all(item is None or isinstance(item, dict) for item in only):
        records = only
    return any(clashes(one, way.discard_collections) for one in records)


def clashes(tree: object, discard: bool) -> bool:
    """The rule: two fields that both count would become one. Null does not count, nor what is discarded."""
    if isinstance(tree, list):
        return not discard and any(clashes(item, discard) for item in tree)
    if not isinstance(tree, dict):
        return False
    counted = [name for name, value in tree.items() if value is not None and not (discard and value in ({}, []))]
    counted = [name for name in counted if not (discard and isinstance(tree[name], list))]
    twice = len({name.lower() for name in counted}) < len(counted)
    return twice or any(clashes(value, discard) for value in tree.values())


def refused(one: RowBuilder, records: Sequence[object]) -> dict[int, str]:
    """Which records have no row, and why."""
    found: dict[int, str] = {}
    everything = [orjson.dumps(record) for record in records]
    start = 0
    while start < len(everything):
        part = everything[start:]
        try:
            list(accepted(one, RecordBatch.of("t", 0, range(start, start + len(part)), [0] * len(part), part)))
            break
        except InvalidRecord as error:
            found[error.offset] = error.reason
            start = error.offset + 1
    return found


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(trees, min_size=1, max_size=6), st.booleans())
def test_what_clashes_does_not_depend_on_other_settings(records: list[dict[str, object]], fast: bool) -> None:
    """A record is refused for its names exactly when two fields that count become one, in every way to columns."""
    everything: list[dict[str, object]] = [
        {"c": 1, "d": 2},
        *records,
    ]  # a record that is fine, so that a column is known
    for way in [*WAYS, CHUNKS]:
        expected = [number for number, record in enumerate(everything) if is_refused(record, way)]
        with (
            patch.object(json_decoder, "SMALLEST", 1),
            patch.object(json_decoder, "FEWEST", 1),
            patch.object(json_decoder, "ODD_WORTH_IT", 0),
            patch.object(json_fast, "attempt", json_fast.attempt if fast else lambda values, schema, unexpected: ""),
        ):
            found = refused(RowBuilder(way), everything)
        assert [number for number, reason in found.items() if KEY in reason] == expected, way


def test_null_beside_the_same_name_in_another_case() -> None:
    """A null counts as if it were not there, wherever it stands."""
    for way in [*WAYS, CHUNKS]:
        records: list[object] = [{"id": 1, "ID": None}, {"ID": None, "id": 2}, {"o": {"x": 1, "X": None}, "id": 3}]
        assert refused(RowBuilder(way), records * 100) == {}
        ((at, reason),) = refused(RowBuilder(way), [*records, {"id": 1, "ID": 0}]).items()
        assert at == 3
        assert_says(reason, KEY, "id and ID", "both become", "field id")


def test_objects_that_become_one_clash() -> None:
    """They are two fields, also where their own fields differ and flattening would give each a column."""
    record = {"A": {"x": 1}, "a": {"y": 2}}
    for way in [*WAYS, CHUNKS]:
        good: list[object] = [{"A": {"x": 1}}, {"a": {"y": 2}}] * 100
        ((at, reason),) = refused(RowBuilder(way), [*good, record]).items()
        assert at == 200
        assert_says(reason, KEY, "A and a", "both become", "field a")


def test_lists_that_are_discarded_do_not_count() -> None:
    """Neither what is in them, nor their own names."""
    discarding = [way for way in WAYS if way.discard_collections]
    assert discarding
    records: list[object] = [
        {"x": [{"a": 1, "A": 2}], "i": 1},
        {"i": 1, "I": [1]},
        {"I": [], "i": 1},
        {"I": {}, "i": 1},
    ]
    for way in discarding:
        assert refused(RowBuilder(way), records * 50) == {}
    for way in WAYS:
        if not way.discard_collections:
            assert list(refused(RowBuilder(way), records)) == [0, 1, 2, 3]


def test_exploded_elements_get_lower_case_names_also_where_lists_are_discarded() -> None:
    """The list that is exploded is not one that is discarded."""
    way = replace(LOWER, explode=True, discard_collections=True)
    block = RecordBatch.of("t", 0, [0], [0], [b'{"Items":[{"Id":1,"Tags":["x"]},{"ID":2}]}'])
    (run,) = accepted(RowBuilder(way), block)
    assert run.rows.to_pylist() == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize("way", [way for way in WAYS if not way.explode])
def test_names_in_lower_case_are_read_fast(way: ShapeSettings) -> None:
    """Records of a known form are not looked at one by one, unless they explode."""
    values = [b'{"Id":%d,"Customer":{"Name":"Ada","ZIP":null},"Note":null,"NOTE":null}' % n for n in range(300)]
    block = RecordBatch.of("t", 0, range(300), [0] * 300, values)
    one = RowBuilder(way)
    list(accepted(one, block))
    with patch.object(json_decoder, "parse", side_effect=AssertionError("a record went the exact way")):
        (run,) = accepted(one, block)
    row = {"id": 7, "customer_name": "Ada"} if way.flatten else {"id": 7, "customer": {"name": "Ada"}}
    assert run.rows.slice(7, 1).to_pylist() == [row]


class _Given:
    """A decoder that was given its answer."""

    def __init__(self, rows: pa.Array) -> None:
        self._rows = rows

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return Decoded((SchemaColumns(pa.array(range(len(self._rows)), pa.int64()), self._rows),))


def test_with_a_schema_the_fields_of_its_types_count() -> None:
    """One that can only be null does not, nor does a list that is discarded."""
    rows = pa.array(
        [{"id": 1, "ID": None, "l": [{"a": 1, "A": 2}]}] * 2,
        pa.struct(
            [("id", pa.int32()), ("ID", pa.null()), ("l", pa.list_(pa.struct([("a", pa.int32()), ("A", pa.int32())])))]
        ),
    )
    block = RecordBatch.of("t", 0, [0, 1], [0, 0], [b"", b""])
    (run,) = accepted(RowBuilder(replace(LOWER, discard_collections=True), None, _Given(rows)), block)
    assert run.rows.to_pylist() == [{"id": 1}] * 2
    with pytest.raises(InvalidRecord, match=saying("l.a and l.A", "both become", "field l.a")):
        list(accepted(RowBuilder(LOWER, None, _Given(rows)), block))
    with pytest.raises(InvalidValue, match=saying("a and A", "both become", "field a")):
        distinct(pa.struct([("a", pa.int32()), ("A", pa.int32())]))


def test_of_two_the_one_that_counts_stays_where_it_is() -> None:
    """Columns stand as if the other were not there."""
    assert list(lowercased({"ID": None, "x": 1, "Id": 2}).items()) == [("x", 1), ("id", 2)]
    assert lowercased({"ID": None, "id": None}) == {"id": None}
