"""Checks of a bucket's keys together: where it is, who signs, and that each field of its prefix can be filled."""

from typing import Final

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems import http_checks
from parquet_sink.targets.push.keys import PUSH_KEYS
from parquet_sink.targets.push.oauth2_keys import OAUTH2_KEYS
from parquet_sink.targets.s3 import keys as s3
from parquet_sink.targets.s3.prefix import fields
from parquet_sink.targets.table_map import MAP_KEY

TABLE: Final = ems("target.table")
_VARCHAR: Final = ems("data.fallback.varchar.length")
_SHARED: Final = frozenset({http_checks.ALLOW_HTTP, _VARCHAR})
"""Of the push API's keys those that are of use without one, or may be."""
IDLE: Final = (ems("endpoint"), *(key.name for key in (*PUSH_KEYS, *OAUTH2_KEYS) if key.name not in _SHARED))
"""Keys of a push API that a bucket has no use for."""


def check(values: Values, report: Report) -> None:
    """Of a connector whose files go to a bucket."""
    if s3.BUCKET not in values.given:
        report.problem(s3.BUCKET, "It is missing; give the name of the bucket that takes the files.")
    connection(values, report)
    _table(values, report)
    idle = IDLE if ems("flattener.jsonblob.chunks") in values.given else (*IDLE, _VARCHAR)
    for name in idle:
        if name in values.given and values.knows(name):
            report.warn(name, f"It has no effect: files go to a bucket ({ems('target.type')}=s3).")


def connection(values: Values, report: Report) -> None:
    """How a bucket is reached, whoever needs one."""
    key, secret = s3.ACCESS_KEY in values.given, s3.SECRET_KEY in values.given
    if key != secret:
        missing, there = (s3.SECRET_KEY, s3.ACCESS_KEY) if key else (s3.ACCESS_KEY, s3.SECRET_KEY)
        report.problem(missing, f"It is missing beside {there}; give both, or neither.")
    if (key or secret) and s3.PROFILE in values.given:
        report.problem(s3.PROFILE, f"Both it and {s3.ACCESS_KEY} are set; keep the profile, or the access key.")
    http_checks.in_clear(values, s3.ENDPOINT, report, "records")
    http_checks.proxy(values, report)


def of_no_use(values: Values, report: Report) -> None:
    """Of a connector whose files go elsewhere; its archive may be in a bucket."""
    archived = values.texts.get(ems("archive.url"), "").strip().lower().startswith("s3:")
    for one in s3.S3_KEYS:
        idle = one.name in (s3.BUCKET, s3.PREFIX) or not archived
        if idle and one.name in values.given and values.differs(one):
            report.warn(one.name, f"It has no effect: set {ems('target.type')}=s3 to send files to a bucket.")


def _table(values: Values, report: Report) -> None:
    template = values.text(s3.PREFIX) or ""
    wanted = "table" in fields(template)
    if wanted and TABLE not in values.given:
        report.problem(TABLE, f"It is missing; {values.quoted(s3.PREFIX)} has {{table}}, which it stands for.")
    for name in (TABLE, MAP_KEY):
        if not wanted and name in values.given:
            report.warn(name, f"It has no effect: {s3.PREFIX} has no {{table}}.")
