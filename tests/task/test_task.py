"""What a Spark task says of its ranges, in every way a flush can end. Files are real, the target is a fake."""

import logging
import random
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded
from parquet_sink.convert.json.decoder import JsonTrees
from parquet_sink.errors import KafkaFailed, OffsetsLost, RegistryFailed, StorageFailed, TopicGone
from parquet_sink.files import naming
from parquet_sink.files.accumulator import Accumulator, FinishedFile
from parquet_sink.files.lock import PartitionClaim
from parquet_sink.model.ranges import NO_TRIES, Again, PlannedRange, Tries
from parquet_sink.model.records import RecordBatch
from parquet_sink.process import logs
from parquet_sink.rows.settings import ObfuscationSettings, ShapeSettings
from parquet_sink.targets.outcome import Outcome
from parquet_sink.task import task as module
from parquet_sink.task.record_steps import RecordSteps
from tests.messages import assert_says
from tests.spark_task import SparkTask
from tests.task.fakes import (
    ACCEPTED,
    CUT,
    ONCE,
    REFUSED,
    SLOW,
    SPAN,
    UNKNOWN,
    Run,
    Target,
    block,
    cut_blocks,
    good,
    left,
    made,
    names,
    part,
)
from tests.thorough import FIXTURES_SHARED, examples


def test_a_range_is_delivered_whole(run: Run, tmp_path: Path) -> None:
    """All rows arrive in offset order, the end is accepted, and no file stays on the disk."""
    target = Target()
    found = run(target, (SPAN, [block(SPAN, 100, good(60)), block(SPAN, 160, good(40))]))
    outcome = found["orders", 0]
    assert (outcome.accepted_until, outcome.failure) == (200, None)
    assert (outcome.planned.end, outcome.planned.reason) == (200, "interval")
    assert target.offsets == list(range(100, 200))
    assert [receipt.reason for receipt in outcome.receipts] == ["interval"]
    assert left(tmp_path) == []


def test_a_gap_between_records_is_no_gap_in_what_is_accepted(run: Run) -> None:
    """Markers, aborted and compacted records leave gaps in a block; the range is accepted to its end."""
    target = Target()
    gaps = RecordBatch.of("orders", 0, [100, 105, 106, 150], [1] * 4, [b'{"id":1}'] * 4)
    outcome = run(target, (SPAN, [gaps]))["orders", 0]
    assert (outcome.accepted_until, outcome.failure) == (200, None)
    assert target.offsets == [100, 105, 106, 150]
    assert (outcome.receipts[0].first_offset, outcome.receipts[0].last_offset) == (100, 150)
    assert (outcome.read, outcome.gaps) == (4, 96)


def test_the_sizes_of_values_and_of_their_parquet_are_told(run: Run) -> None:
    """Of a range that became files as a whole: footers do not count, which are most of a small file."""
    values = [b'{"id":%d}' % number for number in range(100)]
    outcome = run(Target(), (SPAN, [block(SPAN, 100, values[:60]), block(SPAN, 160, values[60:])]))["orders", 0]
    (receipt,) = outcome.receipts
    assert outcome.sizes is not None
    records, value_bytes, file_bytes = outcome.sizes
    assert (records, value_bytes) == (100, sum(map(len, values)))
    assert outcome.learned.bytes_per_record is not None
    assert file_bytes == pytest.approx(100 * outcome.learned.bytes_per_record)
    assert 0 < file_bytes < receipt.size_bytes


def test_a_part_of_a_range_tells_no_sizes(run: Run) -> None:
    """Nor do tombstones alone: what was read is not what became files."""
    refused = run(Target(ACCEPTED, REFUSED), (SPAN, [block(SPAN, 100, good(100))]), records=60)["orders", 0]
    tombstones = run(Target(), (SPAN, [block(SPAN, 100, [None] * 100)]))["orders", 0]
    repeated = replace(SPAN, accepted=160)
    rest = run(Target(), (repeated, [block(SPAN, 100, good(100))]), records=60)["orders", 0]
    assert [one.sizes for one in (refused, tombstones, rest)] == [None] * 3


def begin_late(task: SparkTask, *values: bytes | None) -> None:
    """Offsets 100 to 129 were deleted, which the connector accepts; then come these records."""
    task.configure(connect__ems__lost__offsets__policy="CONTINUE")
    task.produce(*good(130), *values)
    task.kafka.log(("orders", 0)).delete_before(130)


