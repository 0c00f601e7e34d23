"""Ranges on their way to a record sink: what counts as delivered, whatever goes wrong in between."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from parquet_sink.errors import BrokerAway, ConnectorError, RetryLater, StorageFailed, TopicGone
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import NO_TRIES, Again, PlannedRange, Tries, Trying
from parquet_sink.model.records import RecordBatch, RecordParts
from parquet_sink.process.lease import LeaseFile, clock_ns
from parquet_sink.process.logs import VARIABLE
from parquet_sink.settings.connector import ErrorSettings, RestartSettings, with_cluster
from parquet_sink.settings.record_sink import DeliverySettings, RecordSinkSettings
from parquet_sink.task import record_steps
from parquet_sink.task.outcome import RangeOutcome, events_of
from parquet_sink.task.record_steps import DivertPolicy
from parquet_sink.task.record_task import PutRetry, RecordTask
from tests.messages import assert_says
from tests.task.fakes import SPAN, block, good, part
from tests.task.record_doubles import Kept, Setup

LATER = RetryLater("The list is away.")


def _settings(folder: Path, kept: Kept, needs: RecordParts | None = None) -> RecordSinkSettings:
    setup = Setup(kept) if needs is None else Setup(kept, needs)
    kafka, flush = KafkaSettings(("orders",), None, "connect-list", {}), DeliverySettings(10**9, 1_000, 1_000)
    return RecordSinkSettings("list", kafka, flush, setup, str(folder))


def _run(
    settings: RecordSinkSettings, items: Sequence[RecordBatch | BaseException], span: PlannedRange = SPAN
) -> RangeOutcome:
    def read(kafka: object, planned: PlannedRange, parts: RecordParts) -> Iterator[RecordBatch]:
        for item in items:
            if isinstance(item, BaseException):
                raise item
            yield item

    (outcome,) = RecordTask(settings, read).run([span])
    return outcome


def _ids(kept: Kept) -> list[int]:
    return [one.value["id"] for one in kept.durable]  # type: ignore[index]


def raising(error: Exception) -> "object":
    """Called with anything, it raises."""

    def fail(records: int) -> None:
        raise error

    return fail


def told(outcome: RangeOutcome) -> tuple[int, int, int, str]:
    """What the outcome says of delivered records."""
    assert outcome.delivered is not None
    return (outcome.delivered.records, outcome.delivered.first, outcome.delivered.last, outcome.delivered.place)


def test_a_range_is_accepted_once_the_sink_has_it_durably(tmp_path: Path) -> None:
    """All batches in order, one flush; what was delivered is told."""
    kept = Kept()
    outcome = _run(_settings(tmp_path, kept), [block(SPAN, 100, good(3)), block(SPAN, 110, good(2))])
    assert (outcome.accepted_until, outcome.failure, outcome.again, outcome.read) == (200, None, None, 5)
    assert (_ids(kept), kept.opened, kept.closed) == ([0, 1, 2, 0, 1], 1, 1)
    assert told(outcome) == (5, 100, 111, "a list")
    assert [type(event).__name__ for event in events_of("list", outcome)] == ["RecordsDelivered", "RangeFlushed"]


def test_an_empty_range_opens_nothing(tmp_path: Path) -> None:
    """Markers and compacted records are none."""
    kept = Kept()
    outcome = _run(_settings(tmp_path, kept), [])
    assert (outcome.accepted_until, outcome.delivered, kept.opened) == (200, None, 0)


def test_keys_headers_and_tombstones_are_there_where_they_are_asked_for(tmp_path: Path) -> None:
    """Keys are decoded by the key converter, headers by theirs; a null value is None."""
    kept = Kept()
    batch = part(block(SPAN, 100, [*good(1), None]), 100, 200)
    _run(_settings(tmp_path, kept, RecordParts(keys=True, headers=True)), [batch])
    first, second = kept.durable
    assert (first.topic, first.partition, first.offset, first.timestamp_ms) == ("orders", 0, 100, 1_000)
    assert (first.key, first.value, first.headers) == (b"k100", {"id": 0}, (("h", 100),))
    assert second.value is None


@pytest.mark.parametrize("step", ["on_put", "on_flush"])
def test_what_the_sink_cannot_take_now_comes_again_as_often_as_the_settings_say(tmp_path: Path, step: str) -> None:
    """Nothing is accepted meanwhile; then the connector fails, and names the key."""
    kept = Kept(**{step: raising(LATER)})
    settings = replace(_settings(tmp_path, kept), restart=RestartSettings(most=2, pause_ms=1_000, longest_ms=1_500))
    span, waits = SPAN, []
    while (outcome := _run(settings, [block(SPAN, 100, good(3))], span)).again is not None:
        assert (outcome.accepted_until, outcome.delivered) == (100, None)
        waits.append(outcome.again.wait_s)
        span = replace(SPAN, tries=outcome.again.tries)
    assert waits == [1.0, 1.5]
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.accepted_until) == ("RecordSinkFailed", 100)
    assert_says(outcome.failure.message, "The list is away", "connect.ems.restart.max=2", "no further try")
    assert (kept.durable, kept.closed) == ([], 3)


def test_what_it_never_will_take_fails_the_connector(tmp_path: Path) -> None:
    """At once, with the sink's own words."""
    kept = Kept(on_put=raising(StorageFailed("no right")))
    outcome = _run(_settings(tmp_path, kept), [block(SPAN, 100, good(3))])
    assert outcome.failure is not None
    assert (outcome.failure.message, outcome.accepted_until, outcome.again) == ("no right", 100, None)


