"""A record sink that remembers, and what it is set up with; the setup crosses to no other process here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from parquet_sink.model.records import VALUES_ONLY, RecordParts
from parquet_sink.targets.outcome import Health, ProbeResult
from parquet_sink.targets.record_sink import SinkRecord, SinkRecords


def _nothing(records: int) -> None:
    """No trouble."""


@dataclass
class Kept:
    """A `RecordSink`. on_put, on_flush: may raise; they are told how many records there are by then."""

    on_put: Callable[[int], None] = _nothing
    on_flush: Callable[[int], None] = _nothing
    waiting: list[SinkRecord] = field(default_factory=list)
    durable: list[SinkRecord] = field(default_factory=list)
    opened: int = 0
    closed: int = 0

    def put(self, records: SinkRecords) -> None:
        self.on_put(len(records))
        self.waiting += records

    def flush(self) -> None:
        self.on_flush(len(self.waiting))
        self.durable += self.waiting
        self.waiting = []

    def close(self) -> None:
        self.closed += 1
        self.waiting = []


@dataclass(frozen=True)
class Setup:
    """A `RecordSinkSetup`."""

    kept: Kept
    needs: RecordParts = VALUES_ONLY
    address: str = "a list"

    def problems(self) -> Sequence[str]:
        return ()

    def probe(self, seconds_left: float) -> ProbeResult:
        return ProbeResult(Health.OK, "it is there")

    def open(self) -> Kept:
        self.kept.opened += 1
        return self.kept
