"""Rows that are no HTTP attempt, by part."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from integration.faults import brokers, clocks, disk, instances, registry, topics
from integration.faults.act import Act
from integration.faults.world import World

SCENES: Final[Mapping[str, Callable[[World], Sequence[Act]]]] = {
    "disk": disk.acts,
    "broker": brokers.acts,
    "topic": topics.acts,
    "instance": instances.acts,
    "clock": clocks.acts,
    "registry": registry.acts,
}
