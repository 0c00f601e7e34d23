"""A target in memory: it answers as it is told, and what it has stored is the truth."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.net.exchange import Answer, FailureKind
from parquet_sink.targets.http_failures import of_failure
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.push.answers import of_answer
from tests.life.effects import Effects


class Reply(StrEnum):
    """What the target does with one push, and says of it."""

    ACCEPTED = "stored, 200"
    FORBIDDEN = "not stored, 403"
    BAD_FILE = "not stored, 422"
    BUSY = "not stored, 503"
    NO_CONNECTION = "not stored, no connection"
    LOST_BEFORE = "not stored, no answer"
    LOST_AFTER = "stored, no answer"
    FAILED_AFTER = "stored, 500"
    LATE = "stored later, no answer"


STORES = {Reply.ACCEPTED, Reply.LOST_AFTER, Reply.FAILED_AFTER}
OUTCOMES = {
    Reply.ACCEPTED: of_answer(Answer(200, b'{"fileName":"f","flushStatus":"NEW","id":null}')),
    Reply.FORBIDDEN: of_answer(Answer(403)),
    Reply.BAD_FILE: of_answer(Answer(422, b'{"message":"not such a file"}')),
    Reply.BUSY: of_answer(Answer(503)),
    Reply.NO_CONNECTION: of_failure(FailureKind.CONNECT),
    Reply.LOST_BEFORE: of_failure(FailureKind.NO_ANSWER),
    Reply.LOST_AFTER: of_failure(FailureKind.NO_ANSWER),
    Reply.FAILED_AFTER: of_answer(Answer(500)),
    Reply.LATE: of_failure(FailureKind.NO_ANSWER),
}


@dataclass(frozen=True)
class Stored:
    """A file as the target has it. rows: (offset, number of the record)."""

    name: str
    topic: str
    partition: int
    rows: tuple[tuple[int, int], ...]
    digest: str


@dataclass
class Target:
    """replies: to the next pushes; then all is well. knows_names: a name that it has is answered with 409.

    on_push: is told of each attempt; on_stored: of each file that it takes; both before it answers.
    on_trouble: when it did not say that it took one.
    """

    effects: Effects
    on_push: Callable[[FinishedFile], None] = lambda file: None
    on_stored: Callable[[Stored], None] = lambda stored: None
    on_trouble: Callable[[], None] = lambda: None
    replies: list[Reply] = field(default_factory=list)
    knows_names: bool = False
    stored: set[str] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    """Numbers of the records in files that it answered to as refused for what is in them."""
    late: dict[str, Stored] = field(default_factory=dict)

    name = "http://target/"

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        """One attempt."""
        self.on_push(file)
        self.effects.gate("before push")
        reply = self.replies.pop(0) if self.replies else Reply.ACCEPTED
        if file.name in self.stored and self.knows_names and reply in STORES:
            outcome = of_answer(Answer(409, b'{"message":"a file of this name is there"}'))
            self._refuse(file)
        else:
            outcome = self._replied(reply, file)
        if outcome.verdict is not Verdict.ACCEPTED:
            self.on_trouble()
        self.effects.gate(f"after push: {outcome.verdict}")
        return outcome

    def _replied(self, reply: Reply, file: FinishedFile) -> Outcome:
        had = file.name in self.stored or file.name in self.late
        if reply is Reply.BAD_FILE and had:
            reply = Reply.BUSY  # what it took once is no bad file
        if reply in STORES:
            self._store(read(file))
        if reply is Reply.BAD_FILE:
            self._refuse(file)
        if reply is Reply.LATE:
            self.late.setdefault(file.name, read(file))
        return OUTCOMES[reply]

    def _refuse(self, file: FinishedFile) -> None:
        self.refused |= {number for _, number in read(file).rows}

    def _store(self, found: Stored) -> None:
        self.late.pop(found.name, None)
        self.stored.add(found.name)
        self.on_stored(found)

    def take_late(self) -> None:
        """What was on its way arrives."""
        for found in list(self.late.values()):
            self._store(found)

    def heal(self) -> None:
        """From now on it takes everything."""
        self.replies, self.knows_names = [], False
        self.take_late()


def read(file: FinishedFile) -> Stored:
    """What is in a file."""
    content = Path(file.path).read_bytes()
    rows = pq.ParquetFile(file.path).read(columns=["kafkaOffset", "id"], use_threads=False)
    pairs = tuple(zip(rows["kafkaOffset"].to_pylist(), rows["id"].to_pylist(), strict=True))
    return Stored(file.name, file.topic, file.partition, pairs, sha256(content).hexdigest())
