"""A declared load is what was said: its rate, bursts, shares and sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.addons.tune.declared_load import DeclaredLoad, load_of
from parquet_sink.addons.tune.quantities import Bursts
from tests.messages import assert_says


@given(st.floats(0.001, 50_000), st.integers(1, 20), st.sampled_from([0.0, 1.0, 2.5]))
def test_the_rate_is_kept(rate: float, partitions: int, skew: float) -> None:
    """All topic-partitions together get the rate, whatever it is and however they share it."""
    load = load_of(DeclaredLoad(rate, 300, partitions, skew=skew))
    assert len(load.partitions) == partitions
    assert load.records_per_second == pytest.approx(rate, rel=0.02)


def test_bursts_come_on_top() -> None:
    """Each minute so many records more, within two seconds of its begin, in all topic-partitions."""
    load = load_of(DeclaredLoad(60.0, 300, 2, Bursts(6_000, 60.0, 2.0)))
    assert load.records_per_second == pytest.approx(160, rel=0.02)
    for one in load.partitions:
        curve = one.arrivals
        assert curve.span_ms % 60_000 == 0
        assert curve.count(62_000) - curve.count(60_000) == pytest.approx(3_000 + 60, rel=0.05)
        assert curve.count(119_000) - curve.count(63_000) == pytest.approx(56 * 30, rel=0.15)


def test_skew_is_between_topic_partitions() -> None:
    """The second gets a half of the first, the third a third, with a skew of 1."""
    rates = [one.arrivals.per_second for one in load_of(DeclaredLoad(11_000.0, 300, 3, skew=1.0)).partitions]
    assert rates == pytest.approx([6_000, 3_000, 2_000], rel=0.02)


def test_sizes_are_those_said() -> None:
    """Parquet bytes are what was said, or a quarter of the record's."""
    assert load_of(DeclaredLoad(1.0, 400, 1)).partitions[0].sizes.file_bytes(100_000) == pytest.approx(10_003_000)
    told = load_of(DeclaredLoad(1.0, 400, 1, parquet_bytes=50)).partitions[0].sizes
    assert told.file_bytes(100_000) == pytest.approx(5_003_000)
    assert told.record_bytes == 400


def test_the_same_words_are_the_same_load() -> None:
    """Chance is the same each time, so that two runs can be compared."""
    assert load_of(DeclaredLoad(5.0, 300, 3, skew=1)) == load_of(DeclaredLoad(5.0, 300, 3, skew=1))
    assert (
        load_of(DeclaredLoad(5.0, 300, 2)).partitions[0].arrivals
        != load_of(DeclaredLoad(5.0, 300, 2)).partitions[1].arrivals
    )
    described = DeclaredLoad(500.0, 300, 12, Bursts(20_000, 300.0, 10.0), skew=1).described
    assert_says(described, "500 a second", "300 B", "12 topic-partitions", "skew 1")
    assert_says(described, "20,000 records", "within 10 s", "each 5 min")
