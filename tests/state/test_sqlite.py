"""The state store as an SQLite file: what only a file has. What each store promises is in `test_store`."""

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.errors import RunFilesLost, failure_named
from parquet_sink.model.events import ConnectorRunning, Event, OffsetCommitted
from parquet_sink.model.ranges import Accepted, LearnedSchema, PartitionProgress, PlannedRange
from parquet_sink.state.database import COMPANIONS
from parquet_sink.state.sqlite import SqliteStore, learned_of
from parquet_sink.state.store import REPORTED, SLOTS, STOP
from tests.messages import saying


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a file that is not there yet."""
    return tmp_path / "state.db"


def test_processes_see_what_others_write(path: Path) -> None:
    """What one process writes another one reads, though they share nothing but the file."""
    with closing(SqliteStore(path)) as one, closing(SqliteStore(path)) as other:
        other.set(SLOTS, 4)
        other.record_accepted([Accepted("orders", 0, 7, 0, 9, "records")])
        other.append_events([ConnectorRunning("orders", 1.0)])
        assert one.get(SLOTS) == 4
        assert one.accepted() == [Accepted("orders", 0, 7, 0, 9, "records")]
        assert one.events_after(0).events == (ConnectorRunning("orders", 1.0),)


def test_a_new_run_keeps_what_topics_taught(path: Path) -> None:
    """Events, failures and fields end with their run; schemas and sizes go on, so that files come out the same."""
    with closing(SqliteStore(path)) as first:
        first.learn("orders", LearnedSchema(b"schema", 1.0))
        first.record_planned([PlannedRange("orders", 0, 7, 9, "records")], "recipe")
        first.record_failure(failure_named("KafkaFailed", "away"))
        first.set(STOP, True)
        first.record_accepted([Accepted("orders", 0, 7, 0, 9, "records")])
        first.append_events([ConnectorRunning("orders", 1.0)])
        first.record_progress([PartitionProgress("orders", 0, 0, 5, None)])
    with closing(SqliteStore.for_new_run(path)) as second:
        assert second.learned() == {"orders": LearnedSchema(b"schema", 1.0)}
        assert second.planned("recipe") == {
            ("orders", 0): PlannedRange("orders", 0, 7, 9, "records", known=LearnedSchema(b"schema", 1.0))
        }
        assert (second.failure(), second.get(STOP), second.accepted()) == (None, False, [])
        assert (second.events_after(0).events, second.progress()) == ((), [])


def test_a_broken_file_is_made_anew(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that is no state, as after a full disk, costs what was learned and nothing else."""
    path.write_bytes(b"not a database, and long enough to be looked at" * 100)
    with closing(SqliteStore.for_new_run(path)) as store:
        store.set(SLOTS, 1)
        assert store.get(SLOTS) == 1
    assert "is created again" in caplog.text


def test_old_knowledge_goes(path: Path) -> None:
    """Of a topic only what is known now, and what ranges under way were planned with, is kept for months."""
    with closing(SqliteStore(path)) as store:
        for number in range(50):
            store.learn("orders", LearnedSchema(b"schema", float(number)))
            store.record_planned([PlannedRange("orders", number % 2, number, number + 1, "size")], "recipe")
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("select count(*) from knowledge").fetchone()[0] <= 3


def test_a_write_that_fails_leaves_nothing(path: Path) -> None:
    """Several events are added together or not at all."""
    with closing(SqliteStore(path)) as store:
        with pytest.raises(AttributeError):
            store.append_events([ConnectorRunning("orders", 1.0), None])  # type: ignore[list-item]
        assert store.events_after(0).events == ()
        store.append_events([ConnectorRunning("orders", 2.0)])
        assert store.events_after(0).events == (ConnectorRunning("orders", 2.0),)


def test_no_event_is_missed_when_several_processes_write(path: Path) -> None:
    """Two writers and a reader at the same time: the reader sees every event once, each writer's in its order."""
    each = 120

    def write(partition: int) -> None:
        with closing(SqliteStore(path)) as store:
            for number in range(each):
                store.append_events([OffsetCommitted("sink", float(number), "orders", partition, number)])

    told: list[Event] = []
    with closing(SqliteStore(path)) as reader:
        writers = [threading.Thread(target=write, args=(partition,)) for partition in (0, 1)]
        for writer in writers:
            writer.start()
        position, writing = 0, True
        while writing:
            writing = any(writer.is_alive() for writer in writers)
            batch = reader.events_after(position)
            assert batch.dropped == 0
            position, told = batch.position, [*told, *batch.events]
    for partition in (0, 1):
        found = [one.next_offset for one in told if isinstance(one, OffsetCommitted) and one.partition == partition]
        assert found == list(range(each))


