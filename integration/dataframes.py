"""PySpark programs that send a DataFrame: the one of docs/how-to/pyspark.md, and a table that it reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from integration.harness import Sink
from parquet_sink import spark as parquet_sink

WAIT_S: Final = 120


def connector_file(sink: Sink, folder: Path, **ems: object) -> str:
    """A connector file without any key of Kafka's."""
    keys = sink.properties("", **{"commit_records": 4, **ems})
    kept = {key: value for key, value in keys.items() if key != "topics" and not key.endswith("commit.interval.ms")}
    path = folder / "frames.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in kept.items()))
    return str(path)


def land(sink: Sink, folder: Path, ids: range) -> None:
    """One more file of the table that a stream reads."""
    frame = sink.spark.range(ids.start, ids.stop, 1, 1).selectExpr(
        "id", "struct(id as n, concat('n', id) as text) as more", "timestamp_micros(id) as at"
    )
    frame.write.mode("append").parquet(str(folder / "table"))


def stream(sink: Sink, folder: Path) -> DataFrame:
    """The table as a stream: one file for each micro-batch."""
    schema = "id long, more struct<n: long, text: string>, at timestamp"
    return sink.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "table"))


def start(frame: DataFrame, options: Mapping[str, str], checkpoint: Path) -> StreamingQuery:
    """The program of docs/how-to/pyspark.md, that ends when it has caught up."""
    writer = frame.writeStream.format("parquet_sink").options(**options)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def once(sink: Sink, folder: Path, file: str) -> None:
    """One run of the program to its end."""
    with parquet_sink.dataframes(file) as options:
        assert start(stream(sink, folder), options, folder / "checkpoint").awaitTermination(WAIT_S)


def names(sink: Sink) -> list[str]:
    """Names of all files that the target has accepted for this sink, in order: a query of before may still send."""
    return [file["name"] for file in sink.target.client.files(sink.table)]
