"""Files read the same in PyArrow, DuckDB and Spark: rows, order, names, types and values of 200 random schemas.

Each file is made as a connector makes it, and each reader is held against what went in, in a process whose readers
think in other time zones. What a reader cannot do is in the tests below, each with the way around.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, ArithmeticException
from pyspark.sql import SparkSession

from integration.readers import files as readers_files
from integration.readers import found as readers_found
from integration.readers import layouts as readers_layouts
from integration.readers import types as readers_types
from integration.readers.columns import Column, below, columns, holds, is_wide
from integration.readers.samples import LAST_MS, MAX_DEPTH, Row, Sample, Value, decimal, sample
from parquet_sink.rows.settings import ShapeSettings

SAMPLES = 200
BARE = ShapeSettings(embed_metadata=False)
EVERY_KIND = {
    *(pa.int32().id, pa.int64().id, pa.float32().id, pa.float64().id, pa.bool_().id, pa.string().id, pa.binary().id),
    *(pa.date32().id, pa.time32("ms").id, pa.timestamp("ms").id, pa.decimal128(1).id, pa.decimal256(1).id),
    *(pa.null().id, pa.struct([]).id, pa.list_(pa.null()).id, pa.map_(pa.string(), pa.null()).id),
}
SPARK_ZONE = "Asia/Kathmandu"
DUCKDB_ZONE = "America/New_York"


@dataclass(frozen=True)
class File:
    """A file, and the columns that should be in it."""

    path: str
    columns: list[Column]

    def spark_needs_schema(self) -> bool:
        """Whether it has a type that Spark does not read of its own accord."""
        return any(
            holds(column.arrow, lambda arrow: pa.types.is_time(arrow) or is_wide(arrow)) for column in self.columns
        )


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
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")  # 200 schemas would be compiled for one use each
    return session


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with a time zone of its own."""
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{DUCKDB_ZONE}'")
        yield connection


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., File]:
    """Makes a flattened file with columns of some types, and no others."""

    def made(columns_: dict[str, tuple[pa.DataType, list[Value]]]) -> File:
        names, count = list(columns_), len(next(iter(columns_.values()))[1])
        rows: list[Row] = [{name: columns_[name][1][index] for name in names} for index in range(count)]
        schema = pa.struct([pa.field(name, columns_[name][0]) for name in names])
        one = Sample(0, BARE, "snappy", None, schema, rows, list(range(count)), [0] * count)
        return File(readers_files.write(one, tmp_path), columns(one))

    return made


def check(file: File, found: pa.Table) -> None:
    """Names, order of columns, rows, and every value are what went in."""
    assert found.column_names == [column.name for column in file.columns]
    for column in file.columns:
        assert readers_found.values(found[column.name], column) == column.values, (file.path, column)


def test_samples_have_everything(files: list[File]) -> None:
    """The files are worth reading: each type at each depth, flattened and nested; most are read by Spark unaided."""
    for flatten in (True, False):
        schemas = [one.schema for one in map(sample, range(SAMPLES)) if one.settings.flatten == flatten]
        for depth in range(1, MAX_DEPTH + 1):
            assert {arrow.id for schema in schemas for arrow in at_depth(schema, depth)} >= EVERY_KIND
    assert 40 < sum(file.spark_needs_schema() for file in files) < SAMPLES / 2


def at_depth(arrow: pa.DataType, depth: int) -> list[pa.DataType]:
    """The types so many levels below."""
    return [arrow] if not depth else [found for child in below(arrow) for found in at_depth(child, depth - 1)]


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


@pytest.mark.in_turn
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


@pytest.mark.parametrize("flatten", [True, False])
def test_parquet_types(tmp_path: Path, *, flatten: bool) -> None:
    """Each type has its physical and logical type and repetition; lists have three levels, maps key and value."""
    path = readers_files.write(readers_layouts.everything(flatten=flatten), tmp_path)
    assert readers_layouts.layout(path) == (readers_layouts.FLATTENED if flatten else readers_layouts.NESTED)


def test_instants_agree_in_any_time_zone(
    write: Callable[..., File], database: duckdb.DuckDBPyConnection, zoned: SparkSession
) -> None:
    """A timestamp is shown in the time zone of who looks, and is the same instant; a date is the same everywhere."""
    instants = [-946_684_799_999, -1, 0, 1_711_846_799_999, 1_711_846_800_000, 4_102_444_800_123]
    file = write(
        {
            "moment": (pa.timestamp("ms", "UTC"), [*instants]),
            "day": (pa.date32(), [-10_957, -1, 0, 19_813, 19_814, 47_482]),
        }
    )
    days = ["1940-01-02", "1969-12-31", "1970-01-01", "2024-03-31", "2024-04-01", "2100-01-01"]
    spark_rows = zoned.read.parquet(file.path).selectExpr(
        "date_format(moment, 'yyyy-MM-dd HH:mm:ss.SSS')", "string(day)"
    )
    assert [tuple(row) for row in spark_rows.collect()] == list(zip(shown(instants, SPARK_ZONE), days, strict=True))
    duckdb_rows = database.read_parquet(file.path).project("strftime(moment, '%Y-%m-%d %H:%M:%S.%g'), day::VARCHAR")
    assert duckdb_rows.fetchall() == list(zip(shown(instants, DUCKDB_ZONE), days, strict=True))


