"""What the state store promises."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.errors import failure_named
from parquet_sink.model.events import ConnectorRunning, Event, FileAccepted, FileFailed, OffsetCommitted
from parquet_sink.model.ranges import Accepted, Again, LearnedSchema, PartitionProgress, PlannedRange, Tries, ValueSizes
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.state import sqlite
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import DRAINED, FIELDS, REPORTED, SLOTS, STARTED, STOP, EventBatch, EventLog
from tests.state.memory_events import MemoryEvents
from tests.thorough import FIXTURES_SHARED, examples

Make = Callable[[int], EventLog]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty store."""
    with closing(SqliteStore(tmp_path / "state.db")) as made:
        yield made


@pytest.fixture(params=["sqlite", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes empty logs that keep so many events: the real one, and the double of other tests."""
    with ExitStack() as made:

        def log(kept: int) -> EventLog:
            if request.param == "memory":
                return MemoryEvents(kept)
            monkeypatch.setattr(sqlite, "KEPT_EVENTS", kept)
            return made.enter_context(closing(SqliteStore(tmp_path / f"events-{uuid4().hex}.db")))

        yield log


@pytest.fixture
def events(make: Make) -> EventLog:
    """An empty log."""
    return make(1_000)


def receipt(number: int, failure: Failure | None = None) -> Receipt:
    """Of the `number`-th file."""
    return Receipt("sink", "orders", 0, f"f{number}", number, number, number + 1, 1, 1, 10, "records", failure=failure)


def committed(number: int, partition: int = 0) -> Event:
    """The `number`-th commit of a topic-partition."""
    return OffsetCommitted("sink", float(number), "orders", partition, number)


def test_a_field_is_its_default_until_it_is_set(store: SqliteStore) -> None:
    """Each field has a value of its own type from the beginning, and then the last one set."""
    assert [store.get(field) for field in FIELDS] == [field.default for field in FIELDS]
    store.set(SLOTS, 4)
    store.set(SLOTS, 7)
    store.set(STOP, True)
    assert (store.get(SLOTS), store.get(STOP), store.get(STARTED), store.get(DRAINED)) == (7, True, False, False)


def test_field_names_are_different() -> None:
    """Two fields of one name would be one."""
    assert len({field.name for field in FIELDS}) == len(FIELDS)


def test_of_each_topic_partition_the_last_range_counts(store: SqliteStore) -> None:
    """How far the last range got replaces what stood there, of its topic-partition alone, with the next attempt."""
    again = Again(Tries(3, 12.5), 8.0, (0, 4))
    store.record_accepted([Accepted("orders", 0, 7, 0, 9, "records"), Accepted("orders", 1, 3, 0, 5, "size", again)])
    store.record_accepted([Accepted("orders", 0, 9, 0, 9, "records")])
    assert store.accepted() == [
        Accepted("orders", 0, 9, 0, 9, "records"),
        Accepted("orders", 1, 3, 0, 5, "size", again),
    ]
    assert store.accepted([("orders", 2), ("orders", 1)]) == [Accepted("orders", 1, 3, 0, 5, "size", again)]
    assert store.accepted([]) == []


def test_a_micro_batch_is_reported_or_not(store: SqliteStore) -> None:
    """What was said of its topic-partitions before is no word about it; that of others stays."""
    assert not store.get(REPORTED)
    store.record_accepted([Accepted("orders", number, 9, 0, 9, "records") for number in (0, 1)])
    assert store.get(REPORTED)
    store.begin_batch([("orders", 1), ("orders", 2)])
    assert (store.get(REPORTED), [one.partition for one in store.accepted()]) == (False, [0])
    store.record_accepted([])
    assert store.get(REPORTED)


def test_progress_replaces_what_was_before(store: SqliteStore) -> None:
    """Of each topic-partition only the latest is kept, in order."""
    store.record_progress([PartitionProgress("orders", 1, 0, 5, None), PartitionProgress("orders", 0, 0, 5, 99)])
    store.record_progress([PartitionProgress("orders", 1, 5, 5, None)])
    assert store.progress() == [PartitionProgress("orders", 0, 0, 5, 99), PartitionProgress("orders", 1, 5, 5, None)]


def test_a_deleted_topic_partition_is_forgotten_alone(store: SqliteStore) -> None:
    """Neither its progress nor what was accepted of it stays; those of others do."""
    for partition in (0, 1):
        store.record_progress([PartitionProgress("orders", partition, 0, 5, None)])
        store.record_accepted([Accepted("orders", partition, 5, 0, 5, "size")])
    store.forget_partition("orders", 0)
    store.forget_partition("never", 0)
    assert [one.partition for one in store.progress()] == [1]
    assert [one.partition for one in store.accepted()] == [1]


def test_the_first_failure_stays(store: SqliteStore) -> None:
    """Later failures follow from the first one, so that is what the operator is told, with its reaction."""
    assert store.failure() is None
    store.record_failure(failure_named("RegistryAway", "first"))
    store.record_failure(failure_named("KafkaFailed", "second"))
    assert store.failure() == failure_named("RegistryAway", "first")


def test_a_restart_clears_failure_and_acceptance(store: SqliteStore) -> None:
    """A query that starts again counts from the group's offsets, even if those were set back; fields stay."""
    store.record_failure(failure_named("KafkaFailed", "away"))
    store.record_accepted([Accepted("orders", 0, 100, 0, 100, "size")])
    store.set(STARTED, True)
    store.clear_for_restart()
    assert (store.failure(), store.accepted(), store.get(STARTED)) == (None, [], True)
    store.record_failure(failure_named("KafkaFailed", "again"))
    assert store.failure() == failure_named("KafkaFailed", "again")


def test_what_is_known_of_a_topic_is_completed(store: SqliteStore) -> None:
    """A later file may teach less; what it does not say stays."""
    store.learn("orders", LearnedSchema(b"schema", 12.5, 25.0))
    store.learn("orders", LearnedSchema(None, 13.0))
    store.learn("items", LearnedSchema(b"other", None))
    assert store.learned() == {"orders": LearnedSchema(b"schema", 13.0, 25.0), "items": LearnedSchema(b"other", None)}
    store.learn("orders", LearnedSchema(b"newer", None))
    assert store.learned()["orders"] == LearnedSchema(b"newer", 13.0, 25.0)
    assert store.bytes_per_record() == {"orders": 25.0, "items": None}


def test_what_values_became_is_of_each_topic(store: SqliteStore) -> None:
    """The last word counts, and others stay."""
    store.learn_sizes({"orders": ValueSizes(100.0, 30.0), "items": ValueSizes(5.0, 6.0)})
    store.learn_sizes({"orders": ValueSizes(200.0, 20.0)})
    store.learn_sizes({})
    assert store.sizes() == {"orders": ValueSizes(200.0, 20.0), "items": ValueSizes(5.0, 6.0)}


def test_a_planned_range_keeps_what_was_known_then(store: SqliteStore) -> None:
    """A range that comes again has the knowledge of its first time, however much was learned since."""
    store.learn("orders", LearnedSchema(b"then", 1.0))
    store.record_planned([PlannedRange("orders", 0, 0, 10, "size"), PlannedRange("new", 0, 0, 5, "size")], "recipe")
    for number in range(5):
        store.learn("orders", LearnedSchema(b"later", float(number)))
    then = PlannedRange("orders", 0, 0, 10, "size", known=LearnedSchema(b"then", 1.0))
    assert store.planned("recipe") == {("orders", 0): then, ("new", 0): PlannedRange("new", 0, 0, 5, "size")}
    assert store.planned("other") == {}, "other settings make other files"
    store.record_planned([PlannedRange("orders", 0, 10, 20, "size")], "recipe")
    assert store.planned("recipe")["orders", 0].known == LearnedSchema(b"later", 4.0)


def test_events_come_back_in_order_and_once(events: EventLog) -> None:
    """Who keeps a position reads what is new since then, whatever kinds of events it is."""
    failed = receipt(2, failure_named("UploadRefused", "no"))
    first: list[Event] = [
        FileAccepted("sink", 1.5, "orders", 0, receipt(1)),
        FileFailed("sink", 2.5, "orders", 0, failed),
    ]
    events.append_events(first)
    batch = events.events_after(0)
    assert batch == EventBatch(tuple(first), batch.position)
    assert events.events_after(batch.position) == EventBatch((), batch.position)
    events.append_events([ConnectorRunning("sink", 3.0)])
    assert events.events_after(batch.position).events == (ConnectorRunning("sink", 3.0),)
    events.append_events([])


def test_an_equal_event_is_the_same_event(events: EventLog) -> None:
    """Spark hands the same outcomes to a commit that failed and to the abort after it; each event is told once."""
    events.append_events([committed(1), committed(2)])
    position = events.events_after(0).position
    events.append_events([committed(1), committed(3), committed(2)])
    assert events.events_after(position).events == (committed(3),)


def test_a_file_that_is_accepted_again_is_the_same_event(events: EventLog) -> None:
    """A task took the place of one that died, and sent the same bytes under the same name; other bytes are news."""
    first = FileAccepted("sink", 1.5, "orders", 0, replace(receipt(1), digest="aa", accepted_at=1.5))
    again = FileAccepted("sink", 9.5, "orders", 0, replace(receipt(1), digest="aa", accepted_at=9.5, attempts=7))
    other = FileAccepted("sink", 9.5, "orders", 0, replace(receipt(1), digest="bb", accepted_at=9.5))
    events.append_events([first])
    events.append_events([again, other])
    assert events.events_after(0).events == (first, other)


@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(40),
    deadline=None,
)
@given(
    kept=st.integers(1, 12),
    writes=st.lists(st.tuples(st.integers(0, 15), st.booleans()), max_size=12),
)
def test_no_event_is_missed_or_told_twice(make: Make, kept: int, writes: list[tuple[int, bool]]) -> None:
    """However writing and reading alternate: each event is read once and in order, or counted as dropped."""
    log = make(kept)
    position = number = 0
    told: list[int] = []
    for count, reads in [*writes, (0, True)]:
        log.append_events([committed(number + index) for index in range(count)])
        number += count
        if reads:
            batch = log.events_after(position)
            assert batch.dropped == 0 or batch.dropped + len(batch.events) > kept
            told += [-1] * batch.dropped
            told += [event.next_offset for event in batch.events if isinstance(event, OffsetCommitted)]
            position = batch.position
    assert [expected if found < 0 else found for expected, found in enumerate(told)] == list(range(number))


def test_readers_do_not_take_from_each_other(events: EventLog) -> None:
    """Each has its own position: a second reader sees all of it, too."""
    events.append_events([committed(1)])
    assert events.events_after(0) == events.events_after(0)
