"""Step 9: what tasks report is noted for the program and the next micro-batch, whether it went well or not."""

import pickle
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from parquet_sink.config.secret import Secret
from parquet_sink.errors import ConnectorError, Defect, RunFilesLost, failure_named
from parquet_sink.files.settings import FileSettings
from parquet_sink.history.sqlite import read_history
from parquet_sink.kafka.settings import FlushSettings, KafkaSettings
from parquet_sink.model.events import FileAccepted, FileFailed
from parquet_sink.model.ranges import Accepted, Again, LearnedSchema, PlannedRange, Tries, ValueSizes
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.model.records import RecordBatch
from parquet_sink.rows.row_builder import RowBuilder
from parquet_sink.rows.settings import ShapeSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import handoff
from parquet_sink.spark.rows import of_ranges
from parquet_sink.spark.sink import NAME, Outcomes, PushSink, PushWriter
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.targets.push.settings import PushSettings
from parquet_sink.task.outcome import RangeOutcome
from tests.factories import run_of
from tests.messages import saying

CANARY = "canary-1c9e"
RANGES = StructType(
    [
        *(
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("start", LongType()),
        ),
        *(StructField("end", LongType()), StructField("reason", StringType()), StructField("work", StringType())),
    ]
)
"""The rows of the source."""


def receipt(first: int) -> Receipt:
    """Of a file of ten records."""
    return Receipt("orders", "orders", 0, f"f{first}", first, first + 9, first + 10, 10, 10, 99, "records")


def outcome(
    partition: int, until: int, failure: Failure | None = None, again: Again | None = None, **learned: object
) -> RangeOutcome:
    """Of the range [0, 100)."""
    known = LearnedSchema(**learned)  # type: ignore[arg-type]
    planned = PlannedRange("orders", partition, 0, 100, "records")
    return RangeOutcome(planned, until, (receipt(partition * 10),), failure, known, again)


@pytest.fixture
def given(tmp_path: Path) -> Iterator[handoff.Handoff]:
    """A run of a connector, whose program has the state file open."""
    settings = SinkSettings(
        "orders",
        KafkaSettings(("orders",), None, "connect-orders", {"sasl.password": Secret(CANARY)}),
        FlushSettings(1_000_000, 100, 2_000),
        ShapeSettings(),
        FileSettings(str(tmp_path / "tmp")),
        PushSettings("http://localhost/", Secret(f"AppKey {CANARY}"), "t"),
    )
    with run_of(settings, tmp_path / "run") as run:
        yield run


@pytest.fixture
def writer(given: handoff.Handoff) -> PushWriter:
    """As Spark makes it for a micro-batch."""
    return PushSink({handoff.RUN_FOLDER: given.folder}).streamWriter(RANGES, False)


@pytest.fixture
def state(given: handoff.Handoff) -> Iterator[SqliteStore]:
    """What the program sees."""
    found = SqliteStore(given.state_path)
    yield found
    found.close()


def receipts(state: SqliteStore) -> list[Receipt]:
    """Of the files that the event log tells of."""
    return [one.receipt for one in state.events_after(0).events if isinstance(one, FileAccepted | FileFailed)]


def test_a_commit_notes_everything(writer: PushWriter, state: SqliteStore) -> None:
    """Receipts, how far ranges got, and what topics taught are there for the program."""
    writer.commit([Outcomes((outcome(0, 100), outcome(1, 100, bytes_per_row=7.0)))], 3)
    assert [one.file_name for one in receipts(state)] == ["f0", "f10"]
    assert state.accepted() == [
        Accepted("orders", 0, 100, 0, 100, "records"),
        Accepted("orders", 1, 100, 0, 100, "records"),
    ]
    assert state.learned() == {"orders": LearnedSchema(None, 7.0)}
    assert state.failure() is None


