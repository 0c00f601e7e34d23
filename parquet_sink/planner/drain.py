"""A drain: what is in Kafka when it begins is delivered, and nothing that comes later."""

from collections.abc import Iterable, Mapping

from parquet_sink.model.partitions import PartitionKey


class Drain:
    """Up to where each topic-partition is read. active: whether a drain was asked for."""

    def __init__(self) -> None:
        self.active = False
        self._ends: dict[PartitionKey, int | None] | None = None

    @property
    def begun(self) -> bool:
        """Whether ends were noted before."""
        return self._ends is not None

    def note(self, ends: Mapping[PartitionKey, int], known: Iterable[PartitionKey]) -> None:
        """Notes where each topic-partition ended when it answered for the first time.

        known: those there are when the drain begins, unavailable ones too. Others, which come later, are not read.
        """
        if self._ends is None:
            self._ends = dict.fromkeys(known)
        self._ends |= {key: end for key, end in ends.items() if key in self._ends and self._ends[key] is None}

    def limit(self, key: PartitionKey, start: int, end: int) -> int:
        """The end of what may be read of a topic-partition that stands at `start` and ends at `end`."""
        if self._ends is None:
            return end
        noted = self._ends.get(key)
        return min(end, start if noted is None else noted)
