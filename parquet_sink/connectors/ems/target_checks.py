"""Checks of the target's keys together: who signs in where, and that no credential travels in clear."""

from typing import Final

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems import http_checks, s3_checks
from parquet_sink.connectors.ems.build_target import is_s3
from parquet_sink.targets.directory.address import is_directory
from parquet_sink.targets.keys import PUSH, S3
from parquet_sink.targets.push.keys import HTTP_KEYS, PUSH_KEYS
from parquet_sink.targets.push.oauth2_keys import CLIENT_ID_KEY, OAUTH2_KEYS, SECRET_KEY, TOKEN_URL_KEY

ENDPOINT: Final = ems("endpoint")
KEY: Final = ems("authorization.key")
TYPE: Final = ems("target.type")
_REQUIRED: Final = {
    ENDPOINT: "give the full URL of the push API, "
    "https://<team>.<realm>.celonis.cloud/continuous-batch-processing/api/v1/<pool-id>/items.",
    ems("target.table"): "give the name of the table that the target fills.",
}


def check(values: Values, report: Report) -> None:
    """A push API needs a credential, a bucket a name; a folder has no use for what HTTP needs."""
    if values.texts.get(TYPE, "").strip().lower() not in ("", PUSH, S3):  # which was told; what else is wrong depends
        return
    if is_s3(values):
        s3_checks.check(values, report)
        return
    s3_checks.of_no_use(values, report)
    _required(values, report)
    if is_directory(values.texts.get(ENDPOINT, "").strip()):  # also when something is wrong with it
        _of_no_use(values, report)
        return
    _credential(values, report)
    http_checks.in_clear(values, ENDPOINT, report)
    http_checks.in_clear(values, TOKEN_URL_KEY, report)
    http_checks.proxy(values, report)


def _required(values: Values, report: Report) -> None:
    for name, cure in _REQUIRED.items():
        if name not in values.given:
            report.problem(name, f"It is missing; {cure}")


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
