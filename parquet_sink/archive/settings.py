"""What an archive is set up with."""

import posixpath
from dataclasses import dataclass

from parquet_sink.targets.s3.settings import BucketSettings


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


@dataclass(frozen=True)
class ArchiveSettings:
    """connector: whose files are kept, in a folder of its own within the place.

    required: whether a file's offsets are committed only once it is archived; else it is archived behind that.
    waiting: the local folder in which files wait until then; max_waiting_bytes: the most that may wait there.
    """

    place: FolderPlace | BucketPlace
    connector: str
    waiting: str
    required: bool = True
    max_waiting_bytes: int = 0

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
