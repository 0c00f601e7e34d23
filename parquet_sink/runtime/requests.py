"""What may be asked of a worker about its connectors, as `herder.protocol` says it. Only its one loop calls this.

Each does all of it or nothing: what is wrong is raised before anything is stored, and stored before anything is done.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from parquet_sink.config.report import quoted
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.hidden import restore, unknown
from parquet_sink.connectors.loading import Loaded, check_unique
from parquet_sink.herder.errors import ConnectorExists, InvalidConnector, OffsetsRefused, UnknownTask, WrongState
from parquet_sink.herder.store import StoredConnector
from parquet_sink.herder.values import ConnectorInfo, ConnectorStatus, State, TargetState
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.runtime.hosted import Hosted
from parquet_sink.runtime.roster import Roster

log = logging.getLogger(__name__)

NOTHING: Final[Mapping[str, str]] = {}


class Requests:
    """Methods are those of `herder.protocol.Herder`."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    def create(self, name: str, config: Mapping[str, str], target: TargetState | None = None) -> ConnectorInfo:
        if name in self._roster.hosted:
            raise ConnectorExists(name)
        config, loaded = self._accepted(name, config, NOTHING)
        stored = StoredConnector(config, target or TargetState.STARTED)
        self._roster.store.put(name, stored)
        self._roster.hosted[name] = Hosted(name, stored, loaded)
        return self._roster.hosted[name].info()

    def put(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        if name not in self._roster.hosted:
            return self.create(name, config), True
        one = self._roster.hosted[name]
        config, loaded = self._accepted(name, config, one.stored.config)
        stored = replace(one.stored, config=config)
        self._roster.store.put(name, stored)
        one.change(stored, loaded)
        return one.info(), False

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        merged = {**self._roster.named(name).stored.config, **changes}
        return self.put(name, {key: text for key, text in merged.items() if text is not None})[0]

    def delete(self, name: str) -> None:
        one = self._roster.named(name)
        self._roster.store.delete(name)
        one.deleted = True
        self._roster.leaving.append(self._roster.hosted.pop(name))

    def set_target(self, name: str, target: TargetState) -> None:
        one = self._roster.named(name)
        before = one.target
        if target is before:
            return
        self._roster.keep(one, replace(one.stored, target=target))
        if before is TargetState.STOPPED:
            one.loaded = self._roster.reloaded(one)

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Connector and tasks are one here, so either both are started again or none."""
        one = self._roster.named(name)
        if (one.failed or not only_failed) and one.target is not TargetState.STOPPED:
            one.restart(self._roster.reloaded(one))
        return self._roster.status(one)

    def restart_task(self, name: str, task: int) -> None:
        """One after the other, each of a connector's tasks restarts it once."""
        one = self._roster.named(name)
        if task not in {found.id for found in self._roster.status(one).tasks}:
            raise UnknownTask(name, task)
        if one.state is not State.RESTARTING:
            one.restart(self._roster.reloaded(one))

    def reset_topics(self, name: str) -> None:
        one = self._roster.named(name)
        self._roster.book.page(name).topics.clear()
        if one.stored.topics:
            self._roster.keep(one, replace(one.stored, topics=()))

    def begin_alter(self, name: str, by: object) -> SinkSettings:
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
            raise OffsetsRefused(f"The offsets of connector {name} are being changed by another request; wait for it.")
        if one.settings is None:
            one.loaded = self._roster.reloaded(one)
        if one.settings is None:
            raise OffsetsRefused("\n".join(one.loaded.problems))
        one.altered_by = by
        return one.settings

    def end_alter(self, by: object) -> None:
        """Does nothing when it did not begin."""
        for one in self._roster.all():
            if one.altered_by is by:
                one.altered_by = None

    def _accepted(
        self, name: str, config: Mapping[str, str], stored: Mapping[str, str]
    ) -> tuple[dict[str, str], Loaded]:
        """The configuration as it is to be stored. Raises InvalidConnector with everything that is wrong."""
        named = {**config, "name": config.get("name", "").strip() or name}
        keys = keys_of(named)
        whole = restore(named, stored, keys)
        loaded = self._roster.load(whole, name)
        problems = [*loaded.problems, *unknown(whole, keys)]
        if whole["name"] != name:
            problems.append(
                f"Invalid [name]. {quoted(whole['name'])} is not {quoted(name)}, the name in the request; write that, "
                "or leave the key out."
            )
        others = [one.loaded for other, one in self._roster.hosted.items() if other != name]
        problems += check_unique([loaded, *others])
        if problems:
            raise InvalidConnector(problems)
        for warning in loaded.warnings:
            log.warning("connector %s: %s", name, warning)
        return whole, loaded
