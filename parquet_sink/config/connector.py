"""One connector file, validated: settings, or everything that is wrong with it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parquet_sink.config import check_convert, client, cross, keys
from parquet_sink.config.build import build
from parquet_sink.config.notices import warn_about
from parquet_sink.config.providers import resolve
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import read
from parquet_sink.config.worker import Worker
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.pipeline.settings import SinkSettings


@dataclass(frozen=True)
class Loaded:
    """settings is None exactly when there are problems. Each problem reads `Invalid [key]. reason`."""

    settings: SinkSettings | None
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    source: str

    def require(self) -> SinkSettings:
        """The settings. Raises InvalidConfiguration with every problem, each naming the file."""
        if self.settings is None:
            raise InvalidConfiguration([f"{problem} (in {self.source})" for problem in self.problems])
        return self.settings


def load(properties: Mapping[str, str], worker: Worker, *, source: str) -> Loaded:
    """Validate a connector's keys on top of the worker's defaults; everything wrong is found at once.

    source: the file's name, for messages.
    """
    report = Report()
    resolved = resolve(properties, worker.machine, report)
    values = read(keys.CONNECTOR_KEYS, resolved, report)
    override = client.under("consumer.override.", resolved.values)
    cross.check(values, worker, report)
    client.check_policy(worker.override_policy, override, report)
    converters = check_convert.named(values, worker.converters)
    warn_about(keys.CONNECTOR_KEYS, values, properties, keys.unknown_in_connector, report, converters)
    settings = None if report.problems else build(values, override, worker)
    return Loaded(settings, tuple(report.problems), tuple(report.warnings), source)


def check_unique(loaded: Sequence[Loaded]) -> tuple[str, ...]:
    """A problem for each name, and each consumer group, that several connectors of one process have."""
    names: dict[str, list[str]] = defaultdict(list)
    groups: dict[str, list[str]] = defaultdict(list)
    for one in loaded:
        if one.settings is not None:
            names[one.settings.name].append(one.source)
            groups[one.settings.kafka.group].append(one.source)
    shared_names = {tuple(sources) for sources in names.values() if len(sources) > 1}
    problems = [_shared("name", name, sources) for name, sources in names.items() if len(sources) > 1]
    for group, sources in groups.items():
        if len(sources) > 1 and tuple(sources) not in shared_names:
            problems.append(_shared("consumer.override.group.id", group, sources))
    return tuple(problems)


def _shared(key: str, value: str, sources: list[str]) -> str:
    return f"Invalid [{key}]. {quoted(value)} is used by {' and '.join(sources)}; give each connector its own."
