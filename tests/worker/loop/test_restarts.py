"""How often a query that failed is started again."""

import pytest

from parquet_sink.errors import KafkaFailed, failure_named
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.worker.loop.restarts import PAUSE_S, WINDOW_S, Positions, RestartBudget, RestartPolicy

MOST = RestartSettings().most
ONE, OTHER = ("orders", 0), ("orders", 1)


def fails(
    restarts: RestartBudget, times: int, at: Positions, failed: PartitionKey | None = None, every_s: float = 600.0
) -> int:
    """How many of so many failures one more start follows."""
    pauses = [restarts.pause_s(number * every_s, failed, at) for number in range(times)]
    return sum(pause is not None for pause in pauses)


@pytest.mark.parametrize("every_s", [0.0, 120.0, 86_400.0])
@pytest.mark.parametrize("failed", [ONE, None])
def test_a_range_that_never_gets_on_ends_the_connector(every_s: float, failed: PartitionKey | None) -> None:
    """Whatever the time between its failures, named or only known to be in flight."""
    assert fails(RestartBudget(), MOST + 3, Positions({ONE: 5}, [ONE]), failed, every_s) == MOST


def test_pauses_grow() -> None:
    """The n-th is n times the first."""
    restarts, at = RestartBudget(), Positions({ONE: 5}, [ONE])
    assert [restarts.pause_s(0, None, at) for _ in range(3)] == [PAUSE_S, 2 * PAUSE_S, 3 * PAUSE_S]


def test_progress_of_others_does_not_count() -> None:
    """One topic-partition that always fails is found, whatever the others deliver meanwhile."""
    restarts = RestartBudget()
    pauses = [restarts.pause_s(0, None, Positions({ONE: 5, OTHER: n}, [ONE])) for n in range(MOST + 1)]
    assert pauses[-1] is None


def test_progress_begins_the_count_anew() -> None:
    """Also when it came only after some failures."""
    restarts = RestartBudget()
    assert fails(restarts, MOST, Positions({ONE: 5}, [ONE])) == MOST
    assert restarts.pause_s(0, None, Positions({ONE: 6}, [ONE])) == PAUSE_S


def test_topic_partitions_that_fail_in_turn_have_counts_of_their_own() -> None:
    """Two that each fail now and then with progress do not end the connector; without progress each is found."""
    restarts = RestartBudget()
    for number in range(MOST * 3):
        assert restarts.pause_s(0, None, Positions({ONE: number, OTHER: 7}, [ONE])) is not None
    pauses = [restarts.pause_s(0, None, Positions({ONE: n + 99, OTHER: 7}, [(ONE, OTHER)[n % 2]])) for n in range(12)]
    assert pauses[-1] is None
    assert pauses[-2] is not None


def test_the_named_one_is_blamed_alone() -> None:
    """Others in flight with it are innocent."""
    restarts = RestartBudget()
    for number in range(MOST * 2):
        assert restarts.pause_s(0, ONE, Positions({ONE: number, OTHER: 7}, [ONE, OTHER])) == PAUSE_S


def test_failures_of_an_idle_connector_count_by_time() -> None:
    """With nothing in flight there is no progress to make: a lost process each month is no reason to end."""
    assert fails(RestartBudget(), MOST * 3, Positions({ONE: 5}), every_s=WINDOW_S) == MOST * 3
    assert fails(RestartBudget(), MOST * 3, Positions(), every_s=1.0) == MOST


def test_movement_is_progress_where_nothing_is_known() -> None:
    """The broker was away when it was asked what is in flight."""
    restarts = RestartBudget()
    for number in range(MOST * 3):
        assert restarts.pause_s(0, None, Positions({ONE: number})) is not None


def test_a_topic_partition_that_is_not_known_is_not_blamed() -> None:
    """A failure may be of a topic-partition that is gone."""
    assert fails(RestartBudget(), MOST + 1, Positions({OTHER: 1}), ONE, 1.0) == MOST


def test_the_topic_partition_of_a_failure_is_blamed_whatever_its_words_say() -> None:
    """Words that name another one decide nothing."""
    failure = KafkaFailed("Topic orders, topic-partition 1: away").at(ONE).failure()
    policy = RestartPolicy(0, 1)
    stands = [Positions({ONE: 5, OTHER: number}) for number in range(MOST + 1)]
    pauses = [policy.pause_s(failure, 0.0, lambda at=at: at, started=True) for at in stands]  # type: ignore[misc]
    assert pauses[-1] is None
    assert pauses[-2] is not None


def test_who_waits_for_brokers_does_so_without_end_also_at_the_start() -> None:
    """With pauses that grow to a minute; a connector of a command that somebody starts again fails instead."""
    away = failure_named("KafkaFailed", "no answer")
    policy = RestartPolicy(0, 1, waits=True)
    pauses = [policy.pause_s(away, 100.0 * n, Positions, started=False) for n in range(100)]
    assert (pauses[0], pauses[-1]) == (2.0, 60.0)
    assert RestartPolicy(0, 1).pause_s(away, 0.0, Positions, started=False) is None
    assert policy.pause_s(failure_named("KafkaRefused", "no right"), 0.0, Positions, started=False) is None
    assert policy.pause_s(failure_named("TopicGone", "no topic"), 0.0, Positions, started=False) is None


@pytest.mark.parametrize(("most", "started"), [(0, 0), (2, 2), (-1, 50)])
def test_how_often_is_configured(most: int, started: int) -> None:
    """Never, some times, without end."""
    budget = RestartBudget(RestartSettings(most=most))
    assert fails(budget, 50, Positions({ONE: 5}, [ONE])) == started


def test_pauses_are_configured() -> None:
    """The first one, and the longest, for what fails and for what is away."""
    bounds = RestartSettings(most=-1, pause_ms=500, longest_ms=1_200)
    restarts = RestartBudget(bounds)
    assert [restarts.pause_s(0, None, Positions({ONE: 5}, [ONE])) for _ in range(4)] == [0.5, 1.0, 1.2, 1.2]
    policy, away = RestartPolicy(0, 1, bounds, waits=True), failure_named("KafkaFailed", "no answer")
    assert [policy.pause_s(away, 0.0, Positions, started=False) for _ in range(3)] == [0.5, 1.0, 1.2]


def test_brokers_are_waited_for_as_long_as_configured() -> None:
    """From the first time that none answered; then the connector fails."""
    policy = RestartPolicy(0, 1, RestartSettings(away_ms=60_000), waits=True)
    away = failure_named("KafkaFailed", "no answer")
    pauses = [policy.pause_s(away, 20.0 * n, Positions, started=False) for n in range(5)]
    assert pauses == [2.0, 4.0, 6.0, None, None]
