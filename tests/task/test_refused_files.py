"""A file that the target refuses for what is in it: its records are set aside, and the next file goes on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.convert.json.decoder import decoder
from parquet_sink.errors import KafkaFailed, UploadRefused
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.rotation import Reason
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.targets.uploader import Deliverer
from parquet_sink.task.range_flush import FileRecords
from parquet_sink.task.record_steps import DivertPolicy, RecordSteps
from tests.messages import assert_says
from tests.task.fakes import (
    ACCEPTED,
    BAD_FILE,
    REFUSED,
    SLOW,
    SPAN,
    UNKNOWN,
    Run,
    Target,
    block,
    good,
    left,
)
from tests.thorough import FIXTURES_SHARED, examples

PASSING = ErrorSettings(invalid_records=True, refused_files=True)
BAD = b"not JSON"


class Store:
    """Keeps what it is given when it is flushed. away: then it fails. fails_at: takes no record from there on."""

    def __init__(self, *, away: bool = False, fails_at: int = 10**9) -> None:
        self.away, self.fails_at = away, fails_at
        self.waiting: list[Rejected] = []
        self.kept: list[Rejected] = []

    def put(self, rejected: Rejected) -> None:
        if rejected.offset >= self.fails_at:
            raise KafkaFailed("the store is full")
        self.waiting.append(rejected)

    def flush(self, planned: PlannedRange) -> None:
        if self.away:
            raise KafkaFailed("the store is away")
        self.kept += self.waiting
        self.waiting.clear()

    def close(self) -> None:
        pass

    @property
    def offsets(self) -> list[int]:
        return [one.offset for one in self.kept]


def steps(store: Store, errors: ErrorSettings = PASSING) -> RecordSteps:
    """A connector with that store, for JSON without a schema."""
    return RecordSteps(decoder(), policy=DivertPolicy(errors, store))


def test_the_next_file_goes_on(run: Run, tmp_path: Path) -> None:
    """The refused file's records are set aside with bytes, keys, headers and reason; all others arrive; all counts."""
    store, target = Store(), Target(ACCEPTED, BAD_FILE)
    feed = (SPAN, [block(SPAN, 100, good(100))])
    outcome = run(target, feed, records=30, steps=steps(store), errors=PASSING)["orders", 0]
    assert (outcome.accepted_until, outcome.failure, outcome.again) == (200, None, None)
    assert target.offsets == [*range(100, 130), *range(160, 200)]
    assert store.offsets == list(range(130, 160))
    first = store.kept[0]
    assert (first.topic, first.partition, first.stage, first.timestamp_ms) == ("orders", 0, Stage.TASK_PUT, 1_000)
    assert (first.key, first.value, first.headers) == (b"k130", b'{"id":30}', (("h", b"130"),))
    file = "topic-orders_partition-0_firstOffset-130_lastOffset-159"
    assert_says(first.reason, "refused", f"file {file}", "the target answered 422")
    assert run.asked == RecordParts(keys=True, headers=True)
    refused = [receipt for receipt in outcome.receipts if not receipt.accepted]
    assert [(one.first_offset, one.next_offset, one.failure, one.status) for one in refused] == [(130, 160, None, 422)]
    assert left(tmp_path) == []


def test_only_records_with_rows_in_the_file_are_diverted(run: Run) -> None:
    """Tombstones are none, and what was rejected before is set aside once, for its own reason."""
    values = good(60)
    values[5], values[7], values[40] = None, BAD, BAD
    store, target = Store(), Target(BAD_FILE)
    outcome = run(target, (SPAN, [block(SPAN, 100, values)]), records=30, steps=steps(store), errors=PASSING)[
        "orders", 0
    ]
    assert (outcome.accepted_until, outcome.failure) == (200, None)
    stages = {one.offset: one.stage for one in store.kept}
    assert stages[107] == stages[140] == Stage.VALUE_CONVERTER
    assert sorted(offset for offset, stage in stages.items() if stage is Stage.TASK_PUT) == [
        n for n in range(100, 132) if n not in (105, 107)
    ]
    assert len(store.kept) == len(stages)


@pytest.mark.parametrize("errors", [ErrorSettings(), ErrorSettings(invalid_records=True)])
def test_without_leave_a_refused_file_stops(run: Run, errors: ErrorSettings) -> None:
    """Passing over records is no leave to pass over files."""
    store, target = Store(), Target(ACCEPTED, BAD_FILE)
    feed = (SPAN, [block(SPAN, 100, good(100))])
    outcome = run(target, feed, records=30, steps=steps(store, errors), errors=errors)["orders", 0]
    assert (outcome.accepted_until, store.kept, target.offsets) == (130, [], list(range(100, 130)))
    assert outcome.failure is not None
    assert outcome.failure.kind == "UploadRefused"


