"""Uploads the files of a Spark task: in order for each topic-partition, several side by side, each until accepted.

`OrderedUploader` has the order and the threads, `Deliverer` one file's attempts, their receipt and the error that ends
them; when an attempt is made again `targets.retry` decides.
"""

import logging
import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from parquet_sink.errors import (
    RESET_TOOL,
    ConnectorError,
    UploadError,
    UploadExhausted,
    UploadPostponed,
    UploadRefused,
)
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.storage import after_acceptance, remove_unsent
from parquet_sink.model.ranges import NO_TRIES, Again, Tries
from parquet_sink.model.receipts import Receipt
from parquet_sink.process.per_process import PerProcess
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.retry import WAIT_HERE_S, RetryPolicy, Sent, Surroundings, send_with_retries
from parquet_sink.targets.settings import RetrySettings, Target, TargetSettings

logger = logging.getLogger(__name__)

MOST_WAITING: Final = 1
MOST_PARALLEL: Final = 8
NOT_COMMITTED: Final = "These offsets are not committed; they are sent again at the next start."
_CONTINUE: Final = (
    " Or set connect.ems.error.policy=CONTINUE: then the records of such a file are diverted, and the next file goes "
    "on."
)
_FATES: Final = {
    Verdict.REFUSED: "was refused",
    Verdict.RETRIABLE: "was not taken",
    Verdict.UNKNOWN: "may or may not have been taken",
}


def _open(settings: TargetSettings) -> Target:
    return settings.open()


_targets: Final = PerProcess(_open)


def target_for(settings: TargetSettings) -> Target:
    """The process's target for these settings: opened when there is none, and kept. Raises as `settings.open`."""
    return _targets.get(settings)


class Delivers(Protocol):
    """What sends one file for good: `Deliverer`, or a fake."""

    def deliver(self, file: FinishedFile, earlier: Tries, superseded: Callable[[], bool]) -> Receipt: ...
    def failed(self, file: FinishedFile, error: ConnectorError) -> Receipt: ...


@dataclass(frozen=True)
class Upload:
    """A file to send, the attempts at it so far, and whether another attempt at its range has begun meanwhile."""

    file: FinishedFile
    earlier: Tries = NO_TRIES
    superseded: Callable[[], bool] = lambda: False


@dataclass
class _PartitionQueue:
    """One topic-partition: at most one file under way, at most MOST_WAITING behind it."""

    waiting: deque[Upload] = field(default_factory=deque)
    busy: bool = False
    failed: bool = False


class OrderedUploader:
    """Takes finished files in offset order for each topic-partition; use as long as one Spark task.

    A file is sent only after the one before it of its topic-partition was accepted. After the first that was not,
    nothing more of that topic-partition is sent; its later files are removed, their records are still in Kafka.
    passes_over: a file that is refused for what is in it is removed, and the next one is sent all the same; what
    becomes of its records is the caller's to see to, by its receipt.
    """

    def __init__(
        self,
        deliverer: Delivers,
        *,
        most_parallel: int = MOST_PARALLEL,
        on_receipt: Callable[[Receipt], None] | None = None,
        passes_over: bool = False,
    ) -> None:
        self._deliverer, self._on_receipt, self._passes_over = deliverer, on_receipt, passes_over
        self._pool = ThreadPoolExecutor(most_parallel, thread_name_prefix="upload")
        self._queues: dict[tuple[str, int], _PartitionQueue] = {}
        self._receipts: list[Receipt] = []
        self._defect: BaseException | None = None
        self._changed = threading.Condition()

    def submit(self, upload: Upload) -> bool:
        """Hands a file over; blocks while another one waits already.

        False when its topic-partition has failed: the caller need not write more of it.
        """
        with self._changed:
            queue = self._queues.setdefault((upload.file.topic, upload.file.partition), _PartitionQueue())
            self._changed.wait_for(lambda: queue.failed or len(queue.waiting) < MOST_WAITING)
            if queue.failed:
                remove_unsent(upload.file.path)
                return False
            queue.waiting.append(upload)
            if not queue.busy:
                queue.busy = True
                self._pool.submit(self._send_next, queue)
            return True

    def close(self) -> list[Receipt]:
        """Waits until everything is sent or failed; returns the receipts, in offset order for each topic-partition.

        Raises what `deliver` raised, if that was not a ConnectorError: a defect, not an outcome.
        """
        with self._changed:
            self._changed.wait_for(lambda: not any(queue.busy for queue in self._queues.values()))
        self._pool.shutdown()
        if self._defect is not None:
            raise self._defect
        return list(self._receipts)

    def _send_next(self, queue: _PartitionQueue) -> None:
        """Sends one file, then queues up again: topic-partitions take turns when there are more than threads."""
        with self._changed:
            upload = queue.waiting.popleft()
            self._changed.notify_all()
        try:
            self._record(self._delivered(upload, queue))
        except BaseException as error:  # noqa: BLE001 - kept for `close`, which raises it in the caller's thread
            self._fail(queue)
            self._defect = self._defect or error
        with self._changed:
            queue.busy = bool(queue.waiting)
            if queue.busy:
                self._pool.submit(self._send_next, queue)
            self._changed.notify_all()

    def _delivered(self, upload: Upload, queue: _PartitionQueue) -> Receipt:
        file = upload.file
        try:
            return self._deliverer.deliver(file, upload.earlier, upload.superseded)
        except ConnectorError as error:
            receipt = self._deliverer.failed(file, error)
            if self._passes_over and isinstance(error, UploadRefused) and error.of_file is not None:
                remove_unsent(file.path)
                return replace(receipt, failure=None, passed_over=error.of_file, next_offset=file.last_offset + 1)
            self._fail(queue)
            if isinstance(error, UploadPostponed):
                remove_unsent(file.path)  # the next attempt makes it again
            return receipt

    def _record(self, receipt: Receipt) -> None:
        with self._changed:
            self._receipts.append(receipt)
        if self._on_receipt is not None:
            self._on_receipt(receipt)

    def _fail(self, queue: _PartitionQueue) -> None:
        with self._changed:
            queue.failed = True
            unsent, queue.waiting = list(queue.waiting), deque()
        for upload in unsent:
            remove_unsent(upload.file.path)


