"""What an archive has, and how it compares with the history, in words or as JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from parquet_sink.archive.archive import ArchivedFile
from parquet_sink.archive.comparison import Gap
from parquet_sink.archive.verify import Verified
from parquet_sink.config.report import printable
from parquet_sink.files.naming import NameParts, parts_of

MOST_TOLD: Final = 20
"""Of each kind, one by one; --json has all."""


@dataclass(frozen=True)
class Chosen:
    """None: whichever."""

    partition: int | None = None
    offset: int | None = None

    def has(self, parts: NameParts | None) -> bool:
        """Whether a file is meant. What has another name has neither."""
        if self == Chosen():
            return True
        if parts is None or self.partition not in (None, parts.partition):
            return False
        return self.offset is None or parts.first_offset <= self.offset <= parts.last_offset


def listing(
    connector: str, archive: str, files: Iterable[ArchivedFile], chosen: Chosen, *, as_json: bool
) -> Iterator[str]:
    """A line for each file, then the sum; as JSON a line for each file alone."""
    count = size_bytes = 0
    for one in files:
        parts = parts_of(one.where.rpartition("/")[2])
        if not chosen.has(parts):
            continue
        count, size_bytes = count + 1, size_bytes + one.size_bytes
        if as_json:
            about = {} if parts is None else asdict(parts)
            body = {"connector": connector, "path": one.where, **about, "size_bytes": one.size_bytes}
            yield json.dumps(body, ensure_ascii=False)
        else:
            yield printable(f"  {_file_text(one, parts)}")
    if not as_json:
        yield f"connector {connector}: {_files(count)}, {size_bytes:,} bytes in {archive}"


def _file_text(one: ArchivedFile, parts: NameParts | None) -> str:
    if parts is None:
        return f"{one.where}: {one.size_bytes:,} bytes"
    offsets = f"offsets {parts.first_offset} to {parts.last_offset}, {parts.records:,} records"
    return f"{parts.topic} {parts.partition}, {offsets}, {one.size_bytes:,} bytes: {one.where}"


def verified(connector: str, archive: str, found: Verified, *, as_json: bool) -> Iterator[str]:
    """What was found, with all that is wrong, the verdict last."""
    if as_json:
        yield json.dumps(_as_dict(connector, archive, found), ensure_ascii=False)
        return
    comparison = found.comparison
    yield from _told("missing", [_gap_text(one) for one in comparison.gaps])
    yield from _told("altered", [f"{one.where}: {one.how}" for one in found.altered])
    yield from _told("alien", [f"{one.where}: not in the history" for one in comparison.alien])
    yield from _aside(found)
    yield printable(f"connector {connector}: archive {archive}: {_verdict(found)}")


def _told(what: str, lines: Sequence[str]) -> Iterator[str]:
    yield from (printable(f"  {what}: {line}") for line in lines[:MOST_TOLD])
    if len(lines) > MOST_TOLD:
        yield f"  and {len(lines) - MOST_TOLD:,} more {what}; --json has them all"


def _gap_text(one: Gap) -> str:
    where = f"{one.topic} {one.partition}, offsets {one.first} to {one.last}"
    why = f": {'; '.join(one.causes)}" if one.causes else ""
    more = f" and {len(one.files) - 1:,} more" if len(one.files) > 1 else ""
    return f"{where}, {_files(len(one.files))}: {one.files[0]}{more}{why}"


def _aside(found: Verified) -> Iterator[str]:
    """What is neither right nor wrong."""
    one = found.comparison
    told = (
        (len(one.earlier), "of offsets before all that the history has: not compared with it"),
        (len(one.later), "of offsets behind all that the history has: accepted, and not noted yet"),
        (len(one.frames), "with rows of a DataFrame, which have no history"),
        (one.waiting, "that wait for the archive"),
        (one.earlier_uploads, "that were accepted before the archive began"),
    )
    yield from (f"  {_files(count)} {what}" for count, what in told if count)


def _verdict(found: Verified) -> str:
    one = found.comparison
    known = f"{_files(len(one.known))} of the history"
    read = f", {found.read_bytes:,} bytes read" if found.read_bytes else ""
    if found.complete:
        return f"complete: {known}{', unaltered' if read else ''}{read}"
    wrong = (
        (len(one.missing), "missing"),
        (len(found.altered), "altered"),
        (len(one.alien), "alien"),
    )
    return f"not as it should be: {', '.join(f'{_files(n)} {what}' for n, what in wrong if n)}, beside {known}{read}"


def _as_dict(connector: str, archive: str, found: Verified) -> dict[str, Any]:
    one = found.comparison
    return {
        "connector": connector,
        "archive": archive,
        "complete": found.complete,
        "files": len(one.known),
        "read_bytes": found.read_bytes,
        "gaps": [asdict(gap) for gap in one.gaps],
        "altered": [asdict(file) for file in found.altered],
        "alien": [file.where for file in one.alien],
        "earlier_than_history": len(one.earlier),
        "later_than_history": len(one.later),
        "of_dataframes": len(one.frames),
        "waiting": one.waiting,
        "accepted_before_archive": one.earlier_uploads,
    }


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"
