"""The worker file, validated: what all connectors of one process share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from parquet_sink.config.declared import made
from parquet_sink.config.key import Key, find
from parquet_sink.config.machine import Machine
from parquet_sink.config.provider import NOTHING, Resolved
from parquet_sink.config.providers import resolve, without_provided
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values, read
from parquet_sink.config.without_effect import suggest, warn_about
from parquet_sink.convert import configuration
from parquet_sink.convert.keys import PREFIXES
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.settings import SERVERS
from parquet_sink.worker_config.config_providers import PREFIX, with_providers
from parquet_sink.worker_config.distributed import GROUP_ID, distributed, is_of_own_clients, own_clients
from parquet_sink.worker_config.event_listeners import event_listeners
from parquet_sink.worker_config.offset_storage import offset_storage
from parquet_sink.worker_config.rest.build import build as build_rest
from parquet_sink.worker_config.worker import (
    BOOTSTRAP,
    BOOTSTRAP_OPTION,
    BOOTSTRAP_VARIABLE,
    CONSUMER_BOOTSTRAP,
    DEFAULT_BOOTSTRAP,
    NO_ORIGIN,
    Worker,
)
from parquet_sink.worker_config.worker_keys import WORKER_KEYS


@dataclass(frozen=True)
class LoadedWorker:
    """A worker file with all that is to say about it. With problems, `worker` is what could be read.

    resolved: its keys, with what providers gave.
    """

    worker: Worker
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    resolved: Resolved = field(default=NOTHING, repr=False)

    def require(self) -> Worker:
        """The worker. Raises InvalidConfiguration with every problem."""
        if self.problems:
            raise InvalidConfiguration([f"{problem} (in {self.worker.source})" for problem in self.problems])
        return self.worker


def load_worker(
    properties: Mapping[str, str],
    *,
    source: str,
    bootstrap_option: str | None = None,
    machine: Machine | None = None,
    connector_keys: Sequence[Key] = (),
) -> LoadedWorker:
    """Validate a worker file's keys (an empty mapping when there is none).

    bootstrap_option: value of --bootstrap-servers, None when not given. The environment is the machine's.
    connector_keys: what is warned about as belonging in a connector file.
    """
    machine = machine or Machine()
    report = Report()
    machine = with_providers(properties, machine, report)
    resolved = _resolved(properties, machine, report)
    values = read(WORKER_KEYS, resolved, report)
    warn_about(
        WORKER_KEYS,
        values,
        filter(_may_be_missed(properties), properties),
        lambda name: _unknown(name, connector_keys),
        report,
        **configuration.remarks(values),
    )
    _refuse_prefixes(values, report)
    servers, origin = _bootstrap(resolved, bootstrap_option, machine, report)
    consumer = client_settings.under("consumer.", resolved.values)
    shared = {**client_settings.shared_with_consumer(consumer), "bootstrap.servers": servers}
    own = own_clients(values, _own_servers(servers, origin, values))
    offsets = offset_storage(values, machine, own if GROUP_ID in values.given else shared, report)
    worker = made(
        Worker,
        values,
        machine,
        source=source,
        bootstrap_servers=servers,
        bootstrap_origin=origin,
        consumer=consumer,
        producer=client_settings.under("producer.", resolved.values),
        admin=client_settings.under("admin.", resolved.values),
        converters=values,
        machine=machine,
        rest=build_rest(values, machine, report),
        listeners=event_listeners(values, report),
        offset_storage=offsets,
        distributed=distributed(values, machine, own, offsets, report),
    )
    problems, warnings = (without_provided(texts, resolved) for texts in (report.problems, report.warnings))
    return LoadedWorker(worker, problems, warnings, resolved)


def _may_be_missed(properties: Mapping[str, str]) -> Callable[[str], bool]:
    """Whether somebody may miss the effect of a key: not of settings of the worker's own clients in distributed mode.

    Nor, where there are no such clients, of one that stands under `consumer.` too.
    """
    distributed_mode = bool(properties.get(GROUP_ID, "").strip())
    return lambda name: not (is_of_own_clients(name) and (distributed_mode or f"consumer.{name}" in properties))


def _resolved(properties: Mapping[str, str], machine: Machine, report: Report) -> Resolved:
    """Placeholders in what is said of providers were filled when those were made."""
    own = {name: text for name, text in properties.items() if name.startswith(PREFIX)}
    rest = resolve({name: text for name, text in properties.items() if name not in own}, machine, report)
    return replace(rest, values={**rest.values, **own}, shown=dict(properties))


def _unknown(name: str, connector_keys: Sequence[Key]) -> str:
    """The warning about a key that no worker file has."""
    if find(connector_keys, name) is not None:
        return "It belongs in a connector file and has no effect in the worker file."
    return "It is unknown and has no effect." + suggest(name, WORKER_KEYS, PREFIXES)


def _refuse_prefixes(values: Values, report: Report) -> None:
    """Keys that stand for a prefix are not parsed, so refusing them is done here."""
    for name in sorted(values.given):
        key = find(WORKER_KEYS, name)
        if key is not None and key.is_prefix and key.not_built is not None:
            report.problem(name, f"Its feature is not built yet: {key.not_built.cure}")


def _bootstrap(resolved: Resolved, option: str | None, machine: Machine, report: Report) -> tuple[str, str]:
    """Brokers and what named them: option, environment, consumer.bootstrap.servers, bootstrap.servers, default."""
    candidates = (
        (BOOTSTRAP_OPTION, option),
        (BOOTSTRAP_VARIABLE, machine.environ.get(BOOTSTRAP_VARIABLE)),
        (CONSUMER_BOOTSTRAP, resolved.values.get(CONSUMER_BOOTSTRAP)),
        (BOOTSTRAP, resolved.values.get(BOOTSTRAP)),
    )
    for origin, text in candidates:
        if text is not None and text.strip():
            servers = ",".join(server.strip() for server in text.split(",") if server.strip())
            of_file = origin in (CONSUMER_BOOTSTRAP, BOOTSTRAP)
            if not of_file and (reason := SERVERS.test(tuple(servers.split(",")))) is not None:
                report.problem(origin, reason)
            return servers, origin
    if not {BOOTSTRAP, CONSUMER_BOOTSTRAP} & resolved.failed:
        report.warnings.append(no_broker())
    return DEFAULT_BOOTSTRAP, NO_ORIGIN


def no_broker(whose: str = "") -> str:
    """The warning that brokers are guessed. whose: for which connectors; empty: for all."""
    return (
        f"Warning [{BOOTSTRAP}]. No broker is named{whose and f' for {whose}'}, so {DEFAULT_BOOTSTRAP} is taken; name "
        f"it in the worker file (--worker), with {BOOTSTRAP_OPTION} or in {BOOTSTRAP_VARIABLE}."
    )


def _own_servers(servers: str, origin: str, values: Values) -> str:
    """Brokers of the worker's own clients in distributed mode, which `consumer.bootstrap.servers` does not name."""
    return ",".join(values.names(BOOTSTRAP)) or servers if origin == CONSUMER_BOOTSTRAP else servers
