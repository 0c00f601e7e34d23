"""What the history keeps: a record for each upload of a file, and one for each range that files were cut from."""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from parquet_sink.model.ranges import Attempt, LearnedSchema, PlannedRange
from parquet_sink.model.receipts import Archiving, Receipt

LONGEST_CAUSE: Final = 1_000


class UploadOutcome(StrEnum):
    """How an upload ended."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    """The target said no, and the connector failed."""
    PASSED_OVER = "passed_over"
    """The target said no; the file's records are set aside."""
    EXHAUSTED = "exhausted"
    """No attempt was accepted within the retry budget."""
    WAITING = "waiting"
    """Not accepted yet; it will be tried again. The file's next record takes the place of this one."""
    FAILED = "failed"
    """It could not be sent at all, such as when the local file could not be read."""


class Origin(StrEnum):
    """What sent a file."""

    RUN = "run"
    PARKED = "parked replay"
    REPLAY = "replay"


@dataclass(frozen=True)
class UploadRecord:
    """One upload of one file. Offsets are inclusive; times are epoch milliseconds.

    at_ms: when its outcome was known; for an accepted file the time of the acceptance. digest: SHA-256 of its bytes,
    hexadecimal. reason: why the file ended where it does. oldest_ms: oldest Kafka timestamp of its records, None when
    none has one. attempts: how many were made, of which `tried` has those that are kept. upload_s: seconds of all
    attempts and the waits between them. answer_id: what the target calls the file. cause: why it was not accepted.
    table: at the target. topic_id: Kafka's, "" when unknown. target: where it went, without secrets. repeat: how often
    a file of this name was accepted before, as far as the history goes back; the store fills it in. archive: what is
    known of its being archived, None for nothing.
    """

    file_name: str
    table: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    rows: int
    records: int
    size_bytes: int
    digest: str | None
    reason: str
    oldest_ms: int | None
    outcome: UploadOutcome
    at_ms: int
    attempts: int = 0
    tried: tuple[Attempt, ...] = ()
    upload_s: float = 0.0
    write_s: float = 0.0
    status: int | None = None
    answer_id: str | None = None
    cause: str | None = None
    topic_id: str = ""
    target: str = ""
    origin: Origin = Origin.RUN
    repeat: int = 0
    archive: Archiving | None = None

    @property
    def accepted_ms(self) -> int | None:
        """When the target accepted it, None when it did not."""
        return self.at_ms if self.outcome is UploadOutcome.ACCEPTED else None

    @property
    def freshness_ms(self) -> int | None:
        """How old its oldest record was when the target accepted it, by Kafka's timestamps; None when unknown."""
        return None if self.accepted_ms is None or self.oldest_ms is None else self.accepted_ms - self.oldest_ms

    def to_dict(self) -> dict[str, Any]:
        """All fields, and what follows from them, as JSON has them."""
        return {**asdict(self), "accepted_ms": self.accepted_ms, "freshness_ms": self.freshness_ms}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "UploadRecord":
        """The inverse of `to_dict`. Raises ValueError, KeyError or TypeError for anything else."""
        given = {name: value for name, value in fields.items() if name not in ("accepted_ms", "freshness_ms")}
        tried, outcome = tuple(map(Attempt.from_dict, given["tried"])), UploadOutcome(given["outcome"])
        archive = None if given.get("archive") is None else Archiving(**given["archive"])
        return cls(
            **{**given, "tried": tried, "outcome": outcome, "origin": Origin(given["origin"]), "archive": archive}
        )


