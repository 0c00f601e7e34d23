"""One log line for each file or flush, and for each connector that begins or ends: what there is without a terminal."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any, Final

from parquet_sink.config.report import counted
from parquet_sink.model.events import (
    Event,
    EventsDropped,
    FileAccepted,
    FilePassedOver,
    RecordsDelivered,
    RecordsSetAside,
    SourcePolled,
)
from parquet_sink.model.receipts import Failure, Receipt
from parquet_sink.process.logs import about
from parquet_sink.worker.loop.status import Status, status_after

_LEFT_OUT: Final = {"at_s", "receipt", "failure", "tried", "answers", "seconds"}
log = logging.getLogger(__name__)

STATUS_LINES: Final = {Status.STARTING: "starting; it waits for Java and Spark, which take 5 to 10 s to load"}
"""Of a status that says too little by itself, until something runs."""


class LogLines:
    """A `loop.events.Listener`. Files and connectors at INFO, records set aside at WARNING, all else at DEBUG."""

    def __init__(self) -> None:
        self._status: dict[str, Status | None] = {}
        self._spark_is_up = False

    def on_event(self, event: Event) -> None:
        if isinstance(event, FileAccepted):
            self._say(logging.INFO, event, describe_file(event.receipt))
        elif isinstance(event, RecordsDelivered):
            self._say(logging.INFO, event, describe_delivered(event))
        elif isinstance(event, EventsDropped):
            self._say(logging.WARNING, event, describe_dropped(event))
        elif isinstance(event, FilePassedOver):
            self._say(logging.WARNING, event, describe_passed_over(event.receipt))
        elif isinstance(event, RecordsSetAside):
            self._say(logging.WARNING, event, describe_set_aside(event))
        elif isinstance(event, SourcePolled) and event.passed_over:
            self._say(logging.WARNING, event, describe_polled(event))
        else:
            self._on_status(event)

    def refresh(self, connectors: Sequence[object]) -> None:
        """Everything was said when it happened."""

    def close(self, connectors: Sequence[object]) -> None:
        """Everything was said when it happened."""

    def _on_status(self, event: Event) -> None:
        before = self._status.get(event.connector)
        after = status_after(event, before)
        if after is None or after is before:
            self._say(logging.DEBUG, event, str(event))
        else:
            self._status[event.connector] = after
            self._spark_is_up = self._spark_is_up or after is Status.RUNNING
            words = after if self._spark_is_up else STATUS_LINES.get(after, after)
            self._say(logging.INFO, event, f"connector {event.connector}: {words}")

    def _say(self, level: int, event: Event, words: str) -> None:
        """In words, and where lines are JSON with what the event says."""
        if log.isEnabledFor(level):
            log.log(level, "%s", words, extra=about(**fields_of(event)))


def describe_dropped(event: EventsDropped) -> str:
    """That log lines are missing."""
    return (
        f"connector {event.connector}: {event.count:,} events were dropped before they were read, so log lines of "
        "files are missing. No record is."
    )


def describe_delivered(event: RecordsDelivered) -> str:
    """Records of one topic-partition that were delivered without a file, in one line."""
    return (
        f"connector {event.connector}: delivered {counted(event.records, 'record')} of topic "
        f"{event.topic}, topic-partition {event.partition}, offsets {event.first} to {event.last}, to {event.place}"
    )


def describe_passed_over(receipt: Receipt) -> str:
    """One file that was refused and passed over, in one line."""
    return (
        f"connector {receipt.connector}: {receipt.passed_over} ({_rows(receipt)}, {receipt.size_bytes} bytes); "
        + (f"its {receipt.records} records are" if receipt.records != 1 else "its record is")
        + " diverted, and the next file goes on"
    )


def describe_set_aside(event: RecordsSetAside) -> str:
    """Records of one range that were set aside, in one line."""
    stages = ", ".join(f"{stage} {n:,}" for stage, n in sorted(event.stages.items(), key=lambda one: -one[1]))
    return (
        f"connector {event.connector}: diverted {counted(event.count, 'record')} of topic {event.topic}, "
        f"topic-partition {event.partition}, offsets {event.first} to {event.last} ({stages}), {event.place}; "
        f"the first one: {event.reason}"
    )


def describe_polled(event: SourcePolled) -> str:
    """Records of a source that could not be sent, in one line."""
    return (
        f"connector {event.connector}: skipped {event.passed_over:,} of {event.polled:,} records; the first one: "
        f"{event.first_fault}"
    )


def _rows(receipt: Receipt) -> str:
    return f"{receipt.rows} row{'' if receipt.rows == 1 else 's'}"


def describe_file(receipt: Receipt) -> str:
    """One accepted file in one line."""
    upload_s = receipt.seconds.get("upload", 0.0)
    attempts = f", {receipt.attempts} attempts" if receipt.attempts > 1 else ""
    into = "" if receipt.table is None else f"into table {receipt.table} "
    return (
        f"connector {receipt.connector}: accepted {receipt.file_name} {into}"
        f"({_rows(receipt)}, {receipt.size_bytes} bytes, rotated by {receipt.reason}, "
        f"upload {upload_s:.2f} s{attempts})"
    )


def fields_of(event: Event) -> dict[str, Any]:
    """`event`, its class's name, and what it has to say: of a file what its receipt says; what is not known is absent.

    Times are of the line that it stands in; attempts one by one are in the history.
    """
    said = {"event": type(event).__name__, **_plain(event)}
    receipt: Receipt | None = getattr(event, "receipt", None)
    if receipt is not None:
        said |= {**_plain(receipt), **{f"{name}_s": round(s, 3) for name, s in receipt.seconds.items()}}
    failure: Failure | None = receipt.failure if receipt is not None else getattr(event, "failure", None)
    if failure is not None:
        said |= {"error": failure.kind, "failure": failure.message}
        if failure.topic_partition is not None:
            said |= dict(zip(("topic", "partition"), failure.topic_partition, strict=True))
    return said


def _plain(one: Event | Receipt) -> dict[str, Any]:
    """What is not left out, as JSON has it: `asdict` of all of it would copy what is left out, too."""
    kept = {field.name: getattr(one, field.name) for field in fields(one) if field.name not in _LEFT_OUT}
    return {name: _as_json(said) for name, said in kept.items() if said is not None}


def _as_json(said: Any) -> Any:
    return asdict(said) if is_dataclass(said) and not isinstance(said, type) else said
