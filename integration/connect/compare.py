"""Two recordings, field by field."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from integration.connect.recording import Entry

ABSENT: Final = "<absent>"


@dataclass(frozen=True)
class Difference:
    """A field of an answer that differs. path: `status`, `headers.NAME`, or `body` with names and places behind it."""

    title: str
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.title}: {self.path}: theirs {self.theirs!r:.300}, ours {self.ours!r:.300}"


@dataclass(frozen=True)
class Known:
    """Differences that are meant, by patterns of titles and paths, and why."""

    titles: str
    paths: str
    reason: str

    def covers(self, one: Difference) -> bool:
        return fnmatchcase(one.title, self.titles) and fnmatchcase(one.path, self.paths)


def differences(theirs: Sequence[Entry], ours: Sequence[Entry]) -> list[Difference]:
    """All of them, in the order of requests."""
    mine = {one["title"]: one for one in ours}
    found: list[Difference] = []
    for one in theirs:
        other = mine.pop(one["title"], None)
        if other is None:
            found.append(Difference(one["title"], "request", one["request"], ABSENT))
            continue
        for part in ("status", "headers", "body"):
            found += (Difference(one["title"], *rest) for rest in _unlike(part, one[part], other[part]))
    return found + [Difference(title, "request", ABSENT, one["request"]) for title, one in mine.items()]


def _unlike(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in [*theirs, *(name for name in ours if name not in theirs)]:
            yield from _unlike(f"{path}.{name}", theirs.get(name, ABSENT), ours.get(name, ABSENT))
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from _unlike(f"{path}.{place}", one, other)
    elif type(theirs) is not type(ours) or theirs != ours:
        yield path, theirs, ours


def unknown(found: Sequence[Difference], known: Sequence[Known]) -> list[Difference]:
    """Differences that no reason is given for."""
    return [one for one in found if not any(reason.covers(one) for reason in known)]


def unused(found: Sequence[Difference], known: Sequence[Known]) -> list[Known]:
    """Reasons for which there is no difference any more."""
    return [reason for reason in known if not any(reason.covers(one) for one in found)]
