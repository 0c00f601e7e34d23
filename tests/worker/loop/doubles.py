"""What stands in for Spark's queries and the consumer group."""

from typing import Any

from parquet_sink.kafka.group.committed import Committed, RangePlan, commit_metadata
from parquet_sink.model.instance import Instance


class Query:
    """A streaming query that ends when the test says so."""

    def __init__(self) -> None:
        self.isActive = True
        self.error: Exception | None = None
        self.stopped = False

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive, self.stopped = False, True

    def fail(self, words: str = "org.apache.spark.SparkException: Job aborted") -> None:
        self.isActive, self.error = False, RuntimeError(words)


class Group:
    """The group's offsets; what was advanced is kept. `committed`: what stands there, with the ranges in flight."""

    advanced: list[tuple[dict[Any, int], dict[Any, RangePlan]]]
    committed: dict[tuple[str, int], tuple[int, RangePlan | None]]
    error: Exception | None

    def __init__(self, kafka: object, instance: Instance) -> None:
        self.closed, self._instance = False, instance

    def take_over(self) -> None:
        """There is no fence."""

    def read(self, keys: list[tuple[str, int]]) -> dict[tuple[str, int], Committed]:
        found = {key: Group.committed[key] for key in keys if key in Group.committed}
        return {key: Committed(at, commit_metadata(self._instance, plan)) for key, (at, plan) in found.items()}

    def advance(self, offsets: dict[Any, int], plans: dict[Any, RangePlan]) -> None:
        Group.advanced.append((offsets, plans))
        if Group.error is not None:
            raise Group.error

    def close(self) -> None:
        self.closed = True
