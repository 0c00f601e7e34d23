"""Connector files: what is warned about, and what is accepted in silence."""

import pytest

from tests.connectors.ems.connector_files import E, load_file

UNKNOWN = "It is unknown and has no effect."


WARNINGS = [
    (f"{E}commit.interval", f"{UNKNOWN} Did you mean {E}commit.interval.ms?"),
    (f"{E}endpiont.allow.http", f"{UNKNOWN} Did you mean {E}endpoint.allow.http?"),
    ("commit.records", f"{UNKNOWN} Did you mean {E}commit.records?"),
    ("topic", f"{UNKNOWN} Did you mean topics?"),
    ("my.own.note", UNKNOWN),
    (f"{E}zzz", UNKNOWN),
    (
        "consumer.isolation.level",
        "It is unknown in a connector file and has no effect. Did you mean consumer.override.isolation.level?",
    ),
    ("plugin.path", "It belongs in the worker file (--worker) and has no effect in a connector file."),
    (
        f"{E}client.id",
        "It is deprecated and has no effect: the client's name at the target is fixed; remove the key.",
    ),
    (
        f"{E}parquet.write.flush.records",
        (
            f"It is deprecated and has no effect: use {E}parquet.row.group.size.bytes (bytes, not records) or "
            f"remove the "
            "key."
        ),
    ),
    (f"{E}order.field.name", f"It has no effect unless {E}data.primary.key is set."),
    (f"{E}proxy.host", f"It has no effect unless {E}proxy.port is set."),
    (f"{E}obfuscation.sha512.salt", f"It has no effect unless {E}obfuscation.fields is set."),
    ("transforms.a.type", 'It has no effect: transforms does not name "a"; list it there, or remove the key.'),
    (
        "producer.override.linger.ms",
        "It has no effect unless errors.deadletterqueue.topic.name or connect.ems.notify.topic is set.",
    ),
]


@pytest.mark.parametrize(("key", "warning"), WARNINGS)
def test_what_changes_nothing_is_warned_about(key: str, warning: str) -> None:
    """The connector runs, and the operator knows; the value is not shown."""
    loaded = load_file({key: "98765"})
    assert loaded.problems == ()
    assert loaded.warnings == (f"Warning [{key}]. {warning}",)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connector.class", "com.celonis.kafka.connect.ems.sink.EmsSinkConnector"),
        ("connector.class", "parquet_sink.EmsSink"),
        ("connector.class", " "),
        ("key.converter", "org.apache.kafka.connect.storage.StringConverter"),
        ("key.converter.schemas.enable", "true"),
        ("header.converter", "any.Converter"),
        ("errors.log.enable", "true"),
        ("errors.tolerance", "none"),
        ("transforms", ""),
        (f"{E}explode.mode", "NONE"),
        (f"{E}obfuscation.method", "FIX"),
        (f"{E}proxy.type", "http"),
        (f"{E}commit.interval.ms", "1000"),
        (f"{E}endpoint", "http://localhost:8085/x"),
        (f"{E}endpoint", "http://[::1]:8085/x"),
        (f"{E}endpoint", "http://127.9.9.9/x"),
        ("consumer.override.enable.auto.commit", "false"),
    ],
)
def test_what_is_already_so_is_accepted_silently(key: str, value: str) -> None:
    """Defaults written out, keys and headers' converters, http to this machine."""
    loaded = load_file({key: value})
    assert loaded.problems == loaded.warnings == ()
