"""What a Spark task says of its ranges, in every way a flush can end. Files are real, the target is a fake."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parquet_sink import flush as module
from parquet_sink.config.secret import Secret
from parquet_sink.config.settings import (
    ConnectorSettings,
    FileSettings,
    FlushSettings,
    KafkaSettings,
    ObfuscationSettings,
    PushSettings,
    ShapeSettings,
)
from parquet_sink.convert.decoded import Decoded
from parquet_sink.convert.json.trees import JsonTrees
from parquet_sink.errors import KafkaFailed, RegistryFailed, StorageFailed
from parquet_sink.files.accumulator import Accumulator, FinishedFile
from parquet_sink.flush import TaskFlush
from parquet_sink.kafka.block import Block
from parquet_sink.kafka.rows import WARM_UP, Span, at_end, with_block, with_problem
from parquet_sink.sink import RangeOutcome
from parquet_sink.upload.outcome import Outcome, Verdict

SPAN = Span("orders", 0, 100, 200, "interval")
ACCEPTED = Outcome(Verdict.ACCEPTED, "", "", 200)
REFUSED = Outcome(Verdict.REFUSED, "the target answered 403", "Give the key the right", 403)
UNKNOWN = Outcome(Verdict.UNKNOWN, "no whole answer came in time", "Check the target")


class Target:
    """A fake client: an outcome for each file, in turn, then acceptance. It reads what it accepts."""

    def __init__(self, *outcomes: Outcome | BaseException) -> None:
        self.outcomes = list(outcomes)
        self.rows: list[dict[str, Any]] = []
        self.files: list[FinishedFile] = []

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        outcome = self.outcomes.pop(0) if self.outcomes else ACCEPTED
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome.verdict is Verdict.ACCEPTED:
            self.files.append(file)
            self.rows += pq.ParquetFile(file.path).read().to_pylist()
        return outcome

    @property
    def offsets(self) -> list[int]:
        """Offsets of all accepted rows."""
        return [row["kafkaOffset"] for row in self.rows]


Run = Callable[..., dict[tuple[str, int], RangeOutcome]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs one task over batches against a target; outcomes by topic-partition."""

    def task(target: Target, batches: Iterable[pa.RecordBatch], records: int = 1_000, known: Any = None) -> Any:
        monkeypatch.setattr(module, "client_for", lambda settings: target)
        found = TaskFlush(made(tmp_path, records), known or {}).run(iter(batches))
        outcomes = {(one.topic, one.partition): one for one in found}
        assert len(outcomes) == len(found)
        return outcomes

    return task


def made(folder: Path, records: int) -> ConnectorSettings:
    """A connector whose files take so many records, with one attempt for each file."""
    return ConnectorSettings(
        "sink",
        KafkaSettings(("orders",), None, "connect-sink", {}),
        FlushSettings(10**9, records, 2_000),
        ShapeSettings(),
        FileSettings(str(folder)),
        PushSettings("http://localhost/", Secret("AppKey k"), "t", max_retries=1, retry_interval_ms=1),
    )


def block(span: Span, first: int, values: Sequence[bytes | None]) -> pa.RecordBatch:
    """Consecutive records from `first` on."""
    offsets = range(first, first + len(values))
    made = Block.of(span.topic, span.partition, offsets, [1_000] * len(values), values)
    return with_block(span, first + len(values), made)


def good(count: int) -> list[bytes | None]:
    """So many records of one kind."""
    return [b'{"id":%d}' % number for number in range(count)]


def left(folder: Path) -> list[str]:
    """Local Parquet files that are still there."""
    return sorted(path.name for path in folder.rglob("*") if ".parquet" in path.name and path.is_file())


def test_a_range_is_delivered_whole(run: Run, tmp_path: Path) -> None:
    """All rows arrive in offset order, the end is accepted, and no file stays on the disk."""
    target = Target()
    found = run(target, [block(SPAN, 100, good(60)), block(SPAN, 160, good(40)), at_end(SPAN)])
    outcome = found["orders", 0]
    assert (outcome.accepted_until, outcome.failure) == (200, None)
    assert (outcome.end, outcome.reason) == (200, "interval")
    assert target.offsets == list(range(100, 200))
    assert [receipt.reason for receipt in outcome.receipts] == ["interval"]
    assert left(tmp_path) == []


