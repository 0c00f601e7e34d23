"""Parked records as an Arrow table: what a file of them holds."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from parquet_sink.model.records import HEADERS
from parquet_sink.model.rejected import Rejected

_TIME: Final = pa.timestamp("ms", "UTC")
SCHEMA: Final = pa.schema(
    [
        pa.field("connector", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", _TIME),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("stage", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("parked_at", _TIME, nullable=False),
    ]
)
"""timestamp: the record's, null when it has none. headers: null where they cannot be read."""
METADATA_KEY: Final = b"parquet_sink.parked"
VERSION: Final = 1
ROW_BYTES: Final = 64
"""What a record counts beside its texts."""


def table_of(records: Sequence[Rejected], connector: str, parked_at_ms: int) -> pa.Table:
    """Records of one topic-partition, in their order."""
    headers = [
        None if one.headers is None else [{"key": name, "value": value} for name, value in one.headers]
        for one in records
    ]
    columns: dict[str, Sequence[object]] = {
        "connector": [connector] * len(records),
        "topic": [one.topic for one in records],
        "partition": [one.partition for one in records],
        "offset": [one.offset for one in records],
        "timestamp": [one.timestamp_ms or None for one in records],
        "key": [one.key for one in records],
        "value": [one.value for one in records],
        "headers": headers,
        "stage": [str(one.stage) for one in records],
        "reason": [one.reason.encode("utf-8", "backslashreplace").decode("utf-8") for one in records],
        "parked_at": [parked_at_ms] * len(records),
    }
    return pa.Table.from_pydict(columns, schema=SCHEMA)


def raw_bytes(one: Rejected) -> int:
    """About what a record takes before it is compressed."""
    headers = sum(len(name) + len(value or b"") for name, value in one.headers or ())
    return ROW_BYTES + len(one.key or b"") + len(one.value or b"") + headers + len(one.reason)


def metadata_of(topic: str, partition: int) -> dict[bytes, bytes]:
    """What a file says of itself, so that no other Parquet file is taken for one."""
    return {METADATA_KEY: json.dumps({"version": VERSION, "topic": topic, "partition": partition}).encode()}


def place_of(metadata: Mapping[bytes, bytes] | None) -> tuple[str, int] | None:
    """Topic and topic-partition of a file by its metadata, None when it is none of ours."""
    try:
        found = json.loads((metadata or {})[METADATA_KEY])
        return (str(found["topic"]), int(found["partition"])) if found["version"] == VERSION else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
