"""Keys of the worker file (Kafka Connect's connect-standalone.properties)."""

from dataclasses import replace
from typing import Final

from parquet_sink.config.checks import ABSENT
from parquet_sink.config.key import Check, Key, NotBuilt, Origin, Type, Value, is_set
from parquet_sink.config.report import quoted
from parquet_sink.convert.keys import CONVERT, CONVERTER_KEYS
from parquet_sink.kafka.settings import CONSUMER, OVERRIDE_KEYS, SERVERS
from parquet_sink.worker_config.hosting_keys import HOSTING_KEYS
from parquet_sink.worker_config.offset_storage import OFFSET_STORAGE_KEYS
from parquet_sink.worker_config.rest.keys import ALL_REST_KEYS

WORKER: Final = "Keys with a meaning"
WORKER_READING: Final = "Reading from Kafka, for all connectors"
WORKER_NO_EFFECT: Final = "Keys without effect"
WORKER_NOT_BUILT: Final = "Keys that are refused"

_DISTRIBUTED = "it is a key of Kafka Connect's distributed mode; remove it: several connectors run in one process."
_CLIENT = "it is for Kafka Connect's own clients and never reached a sink's consumer; write consumer.{} for that."


_POLICIES = {
    name.lower(): short
    for short in ("All", "None", "Principal")
    for base in (short, f"{short}ConnectorClientConfigOverridePolicy")
    for name in (base, f"org.apache.kafka.connect.connector.policy.{base}")
}


def override_policy(text: str) -> str | None:
    """The policy of a name, or of the class that Kafka has for it; None for any other."""
    return _POLICIES.get(text.lower())


def _policy(value: Value) -> str | None:
    if override_policy(str(value)) is not None:
        return None
    return f"{quoted(str(value))} is not one of All, None, Principal; write one of them."


def _group_id(value: Value) -> str | None:
    return "All connectors would share one group; set consumer.override.group.id in the connector that needs it."


def _no_effect(name: str, reason: str) -> Key:
    doc = reason[0].upper() + reason[1:]
    return Key(name, WORKER_NO_EFFECT, Type.STRING, doc, no_effect=reason, origin=Origin.CONNECT)


def _refused(name: str, cure: str) -> Key:
    return Key(
        name,
        WORKER_NOT_BUILT,
        Type.STRING,
        cure[0].upper() + cure[1:],
        not_built=NotBuilt("any", is_set, cure),
        origin=Origin.CONNECT,
    )


def _default_converter(key: Key) -> Key:
    """The worker's converter is only a default, so it is judged where a connector uses it."""
    if key.group is not CONVERT:
        return key
    doc = key.doc.split(". ")[0].removesuffix(".") + ". Connectors may name their own."
    return replace(key, group=WORKER, check=None, default_text="", doc=doc)


def _of_all_consumers(key: Key) -> Key:
    """What a connector's key says of its consumer, said of those of all connectors."""
    return replace(key, name="consumer." + key.name.removeprefix(CONSUMER), group=WORKER_READING)


WORKER_KEYS: Final[tuple[Key, ...]] = (
    Key(
        "bootstrap.servers",
        WORKER,
        Type.LIST,
        "Brokers to start from. `--bootstrap-servers` wins over the environment variable "
        "`PARQUET_SINK_BOOTSTRAP_SERVERS`, and that over the worker file.",
        default_text="localhost:9092, with a warning",
        check=SERVERS,
        origin=Origin.CONNECT,
    ),
    *(_default_converter(key) for key in CONVERTER_KEYS),
    *HOSTING_KEYS,
    *OFFSET_STORAGE_KEYS,
    Key(
        "connector.client.config.override.policy",
        WORKER,
        Type.STRING,
        "Which `consumer.override.*` keys connectors may set: all of them, none, or the three that name who signs in "
        "(`security.protocol`, `sasl.mechanism`, `sasl.jaas.config`). Names of Kafka's classes are understood.",
        default="All",
        check=Check("`All`, `None`, `Principal`", _policy),
        origin=Origin.CONNECT,
    ),
    Key(
        "config.providers",
        WORKER,
        Type.LIST,
        "Names of config providers, for placeholders such as `${vault:PATH:KEY}` in all files: `env`, `file` and "
        "`directory`, or any name that has a class. Only those that are listed are there then. See "
        "[config-providers.md](config-providers.md).",
        default_text="none in `parquet-sink worker`, as in Kafka Connect; else env, file, directory",
        origin=Origin.CONNECT,
    ),
    Key(
        "config.providers.*",
        WORKER,
        Type.STRING,
        "`config.providers.NAME.class` is the provider's class: Kafka's `FileConfigProvider`, "
        "`DirectoryConfigProvider` or `EnvVarConfigProvider`, or one of your own. "
        "`config.providers.NAME.param.*` are its settings: `allowed.paths` of files and folders, "
        "`allowlist.pattern` of the environment.",
        origin=Origin.CONNECT,
    ),
    Key(
        "consumer.group.id",
        WORKER_READING,
        Type.STRING,
        "Refused: every connector has a group of its own.",
        check=Check(ABSENT, _group_id),
        origin=Origin.CONNECT,
    ),
    Key(
        "consumer.bootstrap.servers",
        WORKER_READING,
        Type.LIST,
        "Wins over `bootstrap.servers` of the worker file, as in Kafka Connect.",
        check=SERVERS,
        origin=Origin.CONNECT,
    ),
    *map(_of_all_consumers, OVERRIDE_KEYS[2:]),
    *(
        Key(
            f"{client}.*",
            WORKER_READING,
            Type.STRING,
            f"Settings of the client that {does}, under their Java names. They win over the consumer's brokers and "
            f"security settings, which are taken otherwise; a connector's `{client}.override.*` wins over them.",
            origin=Origin.CONNECT,
        )
        for client, does in (("producer", "writes dead letters"), ("admin", "makes the dead-letter topic"))
    ),
    *ALL_REST_KEYS,
    _no_effect("offset.flush.interval.ms", "offsets are committed after each upload or sending, not on a clock."),
    _no_effect("offset.flush.timeout.ms", "offsets are committed after each upload or sending, not on a clock."),
    _no_effect("task.shutdown.graceful.timeout.ms", "a stop waits for the flush in progress; a second signal ends it."),
    _no_effect("plugin.discovery", "there are no Java plug-ins to load."),
    _no_effect("internal.*", "there are no topics of the worker's own to encode."),
    _no_effect("topic.creation.enable", "it is for source connectors."),
    _no_effect("metric.reporters", "there are no Java classes to load."),
    _no_effect("metrics.*", "it is for Kafka Connect's JMX metrics."),
    *(_no_effect(f"{name}.*", _CLIENT.format(f"{name}.*")) for name in ("security", "sasl", "ssl")),
    *(
        _no_effect(name, _CLIENT.format(name))
        for name in ("client.id", "client.dns.lookup", "request.timeout.ms", "retry.backoff.ms", "metadata.max.age.ms")
    ),
    *(
        _refused(name, _DISTRIBUTED)
        for name in (
            "group.id",
            "config.storage.*",
            "status.storage.*",
            "session.timeout.ms",
            "heartbeat.interval.ms",
            "rebalance.timeout.ms",
            "exactly.once.source.support",
        )
    ),
)
