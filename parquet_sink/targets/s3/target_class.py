"""S3 as a class of targets and of file stores: where a bucket is, who signs, that its prefix can be filled."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from parquet_sink.config.declared import check as check_keys
from parquet_sink.config.declared import keys_of, made, names_of
from parquet_sink.config.key import ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.files.settings import Codec
from parquet_sink.net.settings import ENDPOINT, check_in_clear, check_proxy
from parquet_sink.targets.push.settings import TABLE, TARGET, PushSettings
from parquet_sink.targets.s3 import settings as s3
from parquet_sink.targets.s3.prefix import FIELD, fields, fixed_part
from parquet_sink.targets.s3.settings import BucketSettings, BucketStore, S3Settings
from parquet_sink.targets.s3.value_checks import BUCKET_NAME
from parquet_sink.targets.table_map import MAP_KEY
from parquet_sink.targets.target_class import TYPE, TargetClass

TYPE_NAME: Final = "s3"
SCHEME: Final = "s3://"
_FORM: Final = "write s3://bucket/prefix"
_VARCHAR: Final = ems("data.fallback.varchar.length")
_SHARED: Final = names_of(S3Settings) | {_VARCHAR}
"""Of the push API's keys those that are of use without one, or may be."""
IDLE: Final = (ENDPOINT, *(key.name for key in keys_of(PushSettings, TARGET) if key.name not in _SHARED))
"""Keys of a push API that a bucket has no use for."""


class S3(TargetClass):
    """Files go into a bucket. They are not compressed by default: what takes them by PutObject may expect it."""

    title = "a bucket of S3"
    keys = s3.S3_KEYS
    hint = f"set {TYPE}={TYPE_NAME} to send files to a bucket"
    codec: Codec = "none"
    store_keys = names_of(BucketSettings) - {s3.BUCKET}
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
        return {TYPE: TYPE_NAME, s3.BUCKET: bucket, s3.PREFIX: prefix or "{topic}"}

    def place(self, values: Values) -> str:
        return f"{SCHEME}{values.text(s3.BUCKET)}/{fixed_part(values.text(s3.PREFIX) or '').rpartition('/')[0]}"

    def kept_by(self, values: Values) -> str:
        return f"{s3.BUCKET}={values.text(s3.BUCKET)}"

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
    if {s3.ACCESS_KEY, s3.SECRET_KEY} & values.given and s3.PROFILE in values.given:
        report.problem(s3.PROFILE, f"Both it and {s3.ACCESS_KEY} are set; keep the profile, or the access key.")
    check_in_clear(values, s3.ENDPOINT, report, "records")
    check_proxy(values, report)


def _table(values: Values, report: Report) -> None:
    template = values.text(s3.PREFIX) or ""
    wanted = "table" in fields(template)
    if wanted and TABLE not in values.given:
        report.problem(TABLE, f"It is missing; {values.quoted(s3.PREFIX)} has {{table}}, which it stands for.")
    for name in (TABLE, MAP_KEY):
        if not wanted and name in values.given:
            report.warn(name, f"It has no effect: {s3.PREFIX} has no {{table}}.")
