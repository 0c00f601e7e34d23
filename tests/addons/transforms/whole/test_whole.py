"""Transforms of whole records and predicates: what they do, and which settings they refuse.

What they do with and without a schema is in docs/reference/transforms, where every example is executed.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from parquet_sink.addons.transforms.whole.additions import Additions, Group, untyped
from parquet_sink.addons.transforms.whole.structure import IncompletePath, steps_of
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.convert.decoded import Reading, SchemaColumns
from parquet_sink.convert.decoders import key_decoder_for
from parquet_sink.convert.json import decoder as json
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.model.records import Header, RecordBatch
from parquet_sink.model.rejected import Stage
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.run import Run
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.transform.chain import Step, TransformChain
from parquet_sink.transform.classes import find_predicate, find_transform
from parquet_sink.transform.protocol import WrongSettings
from parquet_sink.transform.records import DecodedRecords
from tests.addons.transforms.fields.outcomes import outcomes
from tests.messages import assert_says


def transform(name: str, keys: Mapping[str, str]) -> Any:
    """A transform as a connector file names it. Raises WrongSettings."""
    found, side = find_transform(name)
    return found(read(tuple(found.keys), Resolved(keys, keys), Report()), side)


def predicate(name: str, keys: Mapping[str, str]) -> Any:
    """Likewise a predicate."""
    found = find_predicate(name)
    return found(read(tuple(found.keys), Resolved(keys, keys), Report()))


def apply(
    steps: Sequence[Step],
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[Sequence[Header]] | None = None,
    key: str = "json",
) -> DecodedRecords:
    """JSON values, with keys and headers, through the steps. The first record has no timestamp."""
    count = len(values)
    batch = RecordBatch.of("orders", 0, range(count), [at * 86_400_000 for at in range(count)], values, keys, headers)
    chain = TransformChain(steps, key_decoder_for(ConverterSettings(key)))
    return chain.apply(batch, json.decoder().for_topic(Reading(any_tree=True), None))


def trees(found: DecodedRecords) -> dict[int, object]:
    """The trees that are left, by position."""
    return {
        at: tree
        for piece in found.values
        for at, tree in zip(piece.positions.to_pylist(), getattr(piece, "trees", []), strict=True)
    }


@pytest.mark.parametrize(
    ("name", "keys", "key", "said"),
    [
        ("RegexRouter", {"regex": "[a[b]]", "replacement": "x"}, "regex", ("class in a class",)),
        ("RegexRouter", {"regex": "a", "replacement": "$1"}, "replacement", ("group 1",)),
        ("TimestampRouter", {"timestamp.format": "b"}, "timestamp.format", ("has b", "use y M d")),
        (
            "HeaderFrom",
            {"fields": "a,a", "headers": "b", "operation": "copy"},
            "headers",
            ("fields names 2", "give one header"),
        ),
        ("SetSchemaMetadata", {}, "schema.name", ("Neither", "schema.name", "schema.version")),
        ("ExtractField", {"field": "`a", "field.syntax.version": "v2"}, "field", ("backtick", "position 1")),
    ],
)
def test_settings_that_are_wrong_are_told(name: str, keys: dict[str, str], key: str, said: tuple[str, ...]) -> None:
    """By the key, with what is wrong."""
    with pytest.raises(WrongSettings) as caught:
        transform(name, keys)
    assert_says(caught.value.reasons[key], *said)


def test_a_wrong_pattern_of_topics_is_told() -> None:
    """Of a predicate likewise."""
    with pytest.raises(WrongSettings) as caught:
        predicate("TopicNameMatches", {"pattern": "a{"})
    assert "write \\{" in caught.value.reasons["pattern"]


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.", ("a", "")),
        ("", ("",)),
        ("`a`b`.c", ("a`b", "c")),
        ("`a\\`.b`", ("a`.b",)),
        ("a`.b", ("a`", "b")),
    ],
)
def test_paths(path: str, steps: tuple[str, ...]) -> None:
    """As Kafka Connect's SingleFieldPath takes them apart; the empty path is the field without a name."""
    assert steps_of(path) == steps


