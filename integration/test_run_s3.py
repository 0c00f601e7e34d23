"""A bucket as the target, on a real broker and moto's server: files arrive in order, trouble passes or is told."""

import io
import json
import shutil
from typing import Any

import pyarrow.parquet as pq

from integration import scripted_target as script
from integration.conftest import TopicFactory
from integration.harness import Run, Sink
from integration.s3.front import Fault, S3Front, error, taken_and_cut
from integration.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.files.naming import is_sent_name
from parquet_sink.worker.loop.status import Status

PREFIX = "lake/topic={topic}/date={yyyy}-{MM}-{dd}"


def numbered(count: int, first: int = 0) -> list[tuple[None, bytes]]:
    """Records {"n": first}, {"n": first + 1} and so on, without keys."""
    return [(None, json.dumps({"n": n}).encode()) for n in range(first, first + count)]


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


def test_files_are_in_the_bucket_before_offsets_are_committed(
    sink: Sink, broker: Broker, topic: TopicFactory, s3: S3Server
) -> None:
    """Each once, whatever happens between; a second run over the same offsets finds them; another content stops it."""
    name, bucket = topic(2), s3.bucket()
    for partition in range(2):
        broker.produce(name, numbered(100, partition * 1_000), partition)
    faults = [Fault("^PUT", error(503, "SlowDown")), Fault("^PUT", taken_and_cut), Fault("^PUT", script.cut(50))]
    with S3Front(s3.port, *faults) as front:
        run = drain(sink, properties(sink, name, bucket, front.endpoint))
        assert (run.status, [fault.times for fault in faults]) == (Status.DONE, [0, 0, 0])
    assert [row["n"] for row in rows(s3, bucket)] == [*range(100), *range(1_000, 1_100)]
    keys = s3.keys(bucket)
    assert sorted(key.rpartition("/")[2] for key in keys) == sorted(one.file_name for one in run.accepted)
    assert all(key.startswith(f"lake/topic={name}/date=20") and is_sent_name(key.split("/")[3]) for key in keys)
    assert sink.offsets(name, 2) == [100, 100]
    head = s3.client.head_object(Bucket=bucket, Key=keys[0])
    assert head["Metadata"].items() >= {"topic": name, "first-offset": "0", "last-offset": "39", "rows": "40"}.items()
    footer = pq.read_metadata(io.BytesIO(s3.content(bucket, keys[0])))
    assert footer.row_group(0).column(0).compression == "UNCOMPRESSED"
    written = {key: s3.client.head_object(Bucket=bucket, Key=key)["LastModified"] for key in keys}
    s3.client.put_object(Bucket=bucket, Key=keys[-1], Body=b"another")
    shutil.rmtree(sink.tmp_dir)
    group = f"again-{sink.name}"
    again = drain(
        sink, {**properties(sink, name, bucket, s3.endpoint), "consumer.override.group.id": group, "tasks.max": "1"}
    )
    assert (again.status, again.failure.kind) == (Status.FAILED, "UploadRefused")
    assert SECRET_KEY not in again.failure.message
    assert f"s3://{bucket}/{keys[-1]} is there with another content than {sink.tmp_dir}" in again.failure.message
    assert s3.content(bucket, keys[-1]) == b"another"
    assert {key: s3.client.head_object(Bucket=bucket, Key=key)["LastModified"] for key in keys[:-1]} == {
        key: at for key, at in written.items() if key != keys[-1]
    }
    assert sink.offsets(name, 2, group)[1] == 80
