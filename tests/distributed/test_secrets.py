"""Passwords on their way to the config topic: refused, plain or sealed; a sealed one opens where it is used alone."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pytest

from parquet_sink.config.key import Key, Type
from parquet_sink.config.machine import Machine
from parquet_sink.config.providers import resolve
from parquet_sink.config.report import Report
from parquet_sink.config.secret import Secret
from parquet_sink.connectors.hidden import hide
from parquet_sink.distributed.secrets import ConfigSecrets
from parquet_sink.worker.herder.errors import InvalidConnector
from parquet_sink.worker_config.distributed import DistributedSettings, SealingKey
from parquet_sink.worker_config.sealed_values import opening
from parquet_sink.worker_config.worker import Worker
from tests.messages import assert_says

KEYS = (Key("token", "", Type.PASSWORD, ""), Key("pin", "", Type.PASSWORD, ""), Key("topic", "", Type.STRING, ""))
Mode = Literal["refused", "plain", "sealed"]


def _key(name: str, byte: int) -> SealingKey:
    return SealingKey(name, Secret(base64.b64encode(bytes([byte]) * 32).decode()))


FIRST, OTHER = _key("first", 1), _key("other", 2)


def _secrets(mode: Mode = "sealed", *keys: SealingKey) -> ConfigSecrets:
    named = DistributedSettings(group_id="g", config_topic="c", status_topic="s", state_topic="t", offset_topic="o")
    return ConfigSecrets(replace(named, secrets=mode, sealing_keys=keys or (FIRST,)))


def _stored(
    secrets: ConfigSecrets, config: Mapping[str, str], before: Mapping[str, str] | None = None, name: str = "orders"
) -> dict[str, str]:
    return secrets.stored(name, config, before or {}, KEYS)


def _problems(secrets: ConfigSecrets, config: Mapping[str, str], name: str = "orders") -> tuple[str, ...]:
    with pytest.raises(InvalidConnector) as told:
        _stored(secrets, config, name=name)
    return told.value.problems


def _used(secrets: ConfigSecrets, config: Mapping[str, str]) -> tuple[Mapping[str, str], list[str]]:
    """What a worker runs, and what is wrong with it."""
    report = Report()
    worker = Worker(machine=Machine(environ={"A": "a"}, providers=None), distributed=secrets.settings)
    return resolve(config, opening(worker).machine, report).values, report.problems


def test_a_password_in_the_clear_is_refused_with_the_cure() -> None:
    """Of each key one problem; the password is in none; what is not a password is not looked at."""
    problems = _problems(_secrets("refused"), {"token": "canary", "pin": "${env:A}", "topic": "t", "x.password": "y"})
    for name, problem in zip(("token", "x.password"), problems, strict=True):
        assert_says(
            problem, f"[{name}]", "in the clear", "${file:PATH:KEY}", "[parquet-sink.config.secrets]", "to seal"
        )
        assert "canary" not in problem


def test_placeholders_are_no_passwords() -> None:
    """They are stored as they are, whatever the mode."""
    config = {"token": "Bearer ${env:A}", "pin": "", "topic": "${env:A}"}
    for mode in ("refused", "plain", "sealed"):
        assert _stored(_secrets(mode), config) == config  # type: ignore[arg-type]


def test_plain_stores_what_came() -> None:
    """Who writes that into the worker file wants it."""
    assert _stored(_secrets("plain"), {"token": "canary"}) == {"token": "canary"}


def test_a_sealed_password_is_nowhere_but_where_it_is_used() -> None:
    """The config topic has a placeholder, which REST shows, and which the worker that runs the connector opens."""
    secrets = _secrets()
    stored = _stored(secrets, {"token": " canary ", "topic": "t"})
    assert stored["token"].startswith("${sealed:first:")
    assert "canary" not in str(stored)
    assert hide(stored, KEYS) == stored
    assert _used(secrets, {**stored, "pin": "${env:A}"}) == ({"token": " canary ", "topic": "t", "pin": "a"}, [])


def test_what_is_put_twice_is_stored_once() -> None:
    """The same password keeps its sealed text, so nothing changes; another one gets another; two are never alike."""
    secrets = _secrets()
    before = _stored(secrets, {"token": "canary", "pin": "canary"})
    assert before["token"] != before["pin"]
    assert _stored(secrets, {"token": "canary", "pin": "canary"}, before) == before
    assert _stored(secrets, before, before) == before
    assert _stored(secrets, {"token": "other"}, before)["token"] != before["token"]


def test_keys_are_rotated_by_putting_what_is_there() -> None:
    """The new first key opens what the old one sealed while that is listed, and seals it again when it is put."""
    old = _stored(_secrets("sealed", OTHER), {"token": "canary"})
    both = _secrets("sealed", FIRST, OTHER)
    assert _used(both, old)[0] == {"token": "canary"}
    for put in (old, {"token": "canary"}):
        new = _stored(both, put, old)
        assert new["token"].startswith("${sealed:first:")
        assert _used(_secrets("sealed", FIRST), new)[0] == {"token": "canary"}


def test_a_key_that_is_gone_is_named() -> None:
    """By the id that the value has, where it is used and where it is put."""
    old = _stored(_secrets("sealed", OTHER), {"token": "canary"})
    cure = ('the key "other"', "[parquet-sink.config.sealing.keys]", "lacks", "add it there")
    (used,) = _used(_secrets(), old)[1]
    assert_says(used, "[token]", old["token"], *cure)
    (put,) = _problems(_secrets(), old)
    assert_says(put, "[token]", "The sealed value", *cure)


@pytest.mark.parametrize("wrong", ["key", "text", "end"])
def test_what_was_changed_is_not_opened(wrong: str) -> None:
    """Another key of the same name, another text, or half of it."""
    stored = _stored(_secrets(), {"token": "canary"})["token"]
    changed = {"key": stored, "text": stored.replace(stored[20:24], "AAAA"), "end": stored[:40] + "}"}[wrong]
    secrets = _secrets("sealed", replace(OTHER, id="first")) if wrong == "key" else _secrets()
    (problem,) = _used(secrets, {"token": changed})[1]
    assert_says(problem, "[token]", "was changed", 'the key "first"', "correct the key")
    assert _problems(secrets, {"token": changed}) != ()


@pytest.mark.parametrize("mode", ["refused", "plain", "sealed"])
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("other", {"token": "{}"}),
        ("orders", {"pin": "{}"}),
        ("orders", {"topic": "{}"}),
        ("orders", {"topic": "http://{}@evil"}),
        ("orders", {"token": "x{}"}),
    ],
)
def test_a_sealed_value_is_taken_nowhere_else(mode: Mode, name: str, config: dict[str, str]) -> None:
    """Who may write configurations cannot have another's password sent to where he reads it."""
    sealed = _stored(_secrets(), {"token": "canary"})["token"]
    (problem,) = _problems(_secrets(mode), {key: text.format(sealed) for key, text in config.items()}, name)
    key = next(iter(config))
    assert_says(problem, f"[{key}]", "another connector or key", "not stand alone", "write the password again")


