"""Columns of fractions as text are what one by one gives."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.transform.fields.java import texts
from parquet_sink.transform.fields.java.float_columns import of_floats

TOLD = [
    0.0,
    -0.0,
    5e-324,
    1e-3,
    9.99e-4,
    9999999.0,
    1e7,
    1.5e7,
    -1.5e20,
    1e21,
    1e22,
    2e23,
    1.25e300,
    1.7976931348623157e308,
]
TOLD += [1e-7, -1.5e-7, 123456789.0, 120000000.0, 2.0**53, float("nan"), float("inf"), float("-inf")]


@given(
    st.lists(st.none() | st.sampled_from(TOLD) | st.floats() | st.floats(1e6, 1e9) | st.floats(1e-9, 1e-2), max_size=20)
)
def test_double(numbers: list[float | None]) -> None:
    """Of any size, null, zero with a sign, and no numbers."""
    expected = [None if number is None else texts.of_float(number) for number in numbers]
    assert of_floats(pa.array(numbers, pa.float64())).to_pylist() == expected


@given(st.lists(st.none() | st.floats(width=32) | st.integers(0, 2**31 - 1).map(float), max_size=20))
def test_float(numbers: list[float | None]) -> None:
    """The digits that tell a number from its neighbours of 32 bits."""
    array = pa.array([None if one is None else np.float32(one) for one in numbers], pa.float32())
    assert of_floats(array).to_pylist() == [None if one is None else texts.of_float32(one) for one in array.to_pylist()]


@pytest.mark.parametrize("number", TOLD)
def test_each_kind_of_number(number: float) -> None:
    """Alone in its column."""
    assert of_floats(pa.array([number])).to_pylist() == [texts.of_float(number)]
