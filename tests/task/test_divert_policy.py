"""What the settings pass over goes to the store and the range goes on; all else goes there, too, and stops."""

import logging
from dataclasses import replace

import pytest

from parquet_sink.errors import InvalidRecord, KafkaFailed
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordParts
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.task.record_steps import DivertPolicy, RecordSteps, StopAtRejected
from tests.messages import assert_says
from tests.task.fakes import SPAN, Run, Target, block, good

REJECTED = Rejected("orders", 0, 7, Stage.SHAPE, "it has no primary key", b"k", b"v", (), 5)
TOLERANT = ErrorSettings(invalid_records=True)


class Store:
    """A store in memory. full: takes nothing. away: keeps nothing for good."""

    def __init__(self, *, full: bool = False, away: bool = False) -> None:
        self.full, self.away = full, away
        self.put_: list[Rejected] = []
        self.kept: list[int] = []
        self.closed = 0

    def put(self, rejected: Rejected) -> None:
        if self.full:
            raise KafkaFailed("the store is full")
        self.put_.append(rejected)

    def flush(self, planned: PlannedRange) -> None:
        if self.away:
            raise KafkaFailed("the store is away")
        self.kept = [one.offset for one in self.put_]

    def close(self) -> None:
        self.closed += 1


def test_what_is_passed_over_goes_to_the_store() -> None:
    """The store has the record before the range goes on, and its failure is the policy's."""
    store = Store()
    policy = DivertPolicy(TOLERANT, store)
    assert policy.diverts
    assert policy.needs == RecordParts(single=True)
    assert policy.decide(REJECTED) is None
    assert store.put_ == [REJECTED]
    with pytest.raises(KafkaFailed, match="full"):
        DivertPolicy(TOLERANT, Store(full=True)).decide(REJECTED)


@pytest.mark.parametrize("diverted", [False, True])
def test_a_record_that_stops_has_the_command_that_passes_it(diverted: bool) -> None:
    """Whole, with brokers and group, wherever the record went besides."""
    kafka = KafkaSettings(group="connect-orders", client={"bootstrap.servers": "k:9092"})
    policy = DivertPolicy(ErrorSettings(), Store(), kafka) if diverted else StopAtRejected(kafka)
    stopped = policy.decide(REJECTED)
    assert_says(stopped, "orders", "offset 7", "--tool consumer-groups --bootstrap-server k:9092")
    assert_says(stopped, "--group connect-orders --topic orders:0 --reset-offsets --to-offset 8 --execute`")


@pytest.mark.parametrize("full", [False, True])
def test_what_is_not_passed_over_goes_to_the_store_and_stops(full: bool, caplog: pytest.LogCaptureFixture) -> None:
    """As in Kafka Connect; where the store does not take it, the log says so, and the record is what is named."""
    store = Store(full=full)
    policy = DivertPolicy(ErrorSettings(), store)
    assert not policy.diverts
    with caplog.at_level(logging.WARNING):
        decision = policy.decide(REJECTED)
    assert isinstance(decision, InvalidRecord)
    assert_says(decision, "offset 7", "no primary key")
    assert [one.offset for one in store.put_] == ([] if full else [7])
    if full:
        assert_says(caplog.text, "offset 7", "cannot be diverted", "the store is full")
    else:
        assert not caplog.text


@pytest.mark.parametrize("tolerant", [False, True])
def test_the_store_is_flushed_before_the_range_counts_and_closed_with_the_task(run: Run, tolerant: bool) -> None:
    """Also where the connector then fails: what went to the store is kept."""
    store = Store()
    steps = RecordSteps(policy=DivertPolicy(ErrorSettings(invalid_records=tolerant), store))
    values = [b"no JSON" if at in (30, 60) else value for at, value in enumerate(good(100))]
    outcome = run(Target(), (SPAN, [block(SPAN, 100, values)]), steps=steps)["orders", 0]
    assert (outcome.accepted_until, store.kept) == ((200, [130, 160]) if tolerant else (130, [130]))
    assert store.closed == 1


def test_what_the_store_cannot_keep_is_not_accepted(run: Run) -> None:
    """Neither where records are passed over nor where the first one stops the connector."""
    values = [b"no JSON" if at in (30, 60) else value for at, value in enumerate(good(100))]
    for settings, kind in ((TOLERANT, "KafkaFailed"), (ErrorSettings(), "InvalidRecord")):
        steps = RecordSteps(policy=DivertPolicy(settings, Store(away=True)))
        target = Target()
        outcome = run(target, (SPAN, [block(SPAN, 100, values)]), records=10, steps=steps)["orders", 0]
        assert outcome.accepted_until == 130
        assert outcome.failure is not None
        assert outcome.failure.kind == kind


def test_the_outcome_counts_what_was_diverted_and_accepted(run: Run) -> None:
    """Of a range that did not end well only what counts; of what an earlier attempt had diverted nothing again."""
    values = [b"no JSON" if at in (30, 60) else value for at, value in enumerate(good(100))]
    steps = RecordSteps(policy=DivertPolicy(TOLERANT, Store()))
    whole = run(Target(), (SPAN, [block(SPAN, 100, values)]), steps=steps)["orders", 0].diverted
    assert whole is not None
    assert (whole.count, whole.first, whole.last, whole.stages) == (2, 130, 160, {"VALUE_CONVERTER": 2})
    assert whole.place.startswith("parked in ")
    assert not whole.dead_letters
    again = replace(SPAN, accepted=150)
    steps = RecordSteps(policy=DivertPolicy(TOLERANT, Store()))
    rest = run(Target(), (again, [block(SPAN, 100, values)]), records=49, steps=steps)["orders", 0].diverted
    assert rest is not None
    assert (rest.count, rest.first) == (1, 160)
    steps = RecordSteps(policy=DivertPolicy(TOLERANT, Store(away=True)))
    assert run(Target(), (SPAN, [block(SPAN, 100, values)]), steps=steps)["orders", 0].diverted is None


def test_what_cannot_be_obfuscated_stops_and_is_written_nowhere() -> None:
    """Its content would be in clear wherever it goes, so nothing says that it could be passed over."""
    store = Store()
    decision = DivertPolicy(TOLERANT, store).decide(replace(REJECTED, stage=Stage.OBFUSCATION))
    assert isinstance(decision, InvalidRecord)
    assert "errors.tolerance" not in str(decision)
    assert store.put_ == []
