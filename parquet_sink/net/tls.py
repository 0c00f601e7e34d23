"""Which certificate authorities a target's certificate may come from."""

import os
import ssl
from collections.abc import Mapping

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.net import pem

_VARIABLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


def tls_context(ca_file: str | None, environment: Mapping[str, str]) -> ssl.SSLContext:
    """A verifying context: `connect.ems.tls.ca.file`, else REQUESTS_CA_BUNDLE, else SSL_CERT_FILE, else the system's.

    The one that is named is used alone, a file or a folder of hashed certificates. Raises InvalidConfiguration when
    it cannot be read.
    """
    source, place = _chosen(ca_file, environment)
    if place is None:
        return ssl.create_default_context()
    try:
        if os.path.isdir(place):
            return ssl.create_default_context(capath=place)
        return ssl.create_default_context(cafile=place)
    except (OSError, ValueError) as error:
        cause = pem.not_authorities(place) or pem.why(error, "certificates")
        raise InvalidConfiguration(
            [f"Invalid [{source}]. {place} cannot be used: {cause}. Name a file of certificates in PEM form."]
        ) from error


def _chosen(ca_file: str | None, environment: Mapping[str, str]) -> tuple[str, str | None]:
    if ca_file:
        return "connect.ems.tls.ca.file", ca_file
    for variable in _VARIABLES:
        if place := environment.get(variable):
            return variable, place
    return "", None
