"""What a connector's processes tell each other through a small file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from parquet_sink.errors import failure_named
from parquet_sink.model.failure import Failure
from parquet_sink.model.progress import Accepted, PartitionProgress
from parquet_sink.model.ranges import Known, PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.state import sqlite as module
from parquet_sink.state.sqlite.store import SqliteStore
from parquet_sink.state.store import STOP, WARM_UP


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty state."""
    found = SqliteStore(tmp_path / "state.db")
    yield found
    found.close()


def receipt(number: int, failure: Failure | None = None) -> Receipt:
    """Of the `number`-th file."""
    return Receipt("sink", "orders", 0, f"f{number}", number, number, number + 1, 1, 1, 10, "records", failure=failure)


def test_processes_see_each_others_words(tmp_path: Path, state: SqliteStore) -> None:
    """What one process writes another one reads, though they share nothing but the file."""
    other = SqliteStore(tmp_path / "state.db")
    other.set(WARM_UP, 4)
    other.accept([Accepted("orders", 0, 7, 0, 9, "records")])
    other.close()
    assert state.get(WARM_UP) == 4
    assert state.accepted() == [Accepted("orders", 0, 7, 0, 9, "records")]
    assert state.said("never") is None


def test_of_each_topic_partition_the_last_range_counts(state: SqliteStore) -> None:
    """How far the last range got replaces what stood there, of its topic-partition alone."""
    state.record_accepted([Accepted("orders", 0, 7, 0, 9, "records"), Accepted("orders", 1, 3, 0, 3, "size")])
    state.record_accepted([Accepted("orders", 0, 9, 0, 9, "records")])
    assert sorted(state.accepted(), key=lambda one: one.partition) == [
        Accepted("orders", 0, 9, 0, 9, "records"),
        Accepted("orders", 1, 3, 0, 3, "size"),
    ]


def test_a_new_run_keeps_what_topics_taught(tmp_path: Path) -> None:
    """Receipts, failures and words end with their run; schemas and sizes go on, so that files come out the same."""
    first = SqliteStore(tmp_path / "state.db")
    first.learn("orders", Known(b"schema", 1.0))
    first.plan([PlannedRange("orders", 0, 7, 9, "records")], "recipe")
    first.fail(failure_named("KafkaFailed", "away"))
    first.stop()
    first.accept([Accepted("orders", 0, 7, 0, 9, "records")])
    first.add_receipts([receipt(1)])
    first.watch([PartitionProgress("orders", 0, 0, 5, None)])
    first.close()
    second = SqliteStore.for_new_run(tmp_path / "state.db")
    assert second.known() == {"orders": Known(b"schema", 1.0)}
    assert second.planned("recipe") == {
        ("orders", 0): PlannedRange("orders", 0, 7, 9, "records", known=Known(b"schema", 1.0))
    }
    assert (second.failure(), second.stopping(), second.accepted()) == (None, False, [])
    assert (second.receipts_after(0), second.watches()) == ([], [])
    second.close()


