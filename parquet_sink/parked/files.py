"""Files of parked records: their table and metadata, written whole beside the old one, and inspected."""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_sink.errors import StorageFailed
from parquet_sink.files.storage import Purpose, storage_trouble, sync_folder
from parquet_sink.model.records import HEADERS
from parquet_sink.model.rejected import Rejected
from parquet_sink.parked.settings import DIR, MAX_BYTES

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
PARKING: Final = Purpose(
    DIR,
    MAX_BYTES,
    "Nothing is lost: what is not parked is still in Kafka, and is read again at the next start.",
)
_DICTIONARIES: Final = ["connector", "topic", "stage", "reason"]


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


@dataclass(frozen=True)
class ParkedFile:
    """A file of one topic-partition by its footer. raw_bytes: of its columns before they were compressed."""

    path: str
    topic: str
    partition: int
    rows: int
    size_bytes: int
    raw_bytes: int
    first_offset: int
    last_offset: int

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Its records, or some columns of them. Raises OSError or pa.ArrowException."""
        return pq.ParquetFile(self.path).read(columns=columns)


def inspect(path: str) -> ParkedFile | str:
    """The file by its footer, or why it is none of parked records. Raises FileNotFoundError when it is not there."""
    try:
        size = os.stat(path).st_size
        footer = pq.read_metadata(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        return error.strerror or "it cannot be read"
    except pa.ArrowException as error:
        return f"it is not a whole Parquet file: {str(error).splitlines()[0][:200]}"
    place = place_of(footer.metadata)
    if place is None or not footer.schema.to_arrow_schema().equals(SCHEMA):
        return "it is a Parquet file, but not one of parked records"
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    offsets = [group.column(SCHEMA.get_field_index("offset")).statistics for group in groups]
    return ParkedFile(
        path,
        *place,
        footer.num_rows,
        size,
        sum(group.total_byte_size for group in groups),
        min((one.min for one in offsets), default=0),
        max((one.max for one in offsets), default=-1),
    )


class Staged:
    """A file that is written, synced and verified beside its place, which it takes with `commit`."""

    def __init__(self, path: str, table: pa.Table, topic: str, partition: int) -> None:
        """Raises StorageFailed; then nothing is left."""
        self._path, self._folder = path, os.path.dirname(path)
        self._beside = os.path.join(self._folder, f".{os.path.basename(path)}.{uuid.uuid4().hex}.part")
        table = table.replace_schema_metadata(metadata_of(topic, partition))
        try:
            with storage_trouble(self._folder, "write parked records", PARKING):
                _write(self._beside, table)
                found, self.size_bytes = pq.read_metadata(self._beside).num_rows, os.stat(self._beside).st_size
            _verify(self._beside, found, table.num_rows)
        except BaseException:
            self.discard()
            raise

    def commit(self) -> None:
        """Takes its place, also that of an older file, for good. Raises StorageFailed."""
        try:
            with storage_trouble(self._folder, "put parked records in their place", PARKING):
                os.replace(self._beside, self._path)
                sync_folder(self._folder)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Removes it, if it did not take its place."""
        with suppress(OSError):
            os.unlink(self._beside)


def _write(path: str, table: pa.Table) -> None:
    with open(path, "xb", opener=_private) as file:
        pq.write_table(
            table,
            file,
            compression="zstd",
            use_dictionary=_DICTIONARIES,
            write_statistics=["offset"],
            row_group_size=max(1, table.num_rows),
        )
        file.flush()
        os.fsync(file.fileno())


def _verify(path: str, found: int, written: int) -> None:
    if found != written:
        raise StorageFailed(
            f"File {path} of parked records has {found} rows by its footer, {written} were written. Check the disk. "
            f"{PARKING.kept}"
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
