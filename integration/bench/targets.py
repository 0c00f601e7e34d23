"""What the benchmark's files may go to in place of the push API: a folder, or a bucket (`integration.s3.site`)."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from integration.s3.site import S3Site
from parquet_sink.addons.devkit.target.process import TargetProcess

TARGETS = ("push", "directory", "s3")


class FolderSite:
    """A folder in the place of `TargetProcess`, and its own read-out."""

    pid = None

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="parquet-sink-folder-")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._folder.cleanup()

    @property
    def client(self) -> Self:
        """Itself."""
        return self

    @property
    def keys(self) -> dict[str, str]:
        """A folder needs no key."""
        return {"connect.ems.authorization.key": ""}

    def endpoint(self) -> str:
        """The folder's address."""
        return f"directory:{self._folder.name}"

    def close(self) -> None:
        """Nothing is open."""

    def files(self, table: str) -> list[dict[str, Any]]:
        """Of one table, by the time at which they got their names."""
        found = [
            {"name": one.name, "accepted_at_ms": one.stat().st_ctime_ns // 1_000_000}
            for one in os.scandir(Path(self._folder.name) / table)
            if one.name.endswith(".parquet")
        ]
        return sorted(found, key=lambda file: file["accepted_at_ms"])

    def statistics(self) -> Mapping[str, int]:
        """Records in all files, by their names."""
        names = (path.stem for path in Path(self._folder.name).glob("*/*_rows-*.parquet"))
        return {"rows": sum(int(name.rpartition("_rows-")[2]) for name in names)}


BenchTarget = TargetProcess | FolderSite | S3Site


def bench_target(name: str) -> BenchTarget:
    """The one of a name of TARGETS, not started yet."""
    if name == "push":
        return TargetProcess(discard=True)
    return FolderSite() if name == "directory" else S3Site()
