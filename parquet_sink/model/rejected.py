"""A record that has no row, as a value: whoever takes it decides whether to stop or to divert it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Stage(StrEnum):
    """Where a record was rejected: Kafka Connect's names, and SHAPE for what Connect leaves to a sink's `put`.

    OBFUSCATION: what is to be obfuscated cannot be, so that it would leave in clear; never diverted. TASK_PUT: the
    target refused the file that has its row.
    """

    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TRANSFORMATION = "TRANSFORMATION"
    SHAPE = "SHAPE"
    OBFUSCATION = "OBFUSCATION"
    TASK_PUT = "TASK_PUT"


CONNECT_STAGES: Final[Mapping[Stage, str]] = {Stage.SHAPE: "TASK_PUT", Stage.OBFUSCATION: "TASK_PUT"}
"""Where Kafka Connect has another name for it: shaping is what its sinks do in `put`."""
TASK: Final = "0"
"""Kafka Connect numbers its tasks; here any Spark task may have any topic-partition."""


VALUE_NOT_KEPT: Final = "__parquet_sink.errors.value.not.kept"
"""The header, after its own, of a record that was diverted without its value: JSON with topic, partition, offset,
next_offset, bytes (0 when unknown) and reason."""
INSTEAD_OF_VALUE: Final = b"value not kept: "
"""What such a record has in the place of its value, before the reason: as a null it would be read as a tombstone."""


@dataclass(frozen=True)
class Rejected:
    """One record without a row.

    reason: one sentence for the operator, without the content of any field. key, value, headers: as Kafka had them; key
    and headers are None, too, when they were not read. timestamp_ms: epoch milliseconds, 0 when the record has none;
    timestamp_type: Kafka's name of its kind. by: the class of the transform that rejected it; "" otherwise.
    next_offset: the offset after it, where it stands for several records; else 0.
    """

    topic: str
    partition: int
    offset: int
    stage: Stage
    reason: str
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] | None = None
    timestamp_ms: int = 0
    timestamp_type: str = "CreateTime"
    by: str = ""
    next_offset: int = 0


def stage_name(stage: Stage) -> str:
    """Kafka Connect's name of a stage."""
    return CONNECT_STAGES.get(stage, str(stage))


def class_name(rejected: Rejected, classes: Mapping[Stage, str]) -> str:
    """What rejected a record, by its full name. classes: what carries out a stage."""
    return rejected.by or classes.get(rejected.stage, "")
