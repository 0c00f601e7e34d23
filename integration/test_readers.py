"""Files read the same in PyArrow, DuckDB and Spark: rows, order, names, types and values of 200 random schemas.

Each file is made as a connector makes it, and each reader is held against what went in, in a process whose readers
think in other time zones. What a reader cannot do is in the tests below, each with the way around.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from integration import readers_files, readers_found, readers_types
from integration.readers_columns import Column, columns, holds, is_wide
from integration.readers_samples import sample

SAMPLES = 200
SPARK_ZONE = "Asia/Kathmandu"
DUCKDB_ZONE = "America/New_York"


@dataclass(frozen=True)
class File:
    """A file, and the columns that should be in it."""

    path: str
    columns: list[Column]

    def spark_needs_schema(self) -> bool:
        """Whether it has a type that Spark does not read of its own accord."""
        return any(holds(column.arrow, lambda arrow: pa.types.is_time(arrow) or is_wide(arrow)) for column in self.columns)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[File]:
    """The files of all samples."""
    folder = tmp_path_factory.mktemp("readers")
    return [File(readers_files.write(one, folder), columns(one)) for one in map(sample, range(SAMPLES))]


@pytest.fixture(scope="module")
def zoned(spark: SparkSession) -> SparkSession:
    """A Spark session with settings of its own: its time zone, and Arrow batches of more than one row."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", SPARK_ZONE)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    return session


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with a time zone of its own."""
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{DUCKDB_ZONE}'")
        yield connection


def check(file: File, found: pa.Table) -> None:
    """Names, order of columns, rows, and every value are what went in."""
    assert found.column_names == [column.name for column in file.columns]
    for column in file.columns:
        assert readers_found.values(found[column.name], column) == column.values, (file.path, column)


def test_samples_have_everything(files: list[File]) -> None:
    """The files are worth reading: each type, flattened and nested, and files that Spark reads unaided."""
    kinds = {str(column.arrow.id) for file in files for column in file.columns}
    assert len(kinds) >= 14
    assert 40 < sum(file.spark_needs_schema() for file in files) < SAMPLES - 100


def test_pyarrow_reads_what_went_in(files: list[File]) -> None:
    """Exact types, required columns only where the field was required and stays nested, and all values."""
    for file in files:
        schema = pa.schema([pa.field(column.name, column.arrow, column.nullable) for column in file.columns])
        found = pq.read_table(file.path)
        assert found.schema.equals(schema), file.path
        check(file, found)


def test_duckdb_reads_what_went_in(files: list[File], database: duckdb.DuckDBPyConnection) -> None:
    """All types have their counterpart; decimals of more than 38 digits are rounded to DOUBLE."""
    for file in files:
        found = database.read_parquet(file.path)
        assert found.types == [readers_types.duckdb_type(column.arrow) for column in file.columns], file.path
        check(file, found.to_arrow_table())


def test_spark_reads_what_went_in(files: list[File], zoned: SparkSession) -> None:
    """All types have their counterpart, but times and decimals of more than 38 digits: such files need a schema."""

    def read(file: File) -> pa.Table:
        schema = readers_types.spark_schema(file.columns)
        reader = zoned.read.schema(schema) if file.spark_needs_schema() else zoned.read
        found = reader.parquet(file.path)
        assert found.schema == schema, file.path
        return found.toArrow()

    with ThreadPoolExecutor(4) as pool:
        for file, found in zip(files, pool.map(read, files), strict=True):
            check(file, found)
