"""A record that is larger than `connect.ems.record.max.bytes`, on its way through one Spark task, and parked."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from parquet_sink.model.records import RecordBatch
from parquet_sink.model.rejected import VALUE_NOT_KEPT
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.scan import split_unread
from tests.messages import assert_says
from tests.spark_task import SparkTask

_LIMIT = 1 << 20
_LARGE = b'{"order_id": 2, "note": "' + b"x" * _LIMIT + b'"}'


def test_a_record_above_the_bound_stops_the_connector(spark_task: SparkTask) -> None:
    """What is before it is accepted, and the message has its offset, its size and the key."""
    spark_task.configure(connect__ems__record__max__bytes=str(_LIMIT))
    spark_task.produce(b'{"order_id": 1}', _LARGE, b'{"order_id": 3}')
    spark_task.flush()
    failure = spark_task.flush()["orders", 0].failure
    assert failure is not None
    assert_says(failure.message, "offset 1", f"{len(_LARGE):,} bytes", f"[connect.ems.record.max.bytes]={_LIMIT}")
    assert [row["order_id"] for row in spark_task.rows()] == [1]


def test_a_record_above_the_bound_is_parked_without_its_value(spark_task: SparkTask, tmp_path: Path) -> None:
    """With errors.tolerance=all the rows around it are accepted, and a header has its place and size."""
    folder = tmp_path / "parked"
    settings = spark_task.configure(
        connect__ems__record__max__bytes=str(_LIMIT), errors__tolerance="all", connect__ems__parked__dir=str(folder)
    )
    ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes).prepare()
    spark_task.produce(b'{"order_id": 1}', _LARGE, b'{"order_id": 3}')
    outcome = spark_task.flush()["orders", 0]
    assert outcome.failure is None, outcome.failure.message
    assert outcome.accepted_until == 3
    assert [row["order_id"] for row in spark_task.rows()] == [1, 3]
    (parked,) = (row for file in folder.rglob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist())
    assert (parked["offset"], parked["value"][:16]) == (1, b"value not kept: ")
    (header,) = parked["headers"]
    assert header["key"] == VALUE_NOT_KEPT
    note = json.loads(header["value"])
    assert note.pop("reason").startswith(f"it has {len(_LARGE):,} bytes, more than [connect.ems.record.max.bytes]=")
    assert note == {"topic": "orders", "partition": 0, "offset": 1, "next_offset": 2, "bytes": len(_LARGE)}


def test_a_record_that_was_parked_without_its_value_is_no_tombstone() -> None:
    """When parked records are read, it is alone in its batch with its reason; a tombstone stays among the others."""
    headers = [(), (), ((VALUE_NOT_KEPT, b'{"reason": "it is too large"}'),), ()]
    batch = RecordBatch.of(
        "orders", 0, range(4), [0] * 4, [b"a", None, b"value not kept: it is too large", b"b"], [None] * 4, headers
    )
    found = [(part.offsets.to_pylist(), part.unread and part.unread.reason) for part in split_unread(batch)]
    assert found == [([0, 1], None), ([2], "it is too large"), ([3], None)]
