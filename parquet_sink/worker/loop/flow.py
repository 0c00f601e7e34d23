"""What differs between kinds of connectors in a run: a `Flow` for each, so that a connector's life has no branch.

A flow starts its streaming query on Spark, settles once that has ended, and reports what a stop leaves behind. Where it
goes on is told by what is stored outside (the group's offsets, a source's offset storage), never by Spark.
"""

import logging
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from parquet_sink.archive.waiting import WaitingFolder
from parquet_sink.connectors.kinds import part
from parquet_sink.errors import ConnectorError
from parquet_sink.files import storage
from parquet_sink.history.writer import HistoryWriter
from parquet_sink.kafka.group import manual_offsets
from parquet_sink.model.events import Event
from parquet_sink.model.instance import Instance
from parquet_sink.parked.names import any_parked
from parquet_sink.planner import learned_topic
from parquet_sink.settings.connector import ConnectorSettings, TopicSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark.behind_commit import BehindCommit, count_notices
from parquet_sink.spark.handoff import state_path
from parquet_sink.state.sqlite import SqliteStore, forget_delivered
from parquet_sink.state.store import DRAINED, REPORTED_MS, SETTLED
from parquet_sink.worker.herder.values import OFFSET, PARTITION, TOPIC, StoredOffset
from parquet_sink.worker.loop import group_commit
from parquet_sink.worker.loop.restarts import Positions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger(__name__)

OFTEN_MS: Final = 6_000
"""Twice as long as a move waits for a flush: with a shorter interval it would wait for one after the other."""
FIRST_S: Final = 10.0
"""So long before it is due, and after, a first flush is waited for: a worker that stops hands over within twice as long
(HAND_OVER_S)."""


class Flow(Protocol):
    """Of one connector, made from its settings. Methods but `start_query` may be called in any thread, one at a time.

    origin: where a query goes on, in words. given_up: what becomes of a flush that a stop gives up, in words.
    """

    origin: str
    given_up: str

    def make_ready(self) -> None:
        """What it needs on this machine beside its folder and state store. Raises ConnectorError."""

    def start_query(self, spark: "SparkSession", folder: Path, *, until_caught_up: bool) -> "StreamingQuery":
        """folder: the connector's run folder, as `spark.handoff.write` made it. In a thread that knows the session."""
        ...

    def settle(self, instance: Instance, state: SqliteStore) -> None:
        """After the query ended: what was delivered is stored where it goes on from. Failures are logged."""

    def positions(self, instance: Instance, state: SqliteStore) -> Positions:
        """Where it stands, to tell whether it got anywhere since the last failure."""
        ...

    def has_begun(self, state: SqliteStore) -> bool:
        """Whether a query found out where it goes on."""
        ...

    def in_flight(self, state: SqliteStore) -> bool:
        """Whether a flush may be in progress, of a query that runs."""
        ...

    def next_flush_s(self, state: SqliteStore, started_s: float) -> float:
        """Seconds until a flush by age that is worth waiting for, judged by the last one, below 0 after that.

        0 about when the first is due (FIRST_S): its records may have waited elsewhere before. Infinite long before and
        after, where no records wait, and where they never wait for long (OFTEN_MS). started_s: when the connector was,
        of `time.monotonic`.
        """
        return math.inf

    def left(self, state: SqliteStore) -> str | None:
        """What a stop leaves undelivered, for the log; None for nothing, or where nobody knows."""
        return None

    def news(self) -> Sequence[Event]:
        """What happened beside the query since this was asked last."""
        return ()

    def at_rest(self, within_s: float) -> bool:
        """Whether nothing is done beside the query, of a connector that has ended, and there is no news of it.

        within_s: how long it may take from when this is asked first.
        """
        return True

    def close(self) -> None:
        """Ends what is done beside the query; it may not have been made ready."""

    def waiting_files(self) -> int:
        """How many wait for the archive, of a connector that does not wait for it."""
        return 0

    def nowhere_else(self) -> str | None:
        """What of it on this machine is nowhere else, with the cure; None where all may be removed."""
        return None

    def remove_beside(self) -> None:
        """Removes what is not in its folder, of a connector that is deleted."""


class TopicFlow(Flow):
    """Of any sink: it goes on from its group's offsets, to which what was accepted is committed."""

    origin = "the group's offsets"
    given_up = "its records are delivered again at the next start"

    def __init__(self, settings: TopicSettings) -> None:
        self._settings = settings

    def settle(self, instance: Instance, state: SqliteStore) -> None:
        if not state.get(SETTLED):
            group_commit.commit_accepted(self._settings, instance, state)

    def positions(self, instance: Instance, state: SqliteStore) -> Positions:
        return group_commit.positions(self._settings, instance, state)

    def has_begun(self, state: SqliteStore) -> bool:
        """The planner looked for the first time."""
        return bool(state.progress())

    def start_query(self, spark: "SparkSession", folder: Path, *, until_caught_up: bool) -> "StreamingQuery":
        from parquet_sink.spark.query import start_query

        return start_query(spark, self._settings, folder, until_caught_up=until_caught_up)

    def in_flight(self, state: SqliteStore) -> bool:
        """Not before it has begun, nor once it says so."""
        return self.has_begun(state) and not state.get(DRAINED)

    def left(self, state: SqliteStore) -> str | None:
        behind = group_commit.undelivered(state)
        return group_commit.stopped_message(behind) if behind else None

    def remove_beside(self) -> None:
        """What the next owner would have learned of it."""
        kafka = self._settings.kafka
        if kafka.owned.fence is None or kafka.owned.state_topic is None:
            return
        try:
            learned_topic.forget(self._settings.name, kafka)
        except ConnectorError as error:
            log.warning("connector %s: what it learned stays in the state topic: %s", self._settings.name, error)


