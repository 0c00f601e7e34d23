"""What all connectors of one process start from: keys of the worker file with a meaning, and what they fill."""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Final

from parquet_sink.config.checks import ABSENT
from parquet_sink.config.declared import declared, filled_by, key
from parquet_sink.config.key import Check, Origin, Value
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import quoted
from parquet_sink.config.values import NOTHING, Values
from parquet_sink.kafka.client_settings import ClientSetting
from parquet_sink.kafka.settings import SERVERS
from parquet_sink.worker_config.distributed import DistributedSettings
from parquet_sink.worker_config.event_listeners import EventListener
from parquet_sink.worker_config.offset_storage import OffsetStorageSettings
from parquet_sink.worker_config.rest.settings import RestSettings

NO_FILE = "no worker file"
"""Source of a worker's defaults."""
BOOTSTRAP_OPTION = "--bootstrap-servers"
BOOTSTRAP_VARIABLE = "PARQUET_SINK_BOOTSTRAP_SERVERS"
DEFAULT_BOOTSTRAP = "localhost:9092"
NO_ORIGIN: Final = "default"
"""In place of what named the servers."""
BOOTSTRAP: Final = "bootstrap.servers"
CONSUMER_BOOTSTRAP: Final = "consumer.bootstrap.servers"
POLICY: Final = "connector.client.config.override.policy"
STORE_FOLDER: Final = "config.storage.folder"
PLUGIN_PATH: Final = "plugin.path"
WORKER: Final = "Keys with a meaning"
READING: Final = "Reading from Kafka, for all connectors"
_HOSTING: Final = "Hosting connectors"

_POLICIES = {
    name.lower(): short
    for short in ("All", "None", "Principal")
    for base in (short, f"{short}ConnectorClientConfigOverridePolicy")
    for name in (base, f"org.apache.kafka.connect.connector.policy.{base}")
}


def _override_policy(text: str) -> str | None:
    """The policy of a name, or of the class that Kafka has for it; None for any other."""
    return _POLICIES.get(text.lower())


def _policy(value: Value) -> str | None:
    if _override_policy(str(value)) is not None:
        return None
    return f"{quoted(str(value))} is not one of All, None, Principal; write one of them."


def _group_id(value: Value) -> str | None:
    return "All connectors would share one group; set consumer.override.group.id in the connector that needs it."


def _default_store_folder(environment: Mapping[str, str]) -> str | None:
    """Where a worker's connectors are kept when the worker file does not say; None: nobody knows."""
    given = environment.get("STATE_DIRECTORY", "").split(":")[0]
    if given:
        return given
    state = environment.get("XDG_STATE_HOME") or (environment.get("HOME") and f"{environment['HOME']}/.local/state")
    return f"{state}/parquet-sink" if state else None


def _store_folder(values: Values, machine: Machine) -> str | None:
    return values.text(STORE_FOLDER) or _default_store_folder(machine.environ)