class Deliverer:
    """Sends files of one connector and deals with them afterwards; threads may share it.

    waits_here: a wait between two attempts is waited in the task, however long, because nobody else plans the next.
    reset: the command that sets a topic-partition to an offset.
    allowed: looked at right before each attempt, see `Surroundings`.
    """

    def __init__(
        self,
        connector: str,
        target: Target,
        settings: RetrySettings,
        *,
        keep_files: bool = False,
        waits_here: bool = False,
        allowed: Callable[[], bool] = lambda: True,
        reset: Callable[[str, int, int], str] = lambda topic, partition, to: RESET_TOOL,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connector, self._target, self._keep_files = connector, target, keep_files
        self._policy, self._longest_wait_s = RetryPolicy.of(settings), math.inf if waits_here else WAIT_HERE_S
        self._allowed, self._reset = allowed, reset
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
        around = Surroundings(
            elapsed=lambda: self._monotonic() - started,
            now=self._now,
            jitter=self._jitter,
            sleep=self._sleep,
            stopped=superseded,
            longest_wait_s=self._longest_wait_s,
            allowed=self._allowed,
        )

        def log_wait(so_far: Outcome, wait: float) -> None:
            about = (self._connector, file.name, _into(file), so_far.cause, so_far.verdict, wait)
            logger.warning("connector %s: file %s%s: %s (%s); next attempt in %.1f s", *about)

        sent = send_with_retries(
            lambda seconds_left: self._target.push(file, seconds_left), self._policy, around, log_wait, earlier
        )
        sent = replace(sent, outcome=_in_doubt(file, sent, self._reset))
        if sent.outcome.verdict is not Verdict.ACCEPTED:
            raise _error(file, sent, superseded=superseded())
        accepted_at = self._now()
        after_acceptance(file.path, file.kept_name, self._keep_files)
        return replace(
            _receipt(self._connector, file, sent.tries),
            next_offset=file.last_offset + 1,
            status=sent.outcome.status,
            answer_id=sent.outcome.answer_id,
            accepted_at=accepted_at,
            archive=sent.outcome.archive,
            notice=sent.outcome.notice,
            answers=sent.answers,
        )

    def failed(self, file: FinishedFile, error: ConnectorError) -> Receipt:
        """The receipt of a file that `deliver` raised for; its next offset is the file's first."""
        failure = replace(error.failure(), topic_partition=(file.topic, file.partition) if file.frame is None else None)
        upload = error if isinstance(error, UploadError) else UploadError("")
        receipt = _receipt(self._connector, file, upload.tries)
        return replace(receipt, status=failure.status, failure=failure, answers=upload.answers)


def _receipt(connector: str, file: FinishedFile, tries: Tries) -> Receipt:
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
        attempts=tries.attempts,
        tried=tries.log,
        seconds={"write": file.write_seconds, "upload": tries.elapsed_s},
        oldest_ms=file.oldest_ms,
        table=file.table,
        digest=file.digest,
    )


def _in_doubt(file: FinishedFile, sent: Sent, reset: Callable[[str, int, int], str]) -> Outcome:
    """The outcome; of a refusal that may say that an earlier attempt delivered the file, not one of what is in it."""
    outcome = sent.outcome
    if outcome.verdict is not Verdict.REFUSED or not (outcome.of_name and sent.tries.may_be_there):
        return outcome
    after = file.last_offset + 1
    command = reset(file.topic, file.partition, after)
    passed = f": then pass it by resetting the group's offset to {after} with {command}"
    cure = (
        f"Look whether the target has a file of this name, from an attempt whose answer was lost"
        f"{passed if file.frame is None else ''}. If it has not, correct what the answer names"
    )
    return replace(outcome, of_file=False, fate="was refused, and may have been delivered before", cure=cure)


def _error(file: FinishedFile, sent: Sent, *, superseded: bool) -> UploadError:
    outcome, attempts = sent.outcome, sent.tries.attempts
    tries = f"after {attempts} attempt{'s' if attempts > 1 else ''} in {sent.tries.elapsed_s:.1f} s"
    ended = ", ended because another attempt at these offsets has begun" if superseded else ""
    into = _into(file)
    message = (
        f"{file.origin}: file {file.name}{into} {outcome.fate or _FATES[outcome.verdict]}: {outcome.cause} "
        f"({tries}{ended}). {outcome.cure}. "
        f"{NOT_COMMITTED if file.frame is None else file.frame.repeated}"
        f"{_CONTINUE if outcome.of_file and file.frame is None else ''}"
    )
    error: UploadError
    if sent.wait_s is not None:
        error = UploadPostponed(message, outcome.status, Again(sent.tries, sent.wait_s))
    elif outcome.verdict is Verdict.REFUSED:
        of_file = f"the target refused file {file.name}{into}: {outcome.cause}" if outcome.of_file else None
        error = UploadRefused(message, outcome.status, of_file)
    else:
        error = UploadExhausted(message, outcome.status)
    error.tries, error.answers = sent.tries, sent.answers
    return error


def _into(file: FinishedFile) -> str:
    """Where it goes, if that differs from topic to topic."""
    return "" if file.table is None else f" for table {file.table}"
