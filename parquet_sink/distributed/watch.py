"""What is odd about a group, in words that name the cure: two workers of one name, its topics changed by others."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from parquet_sink.distributed.assignment import MemberInfo
from parquet_sink.errors import KafkaFailed

LOOK_S: Final = 10.0
"""How often to look."""
FORGOTTEN_S: Final = 600.0
"""How long it is told that Kafka Connect wrote the config topic, after it did for the last time."""
_TWICE: Final = (
    "{} workers of the group have the address {}; one of them is given connectors, and requests for the others reach "
    "it. Give each its own rest.advertised.host.name and rest.advertised.port, or end the others."
)
_CONNECT: Final = (
    "Workers of Kafka Connect write the config topic, too, under another group.id: both run the same connectors. End "
    "them, or give this group topics of its own."
)
_GREW: Final = (
    "Topic {} has {} topic-partitions and had {} when this worker started, so what is written of a key is in another "
    "one from now on. Stop all workers in order, delete the topic, and start them: they create it again."
)
log = logging.getLogger(__name__)


class Watch:
    """Of one worker. `look` is called again and again by one thread; `warnings` may be read by any.

    members: who is in the group. counts: topic-partitions by topic, of those that the workers share. foreign: the last
    offset at which the config topic has what only Kafka Connect writes. session_s: how long a lost worker stays listed.
    """

    def __init__(
        self,
        members: Callable[[], Sequence[MemberInfo]],
        counts: Callable[[], Mapping[str, int]],
        foreign: Callable[[], int],
        session_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members, self._counts, self._foreign = members, counts, foreign
        self._session_s, self._clock_s = session_s, clock_s
        self._listed: dict[str, float] = {}
        self._first: dict[str, int] = {}
        self._known, self._foreign_s = foreign(), -FORGOTTEN_S
        self.warnings: tuple[str, ...] = ()

    def look(self) -> None:
        """Where brokers do not answer things are as they were."""
        now_s = self._clock_s()
        try:
            found = (*self._twice(now_s), *self._grown(), *self._written(now_s))
        except KafkaFailed as error:
            log.debug("the group cannot be looked at: %s", error)
            return
        for text in found:
            if text not in self.warnings:
                log.warning("%s", text)
        self.warnings = found

    def _twice(self, now_s: float) -> list[str]:
        """A worker that was lost is listed beside its next stay, for no longer than its session."""
        members = self._members()
        self._listed = {one.member_id: self._listed.get(one.member_id, now_s) for one in members}
        since_s = now_s - self._session_s - LOOK_S
        lasting = Counter(one.worker_id for one in members if self._listed[one.member_id] < since_s)
        return [_TWICE.format(count, worker_id) for worker_id, count in sorted(lasting.items()) if count > 1]

    def _grown(self) -> list[str]:
        counts = self._counts()
        self._first = {**counts, **self._first}
        return [
            _GREW.format(topic, count, first)
            for topic, count in sorted(counts.items())
            if (first := self._first[topic]) != count
        ]

    def _written(self, now_s: float) -> list[str]:
        if (last := self._foreign()) > self._known:
            self._known, self._foreign_s = last, now_s
        return [_CONNECT] if now_s - self._foreign_s < FORGOTTEN_S else []
