"""What a reader's message says of a text: a pattern of it, or nothing."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.json import fast
from parquet_sink.convert.json.fallback import pattern_of

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("small", pa.int8()),
        ("f", pa.float64()),
        ("d", pa.decimal128(5, 2)),
        ("o", pa.struct([("l", pa.list_(pa.int16()))])),
        ('odd"name', pa.int64()),
    ]
)
NOT_CONVERTED = "Failed to convert JSON to int64, couldn't parse:x"


def told(*values: bytes) -> str:
    """Why these values are not read together."""
    found = fast.attempt(pa.array(values, pa.binary()), SCHEMA)
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize(
    "bad",
    [
        b'{"n" : "1"}',
        b'{"f":{"a":1}}',
        b'{"f":[1]}',
        b'{"f":true}',
        b'{"o":7}',
        b'{"n":1,"f":2,"n":3}',
        b'{"f":1e999}',
        b'{"n":1.5}',
        b'{"n":1e2}',
        b'{"small":128}',
        b'{"o":{"l":[1, 40000]}}',
        b'{"d":12.345}',
        b'{"d":"x"}',
    ],
)
def test_a_bad_text_matches_the_pattern_of_its_message(bad: bytes) -> None:
    """And a good one of the same fields does not."""
    good = b'{"n":9223372036854775807,"small":127,"f":1.5e3,"d":99.25,"o":{"l":[1,32767]}}'
    pattern = pattern_of(told(good, bad, good), SCHEMA)
    assert pattern is not None
    assert re.search(pattern, bad.decode())
    assert not re.search(pattern, good.decode())


@pytest.mark.parametrize("bad", [b'{"n":1,}', b'{"odd\\"name":"x"}', b'{"new":1}', b"x"])
def test_some_faults_have_no_look(bad: bytes) -> None:
    """Syntax, names that a text may have in another form, new fields."""
    assert pattern_of(told(bad), SCHEMA) is None


def test_without_a_field_of_whole_numbers_none_is_too_large() -> None:
    """Nor where there are too many to look for."""
    assert pattern_of(NOT_CONVERTED, pa.schema([("f", pa.float64())])) is None
    assert pattern_of(NOT_CONVERTED, pa.schema([(f"n{number}", pa.int64()) for number in range(201)])) is None


@given(st.integers(-(10**20), 10**20) | st.integers(-(2**63) - 9, -(2**63) + 9) | st.integers(2**63 - 9, 2**63 + 9))
def test_every_number_out_of_range_matches(number: int) -> None:
    """And none that is within it, but the least."""
    pattern = pattern_of(NOT_CONVERTED, pa.schema([("n", pa.int64())]))
    assert pattern is not None
    assert bool(re.search(pattern, f'{{"n":{number}}}')) == (not -(2**63) < number < 2**63)
