"""Very many topic-partitions that are idle are asked in turn, and no record waits longer for that."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner import idle_turns, planner
from parquet_sink.planner.admission import tick_ms
from parquet_sink.planner.idle_turns import AT_ONCE, IDLE_AFTER, MOST_MS, IdleTurns
from parquet_sink.planner.planner import CHECK_S, GroupMonitor
from tests.factories import Clock


def flush_of(interval_ms: int) -> FlushSettings:
    """Thresholds of which the interval alone counts."""
    return FlushSettings(commit_size_bytes=1_000_000, commit_interval_ms=interval_ms, commit_records=1_000)


def keys_of(count: int) -> list[PartitionKey]:
    """Of one topic."""
    return [("orders", number) for number in range(count)]


def test_few_are_all_asked_at_each_tick() -> None:
    """However long they are idle."""
    turns, keys = IdleTurns(flush_of(60_000)), keys_of(AT_ONCE)
    for tick in range(3 * IDLE_AFTER):
        assert turns.turn(keys) == keys
        turns.asked(dict.fromkeys(keys, 5), dict.fromkeys(keys, 5), 1_000 * tick)


@given(
    st.integers(1_000, 100_000),
    st.integers(1, 400),
    st.dictionaries(st.tuples(st.integers(0, 60), st.integers(0, 399)), st.integers(1, 3), max_size=40),
)
def test_each_has_its_turn_soon_and_who_has_records_at_each_tick(
    interval_ms: int, count: int, news: dict[tuple[int, int], int]
) -> None:
    """Within half of the interval; what is new came after `since_ms`. news: by tick and key."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_turns, "AT_ONCE", 10)
        flush, keys = flush_of(interval_ms), keys_of(count)
        turns, step = IdleTurns(flush), tick_ms(flush)
        ends, starts = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)
        asked_at = dict.fromkeys(keys, 0)
        for tick in range(60):
            for key in keys:
                ends[key] += news.get((tick, key[1]), 0)
            chosen = turns.turn(keys)
            assert len(set(chosen)) == len(chosen)
            now_ms = tick * step
            for key in chosen:
                since = turns.since_ms(key)
                assert since is None or asked_at[key] <= since <= asked_at[key] + 2 * step
                asked_at[key] = now_ms
            for key in keys:
                assert now_ms - asked_at[key] <= max(min(interval_ms / 2, MOST_MS), step)
            busy = {key for key in chosen if ends[key] > starts[key]}
            turns.asked({key: ends[key] for key in chosen}, starts, now_ms)
            assert busy <= set(turns.turn(keys))
            if tick % 3 == 0:
                starts |= {key: ends[key] for key in busy}


def test_those_that_are_gone_are_not_asked() -> None:
    """Their topic was deleted."""
    turns, keys = IdleTurns(flush_of(60_000)), keys_of(3 * AT_ONCE)
    for tick in range(2 * IDLE_AFTER):
        turns.asked(dict.fromkeys(keys, 5), dict.fromkeys(keys, 5), 1_000 * tick)
    assert len(turns.turn(keys)) == AT_ONCE
    assert set(turns.turn(keys[-1_500:])) <= set(keys[-1_500:])
    assert turns.since_ms(keys[0]) is None


def test_all_offsets_are_verified_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comes again, also when there are fewer of them by then."""
    monkeypatch.setattr(planner, "VERIFIED", 4)
    verified: list[list[PartitionKey]] = []
    clock, starts = Clock(1_000.0), dict.fromkeys(keys_of(10), 0)
    group = SimpleNamespace(verify=verified.append, recommit=lambda starts, plans: None)
    context = SimpleNamespace(offsets=SimpleNamespace(starts=starts), group=group, now=clock.now)
    monitor = GroupMonitor(context, SimpleNamespace(check=lambda topics: None), SimpleNamespace())  # type: ignore[arg-type]
    monitor.start()
    for _ in range(3):
        clock.sleep(CHECK_S)
        monitor.check()
    assert [key for some in verified for key in some] == keys_of(10)
    for key in keys_of(8):
        del starts[key]
    clock.sleep(CHECK_S)
    monitor.check()
    assert verified[-1] == keys_of(10)[8:]
