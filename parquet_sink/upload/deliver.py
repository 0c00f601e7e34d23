"""One file from disk to acceptance: attempts, waits, and the error that ends them."""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from parquet_sink.config.settings import PushSettings
from parquet_sink.errors import ConnectorError, UploadError, UploadExhausted, UploadRefused
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.cleanup import after_acceptance
from parquet_sink.upload.outcome import Outcome, Verdict
from parquet_sink.upload.receipts import Receipt, UploadFailure
from parquet_sink.upload.retry import RetryPolicy, Surroundings, send_with_retries

logger = logging.getLogger(__name__)

_FATES: Final = {
    Verdict.REFUSED: "was refused",
    Verdict.RETRIABLE: "was not taken",
    Verdict.UNKNOWN: "may or may not have been taken",
}


class Pushes(Protocol):
    """What sends one file once: `PushClient`, or a fake."""

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome: ...


class Deliverer:
    """Sends files of one connector and deals with them afterwards; threads may share it.

    stop: when set, no further attempt and no further wait is begun.
    """

    def __init__(
        self,
        connector: str,
        client: Pushes,
        settings: PushSettings,
        *,
        keep_files: bool = False,
        stop: threading.Event | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._connector, self._client, self._keep_files = connector, client, keep_files
        self._policy = RetryPolicy.of(settings)
        self._stop = stop or threading.Event()
        self._monotonic, self._now, self._jitter = monotonic, now, jitter

    def deliver(self, file: FinishedFile) -> Receipt:
        """Sends a file until it is accepted, and returns its receipt.

        Raises UploadRefused or UploadExhausted; StorageFailed when the file cannot be read. After these the file stays.
        """
        started = self._monotonic()
        outcome, attempts = send_with_retries(
            lambda seconds_left: self._client.push(file, seconds_left),
            self._policy,
            self._surroundings(started),
            lambda so_far, wait: _log_wait(file, so_far, wait),
        )
        if outcome.verdict is not Verdict.ACCEPTED:
            raise _error(file, outcome, attempts, self._monotonic() - started, stopped=self._stop.is_set())
        accepted_at = self._now()
        after_acceptance(file.path, file.last_offset, self._keep_files)
        seconds = {"write": file.write_seconds, "upload": self._monotonic() - started}
        return _receipt(self._connector, file, outcome, attempts, accepted_at, seconds)

    def failed(self, file: FinishedFile, error: ConnectorError) -> Receipt:
        """The receipt of a file that `deliver` raised for."""
        return failure_receipt(self._connector, file, error)

    def _surroundings(self, started: float) -> Surroundings:
        return Surroundings(
            elapsed=lambda: self._monotonic() - started,
            now=self._now,
            jitter=self._jitter,
            sleep=self._pause,
            stopped=self._stop.is_set,
        )

    def _pause(self, seconds: float) -> None:
        self._stop.wait(seconds)


def failure_receipt(connector: str, file: FinishedFile, error: ConnectorError) -> Receipt:
    """A receipt that says why a file was not accepted; its next offset is the file's first."""
    status = error.status if isinstance(error, UploadError) else None
    failure = UploadFailure(type(error).__name__, str(error), status)
    return replace(_about(connector, file), status=status, failure=failure)


def _receipt(
    connector: str, file: FinishedFile, outcome: Outcome, attempts: int, accepted_at: float, seconds: dict[str, float]
) -> Receipt:
    return replace(
        _about(connector, file),
        next_offset=file.last_offset + 1,
        attempts=attempts,
        seconds=seconds,
        status=outcome.status,
        answer_id=outcome.answer_id,
        accepted_at=accepted_at,
    )


def _about(connector: str, file: FinishedFile) -> Receipt:
    """What is true of a file however its upload ends."""
    return Receipt(
        connector=connector,
        topic=file.topic,
        partition=file.partition,
        file_name=file.name,
        first_offset=file.first_offset,
        last_offset=file.last_offset,
        next_offset=file.first_offset,
        rows=file.rows,
        records=file.records,
        size_bytes=file.size_bytes,
        reason=str(file.reason),
        oldest_ms=file.oldest_ms,
    )


def _error(file: FinishedFile, outcome: Outcome, attempts: int, elapsed: float, *, stopped: bool) -> UploadError:
    refused = outcome.verdict is Verdict.REFUSED
    tries = f"after {attempts} attempt{'s' if attempts > 1 else ''} in {elapsed:.1f} s"
    ended = ", ended because the connector stops" if stopped else ""
    message = (
        f"Topic {file.topic}, topic-partition {file.partition}, offsets {file.first_offset} to {file.last_offset}: "
        f"file {file.name} {_FATES[outcome.verdict]}: {outcome.cause} ({tries}{ended}). {outcome.cure}. "
        f"These offsets are not committed; they are sent again at the next start."
    )
    return (UploadRefused if refused else UploadExhausted)(message, outcome.status)


def _log_wait(file: FinishedFile, outcome: Outcome, wait: float) -> None:
    logger.warning("file %s: %s (%s); next attempt in %.1f s", file.name, outcome.cause, outcome.verdict, wait)