def test_a_state_file_of_another_version_is_made_anew(path: Path) -> None:
    """What it remembers are estimates, so it is thrown away and not a reason to stop."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table knowledge (topic text primary key, schema blob)")
    with closing(SqliteStore.for_new_run(path)) as store:
        assert store.learned() == {}
        store.learn("orders", LearnedSchema(b"schema", 1.0, 2.0))
        assert store.learned() == {"orders": LearnedSchema(b"schema", 1.0, 2.0)}


def test_the_run_of_an_earlier_version_is_forgotten(path: Path) -> None:
    """Tables of a run that an earlier version made have other columns; what it learned is the same and stays."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table accepted (topic text, partition int, next_offset int)")
        other.execute("create table word (name text primary key, body text not null)")
        other.execute(
            "create table knowledge "
            "(id integer primary key, topic text, schema blob, bytes_per_row real, bytes_per_record real)"
        )
        other.execute("insert into knowledge values (1, 'orders', x'00', 2.0, 3.0)")
        other.commit()
    with closing(SqliteStore.for_new_run(path)) as store:
        store.record_accepted([Accepted("orders", 0, 7, 0, 9, "records")])
        assert store.accepted() == [Accepted("orders", 0, 7, 0, 9, "records")]
        assert store.learned() == {"orders": LearnedSchema(b"\0", 2.0, 3.0)}
    with closing(sqlite3.connect(path)) as other:
        words = other.execute("select * from sqlite_master where name = 'word'").fetchall()
    assert words == []


def lose(path: Path, how: str) -> None:
    """Removes a file; or puts another one in its place: `made` an empty one, `copied` one of the same content."""
    content = path.read_bytes()
    path.unlink()
    if how != "removed":
        path.write_bytes(content if how == "copied" else b"")


LOSSES = pytest.mark.parametrize("how", ["removed", "made", "copied"])
ENDS = pytest.mark.parametrize("end", COMPANIONS)


@LOSSES
@ENDS
def test_a_file_of_a_run_that_was_lost_is_not_believed(path: Path, end: str, how: str) -> None:
    """Whoever has it open, or opens it now, is told which file is not the one that the run began with."""
    with closing(SqliteStore.for_new_run(path)) as program, closing(SqliteStore(path, program.ids)) as planner:
        planner.begin_batch([("orders", 0)])
        assert program.removed() == []
        lost = path.with_name(path.name + end)
        lose(lost, how)
        assert program.removed() == [lost]
        for use in (planner.accepted, lambda: planner.get(STOP), lambda: planner.record_accepted([])):
            with pytest.raises(RunFilesLost, match=saying(lost.name, "was removed", "connect.ems.tmp.dir")):
                use()
        with pytest.raises(RunFilesLost):
            SqliteStore(path, program.ids)
        assert lost.exists() == (how != "removed"), "nobody but the program makes it again"
        assert not program.get(STOP), "who made the file reads on what it has open"


@LOSSES
@ENDS
def test_what_was_learned_outlives_the_file(path: Path, end: str, how: str) -> None:
    """The program has the lost file open, so that ranges under way come out the same, however much is missing."""
    planned = PlannedRange("orders", 0, 7, 9, "records")
    with closing(SqliteStore.for_new_run(path)) as program:
        with closing(SqliteStore(path, program.ids)) as planner:
            planner.learn("orders", LearnedSchema(b"then", 1.0))
            planner.record_planned([planned], "recipe")
            planner.learn("orders", LearnedSchema(b"later", 2.0))
            planner.record_progress([PartitionProgress("orders", 0, 7, 9, None)])
            planner.begin_batch([("orders", 0)])
            planner.record_accepted([Accepted("orders", 0, 9, 7, 9, "records")])
            lose(path.with_name(path.name + end), how)
            again = program.again()
        with closing(again), closing(SqliteStore(path, again.ids)) as other:
            assert other.removed() == again.removed() == []
            assert other.planned("recipe") == {("orders", 0): replace(planned, known=LearnedSchema(b"then", 1.0))}
            assert other.learned() == {"orders": LearnedSchema(b"later", 2.0)}
            assert other.progress() == [PartitionProgress("orders", 0, 7, 9, None)]
            assert (other.accepted(), other.get(REPORTED)) == ([], False), "the group's offsets count"
    assert sorted(one.name for one in path.parent.iterdir()) == [path.name]


def test_a_file_that_never_was_is_not_made_by_others_than_the_program(path: Path) -> None:
    """A process that comes late, with the files of a run that has ended, leaves nothing behind."""
    with closing(SqliteStore.for_new_run(path)) as program:
        ids = program.ids
    path.unlink()
    with pytest.raises(RunFilesLost):
        SqliteStore(path, ids)
    assert list(path.parent.iterdir()) == []
    assert learned_of(path) == {}


def test_an_error_that_a_loss_makes_is_told_as_the_loss(path: Path) -> None:
    """SQLite speaks of the disk, which would be a reason to stop; other trouble is told as it is."""
    with closing(SqliteStore.for_new_run(path)) as program, closing(SqliteStore(path, program.ids)) as planner:
        with pytest.raises(sqlite3.OperationalError, match="disk I/O error"), planner.losses_told():
            raise sqlite3.OperationalError("disk I/O error")
        path.with_name(f"{path.name}-wal").unlink()
        with pytest.raises(RunFilesLost), planner.losses_told():
            raise sqlite3.OperationalError("disk I/O error")


def test_nobody_else_may_read_the_state(tmp_path: Path) -> None:
    """The store, and what SQLite keeps beside it, has mode 0600, also where an earlier version made it with 0644."""
    path = tmp_path / "state.db"
    path.touch(0o644)
    store = SqliteStore(path)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    store.close()
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}
