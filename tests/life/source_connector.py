"""One source connector without Spark and Kafka: its own planner, task, flush, committer and storages; time is told.

What Spark does is done here: a tick, the tasks of a micro-batch, a commit, an abort after one that raised.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, cast

import pytest

from parquet_sink.addons.sources.flow import stream as source_stream
from parquet_sink.addons.sources.flow.flow import SourceFlow
from parquet_sink.addons.sources.flow.flush import SourceFlush
from parquet_sink.addons.sources.flow.outcome import SourceWork
from parquet_sink.addons.sources.flow.planner import SourcePlanner
from parquet_sink.addons.sources.flow.positions import SourcePositions
from parquet_sink.addons.sources.flow.record_sender import Delivered, Outgoing, RecordSender
from parquet_sink.addons.sources.memory import FILE as MEMORY
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.convert.settings import ConverterSettings
from parquet_sink.errors import BrokerAway, ConnectorError, KafkaRefused
from parquet_sink.files.storage import prepare_connector
from parquet_sink.model.events import RecordsDelivered
from parquet_sink.model.instance import Instance
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.spark import handoff
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.worker_config.offset_storage import OffsetStorageSettings
from tests.factories import Clock

TOPIC: Final = "lines"
SMALL: Final = 60
"""Bytes that a record may have, until an operator raises it."""


class Crash(BaseException):
    """A process ends here, whatever it was about to do."""


class Fuse:
    """Counts effects; at the one that is asked for, a process ends."""

    def __init__(self) -> None:
        self.left: int | None = None

    def effect(self) -> None:
        """Something is about to be done, or was done just now."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Crash


class Brokers:
    """What they have, and how they answer. log: values, in the order in which they came.

    at: before which record of a micro-batch `how` begins: `away`, `refuse`, or `unheard`, where they take all and the
    answer is lost. landed: how many of the records before are there all the same.
    """

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self.log: list[bytes] = []
        self.how, self.at, self.landed = "", 0, 0
        self.meanwhile: Callable[[], None] | None = None
        self.meanwhile_at = 0
        self.acknowledged = 0


