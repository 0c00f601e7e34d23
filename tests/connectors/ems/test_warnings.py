"""Connector files: what is warned about, and what is accepted in silence."""

import pytest

from tests.connectors.ems.connector_files import E, load_file
from tests.messages import assert_says

WARNINGS = [
    (f"{E}commit.interval", ("unknown", f"Did you mean {E}commit.interval.ms?")),
    (f"{E}endpiont.allow.http", ("unknown", f"Did you mean {E}endpoint.allow.http?")),
    ("commit.records", ("unknown", f"Did you mean {E}commit.records?")),
    ("topic", ("unknown", "Did you mean topics?")),
    ("my.own.note", ("unknown",)),
    (f"{E}zzz", ("unknown",)),
    ("consumer.isolation.level", ("unknown", "a connector file", "Did you mean consumer.override.isolation.level?")),
    ("plugin.path", ("the worker file", "--worker")),
    (f"{E}client.id", ("deprecated", "is fixed", "remove the key")),
    (f"{E}parquet.write.flush.records", ("deprecated", f"use {E}parquet.row.group.size.bytes", "remove the key")),
    (f"{E}order.field.name", (f"unless {E}data.primary.key is set",)),
    (f"{E}proxy.host", (f"unless {E}proxy.port is set",)),
    (f"{E}obfuscation.sha512.salt", (f"unless {E}obfuscation.fields is set",)),
    ("transforms.a.type", ('does not name "a"', "list it there", "remove the key")),
    ("producer.override.linger.ms", ("unless errors.deadletterqueue.topic.name", f"{E}notify.topic is set")),
]


@pytest.mark.parametrize(("key", "told"), WARNINGS)
def test_what_changes_nothing_is_warned_about(key: str, told: tuple[str, ...]) -> None:
    """The connector runs, and the operator knows; the value is not shown."""
    loaded = load_file({key: "98765"})
    assert loaded.problems == ()
    (warning,) = loaded.warnings
    assert_says(warning, f"Warning [{key}]", "no effect", *told)
    assert ("Did you mean" in warning) == any("Did you mean" in part for part in told)
    assert "98765" not in warning


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
