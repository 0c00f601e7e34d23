"""Which part of the topics is looked at: by time, or by a number of records; and what is said when there is none."""

import bisect

import pytest

from parquet_sink.addons.tune.window import Window, choose
from parquet_sink.errors import NothingSampled
from tests.messages import saying

NOW = 1_700_000_000_000
KEY = ("orders", 0)


class Log:
    """What `choose` asks of a cluster, of logs whose records have these ages in milliseconds, oldest first."""

    def __init__(self, *ages: list[int], first: int = 0) -> None:
        self._times = {("orders", number): [NOW - age for age in one] for number, one in enumerate(ages)}
        self._first = first
        self.asked = 0

    @property
    def keys(self) -> list[tuple[str, int]]:
        return list(self._times)

    def beginning_offsets(self, keys: object) -> dict[tuple[str, int], int]:
        return dict.fromkeys(self._times, self._first)

    def end_offsets(self, keys: object) -> dict[tuple[str, int], int]:
        return {key: self._first + len(times) for key, times in self._times.items()}

    def offsets_since(self, keys: object, since_ms: int) -> dict[tuple[str, int], int | None]:
        self.asked += 1
        found: dict[tuple[str, int], int | None] = {}
        for key, times in self._times.items():
            at = bisect.bisect_left(times, since_ms)
            found[key] = None if at == len(times) else self._first + at
        return found


def chosen(log: Log, within_s: float | None, most: int = 1_000) -> Window:
    """What `choose` finds."""
    return choose(log, log.keys, within_s, most, NOW)  # type: ignore[arg-type]


def test_a_time_up_to_now() -> None:
    """The last ten seconds are those up to now, whenever the last record came; older records are not in it."""
    window = chosen(Log([60_000, 9_000, 4_000], [50_000], first=7), 10)
    assert (window.begin_ms, window.end_ms, window.shortened) == (NOW - 10_000, NOW, False)
    assert window.spans == {("orders", 0): (8, 10), ("orders", 1): (8, 8)}


def test_topics_younger_than_the_time() -> None:
    """Where nothing is older than a part of the time, only that part counts, and this is told."""
    window = chosen(Log([8_000, 4_000]), 600)
    assert window.shortened
    assert 8_000 <= window.span_ms <= 10_000
    assert window.offsets == 2


def test_a_number_of_records() -> None:
    """About the latest N, over all topic-partitions by time, up to the newest record, however old that is."""
    year = 365 * 86_400_000
    log = Log([year + 1_000 * age for age in range(5_000, 0, -1)], [year + 2_000 * age for age in range(2_500, 0, -1)])
    window = chosen(log, None, 300)
    assert 300 <= window.offsets <= 400
    lengths = [end - start for start, end in window.spans.values()]
    assert lengths[0] == pytest.approx(2 * lengths[1], rel=0.1)
    assert log.asked < 120


def test_fewer_records_than_asked_for() -> None:
    """All that there are."""
    assert chosen(Log([90_000, 5_000], []), None, 300).spans == {("orders", 0): (0, 2), ("orders", 1): (0, 0)}


def test_one_record() -> None:
    """A topic with a single record has a window that is not empty."""
    window = chosen(Log([500]), None, 300)
    assert window.offsets == 1
    assert window.span_ms > 0


def test_records_from_the_future() -> None:
    """Timestamps later than now do not confuse what is chosen."""
    window = chosen(Log([-5_000_000, -6_000_000]), None, 300)
    assert window.offsets == 2
    assert 0 < window.span_ms < 10_000


@pytest.mark.parametrize("within_s", [10.0, None])
def test_empty_topics(within_s: float | None) -> None:
    """Topics without a record are named, with what to do instead."""
    with pytest.raises(NothingSampled, match=saying("no record of orders", "Send some", "--rate")):
        chosen(Log([], [], first=12), within_s)