class Sender:
    """Stands for `RecordSender`, over these brokers."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers, self._on_way, self._count = brokers, cast("list[bytes]", []), 0
        self._failed: ConnectorError | None = None
        self.delivered: dict[tuple[str, int], Delivered] = {}

    def send(self, one: Outgoing) -> None:
        """As the client does: what failed once fails again."""
        brokers = self._brokers
        brokers.fuse.effect()
        if brokers.meanwhile is not None and self._count >= brokers.meanwhile_at:
            happens, brokers.meanwhile = brokers.meanwhile, None
            happens()
        if brokers.how in {"away", "refuse"} and self._count >= brokers.at:
            self._fail()
        self._count += 1
        self._on_way.append(one.value or b"")

    def flush(self) -> None:
        """All of it, or what the brokers had taken when they went."""
        self._brokers.fuse.effect()
        if self._failed is not None:
            raise self._failed
        if not self._on_way:
            return
        if self._brokers.how == "unheard":
            self._brokers.log += self._on_way
            self._failed = BrokerAway("Nobody answers.")
            raise self._failed
        self._land(len(self._on_way))
        self._brokers.fuse.effect()

    def close(self) -> None:
        """Nothing is kept."""

    def _fail(self) -> None:
        if self._failed is None:
            self._land(min(self._brokers.landed, len(self._on_way)))
            kind = BrokerAway if self._brokers.how == "away" else KafkaRefused
            self._failed = kind("The brokers do not take this.")
        raise self._failed

    def _land(self, count: int) -> None:
        first = len(self._brokers.log)
        self._brokers.log += self._on_way[:count]
        if count:
            self.delivered[TOPIC, 0] = Delivered(count, first, first + count - 1)
            self._brokers.acknowledged += count


class Connector:
    """Of one life. fuse: where a process ends. failed: it waits for somebody to start it again."""

    def __init__(self, folder: Path, file: Path, clock: Clock, fuse: Fuse, patch: pytest.MonkeyPatch) -> None:
        self.clock, self.fuse, self.brokers = clock, fuse, Brokers(fuse)
        self.file, self.cured, self.failed, self.failure = file, False, False, ""
        self._folder, self._number = folder, 0
        self._planner: SourcePlanner | None = None
        self._state: SqliteStore | None = None
        self._instance = Instance.new()
        self._patch(patch)

    def settings(self) -> SourceSettings:
        """As the connector class makes them."""
        most = "1048576" if self.cured else str(SMALL)
        task = {"file": str(self.file), "name": self.file.name, "topic": TOPIC, "batch.size": "3", "longest.line": most}
        storage = OffsetStorageSettings(file=str(self._folder / "offsets"))
        return SourceSettings(
            "s",
            "parquet_sink.addons.sources.file.task:FileTask",
            (task,),
            f"file {self.file}",
            (TOPIC,),
            storage,
            producer={"max.request.size": most},
            value=ConverterSettings("string"),
            tmp_dir=str(self._folder / "tmp"),
            restart=RestartSettings(pause_ms=1_000, longest_ms=4_000, away_ms=-1),
        )

    @property
    def runs(self) -> bool:
        """Whether a query looks after its file."""
        return self._planner is not None

    def start(self) -> None:
        """A program that begins."""
        self._number += 1
        settings = self.settings()
        prepare_connector(settings.tmp_dir, settings.name)
        self._state = self._store().for_new_run(handoff.state_path(settings))
        run = self._folder / f"run-{self._number}"
        self._given = handoff.write(settings, run, self._state.ids, self._instance)
        self._flow = SourceFlow(self._given.settings)
        self._flow._folder = self._given.folder
        self._query()

    def micro_batch(self, polls: int, looked: Callable[[], None]) -> None:
        """A tick, and what comes of it; a failure ends the query, and the connector waits. looked: the tick is over."""
        assert self._planner is not None
        try:
            due = self._planner.tick()
            looked()
            if not due:
                return
            flush = SourceFlush(
                self._given.settings,
                lambda settings: cast(RecordSender, Sender(self.brokers)),
                self._passing,
                float(polls),
            )
            outcomes = tuple(flush.run(SourceWork.from_json(one.to_json())) for one in due)
            self._committed([source_stream.SourceOutcomes((one,)) for one in outcomes])
        except ConnectorError as error:
            self.failure = str(error)
            self._end_query()
            self.failed = True

    def _committed(self, messages: list[source_stream.SourceOutcomes]) -> None:
        """As Spark does: a commit that raises is followed by an abort, in another process."""
        try:
            source_stream.SourceWriter(self._given).commit(messages, 1)
        except ConnectorError:
            source_stream.SourceWriter(self._given).abort(messages, 1)
            raise

    def counted(self) -> int:
        """Records that the events of this run tell of."""
        assert self._state is not None
        events = self._state.events_after(0).events
        return sum(one.records for one in events if isinstance(one, RecordsDelivered))

    def stop(self) -> None:
        """In order: what was reached is stored."""
        if self._planner is not None:
            self._end_query()
        self._forget()

    def kill(self) -> None:
        """The program, with all its processes."""
        self._planner = None
        self._forget()

    def crash_query(self) -> None:
        """The planner's process; the program stores what was reached, and starts it again."""
        self._planner = None
        self._settle()
        assert self._state is not None
        self._state.clear_for_restart()
        self._query()

    def positions(self) -> Mapping[str, Any]:
        """What is stored."""
        with closing(SourcePositions(self.settings(), str(self._folder))) as found:
            found.read()
            return found.places

    def lose_memory(self) -> None:
        """What is kept beside the positions."""
        for found in (self._folder / "tmp").rglob(MEMORY):
            found.unlink()

    def _query(self) -> None:
        self.failed, self._planner = False, None
        assert self._state is not None
        positions = SourcePositions(self._given.settings, self._given.folder)
        planner = SourcePlanner(self._given.settings, self._state, positions, self.clock, self.clock)
        planner.begin()
        self._planner = planner

    def _end_query(self) -> None:
        self._planner = None
        self._settle()

    def _settle(self) -> None:
        assert self._state is not None
        self._flow.settle(self._instance, self._state)

    def _forget(self) -> None:
        self.failed = False
        if self._state is not None:
            self._state.close()
            self._state = None

    def _passing(self) -> float:
        """A poll takes its time."""
        self.clock.seconds += 0.5
        return self.clock.seconds

    def _store(self) -> type[SqliteStore]:
        return source_stream.SqliteStore

    def _patch(self, patch: pytest.MonkeyPatch) -> None:
        """Every effect of the connector goes by the fuse; nothing is synced, since no power fails."""
        fuse, real = self.fuse, os.replace

        class Store(SqliteStore):
            def set(self, field: Any, value: Any) -> None:
                fuse.effect()
                super().set(field, value)
                fuse.effect()

            def append_events(self, events: Any) -> None:
                fuse.effect()
                super().append_events(events)

            def record_failure(self, failure: Any) -> None:
                fuse.effect()
                super().record_failure(failure)

        def put(old: str, new: str) -> None:
            fuse.effect()
            real(old, new)
            fuse.effect()

        patch.setattr(source_stream, "SqliteStore", Store)
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr("parquet_sink.addons.sources.memory.os.replace", put)
