"""Which ranges are under way: put down beside the group's offsets when taken, committed when accepted."""

from collections.abc import Mapping

from parquet_sink.files.rotation import Reason
from parquet_sink.kafka.admission import Candidate, Range, together
from parquet_sink.kafka.guard import TopicGuard
from parquet_sink.kafka.offsets import Key, Plan
from parquet_sink.kafka.standing import Context
from parquet_sink.kafka.starts import topics_of


class RangePlanner:
    """Takes ranges, so that after a crash the same ones come again as the same files.

    `planned`: the ranges that an earlier run was flushing when it ended, by where they begin.
    """

    def __init__(self, context: Context, guard: TopicGuard) -> None:
        self._context, self._guard = context, guard
        self.planned: dict[Key, Plan] = {}
        self._taken: dict[Key, int] = {}
        self._batches = 0
        self._slots = int(context.state.said("slots") or 1)
        self._void: set[Key] = set()

    def accept(self, ends: Mapping[Key, int]) -> dict[Key, int]:
        """How far ranges of the last micro-batch count as accepted: not those of topics that went away since.

        Spark goes on naming that micro-batch until the next one, when a topic of that name may be there again.
        """
        starts = self._context.standing.starts
        accepted = {key: end for key, end in ends.items() if key in starts and key not in self._void}
        starts.update(accepted)
        for key in accepted:
            self._context.epochs.accept(key)
        return accepted

    def commit(self, start: Mapping[Key, int]) -> None:
        """Everything below `start` was accepted. Raises OffsetsLost, AnotherInstance, KafkaFailed."""
        group = self._context.group
        self._guard.confirm(topics_of(group.ahead(start)))
        group.commit(start)
        self._context.state.settle()

    def forget(self, key: Key) -> None:
        """This topic-partition is not there any more."""
        self.planned.pop(key, None)
        self._taken.pop(key, None)
        self._void.add(key)
        self._context.epochs.forget(key)
        self._context.group.forget(key)
        self._context.state.forget(*key)

    def last_taken(self, key: Key) -> int:
        """The number of the micro-batch that took a range of this topic-partition last; 0: none yet."""
        return self._taken.get(key, 0)

    def again(self, key: Key, start: int, end: int) -> Range | None:
        """The range that an earlier run was flushing from here when it ended, so that its files come out the same."""
        plan = self.planned.get(key)
        if plan is None or not start < plan.end <= end:
            return None
        return Range(start, plan.end, Reason(plan.reason))

    def take(self, found: list[tuple[int, Candidate]]) -> list[Candidate]:
        """As much as fits into one micro-batch, put down beside the offsets before it begins."""
        group, starts = self._context.group, self._context.standing.starts
        candidates = together(found, self._context.settings.flush, self._slots)
        for topic, partition, _ in candidates:
            self._context.epochs.take((topic, partition))
        self._batches += bool(candidates)
        self._void = set() if candidates else self._void
        self._taken.update({(topic, partition): self._batches for topic, partition, _ in candidates})
        plans = {(topic, partition): Plan(span.end, str(span.reason)) for topic, partition, span in candidates}
        self._guard.confirm(topics_of(plans))
        group.renew({key: starts[key] for key in plans}, plans)
        self.planned = {key: plan for key, plan in self.planned.items() if key not in plans}
        return candidates
