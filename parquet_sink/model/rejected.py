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
"""The header, after its own, of a record that was too large to be diverted with its value: how many bytes it had."""


@dataclass(frozen=True)
class Rejected:
    """One record without a row.

    reason: one sentence for the operator, without the content of any field. key, value, headers: as Kafka had them; key
    and headers are None, too, when they were not read. timestamp_ms: epoch milliseconds, 0 when the record has none;
    timestamp_type: Kafka's name of its kind. by: the class of the transform that rejected it; "" otherwise.
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


def stage_name(stage: Stage) -> str:
    """Kafka Connect's name of a stage."""
    return CONNECT_STAGES.get(stage, str(stage))


def class_name(rejected: Rejected, classes: Mapping[Stage, str]) -> str:
    """What rejected a record, by its full name. classes: what carries out a stage."""
    return rejected.by or classes.get(rejected.stage, "")
