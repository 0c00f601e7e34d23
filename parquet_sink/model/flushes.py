"""Flushes that somebody asked for: which topic-partitions, where each stood then, and how far it got. Pure values."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from parquet_sink.model.partitions import PartitionKey


@dataclass(frozen=True)
class FlushRequest:
    """partitions: what is to be flushed; None for all that the connector has."""

    id: str
    partitions: tuple[PartitionKey, ...] | None = None


def requests_to_json(requests: Iterable[FlushRequest]) -> str:
    """What the field FLUSH holds."""
    return json.dumps(list(requests), default=vars)


def requests_from_json(text: str) -> tuple[FlushRequest, ...]:
    """The inverse of `requests_to_json`."""
    return tuple(
        FlushRequest(one["id"], None if one["partitions"] is None else tuple(map(_key, one["partitions"])))
        for one in json.loads(text)
    )


@dataclass(frozen=True)
class FlushBounds:
    """Offsets [start, until) of one topic-partition wait when the request is seen. reached: committed up to there.

    until: None while nobody knows where it ends, as it is unavailable. gone: it is not there, or not any more.
    """

    topic: str
    partition: int
    start: int
    until: int | None
    reached: int
    gone: bool = False

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.partition

    @property
    def open(self) -> bool:
        """Whether something of it has yet to be committed, or may have to."""
        return not self.gone and (self.until is None or self.reached < self.until)


@dataclass(frozen=True)
class FlushProgress:
    """How far a request got."""

    id: str
    partitions: tuple[FlushBounds, ...]

    @classmethod
    def seen(
        cls, request: FlushRequest, starts: Mapping[PartitionKey, int], unavailable: Collection[PartitionKey]
    ) -> "FlushProgress":
        """Of a request that the planner sees now. starts: the next offset to take, of each that is there."""
        keys = sorted({*starts, *unavailable}) if request.partitions is None else request.partitions
        return cls(
            request.id,
            tuple(
                FlushBounds(*key, starts.get(key, 0), None, starts.get(key, 0), gone=key not in {*starts, *unavailable})
                for key in keys
            ),
        )

    def noted(self, ends: Mapping[PartitionKey, int], starts: Mapping[PartitionKey, int]) -> "FlushProgress":
        """With ends of those whose end was not known, and with how far they are committed by now."""
        return replace(self, partitions=tuple(_noted(one, ends, starts) for one in self.partitions))

    def without(self, key: PartitionKey) -> "FlushProgress":
        """This topic-partition is not there any more; one that was done stays so."""
        return replace(
            self,
            partitions=tuple(
                replace(one, gone=True) if one.key == key and one.open else one for one in self.partitions
            ),
        )

    @property
    def open(self) -> bool:
        return any(one.open for one in self.partitions)


def _noted(one: FlushBounds, ends: Mapping[PartitionKey, int], starts: Mapping[PartitionKey, int]) -> FlushBounds:
    if not one.open or one.key not in starts:
        return one
    start, end = starts[one.key], ends.get(one.key)
    if start < one.reached or (one.until is not None and end is not None and end < one.until):
        return replace(one, gone=True)  # the topic is another one, or was cut back
    if one.until is None and end is not None:
        return replace(one, start=start, until=max(end, start), reached=start)
    return one if one.reached == start else replace(one, reached=start)


def progress_to_json(found: Iterable[FlushProgress]) -> str:
    """What the field FLUSHED holds."""
    return json.dumps(list(found), default=vars)


def progress_from_json(text: str) -> tuple[FlushProgress, ...]:
    """The inverse of `progress_to_json`."""
    return tuple(
        FlushProgress(one["id"], tuple(FlushBounds(**bounds) for bounds in one["partitions"]))
        for one in json.loads(text)
    )


def _key(found: Any) -> PartitionKey:
    return found[0], found[1]