@pytest.mark.parametrize("refusal", [REFUSED, UNKNOWN])
def test_what_is_not_of_the_file_is_never_passed_over(run: Run, refusal: object) -> None:
    """A wrong key or right, and a target that does not answer, say nothing of the file: the connector stops."""
    store, target = Store(), Target(ACCEPTED, refusal)  # type: ignore[arg-type]
    feed = (SPAN, [block(SPAN, 100, good(100))])
    outcome = run(target, feed, records=30, steps=steps(store), errors=PASSING)["orders", 0]
    assert (outcome.accepted_until, store.kept, target.offsets) == (130, [], list(range(100, 130)))
    assert outcome.failure is not None


def finished(first: int, last: int) -> FinishedFile:
    """A file with rows from one offset to another."""
    return FinishedFile("/x", "x", "orders", 0, first, last, 1, 1, 1, Reason.RECORDS, 0.0, 0.0, None)


def test_which_records_are_in_a_file() -> None:
    """Those of its rows: each once, however many rows it has, and none between them that has no row."""
    found = FileRecords()
    for offsets in ([1, 1, 2, 5], [5, 9, 9], [12]):
        found.add(pa.array(offsets, pa.int64()))
    wanted = {(1, 5): [1, 2, 5], (9, 9): [9], (12, 12): [12]}
    deliverer = Deliverer("sink", Target(), RetrySettings())  # type: ignore[arg-type]
    for first, last in wanted:
        found.finished(finished(first, last))
    for (first, last), offsets in wanted.items():
        receipt = deliverer.failed(finished(first, last), UploadRefused("no"))
        assert found.of(receipt).tolist() == offsets


def gone(items: Any) -> Any:
    """Kafka has lost all but the first batch's first 35 records, and one in them."""
    (first, *_) = items
    values = first.values.to_pylist()[:35]
    offsets = [n for n in range(100, 135) if n != 131]
    return [RecordBatch.of("orders", 0, offsets, [1_000] * 34, [values[n - 100] for n in offsets])]


def test_what_kafka_no_longer_has_stops_the_connector(run: Run) -> None:
    """It can be kept nowhere: nothing from the file on counts, whatever came behind it."""
    run.again = gone
    store, target = Store(), Target(ACCEPTED, BAD_FILE)
    feed = (SPAN, [block(SPAN, 100, good(100))])
    outcome = run(target, feed, records=30, steps=steps(store), errors=PASSING)["orders", 0]
    assert outcome.accepted_until == 130
    assert target.offsets == [*range(100, 130), *range(160, 200)]
    assert outcome.failure is not None
    assert outcome.failure.kind == "OffsetsLost"
    assert_says(outcome.failure.message, "26 of its records", "offset 131", "no longer in Kafka")


@pytest.mark.parametrize("store", [Store(away=True), Store(fails_at=140)])
def test_what_is_not_kept_does_not_count(run: Run, store: Store) -> None:
    """Neither the file nor anything behind it; the next attempt sends that again."""
    feed = (SPAN, [block(SPAN, 100, good(100))])
    outcome = run(Target(ACCEPTED, BAD_FILE), feed, records=30, steps=steps(store), errors=PASSING)["orders", 0]
    assert outcome.accepted_until == 130
    assert outcome.failure is not None
    assert "the store is" in outcome.failure.message
    fresh, rest = Store(), Target(BAD_FILE)
    again = replace(SPAN, accepted=130)
    second = run(rest, (again, feed[1]), records=30, steps=steps(fresh), errors=PASSING)["orders", 0]
    assert (second.accepted_until, fresh.offsets) == (200, list(range(130, 160)))
    assert rest.offsets == list(range(160, 200))


def test_a_later_file_that_waits_does_not_forget_the_refused_one(run: Run) -> None:
    """What came before the wait counts, set aside as it is; the rest comes again, and only that."""
    store, target = Store(), Target(BAD_FILE, ACCEPTED, UNKNOWN)
    feed = (SPAN, [block(SPAN, 100, good(100))])
    outcome = run(target, feed, records=30, retry=SLOW, steps=steps(store), errors=PASSING)["orders", 0]
    assert (outcome.accepted_until, outcome.failure, store.offsets) == (160, None, list(range(100, 130)))
    assert outcome.again is not None
    rest = Target()
    again = replace(SPAN, accepted=160)
    assert (
        run(rest, (again, feed[1]), records=30, steps=steps(store), errors=PASSING)["orders", 0].accepted_until == 200
    )
    assert rest.offsets == list(range(160, 200))


values = st.lists(st.sampled_from([b'{"a":1}', b'{"a":2.5}', b'{"a":"x"}', b'{"b":[1]}', None, BAD]), max_size=40)
verdicts = st.lists(st.sampled_from([ACCEPTED, BAD_FILE, BAD_FILE, REFUSED, UNKNOWN]), max_size=6)


