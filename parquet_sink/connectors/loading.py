"""One connector file, validated: settings, or everything that is wrong with it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from parquet_sink.config.declared import keys_of, made
from parquet_sink.config.key import Key, find
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import NOTHING, Resolved
from parquet_sink.config.providers import resolve, without_provided
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import read
from parquet_sink.config.without_effect import suggest, warn_about
from parquet_sink.connectors.class_keys import with_target
from parquet_sink.connectors.connector_class import DEFAULT_CLASS, ConnectorClass, find_class
from parquet_sink.connectors.kinds import find_kind
from parquet_sink.convert import configuration
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.kafka.settings import CONSUMER, NAME_KEY, PRODUCER
from parquet_sink.notify.settings import NOTIFY_TOPIC
from parquet_sink.plugins import PluginUnusable
from parquet_sink.settings.connector import ConnectorSettings, RestartSettings
from parquet_sink.settings.sink import SinkSettings, of_sink
from parquet_sink.targets.target_class import TYPE
from parquet_sink.transform import configuration as transforms
from parquet_sink.worker_config.internal_topics import refuse_internal_topics
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_keys import WORKER_KEYS

_CLASS: Final = "connector.class"
_TOPICS: Final = ("topics", NAME_KEY, NOTIFY_TOPIC)
"""Keys of a sink that name topics."""
NO_FILES: Final = "A connector of this class writes no Parquet files, which is what is asked for; leave its file out."


@dataclass(frozen=True)
class Loaded:
    """settings is None exactly when there are problems. Each problem reads `Invalid [key]. reason`.

    properties: as they were given, placeholders unresolved; resolved: with what providers gave. again: how reading it
    is tried again, where all that is wrong with it may pass without anybody's hand, because a config provider is away.
    """

    settings: ConnectorSettings | None
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    source: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    again: RestartSettings | None = None
    resolved: Resolved = field(default=NOTHING, repr=False)

    @property
    def names_brokers(self) -> bool:
        """Whether the file names brokers of its own: a source its producer's, any other its consumer's."""
        prefixes: tuple[str, ...] = (CONSUMER, PRODUCER)
        if self.settings is not None:
            prefixes = (PRODUCER,) if self.settings.group is None else (CONSUMER,)
        names = [f"{prefix}bootstrap.servers" for prefix in prefixes]
        return any(name in self.resolved.failed or self.resolved.values.get(name, "").strip() for name in names)

    def require(self) -> SinkSettings:
        """The settings of a sink into Parquet files, for what is of these alone.

        Raises InvalidConfiguration with every problem, each naming the file; also for a connector of another kind.
        """
        if self.settings is None:
            raise InvalidConfiguration([f"{problem} (in {self.source})" for problem in self.problems])
        if not of_sink(self.settings):
            raise InvalidConfiguration([f"Invalid [{_CLASS}]. {NO_FILES} (in {self.source})"])
        return self.settings


def load(properties: Mapping[str, str], worker: Worker, *, source: str) -> Loaded:
    """Validate a connector's keys on top of the worker's defaults; everything wrong is found at once.

    source: the file's name, for messages. Of a file whose connector class cannot be found that is reported, and values
    that no class takes.
    """
    report = Report()
    resolved = resolve(properties, worker.machine, report)
    found = _connector_class(resolved, report)
    if found is None:
        _check_values(resolved, report)
    settings = None if found is None else _settings(found, properties, resolved, worker, report)
    passes = resolved.away and len(report.problems) == len(resolved.away)
    again = _again(resolved, worker.machine) if passes else None
    problems, warnings = (without_provided(texts, resolved) for texts in (report.problems, report.warnings))
    return Loaded(settings, problems, warnings, source, properties, again, resolved)


def _again(resolved: Resolved, machine: Machine) -> RestartSettings:
    """As the connector's keys say, however wrong others are."""
    return made(RestartSettings, read(keys_of(RestartSettings), resolved, Report()), machine)


