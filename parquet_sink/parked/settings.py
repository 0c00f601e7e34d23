"""Where records that are passed over are kept. Sizes are bytes."""

from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from parquet_sink.files import naming

DEFAULT_MAX_BYTES: Final = 256 << 20


@dataclass(frozen=True)
class ParkedSettings:
    """base: `connect.ems.parked.dir`, where each connector has a folder; None: a folder below the connector's own."""

    base: str | None = None
    max_bytes: int = DEFAULT_MAX_BYTES

    def folder(self, tmp_dir: str, connector: str) -> str:
        """The connector's folder of parked records."""
        if self.base is None:
            return naming.parked_folder(tmp_dir, connector)
        return str(PurePath(self.base) / naming.component(connector))
