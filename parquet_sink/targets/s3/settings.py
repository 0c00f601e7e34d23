"""A bucket that takes files, and how it is reached. Durations are milliseconds, sizes bytes."""

from dataclasses import dataclass
from typing import Final

from parquet_sink.config.secret import Secret
from parquet_sink.net.settings import ProxySettings
from parquet_sink.targets.s3.prefix import pattern

SMALLEST_PART_BYTES: Final = 5 << 20
"""What S3 takes as a part that is not the last one."""
LARGEST_PUT_BYTES: Final = 5 << 30
"""What S3 takes in one request."""


@dataclass(frozen=True)
class StaticCredentials:
    """As whom requests are signed."""

    access_key_id: str
    secret_access_key: Secret
    session_token: Secret | None = None


@dataclass(frozen=True)
class BucketSettings:
    """One bucket, and over which connections it is reached.

    endpoint: None for AWS. credentials: None for those that boto3 finds: of `profile`, the environment, the instance.
    multipart_bytes: a file of this size or more is sent in parts of `part_bytes`.
    """

    bucket: str
    endpoint: str | None = None
    region: str | None = None
    path_style: bool = True
    credentials: StaticCredentials | None = None
    profile: str | None = None
    multipart_bytes: int = 64 << 20
    part_bytes: int = 16 << 20
    connect_timeout_ms: int = 10_000
    response_timeout_ms: int = 90_000
    ca_file: str | None = None
    proxy: ProxySettings | None = None
    pool_max_idle: int = 5
    pool_keepalive_ms: int = 300_000
    pool_explicit_close: bool = False


@dataclass(frozen=True)
class S3Settings:
    """Where files go. prefix: a template, see `prefix`. target_table: for `{table}` in it, of topics without one."""

    bucket: BucketSettings
    prefix: str = ""
    target_table: str = ""

    @property
    def address(self) -> str:
        """Where files go, for messages, with a star for each field."""
        return f"s3://{self.bucket.bucket}/{pattern(self.prefix)}".rstrip("/")
