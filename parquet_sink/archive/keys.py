"""Keys of the archive."""

from typing import Final

from parquet_sink.archive import address
from parquet_sink.config.key import Check, Key, Origin, Type, ems

ARCHIVE: Final = "Archive"
URL: Final = ems("archive.url")
REQUIRED: Final = ems("archive.required")
MAX_WAITING_BYTES: Final = ems("archive.max.waiting.bytes")


ADDRESS: Final = Check("`s3://bucket/prefix`, or `directory:` and a path", lambda value: address.wrong(str(value)))

ARCHIVE_KEYS: Final = (
    Key(
        URL,
        ARCHIVE,
        Type.STRING,
        "Keep each accepted file there, too, see [archive.md](archive.md): `directory:/path/to/folder`, a folder that "
        "is there, or `s3://bucket/prefix`, reached and signed as the `connect.ems.s3.*` keys say; another place than "
        "the target's.",
        check=ADDRESS,
        default_text="no archive",
        origin=Origin.OWN,
    ),
    Key(
        REQUIRED,
        ARCHIVE,
        Type.BOOLEAN,
        "Commit the offsets of a file only once it is in the archive; an archive that does not take it is treated as a "
        "target that does not. With `false` a file is archived behind that: trouble is told, and holds nothing up.",
        default=True,
        origin=Origin.OWN,
        needs=URL,
    ),
    Key(
        MAX_WAITING_BYTES,
        ARCHIVE,
        Type.LONG,
        "With `connect.ems.archive.required=false`: the most that may wait for the archive below "
        "`connect.ems.tmp.dir`, in bytes. Files beyond are not archived, and that is told.",
        default=1_000_000_000,
        minimum=1_000_000,
        origin=Origin.OWN,
        needs=URL,
    ),
)
