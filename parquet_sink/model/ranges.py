"""Ranges of offsets as work: what the driver plans, and what a Spark task reports of it."""

import base64
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from parquet_sink.model.attempts import Attempt


@dataclass(frozen=True)
class Known:
    """What earlier files of a topic taught. schema: as `Shaper` serialises it.

    Sizes are those of Parquet files; a record has several rows, or none, where lists are exploded.
    """

    schema: bytes | None = None
    bytes_per_row: float | None = None
    bytes_per_record: float | None = None

    def updated(self, later: "Known") -> "Known":
        """This, with what was learned later in place of it; what is None there stays."""
        return Known(
            self.schema if later.schema is None else later.schema,
            self.bytes_per_row if later.bytes_per_row is None else later.bytes_per_row,
            self.bytes_per_record if later.bytes_per_record is None else later.bytes_per_record,
        )


class Trying(StrEnum):
    """What fails, and is tried again."""

    UPLOAD = "upload"
    TRANSFORM = "transform"
    PUT = "put"


@dataclass(frozen=True)
class Tries:
    """What was done so far for the first file that is not accepted: attempts, and seconds since the first of them.

    trying: what the attempts were at; those at something else count anew. log: what came of each, as far as it is kept.
    """

    attempts: int = 0
    elapsed_s: float = 0.0
    trying: Trying = Trying.UPLOAD
    log: tuple[Attempt, ...] = ()

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
    known: Known = Known()
    epoch: int = -1
    read_ahead: bool = True

    def to_json(self) -> str:
        body = asdict(self)
        schema = self.known.schema
        body["known"]["schema"] = None if schema is None else base64.b64encode(schema).decode()
        return json.dumps(body)

    @classmethod
    def from_json(cls, text: str) -> "PlannedRange":
        """The inverse of `to_json`. Raises ValueError, KeyError or TypeError for anything else."""
        body: dict[str, Any] = json.loads(text)
        known, tries = body.pop("known"), body.pop("tries")
        schema = known.pop("schema")
        known = Known(None if schema is None else base64.b64decode(schema), **known)
        return cls(**body, known=known, tries=Tries.from_dict(tries))


@dataclass(frozen=True)
class Again:
    """The first file of a range that is not accepted yet will be tried again, wait_s seconds after the task's end."""

    tries: Tries
    wait_s: float
