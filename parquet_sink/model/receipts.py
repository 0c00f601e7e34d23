"""Receipts: what became of one file at the target and at an archive; why it, a range or a connector failed.

Both cross processes as JSON or pickled.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Again, Attempt, AttemptCount


class Restart(StrEnum):
    """Whether a query that failed is started again, and what bounds that."""

    NEVER = "never"
    BOUNDED = "bounded"
    """A bounded number of times without progress."""
    REGISTRY = "registry"
    """As long as the connector's settings wait for the schema registry; then BOUNDED."""
    MACHINE = "machine"
    """As long as a busy machine is waited for; then never."""


@dataclass(frozen=True)
class Reaction:
    """What is done about a failure. Every error class has one (`parquet_sink.errors`).

    restart: of the query. at_start: restarted also before the query found out where its topic-partitions start.
    passes: needs nobody's hand when it comes while the connector stops: the next start goes on. delivers_before: ends
    its range at the same offset at each attempt, so the open file is closed there and delivered; after any other the
    open file is thrown away and made again as a whole. range_again_s: the range alone ends, and is tried
    again after so many seconds; None: the connector fails. range_retries: the range alone ends, and is tried again as
    long as errors.retry.timeout says; then the connector fails.
    """

    restart: Restart = Restart.NEVER
    at_start: bool = False
    passes: bool = False
    delivers_before: bool = False
    range_again_s: float | None = None
    range_retries: bool = False


FATAL = Reaction()
"""The connector stops, and its operator must do something."""


@dataclass(frozen=True)
class Failure:
    """kind: the error class by name, for tests and messages; nothing is decided by it. message: for the operator.

    status: HTTP status of the target's answer, None when none came. again: set when the file will be tried again.
    topic_partition: the one that failed, where others may go on; None: nothing says that it is only one.
    """

    kind: str
    message: str
    reaction: Reaction = FATAL
    status: int | None = None
    again: Again | None = None
    topic_partition: PartitionKey | None = None

    def to_json(self) -> str:
        return json.dumps(self, default=vars, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Failure":
        """The inverse of `to_json`. Raises ValueError, KeyError or TypeError for anything else."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Failure":
        """The inverse of `dataclasses.asdict`. Raises ValueError, KeyError or TypeError for anything else."""
        reaction, again, failed = dict(fields["reaction"]), fields["again"], fields.get("topic_partition")
        reaction["restart"] = Restart(reaction["restart"])
        again = None if again is None else Again.from_dict(again)
        failed = None if failed is None else (str(failed[0]), int(failed[1]))
        return cls(**{**fields, "reaction": Reaction(**reaction), "again": again, "topic_partition": failed})


@dataclass(frozen=True)
class Archiving:
    """place: the archive, without secrets. at_ms: when it was known, epoch milliseconds.

    cause: why the file is not there, None when it is.
    """

    place: str
    at_ms: int
    cause: str | None = None


@dataclass(frozen=True)
class Notifying:
    """A notice that a Spark task posted to the webhook by itself. cause: why it is given up, None when it was taken."""

    notice_id: str
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
    where there is none, or that is not known yet. notice: what became of its notice at the webhook, None where there is
    none, or the connector's program posts it.
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
    notice: Notifying | None = None

    @property
    def accepted(self) -> bool:
        return self.failure is None and self.passed_over is None

    @property
    def bytes_per_row(self) -> float | None:
        """Parquet bytes per row, None for a file without rows."""
        return self.size_bytes / self.rows if self.rows else None

    def to_json(self) -> str:
        return json.dumps(self, default=vars, separators=(",", ":"))

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
        notice = None if fields.get("notice") is None else Notifying(**fields["notice"])
        made = {"failure": failed, "tried": tried, "answers": answers, "archive": archive, "notice": notice}
        return cls(**{**fields, **made})
