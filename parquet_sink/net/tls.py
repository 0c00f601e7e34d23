"""Verifying TLS contexts: which certificate authorities count, and which certificate of our own a server gets."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.net import pem

ENVIRONMENT_CA: Final = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
"""Variables that name a file or folder of authorities, for the whole machine; the first that is set counts."""


@dataclass(frozen=True)
class Authorities:
    """A file of certificates in PEM form, or a folder of hashed ones. source: the key or variable that names it."""

    place: str
    source: str


@dataclass(frozen=True)
class OwnCertificate:
    """The client's certificate; its key may be in the same file. source: the key that names it."""

    certificate_file: str
    source: str
    key_file: str | None = None
    password: Secret | None = None


def environment_authorities(environment: Mapping[str, str]) -> Authorities | None:
    """What the environment names; None when it names nothing."""
    return next((Authorities(environment[name], name) for name in ENVIRONMENT_CA if environment.get(name)), None)


def tls_context(authorities: Authorities | None, own: OwnCertificate | None = None) -> ssl.SSLContext:
    """A context that verifies certificate and host name, by these authorities alone or else by the system's.

    Raises InvalidConfiguration, naming the source, when a file cannot be used.
    """
    context = _trusting(authorities)
    if own is not None:
        password = own.password.reveal() if own.password else ""
        try:  # a password, be it empty: OpenSSL would ask for it on the terminal
            context.load_cert_chain(own.certificate_file, own.key_file, password)
        except (OSError, ValueError) as error:
            files = " and ".join(filter(None, (own.certificate_file, own.key_file)))
            cause = pem.describe(error, "a certificate with its key", locked=True)
            raise _unusable(own.source, files, cause, "Correct it") from error
    return context


def _trusting(authorities: Authorities | None) -> ssl.SSLContext:
    if authorities is None:
        return ssl.create_default_context()
    place = authorities.place
    try:
        if os.path.isdir(place):
            return ssl.create_default_context(capath=place)
        return ssl.create_default_context(cafile=place)
    except (OSError, ValueError) as error:
        cause = pem.authorities_problem(place) or pem.describe(error, "certificates")
        raise _unusable(authorities.source, place, cause, "Name a file of certificates in PEM form") from error


def _unusable(source: str, files: str, cause: str, cure: str) -> InvalidConfiguration:
    return InvalidConfiguration([f"Invalid [{source}]. {files} cannot be used: {cause}. {cure}."])
