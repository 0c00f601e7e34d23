"""Kafka Connect's keys for any sink: converters, transforms, error handling."""

from parquet_sink.config.key import Group, Key, NotBuilt, Origin, Type, Value, is_set

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_JSON_NAMES = (JSON_CONVERTER, "JsonConverter", "Json", "json")
ONLY_JSON = f"only schemaless JSON is read; use {JSON_CONVERTER} with value.converter.schemas.enable=false."
_DEAD_LETTERS = (
    "there is no dead-letter store yet; remove it: the connector then stops at an invalid record and names it."
)
_TRANSFORMS = "remove it, and transform records before they reach the topic or after they reached the target."


def is_json(value: Value) -> bool:
    """True for JsonConverter under its full name or one of Connect's short ones."""
    return value in _JSON_NAMES


def _key(name: str, type_: Type, doc: str, default: Value = None, *, needs: str = "", no_effect: str = "") -> Key:
    origin = Origin.CONNECT
    return Key(name, Group.CONNECT, type_, doc, default=default, origin=origin, needs=needs, no_effect=no_effect)


def _unused_converter(name: str, what: str) -> Key:
    doc = f"Any is accepted, with its settings: {what} are never used, so nothing decodes them."
    return Key(name, Group.CONVERT, Type.STRING, doc, origin=Origin.CONNECT)


CONVERTER_KEYS = (
    Key(
        "value.converter",
        Group.CONVERT,
        Type.STRING,
        f"How a record's value is decoded: `{JSON_CONVERTER}` (or `JsonConverter`, `json`). Must be set here or in the "
        "worker file.",
        default_text="the worker's",
        not_built=NotBuilt("any other converter", lambda value: not is_json(value), ONLY_JSON),
        origin=Origin.CONNECT,
    ),
    Key(
        "value.converter.schemas.enable",
        Group.CONVERT,
        Type.BOOLEAN,
        "Whether each JSON value is an envelope of schema and payload. Kafka Connect's default is `true`, which is not "
        "built yet: set `false`. Set here without `value.converter`, it adds to the worker's converter.",
        default_text="the worker's, else true",
        origin=Origin.CONNECT,
    ),
    *(
        Key(f"value.converter.{name}", Group.CONVERT, Type.STRING, doc, origin=Origin.CONNECT)
        for name, doc in (
            ("schemas.cache.size", "Accepted; schemaless JSON has no schemas to cache."),
            ("decimal.format", "Accepted; it concerns the writing of JSON with a schema."),
            ("replace.null.with.default", "Accepted; schemaless JSON has no defaults."),
            ("converter.type", "Accepted; it is always `value`."),
        )
    ),
    _unused_converter("key.converter", "keys of records"),
    _unused_converter("key.converter.*", "keys of records"),
    _unused_converter("header.converter", "headers of records"),
    _unused_converter("header.converter.*", "headers of records"),
)

CONNECT_KEYS = (
    Key(
        "transforms",
        Group.CONNECT,
        Type.LIST,
        "Single message transforms.",
        default=(),
        not_built=NotBuilt("any", is_set, _TRANSFORMS),
        origin=Origin.CONNECT,
    ),
    _key("transforms.*", Type.STRING, "Settings of transforms.", needs="transforms"),
    Key(
        "predicates",
        Group.CONNECT,
        Type.LIST,
        "Predicates of transforms.",
        default=(),
        not_built=NotBuilt("any", is_set, _TRANSFORMS),
        origin=Origin.CONNECT,
    ),
    _key("predicates.*", Type.STRING, "Settings of predicates.", needs="predicates"),
    Key(
        "errors.tolerance",
        Group.CONNECT,
        Type.STRING,
        "`none`: the connector stops at a record that cannot be decoded, and names it.",
        default="none",
        choices=("none", "all"),
        not_built=NotBuilt(
            "`all`",
            lambda value: value == "all",
            "there is no dead-letter store yet to keep such records; set none: the connector then stops at an invalid "
            "record and names it.",
        ),
        origin=Origin.CONNECT,
    ),
    Key(
        "errors.deadletterqueue.topic.name",
        Group.CONNECT,
        Type.STRING,
        "Topic for records that cannot be decoded.",
        not_built=NotBuilt("any", is_set, _DEAD_LETTERS),
        origin=Origin.CONNECT,
    ),
    _key(
        "errors.deadletterqueue.*",
        Type.STRING,
        "Settings of the dead-letter topic.",
        needs="errors.deadletterqueue.topic.name",
    ),
    _key(
        "errors.log.enable",
        Type.BOOLEAN,
        "Accepted with either value: an error that stops the connector is always logged.",
        default=False,
    ),
    _key(
        "errors.log.include.messages",
        Type.BOOLEAN,
        "Accepted with either value: the log always names the record's topic, topic-partition and offset, as Kafka "
        "Connect does for sinks, and never its content.",
        default=False,
    ),
    _key(
        "errors.retry.timeout",
        Type.LONG,
        "Retries of decoding, in milliseconds.",
        default=0,
        no_effect="decoding the same bytes again gives the same error; uploads are retried by "
        "connect.ems.error.policy=RETRY.",
    ),
    _key(
        "errors.retry.delay.max.ms",
        Type.LONG,
        "Pause between retries of decoding.",
        default=60_000,
        no_effect="decoding is not retried.",
    ),
    _key(
        "config.action.reload",
        Type.STRING,
        "Restart when a config provider says that a secret changed.",
        no_effect="providers are asked once, at the start.",
    ),
    _key(
        "tasks.max.enforce",
        Type.BOOLEAN,
        "Whether a connector may have more tasks than `tasks.max`.",
        default=True,
        no_effect="tasks.max is always enforced.",
    ),
    _key("producer.override.*", Type.STRING, "Settings of producers.", no_effect="the sink has no producer."),
    _key(
        "admin.override.*",
        Type.STRING,
        "Settings of admin clients.",
        no_effect="the sink asks brokers with the consumer's settings; use consumer.override.*.",
    ),
)