@declared(group=WORKER, origin=Origin.CONNECT)
class Worker:
    """The defaults that connectors start from.

    bootstrap_origin: what named the servers, for messages. consumer, producer, admin: Java's names without the prefix
    (`consumer.`).
    converters: the file's values, of which connectors that name no converter take `value.converter*`, and likewise
    `key.converter*`. store_folder: where connectors made by REST are kept; None: nobody knows. plugin_path: folders
    with Python packages. offset_storage: where sources keep their positions; None: nobody said.
    distributed: what makes it one of a cluster; None: it is alone.
    listeners: of events, by name.
    """

    source: str = NO_FILE
    servers: ClassVar[tuple[str, ...]] = key(
        BOOTSTRAP,
        "Brokers to start from. `--bootstrap-servers` wins over the environment variable "
        "`PARQUET_SINK_BOOTSTRAP_SERVERS`, and that over the worker file.",
        default_text="localhost:9092, with a warning",
        check=SERVERS,
    )
    bootstrap_servers: str = DEFAULT_BOOTSTRAP
    bootstrap_origin: str = NO_ORIGIN
    consumer: Mapping[str, ClientSetting] = field(default_factory=dict)
    producer: Mapping[str, ClientSetting] = field(default_factory=dict)
    admin: Mapping[str, ClientSetting] = field(default_factory=dict)
    consumer_group: ClassVar[str] = key(
        "consumer.group.id",
        "Refused: every connector has a group of its own.",
        check=Check(ABSENT, _group_id),
        group=READING,
    )
    consumer_servers: ClassVar[tuple[str, ...]] = key(
        CONSUMER_BOOTSTRAP,
        "Wins over `bootstrap.servers` of the worker file, as in Kafka Connect.",
        check=SERVERS,
        group=READING,
    )
    isolation_level: str | None = filled_by("consumer.isolation.level", default=None)
    offset_reset: str | None = filled_by("consumer.auto.offset.reset", default=None)
    converters: Values = NOTHING
    override_policy: str = key(
        POLICY,
        "Which `consumer.override.*` keys connectors may set: all of them, none, or the three that name who signs in "
        "(`security.protocol`, `sasl.mechanism`, `sasl.jaas.config`). Names of Kafka's classes are understood.",
        default="All",
        check=Check("`All`, `None`, `Principal`", _policy),
        computed=lambda values, machine: _override_policy(values.text(POLICY) or "All"),
    )
    providers: ClassVar[tuple[str, ...]] = key(
        "config.providers",
        "Names of config providers, for placeholders such as `${vault:PATH:KEY}` in all files: `env`, `file` and "
        "`directory`, or any name that has a class. Only those that are listed are there then. See "
        "[config-providers.md](../how-to/config-providers.md).",
        default_text="none in `parquet-sink worker`, as in Kafka Connect; else env, file, directory",
    )
    provider_settings: ClassVar[str] = key(
        "config.providers.*",
        "`config.providers.NAME.class` is the provider's class: Kafka's `FileConfigProvider`, "
        "`DirectoryConfigProvider` or `EnvVarConfigProvider`, or one of your own. "
        "`config.providers.NAME.param.*` are its settings: `allowed.paths` of files and folders, "
        "`allowlist.pattern` of the environment.",
    )
    event_listeners: ClassVar[tuple[str, ...]] = key(
        "event.listeners",
        "Names of listeners of your own that receive what happens to files, ranges and connectors, each with a class. "
        "See [monitoring.md](../how-to/monitoring.md#listeners-of-your-own).",
        default_text="none",
        origin=Origin.OWN,
    )
    listener_settings: ClassVar[str] = key(
        "event.listeners.*",
        "`event.listeners.NAME.class` is the listener's class, `event.listeners.NAME.param.*` are its settings.",
        origin=Origin.OWN,
    )
    store_folder: str | None = key(
        STORE_FOLDER,
        "Folder in which `parquet-sink worker` keeps the connectors that were made by REST, with what each is to do "
        "(run, paused, stopped); one worker at a time. They hold passwords as they were given, so the folder is this "
        "user's alone.",
        default=None,
        default_text="`$STATE_DIRECTORY`, which systemd sets, else `$XDG_STATE_HOME/parquet-sink`, else "
        "`~/.local/state/parquet-sink`",
        computed=_store_folder,
        group=_HOSTING,
        origin=Origin.OWN,
    )
    plugin_path: tuple[str, ...] = key(
        PLUGIN_PATH,
        "Folders with Python packages, as `pip install --target` makes them: connector classes, transforms, predicates "
        "and converters are found there, too. On a cluster they must be installed where executors run. Java plug-ins "
        "cannot be loaded.",
        default=(),
        group=_HOSTING,
    )
    machine: Machine = field(default_factory=Machine)
    rest: RestSettings = field(default_factory=RestSettings)
    offset_storage: OffsetStorageSettings | None = None
    distributed: DistributedSettings | None = None
    listeners: Mapping[str, EventListener] = field(default_factory=dict, repr=False)
