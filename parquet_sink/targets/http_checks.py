"""Checks of what targets over HTTP share: nothing secret travels in clear, and who signs in at a proxy."""

from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.net.loopback import is_loopback
from parquet_sink.net.settings import PROXY_PASSWORD, PROXY_SIGN_IN, PROXY_USER

ALLOW_HTTP: Final = ems("endpoint.allow.http")


def in_clear(values: Values, name: str, report: Report, what: str = "the credential") -> None:
    """An address with http must be on this machine, unless that is permitted. what: would be seen by others."""
    address = values.text(name)
    if address is None or values.flag(ALLOW_HTTP):
        return
    url = urlsplit(address)
    if url.scheme == "http" and not is_loopback(url):
        report.problem(
            name,
            f"{values.quoted(name)} would carry {what} in clear; use https, or permit http with {ALLOW_HTTP}=true.",
        )


def proxy(values: Values, report: Report) -> None:
    """Who signs in says as whom."""
    if values.text(PROXY_SIGN_IN) != "BASIC":
        return
    for name in (PROXY_USER, PROXY_PASSWORD):
        if name not in values.given:
            report.warn(name, "It is missing, so nobody signs in at the proxy; set it, or remove the others.")
