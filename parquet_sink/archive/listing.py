"""Which files of an archive are meant, and each as JSON has it. For the command and for the REST API."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from parquet_sink.archive.archive import Archive, ArchivedFile
from parquet_sink.archive.verify import files_of
from parquet_sink.files.naming import NameParts, parts_of


@dataclass(frozen=True)
class ArchiveQuery:
    """Files to which all that is given applies. after: those behind this place, in the order of places."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    after: str | None = None


def chosen(archive: Archive, query: ArchiveQuery) -> Iterator[tuple[ArchivedFile, NameParts | None]]:
    """Files in the order of their places, with what their names say, None for another name. Raises ArchiveUnusable."""
    for one in files_of(archive, query.topic):
        parts = parts_of(one.where.rpartition("/")[2])
        if (query.after is None or one.where > query.after) and _meant(parts, query):
            yield one, parts


def _meant(parts: NameParts | None, query: ArchiveQuery) -> bool:
    """Whether a file is of this topic-partition and has this offset, if given. One of another name has neither."""
    if parts is None:
        return query.partition is None and query.offset is None
    return query.partition in (None, parts.partition) and (
        query.offset is None or parts.first_offset <= query.offset <= parts.last_offset
    )


def file_fields(one: ArchivedFile, parts: NameParts | None) -> dict[str, Any]:
    """A file as JSON has it."""
    return {"path": one.where, **({} if parts is None else asdict(parts)), "size_bytes": one.size_bytes}


def file_of(found: Mapping[str, Any]) -> tuple[ArchivedFile, NameParts | None]:
    """The inverse of `file_fields`. Raises KeyError or TypeError for anything else."""
    file = ArchivedFile(found["path"], found["size_bytes"])
    return file, NameParts(**{name: found[name] for name in found if name != "path"}) if "topic" in found else None
