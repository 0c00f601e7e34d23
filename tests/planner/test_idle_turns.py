"""Very many topic-partitions that are idle are asked in turn, and no record waits longer for that."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner import idle_turns, planner
from parquet_sink.planner.admission import tick_ms
from parquet_sink.planner.idle_turns import AT_ONCE, IDLE_AFTER, IDLE_AT_START, MOST_MS, IdleTurns
from parquet_sink.planner.planner import CHECK_S, GroupMonitor
from tests.factories import Clock


def flush_of(interval_ms: int) -> FlushSettings:
    """Thresholds of which the interval alone counts."""
    return FlushSettings(commit_size_bytes=1_000_000, commit_interval_ms=interval_ms, commit_records=1_000)


def keys_of(count: int) -> list[PartitionKey]:
    """Of one topic."""
    return [("orders", number) for number in range(count)]


def never(keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
    """For turns that ask nobody."""
    raise AssertionError(keys)


def idle_for(turns: IdleTurns, keys: list[PartitionKey], now_ms: int = 0) -> None:
    """Nothing comes to these for so long that they are known as idle."""
    for _ in range(IDLE_AFTER):
        turns.asked(dict.fromkeys(keys, 5), dict.fromkeys(keys, 5), now_ms)


def test_few_are_all_asked_at_each_tick() -> None:
    """However long they are idle."""
    turns, keys = IdleTurns(flush_of(60_000), never), keys_of(AT_ONCE)
    for tick in range(3 * IDLE_AFTER):
        assert turns.turn(dict.fromkeys(keys, 5), 1_000 * tick) == keys
        turns.asked(dict.fromkeys(keys, 5), dict.fromkeys(keys, 5), 1_000 * tick)


@given(
    st.integers(1_000, 100_000),
    st.integers(1, 400),
    st.dictionaries(st.tuples(st.integers(0, 60), st.integers(0, 399)), st.integers(1, 3), max_size=40),
    st.sets(st.integers(0, 399), max_size=5),
)
def test_each_has_its_turn_soon_and_who_has_records_at_each_tick(
    interval_ms: int, count: int, news: dict[tuple[int, int], int], silent: set[int]
) -> None:
    """Within half of the interval; what is new came after `since_ms`, and is asked for with all care at once.

    news: by tick and key. silent: those that the quick request knows nothing of.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_turns, "AT_ONCE", 10)
        flush, keys = flush_of(interval_ms), keys_of(count)
        looked_at = dict.fromkeys(keys, 0)
        ends, starts = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)
        now_ms, quiet = 0, set[PartitionKey]()

        def quick_ends(asked: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
            found = {key: ends[key] for key in asked if key[1] not in silent}
            quiet.update(key for key, end in found.items() if end == starts[key])
            return found

        turns, step = IdleTurns(flush, quick_ends), tick_ms(flush)
        for tick in range(60):
            for key in keys:
                ends[key] += news.get((tick, key[1]), 0)
            now_ms = tick * step
            chosen = turns.turn(starts, now_ms)
            assert len(set(chosen)) == len(chosen)
            assert not quiet & set(chosen)
            for key in chosen:
                since = turns.since_ms(key)
                assert since is None or looked_at[key] <= since <= looked_at[key] + 2 * step
            looked_at.update(dict.fromkeys([*chosen, *quiet], now_ms))
            quiet.clear()
            for key in keys:
                assert now_ms - looked_at[key] <= max(min(interval_ms / 2, MOST_MS), step)
            busy = {key for key in chosen if ends[key] > starts[key]}
            turns.asked({key: ends[key] for key in chosen}, starts, now_ms)
            assert busy <= set(turns.turn(starts, now_ms))
            looked_at.update(dict.fromkeys(quiet, now_ms))
            quiet.clear()
            if tick % 3 == 0:
                starts |= {key: ends[key] for key in busy}


@pytest.mark.parametrize("answer", [7, 3, None], ids=["new records", "ends below", "no answer"])
def test_one_that_does_not_end_where_we_stand_is_asked_with_all_care(answer: int | None) -> None:
    """At the same tick, and at those that follow: also one without an answer, or of a topic that was recreated."""
    ends: dict[PartitionKey, int] = dict.fromkeys(keys_of(2 * AT_ONCE), 5)
    if answer is None:
        del ends["orders", 3]
    else:
        ends["orders", 3] = answer
    turns, keys = IdleTurns(flush_of(2_000), lambda asked: ends), keys_of(2 * AT_ONCE)
    starts = dict.fromkeys(keys, 5)
    idle_for(turns, keys, now_ms=100)
    assert turns.turn(starts, 600) == [("orders", 3)]
    assert turns.since_ms(("orders", 3)) == 100 + 2 * tick_ms(flush_of(2_000))
    if answer is not None:
        turns.asked({("orders", 3): answer}, starts, 600)
        assert (("orders", 3) in turns.turn(starts, 1_100)) == (answer > 5)


def test_what_never_had_records_is_idle_sooner() -> None:
    """Not what had some once: it is asked with all care for longer."""
    turns, keys = IdleTurns(flush_of(60_000), lambda asked: dict.fromkeys(asked, 5)), keys_of(2 * AT_ONCE)
    starts, had = dict.fromkeys(keys, 5), keys[0]
    turns.asked({had: 6}, starts, 0)
    for _ in range(IDLE_AT_START):
        assert turns.turn(starts, 0) == keys
        turns.asked(dict.fromkeys(keys, 5), starts, 0)
    assert turns.turn(starts, 0) == [had]


def test_those_that_are_gone_are_forgotten() -> None:
    """Their topic was deleted; the others are asked on."""
    asked: list[PartitionKey] = []

    def quick_ends(some: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        asked.extend(some)
        return dict.fromkeys(some, 5)

    turns, keys = IdleTurns(flush_of(60_000), quick_ends), keys_of(3 * AT_ONCE)
    idle_for(turns, keys)
    for key in keys[:1_500]:
        turns.forget(key)
    for tick in range(20):
        assert turns.turn(dict.fromkeys(keys[1_500:], 5), 1_000 * tick) == []
    assert set(asked) == set(keys[1_500:])
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
