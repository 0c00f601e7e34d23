"""Arithmetic of spans [start, end) of offsets: sorted lists of spans that do not overlap."""

from collections.abc import Iterable, Sequence

Span = tuple[int, int]


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same offsets as few spans, in order; empty ones are left out."""
    found: list[Span] = []
    for start, end in sorted(one for one in spans if one[0] < one[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def common(one: Span, spans: Sequence[Span]) -> list[Span]:
    """What a span has of others."""
    cut = [(max(start, one[0]), min(end, one[1])) for start, end in spans]
    return [(start, end) for start, end in cut if start < end]


def without(spans: Sequence[Span], taken: Span) -> list[Span]:
    """The spans but what is taken."""
    found: list[Span] = []
    for start, end in spans:
        found += [one for one in ((start, min(end, taken[0])), (max(start, taken[1]), end)) if one[0] < one[1]]
    return found


def overlap(one: Span, other: Span) -> bool:
    """Whether two spans share an offset."""
    return one[0] < other[1] and other[0] < one[1]
