"""Whom a push target's certificate must come from."""

from collections.abc import Iterator, Mapping
from typing import Final

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.net.tls import Authorities, environment_authorities, tls_context

CA_KEY: Final = "connect.ems.tls.ca.file"


def authorities(ca_file: str | None, environment: Mapping[str, str]) -> Authorities | None:
    """Those of the connector's key, else those that the environment names; None for the system's."""
    return Authorities(ca_file, CA_KEY) if ca_file else environment_authorities(environment)


def problems(ca_file: str | None, environment: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with them, each as `Invalid [key]. reason; cure`."""
    try:
        tls_context(authorities(ca_file, environment))
    except InvalidConfiguration as error:
        yield from error.problems
