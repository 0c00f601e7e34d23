"""One Spark task of a source: from `poll` to an outcome that says how far everything is in Kafka.

The order of effects:

1. the task is told how far everything is in Kafka
2. it is polled: its records come in order
3. they are transformed and converted; one that cannot be stops the task before it, or is passed over
4. they are sent, by an idempotent producer, to all in-sync replicas
5. all of them are acknowledged
6. only then their places, and what the task remembers, go to the driver
7. the driver notes them, then any failure
8. the next tick, or the program after a failure, stores them where the source goes on from

A crash before 8 sends the same records again. Nothing is stored before 5 is done for everything below.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from parquet_sink.addons.sources.encoding.encoders import encoder_for
from parquet_sink.addons.sources.encoding.faults import NotEncodable
from parquet_sink.addons.sources.flow.outcome import SourceOutcome, SourceWork
from parquet_sink.addons.sources.flow.record_sender import Outgoing, RecordSender
from parquet_sink.addons.sources.flow.tasks import guarded, reached, settings_of, task_class
from parquet_sink.addons.sources.flow.transform import transform
from parquet_sink.addons.sources.offsets.connect_form import is_flat, text_of
from parquet_sink.addons.sources.settings import MAX_REQUEST, SourceSettings
from parquet_sink.addons.sources.task import Memory, Remembering, RememberingWithin, SourceTask
from parquet_sink.config.report import printable, quoted
from parquet_sink.errors import BrokerAway, SinkError, SourceFailed, code_place
from parquet_sink.model.source_records import Place, SourceRecord
from parquet_sink.transform.building import chain_for

MOST_S: Final = 2.0
"""How long a task polls: a stop waits for it."""
MOST_BYTES: Final = 64 << 20

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Unwritable:
    """A record that cannot be sent, and why, without its content. may_pass: whether settings may pass it over."""

    reason: str
    may_pass: bool = True
    cure: str = ""


class SourceEncoding:
    """As the settings of a connector say. Raises TransformFailed when a class of a transform is not here."""

    def __init__(self, settings: SourceSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._clock = settings, clock
        self._chain = chain_for(settings.transforms, settings.key, settings.header)
        self._key, self._value, self._header = (
            encoder_for(one) for one in (settings.key, settings.value, settings.header)
        )

    def encoded(self, records: Sequence[SourceRecord]) -> list[Sequence[Outgoing] | Unwritable]:
        """For each record what is sent for it: nothing where a transform dropped it. Raises ConnectorError."""
        if self._chain is None:
            return [self._all((record,)) for record in records]
        done = transform(self._chain, records, int(self._clock() * 1000))
        return [
            Unwritable(done.faults[index]) if index in done.faults else self._all(done.records.get(index, ()))
            for index in range(len(records))
        ]

    def _all(self, records: Sequence[SourceRecord]) -> Sequence[Outgoing] | Unwritable:
        try:
            found = [self._one(record) for record in records]
        except NotEncodable as error:
            return Unwritable(str(error))
        largest = max((one.size for one in found), default=0)
        return self._too_large(largest) if largest > self._settings.max_request_bytes else found

    def _one(self, record: SourceRecord) -> Outgoing:
        return Outgoing(
            record.topic,
            record.partition,
            self._key(record.key, record.key_type),
            self._value(record.value, record.value_type),
            [(one.name, self._header(one.value, one.type)) for one in record.headers],
            record.timestamp_ms or 0,
        )

    def _too_large(self, size: int) -> Unwritable:
        most = self._settings.max_request_bytes
        return Unwritable(
            f"it has {size:,} bytes, and a request may have {most:,}",
            may_pass=False,
            cure=f"Raise [producer.override.{MAX_REQUEST}], and max.message.bytes of the topic (message.max.bytes of "
            "the brokers), then start again",
        )


class SourceFlush:
    """Runs tasks of one connector. clock: seconds that never jump; now: since the epoch."""

    def __init__(
        self,
        settings: SourceSettings,
        sender: Callable[[SourceSettings], RecordSender] = RecordSender,
        clock: Callable[[], float] = time.monotonic,
        most_s: float = MOST_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._make_sender, self._clock, self._most_s = settings, sender, clock, most_s
        self._now = now

    def run(self, work: SourceWork) -> SourceOutcome:
        """Steps 1 to 6. Whatever goes wrong is in the outcome."""
        sender = self._make_sender(self._settings)
        run = _Run(self._settings, work, sender, self._clock)
        failure: SinkError | None = None
        try:
            run.poll_until(self._clock() + self._most_s)
        except SinkError as error:
            failure = error
        try:
            sender.flush()
            run.acknowledged()
        except SinkError as error:
            failure = failure or error
        finally:
            sender.close()
        return run.outcome(failure, self._now())


class _Run:
    """One life of a task. What was sent counts from `acknowledged` on."""

    def __init__(
        self, settings: SourceSettings, work: SourceWork, sender: RecordSender, clock: Callable[[], float]
    ) -> None:
        self._settings, self._work, self._sender, self._clock = settings, work, sender, clock
        self._encoding = SourceEncoding(settings)
        self._sent: dict[str, Place] = {}
        self._memory: Memory = work.memory
        self._places: dict[str, Place] = {}
        self._kept: Memory = work.memory
        self._polled = self._passed_over = self._size = self._polls = 0
        self._longest_s = self._polls_s = 0.0
        self._more = False
        self._fault = ""

    def poll_until(self, end_s: float) -> None:
        """Steps 1 to 4. Raises SinkError; what was sent before is sent all the same."""
        task = guarded(task_class(self._settings.task))
        try:
            guarded(lambda: task.start(settings_of(self._settings, self._work.task), reached(self._work)))
            for records in self._polls_of(task, end_s):
                self._send(records, task)
                self._memory = {}  # unless it says what goes with these places
                self._memory = guarded(task.remember) if isinstance(task, Remembering) else {}
        finally:
            _stop(task)

    def _polls_of(self, task: SourceTask, end_s: float) -> Iterator[Sequence[SourceRecord]]:
        while True:
            begun_s = self._clock()
            records = guarded(task.poll)
            taken_s = self._clock() - begun_s
            self._polls += 1
            self._polls_s += taken_s
            self._longest_s = max(self._longest_s, taken_s)
            if not records:
                return
            self._polled += len(records)
            yield records
            if self._clock() >= end_s or self._size >= MOST_BYTES:
                self._more = True
                return

    def _send(self, records: Sequence[SourceRecord], task: SourceTask) -> None:
        """Raises SinkError for one that cannot be sent; then what is remembered goes with the one before it."""
        last: SourceRecord | None = None
        try:
            for record, outgoing in zip(records, self._encoding.encoded(records), strict=True):
                self._send_one(record, outgoing)
                last = record if record.source_offset is not None else last
        except SinkError:
            if last is not None:
                self._memory = _remembered_at(task, last)
            raise

    def _send_one(self, record: SourceRecord, outgoing: Sequence[Outgoing] | Unwritable) -> None:
        _require_place(record)
        if isinstance(outgoing, Unwritable):
            self._pass_over(record, outgoing)
        else:
            for one in outgoing:
                self._sender.send(one)
                self._size += one.size
        if record.source_offset is not None:
            self._sent[text_of(record.source_partition)] = record.source_offset

    def _pass_over(self, record: SourceRecord, why: Unwritable) -> None:
        """Raises SourceFailed unless such records are skipped."""
        where = f"record behind which {text_of(record.source_partition)} is at {_offset(record)}"
        if not self._settings.tolerant or not why.may_pass:
            cure = "Correct the source, or the connector's transforms and converters"
            passing = ", or set errors.tolerance=all to skip such records" if why.may_pass else ""
            raise SourceFailed(
                f"The {where} cannot be sent: {why.reason}. {why.cure or cure + passing}. Everything before it is in "
                "Kafka, and the position stays before it."
            )
        self._passed_over += 1
        self._fault = self._fault or f"{where}: {why.reason}"
        if self._settings.log:
            log.warning("connector %s: skipped the %s: %s", self._settings.name, where, why.reason)

    def acknowledged(self) -> None:
        """Step 5 is done for all that was sent."""
        self._places, self._kept = self._sent, self._memory

    def outcome(self, failure: SinkError | None, ended_at_s: float) -> SourceOutcome:
        """Step 6."""
        return SourceOutcome(
            self._work.task,
            self._places,
            self._kept,
            self._polled,
            self._passed_over,
            self._fault,
            self._sender.delivered,
            self._more,
            self._polls,
            self._polls_s,
            self._longest_s,
            None if failure is None else failure.failure(),
            isinstance(failure, BrokerAway),
            ended_at_s,
        )


def _require_place(record: SourceRecord) -> None:
    """Raises SourceFailed for a place that could not be stored, or not be read back."""
    for name, place in (("source_partition", record.source_partition), ("source_offset", record.source_offset)):
        if place is None:
            continue
        if not isinstance(place, Mapping):
            raise _no_place(record, name, place)
        for key, value in place.items():
            if not isinstance(key, str) or not is_flat({key: value}):
                raise _no_place(record, f"{name}[{printable(repr(key))}]", value)


def _no_place(record: SourceRecord, name: str, value: object) -> SourceFailed:
    return SourceFailed(
        f"A record for topic {printable(record.topic)} has a place that cannot be stored: {name} is "
        f"{quoted(repr(value))}, of type {type(value).__name__}. A place is a dict by texts of texts, whole numbers of "
        "64 bits, finite numbers, booleans and None; correct the source's code. Everything before it is in Kafka, and "
        "the position stays before it."
    )


def _offset(record: SourceRecord) -> str:
    return "no place" if record.source_offset is None else text_of(record.source_offset)


def _remembered_at(task: SourceTask, record: SourceRecord) -> Memory:
    """What goes with the place of a record in the middle of the last poll."""
    offset = record.source_offset
    if offset is None or not isinstance(task, RememberingWithin):
        return {}
    return guarded(lambda: task.remember_at(record.source_partition, offset))


def _stop(task: SourceTask) -> None:
    """What it was to do is done, so its failing matters to nobody."""
    try:
        task.stop()
    except Exception as error:  # noqa: BLE001 - see above
        log.warning("the source's task did not stop in order: %s", code_place(error))
