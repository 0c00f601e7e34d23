"""From checked values to the settings of the archive."""

from parquet_sink.archive.address import bucket_of, is_bucket
from parquet_sink.archive.keys import MAX_WAITING_BYTES, REQUIRED, URL
from parquet_sink.archive.settings import ArchiveSettings, BucketPlace, FolderPlace
from parquet_sink.config.declared import made
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems.required import text
from parquet_sink.connectors.worker import Worker
from parquet_sink.files import naming
from parquet_sink.targets.directory.address import folder_of
from parquet_sink.targets.s3.settings import BucketSettings


def archive_settings(values: Values, worker: Worker, tmp_dir: str) -> ArchiveSettings | None:
    """None without an archive."""
    url, name = values.text(URL), text(values, "name")
    if url is None:
        return None
    return ArchiveSettings(
        place=_place(url, values, worker),
        connector=name,
        waiting=naming.waiting_folder(tmp_dir, name),
        required=values.flag(REQUIRED),
        max_waiting_bytes=values.number(MAX_WAITING_BYTES) or 0,
    )


def _place(url: str, values: Values, worker: Worker) -> FolderPlace | BucketPlace:
    if not is_bucket(url):
        return FolderPlace(folder_of(url))
    bucket, prefix = bucket_of(url)
    return BucketPlace(made(BucketSettings, values, worker.machine, bucket=bucket), prefix)
