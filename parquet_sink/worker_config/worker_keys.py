"""All keys of the worker file (connect-standalone.properties, connect-distributed.properties), ignored ones too."""

from dataclasses import replace
from typing import Final

from parquet_sink.config.declared import keys_of
from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.convert.keys import CONVERT, CONVERTER_KEYS
from parquet_sink.kafka.settings import CONSUMER, OVERRIDE_KEYS
from parquet_sink.worker_config.distributed import OWN_CLIENTS
from parquet_sink.worker_config.rest.settings import ADMIN_TLS_KEYS, TLS_KEYS
from parquet_sink.worker_config.worker import READING, WORKER, Worker

_NO_EFFECT: Final = "Keys without effect"
_OWN: Final = "Distributed mode: the worker's own clients"
_CLIENT: Final = "without group.id there are no clients of the worker's own; write consumer.{} for those of sinks."
_OWN_DOC: Final = "Of the clients by which workers find each other, and which read and write the cluster's topics."


def _no_effect(name: str, reason: str) -> Key:
    doc = reason[0].upper() + reason[1:]
    return Key(name, _NO_EFFECT, Type.STRING, doc, no_effect=reason, origin=Origin.CONNECT)


def _of_own_clients(name: str) -> Key:
    """Standalone mode has no such clients; in distributed mode the key is not warned about."""
    return replace(_no_effect(name, _CLIENT.format(name)), group=_OWN, doc=_OWN_DOC)


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
    _no_effect("client.id", "brokers see a worker by its address, and a connector's clients by its name."),
    _no_effect("socket.connection.setup.timeout.max.ms", "the client waits as long for each connection."),
    *map(_of_own_clients, OWN_CLIENTS),
)
