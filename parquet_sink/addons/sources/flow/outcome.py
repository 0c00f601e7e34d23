"""What becomes of one Spark task of a source, by value: what it is told to do, and how far it got."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from parquet_sink.addons.sources.flow.record_sender import Delivered
from parquet_sink.addons.sources.offsets.connect_form import Places
from parquet_sink.addons.sources.task import Memory
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.receipts import Failure
from parquet_sink.model.source_records import Place


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

    memory: of the task, which goes with these places. polled, passed_over: records; first_fault: why of the first.
    delivered: by topic-partition, what brokers acknowledged. more: whether it ended for time or size, so that it may
    have more at once. polls: how often it was asked, for `polls_s` seconds, `longest_poll_s` at most. failure: why it
    did not go on. away: whether brokers did not answer, so that the failure is waited out. ended_at_s: since the epoch.
    """

    task: int
    places: Mapping[str, Place] = field(default_factory=dict)
    memory: Memory = field(default_factory=dict)
    polled: int = 0
    passed_over: int = 0
    first_fault: str = ""
    delivered: Mapping[PartitionKey, Delivered] = field(default_factory=dict)
    more: bool = False
    polls: int = 0
    polls_s: float = 0.0
    longest_poll_s: float = 0.0
    failure: Failure | None = None
    away: bool = False
    ended_at_s: float = 0.0
