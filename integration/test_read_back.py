"""What the demo reads of its target in the end."""

import io
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import requests

from parquet_sink.addons.devkit.demo.read_back import TargetReader
from parquet_sink.addons.devkit.target.process import TargetProcess

ROWS = 200_000
"""The target takes longer for the upsert of so many than for the answer to whoever asks next."""


def test_files_are_read_when_they_are_upserted(target: TargetProcess) -> None:
    """A target that is behind with its upserts is waited for: what it has is judged, and not how fast it is."""
    numbers = pa.array(range(ROWS))
    columns = {"id": numbers, "kafkaPartition": pa.repeat(0, ROWS), "kafkaOffset": numbers, "kafkaTimestamp": numbers}
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    requests.post(
        target.endpoint(),
        params={"targetName": "orders", "clientId": "test", "primaryKeys": "id"},
        headers={"Authorization": "AppKey demo"},
        files={"file": ("orders.parquet", file.getvalue())},
        timeout=60,
    ).raise_for_status()
    with closing(TargetReader(target.url, "orders")) as reader:
        (found,) = reader.files()
        assert (found.upsert_state, found.rows) == ("upserted", ROWS)
        assert len(reader.rows()) == ROWS
