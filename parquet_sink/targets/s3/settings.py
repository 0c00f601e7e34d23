"""S3 as a class of targets and of file stores: its keys, their checks, and settings. Sizes are bytes."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import urlsplit

from parquet_sink.config.declared import Bytes, declared, filled_by, key, keys_of, made, names_of
from parquet_sink.config.declared import check as check_keys
from parquet_sink.config.key import Check, Origin, Value, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values
from parquet_sink.files.settings import Codec
from parquet_sink.net.settings import ENDPOINT as PUSH_ENDPOINT
from parquet_sink.net.settings import HttpSettings, check_in_clear, check_proxy, wrong_url
from parquet_sink.plugins import named
from parquet_sink.targets.push.settings import TABLE, TARGET, PushSettings
from parquet_sink.targets.s3 import prefix as prefixes
from parquet_sink.targets.s3.prefix import FIELD, dated, fields, fixed_part, pattern
from parquet_sink.targets.settings import Target
from parquet_sink.targets.store import FileStore
from parquet_sink.targets.table_map import MAP_KEY
from parquet_sink.targets.target_class import TYPE, TargetClass

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


_BUCKET_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_REGION_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")


def _wrong_bucket(value: Value) -> str | None:
    text = str(value)
    if text.lower().startswith(("s3:", "s3a:", "http:", "https:", "arn:")):
        return f"{quoted(text)} is an address; write the bucket's name alone."
    if _BUCKET_FORM.fullmatch(text) is None or ".." in text:
        return f"{quoted(text)} is not a name of a bucket; write 3 or more of letters, digits, dots and hyphens."
    return None


def _wrong_region(value: Value) -> str | None:
    if _REGION_FORM.fullmatch(str(value)) is None:
        return f"{quoted(str(value))} is not a region; write one such as eu-central-1."
    return None


def _wrong_url(value: Value) -> str | None:
    text, form = str(value), "write it as https://host:port."
    if reason := wrong_url(text, form, "credentials have keys of their own."):
        return reason
    url = urlsplit(text)
    if url.path.strip("/") or url.query or url.fragment:
        return f"{quoted(text)} has a path; {form} Bucket and prefix have keys of their own."
    return None


def _wrong_credential(value: Value) -> str | None:
    text = value.reveal() if isinstance(value, Secret) else str(value)
    if not text.isascii() or not text.isprintable() or " " in text:
        return "It holds characters that no credential of S3 has; write printable ASCII without blanks."
    return None


BUCKET_NAME: Final = Check("a bucket's name", _wrong_bucket)
REGION_NAME: Final = Check("letters, digits, hyphens", _wrong_region)
S3_URL: Final = Check("a URL without a path: https, or http to a loopback address", _wrong_url)
PREFIX_TEMPLATE: Final = Check("names between slashes, fields in braces", lambda value: prefixes.wrong(str(value)))
CREDENTIAL: Final = Check("printable ASCII without blanks", _wrong_credential)


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
        "Such as `lake/topic={topic}/date={yyyy}-{MM}-{dd}`; see [s3.md](../how-to/s3.md).",
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

TYPE_NAME: Final = "s3"
SCHEME: Final = "s3://"
_FORM: Final = "write s3://bucket/prefix"
_VARCHAR: Final = ems("data.fallback.varchar.length")
_SHARED: Final = names_of(S3Settings) | {_VARCHAR}
"""Of the push API's keys those that are of use without one, or may be."""
IDLE: Final = (PUSH_ENDPOINT, *(key.name for key in keys_of(PushSettings, TARGET) if key.name not in _SHARED))
"""Keys of a push API that a bucket has no use for."""


class S3(TargetClass):
    """Files go into a bucket. They are not compressed by default: what takes them by PutObject may expect it."""

    title = "a bucket of S3"
    keys = S3_KEYS
    hint = f"set {TYPE}={TYPE_NAME} to send files to a bucket"
    codec: Codec = "none"
    store_keys = names_of(BucketSettings) - {BUCKET}
    settings_class = S3Settings

    def check(self, values: Values, report: Report) -> None:
        check_keys(S3Settings, values, report)
        _connection(values, report)
        _table(values, report)
        idle = IDLE if ems("flattener.jsonblob.chunks") in values.given else (*IDLE, _VARCHAR)
        for name in idle:
            if name in values.given and values.knows(name):
                report.warn(name, f"It has no effect: files go to a bucket ({TYPE}={TYPE_NAME}).")

    def settings(self, values: Values, machine: Machine) -> S3Settings:
        return made(S3Settings, values, machine)

    def wrong(self, address: str) -> str | None:
        if not address.lower().startswith(SCHEME):
            return f"{quoted(address)} names no bucket; {_FORM}."
        if "@" in urlsplit(address).netloc:
            return "It holds a user or password; remove them, credentials have keys of their own."
        bucket, prefix = _split(address)
        if (reason := BUCKET_NAME.test(bucket)) is not None:
            return reason
        if not prefix.isprintable() or any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
            return f"The prefix of {quoted(address)} has an empty part, dots, or what cannot be printed; {_FORM}."
        return None

    def at(self, address: str, below: str = "") -> Mapping[str, str]:
        """Without a field in it a prefix is followed by `below`; without a prefix files of topics are apart."""
        bucket, prefix = _split(address)
        if below and not FIELD.search(prefix):
            prefix = f"{prefix}/{below}".strip("/")
        return {TYPE: TYPE_NAME, BUCKET: bucket, PREFIX: prefix or "{topic}"}

    def place(self, values: Values) -> str:
        return f"{SCHEME}{values.text(BUCKET)}/{fixed_part(values.text(PREFIX) or '').rpartition('/')[0]}"

    def kept_by(self, values: Values) -> str:
        return f"{BUCKET}={values.text(BUCKET)}"

    def store(self, address: str, values: Values, machine: Machine, key: str = "") -> BucketStore:
        bucket, prefix = _split(address)
        return BucketStore(made(BucketSettings, values, machine, bucket=bucket), prefix, key)

    def check_store(self, values: Values, report: Report) -> None:
        """Its address has the bucket's name."""
        check_keys(BucketSettings, values, report, "bucket")
        _connection(values, report)


def _split(address: str) -> tuple[str, str]:
    bucket, _, prefix = address[len(SCHEME) :].partition("/")
    return bucket, prefix.strip("/")


def _connection(values: Values, report: Report) -> None:
    if {ACCESS_KEY, SECRET_KEY} & values.given and PROFILE in values.given:
        report.problem(PROFILE, f"Both it and {ACCESS_KEY} are set; keep the profile, or the access key.")
    check_in_clear(values, ENDPOINT, report, "records")
    check_proxy(values, report)


def _table(values: Values, report: Report) -> None:
    template = values.text(PREFIX) or ""
    wanted = "table" in fields(template)
    if wanted and TABLE not in values.given:
        report.problem(TABLE, f"It is missing; {values.quoted(PREFIX)} has {{table}}, which it stands for.")
    for name in (TABLE, MAP_KEY):
        if not wanted and name in values.given:
            report.warn(name, f"It has no effect: {PREFIX} has no {{table}}.")
