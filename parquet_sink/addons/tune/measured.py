"""How long the parts of a micro-batch took, from the events of connectors' runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np

from parquet_sink.addons.tune.model import Durations
from parquet_sink.model.events import ConnectorRunning, Event, FileAccepted, OffsetCommitted, RangePlanned
from parquet_sink.model.receipts import Receipt

LEAST_BATCHES: Final = 5
"""So few say nothing."""
STEPS: Final = 16
"""Into how many equally likely parts micro-batches are divided by how long they took."""


@dataclass
class _Batch:
    """Ranges that were planned together. began_s: epoch seconds; committed_s: when the next tick committed them.

    first: after the connector's start.
    """

    began_s: float
    starts: set[tuple[str, int, int]] = field(default_factory=set)
    files: list[Receipt] = field(default_factory=list)
    committed_s: float | None = None
    first: bool = False


def durations_of(logs: Sequence[Sequence[Event]], given: Durations, tick_ms: float) -> tuple[Durations, int]:
    """With what happened in place of what is given; and of how many micro-batches, 0 for too few.

    logs: the events of each connector, in their order. tick_ms: the time between two ticks, the longest of theirs. A
    range's first file tells when its task had begun; the next file of it how long records take; the commit when the
    next tick came, unless that had to wait for its time. The first micro-batch after a start is left out: it is slow.
    """
    batches = [one for events in logs for one in _batches(events) if one.files and not one.first]
    begun = [found for one in batches if (found := _begun_ms(one)) is not None]
    if len(begun) < LEAST_BATCHES:
        return given, 0
    ended = [found for one in batches if (found := _ended_ms(one, tick_ms)) is not None]
    uploads = [1000 * float(file.seconds.get("upload", 0.0)) for one in batches for file in one.files]
    middle = max(float(np.mean(begun)), 1.0)
    factors = np.quantile(begun, (np.arange(STEPS) + 0.5) / STEPS) / middle
    records = [found for one in batches for found in _following(one)]
    range_ms = min(given.range_ms, middle / 2)
    taken = replace(
        given,
        plan_ms=middle - range_ms,
        range_ms=range_ms,
        record_us=_per_record_us(records) if len(records) >= LEAST_BATCHES else given.record_us,
        upload_ms=float(np.median(uploads)),
        finish_ms=float(np.mean(ended)) if len(ended) >= LEAST_BATCHES else given.finish_ms,
        variation=tuple(float(factor) for factor in factors),
    )
    return taken, len(begun)


def _batches(events: Sequence[Event]) -> Iterator[_Batch]:
    """Ranges planned one after the other are of one micro-batch; what comes next became of them."""
    current: _Batch | None = None
    planning = started = False
    for event in events:
        started = started or isinstance(event, ConnectorRunning)
        if isinstance(event, RangePlanned):
            if not planning:
                if current is not None:
                    yield current
                current, started = _Batch(event.at_s, first=started), False
            assert current is not None
            current.starts.add((event.topic, event.partition, event.start))
        elif current is not None and isinstance(event, FileAccepted):
            current.files.append(event.receipt)
        elif current is not None and isinstance(event, OffsetCommitted) and current.committed_s is None:
            current.committed_s = event.at_s if current.files else None
        planning = isinstance(event, RangePlanned)
    if current is not None:
        yield current


def _begun_ms(batch: _Batch) -> float | None:
    """From the plan until the first task had read its first file's records: all but writing and sending it."""
    found = [
        1000 * (file.accepted_at - batch.began_s - sum(file.seconds.values()))
        for file in batch.files
        if file.accepted_at is not None and (file.topic, file.partition, file.first_offset) in batch.starts
    ]
    return max(min(found), 0.0) if found else None


def _following(batch: _Batch) -> Iterator[tuple[float, int]]:
    """Seconds from a file to the next of its range, and the records of that, where writing and not sending took it."""
    ordered = sorted(batch.files, key=lambda file: (file.topic, file.partition, file.first_offset))
    for before, file in pairwise(ordered):
        follows = before.topic == file.topic and before.partition == file.partition
        if follows and before.accepted_at is not None and file.accepted_at is not None:
            taken_s = file.accepted_at - before.accepted_at
            if taken_s > file.seconds.get("upload", 0.0):
                yield taken_s, file.records


def _per_record_us(files: Sequence[tuple[float, int]]) -> float:
    """Of the larger half of all files: what a file takes beside its records hardly shows there."""
    middle = float(np.median([records for _, records in files]))
    larger = [(taken_s, records) for taken_s, records in files if records >= middle]
    return 1e6 * sum(taken_s for taken_s, _ in larger) / sum(records for _, records in larger)


def _ended_ms(batch: _Batch, tick_ms: float) -> float | None:
    """From the last file until the next tick, where that came at once: the micro-batch had taken longer than a tick."""
    last_s = max(file.accepted_at or 0.0 for file in batch.files)
    if batch.committed_s is None or (batch.committed_s - batch.began_s) * 1000 < 1.2 * tick_ms:
        return None
    after_ms = 1000 * (batch.committed_s - last_s)
    return after_ms if after_ms >= 0 and (last_s - batch.began_s) * 1000 > tick_ms else None
