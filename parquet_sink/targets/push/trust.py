"""Whom a push target's certificate must come from."""

from collections.abc import Mapping
from typing import Final

from parquet_sink.net.tls import Authorities, environment_authorities

CA_KEY: Final = "connect.ems.tls.ca.file"


def authorities(ca_file: str | None, environment: Mapping[str, str]) -> Authorities | None:
    """Those of the connector's key, else those that the environment names; None for the system's."""
    return Authorities(ca_file, CA_KEY) if ca_file else environment_authorities(environment)
