"""A replay works no more than its share of the time, in whichever thread."""

from itertools import count

import pytest

from parquet_sink.addons.replay.pace import CREDIT_S, FULL, Pace, Rate
from tests.factories import Clock


def worked(pace: Pace, clock: Clock, seconds: float, pieces: int, records: int = 10) -> None:
    """So many pieces of work in one thread."""
    with pace.working():
        for _ in range(pieces):
            clock.seconds += seconds
            pace.rest(records)


@pytest.mark.parametrize("share", [0.01, 0.25, 0.9])
def test_work_takes_its_share(share: float) -> None:
    """After each piece it rests as long as is due."""
    clock = Clock()
    worked(Pace(Rate(share), monotonic=clock, sleep=clock.sleep), clock, 0.2, 20)
    assert clock.seconds == pytest.approx(4.0 / share)


def test_full_speed_never_rests() -> None:
    """Without a bound nothing is waited for."""
    clock = Clock()
    worked(Pace(FULL, monotonic=clock, sleep=clock.sleep), clock, 0.2, 20)
    assert clock.waits == []


def test_records_are_bounded_in_number() -> None:
    """A rate in records holds over all of them."""
    clock = Clock()
    worked(Pace(Rate(records_per_s=100), monotonic=clock, sleep=clock.sleep), clock, 0.01, 50, records=100)
    assert clock.seconds >= 49.0


def test_work_of_two_threads_at_once_counts_once() -> None:
    """What is sent while the next is written takes no more of the time than either."""
    clock = Clock()
    pace = Pace(Rate(0.5), monotonic=clock, sleep=clock.sleep)
    with pace.working():
        with pace.working():
            clock.seconds += 1.0
        pace.rest(1)
    assert clock.seconds == pytest.approx(2.0)


def test_sending_while_nobody_writes_counts() -> None:
    """What goes on in another thread during a rest makes the rest longer."""
    clock, sending = Clock(), count()
    pace: Pace

    def sleep(seconds: float) -> None:
        if next(sending) == 0:
            with pace.working():
                clock.seconds += 1.0
        clock.sleep(seconds)

    pace = Pace(Rate(0.5), monotonic=clock, sleep=sleep)
    worked(pace, clock, 1.0, 1)
    assert clock.seconds == pytest.approx(4.0)


def test_waiting_is_not_made_up_for() -> None:
    """After an hour without work it does not work an hour without a rest."""
    clock = Clock()
    pace = Pace(Rate(0.5), monotonic=clock, sleep=clock.sleep)
    with pace.working():
        with pace.resting():
            clock.seconds += 3_600
        before = clock.seconds
        for _ in range(10):
            clock.seconds += 1.0
            pace.rest(1)
    assert clock.seconds - before >= 20.0 - 2 * CREDIT_S


@pytest.mark.parametrize(
    ("rate", "words"), [(Rate(0.1), "10% of the time"), (Rate(records_per_s=1500), "1,500 records/s")]
)
def test_a_rate_in_words(rate: Rate, words: str) -> None:
    """As it is told."""
    assert str(rate) == words
