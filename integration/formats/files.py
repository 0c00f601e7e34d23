"""What reached the target, as bytes and as Parquet: for tests of formats."""

import io
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from integration.harness import Sink

METADATA = {
    "kafkaPartition": "int32 required",
    "kafkaOffset": "int64 required",
    "kafkaTimestamp": "int64 required",
    "kafkaPartitionOffset": "string required",
}


@dataclass(frozen=True)
class Uploaded:
    """An accepted file: the name it was sent under, and what is in it."""

    name: str
    content: bytes

    @property
    def table(self) -> pa.Table:
        return pq.read_table(io.BytesIO(self.content))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its rows; maps are lists of pairs, as in Arrow."""
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    @property
    def columns(self) -> dict[str, str]:
        """The type of each column, in order, with `required` behind it where it cannot be null."""
        return columns(self.table.schema)


def columns(schema: pa.Schema) -> dict[str, str]:
    """The type of each column as text, with `required` behind it where it cannot be null."""
    return {field.name: f"{field.type}{'' if field.nullable else ' required'}" for field in schema}


def uploaded(sink: Sink, *, unfit: int = 0) -> list[Uploaded]:
    """All accepted files, in the order in which they were. unfit: how many the target's table could not take."""
    client = sink.target.client
    client.sync()
    assert client.statistics()["failed_upserts"] == unfit
    path = sink.tmp_dir.parent / "downloaded"
    found = []
    for file in client.files():
        client.download(file["id"], path)
        found.append(Uploaded(file["name"], path.read_bytes()))
    return found


def only(sink: Sink) -> Uploaded:
    """The one file that was uploaded."""
    [file] = uploaded(sink)
    return file
