"""Which raw files there are, and what they are together: ranges of topic-partitions, and gaps in them. Pure."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

Span = tuple[int, int]
"""First and last offset, both included."""


@dataclass(frozen=True)
class RawFile:
    """A file of records as they came, all of one topic-partition. path: local; rows: records, some perhaps twice."""

    path: str
    topic: str
    partition: int
    first: int
    last: int
    rows: int


@dataclass(frozen=True)
class RawRange:
    """All files of one topic-partition. files: by their first offsets; those of a group share offsets or may do so."""

    topic: str
    partition: int
    groups: tuple[tuple[RawFile, ...], ...]

    @property
    def first(self) -> int:
        return self.groups[0][0].first

    @property
    def last(self) -> int:
        return max(file.last for file in self.groups[-1])

    @property
    def rows(self) -> int:
        """Of all files, resent ones included."""
        return sum(file.rows for group in self.groups for file in group)

    @property
    def covered(self) -> tuple[Span, ...]:
        """What the files span, in order; between two spans there is no file."""
        spans: list[Span] = []
        for group in self.groups:
            first, last = group[0].first, max(file.last for file in group)
            if spans and spans[-1][1] + 1 == first:
                spans[-1] = (spans[-1][0], last)
            else:
                spans.append((first, last))
        return tuple(spans)

    @property
    def gaps(self) -> tuple[Span, ...]:
        """Offsets that are in no file, between the first and the last that are."""
        spans = self.covered
        return tuple((one[1] + 1, other[0] - 1) for one, other in pairwise(spans))

    @property
    def digest(self) -> str:
        """Stands for what the files span, however they are cut, and however often they are there."""
        return hashlib.sha256(repr(self.covered).encode()).hexdigest()[:16]


def ranges_of(files: Iterable[RawFile]) -> tuple[RawRange, ...]:
    """By topic and topic-partition."""
    ordered = sorted(files, key=lambda file: (file.topic, file.partition, file.first, file.last, file.path))
    return tuple(
        RawRange(*key, _groups(list(members)))
        for key, members in groupby(ordered, key=lambda file: (file.topic, file.partition))
    )


def _groups(files: Sequence[RawFile]) -> tuple[tuple[RawFile, ...], ...]:
    groups: list[list[RawFile]] = []
    last = -1
    for file in files:
        if groups and file.first <= last:
            groups[-1].append(file)
        else:
            groups.append([file])
        last = max(last, file.last)
    return tuple(map(tuple, groups))
