"""How far a source got since its positions were stored last, as its processes tell each other."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from parquet_sink.addons.sources.flow.outcome import SourceOutcome
from parquet_sink.addons.sources.task import Memory
from parquet_sink.model.source_records import Place


@dataclass(frozen=True)
class TaskReached:
    """One task, of its last outcome. idle: it gave nothing. moved: its places, and with them its memory, are new."""

    memory: Memory = field(default_factory=dict)
    more: bool = False
    idle: bool = True
    moved: bool = False


@dataclass(frozen=True)
class SourceReached:
    """places: by the text of the source partition, what is to be stored. tasks: by number.

    away: why brokers did not answer; empty when they did.
    """

    places: Mapping[str, Place] = field(default_factory=dict)
    tasks: Mapping[int, TaskReached] = field(default_factory=dict)
    away: str = ""

    @classmethod
    def of(cls, outcomes: Iterable[SourceOutcome]) -> "SourceReached":
        """Of one micro-batch."""
        places: dict[str, Place] = {}
        tasks: dict[int, TaskReached] = {}
        away = ""
        for one in outcomes:
            places |= one.places
            tasks[one.task] = TaskReached(one.memory, one.more, not one.polled, bool(one.places))
            if one.away and one.failure is not None:
                away = one.failure.message
        return cls(places, tasks, away)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "SourceReached":
        found = json.loads(text)
        tasks = {int(number): TaskReached(**one) for number, one in found["tasks"].items()}
        return cls(found["places"], tasks, found["away"])
