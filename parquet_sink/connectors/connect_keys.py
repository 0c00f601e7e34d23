"""Kafka Connect's keys for any sink: its name and class, transforms, error handling."""

from typing import ClassVar, Final

from parquet_sink.config.declared import Milliseconds, declared, key, keys_of
from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.report import quoted

CONNECTOR: Final = "The connector"
CONNECT: Final = "Other keys of Kafka Connect"
_LONGEST_NAME: Final = 200


def _name(value: Value) -> str | None:
    text = str(value)
    if not text.isprintable():
        return f"{quoted(text)} holds control characters; remove them."
    if text in (".", ".."):  # clients take them out of a path, and ask for something else then
        return f"{quoted(text)} cannot stand in a path of the REST API; choose another name."
    if len(text) > _LONGEST_NAME:
        return f"It has {len(text)} characters; the name of a folder and a group may have {_LONGEST_NAME}."
    return None


NAME: Final = Check(f"1 to {_LONGEST_NAME} printable characters, not `.` or `..`", _name)


CONNECTOR_KEYS: Final = (
    Key(
        "name",
        CONNECTOR,
        Type.STRING,
        "Name of the connector. It names the consumer group (`connect-<name>`) and the folder of temporary files, so "
        "two connectors may not share it. In the JSON form it may stand beside `config`.",
        default="MissingSinkName",
        check=NAME,
        origin=Origin.CONNECT,
    ),
    Key(
        "connector.class",
        CONNECTOR,
        Type.STRING,
        "Which connector the file is for: the full name of a connector class, its last part with or without "
        "`Connector`, or the name of an entry point of an installed Python package (see "
        "[connector-classes.md](../how-to/connector-classes.md) and [plugins.md](../how-to/plugins.md)). The default "
        "is `com.celonis.kafka.connect.ems.sink.EmsSinkConnector`, also called `parquet_sink.EmsSink`: files written "
        "for the EMS connector run unchanged. `parquet-sink run --help-all` names all that are there.",
        default="parquet_sink.EmsSink",
        origin=Origin.CONNECT,
    ),
    Key(
        "tasks.max",
        CONNECTOR,
        Type.INT,
        "The most Spark tasks that one micro-batch of this connector may have at the same time. Kafka Connect's own "
        "default is 1; here an absent key leaves the number to Spark.",
        default_text="as many as Spark has slots",
        minimum=1,
        origin=Origin.CONNECT,
    ),
)
"""Those of any sink: its name, its class, and how many Spark tasks it may have."""


@declared(group=CONNECT, origin=Origin.CONNECT)
class _OtherKeys:
    """Settings are `filled_by` some; the others have no effect."""

    retry_timeout: ClassVar[Milliseconds] = key(
        "errors.retry.timeout",
        "How long a record is tried again while the schema registry is unavailable, or a transform says that it cannot "
        "work now, in milliseconds; `-1` without end. With 0 a registry is tried for about a minute, a transform not "
        "again. Nothing else is: the same bytes give the same error, and uploads are retried by "
        "`connect.ems.error.policy`.",
        default=0,
        minimum=-1,
    )
    retry_delay: ClassVar[Milliseconds] = key(
        "errors.retry.delay.max.ms",
        "The longest pause between two such tries. Transforms are tried again after 0.3 s, then twice as long each "
        "time; what would be longer is of random length below it.",
        default=60_000,
        minimum=1,
    )
    reload: ClassVar[str] = key(
        "config.action.reload",
        "Restart when a config provider says that a secret changed.",
        no_effect="providers are asked when a connector starts; restart it when a secret changed.",
    )
    enforced: ClassVar[bool] = key(
        "tasks.max.enforce",
        "Whether a connector may have more tasks than `tasks.max`.",
        default=True,
        no_effect="tasks.max is always enforced.",
    )
    version: ClassVar[str] = key(
        "connector.plugin.version",
        "Which version of the connector class is used, where several are installed.",
        no_effect="there is one version of each class here.",
    )


CONNECT_KEYS: Final = keys_of(_OtherKeys)
