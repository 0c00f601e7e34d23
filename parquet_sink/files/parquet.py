"""Writing one local Parquet file.

Figures (200,000 rows of 7 payload and 4 metadata columns, one row group, Snappy, warm process, CPU time; page faults
add up to 0.5 µs per row to the first write of a process, whatever the settings):

    settings                                               µs per row   bytes per row
    PyArrow's defaults                                        0.29          41.3
    no dictionaries                                           0.18          41.3
    dictionaries where they pay                               0.18          37.8
    the same, no statistics, no Arrow schema   <- chosen      0.15          37.7
    the same, 4,096 or 20,000 values at a time                0.15          37.7
    the same, pages of 256 KiB or 8 MiB                       0.15          37.7
    the same, chunks combined first                           0.16          37.7
    the same, integers DELTA_BINARY_PACKED                    0.14          29.1
    the same, kafkaPartitionOffset DELTA_BYTE_ARRAY           0.16          24.6
    zstd instead of Snappy                                    0.21          16.8

A dictionary costs most where values hardly repeat (an id: 0.033 µs against 0.010 plain), so each column gets one only
if a sample of its first rows repeats. Delta encodings are smaller and no dearer, yet not used: several loaders cannot
read them (StarRocks, Iceberg's vectorised reader, Spark before 3.3), the reference connector writes none, and a target
that cannot decode a file says so only after accepting it. Row groups of 20,000 rows and of 500,000 cost the same CPU.

Times of a day are marked as adjusted to UTC, as the reference connector marks them; Arrow's default is the opposite.

Files are not fsynced: until the target has accepted a file its records are still in Kafka, and a file that a crash of
the machine damaged is never sent, because nothing of before a crash is.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from parquet_sink.files.settings import Codec

SAMPLE_ROWS: Final = 1024
MOST_DISTINCT_SHARE: Final = 0.25
# Serialized footer, measured: 55 to 60 bytes and the name for each column of each row group, without statistics.
FOOTER_BYTES_PER_CHUNK: Final = 60
FOOTER_BYTES_PER_COLUMN: Final = 20


class ParquetFile:
    """One open Parquet file. Errors of the file system come out as OSError; the caller names them.

    Dictionary columns are chosen at the first row group, which is also when the file is made.
    """

    def __init__(self, path: str, codec: Codec) -> None:
        self.path = path
        self.rows = 0
        self.groups = 0
        self._codec = codec
        self._sink: pa.NativeFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema | None:
        """Schema of the rows written, None before the first."""
        return self._schema

    @property
    def data_bytes(self) -> int:
        """Bytes written so far, without footer."""
        return self._sink.tell() if self._sink is not None else 0

    def write_group(self, rows: pa.Table) -> None:
        """Appends one row group. Raises OSError or pa.ArrowException."""
        if self._writer is None:
            self._open(rows)
        assert self._writer is not None
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        self.rows += rows.num_rows
        self.groups += 1

    def close(self) -> None:
        """Writes the footer. Raises OSError or pa.ArrowException."""
        assert self._writer is not None
        assert self._sink is not None
        self._writer.close()
        self._sink.close()

    def discard(self) -> None:
        """Closes without caring whether the footer could still be written. Never raises for the disk."""
        for part in (self._writer, self._sink):
            if part is not None:
                with suppress(OSError, pa.ArrowException):
                    part.close()
        if self._writer is not None:
            self._writer.is_open = False  # or the garbage collector would try once more to write the footer

    def _open(self, rows: pa.Table) -> None:
        self._schema = rows.schema
        self._sink = pa.OSFile(self.path, "wb")
        self._writer = pq.ParquetWriter(
            self._sink,
            rows.schema,
            version="2.6",
            compression=self._codec,
            use_dictionary=list(dictionary_columns(rows)),
            write_statistics=False,
            store_schema=False,
            write_time_adjusted_to_utc=True,
        )


def dictionary_columns(rows: pa.Table) -> tuple[str, ...]:
    """Columns whose values repeat enough for a dictionary, from a look at the first rows. Nested columns get none."""
    sample = rows.slice(0, SAMPLE_ROWS)
    return tuple(name for name, column in zip(sample.schema.names, sample.columns, strict=True) if _repeats(column))


def _repeats(column: pa.ChunkedArray) -> bool:
    if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return False
    return int(pc.count_distinct(column, mode="all").as_py()) <= MOST_DISTINCT_SHARE * len(column)


def footer_bytes(names: Sequence[str], groups: int) -> int:
    """Estimated size of the footer of a file with these columns and so many row groups."""
    of_names = sum(map(len, names))
    return (
        64 + of_names + FOOTER_BYTES_PER_COLUMN * len(names) + groups * (FOOTER_BYTES_PER_CHUNK * len(names) + of_names)
    )


def sha256_of(path: str) -> str:
    """SHA-256 of a finished file, hexadecimal. Raises OSError.

    It is read again from the page cache, right after it was written: about 1 ms for each megabyte, as much as a digest
    of what passes by on its way to the disk (which Arrow would have to hand to Python piece by piece).
    """
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def footer_rows(path: str) -> int:
    """Rows that the footer of a finished file states, read from disk. Raises OSError or pa.ArrowException."""
    return int(pq.read_metadata(path).num_rows)
