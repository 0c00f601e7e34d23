"""The headers of a dead letter: the record's own, then why it is there, by Kafka Connect's names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from parquet_sink.model.records import Header
from parquet_sink.model.rejected import Rejected, Stage

PREFIX: Final = "__connect.errors."
NOT_KEPT: Final = "__parquet_sink.errors.headers.not.kept"
"""A header of our own: of headers with a name that is not UTF-8 the Kafka client can neither read nor write any."""
_WHY_NOT_KEPT: Final = b"a name is not UTF-8"
_EXCEPTION: Final = "parquet_sink.errors.InvalidRecord"
"""Programs that read dead letters know it: it stays when the class moves."""
TASK: Final = "0"
"""Kafka Connect numbers its tasks; here any Spark task may have any topic-partition."""
CONNECT_STAGES: Final[Mapping[Stage, str]] = {Stage.SHAPE: "TASK_PUT", Stage.OBFUSCATION: "TASK_PUT"}
"""Where Kafka Connect has another name for it: shaping is what its sinks do in `put`."""


def stage_name(stage: Stage) -> str:
    """Kafka Connect's name of a stage."""
    return CONNECT_STAGES.get(stage, str(stage))


def class_name(rejected: Rejected, classes: Mapping[Stage, str]) -> str:
    """What rejected a record, by its full name. classes: what carries out a stage."""
    return rejected.by or classes.get(rejected.stage, "")


@dataclass(frozen=True)
class HeaderWriter:
    """connector: its name. context: whether headers tell why. classes: what carries out a stage, by its full name."""

    connector: str
    context: bool
    classes: Mapping[Stage, str] = field(default_factory=dict)

    def headers(self, rejected: Rejected) -> list[Header]:
        """The record's own in their order, then ours. All names can be written; all of our values are UTF-8."""
        own = rejected.headers or ()
        kept = [one for one in own if _writable(one[0])]
        if rejected.headers is None or len(kept) < len(own):
            kept.append((NOT_KEPT, _WHY_NOT_KEPT))
        return kept + self._context(rejected) if self.context else kept

    def _context(self, rejected: Rejected) -> list[Header]:
        values = {
            "topic": rejected.topic,
            "partition": str(rejected.partition),
            "offset": str(rejected.offset),
            "connector.name": self.connector,
            "task.id": TASK,
            "stage": stage_name(rejected.stage),
            "class.name": class_name(rejected, self.classes),
            "exception.class.name": _EXCEPTION,
            "exception.message": rejected.reason,
            "exception.stacktrace": f"{_EXCEPTION}: {rejected.reason}",
        }
        return [(PREFIX + name, text.encode("utf-8", "backslashreplace")) for name, text in values.items()]


def headers_size(headers: Sequence[Header]) -> int:
    """Bytes of names and values."""
    return sum(len(name) + len(value or b"") for name, value in headers)


def _writable(name: str) -> bool:
    """The client ends the process for a name with a surrogate."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
