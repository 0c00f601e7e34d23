"""All keys of the worker file (Kafka Connect's connect-standalone.properties): those without a meaning, too."""

from dataclasses import replace
from typing import Final

from parquet_sink.config.declared import keys_of
from parquet_sink.config.key import Key, NotBuilt, Origin, Type, is_set
from parquet_sink.convert.keys import CONVERT, CONVERTER_KEYS
from parquet_sink.kafka.settings import CONSUMER, OVERRIDE_KEYS
from parquet_sink.worker_config.rest.settings import ADMIN_TLS_KEYS, TLS_KEYS
from parquet_sink.worker_config.worker import READING, WORKER, Worker

_NO_EFFECT: Final = "Keys without effect"
_REFUSED: Final = "Keys that are refused"

_DISTRIBUTED = "it is a key of Kafka Connect's distributed mode; remove it: several connectors run in one process."
_CLIENT = "it is for Kafka Connect's own clients and never reached a sink's consumer; write consumer.{} for that."


def _no_effect(name: str, reason: str) -> Key:
    doc = reason[0].upper() + reason[1:]
    return Key(name, _NO_EFFECT, Type.STRING, doc, no_effect=reason, origin=Origin.CONNECT)


def _refused(name: str, cure: str) -> Key:
    return Key(
        name,
        _REFUSED,
        Type.STRING,
        cure[0].upper() + cure[1:],
        not_built=NotBuilt("any", is_set, cure),
        origin=Origin.CONNECT,
    )


def _default_converter(key: Key) -> Key:
    """The worker's converter is only a default, so it is validated where a connector uses it."""
    if key.group is not CONVERT:
        return key
    doc = key.doc.split(". ")[0].removesuffix(".") + ". Connectors may name their own."
    return replace(key, group=WORKER, check=None, default_text="", doc=doc)


def _of_all_consumers(key: Key) -> Key:
    """What a connector's key says of its consumer, said of those of all connectors."""
    return replace(key, name="consumer." + key.name.removeprefix(CONSUMER), group=READING)


WORKER_KEYS: Final[tuple[Key, ...]] = (
    *keys_of(Worker),
    *map(_default_converter, CONVERTER_KEYS),
    *map(_of_all_consumers, OVERRIDE_KEYS[2:]),
    *(
        Key(
            f"{client}.*",
            READING,
            Type.STRING,
            f"Settings of the client that {does}, under their Java names. They win over the consumer's brokers and "
            f"security settings, which are taken otherwise; a connector's `{client}.override.*` wins over them.",
            origin=Origin.CONNECT,
        )
        for client, does in (("producer", "writes dead letters"), ("admin", "makes the dead-letter topic"))
    ),
    *TLS_KEYS,
    *ADMIN_TLS_KEYS,
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
