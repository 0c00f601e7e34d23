"""What becomes of records without a row is a policy's to say: what it diverts counts once it is acknowledged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.errors import InvalidRecord, KafkaFailed, StorageFailed
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import VALUES_ONLY, Header, RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected
from parquet_sink.task.record_steps import RecordSteps, StopAtRejected
from tests.messages import assert_says
from tests.task.fakes import (
    ACCEPTED,
    CUT,
    REFUSED,
    SPAN,
    UNKNOWN,
    Run,
    Target,
    block,
    cut_blocks,
    good,
    left,
    names,
)
from tests.thorough import FIXTURES_SHARED, examples

BAD = b"not JSON"


@dataclass
class Shelf:
    """A policy that diverts all records, until one at `stops_at`. What it keeps for good is in `kept`."""

    stops_at: int = 10**9
    away: bool = False
    needs: RecordParts = VALUES_ONLY
    events: list[str] = field(default_factory=list)
    decided: list[Rejected] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    raises: bool = False
    closed: int = 0
    diverts = True

    def decide(self, rejected: Rejected) -> InvalidRecord | None:
        if rejected.offset >= self.stops_at:
            if self.raises:
                raise StorageFailed("the shelf is full")
            return InvalidRecord(rejected.topic, rejected.partition, rejected.offset, "the shelf is full")
        self.decided.append(rejected)
        return None

    def flush(self, planned: PlannedRange) -> None:
        self.events.append("flush")
        if self.away:
            raise KafkaFailed("the shelf is away")
        where = (planned.topic, planned.partition)
        self.kept += [one.offset for one in self.decided if (one.topic, one.partition) == where]

    def close(self) -> None:
        self.closed += 1


def with_bad(count: int, *bad: int) -> list[bytes | None]:
    """So many records, of which those at some places have no row."""
    return [BAD if number in bad else value for number, value in enumerate(good(count))]


def on(shelf: Shelf) -> RecordSteps:
    """A connector with that policy, for JSON without a schema."""
    return RecordSteps(policy=shelf)


def test_the_range_goes_on_behind_a_record_that_is_diverted(run: Run, tmp_path: Path) -> None:
    """All other records are delivered in order, and the whole range counts."""
    shelf, target = Shelf(), Target()
    batches = [block(SPAN, 100, with_bad(50, 0, 7, 8, 49)), block(SPAN, 150, with_bad(50, 0, 49))]
    outcome = run(target, (SPAN, batches), steps=on(shelf))["orders", 0]
    assert (outcome.accepted_until, outcome.failure) == (200, None)
    assert shelf.kept == [100, 107, 108, 149, 150, 199]
    assert target.offsets == [offset for offset in range(100, 200) if offset not in shelf.kept]
    assert len(target.files) == 1, "a rejected record ends no file"
    assert left(tmp_path) == []
    assert shelf.closed == 1


def test_a_range_of_nothing_but_rejected_records_needs_no_file(run: Run) -> None:
    """They are set aside, and the range counts."""
    shelf, target = Shelf(), Target()
    outcome = run(target, (SPAN, [block(SPAN, 100, [BAD] * 100)]), steps=on(shelf))["orders", 0]
    assert (outcome.accepted_until, outcome.failure, target.files) == (200, None, [])
    assert shelf.kept == list(range(100, 200))


def test_nothing_diverted_is_nothing_to_acknowledge(run: Run) -> None:
    """A clean range asks nothing of the policy."""
    shelf = Shelf(away=True)
    outcome = run(Target(), (SPAN, [block(SPAN, 100, good(100))]), steps=on(shelf))["orders", 0]
    assert (outcome.accepted_until, outcome.failure, shelf.events) == (200, None, [])


def test_what_is_diverted_is_acknowledged_after_the_files_and_before_the_outcome(run: Run) -> None:
    """Once for each range that had any: the order of effects."""
    shelf, other = Shelf(), PlannedRange("orders", 1, 0, 10, "records")

    class Listening(Target):
        def push(self, *args: object) -> object:  # type: ignore[override]
            shelf.events.append("file")
            return super().push(*args)  # type: ignore[arg-type]

    feeds = (SPAN, [block(SPAN, 100, with_bad(40, 1))]), (other, [block(other, 0, with_bad(10, 5))])
    found = run(Listening(), *feeds, records=10, steps=on(shelf))
    assert shelf.events == ["file"] * 5 + ["flush"] * 2
    assert [found[key].accepted_until for key in (("orders", 0), ("orders", 1))] == [200, 10]
    assert shelf.kept == [101, 5]


def test_an_offset_counts_only_when_it_is_acknowledged(run: Run) -> None:
    """What cannot be kept for good stops the connector, and nothing from the first such record on is accepted."""
    shelf, target = Shelf(away=True), Target()
    batches = [block(SPAN, 100, with_bad(100, 30, 60))]
    outcome = run(target, (SPAN, batches), records=10, steps=on(shelf))["orders", 0]
    assert outcome.accepted_until == 130
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.message) == ("KafkaFailed", "the shelf is away")
    assert outcome.again is None


def test_what_an_earlier_attempt_had_acknowledged_is_not_diverted_again(run: Run) -> None:
    """A range that comes again brings its rejected records again; those that counted are passed over."""
    shelf, again = Shelf(), replace(SPAN, accepted=150)
    batches = [block(SPAN, 100, with_bad(100, 30, 60))]
    outcome = run(Target(), (again, batches), records=49, steps=on(shelf))["orders", 0]
    assert (outcome.accepted_until, shelf.kept) == (200, [160])
    away = Shelf(away=True)
    assert run(Target(), (again, batches), records=10, steps=on(away))["orders", 0].accepted_until == 150
    assert run(Target(), (again, batches), records=49, steps=on(away))["orders", 0].accepted_until == 150


def test_a_file_around_a_record_that_is_not_kept_comes_again_as_a_whole(run: Run) -> None:
    """What is accepted ends where a file does, so that the range comes again as the same files."""
    batches, span = [block(SPAN, 100, with_bad(100, 45))], SPAN
    first, second = Target(), Target()
    outcome = run(first, (span, batches), records=30, steps=on(Shelf(away=True)))["orders", 0]
    assert outcome.accepted_until == 130
    outcome = run(second, (replace(span, accepted=130), batches), records=30, steps=on(Shelf()))["orders", 0]
    assert outcome.accepted_until == 200
    assert [file.name for file in second.files] == [file.name for file in first.files[1:]]


def test_a_file_that_is_refused_ends_what_counts(run: Run) -> None:
    """Rejected records below the refused file are acknowledged and count; that file's and later ones do not."""
    shelf, target = Shelf(), Target(ACCEPTED, REFUSED)
    batches = [block(SPAN, 100, with_bad(100, 5, 33, 80))]
    outcome = run(target, (SPAN, batches), records=30, steps=on(shelf))["orders", 0]
    assert outcome.accepted_until == 131, "the first 30 rows, and offset 105"
    assert outcome.failure is not None
    assert outcome.failure.kind == "UploadRefused"
    assert shelf.kept[:1] == [105]


