"""Why a connector, a range or a file failed, and what follows: one value that crosses processes as JSON or pickled."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from parquet_sink.model.partitions import PartitionKey
from parquet_sink.model.ranges import Again


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
        return json.dumps(asdict(self), separators=(",", ":"))

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
