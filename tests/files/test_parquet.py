"""One local Parquet file: encodings, sizes, readers."""

from math import inf
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_sink.errors import StorageFailed
from parquet_sink.files.group import Group, Piece
from parquet_sink.files.parquet import OpenFile, Place, dictionary_columns, footer_bytes, footer_rows
from parquet_sink.files.rotation import GroupEnd, Reason
from parquet_sink.files.settings import Codec, FileSettings
from parquet_sink.rows.run import Run


def orders(count: int) -> pa.Table:
    """Rows with a column of each kind."""
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "status": pa.array(["NEW", "PAID"] * (count // 2)),
            "nothing": pa.nulls(count, pa.string()),
            "flag": pa.array([True, False] * (count // 2)),
            "list": pa.array([[1, 2]] * count),
            "dotted.name": pa.array(["x"] * count),
        }
    )


def group_of(rows: pa.Table) -> Group:
    """A row group of these rows."""
    count, group = rows.num_rows, Group()
    run = Run(rows, count, 0, count - 1, False, pa.array(range(count), pa.int64()))
    group.take(Piece.of(run, None), GroupEnd(count, inf))
    return group


def write(folder: Path, rows: pa.Table, codec: Codec = "snappy", groups: int = 1) -> Path:
    """A finished file."""
    file = OpenFile(Place("c", "t", 0, "0" * 32), FileSettings(str(folder), codec=codec), 0, 0.0)
    for _ in range(groups):
        file.write(group_of(rows))
    return Path(file.close(Reason.STOP).path)


def test_dictionaries_only_where_values_repeat() -> None:
    """Repeating and constant columns get a dictionary; unique, boolean and nested ones do not."""
    assert dictionary_columns(orders(2000)) == ("status", "nothing", "dotted.name")


def test_only_encodings_every_reader_knows(tmp_path: Path) -> None:
    """A file has plain and dictionary encodings and version 1 pages only, as the reference writes."""
    group = pq.ParquetFile(write(tmp_path, orders(2000))).metadata.row_group(0)
    used = {encoding for i in range(group.num_columns) for encoding in group.column(i).encodings}
    assert used <= {"PLAIN", "RLE", "RLE_DICTIONARY"}
    assert "RLE_DICTIONARY" not in group.column(0).encodings
    assert "RLE_DICTIONARY" in group.column(1).encodings


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "none"])
def test_codecs(tmp_path: Path, codec: Codec) -> None:
    """Each codec is the one in the file, and PyArrow reads the rows back."""
    rows = orders(100)
    path = write(tmp_path, rows, codec)
    expected = "UNCOMPRESSED" if codec == "none" else codec.upper()
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == expected
    assert pq.read_table(path).to_pylist() == rows.to_pylist()


def test_duckdb_reads_it(tmp_path: Path) -> None:
    """An independent reader finds the same values."""
    path = write(tmp_path, orders(10), groups=2)
    found = duckdb.sql(f"select count(*), sum(id), min(status) from read_parquet('{path}')").fetchall()
    assert found == [(20, 90, "NEW")]


@pytest.mark.parametrize("groups", [1, 5, 20])
def test_footer_estimate_is_near(tmp_path: Path, groups: int) -> None:
    """The estimated footer is near the true one, so that files end near their size."""
    path = write(tmp_path, orders(100), groups=groups)
    length = int.from_bytes(path.read_bytes()[-8:-4], "little")
    assert pq.read_metadata(path).num_row_groups == groups
    assert 0.5 < footer_bytes(pq.read_schema(path).names, groups) / length < 2


def test_the_footer_tells_spark_the_calendar(tmp_path: Path) -> None:
    """The footer has the key by which Spark 3 reads dates before 1582 as they are written."""
    metadata = pq.read_metadata(write(tmp_path, orders(10))).metadata
    assert metadata == {b"org.apache.spark.version": b"3.1.0"}


def test_footer_rows_are_read_from_disk(tmp_path: Path) -> None:
    """The row count comes from the footer on disk."""
    assert footer_rows(str(write(tmp_path, orders(10), groups=3))) == 30


def test_discard_survives_a_full_disk(tmp_path: Path) -> None:
    """Throwing away a file that could not be written raises nothing."""
    file = OpenFile(Place("c", "t", 0, "0" * 32), FileSettings(str(tmp_path)), 0, 0.0)
    file.path = "/dev/full"
    with pytest.raises(StorageFailed, match="No space left"):
        file.write(group_of(orders(10)))
    file.path = str(tmp_path / "other")
    file.discard()
