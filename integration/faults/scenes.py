"""Rows that are no HTTP attempt, by part."""

from collections.abc import Callable, Iterable
from typing import Final

from integration.faults.act import Act
from integration.faults.world import World

SCENES: Final[dict[str, Callable[[World], Iterable[Act]]]] = {}
