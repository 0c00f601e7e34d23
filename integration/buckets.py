"""A bucket as the target of a connector, and what is in it."""

import io
from typing import Any, Final

import pyarrow.parquet as pq

from integration.harness import Run, Sink
from integration.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server

PREFIX: Final = "lake/topic={topic}/date={yyyy}-{MM}-{dd}"


def properties(sink: Sink, topic: str, bucket: str, endpoint: str, **ems: object) -> dict[str, str]:
    """A connector file of the class for buckets."""
    given: dict[str, object] = {
        "s3.bucket": bucket,
        "s3.prefix": PREFIX,
        "s3.endpoint": endpoint,
        "s3.region": REGION,
        "s3.access.key.id": ACCESS_KEY,
        "s3.secret.access.key": SECRET_KEY,
    }
    own = sink.properties(topic, **{"commit_records": 40, **ems}, **given)
    push = {f"connect.ems.{name}" for name in ("endpoint", "authorization.key", "target.table")}
    return {**{key: text for key, text in own.items() if key not in push}, "connector.class": "parquet_sink.S3Sink"}


def drain(sink: Sink, keys: dict[str, str]) -> Run:
    """To the end of what there is."""
    return sink.make(keys, until_caught_up=True).start().until_ended()


def rows(s3: S3Server, bucket: str) -> list[dict[str, Any]]:
    """All rows of all files, in the order of topic-partition and offset."""
    tables = [pq.read_table(io.BytesIO(s3.content(bucket, key))) for key in s3.keys(bucket)]
    found = [row for table in tables for row in table.to_pylist()]
    return sorted(found, key=lambda row: (row["kafkaPartition"], row["kafkaOffset"]))
