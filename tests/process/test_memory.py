"""Garbage is collected rarely while records are handled, and at each range's end."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from parquet_sink.process import memory
from parquet_sink.process.memory import BETWEEN_RANGES_S, collect_garbage_rarely, give_back, give_back_at_times
from tests.factories import Clock


class Cycle:
    """Something that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    """Those of the process are put back."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_living_records_cause_no_collections() -> None:
    """Ten thousand objects that live are not looked at by the collector, which they would be by default."""
    collect_garbage_rarely()
    gc.collect()
    runs = [one["collections"] for one in gc.get_stats()]
    living = [[number] for number in range(10_000)]
    assert [one["collections"] for one in gc.get_stats()] == runs
    assert len(living) == 10_000


def test_cycles_are_freed_at_the_end_of_a_range() -> None:
    """What such a process leaves behind in cycles does not stay for long."""
    collect_garbage_rarely()
    freed = weakref.ref(Cycle())
    assert freed() is not None
    give_back()
    assert freed() is None


def test_between_short_ranges_it_is_given_back_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after each of them; the end of a task counts, too."""
    clock, collected = Clock(1_000.0), []
    monkeypatch.setattr(memory, "time", clock)
    monkeypatch.setattr(memory.gc, "collect", collected.append)
    give_back()
    for _ in range(10):
        clock.sleep(BETWEEN_RANGES_S / 4)
        give_back_at_times()
    assert len(collected) == 3
