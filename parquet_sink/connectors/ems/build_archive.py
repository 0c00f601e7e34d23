"""From checked values to the settings of the archive."""

from parquet_sink.archive.keys import MAX_WAITING_BYTES, REQUIRED, URL
from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems.required import text
from parquet_sink.files import naming
from parquet_sink.targets.directory.address import folder_of


def archive_settings(values: Values, tmp_dir: str) -> ArchiveSettings | None:
    """None without an archive."""
    url, name = values.text(URL), text(values, "name")
    if url is None:
        return None
    return ArchiveSettings(
        folder=folder_of(url),
        connector=name,
        waiting=naming.waiting_folder(tmp_dir, name),
        required=values.flag(REQUIRED),
        max_waiting_bytes=values.number(MAX_WAITING_BYTES) or 0,
    )
