"""The sink for any DataFrame: the program of docs/how-to/pyspark.md, twice over one checkpoint; what ends a batch."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from integration.dataframes import connector_file, land, names, once, start
from integration.harness import Sink
from parquet_sink import spark as parquet_sink
from parquet_sink.addons.devkit.broker import Broker
from tests.messages import saying

WAIT_S = 120
NAME = re.compile(
    r"connector-[\w-]+_query-([0-9a-f]{32})_batch-(\d+)_partition-(\d+)_firstRow-(\d+)_lastRow-(\d+)_bytes-\d+_rows-(\d+)"
    r"\.parquet"
)


def test_a_table_arrives_batch_by_batch(sink: Sink, tmp_path: Path) -> None:
    """Columns are the DataFrame's, flattened; files rotate; a second run over the checkpoint sends only what is new."""
    parquet_sink.register(sink.spark)
    file = connector_file(sink, tmp_path)
    land(sink, tmp_path, range(10))
    once(sink, tmp_path, file)
    first = names(sink)
    found = [NAME.fullmatch(name) for name in first]
    assert all(found), first
    assert [match.group(2, 3, 4, 5, 6) for match in found if match] == [
        ("0", "0", "0", "3", "4"),
        ("0", "0", "4", "7", "4"),
        ("0", "0", "8", "9", "2"),
    ]
    rows = sorted(sink.rows(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(10))
    assert set(rows[0]) == {"id", "more_n", "more_text", "at"}
    assert rows[3]["more_text"] == "n3"
    assert rows[3]["at"].microsecond == 3
    land(sink, tmp_path, range(10, 13))
    once(sink, tmp_path, file)
    (more,) = names(sink)[len(first) :]
    match = NAME.fullmatch(more)
    assert match is not None
    assert match.group(2, 3, 4, 5, 6) == ("1", "0", "0", "2", "3")
    assert match.group(1) == next(one.group(1) for one in found if one)
    assert sorted(row["id"] for row in sink.rows()) == list(range(13))


def test_a_batch_that_failed_comes_again_under_the_same_names(sink: Sink, tmp_path: Path) -> None:
    """A refused file fails the batch with our words; the next run over the checkpoint sends the same files again."""
    parquet_sink.register(sink.spark)
    file = connector_file(sink, tmp_path, data_primary_key="id", order_field_name="at")
    land(sink, tmp_path, range(10))
    sink.target.client.order_faults({"status": 403, "match": "firstRow-4_", "next": 1})
    with pytest.raises(
        StreamingQueryException, match=saying("batch 0", "Spark partition 0", "rows 4 to 7", "was refused")
    ):
        once(sink, tmp_path, file)
    (delivered,) = names(sink)
    once(sink, tmp_path, file)
    files = [(file["name"], file["repeated"], file["altered"]) for file in sink.target.client.files(sink.table)]
    assert files[0] == (delivered, 1, 0)
    assert [match[4] for name, *_ in files if (match := NAME.fullmatch(name))] == ["0", "4", "8"]
    assert sorted(row["id"] for row in sink.rows()) == list(range(10))


def test_a_rate_source_and_several_partitions(sink: Sink, tmp_path: Path) -> None:
    """Each Spark partition has its own files; all rows of all batches that ended arrive once."""
    parquet_sink.register(sink.spark)
    with parquet_sink.dataframes(connector_file(sink, tmp_path, commit_records=1000)) as options:
        frame = sink.spark.readStream.format("rate-micro-batch").options(rowsPerBatch=50, numPartitions=3).load()
        writer = frame.writeStream.format("parquet_sink").options(**options, checkpointLocation=str(tmp_path / "c"))
        query = writer.trigger(processingTime="200 milliseconds").start()
        try:
            while (query.lastProgress or {"batchId": 0})["batchId"] < 2:
                assert query.exception() is None
                query.awaitTermination(1)
        finally:
            query.stop()
        ended = (query.lastProgress or {"batchId": 0})["batchId"] + 1
    values = sorted(row["value"] for row in sink.rows())  # the batch that was stopped may be there in part
    assert values[: ended * 50] == list(range(ended * 50))
    assert len(values) == len(set(values))
    assert {match[3] for match in map(NAME.fullmatch, names(sink)) if match} == {"0", "1", "2"}


def test_a_save_arrives(sink: Sink, tmp_path: Path) -> None:
    """Batch mode appends; a row without a key fails the save and names the row; overwriting is refused."""
    parquet_sink.register(sink.spark)
    with parquet_sink.dataframes(
        connector_file(sink, tmp_path, data_primary_key="id", order_field_name="v")
    ) as options:

        def save(sql: str, mode: str = "append") -> None:
            sink.spark.sql(sql).write.format("parquet_sink").options(**options).mode(mode).save()

        save("select id, id * 2 as v from range(0, 10, 1, 2)")
        assert sorted(row["id"] for row in sink.rows()) == list(range(10))
        assert all("_save-" in name for name in names(sink))
        assert list(sink.tmp_dir.rglob("save-*")) == []
        with pytest.raises(
            PySparkException, match=saying("Spark partition 0", "row 1", "data.primary.key", "column id is null")
        ):
            save("select if(id = 1, null, id) as id, 1 as v from range(0, 3, 1, 1)")
        with pytest.raises(PySparkException, match=r"mode\('append'\)"):
            save("select 1 as id, 1 as v", "overwrite")
        with pytest.raises(PySparkException, match=saying("column i holds", "cast it")):
            save("select 1 as id, 1 as v, interval 3 days as i")
        with pytest.raises(PySparkException, match=saying("column i holds", "cast it")):
            save("""select 1 as id, 1 as v, parse_json('{"a":1}') as i""")


def test_records_of_the_source_become_columns(sink: Sink, broker: Broker, topic: Any, tmp_path: Path) -> None:
    """The source's records, changed by the program, are a DataFrame like any other, with one connector's options."""
    name = topic()
    broker.produce(name, [(None, b'{"n":%d}' % number) for number in range(6)])
    parquet_sink.register(sink.spark)
    keys = sink.properties(name) | {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
    file = tmp_path / "records.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    with parquet_sink.connector(str(file), bootstrap_servers=broker.bootstrap_servers) as options:
        records = sink.spark.readStream.format("parquet_sink_kafka").options(**options, rows="records").load()
        frame = records.selectExpr("from_json(string(value), 'n int').n * 10 as tens", "offset")
        assert start(frame, options, tmp_path / "c").awaitTermination(WAIT_S)
    assert sorted((row["offset"], row["tens"]) for row in sink.rows()) == [(n, n * 10) for n in range(6)]
    assert sink.offsets(name) == [6]


PROGRAM = """
import sys
from pyspark.sql import SparkSession
from parquet_sink import spark as parquet_sink

file, table, checkpoint = sys.argv[1:]
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
parquet_sink.register(session)
with parquet_sink.dataframes(file) as options:
    stream = session.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(table)
    writer = stream.writeStream.format("parquet_sink").options(**options).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
"""


@pytest.mark.slow
def test_a_program_that_is_killed_sends_its_batch_again(sink: Sink, tmp_path: Path) -> None:
    """After kill -9 in the middle of a batch, the next run over the checkpoint sends the same names and contents."""
    table = tmp_path / "table"
    for first in (0, 10, 20):
        sink.spark.range(first, first + 10, 1, 1).write.mode("append").parquet(str(table))
    file, program = connector_file(sink, tmp_path), tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), file, str(table), str(tmp_path / "checkpoint")]
    sink.target.client.order_faults({"latency_s": 60.0, "match": "batch-1_partition-0_firstRow-4_"})
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True) as killed:
        deadline = time.monotonic() + WAIT_S
        while not any("batch-1_partition-0_firstRow-0_" in name for name in names(sink)):
            assert killed.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(killed.pid, signal.SIGKILL)
    sink.target.client.clear_faults()
    subprocess.run(command, cwd=tmp_path, check=True, timeout=WAIT_S)
    files = {file["name"]: (file["repeated"], file["altered"]) for file in sink.target.client.files(sink.table)}
    found = sorted(match.group(2, 4) for match in map(NAME.fullmatch, files) if match)
    assert found == [(batch, row) for batch in "012" for row in "048"]
    assert {altered for _, altered in files.values()} == {0}
    (again,) = [repeated for name, (repeated, _) in files.items() if "batch-1_partition-0_firstRow-0_" in name]
    assert again == 1
    assert {row["id"] for row in sink.rows()} == set(range(30))
