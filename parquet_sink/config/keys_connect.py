"""Kafka Connect's keys for any sink: converters, transforms, error handling."""

from parquet_sink.config import converters
from parquet_sink.config.key import Check, Group, Key, NotBuilt, Origin, Type, Value, is_set
from parquet_sink.config.keys_convert import PREFIXES, settings_under

_DEAD_LETTERS = (
    "there is no dead-letter store yet; remove it: the connector then stops at an invalid record and names it."
)
_TRANSFORMS = "remove it, and transform records before they reach the topic or after they reached the target."


def _known(value: Value) -> str | None:
    return converters.refusal(str(value))


def _key(
    name: str,
    type_: Type,
    doc: str,
    default: Value = None,
    *,
    minimum: int | None = None,
    needs: str = "",
    no_effect: str = "",
) -> Key:
    return Key(
        name,
        Group.CONNECT,
        type_,
        doc,
        default=default,
        minimum=minimum,
        origin=Origin.CONNECT,
        needs=needs,
        no_effect=no_effect,
    )


_KNOWN = Check("a known converter, see below", _known)


def _converter(side: str, doc: str, default_text: str) -> Key:
    name = f"{side}.converter"
    connect = Origin.CONNECT
    return Key(name, Group.CONVERT, Type.STRING, doc, default_text=default_text, check=_KNOWN, origin=connect)


def _unused_converter(name: str, what: str) -> Key:
    doc = f"Any is accepted, with its settings: {what} are never used, so nothing decodes them."
    return Key(name, Group.CONVERT, Type.STRING, doc, origin=Origin.CONNECT)


CONVERTER_KEYS = (
    _converter(
        "value",
        "How values of records are decoded. Must be set here or in the worker file. Named here, it takes no setting "
        "from the worker file, as in Kafka Connect; settings without it add to the worker's converter.",
        "the worker's",
    ),
    _converter(
        "key",
        "How keys of records are decoded, where something asks for a key. Nothing does yet, but it must be a converter "
        "that is known, with settings that are right.",
        "the worker's, else keys are bytes",
    ),
    _unused_converter("header.converter", "headers of records"),
    _unused_converter("header.converter.*", "headers of records"),
    *(key for prefix in PREFIXES for key in settings_under(prefix)),
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
        "How long decoding is tried again while the schema registry is away, in milliseconds; `-1` without end. With 0 "
        "it is tried for about a minute. Nothing else is: the same bytes give the same error, and uploads are retried "
        "by `connect.ems.error.policy`.",
        default=0,
        minimum=-1,
    ),
    _key(
        "errors.retry.delay.max.ms",
        Type.LONG,
        "The longest pause between two such tries.",
        default=60_000,
        minimum=1_000,
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
