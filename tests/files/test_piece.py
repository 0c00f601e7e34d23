"""The age of the oldest of some records."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.files.piece import RecordTimes


@given(st.data())
def test_the_oldest_of_those_that_are_wanted(data: st.DataObject) -> None:
    """Whatever other records a block has, whatever gaps, and whether records have one row or several, or no time."""
    offsets = sorted(data.draw(st.sets(st.integers(0, 200), min_size=1, max_size=60)))
    ms = data.draw(
        st.lists(st.sampled_from([-1, 0, 5, 9, 10**12, 10**12 + 1]), min_size=len(offsets), max_size=len(offsets))
    )
    first = data.draw(st.integers(0, len(offsets) - 1))
    wanted = offsets[first : data.draw(st.integers(first + 1, len(offsets)))]
    wanted = sorted(data.draw(st.lists(st.sampled_from(wanted), min_size=1, max_size=80)))
    times = RecordTimes.of(pa.array(offsets, pa.int64()), pa.array(ms, pa.int64()))
    timed = [at for offset, at in zip(offsets, ms, strict=True) if offset in wanted and at > 0]
    assert times.oldest_ms(pa.array(wanted, pa.int64()), len(set(wanted))) == min(timed, default=None)
