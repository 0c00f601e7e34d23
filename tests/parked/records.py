"""Rejected records for tests."""

from typing import Any

from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.scan import scan


def rejected(offset: int, **more: Any) -> Rejected:
    """A record that is not JSON."""
    fields = {
        "key": b"k%d" % offset,
        "value": b"not JSON %d" % offset,
        "headers": (("a", b"1"), ("a", None)),
        "timestamp_ms": 1_000 + offset,
        **more,
    }
    return Rejected("orders", 0, offset, Stage.VALUE_CONVERTER, "the value is not JSON", **fields)


def offsets(folder: ParkedFolder) -> list[int]:
    """Of all records that are parked, in the order of their files."""
    return [offset for file in scan(folder.path).files for offset in file.read(["offset"]).column(0).to_pylist()]