def test_a_gap_between_records_is_no_gap_in_what_is_accepted(run: Run) -> None:
    """Markers, aborted and compacted records leave gaps in a block; the range is accepted to its end."""
    target = Target()
    gaps = Block.of("orders", 0, [100, 105, 106, 150], [1] * 4, [b'{"id":1}'] * 4)
    outcome = run(target, [with_block(SPAN, 151, gaps), at_end(SPAN)])["orders", 0]
    assert (outcome.accepted_until, outcome.failure) == (200, None)
    assert target.offsets == [100, 105, 106, 150]
    assert (outcome.receipts[0].first_offset, outcome.receipts[0].last_offset) == (100, 150)


def test_files_split_at_a_gap_have_true_offsets(run: Run) -> None:
    """When a file is full in the middle of a gap, each file's name and receipt tell the offsets of its own rows."""
    target = Target()
    gaps = Block.of("orders", 0, [100, 101, 150, 151], [1] * 4, [b'{"id":1}'] * 4)
    outcome = run(target, [with_block(SPAN, 152, gaps), at_end(SPAN)], records=2)["orders", 0]
    assert [(r.first_offset, r.last_offset, r.next_offset) for r in outcome.receipts] == [
        (100, 101, 102),
        (150, 151, 152),
    ]
    assert outcome.accepted_until == 200


def test_tombstones_only_need_no_file(run: Run) -> None:
    """A range of nothing but tombstones is accepted to its end without an upload."""
    target = Target()
    outcome = run(target, [block(SPAN, 100, [None] * 100), at_end(SPAN)])["orders", 0]
    assert (outcome.accepted_until, outcome.failure, outcome.receipts) == (200, None, ())
    assert target.files == []


def test_tombstones_among_records_are_skipped(run: Run) -> None:
    """Tombstones give no row, and their offsets are accepted with the rest."""
    target = Target()
    values = [None, b'{"id":1}', None, b'{"id":2}', None]
    outcome = run(target, [block(SPAN, 100, values), at_end(SPAN)])["orders", 0]
    assert target.offsets == [101, 103]
    assert outcome.accepted_until == 200


def test_an_empty_range_is_accepted(run: Run) -> None:
    """A range of markers has no block at all; its end counts."""
    assert run(Target(), [at_end(SPAN)])["orders", 0].accepted_until == 200


def test_a_warm_up_does_nothing(run: Run) -> None:
    """The empty first micro-batch leaves no outcome, no file and no upload."""
    target = Target()
    assert run(target, [at_end(Span("", 0, 0, 0, WARM_UP))]) == {}
    assert target.files == []


def test_a_refused_first_file_accepts_nothing(run: Run, tmp_path: Path) -> None:
    """Nothing of the range counts, and no later file of it is sent."""
    target = Target(REFUSED)
    outcome = run(target, [block(SPAN, 100, good(100)), at_end(SPAN)], records=30)["orders", 0]
    assert outcome.accepted_until == 100
    assert outcome.failure is not None
    assert outcome.failure.kind == "UploadRefused"
    assert "403" in outcome.failure.message
    assert target.files == []
    assert len(left(tmp_path)) <= 1  # the refused one, for a look at it


def test_a_refused_second_file_accepts_the_first(run: Run) -> None:
    """What was accepted before a refusal counts, and nothing from there on."""
    target = Target(ACCEPTED, REFUSED)
    outcome = run(target, [block(SPAN, 100, good(100)), at_end(SPAN)], records=30)["orders", 0]
    assert outcome.accepted_until == 130
    assert target.offsets == list(range(100, 130))
    assert [receipt.accepted for receipt in outcome.receipts] == [True, False]


def test_tombstones_before_a_refused_file_count(run: Run) -> None:
    """Offsets below the first row of the refused file have no row, so they are accepted."""
    outcome = run(Target(REFUSED), [block(SPAN, 100, [None] * 5 + good(5)), at_end(SPAN)])["orders", 0]
    assert outcome.accepted_until == 105


def test_an_unknown_outcome_is_not_acceptance(run: Run, tmp_path: Path) -> None:
    """When no answer came the file may have been taken: it stays, and its range does not count."""
    outcome = run(Target(UNKNOWN), [block(SPAN, 100, good(10)), at_end(SPAN)])["orders", 0]
    assert outcome.accepted_until == 100
    assert outcome.failure is not None
    assert outcome.failure.kind == "UploadExhausted"
    assert len(left(tmp_path)) == 1


