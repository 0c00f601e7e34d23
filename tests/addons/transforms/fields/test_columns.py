"""For every transform of fields, columns give what the exact form gives record by record, however blocks are cut."""

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from parquet_sink.addons.transforms.fields.cast import Cast
from parquet_sink.addons.transforms.fields.flatten import Flatten
from parquet_sink.addons.transforms.fields.insert_field import InsertField
from parquet_sink.addons.transforms.fields.mask_field import MaskField
from parquet_sink.addons.transforms.fields.replace_field import ReplaceField
from parquet_sink.addons.transforms.fields.timestamp_converter import TimestampConverter
from parquet_sink.transform.records import DecodedRecords
from tests.addons.transforms.fields.blocks import NAMES, decoded, json_values, parts, typed_records, without_columns
from tests.addons.transforms.fields.made import made
from tests.addons.transforms.fields.outcomes import exact_form, outcomes
from tests.thorough import examples

NAME = st.sampled_from([*NAMES, "new"])
SOME = st.lists(NAME, max_size=3, unique=True).map(",".join)
TARGET = st.sampled_from(["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"])
MARKED = st.builds(lambda name, mark: name + mark, NAME, st.sampled_from(["", "?", "!"]))


def given_only(**keys: str) -> dict[str, str]:
    """Keys by their names, `_` for `.`; those without a text are left out."""
    return {name.replace("_", "."): text for name, text in keys.items() if text}


@st.composite
def inserted(draw: st.DrawFn) -> dict[str, str]:
    """Keys of InsertField."""
    names = ["topic", "partition", "offset", "timestamp", "static"]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    found = {f"{one}.field": draw(MARKED) for one in chosen}
    return {**found, "static.value": "fixed"} if "static" in chosen else found


TRANSFORMS: st.SearchStrategy[tuple[Any, dict[str, str]]] = st.one_of(
    st.tuples(st.just(Cast), st.dictionaries(NAME, TARGET, min_size=1, max_size=3)).map(
        lambda found: (found[0], {"spec": ",".join(map(":".join, found[1].items()))})
    ),
    st.tuples(st.just(Cast), TARGET.map(lambda target: {"spec": target})),
    st.tuples(
        st.just(ReplaceField),
        st.builds(
            given_only,
            include=SOME,
            exclude=SOME,
            renames=st.lists(st.tuples(NAME, NAME).map(":".join), max_size=3, unique=True).map(",".join),
        ),
    ),
    st.tuples(st.just(InsertField), inserted()),
    st.tuples(st.just(Flatten), st.sampled_from([".", "", "_"]).map(lambda delimiter: {"delimiter": delimiter})),
    st.tuples(
        st.just(TimestampConverter),
        st.fixed_dictionaries(
            {
                "target.type": st.sampled_from(["string", "unix", "Date", "Time", "Timestamp"]),
                "format": st.sampled_from(["yyyy-MM-dd", "yyyy", "d"]),
            },
            optional={
                "field": NAME,
                "unix.precision": st.sampled_from(["seconds", "milliseconds", "microseconds", "nanoseconds"]),
            },
        ),
    ),
    st.tuples(
        st.just(MaskField),
        st.builds(
            given_only,
            fields=SOME.filter(bool),
            replacement=st.sampled_from(["", "12", "12.7", "1e3", "x", "300", "-99999999999999999999"]),
        ),
    ),
)
settings.register_profile("columns", suppress_health_check=[HealthCheck.too_slow], deadline=None)


def applied(kind: Any, keys: dict[str, str], records: DecodedRecords, *, one_by_one: bool = False) -> dict[int, object]:
    """What becomes of records."""
    transform = made(kind, keys)
    return outcomes((exact_form(transform) if one_by_one else transform).apply(records))


@settings(settings.get_profile("columns"), max_examples=examples(50))
@given(TRANSFORMS, typed_records(), st.integers(0, 12))
def test_with_a_schema(transform: tuple[Any, dict[str, str]], records: DecodedRecords, cut: int) -> None:
    """Typed records."""
    expected = applied(*transform, records, one_by_one=True)
    assert applied(*transform, records) == expected
    first, second = (applied(*transform, part) for part in parts(records, cut))
    assert first | second == expected


MIXED = [b'{"a":5}', b'{"a":5.5}', b'{"a":5.0}', b'{"a":null}', b'{"b":1}'] * 20
"""Numbers that are read as fractions, though some are whole."""


@settings(settings.get_profile("columns"), max_examples=examples(50))
@given(TRANSFORMS, json_values(), st.booleans(), st.integers(0, 100))
@example((Cast, {"spec": "a:string"}), MIXED, False, 50)
@example((MaskField, {"fields": "a", "replacement": "12.7"}), MIXED, False, 50)
@example((Cast, {"spec": "a:int8"}), MIXED, False, 50)
@example((Cast, {"spec": "a:float32"}), MIXED, False, 50)
def test_without_a_schema(
    transform: tuple[Any, dict[str, str]], values: list[bytes], discard_lists: bool, cut: int
) -> None:
    """JSON that the decoder read as columns; lists as texts, or left out."""
    records = decoded(values, discard_lists=discard_lists)
    expected = applied(*transform, without_columns(records))
    assert expected == applied(*transform, decoded(values, as_trees=True))
    assert applied(*transform, records) == expected
    first, second = (applied(*transform, part) for part in parts(records, cut))
    assert first | second == expected


@settings(settings.get_profile("columns"), max_examples=examples(50))
@given(st.lists(TRANSFORMS, min_size=2, max_size=3), json_values(), st.booleans())
@example(
    [(TimestampConverter, {"target.type": "Timestamp", "field": "a"}), (Cast, {"spec": "a:int64"})],
    [b'{"a":5}', b'{"a":6}'] * 50,
    False,
)
@example(
    [(Cast, {"spec": "a:int8"}), (TimestampConverter, {"target.type": "Date", "format": "d", "field": "c"})],
    [b'{"a":null}', b'{"a":null,"c":"2147483648"}'],
    False,
)
def test_one_after_the_other(chain: list[tuple[Any, dict[str, str]]], values: list[bytes], discard_lists: bool) -> None:
    """What one transform made of columns, the next one takes as columns."""
    records = decoded(values, discard_lists=discard_lists)
    expected = without_columns(records)
    for kind, keys in chain:
        records, expected = made(kind, keys).apply(records), made(kind, keys).apply(expected)
    assert outcomes(records) == outcomes(expected)
