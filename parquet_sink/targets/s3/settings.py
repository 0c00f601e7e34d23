"""Keys and settings of a bucket that takes files, and how it is reached. Durations are milliseconds, sizes bytes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from parquet_sink.config.declared import Bytes, declared, filled_by, key, keys_of
from parquet_sink.config.key import Origin, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.net.settings import HttpSettings
from parquet_sink.plugins import named
from parquet_sink.targets.s3.prefix import dated, fixed_part, pattern
from parquet_sink.targets.s3.value_checks import BUCKET_NAME, CREDENTIAL, PREFIX_TEMPLATE, REGION_NAME, S3_URL
from parquet_sink.targets.settings import Target
from parquet_sink.targets.store import FileStore

SMALLEST_PART_BYTES: Final = 5 << 20
"""What S3 takes as a part that is not the last one."""
LARGEST_PUT_BYTES: Final = 5 << 30
"""What S3 takes in one request."""

_S3: Final = "S3"
BUCKET: Final = ems("s3.bucket")
PREFIX: Final = ems("s3.prefix")
ENDPOINT: Final = ems("s3.endpoint")
REGION: Final = ems("s3.region")
PATH_STYLE: Final = ems("s3.path.style")
ACCESS_KEY: Final = ems("s3.access.key.id")
SECRET_KEY: Final = ems("s3.secret.access.key")
SESSION_TOKEN: Final = ems("s3.session.token")
PROFILE: Final = ems("s3.profile")


def _path_style(values: Values, machine: Machine) -> bool:
    """Names of buckets as hosts need a DNS for it, which an address of one's own may not have."""
    return values.flag(PATH_STYLE) if PATH_STYLE in values.given else values.text(ENDPOINT) is not None


@declared(group=_S3, origin=Origin.OWN, optional=True)
class StaticCredentials:
    """As whom requests are signed."""

    access_key_id: str = key(
        ACCESS_KEY,
        "Id of the access key that requests are signed with.",
        check=CREDENTIAL,
        default_text="found by boto3: environment, profile, role of the machine",
    )
    secret_access_key: Secret = key(
        SECRET_KEY,
        "The secret of that access key. Never printed or sent; best given by a config provider, see Secrets.",
        check=CREDENTIAL,
    )
    session_token: Secret | None = key(
        SESSION_TOKEN, "Token of a temporary access key.", default=None, check=CREDENTIAL, needs=ACCESS_KEY
    )


@declared(group=_S3, origin=Origin.OWN, optional=True)
class BucketSettings(HttpSettings):
    """One bucket, and over which connections it is reached. credentials: None for those that boto3 finds."""

    bucket: str = key(
        BUCKET,
        "Bucket that takes the files; it must be there.",
        check=BUCKET_NAME,
        default_text="required for S3",
        missing="give the name of the bucket that takes the files.",
    )
    endpoint: str | None = key(
        ENDPOINT,
        "Address of an S3-compatible server, such as `https://minio.example.com:9000`.",
        default=None,
        default_text="AWS",
        check=S3_URL,
    )
    region: str | None = key(
        REGION,
        "Region of the bucket, which requests are signed for.",
        default=None,
        default_text="the profile's, else `us-east-1`",
        check=REGION_NAME,
    )
    path_style: bool = key(
        PATH_STYLE,
        "Name the bucket in the path of a request and not in the host's name.",
        default=True,
        default_text="`true` with `connect.ems.s3.endpoint`, else `false`",
        computed=_path_style,
    )
    credentials: StaticCredentials | None = None
    profile: str | None = key(
        PROFILE,
        "Profile of `~/.aws/config` and `~/.aws/credentials` whose credentials are used.",
        default=None,
    )
    multipart_bytes: Bytes = key(
        ems("s3.multipart.threshold.bytes"),
        "A file of so many bytes or more is sent in parts.",
        default=64 << 20,
        minimum=SMALLEST_PART_BYTES,
        maximum=LARGEST_PUT_BYTES,
    )
    part_bytes: Bytes = key(
        ems("s3.multipart.part.bytes"),
        "Size of a part in bytes; of a file of more than 10,000 parts they are larger.",
        default=16 << 20,
        minimum=SMALLEST_PART_BYTES,
        maximum=LARGEST_PUT_BYTES,
    )

    def problems(self, environment: Mapping[str, str]) -> Iterator[str]:
        """What boto3 cannot use, and of certificate authorities; nothing is sent."""
        problems: Iterator[str] = named("parquet_sink.targets.s3.client:problems")(self, environment)
        return problems


@dataclass(frozen=True)
class BucketStore:
    """A bucket that keeps files. prefix: of them all, without slashes around it; may be empty.

    key: of the file that names both; empty for those of a target.
    """

    bucket: BucketSettings
    prefix: str = ""
    key: str = ""

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return f"s3://{self.bucket.bucket}/{self.prefix}".rstrip("/")

    def problems(self, environment: Mapping[str, str]) -> Iterator[str]:
        """As of a bucket."""
        return self.bucket.problems(environment)

    def open(self) -> FileStore:
        store: FileStore = named("parquet_sink.targets.s3.target:S3Store")(self)
        return store


@declared(group=_S3, origin=Origin.OWN, optional=True)
class S3Settings:
    """Where files go. target_table: for `{table}` in the prefix, of topics without one."""

    told_by_address: ClassVar[bool] = True
    bucket: BucketSettings
    prefix: str = key(
        PREFIX,
        "What stands before a file's name in its object's name: a path, with `{topic}`, `{partition}`, "
        "`{first_offset}`, `{table}` and, of the first record's timestamp in UTC, `{yyyy}`, `{MM}`, `{dd}`, `{HH}`. "
        "Such as `lake/topic={topic}/date={yyyy}-{MM}-{dd}`; see [s3.md](s3.md).",
        default="{topic}",
        default_text="`{topic}`",
        check=PREFIX_TEMPLATE,
    )
    target_table: str = filled_by(ems("target.table"), default="")

    @property
    def address(self) -> str:
        """Where files go, for messages, with a star for each field."""
        return f"s3://{self.bucket.bucket}/{pattern(self.prefix)}".rstrip("/")

    @property
    def place(self) -> str:
        """What all names of objects begin with, up to a slash."""
        return f"s3://{self.bucket.bucket}/{fixed_part(self.prefix).rpartition('/')[0]}"

    @property
    def needs_timestamp(self) -> str:
        """The prefix, where it has a date."""
        return f"{PREFIX}={self.prefix}" if dated(self.prefix) else ""

    def problems(self, environment: Mapping[str, str]) -> Iterator[str]:
        """As of its bucket."""
        return self.bucket.problems(environment)

    def open(self) -> Target:
        target: Target = named("parquet_sink.targets.s3.target:S3Target")(self)
        return target


_BUCKET, *_OTHERS, _PREFIX = keys_of(S3Settings, _S3)
S3_KEYS: Final = (_BUCKET, _PREFIX, *_OTHERS)
"""In the order of the documentation."""