def _connector_class(resolved: Resolved, report: Report) -> ConnectorClass | None:
    name = resolved.values.get(_CLASS, "").strip() or DEFAULT_CLASS
    if _CLASS in resolved.failed:
        return None
    try:
        return find_class(name)
    except PluginUnusable as error:
        hidden = f"What {quoted(resolved.shown[_CLASS])} stands for is not a usable connector class; correct it."
        report.problem(_CLASS, hidden if _CLASS in resolved.provided else str(error))
        return None


def _check_values(resolved: Resolved, report: Report) -> None:
    """What is wrong with single values, by the keys of the default class; others share most of them."""
    given = [
        key
        for key in find_class(DEFAULT_CLASS).keys
        if key.is_prefix or key.name in {*resolved.values, "transforms", "predicates"}
    ]
    transforms.check(read(given, resolved, report), report)


def _settings(
    connector: ConnectorClass, properties: Mapping[str, str], resolved: Resolved, worker: Worker, report: Report
) -> ConnectorSettings | None:
    try:
        keys = with_target(connector.keys, resolved.values)
    except PluginUnusable as error:
        report.problem(TYPE, str(error))
        return None
    values = read(keys, resolved, report)
    connector.check(values, worker, report)
    for name in _TOPICS:
        if values.knows(name):
            refuse_internal_topics(name, values.names(name) or [values.text(name) or ""], worker, report)
    steps = transforms.check(values, report) if values.knows("transforms") else ()
    remarks = configuration.remarks(values, worker.converters)
    warn_about(keys, values, properties, lambda name: _unknown(name, connector, keys), report, **remarks)
    if report.problems:
        return None
    settings = connector.settings(values, worker).with_transforms(steps)
    refuse_internal_topics("topic", getattr(settings, "makes_topics", ()), worker, report)
    if worker.distributed is not None and settings.group is not None:
        _check_group(settings.group, worker.distributed.group_id, report)
    if report.problems:
        return None
    try:
        find_kind(settings.kind)
    except PluginUnusable as error:
        report.problem(_CLASS, str(error))
        return None
    return settings


def _check_group(group: str, of_workers: str, report: Report) -> None:
    """Consumer groups that a connector in a group of workers cannot have."""
    cure = "give the connector another name, or name a group in consumer.override.group.id."
    if group == of_workers:
        report.problem("name", f"Its consumer group would be {quoted(group)}, which is the workers' group.id; {cure}")
    elif not (group.isascii() and group.isprintable()):
        why = "Workers of a group commit offsets in transactions, for which librdkafka takes printable ASCII alone"
        report.problem("name", f"Its consumer group would be {quoted(group)}. {why}; {cure}")


def _unknown(name: str, connector: ConnectorClass, keys: Sequence[Key]) -> str:
    """The warning about a key that no file of the class has. keys: all that there are."""
    if name.startswith("consumer."):
        return f"It is unknown in a connector file and has no effect. Did you mean consumer.override.{name[9:]}?"
    if find(WORKER_KEYS, name) is not None:
        return "It belongs in the worker file (--worker) and has no effect in a connector file."
    return "It is unknown and has no effect." + suggest(name, keys, connector.prefixes)


def check_unique(loaded: Sequence[Loaded]) -> tuple[str, ...]:
    """A problem for each name, and each consumer group, that several connectors of one process have."""
    names: dict[str, list[str]] = defaultdict(list)
    groups: dict[str, list[str]] = defaultdict(list)
    for one in loaded:
        if one.settings is not None:
            names[one.settings.name].append(one.source)
            if one.settings.group is not None:
                groups[one.settings.group].append(one.source)
    shared_names = {tuple(sources) for sources in names.values() if len(sources) > 1}
    problems = [_shared("name", name, sources) for name, sources in names.items() if len(sources) > 1]
    for group, sources in groups.items():
        if len(sources) > 1 and tuple(sources) not in shared_names:
            problems.append(_shared("consumer.override.group.id", group, sources))
    return tuple(problems)


def _shared(key: str, value: str, sources: list[str]) -> str:
    return f"Invalid [{key}]. {quoted(value)} is used by {' and '.join(sources)}; give each connector its own."
