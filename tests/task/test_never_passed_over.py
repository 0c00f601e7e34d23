"""What no setting passes over: where no record is at fault nothing is set aside, and nothing past it is accepted."""

import errno
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from parquet_sink.convert.decoded import Decoded
from parquet_sink.errors import (
    BrokerAway,
    ConnectorError,
    KafkaFailed,
    KafkaRefused,
    OffsetsLost,
    RegistryAway,
    RegistryFailed,
)
from parquet_sink.files import parquet
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import Rejected
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.record_steps import DivertPolicy, RecordSteps
from tests.task.fakes import SPAN, UNKNOWN, Run, Target, block, good

ALL = ErrorSettings(invalid_records=True, refused_files=True)
"""All that may be passed over is."""


class Store:
    """Keeps the offsets of what is put."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def put(self, rejected: Rejected) -> None:
        self.offsets.append(rejected.offset)

    def flush(self, planned: PlannedRange) -> None:
        """All is kept."""

    def close(self) -> None:
        """There is nothing to let go of."""


class Failing:
    """A decoder that fails at the second block, and has invalid records before."""

    def __init__(self, error: BaseException) -> None:
        self._error, self._blocks = error, 0

    def decode(self, values: pa.BinaryArray) -> Decoded:
        self._blocks += 1
        if self._blocks == 2:
            raise self._error
        return Decoded((), dict.fromkeys(range(len(values)), "it is bad"))


def tolerant(store: Store, **steps: Any) -> RecordSteps:
    """Steps of a connector that sets aside what it may."""
    return RecordSteps(policy=DivertPolicy(ALL, store), **steps)


def ended(outcome: RangeOutcome, kind: str) -> None:
    """The range did not count as a whole, for this reason."""
    assert outcome.failure is not None
    assert outcome.failure.kind == kind
    assert outcome.accepted_until < SPAN.end


def halves() -> list[RecordBatch | BaseException]:
    """The range in two blocks."""
    return [block(SPAN, 100, good(50)), block(SPAN, 150, good(50))]


@pytest.mark.parametrize("error", [KafkaFailed("x"), BrokerAway("x"), KafkaRefused("x"), OffsetsLost("x")])
def test_trouble_of_kafka(run: Run, error: ConnectorError) -> None:
    """In the middle of a range."""
    store = Store()
    feed = [halves()[0], error]
    ended(run(Target(), (SPAN, feed), steps=tolerant(store), errors=ALL)["orders", 0], type(error).__name__)
    assert store.offsets == []


@pytest.mark.parametrize("error", [RegistryAway("x"), RegistryFailed("x")])
def test_trouble_of_the_schema_registry(run: Run, error: ConnectorError) -> None:
    """No record is called invalid for it; what was before is set aside and may count, nothing behind does."""
    store = Store()
    steps = tolerant(store, decoder=Failing(error))
    ended(run(Target(), (SPAN, halves()), steps=steps, errors=ALL)["orders", 0], type(error).__name__)
    assert max(store.offsets) < 150


def test_a_defect_of_ours_is_raised(run: Run) -> None:
    """Whatever was raised by mistake is no property of a record."""
    store = Store()
    with pytest.raises(ZeroDivisionError):
        run(Target(), (SPAN, halves()), steps=tolerant(store, decoder=Failing(ZeroDivisionError())), errors=ALL)
    assert all(offset < 150 for offset in store.offsets)


def test_a_disk_that_is_full(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that cannot be written are no fault of their records."""

    def full(*args: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parquet.pq, "ParquetWriter", full)
    store = Store()
    ended(run(Target(), (SPAN, halves()), steps=tolerant(store), errors=ALL)["orders", 0], "StorageFailed")
    assert store.offsets == []


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome(Verdict.REFUSED, "401", "Correct the key", 401), "UploadRefused"),
        (Outcome(Verdict.REFUSED, "403", "Correct the key", 403), "UploadRefused"),
        (UNKNOWN, "UploadExhausted"),
    ],
)
def test_a_wrong_key_and_a_target_that_is_away(run: Run, outcome: Outcome, kind: str) -> None:
    """What would be so for any other file is no fault of this one's records."""
    store = Store()
    ended(run(Target(outcome), (SPAN, halves()), steps=tolerant(store), errors=ALL)["orders", 0], kind)
    assert store.offsets == []


def test_the_same_records_are_diverted_where_they_are_at_fault(run: Run) -> None:
    """So the tests above would see it."""
    store = Store()
    decoder: Callable[[BaseException], Failing] = Failing
    steps = tolerant(store, decoder=decoder(RegistryAway("x")))
    run(Target(), (SPAN, halves()[:1]), steps=steps, errors=ALL)
    assert store.offsets == list(range(100, 150))
