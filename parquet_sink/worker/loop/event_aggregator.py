"""Keeps what events say of each connector: sums, the last upload and error, what is waited for.

A `worker.loop.events.Listener`; it is written and read by the worker's loop alone.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from parquet_sink.config.report import counted, quoted
from parquet_sink.model.events import (
    ConnectorFailed,
    ConnectorRestarting,
    ConnectorRunning,
    ConnectorStarting,
    ConnectorStopped,
    ConnectorWaiting,
    Event,
    FileAccepted,
    FileArchived,
    FileFailed,
    FileNotified,
    FlushIntervalExceeded,
    RangeFailed,
    RangeFlushed,
    RangePlanned,
    RangePostponed,
    RecordsDelivered,
    RecordsSetAside,
    SourcePolled,
    TopicsMissing,
)
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import HELD_WARNING_S, held_message
from parquet_sink.model.ranges import PartitionProgress as Standing
from parquet_sink.model.receipts import Archiving, Receipt
from parquet_sink.worker.herder.values import (
    Flushing,
    LastError,
    LastUpload,
    LiveWarning,
    PartitionProgress,
    WarningKind,
)
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.status import Status
from parquet_sink.worker.loop.totals import FileTotals

log = logging.getLogger(__name__)

OVERALL: Final = ("", -1)
"""In the place of a topic-partition: all of the connector."""
LOOK_S: Final = 1.0
"""How often it is looked how topic-partitions stand."""
SILENT_S: Final = 60.0
"""After so long without a look of its planner somebody is warned: its requests take less where a broker is silent."""
LOOK_SHARE: Final = 100
"""Less often where that would be so much of a core: 15 µs for each topic-partition, 2 for one that stands still."""


@dataclass
class ConnectorSnapshot:
    """Of one connector. topics: of which files were accepted. postponed: by topic-partition, until when and why.

    missing: topics that are not there, as far as that is known. late: while the flush interval is not kept. under_way:
    ranges of the micro-batch that runs. trouble: the topic-partition of the last error, OVERALL for one of the
    connector, None for one that nothing heals, such as records that were set aside. still: topic-partitions that stand
    still, as they were read and as they are shown: most of very many.
    """

    totals: FileTotals
    last_upload: LastUpload | None = None
    last_error: LastError | None = None
    trouble: PartitionKey | None = None
    partitions: tuple[PartitionProgress, ...] = ()
    still: dict[PartitionKey, tuple[Standing, PartitionProgress]] = field(default_factory=dict)
    archive_waiting: int = 0
    topics: set[str] = field(default_factory=set)
    unavailable: str = ""
    missing: TopicsMissing | None = None
    late: FlushIntervalExceeded | None = None
    under_way: dict[PartitionKey, RangePlanned] = field(default_factory=dict)
    postponed: dict[PartitionKey, tuple[float, str]] = field(default_factory=dict)
    planner_silent_s: float | None = None

    @property
    def flushing(self) -> Flushing | None:
        if not self.under_way:
            return None
        ranges = self.under_way.values()
        return Flushing(len(ranges), sum(one.end - one.start for one in ranges), min(one.at_s for one in ranges))

    def heal(self, at_s: float, *troubles: PartitionKey) -> None:
        """What went wrong last is over, if it is one of these."""
        if self.last_error is not None and self.last_error.healed_s is None and self.trouble in troubles:
            self.last_error = replace(self.last_error, healed_s=at_s)

    def waits_for(self, now_s: float) -> str:
        """What heals and is waited for, in words with the time of the next try; empty when nothing is."""
        if self.unavailable:
            return self.unavailable
        if self.missing_topics:
            several, them = ("s", "them") if len(self.missing_topics) > 1 else ("", "it")
            return (
                f"Topic{several} {', '.join(self.missing_topics)}, not there (deleted, not made yet, or not to be "
                f"seen with these rights); create {them}, or correct [topics]."
            )
        if not self.postponed:
            return ""
        (topic, partition), (due_s, why) = min(self.postponed.items(), key=lambda item: item[1][0])
        more = f" So are {len(self.postponed) - 1} more topic-partitions." if len(self.postponed) > 1 else ""
        return f"Topic {topic}, topic-partition {partition}: {why}; {next_try(due_s - now_s)}.{more}"

    @property
    def missing_topics(self) -> tuple[str, ...]:
        return () if self.missing is None else self.missing.topics

    @property
    def silence(self) -> str:
        """What is said of a planner that does not look; empty while it does."""
        silent_s = self.planner_silent_s or 0.0
        if silent_s < SILENT_S:
            return ""
        return (
            f"its planner has not looked for records for {silent_s:.0f} s, so lag and ages are as old; if that goes "
            "on, restart the connector."
        )

    @property
    def held_back(self) -> tuple[float, str]:
        """For how long an open transaction holds records back, the longest, and what is said of it; 0 for none."""
        held = [(one.held_s, one) for one in self.partitions if one.held_s is not None and one.held_at is not None]
        if not held:
            return 0.0, ""
        held_s, first = max(held, key=lambda item: item[0])
        more = f"; so are {len(held) - 1} more topic-partitions" if len(held) > 1 else ""
        return held_s, f"{held_message(first.topic, first.partition, first.held_at or 0, held_s)}{more}."

    @property
    def live_warnings(self) -> tuple[LiveWarning, ...]:
        found = []
        if self.silence:
            found.append(LiveWarning(WarningKind.PLANNER_SILENT, self.silence))
        if self.held_back[0] >= HELD_WARNING_S:
            found.append(LiveWarning(WarningKind.HELD_BACK, self.held_back[1]))
        if self.missing is not None and self.missing.unmatched:
            message = f"no topic matches [topics.regex] {quoted(self.missing.unmatched)}; create one, or correct it."
            found.append(LiveWarning(WarningKind.NO_TOPIC_MATCHES, message))
        if self.late is not None:
            found.append(LiveWarning(WarningKind.FLUSH_INTERVAL_EXCEEDED, self.late.described))
        return tuple(found)


def next_try(wait_s: float) -> str:
    """When something is tried again, in words."""
    return f"it is tried again in {wait_s:.0f} s" if wait_s >= 1 else "it is tried again now"


class EventAggregator:
    """A snapshot for each connector. clock: epoch seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._snapshots: dict[str, ConnectorSnapshot] = {}
        self._looked_s, self._pause_s = 0.0, LOOK_S

    def snapshot(self, name: str) -> ConnectorSnapshot:
        """Of a connector; an empty one of one of which nothing is known."""
        return self._snapshots.setdefault(name, ConnectorSnapshot(FileTotals(self._clock())))

    def forget(self, name: str) -> None:
        self._snapshots.pop(name, None)

    def on_event(self, event: Event) -> None:
        snapshot = self.snapshot(event.connector)
        if isinstance(event, FileAccepted):
            _accepted(snapshot, event)
        elif isinstance(event, FileArchived):
            _archived(snapshot, event.at_s, event.file_name, event.archive)
        elif isinstance(event, RecordsDelivered):
            _delivered(snapshot, event)
        elif isinstance(event, RecordsSetAside):
            snapshot.totals.set_aside += event.count
            _error(snapshot, event.at_s, f"{counted(event.count, 'record')} diverted; the first one: {event.reason}")
        elif isinstance(event, SourcePolled):
            _polled(snapshot, event)
        elif isinstance(event, RangePostponed):
            _postponed(snapshot, event)
        elif isinstance(event, RangeFlushed | RangeFailed):
            snapshot.postponed.pop((event.topic, event.partition), None)
            if isinstance(event, RangeFlushed):
                snapshot.heal(event.at_s, (event.topic, event.partition), OVERALL)
        self._on_trouble(snapshot, event)
        _under_way(snapshot, event)

    @staticmethod
    def _on_trouble(snapshot: ConnectorSnapshot, event: Event) -> None:
        """What went wrong, what is waited for, and what of that is over."""
        if isinstance(event, FileFailed | RangeFailed | ConnectorFailed | ConnectorWaiting):
            _trouble(snapshot, event)
        elif isinstance(event, FileNotified) and event.given_up is not None:
            _error(snapshot, event.at_s, f"notice {event.notice_id} is given up: {event.given_up}")
        if isinstance(event, ConnectorWaiting):
            snapshot.unavailable = event.reason
        elif isinstance(event, ConnectorRunning | ConnectorStarting | ConnectorFailed):
            snapshot.unavailable = ""
        if isinstance(event, ConnectorRunning):
            snapshot.heal(event.at_s, OVERALL)
        if isinstance(event, ConnectorStarting | ConnectorFailed | ConnectorStopped):
            snapshot.postponed.clear()
            snapshot.missing = snapshot.late = None
        elif isinstance(event, TopicsMissing):
            snapshot.missing = event
        elif isinstance(event, FlushIntervalExceeded):
            snapshot.late = event if event.partitions else None
        if isinstance(event, ConnectorStopped | ConnectorFailed):  # nobody looks any more: no figure, for a wrong one
            snapshot.unavailable, snapshot.partitions, snapshot.planner_silent_s = "", (), None

    def refresh(self, connectors: Sequence[Connector]) -> None:
        """Looks how topic-partitions stand, once a second at most."""
        now_s, began_s = self._clock(), time.thread_time()
        if abs(now_s - self._looked_s) < self._pause_s:
            return
        self._looked_s = now_s
        for connector in connectors:
            self._look(connector, now_s)
        self._pause_s = max(LOOK_S, LOOK_SHARE * (time.thread_time() - began_s))

    def _look(self, connector: Connector, now_s: float) -> None:
        if connector.state is None or connector.status is Status.DONE:
            return
        snapshot = self.snapshot(connector.settings.name)
        snapshot.archive_waiting = connector.waiting_files()
        if connector.status is Status.FAILED:
            return
        _note_silence(snapshot, connector)
        accepted = {(one.topic, one.partition): one.next_offset for one in connector.state.accepted()}
        snapshot.partitions = _shown(snapshot, connector.state.progress(), accepted, now_s)
        if snapshot.postponed:
            there = {(one.topic, one.partition) for one in snapshot.partitions}
            snapshot.postponed = {key: wait for key, wait in snapshot.postponed.items() if key in there}

    def close(self, connectors: Sequence[Connector]) -> None:
        """Nothing is shown, so nothing ends."""


