"""The template of prefixes: a pure function of offsets and of the first record, which never leaves its place."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.targets.s3.prefix import FIELDS, fields, fixed_part, pattern, wrong
from parquet_sink.targets.s3.target import Origin, object_key
from tests.messages import assert_says

ORIGIN = Origin(topic="orders", partition=3, first_offset=70, table="T 1", first_ms=1_769_905_800_000)
LAKE = "lake/topic={topic}/date={yyyy}-{MM}-{dd}/hour={HH}"


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("", "f"),
        ("/", "f"),
        ("a/b", "a/b/f"),
        ("/a/b/", "a/b/f"),
        ("{topic}", "orders/f"),
        (LAKE, "lake/topic=orders/date=2026-02-01/hour=00/f"),
        ("{table}/{partition}-{first_offset}", "T%201/3-00000000000000000070/f"),
    ],
)
def test_fields_are_filled_in(template: str, key: str) -> None:
    """Between single slashes, before the file's name; dates are those of UTC."""
    assert wrong(template) is None
    assert object_key(template, ORIGIN, "f") == key


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{tpoic}", ("{tpoic}", "not a field", "use {topic}")),
        ("a/{topic", ("brace", "such as {topic}")),
        ("a}/b", ("brace", "such as {topic}")),
        ("a//b", ("empty part", "between single slashes")),
        ("a/../b", ("empty part", "between single slashes")),
        ("./a", ("empty part", "between single slashes")),
        ("a\x07", ("cannot be printed", "remove them")),
    ],
)
def test_what_is_no_template_is_told(template: str, words: tuple[str, ...]) -> None:
    """With the reason and the cure."""
    assert_says(wrong(template), *words)


@given(st.text(), st.text(), st.none() | st.integers())
def test_no_record_leads_out_of_its_prefix(topic: str, table: str, first_ms: int | None) -> None:
    """Whatever topic, table and timestamp are, an object's name has as many parts as the template."""
    origin = replace(ORIGIN, topic=topic or "t", table=table or "t", first_ms=first_ms)
    parts = object_key(f"a/{{table}}/{LAKE}", origin, "f").split("/")
    assert len(parts) == 7
    assert not {"", ".", ".."} & set(parts)


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_offsets_sort_as_their_objects_do(one: int, other: int) -> None:
    """They have leading zeros."""
    keys = [object_key("{first_offset}", replace(ORIGIN, first_offset=n), "f") for n in (one, other)]
    assert (keys[0] < keys[1]) == (one < other)


def test_a_record_without_a_timestamp_has_the_first_day() -> None:
    """And so has one whose timestamp is not a date."""
    for first_ms in (None, 10**17, -(10**17)):
        assert object_key("{yyyy}/{MM}", replace(ORIGIN, first_ms=first_ms), "f") == "1970/01/f"


def test_a_template_knows_its_fields_and_what_is_fixed() -> None:
    """What stands before the first field is common to all objects."""
    assert fixed_part(f"/{LAKE}") == "lake/topic="
    assert pattern(f"/{LAKE}/") == "lake/topic=*/date=*-*-*/hour=*"
    assert fields(LAKE) == {"topic", "yyyy", "MM", "dd", "HH"} < set(FIELDS)
