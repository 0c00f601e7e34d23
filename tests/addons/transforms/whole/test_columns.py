"""For transforms of whole records, columns give what records one by one give, however blocks are cut."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parquet_sink.addons.transforms.whole.record_headers import HeaderFrom
from parquet_sink.addons.transforms.whole.structure import ExtractField, HoistField, SetSchemaMetadata
from parquet_sink.addons.transforms.whole.to_value import HeaderToValue, KeyToValue
from parquet_sink.addons.transforms.whole.value_to_key import ValueToKey
from parquet_sink.config.provider import Resolved
from parquet_sink.config.report import Report
from parquet_sink.config.values import read
from parquet_sink.convert.connect_values.settings import SIMPLE_HEADER
from parquet_sink.convert.decoded import SchemaColumns, Untyped
from parquet_sink.model.records import RecordBatch
from parquet_sink.transform import headers as record_headers
from parquet_sink.transform.records import DecodedRecords
from tests.addons.transforms.fields.blocks import NAMES, decoded, json_values, parts, typed_records, without_columns
from tests.addons.transforms.fields.made import made
from tests.addons.transforms.fields.outcomes import all_of, exact_form, outcomes
from tests.thorough import examples

NAME = st.sampled_from([*NAMES, "new"])
SOME = st.lists(NAME, min_size=1, max_size=3, unique=True)
SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors], deadline=None)

FIELDS: st.SearchStrategy[tuple[Any, dict[str, str]]] = st.one_of(
    st.tuples(st.just(ExtractField), NAME.map(lambda name: {"field": name})),
    st.tuples(
        st.just(ExtractField),
        st.lists(st.sampled_from(["a", "b", "`a.b`"]), min_size=1, max_size=2).map(
            lambda steps: {"field": ".".join(steps), "field.syntax.version": "V2"}
        ),
    ),
    st.tuples(st.just(HoistField), NAME.map(lambda name: {"field": name})),
    st.tuples(st.just(SetSchemaMetadata), st.just({"schema.name": "n"})),
)
EXISTING = st.sampled_from(["fail", "keep", "replace"])
WHOLE: st.SearchStrategy[tuple[Any, dict[str, str]]] = st.one_of(
    st.tuples(st.just(ValueToKey), SOME.map(lambda names: {"fields": ",".join(names)})),
    st.tuples(
        st.just(HeaderFrom),
        st.builds(
            lambda names, how: {"fields": ",".join(names), "headers": ",".join(names), "operation": how},
            SOME,
            st.sampled_from(["move", "copy"]),
        ),
    ),
    st.tuples(
        st.just(KeyToValue),
        st.builds(
            lambda names, prefix, rule: {"fields": ",".join(names), "prefix": prefix, "existing": rule},
            st.sampled_from([[], ["k"], ["k:id", "a"]]),
            st.sampled_from(["", "key_"]),
            EXISTING,
        ),
    ),
    st.tuples(
        st.just(HeaderToValue),
        st.builds(
            lambda names, prefix, rule: {"headers": ",".join(names), "prefix": prefix, "existing": rule},
            st.sampled_from([[], ["h"], ["h:a", "i"]]),
            st.sampled_from(["", "h_"]),
            EXISTING,
        ),
    ),
)
RAW = st.sampled_from([None, b"1", b"300", b"x", b"0.5", b"2024-01-31", b'[1,"a"]', b'{"a":1}', b"true"])


def transform_of(kind: Any, keys: dict[str, str]) -> Any:
    """A transform made from keys."""
    given_keys = {name: text for name, text in keys.items() if text}
    report = Report()
    values = read(kind.keys, Resolved(given_keys, given_keys), report)
    assert report.problems == []
    return kind(values, "value")


def with_more(records: DecodedRecords, draw: st.DrawFn) -> DecodedRecords:
    """The records with keys of two kinds, or none, and headers."""
    count = len(records.batch)
    one, other = (pa.array(range(start, count, 3), pa.int64()) for start in (0, 1))
    typed = pa.array(
        [{"k": at, "a": None if at % 2 else "x"} for at in one.to_pylist()],
        pa.struct([pa.field("k", pa.int64(), nullable=False), pa.field("a", pa.string())]),
    )
    shapes: list[object] = [{"k": 5, "x": [1]}, {"k": "t", "a": None}, 7, "text", [1]]
    trees = Untyped(other, [shapes[at % 5] for at in other.to_pylist()])
    raw = draw(st.lists(st.lists(st.tuples(st.sampled_from("hij"), RAW), max_size=3), min_size=count, max_size=count))
    batch = records.batch
    headers = RecordBatch.of("t", 3, range(count), [0] * count, [b""] * count, None, raw).headers
    assert headers is not None
    keys = tuple(piece for piece in (SchemaColumns(one, typed), trees) if len(piece.positions))
    found, _ = record_headers.decoded(headers, SIMPLE_HEADER.open())
    return replace(records, batch=batch, keys=keys, headers=found)


@st.composite
def with_a_schema(draw: st.DrawFn) -> DecodedRecords:
    """Typed records."""
    return with_more(draw(typed_records()), draw)


@st.composite
def without_a_schema(draw: st.DrawFn) -> DecodedRecords:
    """Records that were read as columns, most of them."""
    return with_more(decoded(draw(json_values()), discard_lists=draw(st.booleans())), draw)


@settings(SLOW, max_examples=examples(60))
@given(FIELDS, typed_records(), st.integers(0, 12))
def test_fields_with_a_schema(transform: tuple[Any, dict[str, str]], records: DecodedRecords, cut: int) -> None:
    """Typed records, by columns and one by one."""
    one = made(*transform)
    expected = outcomes(exact_form(one).apply(records))
    assert outcomes(one.apply(records)) == expected
    first, second = (outcomes(one.apply(part)) for part in parts(records, cut))
    assert first | second == expected


@settings(SLOW, max_examples=examples(60))
@given(FIELDS, json_values(), st.booleans(), st.integers(0, 100))
def test_fields_without_a_schema(
    transform: tuple[Any, dict[str, str]], values: list[bytes], discard_lists: bool, cut: int
) -> None:
    """JSON that the decoder read as columns, and the same as trees."""
    records, one = decoded(values, discard_lists=discard_lists), made(*transform)
    expected = outcomes(one.apply(without_columns(records)))
    assert outcomes(one.apply(records)) == expected
    first, second = (outcomes(one.apply(part)) for part in parts(records, cut))
    assert first | second == expected


@settings(SLOW, max_examples=examples(60))
@given(WHOLE, with_a_schema() | without_a_schema(), st.integers(0, 12))
def test_whole_records(transform: tuple[Any, dict[str, str]], records: DecodedRecords, cut: int) -> None:
    """As columns, as trees, and each record alone; and however a predicate parts them."""
    one = transform_of(*transform)
    found = all_of(one.apply(records))
    assert all_of(one.apply(without_columns(records))) == found
    first, second = (all_of(one.apply(part)) for part in parts(records, cut))
    assert first | second == found
    alone: dict[int, object] = {}
    for at in range(min(len(records.batch), 12)):
        mask = np.arange(len(records.batch)) == at
        alone |= all_of(one.apply(records.where(mask)))
    assert alone == {at: one for at, one in found.items() if at < 12}