def shown(instants: list[int], zone: str) -> list[str]:
    """Milliseconds since 1970 as a clock in that zone shows them."""
    moments = (datetime.fromtimestamp(ms // 1000, UTC).astimezone(ZoneInfo(zone)) for ms in instants)
    return [f"{moment:%Y-%m-%d %H:%M:%S}.{ms % 1000:03}" for moment, ms in zip(moments, instants, strict=True)]


def test_spark_needs_a_schema_for_times(write: Callable[..., File], zoned: SparkSession) -> None:
    """Spark refuses a whole file for one TIME column; with a schema it reads it, as milliseconds, or without it."""
    file = write({"id": (pa.int64(), [1, 2]), "t": (pa.time32("ms"), [86_399_999, None])})
    with pytest.raises(AnalysisException, match=r"Illegal Parquet type: INT32 \(TIME\(MILLIS,true\)\)"):
        zoned.read.parquet(file.path)
    assert [tuple(row) for row in zoned.read.schema("id long, t int").parquet(file.path).collect()] == [
        (1, 86_399_999),
        (2, None),
    ]
    assert [tuple(row) for row in zoned.read.schema("id long").parquet(file.path).collect()] == [(1,), (2,)]


def test_only_pyarrow_reads_long_decimals_as_such(
    write: Callable[..., File], database: duckdb.DuckDBPyConnection, zoned: SparkSession
) -> None:
    """Beyond 38 digits DuckDB rounds to DOUBLE; Spark refuses the file without a schema, and reads bytes with one."""
    long = 10**38 + 1
    file = write({"id": (pa.int64(), [1]), "d": (decimal(39, 0), [Decimal(long)])})
    assert pq.read_table(file.path)["d"].to_pylist() == [Decimal(long)]
    assert database.read_parquet(file.path).fetchall() == [(1, 1e38)]
    with pytest.raises(ArithmeticException, match="exceeds max precision 38"):
        zoned.read.parquet(file.path)
    (row,) = zoned.read.schema("id long, d binary").parquet(file.path).collect()
    assert int.from_bytes(row["d"], "big", signed=True) == long


@pytest.mark.parametrize("far", [LAST_MS + 1, -LAST_MS - 1])
def test_only_pyarrow_reads_timestamps_beyond_microseconds(
    write: Callable[..., File], database: duckdb.DuckDBPyConnection, zoned: SparkSession, far: int
) -> None:
    """DuckDB and Spark count microseconds in 64 bits: beyond, year 294,247 or so, they read the other columns only."""
    file = write({"id": (pa.int64(), [1]), "moment": (pa.timestamp("ms", "UTC"), [far])})
    assert pq.read_table(file.path)["moment"].cast(pa.int64()).to_pylist() == [far]
    with pytest.raises(duckdb.ConversionException):
        database.read_parquet(file.path).fetchall()
    assert database.read_parquet(file.path).project("id").fetchall() == [(1,)]
    with pytest.raises(Exception, match="long overflow"):
        zoned.read.parquet(file.path).selectExpr("unix_millis(moment)").collect()
    assert zoned.read.parquet(file.path).select("id").collect() == [(1,)]


def test_names_that_differ_in_letter_case(
    write: Callable[..., File], database: duckdb.DuckDBPyConnection, zoned: SparkSession
) -> None:
    """DuckDB renames the second of two such columns; Spark refuses the file unless it is told to tell them apart."""
    file = write({"id": (pa.int64(), [1]), "ID": (pa.int64(), [2])})
    assert pq.read_table(file.path).to_pylist() == [{"id": 1, "ID": 2}]
    found = database.read_parquet(file.path)
    assert (found.columns, found.fetchall()) == (["id", "ID_1"], [(1, 2)])
    with pytest.raises(AnalysisException, match="COLUMN_ALREADY_EXISTS"):
        zoned.read.parquet(file.path)
    telling = zoned.newSession()
    telling.conf.set("spark.sql.caseSensitive", "true")
    assert telling.read.parquet(file.path).collect() == [(1, 2)]