@pytest.mark.parametrize("raises", [True, False])
def test_a_policy_that_stops_in_the_middle_loses_nothing(run: Run, tmp_path: Path, raises: bool) -> None:
    """What is not in a full file is thrown away; the range comes again, from its start, as the same files."""
    whole, broken, rest = Target(), Target(), Target()
    feed = [block(SPAN, 100, with_bad(50, 5)), block(SPAN, 150, with_bad(50, 3, 30))]
    run(whole, (SPAN, feed), records=20, steps=on(Shelf()))
    full = Shelf(stops_at=153, raises=raises)
    first = run(broken, (SPAN, feed), records=20, steps=on(full))["orders", 0]
    assert first.failure is not None
    assert "the shelf is full" in first.failure.message
    assert (first.accepted_until, full.kept, left(tmp_path)) == (141, [105], [])
    again = replace(SPAN, accepted=first.accepted_until)
    second = run(rest, (again, feed), records=20, steps=on(Shelf()))["orders", 0]
    assert (second.accepted_until, second.failure) == (200, None)
    assert names(broken) + names(rest) == names(whole)


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_a_repeated_range_gives_the_same_files(run: Run, fails_at: int) -> None:
    """With records set aside in all files, a range that failed in the middle comes again as the same files."""

    def spoilt(one: RecordBatch) -> RecordBatch:
        offsets = one.offsets.to_pylist()
        values = [BAD if n % 97 == 0 else value for n, value in zip(offsets, one.values.to_pylist(), strict=True)]
        return RecordBatch.of(one.topic, one.partition, offsets, one.timestamps.to_pylist(), values)

    batches = [spoilt(one) for one in cut_blocks(CUT, 500)]
    whole, broken, rest = Target(), Target(*[ACCEPTED] * fails_at, UNKNOWN), Target()
    run(whole, (CUT, batches), records=1_100, steps=on(Shelf()))
    first = run(broken, (CUT, batches), records=1_100, steps=on(Shelf()))["orders", 0]
    shelf, again = Shelf(), replace(CUT, accepted=first.accepted_until)
    second = run(rest, (again, batches), records=1_100, steps=on(shelf))["orders", 0]
    assert second.accepted_until == CUT.end
    assert names(broken) + names(rest) == names(whole)
    assert shelf.kept == [offset for offset in range(first.accepted_until, CUT.end) if offset % 97 == 0]


