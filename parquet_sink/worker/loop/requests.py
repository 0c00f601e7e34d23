"""What may be asked of a worker about its connectors, as `herder.protocol` says it. Only its one loop calls this.

Each does all of it or nothing: what is wrong is raised before anything is stored, and stored before anything is done.
Configurations are validated before, in the thread of who asks: config providers are asked for that, files read, classes
loaded, which may take seconds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from parquet_sink.config.report import quoted
from parquet_sink.connectors.class_keys import keys_of
from parquet_sink.connectors.hidden import restore, unknown
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
from parquet_sink.worker.loop.connector_registry import ConnectorRegistry, tell, warn
from parquet_sink.worker.loop.managed_connector import ManagedConnector

NOT_READ: Final = "The configuration of connector {} is not read yet; ask again."
NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True)
class Validated:
    """A configuration that may be stored. before: what was stored then; hidden passwords are from there.

    loaded: with `properties`, which are to be stored.
    """

    before: Mapping[str, str] = field(repr=False)
    loaded: Loaded


def validate(
    name: str,
    config: Mapping[str, str],
    before: Mapping[str, str],
    load: Callable[[Mapping[str, str], str], Loaded],
) -> Validated:
    """name: in the request; a configuration without one gets it. Raises InvalidConnector with all that is wrong."""
    named = {**config, "name": config.get("name", "").strip() or name}
    keys = keys_of(named)
    whole = restore(named, before, keys)
    loaded = load(whole, name)
    problems = [*loaded.problems, *unknown(whole, keys)]
    validated_name = name if loaded.settings is None else loaded.settings.name
    if not name or {name} != {whole["name"], validated_name}:
        problems.append(
            f"Invalid [name]. {quoted(whole['name'].strip())} is not {quoted(name)}, the name in the request; write "
            "that, or leave the key out. A name is not empty, and neither begins nor ends with a blank."
        )
    if problems:
        raise InvalidConnector(problems)
    return Validated(before, loaded)


class Outdated(Exception):
    """The configuration is not any more the one that was validated: it must be validated again."""


class Requests:
    """Those of `worker.herder.protocol.Herder`. What takes a validated configuration raises Outdated."""

    def __init__(self, registry: ConnectorRegistry) -> None:
        self._registry = registry

    def create(self, name: str, validated: Validated, target: TargetState | None = None) -> ConnectorInfo:
        self._check_group(name, validated)
        if name in self._registry.connectors:
            raise ConnectorExists(name)
        stored = StoredConnector(validated.loaded.properties, target or TargetState.STARTED)
        self._registry.store.put(name, stored)
        one = self._registry.connectors[name] = ManagedConnector(name, stored, validated.loaded)
        warn(name, validated.loaded)
        return one.info()

    def put(self, name: str, validated: Validated) -> tuple[ConnectorInfo, bool]:
        self._check_current(name, validated.before)
        if name not in self._registry.connectors:
            return self.create(name, validated), True
        self._check_group(name, validated)
        one = self._registry.connectors[name]
        stored = replace(one.stored, config=validated.loaded.properties)
        self._registry.store.put(name, stored)
        one.change(stored, validated.loaded)
        warn(name, validated.loaded)
        return one.info(), False

    def delete(self, name: str) -> None:
        one = self._registry.named(name)
        self._registry.store.delete(name)
        one.deleted = True
        self._registry.leaving.append(self._registry.connectors.pop(name))

    def set_target(self, name: str, target: TargetState, loaded: Loaded | None = None) -> None:
        """loaded: its configuration, validated again, where it is to leave STOPPED."""
        one = self._registry.named(name)
        before = one.target
        if target is before:
            return
        if before is TargetState.STOPPED:
            self._take_up(one, loaded)
        self._registry.keep(one, replace(one.stored, target=target))

    def restart(self, name: str, loaded: Loaded, *, only_failed: bool) -> ConnectorStatus:
        """Connector and tasks are one here, so either both are started again or none."""
        one = self._registry.named(name)
        if (one.failed or not only_failed) and one.target is not TargetState.STOPPED:
            self._take_up(one, loaded)
            one.replace()
        return self._registry.status(one)

    def restart_task(self, name: str, task: int, loaded: Loaded) -> None:
        """One after the other, each of a connector's tasks restarts it once."""
        one = self._registry.named(name)
        if task not in {found.id for found in self._registry.status(one).tasks}:
            raise UnknownTask(name, task)
        if one.state is not State.RESTARTING:
            self._take_up(one, loaded)
            one.replace()

    def _take_up(self, one: ManagedConnector, loaded: Loaded | None) -> None:
        """Its configuration, validated again. One that is wrong by now is the connector's failure."""
        if loaded is None or loaded.properties != one.stored.config:
            raise Outdated
        one.loaded = loaded
        tell(one.name, loaded)

    def reset_topics(self, name: str) -> None:
        one = self._registry.named(name)
        self._registry.aggregator.snapshot(name).topics.clear()
        if one.stored.topics:
            self._registry.keep(one, replace(one.stored, topics=()))

    def begin_alter(self, name: str, by: object) -> ConnectorSettings:
        """From here to `end_alter` the connector's offsets may be changed: it does not start. by: whoever asks."""
        one = self._registry.named(name)
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
        for one in self._registry.all():
            if one.altered_by is by:
                one.altered_by = None

    def _check_current(self, name: str, before: Mapping[str, str]) -> None:
        """Raises Outdated when somebody changed the configuration since."""
        one = self._registry.connectors.get(name)
        if (NOTHING if one is None else one.stored.config) != before:
            raise Outdated

    def _check_group(self, name: str, validated: Validated) -> None:
        """Raises InvalidConnector when another connector has its consumer group."""
        others = [one.loaded for other, one in self._registry.connectors.items() if other != name]
        if problems := check_unique([validated.loaded, *others]):
            raise InvalidConnector(problems)
