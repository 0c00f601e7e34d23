"""A bucket as the target, on a real broker and moto's server: files arrive in order, trouble passes or is told."""

import io

import pyarrow.parquet as pq

from integration import scripted_target as script
from integration.buckets import drain, properties, rows
from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.numbered import numbered
from integration.s3.front import Fault, S3Front, error, taken_and_cut
from integration.s3.server import SECRET_KEY, S3Server
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.files.naming import is_sent_name
from parquet_sink.worker.loop.status import Status
from tests.messages import assert_says


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
    sink.remove_files()
    group = f"again-{sink.name}"
    again = drain(
        sink, {**properties(sink, name, bucket, s3.endpoint), "consumer.override.group.id": group, "tasks.max": "1"}
    )
    assert (again.status, again.failure.kind) == (Status.FAILED, "UploadRefused")
    assert SECRET_KEY not in again.failure.message
    assert_says(again.failure.message, f"s3://{bucket}/{keys[-1]} is there", "another content", f"{sink.tmp_dir}")
    assert s3.content(bucket, keys[-1]) == b"another"
    assert {key: s3.client.head_object(Bucket=bucket, Key=key)["LastModified"] for key in keys[:-1]} == {
        key: at for key, at in written.items() if key != keys[-1]
    }
    assert sink.offsets(name, 2, group)[1] == 80