def test_what_the_reader_passed_over_is_told(spark_task: SparkTask) -> None:
    """Offsets that Kafka no longer had are losses of the range, and no gaps."""
    begin_late(spark_task, *good(60))
    spark_task.produce(gap=10)
    outcome = spark_task.flush(SPAN)["orders", 0]
    assert outcome.accepted_until == 200
    assert outcome.lost == ((100, 130, "retention"),)
    assert (outcome.read, outcome.gaps) == (60, 10)


def test_files_split_at_a_gap_have_true_offsets(run: Run) -> None:
    """When a file is full in the middle of a gap, each file's name and receipt tell the offsets of its own rows."""
    target = Target()
    gaps = RecordBatch.of("orders", 0, [100, 101, 150, 151], [1] * 4, [b'{"id":1}'] * 4)
    outcome = run(target, (SPAN, [gaps]), records=2)["orders", 0]
    assert [(r.first_offset, r.last_offset, r.next_offset) for r in outcome.receipts] == [
        (100, 101, 102),
        (150, 151, 152),
    ]
    assert outcome.accepted_until == 200


def test_tombstones_only_need_no_file(run: Run) -> None:
    """A range of nothing but tombstones is accepted to its end without an upload."""
    target = Target()
    outcome = run(target, (SPAN, [block(SPAN, 100, [None] * 100)]))["orders", 0]
    assert (outcome.accepted_until, outcome.failure, outcome.receipts) == (200, None, ())
    assert target.files == []


def test_tombstones_among_records_are_skipped(run: Run) -> None:
    """Tombstones give no row, and their offsets are accepted with the rest."""
    target = Target()
    values = [None, b'{"id":1}', None, b'{"id":2}', None]
    outcome = run(target, (SPAN, [block(SPAN, 100, values)]))["orders", 0]
    assert target.offsets == [101, 103]
    assert outcome.accepted_until == 200


def test_an_empty_range_is_accepted(run: Run) -> None:
    """A range of markers has no block at all; its end counts."""
    assert run(Target(), (SPAN, []))["orders", 0].accepted_until == 200


def test_a_warm_up_does_nothing(run: Run) -> None:
    """The empty first micro-batch has no range: no outcome, no file and no upload."""
    target = Target()
    assert run(target) == {}
    assert target.files == []


def test_a_refused_first_file_accepts_nothing(run: Run, tmp_path: Path) -> None:
    """Nothing of the range counts, and no later file of it is sent."""
    target = Target(REFUSED)
    outcome = run(target, (SPAN, [block(SPAN, 100, good(100))]), records=30)["orders", 0]
    assert outcome.accepted_until == 100
    assert outcome.failure is not None
    assert outcome.failure.kind == "UploadRefused"
    assert "403" in outcome.failure.message
    assert target.files == []
    assert len(left(tmp_path)) <= 1  # the refused one, for a look at it


def test_a_refused_second_file_accepts_the_first(run: Run) -> None:
    """What was accepted before a refusal counts, and nothing from there on."""
    target = Target(ACCEPTED, REFUSED)
    outcome = run(target, (SPAN, [block(SPAN, 100, good(100))]), records=30)["orders", 0]
    assert outcome.accepted_until == 130
    assert target.offsets == list(range(100, 130))
    assert [receipt.accepted for receipt in outcome.receipts] == [True, False]


def test_tombstones_before_a_refused_file_count(run: Run) -> None:
    """Offsets below the first row of the refused file have no row, so they are accepted."""
    outcome = run(Target(REFUSED), (SPAN, [block(SPAN, 100, [None] * 5 + good(5))]))["orders", 0]
    assert outcome.accepted_until == 105


def test_an_unknown_outcome_is_not_acceptance(run: Run, tmp_path: Path) -> None:
    """When no answer came the file may have been taken: it stays, and its range does not count."""
    outcome = run(Target(UNKNOWN), (SPAN, [block(SPAN, 100, good(10))]))["orders", 0]
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
    outcome = run(target, (SPAN, [block(SPAN, 100, values)]))["orders", 0]
    assert outcome.accepted_until == 100 + position
    assert target.offsets == list(range(100, 100 + position))
    assert outcome.failure is not None
    assert outcome.failure.kind == "InvalidRecord"
    assert f"topic orders, topic-partition 0, offset {100 + position}:" in outcome.failure.message
    assert [receipt.reason for receipt in outcome.receipts] == ["end_of_range"] * (position > 0)