def _note_silence(snapshot: ConnectorSnapshot, connector: Connector) -> None:
    """Note since when a planner has not looked, as it does between two micro-batches; a long silence is logged once."""
    before = snapshot.planner_silent_s or 0.0
    snapshot.planner_silent_s = None if snapshot.under_way else connector.planner_silent_s()
    if before < SILENT_S <= (snapshot.planner_silent_s or 0.0):
        log.warning("connector %s: %s", connector.settings.name, snapshot.silence)


def _shown(
    snapshot: ConnectorSnapshot, progress: Sequence[Standing], accepted: Mapping[PartitionKey, int], now_s: float
) -> tuple[PartitionProgress, ...]:
    """How each topic-partition stands; one that stands still is not looked at again until it is read as another."""
    before, snapshot.still = snapshot.still, {}
    found = []
    for read in progress:
        key, still = (read.topic, read.partition), snapshot.totals.is_still(read)
        last = before.get(key) if still else None
        if last is None or last[0] is not read:
            (one,) = snapshot.totals.partitions([read], accepted, now_s)
            shown = PartitionProgress(
                one.topic, one.partition, one.lag, one.oldest_s, one.rate, one.away, one.held_at, one.held_s
            )
            last = read, shown
        if still:
            snapshot.still[key] = last
        found.append(last[1])
    return tuple(found)


