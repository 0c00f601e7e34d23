"""A transform that cannot work now is tried again, as Kafka Connect does it, and its range with it."""

import logging
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.convert.decoded import Decoded
from parquet_sink.errors import ConnectorError, ConverterFailed, RetryLater, TransformFailed
from parquet_sink.model.ranges import Again, Tries, Trying
from parquet_sink.model.receipts import Failure
from parquet_sink.task.range_attempt import TransformRetry
from parquet_sink.task.record_steps import RecordSteps
from parquet_sink.transform.building import NamedTransform
from parquet_sink.transform.chain import Step, TransformChain
from tests.messages import assert_says
from tests.task.fakes import SLOW, SPAN, UNKNOWN, Run, Target, block, good, left, made
from tests.transform.doubles import Fails


def steps(error: Exception, at: int = 150) -> RecordSteps:
    """A connector with that transform."""
    return RecordSteps(transforms=TransformChain([Step(NamedTransform("transforms.f", "Fails", Fails(at, error)))]))


def pauses(retry: TransformRetry, most: int = 12) -> list[float]:
    """The pauses of tries that fail at once, each after its pause, in seconds."""
    found: list[float] = []
    tries = Tries()
    while len(found) < most and (again := retry.again(tries, lambda: 0.5)) is not None:
        found.append(again.wait_s)
        tries = replace(again.tries, elapsed_s=again.tries.elapsed_s + again.wait_s)
    return found


def test_pauses_double_up_to_the_longest() -> None:
    """What would be longer is of random length below it."""
    assert pauses(TransformRetry(-1, 5_000), 8) == [0.3, 0.6, 1.2, 2.4, 4.8, 2.5, 2.5, 2.5]


def test_without_a_timeout_nothing_is_tried_again() -> None:
    """As in Kafka Connect, whose default it is."""
    assert pauses(TransformRetry(0, 60_000)) == []


def test_the_last_try_is_at_the_timeout() -> None:
    """The last pause is cut to it, and what fails then has failed."""
    assert pauses(TransformRetry(2_000, 60_000)) == pytest.approx([0.3, 0.6, 1.1])


@given(st.integers(0, 100), st.floats(0, 0.999), st.sampled_from([-1, 10**9]), st.integers(1_000, 60_000))
def test_no_pause_is_longer_than_the_longest(attempts: int, chance: float, timeout: int, longest: int) -> None:
    """However often it failed before."""
    again = TransformRetry(timeout, longest).again(Tries(attempts, 0.0, Trying.TRANSFORM), lambda: chance)
    assert again is not None
    assert again.wait_s <= longest / 1000


def test_tries_at_uploading_do_not_count() -> None:
    """They are of another kind, and so is their time."""
    again = TransformRetry(1_000, 60_000).again(Tries(9, 500.0))
    assert again == Again(Tries(1, 0.0, Trying.TRANSFORM), 0.3)


@pytest.mark.parametrize(("timeout", "again"), [(0, False), (60_000, True), (-1, True)])
def test_a_range_ends_and_comes_again(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture, timeout: int, again: bool
) -> None:
    """Whole files before the record stay, the open one is made again; without a timeout the connector stops."""
    other = replace(SPAN, partition=1)
    feeds = (SPAN, [block(SPAN, 100, good(50)), block(SPAN, 150, good(50))]), (other, [block(other, 100, good(30))])
    settings = replace(made(tmp_path, 8), registry_patience_ms=timeout)
    with caplog.at_level(logging.WARNING):
        found = run(Target(), *feeds, settings=settings, steps=steps(RetryLater("the map is being loaded")))
    first, second = found.values()
    assert (first.accepted_until, second.accepted_until) == (148, 200)
    assert left(tmp_path) == []
    place = "topic orders, topic-partition 0, offsets 150 to 199:"
    named = (place, "transforms.f (Fails)", "cannot work now", "the map is being loaded")
    if again:
        assert (first.again, first.failure) == (Again(Tries(1, 0.0, Trying.TRANSFORM), 0.3), None)
        (line,) = [message for message in caplog.messages if "transforms.f" in message]
        assert_says(line, *named)
    else:
        assert isinstance(first.failure, Failure)
        assert (first.again, first.failure.kind) == (None, "RetryLater")
        assert_says(first.failure.message, *named, "errors.retry.timeout")


def test_what_a_transform_raises_otherwise_stops_the_connector(run: Run) -> None:
    """With its name, its class, and the offsets; what it says may quote a record, and is told at DEBUG alone."""
    outcome = run(Target(), (SPAN, [block(SPAN, 100, good(100))]), steps=steps(ValueError("not a number: 'canary'")))
    failure = outcome["orders", 0].failure
    assert (failure.kind, outcome["orders", 0].accepted_until) == ("TransformFailed", 100)
    assert_says(failure.message, "topic orders, topic-partition 0, offsets 100 to 199:")
    assert_says(failure.message, "transforms.f (Fails)", "failed with ValueError")
    assert "canary" not in failure.message


def test_a_converter_that_fails_is_told_with_the_offsets(run: Run) -> None:
    """It knows nothing of topics by itself."""

    class Breaks:
        def decode(self, values: pa.BinaryArray) -> Decoded:
            raise ConverterFailed("value.converter (my.Own) failed with KeyError.")

    feed = (SPAN, [block(SPAN, 100, good(100))])
    outcome = run(Target(), feed, steps=RecordSteps(decoder=Breaks()))["orders", 0]
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.accepted_until) == ("ConverterFailed", 100)
    assert_says(outcome.failure.message, "topic orders, topic-partition 0, offsets 100 to 199:")
    assert_says(outcome.failure.message, "value.converter (my.Own)", "failed with KeyError")


def test_an_error_of_the_connector_keeps_its_kind(run: Run) -> None:
    """What a transform raises on purpose for the connector is passed on as it is."""
    error: ConnectorError = TransformFailed("no such engine")
    outcome = run(Target(), (SPAN, [block(SPAN, 100, good(100))]), steps=steps(error))
    assert outcome["orders", 0].failure == error.failure()


def test_uploads_are_counted_anew_after_a_transform_was_tried_again(run: Run) -> None:
    """Attempts of another kind take nothing from the retries of a file."""
    span = replace(SPAN, tries=Tries(7, 1e6, Trying.TRANSFORM))
    outcome = run(Target(UNKNOWN), (span, [block(span, 100, good(100))]), retry=SLOW)["orders", 0]
    assert outcome.failure is None
    assert outcome.again is not None
    assert (outcome.again.tries.attempts, outcome.again.tries.trying) == (1, Trying.UPLOAD)
