"""One local Parquet file: encodings, sizes, readers."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_sink.files.parquet import ParquetFile, dictionary_columns, footer_bytes, footer_rows
from parquet_sink.files.settings import Codec


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


def write(path: Path, rows: pa.Table, codec: Codec = "snappy", groups: int = 1) -> ParquetFile:
    """A finished file."""
    file = ParquetFile(str(path), codec)
    for _ in range(groups):
        file.write_group(rows)
    file.close()
    return file


def test_dictionaries_only_where_values_repeat() -> None:
    """Repeating and constant columns get a dictionary; unique, boolean and nested ones do not."""
    assert dictionary_columns(orders(2000)) == ("status", "nothing", "dotted.name")


def test_only_encodings_every_reader_knows(tmp_path: Path) -> None:
    """A file has plain and dictionary encodings and version 1 pages only, as the reference writes."""
    write(tmp_path / "f", orders(2000))
    group = pq.ParquetFile(tmp_path / "f").metadata.row_group(0)
    used = {encoding for i in range(group.num_columns) for encoding in group.column(i).encodings}
    assert used <= {"PLAIN", "RLE", "RLE_DICTIONARY"}
    assert "RLE_DICTIONARY" not in group.column(0).encodings
    assert "RLE_DICTIONARY" in group.column(1).encodings


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "none"])
def test_codecs(tmp_path: Path, codec: Codec) -> None:
    """Each codec is the one in the file, and PyArrow reads the rows back."""
    rows = orders(100)
    write(tmp_path / "f", rows, codec)
    expected = "UNCOMPRESSED" if codec == "none" else codec.upper()
    assert pq.ParquetFile(tmp_path / "f").metadata.row_group(0).column(0).compression == expected
    assert pq.read_table(tmp_path / "f").to_pylist() == rows.to_pylist()


def test_duckdb_reads_it(tmp_path: Path) -> None:
    """An independent reader finds the same values."""
    write(tmp_path / "f", orders(10), groups=2)
    found = duckdb.sql(f"select count(*), sum(id), min(status) from read_parquet('{tmp_path / 'f'}')").fetchall()
    assert found == [(20, 90, "NEW")]


@pytest.mark.parametrize("groups", [1, 5, 20])
def test_footer_estimate_is_near(tmp_path: Path, groups: int) -> None:
    """The estimated footer is near the true one, so that files end near their size."""
    file = write(tmp_path / "f", orders(100), groups=groups)
    length = int.from_bytes((tmp_path / "f").read_bytes()[-8:-4], "little")
    assert file.groups == groups
    assert 0.5 < footer_bytes(pq.read_schema(tmp_path / "f").names, groups) / length < 2


def test_footer_rows_are_read_from_disk(tmp_path: Path) -> None:
    """The row count comes from the footer on disk."""
    write(tmp_path / "f", orders(10), groups=3)
    assert footer_rows(str(tmp_path / "f")) == 30


def test_discard_survives_a_full_disk() -> None:
    """Throwing away a file that could not be written raises nothing."""
    file = ParquetFile("/dev/full", "snappy")
    with pytest.raises(OSError, match="No space left"):
        file.write_group(orders(10))
    file.discard()