def test_an_invalid_record_in_a_later_block(run: Run) -> None:
    """Blocks before it and rows before it in its block are delivered."""
    blocks = [block(SPAN, 100, good(30)), block(SPAN, 130, [*good(5), b"[]"]), block(SPAN, 136, good(9))]
    target = Target()
    assert run(target, (SPAN, blocks))["orders", 0].accepted_until == 135
    assert target.offsets == list(range(100, 135))


def test_an_invalid_record_after_a_refused_file(run: Run) -> None:
    """The refusal came first in offset order, so that is where the range ends and what is told."""
    values: list[bytes | None] = [*good(40), b"{"]
    outcome = run(Target(REFUSED), (SPAN, [block(SPAN, 100, values)]), records=30)["orders", 0]
    assert outcome.accepted_until == 100
    assert outcome.failure is not None
    assert outcome.failure.kind == "UploadRefused"


def test_other_ranges_of_the_task_go_on(run: Run) -> None:
    """A failure of one topic-partition holds up no other."""
    other = PlannedRange("orders", 1, 0, 10, "records")
    found = run(Target(), (SPAN, [block(SPAN, 100, [b"{"])]), (other, [block(other, 0, good(10))]))
    assert found["orders", 0].failure is not None
    assert (found["orders", 1].accepted_until, found["orders", 1].failure) == (10, None)


def test_a_range_that_was_not_read_to_its_end(run: Run, tmp_path: Path) -> None:
    """Full files before Kafka failed count; what was begun is made again, for half of it would have another name."""
    target = Target()
    items = [block(SPAN, 100, good(10)), KafkaFailed("no record came")]
    outcome = run(target, (SPAN, items), records=4)["orders", 0]
    assert outcome.accepted_until == 108
    assert target.offsets == list(range(100, 108))
    assert left(tmp_path) == []
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.message) == ("KafkaFailed", "no record came")


def test_a_topic_that_is_gone_is_left_to_the_driver(run: Run, tmp_path: Path) -> None:
    """It is no failure, which would end the query of all other topics; what was begun is thrown away."""
    target = Target()
    outcome = run(target, (SPAN, [block(SPAN, 100, good(10)), TopicGone("gone")]), records=4)["orders", 0]
    assert (outcome.failure, outcome.again is not None, outcome.accepted_until) == (None, True, 108)
    assert target.offsets == list(range(100, 108))
    assert left(tmp_path) == []


def test_what_is_lost_is_told_of_a_range_that_ends_early(spark_task: SparkTask) -> None:
    """A record without a row ends the reading of a range; what was passed over before it is told all the same."""
    begin_late(spark_task, *good(10), b"no JSON", *good(59))
    (outcome,) = spark_task.flush(SPAN).values()
    assert outcome.lost == ((100, 130, "retention"),)


def test_offsets_that_are_lost_end_the_range_before_them(run: Run) -> None:
    """What was read before the gap is delivered: it may be gone, too, when the range is read again."""
    target = Target()
    items = [block(SPAN, 100, good(10)), OffsetsLost("offsets 110 to 119 were deleted")]
    outcome = run(target, (SPAN, items))["orders", 0]
    assert (outcome.accepted_until, target.offsets) == (110, list(range(100, 110)))
    assert outcome.failure is not None
    assert outcome.failure.kind == "OffsetsLost"