def test_a_commit_notes_what_values_became(writer: PushWriter, state: SqliteStore) -> None:
    """On average of all ranges of a topic that became files as a whole; without any, what was known stays."""
    ranges = [replace(outcome(0, 100, bytes_per_record=2.0), read=10, value_bytes=500)]
    ranges += [replace(outcome(1, 100, bytes_per_record=8.0), read=10, value_bytes=1_500)]
    ranges += [replace(outcome(2, 50, bytes_per_record=900.0), read=10, value_bytes=900)]
    writer.commit([Outcomes((ranges[0],)), Outcomes(tuple(ranges[1:]))], 3)
    assert state.sizes() == {"orders": ValueSizes(100.0, 5.0)}
    writer.commit([Outcomes((ranges[2],))], 4)
    assert state.sizes() == {"orders": ValueSizes(100.0, 5.0)}


def test_a_commit_is_in_the_history(given: handoff.Handoff, writer: PushWriter) -> None:
    """Files and ranges are there for whoever asks later, once, also when Spark tells of them twice."""
    messages = [Outcomes((outcome(0, 100), outcome(1, 100)))]
    writer.commit(messages, 3)
    writer.abort(messages, 3)
    with closing(read_history(Path(given.settings.history_file))) as history:
        assert [(one.file_name, one.target, one.repeat) for one in history.files()] == [
            ("f0", "http://localhost/", 0),
            ("f10", "http://localhost/", 0),
        ]
        assert [(one.partition, one.end, one.recipe) for one in history.ranges()] == [
            (0, 100, given.settings.fingerprint),
            (1, 100, given.settings.fingerprint),
        ]


