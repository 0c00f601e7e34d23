"""What becomes of one Spark task of a source, by value: what it is told to do, and how far it got."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from parquet_sink.model.failure import Failure
from parquet_sink.model.source_records import Place
from parquet_sink.sources.offsets.connect_form import Places
from parquet_sink.sources.task import Memory


@dataclass(frozen=True)
class SourceWork:
    """task: its number. places: of all tasks of the connector, by the text of the source partition. memory: its own."""

    task: int
    places: Places = field(default_factory=dict)
    memory: Memory = field(default_factory=dict)

    def to_json(self) -> str:
        places = {partition: dict(place) for partition, place in self.places.items()}
        return json.dumps({"task": self.task, "places": places, "memory": dict(self.memory)})

    @classmethod
    def from_json(cls, text: str) -> "SourceWork":
        return cls(**json.loads(text))


@dataclass(frozen=True)
class SourceOutcome:
    """How far a task got: everything up to `places` is acknowledged, or was passed over.

    memory: of the task, which goes with these places. polled, written, passed_over: records. topics: of those written,
    by topic. size_bytes: of those written. more: whether it ended for time or size, so that it may have more at once.
    seconds: of the polls alone. failure: why it did not go on. away: whether brokers did not answer, so that the
    failure is waited out. first_fault: why the first record was passed over.
    """

    task: int
    places: Mapping[str, Place] = field(default_factory=dict)
    memory: Memory = field(default_factory=dict)
    polled: int = 0
    passed_over: int = 0
    topics: Mapping[str, int] = field(default_factory=dict)
    size_bytes: int = 0
    more: bool = False
    polls: int = 0
    longest_poll_s: float = 0.0
    polls_s: float = 0.0
    failure: Failure | None = None
    away: bool = False
    first_fault: str = ""

    @property
    def written(self) -> int:
        return sum(self.topics.values())