def test_a_broken_file_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that is no state, as after a full disk, costs what was learned and nothing else."""
    (tmp_path / "state.db").write_bytes(b"not a database, and long enough to be looked at" * 100)
    state = SqliteStore.for_new_run(tmp_path / "state.db")
    state.say("word", 1)
    assert state.said("word") == 1
    assert "is made anew" in caplog.text
    state.close()


def test_receipts_come_back_in_order_and_once(state: SqliteStore) -> None:
    """A reader asks for what is new since its last look; failures are receipts, too."""
    failed = receipt(2, Failure("UploadRefused", "no", status=403))
    state.add_receipts([receipt(1), failed])
    found = state.receipts_after(0)
    assert [one for _, one in found] == [receipt(1), failed]
    last = found[-1][0]
    assert state.receipts_after(last) == []
    state.add_receipts([receipt(3)])
    assert [one for _, one in state.receipts_after(last)] == [receipt(3)]
    state.add_receipts([])


def test_receipts_are_bounded(state: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """After months of files only the latest receipts are kept, and numbers go on rising."""
    monkeypatch.setattr(module, "KEPT_RECEIPTS", 10)
    for number in range(25):
        state.add_receipts([receipt(number)])
    found = state.receipts_after(0)
    assert [one.first_offset for _, one in found] == list(range(15, 25))
    assert found[-1][0] == 25


def test_what_is_known_of_a_topic_is_completed(state: SqliteStore) -> None:
    """A later file may teach less; what it does not say stays."""
    state.learn("orders", Known(b"schema", 12.5, 25.0))
    state.learn("orders", Known(None, 13.0))
    state.learn("items", Known(b"other", None))
    assert state.learned() == {"orders": Known(b"schema", 13.0, 25.0), "items": Known(b"other", None)}
    state.learn("orders", Known(b"newer", None))
    assert state.learned()["orders"] == Known(b"newer", 13.0, 25.0)
    assert state.bytes_per_record() == {"orders": 25.0, "items": None}


def test_a_planned_range_keeps_what_was_known_then(state: SqliteStore) -> None:
    """A range that comes again has the knowledge of its first time, however much was learned since."""
    state.learn("orders", Known(b"then", 1.0))
    state.record_planned([PlannedRange("orders", 0, 0, 10, "size"), PlannedRange("new", 0, 0, 5, "size")], "recipe")
    for number in range(5):
        state.learn("orders", Known(b"later", float(number)))
    then = PlannedRange("orders", 0, 0, 10, "size", known=Known(b"then", 1.0))
    assert state.planned("recipe") == {("orders", 0): then, ("new", 0): PlannedRange("new", 0, 0, 5, "size")}
    assert state.planned("other") == {}, "other settings make other files"
    state.record_planned([PlannedRange("orders", 0, 10, 20, "size")], "recipe")
    assert state.planned("recipe")["orders", 0].known == Known(b"later", 4.0)


def test_old_knowledge_goes(state: SqliteStore) -> None:
    """Of a topic only what is known now, and what ranges under way were planned with, is kept for months."""
    for number in range(50):
        state.learn("orders", Known(b"schema", float(number)))
        state.record_planned([PlannedRange("orders", number % 2, number, number + 1, "size")], "recipe")
    assert state._connection.execute("select count(*) from knowledge").fetchone()[0] <= 3


def test_the_first_failure_stays(state: SqliteStore) -> None:
    """Later failures follow from the first one, so that is what the operator is told."""
    assert state.failure() is None
    state.record_failure(failure_named("UploadRefused", "first"))
    state.record_failure(failure_named("KafkaFailed", "second"))
    assert state.failure() == failure_named("UploadRefused", "first")


def test_another_try_forgets_failure_and_acceptance(state: SqliteStore) -> None:
    """A query that starts again counts from the group's offsets, even if those were set back."""
    state.record_failure(failure_named("KafkaFailed", "away"))
    state.record_accepted([Accepted("orders", 0, 100, 0, 100, "size")])
    state.clear_for_restart()
    assert state.failure() is None
    assert state.accepted() == []


def test_a_stop_is_told(state: SqliteStore) -> None:
    """Admission learns from the file that it should admit nothing more."""
    assert not state.get(STOP)
    state.set(STOP, True)
    assert state.get(STOP)


def test_watches_replace_each_other(state: SqliteStore) -> None:
    """Of each topic-partition only the latest is kept, in order."""
    state.record_progress([PartitionProgress("orders", 1, 0, 5, None), PartitionProgress("orders", 0, 0, 5, 99)])
    state.record_progress([PartitionProgress("orders", 1, 5, 5, None)])
    assert state.progress() == [PartitionProgress("orders", 0, 0, 5, 99), PartitionProgress("orders", 1, 5, 5, None)]


def test_lag_is_never_negative() -> None:
    """A topic-partition that was made anew may end below where we stand."""
    assert PartitionProgress("orders", 0, 3, 10, None).lag == 7
    assert PartitionProgress("orders", 0, 10, 3, None).lag == 0


def test_a_write_that_fails_leaves_nothing(state: SqliteStore) -> None:
    """Several receipts are added together or not at all."""
    with pytest.raises(AttributeError):
        state.add_receipts([receipt(1), None])  # type: ignore[list-item]
    assert state.receipts_after(0) == []
    state.add_receipts([receipt(2)])
    assert len(state.receipts_after(0)) == 1


def test_a_state_file_of_another_version_is_made_anew(tmp_path: Path) -> None:
    """What it remembers are estimates, so it is thrown away and not a reason to stop."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table known (topic text primary key, schema blob)")
    state = SqliteStore.for_new_run(path)
    assert state.learned() == {}
    state.learn("orders", Known(b"schema", 1.0, 2.0))
    assert state.learned() == {"orders": Known(b"schema", 1.0, 2.0)}
    state.close()