def _under_way(snapshot: ConnectorSnapshot, event: Event) -> None:
    if isinstance(event, RangePlanned):
        snapshot.under_way[event.topic, event.partition] = event
    elif isinstance(event, RangeFlushed | RangeFailed | RangePostponed):
        snapshot.under_way.pop((event.topic, event.partition), None)
    elif isinstance(event, ConnectorStarting | ConnectorFailed | ConnectorStopped | ConnectorRestarting):
        snapshot.under_way.clear()


def _accepted(snapshot: ConnectorSnapshot, event: FileAccepted) -> None:
    receipt: Receipt = event.receipt
    snapshot.totals.add(receipt)
    snapshot.topics.add(event.topic)
    snapshot.heal(event.at_s, (event.topic, event.partition), OVERALL)
    if receipt.archive is not None:
        _archived(snapshot, event.at_s, receipt.file_name, receipt.archive)
    snapshot.postponed.pop((event.topic, event.partition), None)
    snapshot.last_upload = LastUpload(
        topic=event.topic,
        partition=event.partition,
        first_offset=receipt.first_offset,
        last_offset=receipt.last_offset,
        rows=receipt.rows,
        size_bytes=receipt.size_bytes,
        at_s=receipt.accepted_at or event.at_s,
    )


def _archived(snapshot: ConnectorSnapshot, at_s: float, file_name: str, archive: Archiving) -> None:
    snapshot.totals.add_archived(archive)
    if archive.cause is not None:
        _error(snapshot, at_s, f"file {file_name} is not archived: {archive.cause}")


def _delivered(snapshot: ConnectorSnapshot, event: RecordsDelivered) -> None:
    snapshot.totals.add_records(event)
    snapshot.topics.add(event.topic)
    snapshot.heal(event.at_s, (event.topic, event.partition), OVERALL)
    snapshot.postponed.pop((event.topic, event.partition), None)
    snapshot.last_upload = LastUpload(
        event.topic, event.partition, event.first, event.last, event.records, 0, event.at_s
    )


def _polled(snapshot: ConnectorSnapshot, event: SourcePolled) -> None:
    if event.passed_over:
        snapshot.totals.set_aside += event.passed_over
        _error(
            snapshot,
            event.at_s,
            f"{counted(event.passed_over, 'record')} skipped; the first one: {event.first_fault}",
        )


def _postponed(snapshot: ConnectorSnapshot, event: RangePostponed) -> None:
    why = f"not accepted at {event.attempts} attempts within {event.elapsed_s:.0f} s"
    if event.attempts == 1:
        why = "not accepted at the first attempt"
    if event.reason:
        why = f"{event.reason.rstrip('.')} ({why})"
    snapshot.postponed[event.topic, event.partition] = event.at_s + event.wait_s, why
    if event.reason:
        _error(snapshot, event.at_s, event.reason, (event.topic, event.partition))


def _trouble(snapshot: ConnectorSnapshot, event: FileFailed | RangeFailed | ConnectorFailed | ConnectorWaiting) -> None:
    if isinstance(event, ConnectorWaiting):
        message = event.reason
    elif isinstance(event, FileFailed):
        message = event.receipt.failure.message if event.receipt.failure is not None else ""
    else:
        message = event.failure.message
    if message:
        where = (event.topic, event.partition) if isinstance(event, FileFailed | RangeFailed) else OVERALL
        _error(snapshot, event.at_s, message, where)


def _error(snapshot: ConnectorSnapshot, at_s: float, message: str, trouble: PartitionKey | None = None) -> None:
    snapshot.last_error, snapshot.trouble = LastError(message, at_s), trouble
