"""How DuckDB and Spark name the types of our columns."""

from collections.abc import Mapping
from typing import Final

import duckdb
import pyarrow as pa
from duckdb import sqltypes
from pyspark.sql import types

from integration.readers.columns import Column, fields, is_wide

_DUCKDB: Final[Mapping[pa.DataType, sqltypes.DuckDBPyType]] = {
    pa.int32(): sqltypes.INTEGER,
    pa.int64(): sqltypes.BIGINT,
    pa.float32(): sqltypes.FLOAT,
    pa.float64(): sqltypes.DOUBLE,
    pa.bool_(): sqltypes.BOOLEAN,
    pa.string(): sqltypes.VARCHAR,
    pa.binary(): sqltypes.BLOB,
    pa.date32(): sqltypes.DATE,
    pa.time32("ms"): sqltypes.TIME_TZ,
    pa.timestamp("ms", "UTC"): sqltypes.TIMESTAMP_TZ,
}
_SPARK: Final[Mapping[pa.DataType, types.DataType]] = {
    pa.int32(): types.IntegerType(),
    pa.int64(): types.LongType(),
    pa.float32(): types.FloatType(),
    pa.float64(): types.DoubleType(),
    pa.bool_(): types.BooleanType(),
    pa.string(): types.StringType(),
    pa.binary(): types.BinaryType(),
    pa.date32(): types.DateType(),
    pa.time32("ms"): types.IntegerType(),
    pa.timestamp("ms", "UTC"): types.TimestampType(),
}


def duckdb_type(arrow: pa.DataType) -> sqltypes.DuckDBPyType:
    """Decimals of more than 38 digits are DOUBLE there."""
    if pa.types.is_struct(arrow):
        return duckdb.struct_type({field.name: duckdb_type(field.type) for field in fields(arrow)})
    if pa.types.is_list(arrow):
        return duckdb.list_type(duckdb_type(arrow.value_type))
    if pa.types.is_map(arrow):
        return duckdb.map_type(duckdb_type(arrow.key_type), duckdb_type(arrow.item_type))
    if pa.types.is_decimal(arrow):
        return sqltypes.DOUBLE if is_wide(arrow) else duckdb.decimal_type(arrow.precision, arrow.scale)
    return _DUCKDB[arrow]


def spark_schema(columns: list[Column]) -> types.StructType:
    """Everything is nullable in what Spark reads from files."""
    return types.StructType([types.StructField(column.name, spark_type(column.arrow)) for column in columns])


def spark_type(arrow: pa.DataType) -> types.DataType:
    """Times and decimals of more than 38 digits have no type there; these are what they can be read as."""
    if pa.types.is_struct(arrow):
        return types.StructType([types.StructField(field.name, spark_type(field.type)) for field in fields(arrow)])
    if pa.types.is_list(arrow):
        return types.ArrayType(spark_type(arrow.value_type))
    if pa.types.is_map(arrow):
        return types.MapType(spark_type(arrow.key_type), spark_type(arrow.item_type))
    if pa.types.is_decimal(arrow):
        return types.BinaryType() if is_wide(arrow) else types.DecimalType(arrow.precision, arrow.scale)
    return _SPARK[arrow]