@dataclass(frozen=True)
class RangeRecord:
    """A range [start, end) that files were cut from, with all that they depend on: cut so again, they are the same.

    reason: why it was due. known: what was known of the topic when it was planned first. recipe: stands for settings
    and version (`SinkSettings.fingerprint`). version: of this program. at_ms: when it was first told how far it got.
    done_until: everything of it below (exclusive) was accepted, or has no row; the furthest that was told.
    """

    topic: str
    partition: int
    start: int
    end: int
    reason: str
    topic_id: str
    known: LearnedSchema
    recipe: str
    version: str
    at_ms: int
    done_until: int = 0

    def planned(self) -> PlannedRange:
        """The range as work for the pipeline, nothing of it accepted yet."""
        return PlannedRange(
            topic=self.topic,
            partition=self.partition,
            start=self.start,
            end=self.end,
            reason=self.reason,
            accepted=self.start,
            topic_id=self.topic_id,
            known=self.known,
        )

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON has them."""
        return {**asdict(self), "known": known_to_dict(self.known)}


def known_to_dict(known: LearnedSchema) -> dict[str, Any]:
    """`LearnedSchema` as JSON has it."""
    schema = None if known.schema is None else base64.b64encode(known.schema).decode()
    return {**asdict(known), "schema": schema}


def known_from_json(text: str) -> LearnedSchema:
    """The inverse of `json.dumps(known_to_dict(...))`. Raises ValueError, KeyError or TypeError for anything else."""
    fields = json.loads(text)
    schema = fields["schema"]
    return LearnedSchema(**{**fields, "schema": None if schema is None else base64.b64decode(schema)})


@dataclass(frozen=True)
class Sender:
    """What is true of all files of one program that sends: where they go, and what sends them.

    table: that of topics without one of their own. recipe, version: see `RangeRecord`.
    """

    table: str
    target: str
    recipe: str
    version: str
    origin: Origin = Origin.RUN


def upload_record(receipt: Receipt, sender: Sender, ended_at_s: float, topic_id: str = "") -> UploadRecord:
    """The history's record of a receipt. ended_at_s: epoch seconds, for files that were not accepted."""
    at_s = ended_at_s if receipt.accepted_at is None else receipt.accepted_at
    cause = _cause(receipt)
    return UploadRecord(
        file_name=receipt.file_name,
        table=receipt.table or sender.table,
        topic=receipt.topic,
        partition=receipt.partition,
        first_offset=receipt.first_offset,
        last_offset=receipt.last_offset,
        rows=receipt.rows,
        records=receipt.records,
        size_bytes=receipt.size_bytes,
        digest=receipt.digest,
        reason=receipt.reason,
        oldest_ms=receipt.oldest_ms,
        outcome=_outcome(receipt),
        at_ms=round(at_s * 1000),
        attempts=receipt.attempts,
        tried=receipt.tried,
        upload_s=receipt.seconds.get("upload", 0.0),
        write_s=receipt.seconds.get("write", 0.0),
        status=receipt.status,
        answer_id=receipt.answer_id,
        cause=None if cause is None else cause[:LONGEST_CAUSE],
        topic_id=topic_id,
        target=sender.target,
        origin=sender.origin,
        archive=receipt.archive,
    )


def _cause(receipt: Receipt) -> str | None:
    """Why it was not accepted: what the last attempt came to, where there was one."""
    if receipt.passed_over is not None or receipt.failure is None:
        return receipt.passed_over
    return receipt.tried[-1].cause if receipt.tried else receipt.failure.message


def _outcome(receipt: Receipt) -> UploadOutcome:
    if receipt.passed_over is not None:
        return UploadOutcome.PASSED_OVER
    if receipt.failure is None:
        return UploadOutcome.ACCEPTED
    if receipt.failure.again is not None:
        return UploadOutcome.WAITING
    if not receipt.tried:
        return UploadOutcome.FAILED
    return UploadOutcome.REFUSED if receipt.tried[-1].verdict == "refused" else UploadOutcome.EXHAUSTED


def range_record(planned: PlannedRange, sender: Sender, ended_at_s: float, done_until: int) -> RangeRecord:
    """The history's record of a range that was flushed, at least in part. ended_at_s: epoch seconds."""
    return RangeRecord(
        topic=planned.topic,
        partition=planned.partition,
        start=planned.start,
        end=planned.end,
        reason=planned.reason,
        topic_id=planned.topic_id,
        known=planned.known,
        recipe=sender.recipe,
        version=sender.version,
        at_ms=round(ended_at_s * 1000),
        done_until=done_until,
    )
