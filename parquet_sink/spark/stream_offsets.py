"""What Spark keeps as an offset of the source: the number of a micro-batch, and the ranges that it reads.

Spark only asks whether two offsets are equal. Over a kept checkpoint it never asks for an initial one, and may ask for
the partitions of a micro-batch that an earlier run planned before it asks for anything else. So they need not say where
topic-partitions stand, which Spark's checkpoint cannot know: the group's offsets say that, and they may have been set
back, or belong to a topic made anew, since an offset was kept. The number makes each micro-batch another one, also when
a range comes again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from parquet_sink.files.rotation import Reason
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.planner.admission import Candidate, Range

NUMBER: Final = "batch"
RANGES: Final = "ranges"
WARM_UP: Final = "warm-up"
Offset = dict[str, Any]
"""{"batch": number, "ranges": {topic: {topic-partition: [start, end, reason]}}}"""


def first() -> Offset:
    """Before the first micro-batch."""
    return {NUMBER: 0, RANGES: {}}


def warm_up(start: Mapping[str, Any]) -> Offset:
    """The micro-batch after `start`, that only loads and compiles everything."""
    return {NUMBER: _number(start) + 1, RANGES: {}, WARM_UP: True}


def is_warm_up(offset: Mapping[str, Any]) -> bool:
    """Whether the micro-batch that ends at this offset is one of `warm_up`."""
    return offset.get(WARM_UP) is True


def is_first(offset: Mapping[str, Any]) -> bool:
    """Whether no micro-batch came before this offset."""
    return _number(offset) == 0


def after(start: Mapping[str, Any], due: Sequence[PlannedRange]) -> Offset:
    """The micro-batch after `start`, of the ranges that are due."""
    ranges: dict[str, dict[str, list[Any]]] = {}
    for one in due:
        ranges.setdefault(one.topic, {})[str(one.partition)] = [one.start, one.end, one.reason]
    return {NUMBER: _number(start) + 1, RANGES: ranges}


def ranges(offset: Mapping[str, Any]) -> list[Candidate]:
    """The ranges that the micro-batch which ends at this offset reads; none for offsets of earlier versions."""
    if _number(offset) == 0:
        return []
    return [
        (topic, int(partition), Range(start, end, Reason(reason)))
        for topic, partitions in offset[RANGES].items()
        for partition, (start, end, reason) in partitions.items()
    ]


def _number(offset: Mapping[str, Any]) -> int:
    """0 also for offsets of earlier versions, whose keys are topics."""
    found = offset.get(NUMBER)
    return found if isinstance(found, int) else 0
