"""Between the uploader and the target: which files of a replay go on, what was accepted, and at which pace."""

import threading
from collections.abc import Callable
from contextlib import suppress

from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.model.partitions import PartitionKey
from parquet_sink.replay.pace import Pace
from parquet_sink.replay.plan import ReplayRange
from parquet_sink.replay.results import SentFile
from parquet_sink.targets.opening import open_target
from parquet_sink.targets.outcome import Health, Outcome, ProbeResult, Verdict
from parquet_sink.targets.settings import TargetSettings
from parquet_sink.targets.target import Target

OnFile = Callable[[SentFile], None]
NOT_SENT = Outcome(Verdict.ACCEPTED, "not sent")


class Desk:
    """Settings of a target, and the target: files that are not chosen are taken and not sent. Threads may share it.

    settings: of the target they go to; None: nothing is sent. on_file: told of each file that was accepted, at once.
    """

    def __init__(self, settings: TargetSettings | None, table: str, pace: Pace, on_file: OnFile) -> None:
        self._inner: Target | None = None if settings is None else open_target(settings)
        self.target_table, self._pace, self._on_file = table, pace, on_file
        self._wanted: dict[PartitionKey, ReplayRange] = {}
        self._sent: dict[PartitionKey, list[SentFile]] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Where files go, without secrets."""
        return "nowhere" if self._inner is None else self._inner.name

    def begin(self, one: ReplayRange) -> None:
        """From now on files of its topic-partition are those of this range."""
        self._wanted[one.key] = one
        self._sent[one.key] = []

    def sent(self, key: PartitionKey) -> list[SentFile]:
        """What was accepted of a topic-partition since its range began, in order."""
        return list(self._sent.get(key, ()))

    def open(self) -> "Desk":
        return self

    def push(self, file: FinishedFile, seconds_left: float) -> Outcome:
        if not self._wanted[file.topic, file.partition].wants(file.first_offset, file.last_offset):
            return NOT_SENT
        outcome = NOT_SENT
        if self._inner is not None:
            with self._pace.working():
                outcome = self._inner.push(file, seconds_left)
        if outcome.verdict is Verdict.ACCEPTED:
            self._accepted(file)
        return outcome

    def _accepted(self, file: FinishedFile) -> None:
        one = SentFile(
            topic=file.topic,
            partition=file.partition,
            name=file.name,
            first=file.first_offset,
            last=file.last_offset,
            rows=file.rows,
            records=file.records,
            size_bytes=file.size_bytes,
            digest=file.digest,
        )
        with self._lock:
            self._sent[one.key].append(one)
            self._on_file(one)

    def probe(self, seconds_left: float) -> ProbeResult:
        return ProbeResult(Health.OK, "") if self._inner is None else self._inner.probe(seconds_left)

    def close(self) -> None:
        with suppress(OSError):
            if self._inner is not None:
                self._inner.close()
