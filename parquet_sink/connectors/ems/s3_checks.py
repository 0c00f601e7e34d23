"""Checks of a bucket's keys together: where it is, who signs, and that each field of its prefix can be filled."""

from typing import Final

from parquet_sink.config.declared import check as check_keys
from parquet_sink.config.declared import keys_of, names_of
from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems import http_checks
from parquet_sink.net.settings import ENDPOINT
from parquet_sink.targets.push.settings import TABLE, TARGET, PushSettings
from parquet_sink.targets.s3 import settings as s3
from parquet_sink.targets.s3.prefix import fields
from parquet_sink.targets.table_map import MAP_KEY

_VARCHAR: Final = ems("data.fallback.varchar.length")
_SHARED: Final = names_of(s3.S3Settings) | {_VARCHAR}
"""Of the push API's keys those that are of use without one, or may be."""
IDLE: Final = (ENDPOINT, *(key.name for key in keys_of(PushSettings, TARGET) if key.name not in _SHARED))
"""Keys of a push API that a bucket has no use for."""


def check(values: Values, report: Report) -> None:
    """Of a connector whose files go to a bucket."""
    check_keys(s3.S3Settings, values, report)
    _connection(values, report)
    _table(values, report)
    idle = IDLE if ems("flattener.jsonblob.chunks") in values.given else (*IDLE, _VARCHAR)
    for name in idle:
        if name in values.given and values.knows(name):
            report.warn(name, f"It has no effect: files go to a bucket ({ems('target.type')}=s3).")


def check_archive(values: Values, report: Report) -> None:
    """Of a connector whose archive, and nothing else, is in a bucket; its address has the bucket's name."""
    check_keys(s3.BucketSettings, values, report, "bucket")
    _connection(values, report)


def _connection(values: Values, report: Report) -> None:
    if {s3.ACCESS_KEY, s3.SECRET_KEY} & values.given and s3.PROFILE in values.given:
        report.problem(s3.PROFILE, f"Both it and {s3.ACCESS_KEY} are set; keep the profile, or the access key.")
    http_checks.in_clear(values, s3.ENDPOINT, report, "records")
    http_checks.proxy(values, report)


def of_no_use(values: Values, report: Report) -> None:
    """Of a connector whose files go elsewhere; its archive may be in a bucket."""
    used = names_of(s3.BucketSettings) - {s3.BUCKET} if archived_in_bucket(values) else set[str]()
    for one in s3.S3_KEYS:
        if one.name in values.given - used and values.differs(one):
            report.warn(one.name, f"It has no effect: set {ems('target.type')}=s3 to send files to a bucket.")


def archived_in_bucket(values: Values) -> bool:
    """Whether the archive is in a bucket, rightly or not."""
    return values.texts.get(ems("archive.url"), "").strip().lower().startswith("s3:")


def _table(values: Values, report: Report) -> None:
    template = values.text(s3.PREFIX) or ""
    wanted = "table" in fields(template)
    if wanted and TABLE not in values.given:
        report.problem(TABLE, f"It is missing; {values.quoted(s3.PREFIX)} has {{table}}, which it stands for.")
    for name in (TABLE, MAP_KEY):
        if not wanted and name in values.given:
            report.warn(name, f"It has no effect: {s3.PREFIX} has no {{table}}.")
