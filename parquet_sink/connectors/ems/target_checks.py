"""Checks of the target's keys together: who signs in where, and that no credential travels in clear."""

from typing import Final

from parquet_sink.config.declared import check as check_keys
from parquet_sink.config.declared import keys_of, names_of
from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems import http_checks, s3_checks
from parquet_sink.connectors.ems.build_target import is_s3
from parquet_sink.net.settings import CLIENT_ID, CLIENT_SECRET, ENDPOINT, TOKEN_URL, HttpSettings
from parquet_sink.targets.directory.address import is_directory
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.keys import PUSH, S3
from parquet_sink.targets.push.settings import AUTHORIZATION, TARGET, PushSettings
from parquet_sink.targets.s3.settings import BucketSettings

TYPE: Final = ems("target.type")


def check(values: Values, report: Report) -> None:
    """A push API needs a credential, a bucket a name; a folder has no use for what HTTP needs."""
    if values.texts.get(TYPE, "").strip().lower() not in ("", PUSH, S3):  # which was told; what else is wrong depends
        return
    if is_s3(values):
        s3_checks.check(values, report)
        return
    s3_checks.of_no_use(values, report)
    if is_directory(values.texts.get(ENDPOINT, "").strip()):  # also when something is wrong with it
        check_keys(DirectorySettings, values, report)
        _of_no_use(values, report)
        return
    signed = ("client",) if AUTHORIZATION in values.given else ()  # then half a client is one too many, not too few
    check_keys(PushSettings, values, report, *signed)
    _credential(values, report)
    http_checks.in_clear(values, ENDPOINT, report)
    http_checks.in_clear(values, TOKEN_URL, report)
    http_checks.proxy(values, report)


def _of_no_use(values: Values, report: Report) -> None:
    """A folder needs nothing of HTTP; an archive in a bucket beside it does."""
    shaping = {ems("data.fallback.varchar.length")} if ems("flattener.jsonblob.chunks") in values.given else set[str]()
    archived = s3_checks.archived_in_bucket(values)
    used = shaping | (names_of(BucketSettings) if archived else set())
    why = "nothing is sent to a push API" if archived else "nothing is sent over HTTP"
    for one in (*keys_of(PushSettings, TARGET), *keys_of(HttpSettings)):
        if one.name in values.given - used and values.differs(one):
            report.warn(one.name, f"It has no effect: {ENDPOINT} is a folder, and {why}.")


def _credential(values: Values, report: Report) -> None:
    """One of the two ways; that the second is whole is checked with the settings."""
    client = [name for name in (CLIENT_ID, CLIENT_SECRET) if name in values.given]
    if AUTHORIZATION in values.given and client:
        report.problem(AUTHORIZATION, f"Both it and {client[0]} are set; keep the key, or the OAuth 2.0 client.")
    elif AUTHORIZATION not in values.given and not client:
        report.problem(
            AUTHORIZATION,
            "It is missing; give AppKey <key> or Bearer <key>, best as ${env:NAME} or ${file:PATH:KEY}. Or give an "
            f"OAuth 2.0 client, with {CLIENT_ID} and {CLIENT_SECRET}.",
        )
