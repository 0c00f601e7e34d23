"""Outages: topic-partitions without a leader or whose broker does not answer, and no broker that answers at all."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from parquet_sink.errors import BrokersGone
from parquet_sink.kafka.cluster.cluster import KafkaCluster
from parquet_sink.kafka.cluster.native_admin import End
from parquet_sink.model.events import ConnectorRunning, ConnectorWaiting, PartitionAvailable, PartitionUnavailable
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import STARTED, EventLog

log = logging.getLogger(__name__)

Spawn = Callable[[Callable[[], dict[PartitionKey, End]]], "Future[dict[PartitionKey, End]]"]
"""Asks in the background."""

REPORT_S: Final = 30.0
ASK_S: Final = 5.0
"""How often unavailable ones are asked for."""
MOST_NAMED: Final = 10


class BrokerOutage:
    """Of the brokers of one connector. `now` gives epoch seconds. most_ms: how long it may last, -1 without end."""

    def __init__(self, name: str, state: SqliteStore, now: Callable[[], float], most_ms: int = -1) -> None:
        self._name, self._state, self._now, self._most_ms = name, state, now, most_ms
        self._since_s: float | None = None
        self._reported_s: float | None = None

    @property
    def lasts(self) -> bool:
        """Whether no broker answered lately."""
        return self._since_s is not None

    def report(self, why: object) -> None:
        """No broker answers, or none yet."""
        now = self._now()
        if self._since_s is None:
            self._since_s = now
        if self._reported_s is None or now - self._reported_s >= REPORT_S:
            self._reported_s = now
            self._state.append_events([ConnectorWaiting(self._name, now, str(why))])
            log.warning("connector %s: %s Nothing is lost; trying again.", self._name, why)

    def check(self, why: object) -> None:
        """Raises BrokersGone when it has lasted too long."""
        if self._since_s is not None and 0 <= self._most_ms <= 1_000 * (self._now() - self._since_s):
            raise BrokersGone(
                f"{why} That is so for {self._now() - self._since_s:.0f} s, longer than connect.ems.away.timeout.ms "
                f"allows ({self._most_ms} ms): see whether the brokers run and can be reached, then start the "
                "connector again."
            )

    def end(self) -> None:
        """A broker answered."""
        self._since_s = None
        if self._reported_s is not None:
            self._reported_s = None
            if self._state.get(STARTED):
                self._state.append_events([ConnectorRunning(self._name, self._now())])
            log.info("connector %s: Kafka answers again.", self._name)


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
                "connector %s: unavailable: %s. %s. The others go on; nothing is lost.",
                self._name, named(fresh), why(fresh[0]).rstrip("."),
            )  # fmt: skip

    def mark_available(self, keys: Iterable[PartitionKey]) -> None:
        """These answered."""
        found = sorted(self._keys.intersection(keys))
        self.forget(found)
        if found:
            now_s = self._now()
            self._events.append_events([PartitionAvailable(self._name, now_s, *key) for key in found])
            log.warning("connector %s: available again: %s", self._name, named(found))

    def describe(self) -> str:
        """Their names, for a message."""
        return named(sorted(self._keys))

    def forget(self, keys: Iterable[PartitionKey]) -> None:
        """These were deleted, and are not waited for."""
        self._keys.difference_update(keys)


class BackgroundProbe:
    """Asks for unavailable ones in the background, so that nothing waits for them."""

    def __init__(self, cluster: KafkaCluster, now: Callable[[], float], spawn: Spawn) -> None:
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
    """Where topic-partitions end. An unavailable one delays the others once; then a background probe asks for it.

    `highs`: the high watermarks of those that were fetched last. What lies beyond an end waits for an open transaction.
    committed: whether open transactions hide records. The second request of a fetch is about those alone that have
    something new, so an idle connector makes one.
    """

    def __init__(
        self, cluster: KafkaCluster, unavailable: UnavailablePartitions, probe: BackgroundProbe, *, committed: bool
    ) -> None:
        self._cluster, self._unavailable, self._probe = cluster, unavailable, probe
        self._committed = committed
        self.highs: dict[PartitionKey, int] = {}

    def fetch(self, keys: Sequence[PartitionKey], starts: Mapping[PartitionKey, int]) -> dict[PartitionKey, int]:
        """Return up to where each may be read, exclusive; unavailable ones are absent.

        starts: up to where each is accepted. Raises BrokerAway when none answers, KafkaFailed.
        """
        back = self._probe.end_offsets([key for key in keys if key in self._unavailable])
        asked = [key for key in keys if key not in self._unavailable] or list(keys)
        highs = self._cluster.high_watermarks(asked) if self._committed else self._cluster.end_offsets(asked)
        waiting = [key for key, high in highs.items() if self._committed and high > starts[key]]
        stable = self._cluster.end_offsets(waiting) if waiting else {}
        ends = {key: max(stable[key], starts[key]) if key in stable else highs[key] for key in highs}
        found = back | {key: end for key, end in ends.items() if key in stable or key not in waiting}
        self._unavailable.mark_unavailable((key for key in asked if key not in found), self._cluster.unavailable_reason)
        self._unavailable.mark_available(found)
        self.highs = {key: max(end, highs.get(key, end)) for key, end in found.items()}
        return found


def named(keys: Sequence[PartitionKey]) -> str:
    """Some of them by name, and how many more there are."""
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return ", ".join(f"topic {topic}, topic-partition {partition}" for topic, partition in keys[:MOST_NAMED]) + more
