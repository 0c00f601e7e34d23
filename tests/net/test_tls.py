"""Whom a target's certificate must come from."""

import ssl
from pathlib import Path

import pytest

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.net.tls import target_authorities, tls_context
from tests.messages import saying


@pytest.mark.parametrize(
    ("ca_file", "environment", "source"),
    [
        ("absent", {"REQUESTS_CA_BUNDLE": "other"}, "connect.ems.tls.ca.file"),
        (None, {"REQUESTS_CA_BUNDLE": "absent", "SSL_CERT_FILE": "other"}, "REQUESTS_CA_BUNDLE"),
        (None, {"SSL_CERT_FILE": "absent"}, "SSL_CERT_FILE"),
    ],
)
def test_ca_sources_have_an_order(ca_file: str | None, environment: dict[str, str], source: str) -> None:
    """The first source that is set is used, and named when it cannot be read."""
    with pytest.raises(InvalidConfiguration, match=saying(f"[{source}]", "absent", "no such file")):
        tls_context(target_authorities(ca_file, environment))


def test_a_ca_file_without_certificates_is_told(tmp_path: Path) -> None:
    """A file that holds no certificate is invalid, not silently empty."""
    (tmp_path / "ca").write_text("hello")
    told = saying("[connect.ems.tls.ca.file]", str(tmp_path / "ca"), "certificates in PEM form", "Name a file")
    with pytest.raises(InvalidConfiguration, match=told):
        tls_context(target_authorities(str(tmp_path / "ca"), {}))


def test_tls_is_always_verified() -> None:
    """The system's store is the default, with certificate and name checked."""
    context = tls_context(target_authorities(None, {}))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
