"""One file from disk to acceptance: attempts, waits, and the error that ends them."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from parquet_sink.errors import (
    RESET_TOOL,
    ConnectorError,
    UploadError,
    UploadExhausted,
    UploadPostponed,
    UploadRefused,
)
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.cleanup import after_acceptance
from parquet_sink.model.ranges import NO_TRIES, Again, AttemptCount, Tries
from parquet_sink.model.receipts import Receipt
from parquet_sink.targets.attempt_log import AttemptLog
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.retry import RetryPolicy, Sent, Surroundings, send_with_retries
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.targets.target import Target

logger = logging.getLogger(__name__)

_FATES: Final = {
    Verdict.REFUSED: "was refused",
    Verdict.RETRIABLE: "was not taken",
    Verdict.UNKNOWN: "may or may not have been taken",
}
NOT_COMMITTED: Final = "These offsets are not committed; they are sent again at the next start."
_TO_PASS: Final = (
    " Or set connect.ems.error.policy=CONTINUE: then the records of such a file are kept aside, and the next file goes "
    "on."
)


class Deliverer:
    """Sends files of one connector and deals with them afterwards; threads may share it."""

    def __init__(
        self,
        connector: str,
        target: Target,
        settings: RetrySettings,
        *,
        keep_files: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connector, self._target, self._keep_files = connector, target, keep_files
        self._policy = RetryPolicy.of(settings)
        self._monotonic, self._now, self._jitter, self._sleep = monotonic, now, jitter, sleep

    def deliver(
        self, file: FinishedFile, earlier: Tries = NO_TRIES, superseded: Callable[[], bool] = lambda: False
    ) -> Receipt:
        """Sends a file until it is accepted, and returns its receipt.

        earlier: attempts at this file before this task. superseded: whether another attempt at the range has begun;
        then no further attempt and no further wait is. Raises UploadPostponed when the next attempt is the driver's to
        plan; UploadRefused or UploadExhausted; StorageFailed when the file cannot be read. After these the file stays.
        """
        started = self._monotonic()
        log = AttemptLog(earlier.log, self._monotonic, self._now)
        sent = send_with_retries(
            lambda seconds_left: log.add(lambda: self._target.push(file, seconds_left)),
            self._policy,
            self._surroundings(started, superseded),
            lambda so_far, wait: _log_wait(self._connector, file, so_far, wait),
            earlier,
        )
        sent = replace(sent, tries=replace(sent.tries, log=log.attempts, sent_before=earlier.sent_before))
        sent = replace(sent, outcome=_in_doubt(file, sent))
        if sent.outcome.verdict is not Verdict.ACCEPTED:
            raise _error(file, sent, log.counts, superseded=superseded())
        accepted_at = self._now()
        after_acceptance(file.path, file.kept_name, self._keep_files)
        seconds = {"write": file.write_seconds, "upload": sent.tries.elapsed_s}
        return replace(_receipt(self._connector, file, sent, accepted_at, seconds), answers=log.counts)

    def failed(self, file: FinishedFile, error: ConnectorError) -> Receipt:
        """The receipt of a file that `deliver` raised for."""
        return failure_receipt(self._connector, file, error)

    def _surroundings(self, started: float, superseded: Callable[[], bool]) -> Surroundings:
        return Surroundings(
            elapsed=lambda: self._monotonic() - started,
            jitter=self._jitter,
            sleep=self._sleep,
            stopped=superseded,
        )


def _in_doubt(file: FinishedFile, sent: Sent) -> Outcome:
    """The outcome; of a refusal that may say that an earlier attempt delivered the file, not one of what is in it."""
    outcome = sent.outcome
    if outcome.verdict is not Verdict.REFUSED or not (outcome.of_name and sent.tries.may_be_there):
        return outcome
    passed = f": then pass it by resetting the group's offset to {file.last_offset + 1} with {RESET_TOOL}"
    cure = (
        f"Look whether the target has a file of this name, from an attempt whose answer was lost"
        f"{passed if file.frame is None else ''}. If it has not, correct what the answer names"
    )
    return replace(outcome, of_file=False, fate="was refused, and may have been delivered before", cure=cure)


def failure_receipt(connector: str, file: FinishedFile, error: ConnectorError) -> Receipt:
    """A receipt that says why a file was not accepted; its next offset is the file's first."""
    failure = replace(error.failure(), topic_partition=(file.topic, file.partition) if file.frame is None else None)
    tries = error.tries if isinstance(error, UploadError) else NO_TRIES
    seconds = {"write": file.write_seconds, "upload": tries.elapsed_s}
    answers = error.answers if isinstance(error, UploadError) else ()
    about = replace(_about(connector, file), attempts=tries.attempts, tried=tries.log, seconds=seconds, answers=answers)
    return replace(about, status=failure.status, failure=failure)


def _receipt(connector: str, file: FinishedFile, sent: Sent, accepted_at: float, seconds: dict[str, float]) -> Receipt:
    return replace(
        _about(connector, file),
        next_offset=file.last_offset + 1,
        attempts=sent.tries.attempts,
        tried=sent.tries.log,
        seconds=seconds,
        status=sent.outcome.status,
        answer_id=sent.outcome.answer_id,
        accepted_at=accepted_at,
        archive=sent.outcome.archive,
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
        table=file.table,
        digest=file.digest,
    )


def _error(file: FinishedFile, sent: Sent, answers: tuple[AttemptCount, ...], *, superseded: bool) -> UploadError:
    error = _kind_of_error(file, sent, superseded=superseded)
    error.tries, error.answers = sent.tries, answers
    return error


def _kind_of_error(file: FinishedFile, sent: Sent, *, superseded: bool) -> UploadError:
    outcome, attempts = sent.outcome, sent.tries.attempts
    tries = f"after {attempts} attempt{'s' if attempts > 1 else ''} in {sent.tries.elapsed_s:.1f} s"
    ended = ", ended because another attempt at these offsets has begun" if superseded else ""
    into = _into(file)
    message = (
        f"{file.origin}: file {file.name}{into} {outcome.fate or _FATES[outcome.verdict]}: {outcome.cause} "
        f"({tries}{ended}). {outcome.cure}. "
        f"{NOT_COMMITTED if file.frame is None else file.frame.repeated}"
        f"{_TO_PASS if outcome.of_file and file.frame is None else ''}"
    )
    if sent.wait_s is not None:
        return UploadPostponed(message, outcome.status, Again(sent.tries, sent.wait_s))
    if outcome.verdict is Verdict.REFUSED:
        of_file = f"the target refused file {file.name}{into}: {outcome.cause}" if outcome.of_file else None
        return UploadRefused(message, outcome.status, of_file)
    return UploadExhausted(message, outcome.status)


def _into(file: FinishedFile) -> str:
    """Where it goes, if that differs from topic to topic."""
    return "" if file.table is None else f" for table {file.table}"


def _log_wait(connector: str, file: FinishedFile, outcome: Outcome, wait: float) -> None:
    logger.warning(
        "connector %s: file %s%s: %s (%s); next attempt in %.1f s",
        connector,
        file.name,
        _into(file),
        outcome.cause,
        outcome.verdict,
        wait,
    )
