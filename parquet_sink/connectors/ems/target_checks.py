"""Checks of the target's keys together: who signs in where, and that no credential travels in clear."""

from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.net.loopback import is_loopback
from parquet_sink.targets.directory.address import is_directory
from parquet_sink.targets.push.keys import HTTP_KEYS, PUSH_KEYS
from parquet_sink.targets.push.oauth2_keys import CLIENT_ID_KEY, OAUTH2_KEYS, SECRET_KEY, TOKEN_URL_KEY

ENDPOINT: Final = ems("endpoint")
KEY: Final = ems("authorization.key")
ALLOW_HTTP: Final = ems("endpoint.allow.http")


def check(values: Values, report: Report) -> None:
    """A push API needs a credential; a folder has no use for what HTTP needs."""
    if is_directory(values.texts.get(ENDPOINT, "").strip()):  # also when something is wrong with it
        _of_no_use(values, report)
        return
    _credential(values, report)
    _in_clear(values, ENDPOINT, report)
    _in_clear(values, TOKEN_URL_KEY, report)
    _proxy(values, report)


def _of_no_use(values: Values, report: Report) -> None:
    shaping = {ems("data.fallback.varchar.length")} if ems("flattener.jsonblob.chunks") in values.given else set[str]()
    for one in (*PUSH_KEYS, *OAUTH2_KEYS, *HTTP_KEYS):
        if one.name in values.given - shaping and values.differs(one):
            report.warn(one.name, f"It has no effect: {ENDPOINT} is a folder, and nothing is sent over HTTP.")


def _credential(values: Values, report: Report) -> None:
    """One of the two ways, whole."""
    client, secret, key = (name in values.given for name in (CLIENT_ID_KEY, SECRET_KEY, KEY))
    if key and (client or secret):
        other = CLIENT_ID_KEY if client else SECRET_KEY
        report.problem(KEY, f"Both it and {other} are set; keep the key, or the OAuth 2.0 client.")
    elif client != secret:
        missing, there = (SECRET_KEY, CLIENT_ID_KEY) if client else (CLIENT_ID_KEY, SECRET_KEY)
        cure = "give the client's secret, best as ${env:NAME} or ${file:PATH:KEY}" if client else "name the client"
        report.problem(missing, f"It is missing beside {there}; {cure}.")
    elif not (key or client):
        report.problem(
            KEY,
            "It is missing; give AppKey <key> or Bearer <key>, best as ${env:NAME} or ${file:PATH:KEY}. Or give an "
            f"OAuth 2.0 client, with {CLIENT_ID_KEY} and {SECRET_KEY}.",
        )


def _in_clear(values: Values, name: str, report: Report) -> None:
    address = values.text(name)
    if address is None or values.flag(ALLOW_HTTP):
        return
    url = urlsplit(address)
    if url.scheme == "http" and not is_loopback(url):
        report.problem(
            name,
            f"{values.quoted(name)} would carry the credential in clear; use https, or permit http with "
            f"{ALLOW_HTTP}=true.",
        )


def _proxy(values: Values, report: Report) -> None:
    if values.text(ems("proxy.auth.type")) != "BASIC":
        return
    for name in ("proxy.auth.username", "proxy.auth.password"):
        if ems(name) not in values.given:
            report.warn(ems(name), "It is missing, so nobody signs in at the proxy; set it, or remove the others.")
