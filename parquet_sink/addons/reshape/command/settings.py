"""The settings of a reshape: those of the connector file, with another target."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from parquet_sink.connectors.check import check_files
from parquet_sink.connectors.ems.raw_checks import MODE
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.s3.prefix import FIELD, wrong
from parquet_sink.targets.s3.settings import BUCKET, PREFIX, BucketSettings, S3Settings

_NO_ARCHIVE: Final = {"connect.ems.archive.url": ""}
_RAW: Final = "It is raw, and so are the files already; give the connector file of a shaped one."


def for_folder(connector: str, worker: str | None, folder: str) -> SinkSettings:
    """With a folder as its endpoint a connector needs no credential. Raises InvalidConfiguration."""
    settings = _load(connector, worker, {"connect.ems.endpoint": f"directory:{folder}"})
    return replace(settings, target=DirectorySettings(folder, settings.target.target_table or settings.name))


def for_bucket(connector: str, worker: str | None, bucket: str, prefix: str) -> SinkSettings:
    """The bucket is reached as the connector file's `connect.ems.s3.*` say. Raises InvalidConfiguration.

    prefix: a template; without a field each table has a folder below it.
    """
    reason = wrong(prefix)
    if reason is not None:
        raise InvalidConfiguration([f"Invalid [--out]. {reason}"])
    template = prefix if FIELD.search(prefix) else f"{prefix.strip('/')}/{{table}}"
    settings = _load(connector, worker, _to(bucket))
    table = settings.target.target_table or settings.name
    return replace(settings, target=S3Settings(_of(settings), template.strip("/"), table))


def access(connector: str, worker: str | None, bucket: str) -> BucketSettings:
    """How a bucket that has raw files is reached. Raises InvalidConfiguration."""
    return _of(_load(connector, worker, _to(bucket)))


def _to(bucket: str) -> dict[str, str]:
    return {"connect.ems.target.type": "s3", BUCKET: bucket, PREFIX: ""}


def _of(settings: SinkSettings) -> BucketSettings:
    if not isinstance(settings.target, S3Settings):
        reason = "The connector's class has a target of its own; give a connector file of parquet_sink.EmsSink for S3."
        raise InvalidConfiguration([f"Invalid [connector.class]. {reason}"])
    return settings.target.bucket


def _load(connector: str, worker: str | None, overrides: Mapping[str, str]) -> SinkSettings:
    checked = check_files([connector], worker, overrides={**_NO_ARCHIVE, **overrides})
    (settings,) = checked.require()
    if settings.shape.raw:
        raise InvalidConfiguration([f"Invalid [{MODE}]. {_RAW} (in {connector})"])
    return settings
