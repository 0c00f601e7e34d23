"""Whom a target's certificate must come from."""

import shutil
import ssl
from pathlib import Path

import pytest
from requests import certs

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


def test_authorities_are_read_once_for_each_version(tmp_path: Path) -> None:
    """Who asks again has the same context, until the file changes: then what it has now counts, and is told of."""
    file = tmp_path / "ca.pem"
    shutil.copy(certs.where(), file)
    ours = target_authorities(str(file), {})
    first = tls_context(ours)
    assert tls_context(ours) is first
    assert tls_context(None) is tls_context(None) is not first

    file.write_text("hello")
    with pytest.raises(InvalidConfiguration, match=saying(str(file), "certificates in PEM form")):
        tls_context(ours)
    file.unlink()
    with pytest.raises(InvalidConfiguration, match=saying(str(file), "no such file")):
        tls_context(ours)
