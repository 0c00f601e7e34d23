"""Files of one topic-partition in order, of different topic-partitions side by side, while the next are written."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from parquet_sink.errors import ConnectorError, UploadPostponed, UploadRefused
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.files.cleanup import remove_unsent
from parquet_sink.model.ranges import NO_TRIES, Tries
from parquet_sink.model.receipts import Receipt

MOST_WAITING: Final = 1
MOST_PARALLEL: Final = 8


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
        try:
            return self._deliverer.deliver(upload.file, upload.earlier, upload.superseded)
        except ConnectorError as error:
            if self._passes_over and isinstance(error, UploadRefused) and error.of_file is not None:
                return self._passed_over(upload.file, error)
            self._fail(queue)
            if isinstance(error, UploadPostponed):
                remove_unsent(upload.file.path)  # the next attempt makes it again
            return self._deliverer.failed(upload.file, error)

    def _passed_over(self, file: FinishedFile, error: UploadRefused) -> Receipt:
        receipt = self._deliverer.failed(file, error)
        remove_unsent(file.path)
        return replace(receipt, failure=None, passed_over=error.of_file, next_offset=file.last_offset + 1)

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
