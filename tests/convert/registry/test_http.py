"""Addresses, credentials and certificates of a registry, before anything is sent."""

from collections.abc import Callable
from pathlib import Path

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.convert.registry.client import Registry, registry_for, shown
from parquet_sink.convert.registry.http import address_of, registry_context
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.errors import InvalidConfiguration

SETTINGS = RegistrySettings(("http://localhost:8081",))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host:8081", "http://host:8081"),
        ("https://host/apis/ccompat/v7/", "https://host/apis/ccompat/v7"),
        ("http://[::1]:81", "http://[::1]:81"),
        ("http://user:p%40ss@host", "http://host"),
    ],
)
def test_an_address_is_shown_without_credentials(url: str, expected: str) -> None:
    """Neither user nor password of a URL is ever in a message."""
    assert address_of(url, SETTINGS).url == expected
    assert "p%40ss" not in repr(address_of(url, SETTINGS))


def test_credentials_come_from_the_settings_or_the_url() -> None:
    """As Confluent's: a URL may hold them, percent-encoded; each address has its own."""
    settings = RegistrySettings(("x",), username="u", password=Secret("p"))
    assert address_of("http://a:b@host", settings).credentials == ("u", Secret("p"))
    assert address_of("http://a:b%3A@host", SETTINGS).credentials == ("a", Secret("b:"))
    assert address_of("http://host", SETTINGS).credentials is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:8081",
        "ftp://host",
        "http://",
        "http://host:port",
        "http://[x",
        "http://h?x=1",
        "http://a@h",
        " http://h",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    """A wrong address is a matter of configuration."""
    with pytest.raises(InvalidConfiguration, match="schema.registry.url"):
        address_of(url, SETTINGS)


@pytest.mark.parametrize("token", ["", "two words", "line\n", "schlüssel"])
def test_a_token_that_no_header_can_hold_is_refused(token: str) -> None:
    """And it is not shown."""
    with pytest.raises(InvalidConfiguration, match="bearer.auth.token") as caught:
        Registry(RegistrySettings(("http://localhost:1",), bearer_token=Secret(token)))
    assert token not in str(caught.value) or not token


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda path: RegistrySettings(("x",), ca_file=path), "schema.registry.ssl.truststore"),
        (lambda path: RegistrySettings(("x",), certificate_file=path), "schema.registry.ssl.keystore"),
    ],
)
def test_files_that_are_no_certificates_are_refused(
    make: Callable[[str], RegistrySettings], key: str, tmp_path: Path
) -> None:
    """Absent or of another kind: the key and the file are named."""
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    for path in (tmp_path / "absent.pem", text):
        with pytest.raises(InvalidConfiguration) as caught:
            registry_context(make(str(path)))
        assert key in str(caught.value)
        assert str(path) in str(caught.value)


def test_a_process_has_one_registry_for_equal_settings() -> None:
    """Equal settings share its cache; others do not."""
    assert registry_for(SETTINGS) is registry_for(RegistrySettings(("http://localhost:8081",)))
    assert registry_for(SETTINGS) is not registry_for(RegistrySettings(("http://localhost:8082",)))


def test_addresses_are_shown_in_their_order() -> None:
    """For the line of `check`, without credentials."""
    assert shown(RegistrySettings(("http://a:b@two", "http://one"))) == "http://two, http://one"