@settings(
    suppress_health_check=FIXTURES_SHARED,
    max_examples=examples(80),
    deadline=None,
)
@given(values, verdicts, st.integers(1, 12), st.integers(1, 15), st.integers(0, 60), st.booleans())
def test_below_what_counts_each_record_arrived_or_is_kept(
    run: Run, records: list[bytes | None], outcomes: list[Any], size: int, cut: int, fails_at: int, away: bool
) -> None:
    """Cut and refused at random, with a store that fails at random: arrived or kept, never both, never neither."""
    span, target = PlannedRange("orders", 0, 0, len(records), "records"), Target(*outcomes)
    store = Store(away=away, fails_at=fails_at if fails_at < 40 else 10**9)
    blocks = [block(span, first, records[first : first + cut]) for first in range(0, len(records), cut)]
    outcome = run(target, (span, blocks), records=size, steps=steps(store), errors=PASSING)["orders", 0]
    until = outcome.accepted_until
    arrived, kept = [n for n in target.offsets if n < until], sorted(n for n in store.offsets if n < until)
    assert sorted(arrived + kept) == [n for n, value in enumerate(records[:until]) if value is not None]
    assert target.offsets == sorted(set(target.offsets))
    assert (outcome.failure is None) == (until == len(records))


KNOWN_NAME = replace(BAD_FILE, cause="the target answered 409: known", status=409, of_name=True)
LOST_ANSWER = Outcome(Verdict.UNKNOWN, "no whole answer came in time", "Check the target")
BUSY = Outcome(Verdict.RETRIABLE, "busy", "Wait", 429)
THREE = replace(SLOW, max_retries=3, retry_interval_ms=1)


@pytest.mark.parametrize(
    ("answers", "repeated", "parks"),
    [
        ([KNOWN_NAME], False, True),
        ([BUSY, KNOWN_NAME], False, True),
        ([LOST_ANSWER, KNOWN_NAME], False, False),
        ([LOST_ANSWER, BUSY, KNOWN_NAME], False, False),
        ([KNOWN_NAME], True, False),
        ([LOST_ANSWER, BAD_FILE], False, True),
        ([BAD_FILE], True, True),
    ],
)
def test_a_file_that_may_have_been_delivered_is_not_diverted(
    run: Run, answers: list[Outcome], repeated: bool, parks: bool
) -> None:
    """409 may mean a name that is known, of an attempt whose answer was lost; 400, 413 and 422 speak of the content."""
    store, target = Store(), Target(*answers)
    feed = (replace(SPAN, repeated=repeated), [block(SPAN, 100, good(100))])
    outcome = run(target, feed, records=60, retry=THREE, steps=steps(store), errors=PASSING)["orders", 0]
    if parks:
        assert (outcome.failure, outcome.accepted_until, store.offsets) == (None, 200, list(range(100, 160)))
        return
    assert (outcome.accepted_until, store.offsets, target.files) == (100, [], [])
    assert outcome.failure is not None
    assert outcome.failure.kind == "UploadRefused"
    assert_says(outcome.failure.message, "the target answered 409: known", "offset to 160")
    assert_says(outcome.failure.message, "--tool consumer-groups", "--topic orders:0", "--to-offset 160 --execute")
    assert "error.policy=CONTINUE" not in outcome.failure.message


def test_a_task_that_was_tried_before_may_have_delivered(run: Run) -> None:
    """Nobody told what became of the files of a worker that was killed."""
    store, target = Store(), Target(KNOWN_NAME)
    feed = (SPAN, [block(SPAN, 100, good(100))])
    outcome = run(target, feed, steps=steps(store), errors=PASSING, repeated=True)["orders", 0]
    assert (outcome.accepted_until, store.offsets) == (100, [])
    assert outcome.failure is not None


def test_doubt_about_a_file_is_carried_from_task_to_task(run: Run) -> None:
    """An attempt that ended without an answer counts for its file, also when the next one is another task's."""
    store, feed = Store(), (SPAN, [block(SPAN, 100, good(100))])
    slow = replace(SLOW, max_retries=9)
    first = run(Target(LOST_ANSWER), feed, records=60, retry=slow, steps=steps(store), errors=PASSING)["orders", 0]
    assert first.again is not None
    again = (replace(SPAN, tries=first.again.tries), feed[1])
    second = run(Target(KNOWN_NAME), again, records=60, retry=slow, steps=steps(store), errors=PASSING)["orders", 0]
    assert (second.accepted_until, store.offsets) == (100, [])
    third = run(Target(ACCEPTED, KNOWN_NAME), again, records=60, retry=slow, steps=steps(store), errors=PASSING)
    assert (third["orders", 0].failure, store.offsets) == (None, list(range(160, 200)))
