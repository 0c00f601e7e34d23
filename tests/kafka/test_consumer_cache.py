"""Consumers are kept from range to range, a few of them; those that wait for long stop fetching and are polled."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.kafka import consumer_cache
from parquet_sink.kafka.client.options import reader_options
from parquet_sink.kafka.consumer_cache import (
    CHECK_S,
    MOST_IDLE,
    UNASSIGN_AFTER_S,
    CachedConsumer,
    ConsumerCache,
    Position,
    cache_key,
)
from parquet_sink.kafka.settings import KafkaSettings

KAFKA = KafkaSettings(topics=("orders",), group="connect-orders", client={"bootstrap.servers": "localhost:9092"})
HERE = Position("orders", "", 0, 5)


class Consumer:
    """What is done to it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.while_polled: Callable[[], Any] = lambda: None

    def unassign(self) -> None:
        self.calls.append("unassign")

    def poll(self, timeout: float) -> None:
        assert timeout == 0
        self.calls.append("poll")
        self.while_polled()

    def close(self) -> None:
        self.calls.append("close")


class Thread(threading.Thread):
    """The thread that sweeps: it is not started, the tests sweep."""

    def start(self) -> None:
        """Nothing."""


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> ConsumerCache:
    """An empty cache, whose consumers do nothing; the clock stands at 100 s."""
    monkeypatch.setattr(consumer_cache.client_options, "build", lambda kind, settings: Consumer())
    monkeypatch.setattr(consumer_cache.threading, "Thread", Thread)
    monkeypatch.setattr(consumer_cache.time, "monotonic", lambda: 100.0)
    return ConsumerCache()


def waiting(cache: ConsumerCache) -> tuple[CachedConsumer, list[str]]:
    """One that waits at HERE, and what is done to it."""
    one = cache.take(KAFKA)
    one.position = HERE
    cache.put_back(one)
    return one, one.consumer.calls  # type: ignore[attr-defined]


def test_one_is_taken_again_where_it_stands(cache: ConsumerCache) -> None:
    """The next range with the same settings gets the same consumer, and nobody else gets it meanwhile."""
    one, calls = waiting(cache)
    taken = cache.take(KAFKA)
    assert (taken, taken.position, calls) == (one, HERE, [])
    assert cache.take(KAFKA) is not one


def test_a_fresh_one_takes_the_place_of_the_old_one(cache: ConsumerCache) -> None:
    """Whoever needs one that knows nothing gets it, and the one that waited is closed."""
    one, calls = waiting(cache)
    fresh = cache.take(KAFKA, fresh=True)
    assert (fresh is one, fresh.position, calls) == (False, None, ["close"])


def test_few_are_kept(cache: ConsumerCache) -> None:
    """One more than the bound closes the one that was put back first."""
    made = [cache.take(replace(KAFKA, group=f"group-{number}")) for number in range(MOST_IDLE + 1)]
    for one in made[:-1]:
        cache.put_back(one)
    cache.put_back(cache.take(replace(KAFKA, group="one-more")))
    closed = [one.consumer.calls == ["close"] for one in made]  # type: ignore[attr-defined]
    assert closed == [True] + [False] * MOST_IDLE


def test_one_that_was_used_lately_is_left_alone(cache: ConsumerCache) -> None:
    """What it fetched ahead serves the next range."""
    one, calls = waiting(cache)
    cache.sweep(100 + UNASSIGN_AFTER_S - 1)
    assert (calls, one.position, cache.take(KAFKA)) == ([], HERE, one)


def test_one_that_waits_for_long_is_unassigned_once_and_polled_each_time(cache: ConsumerCache) -> None:
    """It is never polled while records could come; where it stands is forgotten, so the next range assigns it anew."""
    one, calls = waiting(cache)
    for seconds in range(3):
        cache.sweep(100 + UNASSIGN_AFTER_S + seconds)
    assert (calls, one.position, cache.take(KAFKA)) == (["unassign", "poll", "poll", "poll"], None, one)


def test_one_that_was_replaced_meanwhile_is_closed(cache: ConsumerCache) -> None:
    """While one is polled nobody finds it; a reader that made another keeps that."""
    one, calls = waiting(cache)
    other = replace(one, consumer=Consumer())  # type: ignore[arg-type]
    one.consumer.while_polled = lambda: cache.put_back(other)  # type: ignore[attr-defined]
    cache.sweep(100 + UNASSIGN_AFTER_S)
    assert (calls, cache.take(KAFKA)) == (["unassign", "poll", "close"], other)


def test_options_are_made_again_after_a_minute(cache: ConsumerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then, and the consumer is kept when they are as before."""
    made = []
    monkeypatch.setattr(
        consumer_cache.client_options, "reader_options", lambda kafka, **how: made.append(kafka) or {"group.id": "g"}
    )
    one, calls = waiting(cache)
    for now in (100 + CHECK_S - 1, 100 + CHECK_S, 100 + CHECK_S + 1):
        monkeypatch.setattr(consumer_cache.time, "monotonic", lambda now=now: now)
        assert cache.take(KAFKA) is one
        cache.put_back(one)
    assert (made, calls) == ([KAFKA, KAFKA], [])


def test_a_consumer_is_replaced_when_a_store_was_renewed(cache: ConsumerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings are the same, and what is made of them is not."""
    certificates = iter(("old", "new"))
    monkeypatch.setattr(
        consumer_cache.client_options, "reader_options", lambda kafka, **how: {"ssl.ca.pem": next(certificates)}
    )
    one, calls = waiting(cache)
    monkeypatch.setattr(consumer_cache.time, "monotonic", lambda: 100 + CHECK_S)
    other = cache.take(KAFKA)
    assert (other is one, other.options, calls) == (False, {"ssl.ca.pem": "new"}, ["close"])


def test_settings_with_other_options_have_other_keys() -> None:
    """Of whatever setting the options are made: none gets the consumer of another."""
    other = {
        "group": "other",
        "isolation_level": "read_uncommitted",
        "client": {**KAFKA.client, "sasl.jaas.config": Secret('PlainLoginModule required username="a" password="b";')},
        "topics": ("other",),
        "topics_regex": "o.*",
    }
    changed = {name: replace(KAFKA, **{name: value}) for name, value in other.items()}
    for name, one in changed.items():
        same_key = cache_key(one, several=False, in_c=False) == cache_key(KAFKA, several=False, in_c=False)
        assert same_key is (reader_options(one) == reader_options(KAFKA)), name
    assert len({cache_key(KAFKA, several=one, in_c=other) for one in (False, True) for other in (False, True)}) == 4
