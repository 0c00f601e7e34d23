"""Columns of fractions as text are what one by one gives."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.transforms.fields.cast import Cast
from parquet_sink.addons.transforms.fields.casting import of_floats
from parquet_sink.addons.transforms.fields.java.numbers import of_float, of_float32
from parquet_sink.convert.decoded import InferredColumns
from tests.addons.transforms.fields.blocks import decoded
from tests.addons.transforms.fields.made import made

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
    expected = [None if number is None else of_float(number) for number in numbers]
    assert of_floats(pa.array(numbers, pa.float64())).to_pylist() == expected


@given(st.lists(st.none() | st.floats(width=32) | st.integers(0, 2**31 - 1).map(float), max_size=20))
def test_float(numbers: list[float | None]) -> None:
    """The digits that tell a number from its neighbours of 32 bits."""
    array = pa.array([None if one is None else np.float32(one) for one in numbers], pa.float32())
    assert of_floats(array).to_pylist() == [None if one is None else of_float32(one) for one in array.to_pylist()]


@pytest.mark.parametrize("number", TOLD)
def test_each_kind_of_number(number: float) -> None:
    """Alone in its column."""
    assert of_floats(pa.array([number])).to_pylist() == [of_float(number)]


def test_whole_numbers_among_fractions_stay_columns() -> None:
    """Each is cast as it was written, and its record needs not be taken by itself; what is not a number is rejected."""
    values = [b'{"n":%s}' % (b"7" if at % 10 == 3 else b"7.0" if at % 10 == 4 else b"1.5") for at in range(1_000)]
    (piece,) = made(Cast, {"spec": "n:string"}).apply(decoded(values)).values
    assert isinstance(piece, InferredColumns)
    assert piece.rows.field("n").to_pylist()[:6] == ["1.5", "1.5", "1.5", "7", "7.0", "1.5"]
    texts_ = [b'{"n":"%s"}' % (b"x" if at == 5 else b" 0x1p4 " if at == 6 else b"12") for at in range(1_000)]
    found = made(Cast, {"spec": "n:float64"}).apply(decoded(texts_))
    assert list(found.rejected) == [5]
