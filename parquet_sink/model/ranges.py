"""Ranges of offsets as work: what the driver plans, what a task reports, attempts, progress, and offsets lost."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

MOST_LOGGED: Final = 20
"""Attempts at a file that are kept: the first, and the last of the others."""
LONGEST_CAUSE: Final = 300
HELD_WARNING_S: Final = 60.0
"""How long an open transaction may hold records back before somebody is warned: as long as producers let theirs be open
unless their transaction.timeout.ms says otherwise."""
UNKNOWN: Final = "unknown"
"""The verdict on an attempt after which the target may have the file, `targets.outcome.Verdict.UNKNOWN`."""


class LossCause(StrEnum):
    """Why records are gone before they were delivered.

    RETENTION: Kafka deleted them. RECREATED: their topic was deleted and recreated. DELETED: their topic, or
    topic-partition, was deleted. TRUNCATED: the log was cut back and has grown again, so that other records have
    their offsets.
    """

    RETENTION = "retention"
    RECREATED = "recreated"
    DELETED = "deleted"
    TRUNCATED = "truncated"


class LostOffsets(NamedTuple):
    """Offsets [start, end) of one topic-partition; where nobody knows how many there were, the end is the start."""

    start: int
    end: int
    cause: LossCause

    @classmethod
    def recreated(cls, start: int) -> "LostOffsets":
        """Of a topic that was deleted and recreated: what it held from `start` on."""
        return cls(start, start, LossCause.RECREATED)

    @classmethod
    def before(cls, first: int, start: int) -> "LostOffsets":
        """What Kafka no longer has from `start` on. first: the first offset that it has.

        Where that is not behind the start, the topic-partition is another one.
        """
        return cls(start, first, LossCause.RETENTION) if first > start else cls.recreated(start)


@dataclass(frozen=True)
class Attempt:
    """One attempt. at_ms: when it began, epoch milliseconds. seconds: until it was known what came of it.

    verdict: what came of it, one of `targets.outcome.Verdict`. status: the target's number for it, such as an HTTP
    status; None when no answer came, or the target has none. cause: in words, at most LONGEST_CAUSE characters.
    """

    at_ms: int
    seconds: float
    verdict: str
    status: int | None = None
    cause: str = ""

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Attempt":
        """The inverse of `dataclasses.asdict`. Raises TypeError for anything else."""
        return cls(**fields)


@dataclass(frozen=True)
class AttemptCount:
    """How many attempts came to the same: verdict and status as of `Attempt`."""

    verdict: str
    status: int | None
    count: int

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "AttemptCount":
        """The inverse of `dataclasses.asdict`. Raises TypeError for anything else."""
        return cls(**fields)


def logged(log: tuple[Attempt, ...], attempt: Attempt) -> tuple[Attempt, ...]:
    """The log with one more attempt; of very many the first and the latest stay."""
    added = (*log, attempt)
    return added if len(added) <= MOST_LOGGED else (added[0], *added[len(added) - MOST_LOGGED + 1 :])


@dataclass(frozen=True)
class LearnedSchema:
    """What earlier files of a topic taught. schema: as `RowBuilder` serialises it.

    Sizes are those of Parquet files; a record has several rows, or none, where lists are exploded.
    """

    schema: bytes | None = None
    bytes_per_row: float | None = None
    bytes_per_record: float | None = None

    def updated(self, later: "LearnedSchema") -> "LearnedSchema":
        """This, with what was learned later in place of it; what is None there stays."""
        return LearnedSchema(
            self.schema if later.schema is None else later.schema,
            self.bytes_per_row if later.bytes_per_row is None else later.bytes_per_row,
            self.bytes_per_record if later.bytes_per_record is None else later.bytes_per_record,
        )


@dataclass(frozen=True)
class ValueSizes:
    """Bytes on average of a record's value, as Kafka has it, and of what it became in Parquet files."""

    value_bytes: float
    file_bytes: float


class Trying(StrEnum):
    """What fails, and is tried again."""

    UPLOAD = "upload"
    TRANSFORM = "transform"
    PUT = "put"