@pytest.mark.parametrize("path", ["`a", "`a\\`", "x.`a.b"])
def test_paths_without_an_end(path: str) -> None:
    """A backtick that nothing closes."""
    with pytest.raises(IncompletePath):
        steps_of(path)


def test_headers_may_have_one_field_several_times() -> None:
    """HeaderFrom takes its lists as they stand, repeated names too."""
    one = transform("HeaderFrom$Value", {"fields": "a,a", "headers": "x,y", "operation": "copy"})
    found = apply([Step(one)], [b'{"a":5}'], None, [[("x", b"0")]])
    assert found.headers is not None
    assert [(header.name, header.value.as_py()) for header in found.headers[0]] == [("x", b"0"), ("x", 5), ("y", 5)]


def test_a_record_without_a_timestamp_is_not_routed() -> None:
    """TimestampRouter rejects it, and names the others by their days."""
    found = apply([Step(transform("TimestampRouter", {}))], [b'{"a":1}'] * 3)
    assert found.rejected[0][0] is Stage.TRANSFORMATION
    assert found.topics is not None
    assert found.topics.take(found.positions).to_pylist() == ["orders-19700102", "orders-19700103"]


def test_routed_names_are_seen_by_predicates_and_routers() -> None:
    """The next one begins with the new name; the batch keeps the topic's own."""
    route = Step(transform("RegexRouter", {"regex": "(.*)ders", "replacement": "$1"}))
    on = predicate("TopicNameMatches", {"pattern": "or"})
    again = Step(transform("RegexRouter", {"regex": "or", "replacement": "x"}), on)
    found = apply([route, again], [b'{"a":1}'] * 2)
    assert found.topics is not None
    assert (found.topics.to_pylist(), found.batch.topic) == (["x", "x"], "orders")


def test_what_is_no_object_and_what_is_empty_is_no_tombstone() -> None:
    """JSON of any kind comes to transforms as it is; only null is a tombstone."""
    values = [b"5", b'"t"', b"[1]", b"{}", b"null", b" null ", None, b'{"a":1}']
    found = apply([], values)
    assert trees(found) == {0: 5, 1: "t", 2: [1], 3: {}, 7: {"a": 1}}
    dead = predicate("RecordIsTombstone", {})
    assert dead.test(found).to_pylist() == [False] * 4 + [True] * 3 + [False]


def test_filter_keeps_what_its_predicate_does_not_choose() -> None:
    """Nothing is rejected."""
    gone = Step(transform("Filter", {}), predicate("HasHeaderKey", {"name": "h"}), True)
    found = apply([gone], [b'{"a":1}', b'{"a":2}', None], None, [[("h", None)], [], [("H", b"")]])
    assert (trees(found), dict(found.rejected)) == ({0: {"a": 1}}, {})


def test_keys_are_taken_where_some_records_have_new_ones() -> None:
    """ValueToKey for some records, behind a predicate, leaves the keys of the others."""
    new = Step(transform("ValueToKey", {"fields": "a"}), predicate("HasHeaderKey", {"name": "h"}))
    found = apply([new], [b'{"a":1}', b'{"a":2}'], [b'"old"'] * 2, [[("h", b"")], []])
    assert outcomes(found, of_keys=True) == {0: {"a": ("int", "1")}, 1: ("str", "'old'")}


def test_trees_that_a_record_with_a_schema_gets_are_text_or_refused() -> None:
    """A key that became an object with a date in it is JSON text; one that has none is refused, that record alone."""
    deep: object = 1
    for _ in range(300):
        deep = [deep]
    column: list[object] = [{"at": pa.scalar(5, pa.timestamp("ms", "UTC"))}, deep, {"n": float("nan")}]
    work = Additions("KeyToValue", "fail")
    part = SchemaColumns(pa.array([2, 5, 9]), pa.array([{"a": 1}] * 3, pa.struct([("a", pa.int64())])))
    (found,) = work.to(part, [Group(np.arange(3), {"h": column})])
    assert isinstance(found, SchemaColumns)
    assert found.positions.to_pylist() == [2, 9]
    assert found.rows.to_pylist() == [{"a": 1, "h": '{"at":5}'}, {"a": 1, "h": '{"n":"NaN"}'}]
    assert work.rejected.keys() == {5}
    assert_says(work.rejected[5], "KeyToValue", "cannot be made")


