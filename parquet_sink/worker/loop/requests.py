"""What may be asked of a worker about its connectors, as `herder.protocol` says it. Only its one loop calls this.

Each does all of it or nothing: what is wrong is raised before anything is stored, and stored before anything is done.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from parquet_sink.connectors.loading import Loaded, check_unique
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder.errors import (
    ConnectorExists,
    InvalidConnector,
    OffsetsBusy,
    OffsetsRefused,
    UnknownTask,
    WrongState,
)
from parquet_sink.worker.herder.store import StoredConnector
from parquet_sink.worker.herder.values import ConnectorInfo, ConnectorStatus, State, TargetState
from parquet_sink.worker.loop.hosted import Hosted
from parquet_sink.worker.loop.judging import NOTHING, Judged
from parquet_sink.worker.loop.roster import Roster, tell, warn

NOT_READ: Final = "The configuration of connector {} is not read yet; ask again."


class Outdated(Exception):
    """The configuration is not any more the one that was judged: it must be judged again."""


class Requests:
    """Methods are those of `worker.herder.protocol.Herder`, of what was judged. Those that take it raise Outdated."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    def create(self, name: str, judged: Judged, target: TargetState | None = None) -> ConnectorInfo:
        self._check_group(name, judged)
        if name in self._roster.hosted:
            raise ConnectorExists(name)
        stored = StoredConnector(judged.loaded.properties, target or TargetState.STARTED)
        self._roster.store.put(name, stored)
        one = self._roster.hosted[name] = Hosted(name, stored, judged.loaded)
        warn(name, judged.loaded)
        return one.info()

    def put(self, name: str, judged: Judged) -> tuple[ConnectorInfo, bool]:
        self._check_current(name, judged.before)
        if name not in self._roster.hosted:
            return self.create(name, judged), True
        self._check_group(name, judged)
        one = self._roster.hosted[name]
        stored = replace(one.stored, config=judged.loaded.properties)
        self._roster.store.put(name, stored)
        one.change(stored, judged.loaded)
        warn(name, judged.loaded)
        return one.info(), False

    def delete(self, name: str) -> None:
        one = self._roster.named(name)
        self._roster.store.delete(name)
        one.deleted = True
        self._roster.leaving.append(self._roster.hosted.pop(name))

    def set_target(self, name: str, target: TargetState, loaded: Loaded | None = None) -> None:
        """loaded: its configuration, judged again, where it is to leave STOPPED."""
        one = self._roster.named(name)
        before = one.target
        if target is before:
            return
        if before is TargetState.STOPPED:
            self._take_up(one, loaded)
        self._roster.keep(one, replace(one.stored, target=target))

    def restart(self, name: str, loaded: Loaded, *, only_failed: bool) -> ConnectorStatus:
        """Connector and tasks are one here, so either both are started again or none."""
        one = self._roster.named(name)
        if (one.failed or not only_failed) and one.target is not TargetState.STOPPED:
            self._take_up(one, loaded)
            one.replace()
        return self._roster.status(one)

    def restart_task(self, name: str, task: int, loaded: Loaded) -> None:
        """One after the other, each of a connector's tasks restarts it once."""
        one = self._roster.named(name)
        if task not in {found.id for found in self._roster.status(one).tasks}:
            raise UnknownTask(name, task)
        if one.state is not State.RESTARTING:
            self._take_up(one, loaded)
            one.replace()

    def _take_up(self, one: Hosted, loaded: Loaded | None) -> None:
        """Its configuration, judged again. One that is wrong by now is the connector's failure."""
        if loaded is None or loaded.properties != one.stored.config:
            raise Outdated
        one.loaded = loaded
        tell(one.name, loaded)

    def reset_topics(self, name: str) -> None:
        one = self._roster.named(name)
        self._roster.book.page(name).topics.clear()
        if one.stored.topics:
            self._roster.keep(one, replace(one.stored, topics=()))

    def begin_alter(self, name: str, by: object) -> ConnectorSettings:
        """From here to `end_alter` the connector's offsets may be changed: it does not start. by: whoever asks."""
        one = self._roster.named(name)
        if one.state is not State.STOPPED:
            raise WrongState(
                name,
                one.state,
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for "
                "the specified connector by issuing a 'PUT' request to the '/connectors/" + name + "/stop' endpoint",
            )
        if one.altered_by is not None:
            raise OffsetsBusy(f"The offsets of connector {name} are being changed by another request; wait for it.")
        if one.settings is None:
            raise OffsetsRefused("\n".join(one.loaded.problems) or NOT_READ.format(name))
        one.altered_by = by
        return one.settings

    def end_alter(self, by: object) -> None:
        """Does nothing when it did not begin."""
        for one in self._roster.all():
            if one.altered_by is by:
                one.altered_by = None

    def _check_current(self, name: str, before: Mapping[str, str]) -> None:
        """Raises Outdated when somebody changed the configuration since."""
        one = self._roster.hosted.get(name)
        if (NOTHING if one is None else one.stored.config) != before:
            raise Outdated

    def _check_group(self, name: str, judged: Judged) -> None:
        """Raises InvalidConnector when another connector has its consumer group."""
        others = [one.loaded for other, one in self._roster.hosted.items() if other != name]
        if problems := check_unique([judged.loaded, *others]):
            raise InvalidConnector(problems)