def test_storage_that_fails_accepts_what_was_sent_before(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk loses nothing: files accepted before it count, and nothing that was only in memory."""

    def full(self: Accumulator, reason: Any) -> FinishedFile | None:
        raise StorageFailed("no space left")

    monkeypatch.setattr(Accumulator, "finish", full)
    target = Target()
    outcome = run(target, (SPAN, [block(SPAN, 100, good(100))]), records=30)["orders", 0]
    assert outcome.accepted_until == 190
    assert target.offsets == list(range(100, 190))
    assert outcome.failure is not None
    assert outcome.failure.kind == "StorageFailed"


def test_storage_that_fails_at_once_accepts_nothing(run: Run, tmp_path: Path) -> None:
    """When not one file can be written, the range stays where it was."""
    (tmp_path / "sink").write_bytes(b"a file where the folder should be")
    outcome = run(Target(), (SPAN, [block(SPAN, 100, good(10))]))["orders", 0]
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


@pytest.mark.parametrize(("records", "until"), [(1_000, 100), (25, 125)])
def test_a_registry_that_stays_away_loses_no_record_before(run: Run, tmp_path: Path, records: int, until: int) -> None:
    """Full files before it count, nothing after them does, and nothing stays on the disk."""
    target = Target()
    blocks = [block(SPAN, first, good(20)) for first in (100, 120, 140, 160)]
    outcome = run(target, (SPAN, blocks), records=records, steps=RecordSteps(Away()))["orders", 0]
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.accepted_until) == ("RegistryFailed", until)
    assert target.offsets == list(range(100, until))
    assert left(tmp_path) == []


def test_a_defect_is_raised_and_leaves_no_open_file(run: Run, tmp_path: Path) -> None:
    """What nobody foresaw fails the Spark task, which is tried again from the start of its ranges."""
    with pytest.raises(ZeroDivisionError):
        run(Target(ZeroDivisionError()), (SPAN, [block(SPAN, 100, good(100))]), records=30)
    assert len(left(tmp_path)) <= 1


def test_what_was_learned_comes_back(run: Run) -> None:
    """The outcome carries the topic's schema and the bytes of a row; with them the next file has the same columns."""
    first = run(Target(), (SPAN, [block(SPAN, 100, [b'{"id":1,"name":"x"}'])]))["orders", 0]
    assert first.learned.bytes_per_row is not None
    assert first.learned.schema is not None
    target, later = Target(), PlannedRange("orders", 0, 200, 201, "size", known=first.learned)
    run(target, (later, [block(later, 200, [b'{"id":2}'])]))
    assert target.rows[0]["name"] is None


def test_schema_changes_within_a_range_make_files_in_order(run: Run) -> None:
    """Rows that cannot share a schema go to a file of their own, and offsets stay in order."""
    target = Target()
    values = [b'{"a":1}', b'{"a":"x"}', b'{"a":"y"}', b'{"b":true}']
    outcome = run(target, (SPAN, [block(SPAN, 100, values)]))["orders", 0]
    assert outcome.accepted_until == 200
    assert target.offsets == [100, 101, 102, 103]
    assert outcome.receipts[0].reason == "schema"


records = st.lists(st.sampled_from([b'{"a":1}', b'{"a":2.5}', b'{"a":"x"}', b'{"b":[1]}', None, b"{"]), max_size=40)
verdicts = st.lists(st.sampled_from([ACCEPTED, ACCEPTED, REFUSED, UNKNOWN]), max_size=4)


@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(60),
    deadline=None,
)
@given(records, verdicts, st.integers(1, 20), st.integers(1, 15))
def test_accepted_is_never_more_than_was_accepted(
    run: Run, values: list[bytes | None], outcomes: list[Outcome], records: int, cut: int
) -> None:
    """Whatever fails: every row below `accepted_until` is at the target, in order and once, and none above it."""
    target, span = Target(*outcomes), PlannedRange("orders", 0, 0, len(values), "records")
    blocks = [block(span, first, values[first : first + cut]) for first in range(0, len(values), cut)]
    outcome = run(target, (span, blocks), records=records)["orders", 0]
    until = outcome.accepted_until
    assert target.offsets == [n for n, value in enumerate(values[:until]) if value is not None]
    assert 0 <= until <= len(values)
    assert (outcome.failure is None) == (until == len(values))