@pytest.mark.parametrize("existing", ["replace", "keep"])
@pytest.mark.parametrize("name", ["KeyToValue", "HeaderToValue"])
@pytest.mark.parametrize("count", [1, 63, 64, 130])
def test_what_is_added_stands_behind_what_was_there(name: str, existing: str, count: int) -> None:
    """Columns are in one order, however many records are read together; what is replaced stays where it was."""
    step = Step(transform(name, {"existing": existing}))
    values = [b'{"own": %d, "b": {"c": 1}}' % n for n in range(count)]
    more = {"z": b"1", "a": b"2"}
    keys = [b'{"z": 1, "a": 2}'] * count
    shaper = RowBuilder(
        ShapeSettings(), None, json.decoder(), TransformChain([step], key_decoder_for(ConverterSettings()))
    )
    batch = RecordBatch.of("orders", 0, range(count), [0] * count, values, keys, [list(more.items())] * count)
    (run,) = shaper.shape(batch)
    assert isinstance(run, Run)
    assert run.rows.schema.names[:4] == ["own", "b_c", "z", "a"]
    clash = [b'{"own": 1, "a": 5, "b": 2}'] * count
    again = RecordBatch.of("orders", 0, range(count), [0] * count, clash, keys, [list(more.items())] * count)
    other = RowBuilder(
        ShapeSettings(), None, json.decoder(), TransformChain([step], key_decoder_for(ConverterSettings()))
    )
    (run,) = other.shape(again)
    assert isinstance(run, Run)
    assert run.rows.schema.names[:4] == ["own", "a", "b", "z"]
    assert run.rows.column("a").to_pylist() == [2 if existing == "replace" else 5] * count


def test_a_key_that_is_no_object_has_no_fields() -> None:
    """Listed fields of a number are a fault of the record, not null."""
    found = apply([Step(transform("KeyToValue", {"fields": "id"}))], [b'{"a":1}'], [b"\0\0\0\0\0\0\0\5"], None, "long")
    stage, reason = found.rejected[0]
    assert stage is Stage.TRANSFORMATION
    assert_says(reason, "KeyToValue", "fields of the key", "an int64")


@pytest.mark.parametrize(
    ("arrow", "value", "tree"),
    [
        (pa.date32(), date(2024, 1, 31), "2024-01-31"),
        (pa.time32("ms"), time(1, 2, 3, 4000), "01:02:03.004Z"),
        (pa.timestamp("ms", "UTC"), datetime(2024, 1, 31, 1, 2, 3, 4000, UTC), "2024-01-31T01:02:03.004Z"),
        (pa.decimal128(10, 2), Decimal("1.50"), "1.50"),
        (pa.binary(), b"\0\xff", "AP8="),
        (pa.float32(), 0.1, 0.1),
        (pa.float64(), float("nan"), "NaN"),
        (pa.float32(), float("-inf"), "-Infinity"),
        (pa.list_(pa.date32()), [date(2024, 1, 31), None], ["2024-01-31", None]),
        (pa.map_(pa.string(), pa.int32()), [("a", 1)], {"a": 1}),
        (pa.map_(pa.int32(), pa.binary()), [(1, b"")], [[1, ""]]),
        (pa.struct([pa.field("a", pa.date32())]), {"a": None}, {"a": None}),
    ],
)
def test_typed_values_in_records_without_a_schema(arrow: pa.DataType, value: object, tree: object) -> None:
    """Text where JSON has no form."""
    assert untyped(pa.array([value, None], arrow)) == [tree, None]
