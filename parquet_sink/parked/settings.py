"""Keys and settings of where diverted records are kept. Sizes are bytes."""

from pathlib import PurePath
from typing import Final

from parquet_sink.config.declared import Bytes, LocalPath, declared, key
from parquet_sink.config.key import Origin, ems
from parquet_sink.files import naming

DIR: Final = ems("parked.dir")
MAX_BYTES: Final = ems("parked.max.bytes")


@declared(group="Parked records", origin=Origin.OWN)
class ParkedSettings:
    """base: where each connector has a folder; None: a folder below the connector's own."""

    base: LocalPath | None = key(
        DIR,
        "Folder for diverted records where no dead-letter topic is named, see [errors.md](../how-to/errors.md); each "
        "connector has its own folder below. On a cluster it must be one that all machines share.",
        default=None,
        default_text="`.parked` in the connector's folder below `connect.ems.tmp.dir`",
    )
    max_bytes: Bytes = key(
        MAX_BYTES,
        "The most that a connector's parked records may take on the disk, in bytes. What would not fit any more stops "
        "the connector before the record.",
        default=256 << 20,
        minimum=1_000_000,
    )

    def folder(self, tmp_dir: str, connector: str) -> str:
        """The connector's folder of parked records."""
        if self.base is None:
            return naming.parked_folder(tmp_dir, connector)
        return str(PurePath(self.base) / naming.component(connector))
