"""The streams of a crash run: many small files, and files of more than 20 MB."""

from typing import Final

from integration.oracle import records
from integration.oracle.stream import Kind
from integration.sink_process import TABLE

LARGE_RECORDS_PER_SECOND: Final = 600
"""About 2.5 MB/s: a file of LARGE_FILE_BYTES in ten seconds."""
LARGE_RECORDS: Final = 15_000
"""At least so many, for some files of that size whatever is killed."""
LARGE_COMMIT_BYTES: Final = 24_000_000
LARGE_FILE_BYTES: Final = 20_000_000
SMALL: Final = {
    "connect.ems.commit.size.bytes": "100000",
    "connect.ems.commit.records": "500",
    "connect.ems.commit.interval.ms": "1000",
}
LARGE: Final = {
    "connect.ems.commit.size.bytes": str(LARGE_COMMIT_BYTES),
    "connect.ems.commit.records": "1000000",
    "connect.ems.commit.interval.ms": "20000",
}


def small(topic: str, per_second: float, at_least: int) -> Kind:
    """Many small files of several topic-partitions."""
    return Kind(topic, TABLE, 4, 0.1, SMALL, records.value_of, per_second, at_least)


def large(topic: str) -> Kind:
    """Files of more than 20 MB: columns of many data pages, row groups that memory or size ends."""
    return Kind(topic, f"{TABLE}_LARGE", 1, 1.0, LARGE, records.large_value_of, LARGE_RECORDS_PER_SECOND, LARGE_RECORDS)
