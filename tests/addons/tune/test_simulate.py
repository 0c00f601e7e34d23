"""What thresholds give, where it can be said beforehand."""

import pytest

from parquet_sink.addons.tune.model import Arrivals, Durations, Load, Machine, PartitionLoad, Sizes, Thresholds
from parquet_sink.addons.tune.outcome import Window
from parquet_sink.addons.tune.simulate import Simulator, simulate
from tests.addons.tune.loads import SIZES, steady

AT_ONCE = Durations(
    look_ms=0, jitter_ms=0, plan_ms=0, range_ms=0, record_us=0, upload_ms=0, upload_bytes_per_s=1e12, finish_ms=0
)
"""Nothing takes time."""


def test_age_alone() -> None:
    """A steady load below all thresholds: a file a minute, records half a minute old on average when it goes out."""
    found = simulate(steady(3, 10), Thresholds(10_000_000, 100_000, 60_000), AT_ONCE)
    assert found.freshness is not None
    assert found.files is not None
    assert found.files_per_hour == pytest.approx(3 * 3_600 / 61, rel=0.01)
    assert (found.freshness.p50_s, found.freshness.p95_s) == pytest.approx((30.5, 58), rel=0.02)
    assert 60 <= found.freshness.max_s <= 61
    assert found.files.mean_records == pytest.approx(610, rel=0.01)
    assert found.reasons == {"interval": 1}
    assert found.keeps_up
    assert found.requests_per_hour == found.files_per_hour
    assert found.files_per_day == found.files_per_hour * 24


def test_records_alone() -> None:
    """1,000 records make a file, ten seconds of this load, to a tick."""
    found = simulate(steady(1, 100), Thresholds(10_000_000, 1_000, 3_600_000), AT_ONCE)
    assert found.freshness is not None
    assert found.files_per_hour == pytest.approx(360, rel=0.01)
    assert found.freshness.p50_s == pytest.approx(5, abs=0.6)
    assert found.reasons == {"records": 1}


def test_size_alone() -> None:
    """40 bytes a record: a file of a megabyte has about 25,000 of them, and never more bytes than allowed by far."""
    sizes = Sizes.proportional(40, overhead=2_000, record_bytes=150)
    found = simulate(steady(2, 1_000, sizes), Thresholds(1_000_000, 1_000_000, 3_600_000), AT_ONCE)
    assert found.files is not None
    assert found.files.mean_bytes == pytest.approx(1_000_000, rel=0.06)
    assert found.files.p95_bytes <= 1_000_000
    assert found.files_per_hour == pytest.approx(2 * 1_000 * 3_600 / found.files.mean_records, rel=0.01)
    assert found.stored_bytes_per_hour == pytest.approx(found.files_per_hour * found.files.mean_bytes, rel=0.01)
    assert found.sent_bytes_per_hour > found.stored_bytes_per_hour


def test_work_takes_time() -> None:
    """What planning and uploads take is added to the age of each record."""
    thresholds = Thresholds(10_000_000, 100_000, 60_000)
    quick = simulate(steady(1, 10), thresholds, AT_ONCE)
    slow = simulate(steady(1, 10), thresholds, Durations(plan_ms=4_000, upload_ms=6_000))
    assert quick.freshness is not None
    assert slow.freshness is not None
    assert slow.freshness.p50_s - quick.freshness.p50_s == pytest.approx(10, abs=1), (
        "the next file does not begin later: what came meanwhile counts as that old"
    )


def test_skew_shows_for_each_topic_partition() -> None:
    """A busy topic-partition fills its files; one with a record a minute sends each by itself, at its age."""
    busy = PartitionLoad("orders", 0, Arrivals.steady(100), SIZES)
    rare = PartitionLoad("orders", 1, Arrivals.steady(1 / 60, span_ms=60_000), SIZES)
    found = simulate(Load((busy, rare)), Thresholds(10_000_000, 1_000, 30_000), AT_ONCE)
    first, second = found.partitions
    assert (first.records_per_hour, second.records_per_hour) == pytest.approx((360_000, 60))
    assert (first.files_per_hour, second.files_per_hour) == pytest.approx((360, 60), rel=0.05)
    assert second.p99_s == pytest.approx(30.5, abs=1)
    assert first.p99_s < 12


def test_a_backlog_is_worked_off() -> None:
    """Records that waited an hour are delivered in seconds; none of them is younger than that hour."""
    one = PartitionLoad("orders", 0, Arrivals.of_times([], 60_000), SIZES, backlog=200_000, backlog_age_ms=3_600_000)
    found = simulate(Load((one,)), Thresholds(10_000_000, 10_000, 60_000), window=Window(-3_600_000, 1))
    assert found.freshness is not None
    assert 3_600 < found.freshness.max_s < 3_660
    assert found.freshness.p50_s == pytest.approx(1_800, rel=0.03)
    assert found.files is not None
    assert found.files.mean_records == 10_000


def test_more_than_can_be_done_is_told() -> None:
    """Where each record takes a millisecond, two thousand a second pile up."""
    overloaded = simulate(steady(1, 2_000), Thresholds(10_000_000, 10_000, 10_000), Durations(record_us=1_000))
    assert not overloaded.keeps_up
    assert simulate(steady(1, 2_000), Thresholds(10_000_000, 10_000, 10_000)).keeps_up


def test_cpu_is_what_was_told() -> None:
    """A millisecond for each of 100 records a second is a tenth of a core."""
    durations = Durations(cpu_record_us=1_000, cpu_file_ms=0, cpu_batch_ms=0, cpu_tick_ms=0, cpu_second_ms=0)
    found = simulate(steady(4, 25), Thresholds(10_000_000, 100_000, 10_000), durations)
    assert found.cpu_share == pytest.approx(0.1, rel=0.05)


def test_nothing_comes_of_nothing() -> None:
    """A load without records has no files and no freshness."""
    empty = Load((PartitionLoad("orders", 0, Arrivals.of_times([], 60_000), SIZES),))
    found = simulate(empty, Thresholds(10_000_000, 100_000, 10_000))
    assert (found.freshness, found.files, found.files_per_hour, found.keeps_up) == (None, None, 0, True)
    assert simulate(Load(()), Thresholds(10_000_000, 100_000, 10_000)).freshness is None


@pytest.mark.parametrize("records", [1_000, 50_000])
def test_thresholds_that_nothing_reaches_may_be_higher(records: int) -> None:
    """It is told whether records or bytes ended a file; where they did not, a higher threshold changes nothing."""
    simulator = Simulator(steady(2, 100), machine=Machine(slots=4))
    found, ended_by = simulator.watched(Thresholds(10_000_000, records, 60_000))
    higher, _ = simulator.watched(Thresholds(100_000_000, 500_000, 60_000))
    assert ended_by == ({"records"} if records == 1_000 else {"interval"})
    assert (found.freshness == higher.freshness and found.files == higher.files) is (records != 1_000)
