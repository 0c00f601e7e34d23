"""Checks of where records are kept that are passed over."""

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.kafka.settings import NAME_KEY
from parquet_sink.parked.settings import DIR, MAX_BYTES
from parquet_sink.settings.connector import tolerates

_IN_MEMORY = ems("inmemfs.enable")


def check(values: Values, report: Report) -> None:
    """What is kept must outlive the machine's next start; and keys of it must mean something."""
    if values.text(NAME_KEY) is not None or not tolerates(values):
        for name in sorted({DIR, MAX_BYTES} & values.given):
            why = "nothing is passed over" if values.text(NAME_KEY) is None else f"{NAME_KEY} takes what is passed over"
            report.warn(name, f"Nothing new is parked: {why}.")
    elif values.flag(_IN_MEMORY) and DIR not in values.given:
        report.problem(
            DIR,
            f"It is missing, and {_IN_MEMORY} is true: records that are passed over would be kept in memory only; name "
            f"a folder on a disk.",
        )