def test_paths_that_hide_nothing_are_warned_about_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An obfuscation path that matches no field of the topic is told, once in a process and not for each range."""
    monkeypatch.setattr(module, "_warned", set())
    hidden = ObfuscationSettings(("name", "nmae"))
    connector = replace(made(tmp_path, 10), shape=ShapeSettings(obfuscation=hidden))
    for start in (100, 150):
        span = PlannedRange("orders", 0, start, start + 50, "interval")
        with caplog.at_level("WARNING"):
            run(Target(), (span, [block(span, start, [b'{"name":"Ada"}'] * 50)]), settings=connector)
    (warning,) = [message for message in caplog.messages if "nmae" in message]
    assert_says(
        warning, "connector sink", "topic orders", "no field nmae", "connect.ems.obfuscation.fields", "correct it"
    )


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_a_range_that_failed_in_the_middle_comes_again_as_the_same_files(run: Run, fails_at: int) -> None:
    """After an outcome that is unknown the same file is sent, though what came before it taught the topic's columns."""
    whole, broken, rest = Target(), Target(*[ACCEPTED] * fails_at, UNKNOWN), Target()
    run(whole, (CUT, cut_blocks(CUT, 500)), records=1_100)
    first = run(broken, (CUT, cut_blocks(CUT, 500)), records=1_100)["orders", 0]
    assert first.accepted_until == 1_100 * fails_at
    again = replace(CUT, accepted=first.accepted_until)
    second = run(rest, (again, cut_blocks(CUT, 500)), records=1_100)["orders", 0]
    assert second.accepted_until == CUT.end
    assert names(broken) + names(rest) == names(whole), "no file is sent under another name, none accepted twice"


def test_files_of_a_range_do_not_depend_on_the_ranges_beside_it(run: Run) -> None:
    """A topic-partition's files have the same names and columns, whatever its task took before it."""
    alone, beside = Target(), Target()
    other = PlannedRange("orders", 1, 0, 3, "records")
    run(alone, (SPAN, [block(SPAN, 100, good(10))]))
    run(beside, (other, [block(other, 0, [b'{"x":1,"id":"text"}'] * 3)]), (SPAN, [block(SPAN, 100, good(10))]))
    assert [name for name in names(beside) if "partition-0" in name] == names(alone)


ranges_values = st.lists(
    st.lists(
        st.sampled_from([*good(3), b'{"x":true,"id":"text"}', b'{"ID":2.5,"l":[{"name":1}]}', None, b"{"]), max_size=6
    )
)
SHAPES = (
    ShapeSettings(),
    ShapeSettings(flatten=False, lowercase=True),
    ShapeSettings(explode=True, embed_metadata=False),
    ShapeSettings(obfuscation=ObfuscationSettings(("name",))),
    ShapeSettings(chunks=2, chunk_bytes=20),
)


@settings(suppress_health_check=FIXTURES_SHARED, max_examples=examples(40), deadline=None)
@given(ranges_values, st.integers(1, 4), st.sampled_from(SHAPES))
def test_files_of_a_range_do_not_depend_on_those_that_began_with_the_same_knowledge(
    run: Run, tmp_path: Path, many: list[list[bytes | None]], records: int, shape: ShapeSettings
) -> None:
    """Ranges that learn something, nothing, or begin anew: together they have the files that each has by itself."""
    connector = replace(made(tmp_path, records), shape=shape)
    taught = (SPAN, [block(SPAN, 100, [*good(2), b'{"id":1,"x":1}'])])
    first = run(Target(), taught, settings=connector)["orders", 0].learned
    spans = [PlannedRange("orders", n, 0, len(values), "records", known=first) for n, values in enumerate(many)]
    work = [(span, [block(span, 0, values)] if values else []) for span, values in zip(spans, many, strict=True)]
    together, alone = Target(), Target()
    found = run(together, *work, settings=connector)
    by_itself = [run(alone, one, settings=connector)["orders", number] for number, one in enumerate(work)]
    assert sorted(names(together)) == sorted(names(alone))
    assert [found["orders", number].learned for number in range(len(many))] == [one.learned for one in by_itself]


def test_a_row_builder_that_learned_nothing_serves_the_next_range() -> None:
    """One that did is left to its range; nor does one serve a range that begins with other knowledge."""
    steps, shape = RecordSteps(), ShapeSettings()
    taught = steps.take_row_builder(shape, None)
    list(taught.shape(block(SPAN, 100, good(20))))
    assert taught.known is not None
    schema = taught.known.serialize().to_pybytes()
    assert not steps.put_back(taught, shape, None)
    found = []
    for values in (good(20), [*good(20), b'{"new":1}'], good(1)):
        shaper = steps.take_row_builder(shape, schema)
        list(shaper.shape(block(SPAN, 100, values)))
        found.append((id(shaper), steps.put_back(shaper, shape, schema)))
    (first, kept), (second, grown), (third, again) = found
    assert (kept, grown, again) == (True, False, True)
    assert first == second != third
    assert steps.take_row_builder(replace(shape, lowercase=True), schema) is not shaper
    assert steps.take_row_builder(shape, schema) is shaper


