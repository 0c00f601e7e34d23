"""Receipts: what became of one file at the target and at an archive; crosses as JSON or pickled."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from parquet_sink.model.failure import Failure
from parquet_sink.model.ranges import Attempt, AttemptCount


@dataclass(frozen=True)
class Archiving:
    """place: the archive, without secrets. at_ms: when it was known, epoch milliseconds.

    cause: why the file is not there, None when it is.
    """

    place: str
    at_ms: int
    cause: str | None = None


@dataclass(frozen=True)
class Receipt:
    """One file, accepted or not.

    Everything of its topic-partition below `next_offset` (exclusive) has been accepted, as far as this range goes: the
    offset after the file, or the file's first offset when it failed. seconds: per stage (`write`, `upload`).
    accepted_at: epoch seconds. oldest_ms: oldest Kafka timestamp of its own records, epoch milliseconds; None where
    none of them has one. passed_over: why the target refused it, where its records are diverted and the next file
    goes on; then there is no failure. table: at the target, None for the connector's one. digest: SHA-256 of the
    file's bytes, hexadecimal. tried: what came of each of the attempts, as far as it is kept. answers: what came of
    those that were made in the last Spark task, all of them counted. archive: what became of it at an archive, None
    where there is none, or that is not known yet.
    """

    connector: str
    topic: str
    partition: int
    file_name: str
    first_offset: int
    last_offset: int
    next_offset: int
    rows: int
    records: int
    size_bytes: int
    reason: str
    attempts: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    status: int | None = None
    answer_id: str | None = None
    accepted_at: float | None = None
    oldest_ms: int | None = None
    failure: Failure | None = None
    passed_over: str | None = None
    table: str | None = None
    digest: str | None = None
    tried: tuple[Attempt, ...] = ()
    answers: tuple[AttemptCount, ...] = ()
    archive: Archiving | None = None

    @property
    def accepted(self) -> bool:
        return self.failure is None and self.passed_over is None

    @property
    def bytes_per_row(self) -> float | None:
        """Parquet bytes per row, None for a file without rows."""
        return self.size_bytes / self.rows if self.rows else None

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Receipt":
        """The inverse of `to_json`. Raises ValueError, KeyError or TypeError for anything else."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Receipt":
        """The inverse of `dataclasses.asdict`. Raises ValueError, KeyError or TypeError for anything else."""
        failure, tried = fields.get("failure"), tuple(map(Attempt.from_dict, fields.get("tried", ())))
        failed = None if failure is None else Failure.from_dict(failure)
        answers = tuple(map(AttemptCount.from_dict, fields.get("answers", ())))
        archive = None if fields.get("archive") is None else Archiving(**fields["archive"])
        return cls(**{**fields, "failure": failed, "tried": tried, "answers": answers, "archive": archive})
