"""Keys of parked records."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type, ems
from parquet_sink.parked.settings import DEFAULT_MAX_BYTES

PARKED: Final = "Parked records"
DIR: Final = ems("parked.dir")
MAX_BYTES: Final = ems("parked.max.bytes")

PARKED_KEYS: Final = (
    Key(
        DIR,
        PARKED,
        Type.STRING,
        "Folder for records that are passed over where no dead-letter topic is named, see [errors.md](errors.md); each "
        "connector has its own folder below. On a cluster it must be one that all machines share.",
        default_text="`.parked` in the connector's folder below `connect.ems.tmp.dir`",
        origin=Origin.OWN,
    ),
    Key(
        MAX_BYTES,
        PARKED,
        Type.LONG,
        "The most that a connector's parked records may take on the disk, in bytes. What would not fit any more stops "
        "the connector before the record.",
        default=DEFAULT_MAX_BYTES,
        minimum=1_000_000,
        origin=Origin.OWN,
    ),
)
