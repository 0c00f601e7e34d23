"""Spark: data sources by name, session, run folder. For PySpark programs: `register`, `connector`, `dataframes`.

    from parquet_sink import spark as parquet_sink

See `parquet_sink.spark.program`, which is loaded when one of them is asked for: other processes import this package
for a single module of it, and stay small.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parquet_sink.spark.program import connector, dataframes, register

__all__ = ["connector", "dataframes", "register"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from parquet_sink.spark import program

        return getattr(program, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
