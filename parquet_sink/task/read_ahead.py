"""Batches of several ranges, read in a thread of their own while earlier ones are written, or in turn with writing.

librdkafka and Arrow let go of Python's lock, so that reading and writing of one topic-partition overlap where there is
a core for each; where there is not, taking turns costs less (`planner.admission.with_reading`).
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Self

from parquet_sink.kafka.batch_builder import BATCH_BYTES
from parquet_sink.kafka.small_ranges import SMALL_RECORDS
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch

AHEAD_BYTES: Final = 16 << 20
"""What is read of records that waits at most, unless a single batch is larger."""
AHEAD_BATCHES: Final = 12
"""Batches that wait at most: what they hold beside their arrays is not counted.

Reading goes on while a file is ended: 2.31 µs of wall time per record with 4, 1.84 with 12 (least of six, by turns, on
a busy machine; the medians were the same)."""
CLOSE_S: Final = 20.0
"""How long `close` waits for a read in progress: watermarks are asked for with a time limit of 15 s."""
SWITCH_S: Final = 0.0001
"""After which the thread that has Python's lock is asked for it, in place of 5 ms.

Arrow's functions let go of it and take it back dozens of times for a batch, and each time waited for the messages of a
poll: 3.4 µs of wall time per record with 5 ms, 2.8 with this, and no more CPU time (JSON of 150 bytes, 2 cores; least
of five, by turns)."""

Read = Callable[[PlannedRange], Iterator[RecordBatch]]
Item = RecordBatch | BaseException | None


class ReadAhead:
    """Iterates (range, batch), then (range, None) at each range's end, or (range, error) when it cannot be read.

    Ranges come one after the other, in order. Use as a context manager; at its end the thread ends.
    """

    def __init__(self, ranges: Sequence[PlannedRange], read: Read, ahead_bytes: int = AHEAD_BYTES) -> None:
        self._ranges, self._read = ranges, read
        self._most_bytes, self._bytes, self._closed = ahead_bytes, 0, False
        self._items: deque[tuple[PlannedRange, Item]] = deque()
        self._changed = threading.Condition()
        self._skipped: set[PlannedRange] = set()
        self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)

    def __enter__(self) -> Self:
        self._switch_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        self._thread.start()
        return self

    def __exit__(self, *trouble: object) -> None:
        sys.setswitchinterval(self._switch_s)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(CLOSE_S)

    def __iter__(self) -> Iterator[tuple[PlannedRange, Item]]:
        unfinished = len(self._ranges)
        while unfinished:
            planned, item = self._take()
            unfinished -= not isinstance(item, RecordBatch)
            yield planned, item

    def skip(self, planned: PlannedRange) -> None:
        """The rest of this range need not be read; its end comes all the same."""
        self._skipped.add(planned)

    def _run(self) -> None:
        for planned in self._ranges:
            try:
                for batch in self._read(planned):
                    if planned in self._skipped or not self._put(planned, batch):
                        break
                end: Item = None
            except BaseException as error:  # noqa: BLE001 - raised or reported by whoever takes it
                end = error
            if not self._put(planned, end):
                return

    def _put(self, planned: PlannedRange, item: Item) -> bool:
        """False when nobody takes anything any more."""
        size = _bytes(item)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room(size))
            if not self._closed:
                self._items.append((planned, item))
                self._bytes += size
                self._changed.notify_all()
            return not self._closed

    def _has_room(self, size: int) -> bool:
        fits = self._bytes + size <= self._most_bytes and len(self._items) < AHEAD_BATCHES
        return fits or not self._items

    def _take(self) -> tuple[PlannedRange, Item]:
        with self._changed:
            self._changed.wait_for(lambda: self._items)
            planned, item = self._items.popleft()
            self._bytes -= _bytes(item)
            self._changed.notify_all()
            return planned, item


class ReadInTurn:
    """The same, each batch read when it is asked for, by whoever asks."""

    def __init__(self, ranges: Sequence[PlannedRange], read: Read) -> None:
        self._ranges, self._read = ranges, read
        self._skipped: set[PlannedRange] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        """Nothing is under way."""

    def __iter__(self) -> Iterator[tuple[PlannedRange, Item]]:
        for planned in self._ranges:
            yield from ((planned, item) for item in self._items(planned))

    def skip(self, planned: PlannedRange) -> None:
        """The rest of this range is not read; its end comes all the same."""
        self._skipped.add(planned)

    def _items(self, planned: PlannedRange) -> Iterator[Item]:
        batches = self._read(planned)
        while planned not in self._skipped:
            try:
                batch = next(batches)
            except StopIteration:
                break
            except Exception as error:  # noqa: BLE001 - raised or reported by whoever takes it
                yield error
                return
            yield batch
        yield None


def reading(ranges: Sequence[PlannedRange], read: Read) -> ReadAhead | ReadInTurn:
    """As the ranges of a task say, which all say the same; in turn where none is worth a thread."""
    ahead = any(one.read_ahead and _is_long(one) for one in ranges)
    return ReadAhead(ranges, read) if ahead else ReadInTurn(ranges, read)


def _is_long(planned: PlannedRange) -> bool:
    """Whether there is something to read while something of it is written, as far as that is known.

    Of 300 ranges of three records the second thread made of 1.0 s of CPU 1.9 s, by `SWITCH_S`, while files were sent.
    """
    records = planned.end - planned.start
    return records > SMALL_RECORDS or records * (planned.known.bytes_per_record or 0.0) > BATCH_BYTES


def _bytes(item: Item) -> int:
    return item.nbytes if isinstance(item, RecordBatch) else 0
