"""Checks of the archive's keys together, and with the target's."""

from typing import Final

from parquet_sink.archive.keys import MAX_WAITING_BYTES, REQUIRED, URL
from parquet_sink.archive.settings import why_same
from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems.build_target import is_s3
from parquet_sink.targets.directory.address import folder_of, is_directory

ENDPOINT: Final = ems("endpoint")


def check(values: Values, report: Report) -> None:
    """An archive is another place than the target; and keys of it must mean something."""
    url, endpoint = values.text(URL), None if is_s3(values) else values.text(ENDPOINT)
    if url is None:
        return
    target = folder_of(endpoint) if endpoint is not None and is_directory(endpoint) else None
    if target is not None and (reason := why_same(folder_of(url), target)) is not None:
        report.problem(URL, reason)
    if MAX_WAITING_BYTES in values.given and values.flag(REQUIRED):
        report.warn(MAX_WAITING_BYTES, f"It has no effect, because {REQUIRED} is true: nothing waits.")
