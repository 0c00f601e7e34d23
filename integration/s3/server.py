"""moto's S3 server in a process of its own, and what its buckets hold.

It holds objects in memory: what is killed has lost them. It never outlives the process that started it.
"""

import os
import subprocess
import sys
import time
import uuid
from types import TracebackType
from typing import Any, Final, Self

import boto3
from botocore.config import Config

from parquet_sink.addons.devkit.ports import HOST, accepts_connections, free_port
from parquet_sink.config.secret import Secret
from parquet_sink.process.signals import ParentDeathGuard
from parquet_sink.targets.s3.settings import BucketSettings, StaticCredentials

ACCESS_KEY: Final = "AKIAEXAMPLE"
SECRET_KEY: Final = "canary-secret-0123456789"
REGION: Final = "us-east-1"
SMALLEST_PART_BYTES: Final = 10_000
"""S3 itself takes 5 MiB; so much would only make tests slow."""
_START_S: Final = 60.0


class S3Server:
    """A context manager; `client` is the test's own, with botocore's own HTTP."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ParentDeathGuard | None = None
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}, proxies={}),
        )

    @property
    def pid(self) -> int | None:
        """The server's process."""
        return None if self._process is None else self._process.pid

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    def bucket(self, prefix: str = "bucket") -> str:
        """A new bucket."""
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        self.client.create_bucket(Bucket=name)
        return name

    def settings(self, bucket: str, endpoint: str | None = None, **more: Any) -> BucketSettings:
        """How the sink reaches a bucket here, or by something that stands before."""
        signed = StaticCredentials(ACCESS_KEY, Secret(SECRET_KEY))
        given = {"endpoint": endpoint or self.endpoint, "region": REGION, "credentials": signed, **more}
        return BucketSettings(bucket, **given)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        """Names of all objects, in order."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [one["Key"] for page in pages for one in page.get("Contents", ())]

    def content(self, bucket: str, key: str) -> bytes:
        """The bytes of an object."""
        found: bytes = self.client.get_object(Bucket=bucket, Key=key)["Body"].read()
        return found

    def unfinished(self, bucket: str) -> list[str]:
        """Keys of uploads in parts that nobody finished or aborted."""
        return [one["Key"] for one in self.client.list_multipart_uploads(Bucket=bucket).get("Uploads", ())]

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(self.port)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "S3_UPLOAD_PART_MIN_SIZE": str(SMALLEST_PART_BYTES)},
        )
        self._guard = ParentDeathGuard(self._process.pid)
        deadline = time.monotonic() + _START_S
        while not accepts_connections(self.port):
            assert self._process.poll() is None, "moto's server ended at once"
            assert time.monotonic() < deadline, f"moto's server did not listen within {_START_S:.0f} s"
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        if self._guard is not None:
            self._guard.release()