def test_a_defect_of_a_sink_is_raised_and_lets_go(tmp_path: Path) -> None:
    """Spark's task fails with it; the sink is closed."""
    kept = Kept(on_flush=raising(ZeroDivisionError("a bug")))
    with pytest.raises(ZeroDivisionError):
        _run(_settings(tmp_path, kept), [block(SPAN, 100, good(3))])
    assert kept.closed == 1


@pytest.mark.parametrize(
    ("error", "again"), [(BrokerAway("no answer"), None), (TopicGone("gone"), Again(SPAN.tries, 1.0))]
)
def test_what_was_put_before_trouble_with_reading_counts(
    tmp_path: Path, error: ConnectorError, again: Again | None
) -> None:
    """It is flushed, and the next attempt goes on behind it."""
    kept = Kept()
    outcome = _run(_settings(tmp_path, kept), [block(SPAN, 100, good(3)), error])
    assert (outcome.accepted_until, _ids(kept), outcome.again) == (103, [0, 1, 2], again)
    assert (outcome.failure is None) == (again is not None)
    later = _run(_settings(tmp_path, kept), [block(SPAN, 100, good(5))], replace(SPAN, accepted=103))
    assert (later.accepted_until, _ids(kept)) == (200, [0, 1, 2, 3, 4])
    assert told(later) == (2, 103, 104, "a list")


def test_without_tolerance_the_range_ends_before_a_record_that_fails(tmp_path: Path) -> None:
    """All before it is delivered, nothing behind it."""
    kept = Kept()
    outcome = _run(_settings(tmp_path, kept), [block(SPAN, 100, [*good(2), b"{bad", *good(1)])])
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.accepted_until, _ids(kept)) == ("InvalidRecord", 102, [0, 1])


class Letters:
    """A store of records set aside; flush raises `error`, if there is one."""

    def __init__(self, error: ConnectorError | None = None) -> None:
        self.offsets: list[int] = []
        self.error = error

    def put(self, rejected: object) -> None:
        self.offsets.append(rejected.offset)  # type: ignore[attr-defined]

    def flush(self, planned: PlannedRange) -> None:
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("error", "until"), [(None, 200), (BrokerAway("no answer"), 102)])
def test_with_tolerance_it_is_diverted_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: ConnectorError | None, until: int
) -> None:
    """Nothing from it on is accepted, unless it is kept for good."""
    kept, letters = Kept(), Letters(error)
    policy = DivertPolicy(ErrorSettings(invalid_records=True), letters)
    monkeypatch.setattr(record_steps, "policy_for", lambda settings: policy)
    outcome = _run(_settings(tmp_path, kept), [block(SPAN, 100, [*good(2), b"{bad", *good(1)])])
    assert (outcome.accepted_until, _ids(kept), letters.offsets) == (until, [0, 1, 0], [102])
    assert (outcome.diverted is None) == (error is not None)


def test_a_newer_attempt_ends_an_older_one(tmp_path: Path) -> None:
    """What the older one put and did not flush does not count; the range comes again."""
    kept = Kept()
    settings = _settings(tmp_path, kept)

    def overtaken(records: int) -> None:
        claims = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size == 32]
        assert len(claims) == 1
        claims[0].write_text("0" * 32)

    kept.on_put = overtaken
    outcome = _run(settings, [block(SPAN, 100, good(3))])
    assert (outcome.accepted_until, outcome.failure, kept.durable) == (100, None, [])
    assert outcome.again is not None


def test_tries_at_something_else_do_not_count_against_the_sink() -> None:
    """A transform's tries are bounded by keys of their own."""
    again = PutRetry(RestartSettings(most=1)).again(Tries(7, 3.0, Trying.TRANSFORM))
    assert again == Again(Tries(1, 0.0, Trying.PUT), 2.0)
    assert PutRetry(RestartSettings(most=-1)).again(Tries(10**6, 3.0, Trying.PUT)) is not None


def test_nothing_is_put_once_the_lease_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was put before does not count, and the range comes again; on machines of executors nobody looks."""
    lease = LeaseFile(str(tmp_path / "lease"))
    lease.write(clock_ns() + 60_000_000_000)
    kept = Kept()
    owned = with_cluster(_settings(tmp_path, kept), lease=lease.path)

    def items() -> Iterator[RecordBatch]:
        yield block(SPAN, 100, good(3))
        lease.write(0)
        yield block(SPAN, 110, good(2))

    def run() -> RangeOutcome:
        (outcome,) = RecordTask(owned, lambda *of_kafka: items()).run([SPAN])
        return outcome

    monkeypatch.setenv(VARIABLE, "1")
    outcome = run()
    assert (outcome.accepted_until, outcome.failure, outcome.again) == (100, None, Again(NO_TRIES, 1.0))
    assert (_ids(kept), kept.closed) == ([], 1)
    monkeypatch.delenv(VARIABLE)
    assert run().accepted_until == 200