@pytest.mark.parametrize("position", [0, 1, 50, 99])
def test_an_invalid_record_ends_the_range_before_it(run: Run, position: int) -> None:
    """Everything before an invalid record is delivered and accepted, whether it is the first, the last or between."""
    values = good(100)
    values[position] = b"not JSON"
    target = Target()
    outcome = run(target, [block(SPAN, 100, values), at_end(SPAN)])["orders", 0]
    assert outcome.accepted_until == 100 + position
    assert target.offsets == list(range(100, 100 + position))
    assert outcome.failure is not None
    assert outcome.failure.kind == "InvalidRecord"
    assert f"topic orders, topic-partition 0, offset {100 + position}:" in outcome.failure.message
    assert [receipt.reason for receipt in outcome.receipts] == ["end_of_range"] * (position > 0)


def test_an_invalid_record_in_a_later_block(run: Run) -> None:
    """Blocks before it and rows before it in its block are delivered."""
    batches = [block(SPAN, 100, good(30)), block(SPAN, 130, [*good(5), b"[]"]), block(SPAN, 136, good(9)), at_end(SPAN)]
    target = Target()
    assert run(target, batches)["orders", 0].accepted_until == 135
    assert target.offsets == list(range(100, 135))


def test_an_invalid_record_after_a_refused_file(run: Run) -> None:
    """The refusal came first in offset order, so that is where the range ends and what is told."""
    values: list[bytes | None] = [*good(40), b"{"]
    outcome = run(Target(REFUSED), [block(SPAN, 100, values), at_end(SPAN)], records=30)["orders", 0]
    assert outcome.accepted_until == 100
    assert outcome.failure is not None
    assert outcome.failure.kind == "UploadRefused"


def test_other_ranges_of_the_task_go_on(run: Run) -> None:
    """A failure of one topic-partition holds up no other."""
    other = Span("orders", 1, 0, 10, "records")
    batches = [block(SPAN, 100, [b"{"]), at_end(SPAN), block(other, 0, good(10)), at_end(other)]
    found = run(Target(), batches)
    assert found["orders", 0].failure is not None
    assert (found["orders", 1].accepted_until, found["orders", 1].failure) == (10, None)


def test_a_range_that_was_not_read_to_its_end(run: Run) -> None:
    """What was read before Kafka failed is delivered and accepted; the failure is the reader's."""
    target = Target()
    batches = [block(SPAN, 100, good(10)), with_problem(SPAN, 110, KafkaFailed("no record came"))]
    outcome = run(target, batches)["orders", 0]
    assert outcome.accepted_until == 110
    assert target.offsets == list(range(100, 110))
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.message) == ("KafkaFailed", "no record came")


