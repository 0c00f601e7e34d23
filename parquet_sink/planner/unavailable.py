"""Topic-partitions that are unavailable while others are not: no leader, or one on a broker that does not answer."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Final

from parquet_sink.kafka.cluster.watermarks import End
from parquet_sink.model.events import PartitionAvailable, PartitionUnavailable
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.planner.clients import Cluster, Spawn
from parquet_sink.state.store import EventLog

log = logging.getLogger(__name__)

ASK_S: Final = 5.0
"""How often unavailable ones are asked for."""
MOST_NAMED: Final = 10


class UnavailablePartitions(Collection[PartitionKey]):
    """Those of one connector that are unavailable. The log names them once, and again when they are back.

    now: epoch seconds.
    """

    def __init__(self, name: str, events: EventLog, now: Callable[[], float]) -> None:
        self._name, self._events, self._now = name, events, now
        self._keys: set[PartitionKey] = set()

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[PartitionKey]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def mark_unavailable(self, keys: Iterable[PartitionKey], why: Callable[[PartitionKey], str]) -> None:
        """These did not answer."""
        fresh = sorted(set(keys) - self._keys)
        self._keys.update(fresh)
        if fresh:
            now_s = self._now()
            self._events.append_events([PartitionUnavailable(self._name, now_s, *key, why(key)) for key in fresh])
            log.warning(
                "connector %s: away: %s. %s. The others go on; nothing is lost.",
                self._name, named(fresh), why(fresh[0]).rstrip("."),
            )  # fmt: skip

    def mark_available(self, keys: Iterable[PartitionKey]) -> None:
        """These answered."""
        found = sorted(self._keys.intersection(keys))
        self.forget(found)
        if found:
            now_s = self._now()
            self._events.append_events([PartitionAvailable(self._name, now_s, *key) for key in found])
            log.warning("connector %s: back: %s", self._name, named(found))

    def describe(self) -> str:
        """Their names, for a message."""
        return named(sorted(self._keys))

    def forget(self, keys: Iterable[PartitionKey]) -> None:
        """These were deleted, and are not waited for."""
        self._keys.difference_update(keys)


class BackgroundProbe:
    """Asks for unavailable ones in the background, so that nothing waits for them."""

    def __init__(self, cluster: Cluster, now: Callable[[], float], spawn: Spawn) -> None:
        self._cluster, self._now, self._spawn = cluster, now, spawn
        self._asked_at = -ASK_S
        self._answer: Future[dict[PartitionKey, End]] | None = None

    def end_offsets(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """The ends of those that are available again, by the answer to an earlier request."""
        if keys and self._answer is None and self._now() - self._asked_at >= ASK_S:
            self._asked_at = self._now()
            self._answer = self._spawn(lambda: self._cluster.ends_if_available(keys))
        if self._answer is None or not self._answer.done():
            return {}
        answer, self._answer = self._answer.result(), None
        return self._cluster.take_ends({key: answer[key] for key in keys if key in answer})


class EndOffsets:
    """Where topic-partitions end. An unavailable one delays the others once; then a background probe asks for it."""

    def __init__(self, cluster: Cluster, unavailable: UnavailablePartitions, probe: BackgroundProbe) -> None:
        self._cluster, self._unavailable, self._probe = cluster, unavailable, probe

    def fetch(self, keys: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """The end of each, exclusive; absent: unavailable ones. Raises BrokerAway when none answers, KafkaFailed."""
        found = self._probe.end_offsets([key for key in keys if key in self._unavailable])
        asked = [key for key in keys if key not in self._unavailable] or list(keys)
        found |= self._cluster.end_offsets(asked)
        self._unavailable.mark_unavailable((key for key in asked if key not in found), self._cluster.unavailable_reason)
        self._unavailable.mark_available(found)
        return found


def named(keys: Sequence[PartitionKey]) -> str:
    """Some of them by name, and how many more there are."""
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return ", ".join(f"topic {topic}, topic-partition {partition}" for topic, partition in keys[:MOST_NAMED]) + more
