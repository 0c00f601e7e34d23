"""Records that are numbers, and what becomes of them."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from integration.harness import Sink

PATIENCE_S: Final = 60.0


def numbered(count: int, first: int = 0) -> list[tuple[None, bytes]]:
    """Records {"n": first}, {"n": first + 1} and so on, without keys."""
    return [(None, json.dumps({"n": n}).encode()) for n in range(first, first + count)]


def numbers(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """The numbers that rows made of `numbered` hold."""
    return [row["n"] for row in rows]


def offsets(sink: Sink) -> list[int]:
    """Offsets of all rows at the target."""
    return [row["kafkaOffset"] for row in sink.rows()]


def forgotten(sink: Sink, topic: str) -> None:
    """Waits until Kafka has forgotten the group's offset, which it does some time after the topic was deleted."""
    deadline = time.monotonic() + PATIENCE_S
    while sink.offsets(topic) != [None]:
        assert time.monotonic() < deadline, "Kafka keeps the offset of a topic that was deleted"
        time.sleep(0.1)
