"""Which values are UTF-8."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.arrays import are_utf8


@given(st.lists(st.binary(max_size=6) | st.text(max_size=4).map(str.encode)), st.integers(0, 5))
def test_each_value_is_judged_as_by_python(values: list[bytes], start: int) -> None:
    """Whatever it is, and wherever it stands in its array."""
    expected = [value.decode(errors="replace").encode() == value for value in values]
    assert are_utf8(pa.array(values, pa.binary()).slice(start)).tolist() == expected[start:]