def test_storage_that_fails_accepts_what_was_sent_before(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk loses nothing: files accepted before it count, and nothing that was only in memory."""

    def full(self: Accumulator, reason: Any) -> FinishedFile | None:
        raise StorageFailed("no space left")

    monkeypatch.setattr(Accumulator, "finish", full)
    target = Target()
    outcome = run(target, [block(SPAN, 100, good(100)), at_end(SPAN)], records=30)["orders", 0]
    assert outcome.accepted_until == 190
    assert target.offsets == list(range(100, 190))
    assert outcome.failure is not None
    assert outcome.failure.kind == "StorageFailed"


def test_storage_that_fails_at_once_accepts_nothing(run: Run, tmp_path: Path) -> None:
    """When not one file can be written, the range stays where it was."""
    (tmp_path / "sink").write_bytes(b"a file where the folder should be")
    outcome = run(Target(), [block(SPAN, 100, good(10)), at_end(SPAN)])["orders", 0]
    assert outcome.accepted_until == 100
    assert outcome.failure is not None
    assert outcome.failure.kind == "StorageFailed"


class Away(JsonTrees):
    """A decoder whose registry does not answer from the third block on."""

    def __init__(self) -> None:
        super().__init__(anything=False)
        self.blocks = 0

    def decode(self, values: pa.BinaryArray) -> Decoded:
        self.blocks += 1
        if self.blocks > 2:
            raise RegistryFailed("The schema registry did not give schema id 2.")
        return super().decode(values)


@pytest.mark.parametrize("records", [1_000, 25])
def test_a_registry_that_stays_away_loses_no_record_before(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """What was decoded before is sent and accepted, nothing after it, and nothing stays on the disk."""
    decoder = Away()
    monkeypatch.setattr(TaskFlush, "_decoder", lambda task: decoder)
    target = Target()
    blocks = [block(SPAN, first, good(20)) for first in (100, 120, 140, 160)]
    outcome = run(target, [*blocks, at_end(SPAN)], records)["orders", 0]
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.accepted_until) == ("RegistryFailed", 140)
    assert target.offsets == list(range(100, 140))
    assert left(tmp_path) == []


def test_a_defect_is_raised_and_leaves_no_open_file(run: Run, tmp_path: Path) -> None:
    """What nobody foresaw fails the Spark task, which is tried again from the start of its ranges."""
    with pytest.raises(ZeroDivisionError):
        run(Target(ZeroDivisionError()), [block(SPAN, 100, good(100)), at_end(SPAN)], records=30)
    assert len(left(tmp_path)) <= 1


def test_what_was_learned_comes_back(run: Run) -> None:
    """The outcome carries the topic's schema and the bytes of a row; with them the next file has the same columns."""
    first = run(Target(), [block(SPAN, 100, [b'{"id":1,"name":"x"}']), at_end(SPAN)])["orders", 0]
    assert first.learned.bytes_per_row is not None
    assert first.learned.schema is not None
    target, span = Target(), Span("orders", 0, 200, 201, "size")
    run(target, [block(span, 200, [b'{"id":2}']), at_end(span)], known={"orders": first.learned})
    assert target.rows[0]["name"] is None


def test_schema_changes_within_a_range_make_files_in_order(run: Run) -> None:
    """Rows that cannot share a schema go to a file of their own, and offsets stay in order."""
    target = Target()
    values = [b'{"a":1}', b'{"a":"x"}', b'{"a":"y"}', b'{"b":true}']
    outcome = run(target, [block(SPAN, 100, values), at_end(SPAN)])["orders", 0]
    assert outcome.accepted_until == 200
    assert target.offsets == [100, 101, 102, 103]
    assert outcome.receipts[0].reason == "schema"


records = st.lists(st.sampled_from([b'{"a":1}', b'{"a":2.5}', b'{"a":"x"}', b'{"b":[1]}', None, b"{"]), max_size=40)
verdicts = st.lists(st.sampled_from([ACCEPTED, ACCEPTED, REFUSED, UNKNOWN]), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(records, verdicts, st.integers(1, 20), st.integers(1, 15))
def test_accepted_is_never_more_than_was_accepted(
    run: Run, values: list[bytes | None], outcomes: list[Outcome], records: int, cut: int
) -> None:
    """Whatever fails: every row below `accepted_until` is at the target, in order and once, and none above it."""
    target, span = Target(*outcomes), Span("orders", 0, 0, len(values), "records")
    blocks = [block(span, first, values[first : first + cut]) for first in range(0, len(values), cut)]
    outcome = run(target, [*blocks, at_end(span)], records)["orders", 0]
    until = outcome.accepted_until
    assert target.offsets == [n for n, value in enumerate(values[:until]) if value is not None]
    assert 0 <= until <= len(values)
    assert (outcome.failure is None) == (until == len(values))


def test_a_range_that_breaks_off_is_a_defect(run: Run, tmp_path: Path) -> None:
    """Rows that stop coming before their range's end fail the task: nothing of the range counts, nothing is left."""
    target = Target()
    with pytest.raises(RuntimeError, match="before their end"):
        run(target, [block(SPAN, 110, [b'{"id":1}'])])
    assert target.files == []
    assert not list(tmp_path.rglob("*.part"))


def test_paths_that_hide_nothing_are_warned_about_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An obfuscation path that matches no field of the topic is told, once in a process and not for each range."""
    monkeypatch.setattr(module, "client_for", lambda settings: Target())
    monkeypatch.setattr(module, "_warned", set())
    hidden = ObfuscationSettings(("name", "nmae"))
    connector = replace(made(tmp_path, 10), shape=ShapeSettings(obfuscation=hidden))
    for start in (100, 150):
        span = Span("orders", 0, start, start + 50, "interval")
        with caplog.at_level("WARNING"):
            TaskFlush(connector, {}).run(iter([block(span, start, [b'{"name":"Ada"}'] * 50), at_end(span)]))
    assert [record.message for record in caplog.records if "nmae" in record.message] == [
        "connector sink: topic orders has no field nmae, which connect.ems.obfuscation.fields names; correct it."
    ]


def test_a_topic_that_changes_its_types_all_the_time_is_told(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Each such file is accepted all the same; one line names the column, and what the files hold."""
    span = Span("churning", 0, 100, 200, "interval")
    values = [b'{"code":%s}' % (b'"x"' if number % 2 else b"1") for number in range(100)]
    target = Target()
    with caplog.at_level(logging.WARNING):
        run(target, [block(span, 100, values)])
    assert target.offsets == list(range(100, 200))
    (record,) = [record for record in caplog.records if "churning" in record.message]
    assert "Column code is a string in some records and a whole number (int64) in others" in record.message
    assert "at 1.0 rows per file" in record.message
