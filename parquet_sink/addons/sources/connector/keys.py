"""Keys of any source: Kafka Connect's, and those by which we run it."""

from dataclasses import replace
from typing import Final

from parquet_sink.config.declared import keys_of
from parquet_sink.config.key import Key, NotBuilt, Origin, Type, Value, ems, find, is_set
from parquet_sink.connectors.connect_keys import CONNECT, CONNECT_KEYS, CONNECTOR, CONNECTOR_KEYS, NAME
from parquet_sink.convert.keys import CONVERTER_KEYS
from parquet_sink.files.settings import FileSettings
from parquet_sink.kafka.settings import SERVERS
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.targets.keys import ERROR_KEYS
from parquet_sink.transform.keys import TRANSFORM_KEYS

PRODUCER: Final = "Writing to Kafka"
RUNNING: Final = "Running a source"
SERVERS_KEY: Final = "producer.override.bootstrap.servers"
_OF_SINKS: Final = ("errors.retry.timeout", "errors.retry.delay.max.ms")
_DOCS: Final = {
    "value.converter": "How values are written: StringConverter, JsonConverter or ByteArrayConverter. Must be set here "
    "or in the worker file. Named here, it takes no setting from the worker file, as in Kafka Connect.",
    "key.converter": "How keys are written, likewise. A record without a key has none, whatever the converter.",
    "header.converter": "How values of headers are written: SimpleHeaderConverter, or one of those.",
    ems("tmp.dir"): "Folder for the connector's lock, its state, and what its tasks remember; made when it is not "
    "there. Without it, after a restart of the machine for example, positions alone say where to go on.",
    ems("stop.timeout.ms"): "How long a stop waits for the records on their way, in milliseconds. What it gives up is "
    "sent again at the next start.",
}


def _in_words_of_sources(key: Key) -> Key:
    return replace(key, doc=_DOCS.get(key.name, key.doc))


def _one(table: tuple[Key, ...], name: str) -> Key:
    found = find(table, name)
    assert found is not None, f"{name} is a key of sinks"
    return replace(_in_words_of_sources(found), group=RUNNING)


def _fixed(name: str, type_: Type, default: Value, reason: str) -> Key:
    doc = f"Fixed: {reason}"
    return Key(
        f"producer.override.{name}", PRODUCER, type_, doc, default=default, no_effect=reason, origin=Origin.CONNECT
    )


def _refused(name: str, doc: str, cure: str) -> Key:
    return Key(name, CONNECT, Type.STRING, doc, not_built=NotBuilt("any", is_set, cure), origin=Origin.CONNECT)


def _no_effect(name: str, doc: str, reason: str) -> Key:
    return Key(name, CONNECT, Type.STRING, doc, no_effect=reason, origin=Origin.CONNECT)


OWN_KEYS: Final = (
    Key(
        "name",
        CONNECTOR,
        Type.STRING,
        "Name of the connector. Its positions are kept under it, and it names its folder below `connect.ems.tmp.dir`, "
        "so two connectors may not share it.",
        required=True,
        missing="name the connector.",
        check=NAME,
        origin=Origin.CONNECT,
    ),
    _one(CONNECTOR_KEYS, "connector.class"),
    Key(
        "tasks.max",
        CONNECTOR,
        Type.INT,
        "The most tasks of the source. How many there are is for its class to say.",
        default=1,
        minimum=1,
        origin=Origin.CONNECT,
    ),
)
"""What any source has before keys of its own: its name, its class, and how many tasks it may have."""
PRODUCER_KEYS: Final = (
    Key(
        SERVERS_KEY,
        PRODUCER,
        Type.LIST,
        "Brokers that records are sent to, if they are others than the worker's.",
        default_text="the worker's",
        check=SERVERS,
        origin=Origin.CONNECT,
    ),
    _fixed("acks", Type.STRING, "all", "a position is stored once all in-sync replicas have the records before it."),
    _fixed("enable.idempotence", Type.BOOLEAN, True, "what the client sends again is not twice in the topic."),
    _fixed("transactional.id", Type.STRING, None, "records are written without transactions."),
    Key(
        "producer.override.max.request.size",
        PRODUCER,
        Type.INT,
        "The most bytes that a record may have. Topics have a bound of their own, `max.message.bytes`.",
        default=1_048_576,
        minimum=1,
        maximum=1_000_000_000,
        origin=Origin.CONNECT,
    ),
    Key(
        "producer.override.*",
        PRODUCER,
        Type.STRING,
        "Any other setting of Kafka's producer under its Java name. It wins over the worker's `producer.*`, and those "
        "over the consumer's brokers and security settings (`security.*`, `sasl.*`, `ssl.*`), which are taken "
        "otherwise.",
        default_text="Kafka's",
        origin=Origin.CONNECT,
    ),
)
ERRORS: Final = (
    Key(
        "errors.tolerance",
        CONNECT,
        Type.STRING,
        "`none`: the connector stops at the first record that cannot be transformed or converted; all before it is in "
        "Kafka. `all`: such records are passed over, counted and told, and kept nowhere.",
        default="none",
        choices=("none", "all"),
        origin=Origin.CONNECT,
    ),
    Key(
        "errors.log.enable",
        CONNECT,
        Type.BOOLEAN,
        "A log line for each record that is passed over, without its content.",
        default=False,
        origin=Origin.CONNECT,
    ),
    _no_effect("errors.log.include.messages", "Content in such lines.", "content of records is never logged here."),
    *(
        _no_effect(
            name,
            "How long a failed step is tried again.",
            "what may pass is tried again as a whole, see connect.ems.restart.max.",
        )
        for name in _OF_SINKS
    ),
    _refused(
        "topic.creation.*",
        "How Kafka Connect makes topics.",
        "make the topic, or let the brokers make it (auto.create.topics.enable), and remove the key.",
    ),
    _refused(
        "offsets.storage.topic",
        "A topic for positions of this connector alone.",
        "set offset.storage.topic in the worker file.",
    ),
    Key(
        "exactly.once.support",
        CONNECT,
        Type.STRING,
        "Whether records must be written exactly once. Here they are written at least once.",
        default="requested",
        choices=("requested", "required"),
        not_built=NotBuilt(
            "`required`", lambda value: value == "required", "records are written at least once; set requested."
        ),
        origin=Origin.CONNECT,
    ),
    _no_effect("transaction.boundary", "When transactions end.", "records are written without transactions."),
    _no_effect(
        "transaction.boundary.interval.ms", "When transactions end.", "records are written without transactions."
    ),
    *(key for key in CONNECT_KEYS if key.name not in _OF_SINKS),
)
SOURCE_KEYS: Final[tuple[Key, ...]] = (
    *map(_in_words_of_sources, CONVERTER_KEYS),
    *TRANSFORM_KEYS,
    *PRODUCER_KEYS,
    _one(keys_of(FileSettings), ems("tmp.dir")),
    _one(ERROR_KEYS, ems("stop.timeout.ms")),
    *(replace(key, group=RUNNING) for key in keys_of(RestartSettings)),
    *ERRORS,
)
"""What any source has behind `OWN_KEYS` and keys of its own."""
