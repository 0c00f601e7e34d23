"""Keys and settings of an archive."""

import posixpath
from dataclasses import dataclass
from typing import Final

from parquet_sink.archive import address
from parquet_sink.config.declared import Bytes, declared, filled_by, key, made
from parquet_sink.config.key import Check, Origin, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.values import Values
from parquet_sink.targets.directory.address import folder_of
from parquet_sink.targets.s3.settings import BucketSettings

URL: Final = ems("archive.url")
REQUIRED: Final = ems("archive.required")
MAX_WAITING_BYTES: Final = ems("archive.max.waiting.bytes")


@dataclass(frozen=True)
class FolderPlace:
    """folder: absolute, and there already."""

    folder: str

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return f"directory:{self.folder}"


@dataclass(frozen=True)
class BucketPlace:
    """prefix: of all that is kept in the bucket, without slashes around it; may be empty."""

    bucket: BucketSettings
    prefix: str = ""

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return f"s3://{self.bucket.bucket}/{self.prefix}".rstrip("/")


def _place(values: Values, machine: Machine) -> FolderPlace | BucketPlace:
    url = values.text(URL) or ""
    if not address.is_bucket(url):
        return FolderPlace(folder_of(url))
    bucket, prefix = address.bucket_of(url)
    return BucketPlace(made(BucketSettings, values, machine, bucket=bucket), prefix)


@declared(group="Archive", origin=Origin.OWN, optional=True)
class ArchiveSettings:
    """connector: whose files are kept, in a folder of its own within the place.

    required: whether a file's offsets are committed only once it is archived; else it is archived behind that.
    waiting: the local folder in which files wait until then; max_waiting_bytes: the most that may wait there.
    """

    place: FolderPlace | BucketPlace = key(
        URL,
        "Keep each accepted file there, too, see [archive.md](archive.md): `directory:/path/to/folder`, a folder that "
        "is there, or `s3://bucket/prefix`, reached and signed as the `connect.ems.s3.*` keys say; another place than "
        "the target's.",
        check=Check("`s3://bucket/prefix`, or `directory:` and a path", lambda value: address.wrong(str(value))),
        default_text="no archive",
        type_=str,
        computed=_place,
    )
    connector: str = filled_by("name")
    waiting: str
    required: bool = key(
        REQUIRED,
        "Commit the offsets of a file only once it is in the archive; an archive that does not take it is treated as a "
        "target that does not. With `false` a file is archived behind that: trouble is told, and holds nothing up.",
        default=True,
        needs=URL,
    )
    max_waiting_bytes: Bytes = key(
        MAX_WAITING_BYTES,
        "With `connect.ems.archive.required=false`: the most that may wait for the archive below "
        "`connect.ems.tmp.dir`, in bytes. Files beyond are not archived, and that is told.",
        default=1_000_000_000,
        minimum=1_000_000,
        needs=URL,
    )

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return self.place.address


def why_same(archive: str, target: str) -> str | None:
    """Why a folder cannot be the archive of a target that is a folder, too; None when they are apart.

    Of buckets what stands before all names: `/` and a prefix.
    """
    if archive == target:
        return f"{archive} is the target's own place, so nothing would be kept a second time; name another one."
    if posixpath.commonpath([archive, target]) in (archive, target):
        return f"{archive} and the target's {target} lie one within the other; name a place apart from it."
    return None