@pytest.mark.parametrize("seed", range(20))
def test_no_row_below_what_was_accepted_is_in_a_file_that_ends_above(run: Run, seed: int) -> None:
    """When retention or compaction removed records meanwhile, or one has a row now: the rest is planned anew, alone."""
    chance = random.Random(seed)
    accepted, records = chance.randrange(101, 200), chance.randrange(1, 40)
    there = sorted(chance.sample(range(100, 200), chance.randrange(60, 101)))
    first = chance.randrange(100, 150)
    values = {offset: b'{"id":%d}' % offset for offset in there if offset >= first}
    batch = RecordBatch.of("orders", 0, list(values), [1_000] * len(values), list(values.values()))
    target, left_of = Target(), [part(batch, accepted, 200)] if max(values) >= accepted else []
    outcome = run(target, (replace(SPAN, accepted=accepted), [batch]), records=records)["orders", 0]
    if outcome.again is not None:
        assert (outcome.again.span, outcome.failure, outcome.accepted_until) == ((accepted, 200), None, accepted)
        assert target.files == []
        rest = PlannedRange("orders", 0, accepted, 200, "interval", accepted=accepted)
        outcome = run(target, (rest, left_of), records=records)["orders", 0]
    assert (outcome.again, outcome.accepted_until) == (None, 200)
    assert target.offsets == [offset for offset in values if offset >= accepted]


@pytest.mark.parametrize("position", [1, 50, 99])
def test_what_comes_before_an_invalid_record_is_planned_before_it_is_sent(run: Run, position: int) -> None:
    """With a planner the open file is not sent: a record that is good the next time would be in it, as another file."""
    values = good(100)
    values[position] = b"not JSON"
    target, batch = Target(), block(SPAN, 100, values)
    full = position // 30 * 30
    first = run(target, (SPAN, [batch]), records=30, replans=True)["orders", 0]
    assert (first.failure, first.again) == (None, Again(NO_TRIES, 0.0, (100, 100 + position)))
    assert (first.accepted_until, target.offsets) == (100 + full, list(range(100, 100 + full)))
    before = replace(SPAN, end=100 + position, accepted=100 + full)
    second = run(target, (before, [part(batch, 100, before.end)]), records=30, replans=True)["orders", 0]
    assert (second.accepted_until, second.again, second.failure) == (before.end, None, None)
    assert target.offsets == list(range(100, before.end))
    rest = replace(SPAN, start=before.end, accepted=before.end)
    third = run(target, (rest, [part(batch, rest.start, 200)]), records=30, replans=True)["orders", 0]
    assert (third.accepted_until, third.again) == (before.end, None)
    assert third.failure is not None
    assert third.failure.kind == "InvalidRecord"


def test_offsets_that_are_lost_are_not_waited_for(run: Run) -> None:
    """What was read before them is sent at once: it may be gone when it is read again."""
    target = Target()
    items = [block(SPAN, 100, good(10)), OffsetsLost("offsets 110 to 119 were deleted")]
    outcome = run(target, (SPAN, items), replans=True)["orders", 0]
    assert (outcome.accepted_until, target.offsets, outcome.again) == (110, list(range(100, 110)), None)
    assert outcome.failure is not None


def test_a_failure_below_what_was_accepted_takes_nothing_back(run: Run) -> None:
    """A range that comes again and fails earlier than before stands where it stood."""
    again = replace(SPAN, accepted=150)
    outcome = run(Target(), (again, [block(SPAN, 100, good(20)), KafkaFailed("away")]))["orders", 0]
    assert outcome.accepted_until == 150


def test_a_long_wait_gives_the_slot_back(run: Run, tmp_path: Path) -> None:
    """An attempt that is far away is the driver's to plan: the range ends as 'again', and others of the task go on."""
    other = PlannedRange("orders", 1, 0, 10, "records")
    target = Target(ACCEPTED, UNKNOWN)
    feeds = (SPAN, [block(SPAN, 100, good(100))]), (other, [block(other, 0, good(10))])
    found = run(target, *feeds, records=30, retry=SLOW)
    one = found["orders", 0]
    assert (one.accepted_until, one.failure) == (130, None)
    assert one.again is not None
    assert one.again.tries.attempts == 1
    assert 5 <= one.again.wait_s <= 10
    assert [receipt.accepted for receipt in one.receipts] == [True], "a file that is tried again has no receipt yet"
    assert found["orders", 1].accepted_until == 10
    assert left(tmp_path) == [], "it is made again, so months of attempts fill no disk"


