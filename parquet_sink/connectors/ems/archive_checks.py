"""Checks of the archive's keys together, and with the target's."""

from typing import Final

from parquet_sink.archive.address import bucket_of, is_bucket
from parquet_sink.archive.settings import MAX_WAITING_BYTES, REQUIRED, URL, why_same
from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems import s3_checks
from parquet_sink.connectors.ems.build_target import is_s3
from parquet_sink.targets.directory.address import folder_of, is_directory
from parquet_sink.targets.s3 import settings as s3
from parquet_sink.targets.s3.prefix import fixed_part

ENDPOINT: Final = ems("endpoint")


def check(values: Values, report: Report) -> None:
    """An archive is another place than the target; and keys of it must mean something."""
    url = values.text(URL)
    if url is None:
        return
    if is_bucket(url) and not is_s3(values):
        s3_checks.check_archive(values, report)
    if (reason := _same(url, values)) is not None:
        report.problem(URL, reason)
    if MAX_WAITING_BYTES in values.given and values.flag(REQUIRED):
        report.warn(MAX_WAITING_BYTES, f"It has no effect, because {REQUIRED} is true: nothing waits.")


def _same(url: str, values: Values) -> str | None:
    """Why the place is the target's."""
    if is_s3(values):  # of a class for buckets alone there is no endpoint to look at
        return _same_bucket(url, values) if is_bucket(url) else None
    endpoint = values.text(ENDPOINT)
    if is_bucket(url) or endpoint is None or not is_directory(endpoint):
        return None
    return why_same(folder_of(url), folder_of(endpoint))


def _same_bucket(url: str, values: Values) -> str | None:
    """A target whose objects begin with nothing in common takes all of its bucket only where the archive does, too."""
    bucket, prefix = bucket_of(url)
    common = fixed_part(values.text(s3.PREFIX) or "").rpartition("/")[0]
    if bucket != values.text(s3.BUCKET) or (prefix and not common):
        return None
    return why_same(f"/{prefix}", f"/{common}")