@dataclass(frozen=True)
class Tries:
    """What was done so far for the first file that is not accepted: attempts, and seconds since the first of them.

    trying: what the attempts were at; those at something else count from 0. log: what came of each, as far as it is
    kept. sent_before: whether the target may have taken it in an attempt that is not counted here.
    """

    attempts: int = 0
    elapsed_s: float = 0.0
    trying: Trying = Trying.UPLOAD
    log: tuple[Attempt, ...] = ()
    sent_before: bool = False

    @property
    def may_be_there(self) -> bool:
        """Whether the target may have the file though nobody knows."""
        unlogged = self.trying is Trying.UPLOAD and self.attempts > len(self.log) > 0
        return self.sent_before or unlogged or any(one.verdict == UNKNOWN for one in self.log)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Tries":
        """The inverse of `dataclasses.asdict`. Raises ValueError or TypeError for anything else."""
        trying, log = Trying(fields.get("trying", Trying.UPLOAD)), tuple(map(Attempt.from_dict, fields.get("log", ())))
        return cls(**{**fields, "trying": trying, "log": log})


NO_TRIES = Tries()


@dataclass(frozen=True)
class PlannedRange:
    """Offsets [start, end) of one topic-partition as work for a Spark task.

    accepted: everything below (exclusive) was accepted in an earlier attempt at this range, which is repeated as a
    whole so that its files come out the same; files that end below are made again but not sent. known: what was known
    of the topic when the range was planned first. topic_id: of the topic that the range belongs to, "" when unknown.
    epoch: of the leader that the records before start were seen under, if another one came since; else -1.
    repeated: whether files of it may have been sent before, by an attempt of which nothing more is known.
    read_ahead: whether the task reads in a thread of its own, ahead of what it writes; what comes out is the same.
    """

    topic: str
    partition: int
    start: int
    end: int
    reason: str
    accepted: int = 0
    tries: Tries = NO_TRIES
    topic_id: str = ""
    known: LearnedSchema = LearnedSchema()
    epoch: int = -1
    read_ahead: bool = True
    repeated: bool = False

    def to_json(self) -> str:
        schema = self.known.schema
        text = None if schema is None else base64.b64encode(schema).decode()
        return json.dumps({**vars(self), "known": {**vars(self.known), "schema": text}}, default=vars)

    @classmethod
    def from_json(cls, text: str) -> "PlannedRange":
        """The inverse of `to_json`. Raises ValueError, KeyError or TypeError for anything else."""
        body: dict[str, Any] = json.loads(text)
        known, tries = body.pop("known"), body.pop("tries")
        schema = known.pop("schema")
        known = LearnedSchema(None if schema is None else base64.b64decode(schema), **known)
        return cls(**body, known=known, tries=Tries.from_dict(tries))


@dataclass(frozen=True)
class Again:
    """The first file of a range that is not accepted yet will be tried again, wait_s seconds after the task's end.

    span: the offsets [start, end) to plan in place of the range, None: the same. They begin where the range does, when
    it must end earlier than it was planned; else where its rest begins, which cannot come out as it was planned.
    """

    tries: Tries
    wait_s: float
    span: tuple[int, int] | None = None

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Again":
        """The inverse of `dataclasses.asdict`. Raises KeyError, ValueError or TypeError for anything else."""
        span = fields.get("span")
        return cls(Tries.from_dict(fields["tries"]), fields["wait_s"], None if span is None else (span[0], span[1]))


@dataclass(frozen=True)
class PartitionProgress:
    """How one topic-partition stands. Offsets; `oldest_ms` epoch milliseconds of the oldest unflushed arrival.

    end: the high watermark. away: it has no leader, or one that does not answer; the rest is as it was before.
    held_at: the first offset that an open transaction holds back, None for none; held_ms: since when, likewise.
    """

    topic: str
    partition: int
    start: int
    end: int
    oldest_ms: int | None
    away: bool = False
    held_at: int | None = None
    held_ms: int | None = None

    @property
    def lag(self) -> int:
        """Records, at most, between what is delivered and what Kafka has."""
        return max(self.end - self.start, 0)


def held_message(topic: str, partition: int, offset: int, held_s: float) -> str:
    """Return what is said of records that an open transaction holds back from `offset` on."""
    for_s = f"{held_s:.0f} s" if held_s < 100 else f"{held_s / 60:.0f} min"
    return (
        f"topic {topic}, topic-partition {partition} is held back at offset {offset} by an open transaction, for "
        f"{for_s}; nothing from there on can be read before it ends"
    )


@dataclass(frozen=True)
class Accepted:
    """How far the last range [start, end) of a topic-partition is accepted: everything below `next_offset`.

    again: set when the rest is to be tried again.
    """

    topic: str
    partition: int
    next_offset: int
    start: int
    end: int
    reason: str
    again: Again | None = None
