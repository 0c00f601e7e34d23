"""Checks of the archive's keys together, and with the target's."""

from parquet_sink.archive.settings import MAX_WAITING_BYTES, REQUIRED, URL, why_same
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.targets.target_class import archive_class, target_of


def check(values: Values, report: Report) -> None:
    """An archive is another place than the target; and keys of it must mean something."""
    url, archive = values.text(URL), archive_class(values)
    if url is None or archive is None:
        return
    target = target_of(values)
    if type(target) is not type(archive):
        archive.check_store(values, report)
    if (reason := why_same(url, target.place(values))) is not None:
        report.problem(URL, reason)
    if MAX_WAITING_BYTES in values.given and values.flag(REQUIRED):
        report.warn(MAX_WAITING_BYTES, f"It has no effect, because {REQUIRED} is true: nothing waits.")