def test_attempts_count_on_from_task_to_task(run: Run) -> None:
    """The retry budget is that of the file, however many Spark tasks it took; the file after it begins anew."""
    again = replace(SPAN, accepted=130, tries=Tries(2, 20.0))
    feed = (again, [block(SPAN, 100, good(100))])
    spent = run(Target(UNKNOWN), feed, records=30, retry=SLOW)["orders", 0]
    assert spent.failure is not None
    assert "after 3 attempts in 20." in spent.failure.message
    target = Target(ACCEPTED, UNKNOWN)
    following = run(target, feed, records=30, retry=SLOW)["orders", 0]
    assert (following.accepted_until, following.failure) == (160, None)
    assert following.again is not None
    assert following.again.tries.attempts == 1


def test_a_range_that_another_attempt_still_holds_comes_again(run: Run, tmp_path: Path) -> None:
    """Nothing of it is sent while an older attempt may have a file under way; no attempt is counted."""
    path = naming.claim_file(str(tmp_path), "sink", "orders", 0)
    older = PartitionClaim(path, "a" * 32)
    assert older.acquire()
    target = Target()
    held = run(target, (SPAN, [block(SPAN, 100, good(10))]))["orders", 0]
    assert (held.accepted_until, held.failure, target.files) == (100, None, [])
    assert held.again is not None
    assert held.again.tries == Tries()
    assert older.superseded(), "the older one knows that it should end"
    older.release()
    assert run(target, (SPAN, [block(SPAN, 100, good(10))]))["orders", 0].accepted_until == 200


def test_a_range_without_records_waits_for_no_other_attempt(run: Run, tmp_path: Path) -> None:
    """It sends nothing: it claims nothing, and an older attempt, whose file may be under way, goes on."""
    older = PartitionClaim(naming.claim_file(str(tmp_path), "sink", "orders", 0), "a" * 32)
    assert older.acquire()
    outcome = run(Target(), (SPAN, []))["orders", 0]
    assert (outcome.accepted_until, outcome.failure, outcome.again) == (200, None, None)
    assert not older.superseded()
    older.release()


def test_an_attempt_that_was_given_up_sends_nothing_more(run: Run, tmp_path: Path) -> None:
    """When its successor has claimed the topic-partition, an attempt makes no further request."""
    path = naming.claim_file(str(tmp_path), "sink", "orders", 0)

    class Successor(Target):
        def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
            assert not PartitionClaim(path, "b" * 32).acquire(patience_s=0.0), "its file may still be under way"
            return super().push(file, seconds_left)

    target = Successor(UNKNOWN)
    quick = replace(ONCE, max_retries=5)
    outcome = run(target, (SPAN, [block(SPAN, 100, good(10))]), retry=quick)["orders", 0]
    assert target.files == []
    assert target.outcomes == []
    assert outcome.accepted_until == 100


def test_a_topic_that_changes_its_types_all_the_time_is_told(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Each such file is accepted all the same; one line names the column, and what the files hold."""
    span = PlannedRange(f"churning-{uuid4().hex}", 0, 100, 200, "interval")  # each topic is told once in a process
    values = [b'{"code":%s}' % (b'"x"' if number % 2 else b"1") for number in range(100)]
    target = Target()
    with caplog.at_level(logging.WARNING):
        run(target, (span, [block(span, 100, values)]))
    assert target.offsets == list(range(100, 200))
    (warning,) = [message for message in caplog.messages if "churning" in message]
    assert_says(warning, "Column code is a string", "a whole number (int64)", "1.0 rows per file")


def test_lines_of_a_task_name_its_connector(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is lent from one connector to the next: what is logged in it names the one whose task it is."""
    monkeypatch.setattr(logs._Marked, "connector", "another")
    run(Target(), (SPAN, [block(SPAN, 100, good(3))]))
    assert logs._Marked.connector == "sink"
