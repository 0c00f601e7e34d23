"""The history of uploads as a load: how many records came when, how large their files are, how long uploads take."""

from dataclasses import replace

import pytest

from parquet_sink.addons.tune.model import Durations
from parquet_sink.addons.tune.past import durations_of, load_of
from parquet_sink.errors import NothingSampled
from parquet_sink.history.records import Origin, UploadOutcome, UploadRecord
from tests.messages import assert_says, saying

NOW = 1_700_000_000_000


def upload(number: int, *, partition: int = 0, records: int = 100, every_ms: int = 30_000) -> UploadRecord:
    """One of a row of files, each accepted two seconds after the last of its records."""
    oldest = NOW + number * every_ms
    first = number * records
    return UploadRecord(
        file_name=f"p{partition}-{first}",
        table="T",
        topic="orders",
        partition=partition,
        first_offset=first,
        last_offset=first + records - 1,
        rows=records,
        records=records,
        size_bytes=2_000 + 60 * records,
        digest=None,
        reason="interval",
        oldest_ms=oldest,
        outcome=UploadOutcome.ACCEPTED,
        at_ms=oldest + every_ms + 2_000,
        attempts=1,
        upload_s=0.1 + records / 1e5,
    )


def test_rates_and_sizes_are_those_of_the_files() -> None:
    """Each topic-partition gets what its files had, over the time from the first record to the last upload."""
    files = [
        *(upload(number, records=10 * (1 + number % 3)) for number in range(30)),
        *(upload(number, partition=1, records=1) for number in range(0, 30, 10)),
    ]
    found = load_of(files, "The history")
    assert (found.files, found.untimed) == (33, 0)
    assert [(one.topic, one.partition) for one in found.load.partitions] == [("orders", 0), ("orders", 1)]
    assert [one.arrivals.per_span for one in found.load.partitions] == [600, 3]
    assert found.load.span_ms == 30 * 30_000 + 2_000
    sizes = found.load.partitions[0].sizes
    assert [sizes.file_bytes(count) for count in (1, 10, 30)] == pytest.approx([2_060, 2_600, 3_800], rel=0.02)
    assert sizes.overhead == pytest.approx(2_000, rel=0.05)


def test_records_come_between_the_first_of_a_file_and_that_of_the_next() -> None:
    """A file's first record came when it says, the others evenly after it."""
    curve = load_of([upload(number) for number in range(5)], "").load.partitions[0].arrivals
    assert curve.count(0) == 1
    assert curve.count(15_000) == pytest.approx(50, abs=2)
    assert curve.count(30_000) == 101


def test_a_pause_is_a_pause() -> None:
    """Between a file that was accepted and the first record of the next nothing came."""
    curve = load_of([upload(0), upload(1), upload(50)], "").load.partitions[0].arrivals
    assert curve.count(1_000_000) == curve.count(1_400_000) == 200


@pytest.mark.parametrize(
    "change",
    [{"outcome": UploadOutcome.REFUSED}, {"origin": Origin.REPLAY}, {"repeat": 1}],
    ids=["refused", "replayed", "repeated"],
)
def test_what_is_no_arrival_does_not_count(change: dict[str, object]) -> None:
    """Files that were refused, replayed or repeated are not records that came."""
    files = [upload(number) for number in range(9)]
    assert load_of([*files, replace(files[3], **change)], "").load == load_of(files, "").load


def test_too_little_is_said() -> None:
    """A history that tells nothing names what it has, and what to do instead."""
    untimed = [replace(upload(number), oldest_ms=None) for number in range(5)]
    told = saying("The history of x", "2 files", "5 without", "--sample 10m")
    with pytest.raises(NothingSampled, match=told):
        load_of([*untimed, upload(0), upload(1)], "The history of x")
    with pytest.raises(NothingSampled, match=saying("The history", "0 files", "--sample 10m")):
        load_of([], "The history of x")


def test_durations_of_uploads() -> None:
    """What a request and what its bytes take come from uploads that were accepted at once; of few nothing is said."""
    files = [upload(number, records=100 * (number + 1)) for number in range(50)]
    found, told = durations_of(files, Durations())
    # 1/1e5 s for a record of 60 bytes, 2,000 bytes of which count as such, too
    assert found.upload_bytes_per_s == pytest.approx(6e6, rel=0.01)
    assert found.upload_ms == pytest.approx(100, rel=0.02)
    assert_says(told, "50 uploads", "100 ms", "6 MB a second")
    assert durations_of(files[:9], Durations()) == (Durations(), "")
    assert durations_of([replace(one, attempts=2) for one in files], Durations()) == (Durations(), "")
    alike, _ = durations_of([replace(upload(number), upload_s=0.25) for number in range(50)], Durations())
    assert alike.upload_ms == pytest.approx(250, rel=0.01)
