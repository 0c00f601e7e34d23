"""How a bucket is tried: under a name that a file of the connector has, whatever else the rights leave out."""

import re
from contextlib import closing
from typing import Any

import pytest
from botocore.exceptions import ClientError

from parquet_sink.targets.outcome import Health
from parquet_sink.targets.s3 import target as s3
from parquet_sink.targets.s3.client import Connection, Transport
from parquet_sink.targets.s3.settings import BucketSettings, S3Settings
from parquet_sink.validate.probe import probe_target
from tests.messages import assert_says

LAKE = "events/topic={topic}/date={yyyy}-{MM}-{dd}"


class Bucket:
    """Grants rights for names that begin with a prefix. tried: all names that uploads were begun for."""

    def __init__(self, granted: str) -> None:
        self.granted, self.tried = granted, list[str]()

    def create_multipart_upload(self, Bucket: str, Key: str) -> dict[str, Any]:
        self.tried.append(Key)
        self._require("CreateMultipartUpload", Key)
        return {"UploadId": "1"}

    def abort_multipart_upload(self, Bucket: str, Key: str, UploadId: str) -> dict[str, Any]:
        self._require("AbortMultipartUpload", Key)
        return {}

    def head_object(self, Bucket: str, Key: str, **_: str) -> dict[str, Any]:
        raise ClientError(_answer(404, "404"), "HeadObject")

    def _require(self, operation: str, key: str) -> None:
        if not key.startswith(self.granted):
            raise ClientError(_answer(403, "AccessDenied"), operation)


class Wire:
    """Nothing goes out."""

    def close(self) -> None:
        pass


def _answer(status: int, code: str) -> Any:
    return {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}}}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Its policy has one topic's folder."""
    bucket = Bucket("events/topic=orders/")
    transport = Transport(Wire(), 1.0, 1.0)  # type: ignore[arg-type]
    monkeypatch.setattr(s3, "connect", lambda settings: Connection(bucket, transport, (), True))
    return bucket


def test_a_right_for_the_folder_of_a_topic_is_enough(bucket: Bucket) -> None:
    """The name that is tried has topic and date filled in, so that a right for the connector's own names is seen."""
    found = probe_target(S3Settings(BucketSettings(bucket="lake"), LAKE), "orders")
    assert found.health is Health.OK
    assert_says(found.text, "can be put there", "nothing was stored")
    [tried] = bucket.tried
    folder, topic, date, name = tried.split("/")
    assert (folder, topic, name) == ("events", "topic=orders", ".parquet-sink-check")
    assert re.fullmatch(r"date=2\d{3}-\d\d-\d\d", date)


def test_a_right_that_is_missing_names_the_object(bucket: Bucket) -> None:
    """With all rights that a connector needs, so that a policy can be compared with both."""
    found = probe_target(S3Settings(BucketSettings(bucket="lake"), LAKE), "bills")
    assert found.health is Health.FAILED
    rights = ("PutObject", "GetObject", "AbortMultipartUpload", "ListBucket", "ListBucketMultipartUploads")
    assert_says(found.text, "the object events/topic=bills/date=2", *(f"s3:{right}" for right in rights))


def test_without_a_topic_the_part_before_the_first_field_is_tried(bucket: Bucket) -> None:
    """As of a pattern that no topic matches yet."""
    bucket.granted = ""
    settings = S3Settings(BucketSettings(bucket="lake"), "events/of-{topic}")
    assert probe_target(settings).health is Health.OK
    with closing(settings.open()) as target:
        assert target.probe(9.0).health is Health.OK
    assert bucket.tried == ["events/of-.parquet-sink-check"] * 2