def test_stop_is_what_a_sink_does_by_itself(run: Run) -> None:
    """Without a policy the range ends before the first rejected record, and the message names it."""
    for steps in (None, RecordSteps(), RecordSteps(policy=StopAtRejected())):
        target = Target()
        outcome = run(target, (SPAN, [block(SPAN, 100, with_bad(100, 30, 60))]), steps=steps)["orders", 0]
        assert (outcome.accepted_until, target.offsets) == (130, list(range(100, 130)))
        assert outcome.failure is not None
        assert_says(outcome.failure.message, "topic orders, topic-partition 0, offset 130:", "not JSON")


def test_a_policy_gets_what_it_needs_of_a_record(run: Run) -> None:
    """Key and headers are read because the policy asks for them, and come with the rejected record."""
    headers: list[Sequence[Header] | None] = [[("a", b"1"), ("a", None)], []]
    batch = RecordBatch.of("orders", 0, [100, 103], [5, 6], [BAD, BAD], [b"k", None], headers)
    both = RecordParts(keys=True, headers=True)
    shelf = Shelf(needs=both)
    run(Target(), (SPAN, [batch]), steps=on(shelf))
    assert run.asked == both
    assert [(one.offset, one.timestamp_ms, one.key, one.value, one.headers) for one in shelf.decided] == [
        (100, 5, b"k", BAD, (("a", b"1"), ("a", None))),
        (103, 6, None, BAD, ()),
    ]
    run(Target(), (SPAN, [block(SPAN, 100, [BAD])]), steps=on(Shelf()))
    assert run.asked == VALUES_ONLY


records = st.lists(st.sampled_from([b'{"a":1}', b'{"a":2.5}', b'{"a":"x"}', b'{"b":[1]}', None, BAD]), max_size=40)
verdicts = st.lists(st.sampled_from([ACCEPTED, ACCEPTED, REFUSED, UNKNOWN]), max_size=4)


@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(60),
    deadline=None,
)
@given(records, verdicts, st.integers(1, 20), st.integers(1, 15), st.integers(0, 60), st.booleans())
def test_accepted_is_never_more_than_was_accepted_or_acknowledged(
    run: Callable[..., dict[tuple[str, int], object]],
    values: list[bytes | None],
    outcomes: list[object],
    records: int,
    cut: int,
    stops_at: int,
    away: bool,
) -> None:
    """Whatever fails: every row below `accepted_until` is at the target, in order, every rejected record is kept."""
    target, span = Target(*outcomes), PlannedRange("orders", 0, 0, len(values), "records")  # type: ignore[arg-type]
    shelf = Shelf(stops_at, away)
    blocks = [block(span, first, values[first : first + cut]) for first in range(0, len(values), cut)]
    outcome = run(target, (span, blocks), records=records, steps=on(shelf))["orders", 0]
    until = outcome.accepted_until  # type: ignore[attr-defined]
    wanted = [n for n, value in enumerate(values[:until]) if value not in (None, BAD)]
    assert target.offsets[: len(wanted)] == wanted
    assert target.offsets == sorted(set(target.offsets))
    assert {n for n, value in enumerate(values[:until]) if value == BAD} <= set(shelf.kept)
    assert (outcome.failure is None) == (until == len(values))  # type: ignore[attr-defined]
