"""Local raw files: what each holds, looked at before anything is done, and its records."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from parquet_sink.addons.reshape.spans import RawFile
from parquet_sink.errors import StorageFailed
from parquet_sink.rows.raw import RAW
from parquet_sink.rows.settings import RAW_IDENTITY


class NotRaw(Exception):
    """A file that has no records as they came; the text says why."""


def look(path: str) -> RawFile | None:
    """What a file holds, None for nothing. Reads where its records come from, all of them. Raises NotRaw."""
    try:
        with pq.ParquetFile(path) as file:
            _check_schema(file.schema_arrow)
            places = file.read(columns=list(RAW_IDENTITY))
    except OSError as error:
        raise NotRaw(f"it cannot be read: {error.strerror or error}") from None
    except pa.ArrowException as error:
        raise NotRaw(f"it is no whole Parquet file: {str(error).splitlines()[0]}") from None
    return _described(path, places) if places.num_rows else None


def _check_schema(schema: pa.Schema) -> None:
    missing = [name for name in RAW.names if name not in schema.names]
    if missing:
        raise NotRaw(f"it has no column {missing[0]}, so it was not written with connect.ems.mode=raw")
    for field in RAW:
        if not schema.field(field.name).type.equals(field.type):
            raise NotRaw(f"its column {field.name} is {schema.field(field.name).type}, and not {field.type}")


def _described(path: str, places: pa.Table) -> RawFile:
    if any(places.column(name).null_count for name in RAW_IDENTITY):
        raise NotRaw("it has a record of which topic, partition or offset is null")
    topics, partitions = (pc.unique(places.column(name)).to_pylist() for name in ("topic", "partition"))
    if len(topics) > 1 or len(partitions) > 1:
        raise NotRaw("it has records of several topic-partitions")
    offsets = places.column("offset").to_numpy()
    if offsets[0] < 0 or not np.all(offsets[1:] > offsets[:-1]):
        raise NotRaw("its offsets do not rise from record to record")
    return RawFile(path, topics[0], partitions[0], int(offsets[0]), int(offsets[-1]), len(offsets))


def tables(file: RawFile) -> Iterator[pa.Table]:
    """All records of a file, of type RAW, a row group at a time. Raises StorageFailed."""
    rows = 0
    try:
        with pq.ParquetFile(file.path) as opened:
            for number in range(opened.num_row_groups):
                table = opened.read_row_group(number, columns=RAW.names).select(RAW.names).cast(RAW)
                rows += table.num_rows
                yield table
    except (OSError, pa.ArrowException) as error:
        why = str(error).splitlines()[0]
        raise StorageFailed(f"File {file.path} cannot be read to its end ({why}); bring a whole one.") from None
    if rows != file.rows:
        raise StorageFailed(f"File {file.path} was changed while it was read; nothing of its range is finished.")