def test_a_sealed_value_stays_when_the_mode_changes() -> None:
    """It is still opened, and may be put back as it is."""
    sealed = _stored(_secrets(), {"token": "canary"})
    for mode in ("refused", "plain"):
        assert _stored(_secrets(mode), sealed, sealed) == sealed  # type: ignore[arg-type]
        assert _used(_secrets(mode), sealed)[0] == {"token": "canary"}  # type: ignore[arg-type]


def test_a_password_beside_placeholders_cannot_be_sealed() -> None:
    """What is sealed is not searched for placeholders when it is opened."""
    (problem,) = _problems(_secrets(), {"token": "canary${env:A}"})
    assert_says(problem, "[token]", "in the clear", "beside placeholders", "write one")
    assert "canary" not in problem


@pytest.mark.parametrize(
    ("secret", "moved"),
    [
        ("connect.ems.authorization.key", "connect.ems.endpoint"),
        ("connect.ems.authorization.key", "connect.ems.oauth2.token.url"),
        ("connect.ems.authorization.key", "connect.ems.proxy.host"),
        ("connect.ems.authorization.key", "connector.class"),
        ("connect.ems.authorization.key", "connect.ems.tls.ca.file"),
        ("connect.ems.notify.secret", "connect.ems.notify.url"),
        ("connect.ems.archive.secret.key", "connect.ems.archive.url"),
        ("value.converter.basic.auth.user.info", "value.converter.schema.registry.url"),
        ("value.converter.basic.auth.user.info", "value.converter"),
        ("value.converter.basic.auth.user.info", "connect.ems.proxy.port"),
        ("consumer.override.sasl.jaas.config", "consumer.override.bootstrap.servers"),
        ("consumer.override.sasl.jaas.config", "consumer.override.security.protocol"),
        ("transforms.mask.token", "transforms.mask.type"),
    ],
)
@pytest.mark.parametrize("change", ["other", "removed", "added", "created"])
def test_a_sealed_value_is_asked_for_again_where_it_would_be_sent_elsewhere(
    secret: str, moved: str, change: str
) -> None:
    """The message names the key that differs; the password written again is taken, and is sealed anew."""
    secrets, keys = _secrets(), (Key(secret, "", Type.PASSWORD, ""),)
    before = secrets.stored("orders", {secret: "canary", moved: "one", "topics": "a"}, {}, keys)
    config = {**before, moved: "two"}
    if change == "removed":
        del config[moved]
    elif change == "added":
        config, before = before, {name: text for name, text in before.items() if name != moved}
    elif change == "created":
        config, before = before, {}
    with pytest.raises(InvalidConnector) as told:
        secrets.stored("orders", config, before, keys)
    (problem,) = told.value.problems
    assert_says(problem, f"Invalid [{secret}]", f"[{moved}] differs from what is stored", "Write the password again")
    stored = secrets.stored("orders", {**config, secret: "canary"}, before, keys)
    assert "canary" not in stored[secret]


@pytest.mark.parametrize(
    "other",
    [
        {"topics": "b"},
        {"value.converter.schema.registry.url": "http://other"},
        {"connect.ems.commit.records": "5"},
        {"transforms.mask.type": "other"},
    ],
)
def test_a_sealed_value_stays_where_other_keys_change(other: Mapping[str, str]) -> None:
    """What has nothing to do with where it is sent, or is for the secrets of another part, asks for nothing."""
    secrets, keys = _secrets(), (Key("connect.ems.authorization.key", "", Type.PASSWORD, ""),)
    config = {"connect.ems.authorization.key": "canary", "connect.ems.endpoint": "https://a"}
    before = secrets.stored("orders", config, {}, keys)
    assert secrets.stored("orders", {**before, **other}, before, keys) == {**before, **other}