def test_a_history_that_cannot_be_written_stops_nothing(
    given: handoff.Handoff, writer: PushWriter, state: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit is noted all the same, and a line tells what is missing; once, however often it happens."""
    Path(given.settings.history_file).mkdir()
    for batch in (3, 4):
        writer.commit([Outcomes((outcome(0, 100),))], batch)
    assert state.accepted() == [Accepted("orders", 0, 100, 0, 100, "records")]
    assert [one.levelname for one in caplog.records if "missing from the history" in one.message] == ["WARNING"]


def test_a_failure_ends_the_query_after_all_is_noted(writer: PushWriter, state: SqliteStore) -> None:
    """What the other ranges got accepted counts all the same; the message is the operator's."""
    failed = outcome(0, 40, failure_named("UploadRefused", "the target answered 403"))
    with pytest.raises(ConnectorError, match="the target answered 403"):
        writer.commit([Outcomes((failed,)), Outcomes((outcome(1, 100),))], 3)
    assert state.failure() == failure_named("UploadRefused", "the target answered 403")
    assert {(one.partition, one.next_offset) for one in state.accepted()} == {(0, 40), (1, 100)}


def test_what_is_tried_again_is_no_failure(writer: PushWriter, state: SqliteStore) -> None:
    """A range whose upload must wait is noted with its attempts; the query goes on."""
    again = Again(Tries(3, 12.5), 8.0)
    writer.commit([Outcomes((outcome(0, 40, again=again), outcome(1, 100)))], 3)
    assert state.failure() is None
    assert state.accepted()[0] == Accepted("orders", 0, 40, 0, 100, "records", again)


def test_the_first_of_several_failures_is_told(writer: PushWriter, state: SqliteStore) -> None:
    """Two topic-partitions that are refused make one failure."""
    one, other = failure_named("UploadRefused", "first"), failure_named("InvalidRecord", "second")
    with pytest.raises(ConnectorError, match="first"):
        writer.commit([Outcomes((outcome(0, 0, one), outcome(1, 0, other)))], 3)
    assert state.failure() == one


def test_an_abort_notes_what_others_got_accepted(writer: PushWriter, state: SqliteStore) -> None:
    """When a Spark task failed for good, its message is missing; those of the others count."""
    writer.abort([None, Outcomes((outcome(1, 100),))], 3)
    assert state.accepted() == [Accepted("orders", 1, 100, 0, 100, "records")]
    assert len(receipts(state)) == 1


def test_a_commit_that_failed_is_followed_by_an_abort(writer: PushWriter, state: SqliteStore) -> None:
    """Spark hands the same messages to both; each file is told once, each range counts once."""
    messages = [Outcomes((outcome(0, 10, failure_named("InvalidRecord", "bad")), outcome(1, 100)))]
    with pytest.raises(ConnectorError, match="bad"):
        writer.commit(messages, 0)
    writer.abort(messages, 0)
    assert receipts(state) == [receipt(0), receipt(10)]
    assert sorted(one.next_offset for one in state.accepted()) == [10, 100]
    assert state.failure() == failure_named("InvalidRecord", "bad")


def test_an_empty_micro_batch_changes_nothing(writer: PushWriter, state: SqliteStore) -> None:
    """The warm-up has no ranges to note."""
    writer.commit([Outcomes(())], 0)
    writer.commit([], 1)
    assert (state.accepted(), receipts(state), state.learned()) == ([], [], {})


@pytest.mark.parametrize("lost", ["", "-wal", "-shm"])
def test_a_state_file_that_was_removed_is_not_made_by_the_sink(
    given: handoff.Handoff, writer: PushWriter, state: SqliteStore, lost: str
) -> None:
    """What became of an upload is not noted in a file that nobody reads; the query ends with a named cause."""
    path = given.state_path.with_name(given.state_path.name + lost)
    path.unlink()
    with pytest.raises(RunFilesLost, match=saying(str(path), "was removed", "in use", "connect.ems.tmp.dir")):
        writer.commit([Outcomes((outcome(0, 0, again=Again(Tries(1, 1.0), 8.0)),))], 3)
    assert not path.exists()
    assert state.accepted() == []


def test_each_range_leaves_a_report(writer: PushWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that forgets one of its ranges is a defect: no report of it would count as left out."""
    ranges = [PlannedRange("orders", partition, 0, 100, "records") for partition in range(3)]
    monkeypatch.setattr(writer, "_run", lambda given: tuple(outcome(one.partition, 100) for one in given[:2]))
    rows = [of_ranges([one]) for one in ranges]
    assert len(writer.write(iter(rows[:2])).ranges) == 2
    with pytest.raises(Defect, match=saying("3 ranges", "2 outcomes")):
        writer.write(iter(rows))


def schema_of(*values: bytes) -> bytes:
    """What a task learns from these records."""
    shaper = RowBuilder(ShapeSettings())
    list(shaper.shape(RecordBatch.of("orders", 0, range(len(values)), [0] * len(values), values)))
    assert shaper.known is not None
    serialized: bytes = shaper.known.serialize().to_pybytes()
    return serialized


def test_two_tasks_of_one_topic_teach_together(writer: PushWriter, state: SqliteStore) -> None:
    """Columns that only one of two tasks saw are known to the next micro-batch, whichever reported last."""
    one, other = schema_of(b'{"a":1}'), schema_of(b'{"b":"x"}')
    writer.commit([Outcomes((outcome(0, 100, schema=one),)), Outcomes((outcome(1, 100, schema=other),))], 3)
    schema = state.learned()["orders"].schema
    assert schema is not None
    assert set(pa.ipc.read_schema(pa.py_buffer(schema)).names) == {"a", "b"}


def test_it_is_known_by_name() -> None:
    """A PySpark program writes to `parquet_sink`."""
    assert PushSink.name() == NAME == "parquet_sink"


def test_what_travels_shows_no_secret(writer: PushWriter, given: handoff.Handoff) -> None:
    """The writer crosses to workers with the settings, and its repr shows none of the secrets."""
    back = pickle.loads(pickle.dumps(writer))
    assert back._given == given
    assert CANARY not in repr(vars(back))


def test_outcomes_travel_by_value() -> None:
    """What a task reports crosses to the driver unchanged."""
    message = Outcomes((outcome(0, 40, failure_named("UploadRefused", "no"), bytes_per_row=1.5),))
    assert pickle.loads(pickle.dumps(message)) == message