class ParquetFlow(TopicFlow):
    """Of a sink that writes Parquet files."""

    given_up = "its files are sent again at the next start, under the same names"

    def __init__(self, settings: SinkSettings) -> None:
        super().__init__(settings)
        self._sink = settings
        self._behind = BehindCommit(settings)

    def make_ready(self) -> None:
        """Folder of parked records, history (a damaged one is created again before the first upload), archive."""
        settings = self._sink
        if settings.errors.parks:
            from parquet_sink.parked.folder import ParkedFolder  # loads Arrow, for few connectors

            ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes).prepare()
        history = HistoryWriter(settings.name, Path(settings.history_file), settings.history)
        history.check()
        history.close()
        self._behind.start()

    def next_flush_s(self, state: SqliteStore, started_s: float) -> float:
        interval_ms = self._sink.flush.commit_interval_ms
        if interval_ms < OFTEN_MS or (self.has_begun(state) and not group_commit.undelivered(state)):
            return math.inf
        at_ms = state.get(REPORTED_MS)
        if at_ms is not None:
            return (at_ms + interval_ms) / 1_000 - time.monotonic()
        first_s = started_s + interval_ms / 1_000 - time.monotonic()
        return 0.0 if abs(first_s) <= FIRST_S else math.inf

    def news(self) -> Sequence[Event]:
        return self._behind.news()

    def at_rest(self, within_s: float) -> bool:
        return self._behind.at_rest(within_s)

    def close(self) -> None:
        self._behind.close()

    def waiting_files(self) -> int:
        archive = self._sink.archive
        return 0 if archive is None or archive.required else len(WaitingFolder(archive.waiting).files())

    def nowhere_else(self) -> str | None:
        name, parked = self._sink.name, self._sink.parked_folder
        if any_parked(parked):
            return (
                f"Connector {name} has parked records in {parked}, which are nowhere else: send them with parquet-sink "
                f"parked replay --connector {name}, or give them up with parquet-sink parked drop --all --yes "
                f"--connector {name}."
            )
        if count := self.waiting_files():
            return (
                f"{count} files of connector {name} wait for the archive; let it take them, or remove "
                "connect.ems.archive.url."
            )
        if count := count_notices(self._sink):
            return (
                f"{count} notices of connector {name} wait for the webhook; let it take them, or remove "
                "connect.ems.notify.url."
            )
        return None

    def remove_beside(self) -> None:
        """Likewise; and a folder of its own for parked records, in which there are none."""
        super().remove_beside()
        from parquet_sink.parked.locks import CHANGES, REPLAY
        from parquet_sink.parked.scan import MARKER  # loads Arrow, where there is something to remove

        folder = Path(self._sink.parked_folder)
        if not (folder / MARKER).is_file():
            return
        for name in (CHANGES, REPLAY, MARKER):
            with suppress(OSError):
                (folder / name).unlink()
        storage.remove_empty(str(folder))


def flow_of(settings: ConnectorSettings) -> Flow:
    """The flow of a connector's kind."""
    found: Flow = part(settings, "flow")(settings)
    return found


class StoredOffsets(Protocol):
    """Of one connector. Methods raise ConnectorError."""

    def read(self) -> tuple[StoredOffset, ...]: ...

    def alter(self, offsets: Sequence[StoredOffset]) -> None:
        """All of them or none; an offset of None removes one."""

    def reset(self) -> None:
        """Removes all."""


class OfGroup:
    """A sink's: those of its consumer group."""

    def __init__(self, settings: TopicSettings) -> None:
        self._settings, self._kafka = settings, settings.kafka

    def read(self) -> tuple[StoredOffset, ...]:
        found = manual_offsets.read(self._kafka).items()
        return tuple(
            StoredOffset({TOPIC: topic, PARTITION: number}, {OFFSET: at}, end) for (topic, number), (at, end) in found
        )

    def alter(self, offsets: Sequence[StoredOffset]) -> None:
        wanted = {
            (one.partition[TOPIC], one.partition[PARTITION]): None if one.offset is None else one.offset[OFFSET]
            for one in offsets
        }
        manual_offsets.alter(self._kafka, wanted)

    def reset(self) -> None:
        """What the connector wrote down of them goes, too: its next start is as its first."""
        manual_offsets.reset(self._kafka)
        forget_delivered(state_path(self._settings))
        if self._kafka.owned.fence is not None and self._kafka.owned.state_topic is not None:
            learned_topic.forget(self._settings.name, self._kafka, ("delivered",))


def stored_offsets_of(settings: ConnectorSettings) -> StoredOffsets:
    """The way of a connector's kind."""
    found: StoredOffsets = part(settings, "stored_offsets")(settings)
    return found
