"""A record that has no row, as a value: whoever takes it decides whether to stop or to set it aside."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """Where a record was rejected: Kafka Connect's names, and SHAPE for what Connect leaves to a sink's `put`.

    OBFUSCATION: what is to be obfuscated cannot be, so that it would leave in clear; never passed over. TASK_PUT: the
    target refused the file that has its row.
    """

    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TRANSFORMATION = "TRANSFORMATION"
    SHAPE = "SHAPE"
    OBFUSCATION = "OBFUSCATION"
    TASK_PUT = "TASK_PUT"


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


@dataclass(frozen=True)
class SetAsideCount:
    """Records of one range that were set aside for good: count, at offsets from first to last.

    stages: how many at which stage, by Kafka Connect's names. reason: the first record's. place: where they are kept,
    in words. dead_letters: whether that is a topic.
    """

    count: int
    first: int
    last: int
    stages: Mapping[str, int]
    reason: str
    place: str = ""
    dead_letters: bool = False
