"""The protocol between those who ask (REST API, metrics) and the worker that runs connectors.

Every method may be called from any thread, waits until the worker's loop has done it or `TIMEOUT_S` is over (TimedOut),
and either did all of it or nothing. Raises HerderError: which, each method says; TimedOut and ShuttingDown any of them,
StoreFailed what changes something.
Reads answer from what the loop published last, so that they wait for nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.worker.herder.values import (
    ConnectorInfo,
    ConnectorProgress,
    ConnectorStatus,
    FlushReport,
    HoldingWorker,
    StoredOffset,
    TargetState,
    Workers,
)

TIMEOUT_S: Final = 90.0
"""Kafka Connect's for all requests but `/health`."""


class Herder(Protocol):
    """The connectors of one worker."""

    @property
    def worker_id(self) -> str:
        """Host and port of the worker's REST API, as advertised."""

    def kafka_cluster_id(self) -> str:
        """Of the brokers of the worker file. Raises TimedOut when none answers."""

    def workers(self) -> Workers:
        """All workers of the group, and what each has."""

    def ping(self) -> None:
        """Returns once the loop has come round: the worker lives. Raises TimedOut after 10 s."""

    def set_log_level(self, logger: str, level: str) -> None:
        """In all workers, of a logger and those below it.

        logger: as `log_levels.require` gives it. level: one of `log_levels.LEVELS`.
        """

    def names(self) -> tuple[str, ...]:
        """In alphabetical order."""

    def info(self, name: str) -> ConnectorInfo:
        """Raises UnknownConnector."""

    def status(self, name: str) -> ConnectorStatus:
        """Raises UnknownConnector."""

    def progress(self) -> tuple[ConnectorProgress, ...]:
        """Of all connectors, in alphabetical order."""

    def own_progress(self) -> tuple[ConnectorProgress, ...]:
        """Of the connectors that this worker has, in alphabetical order."""

    def create(self, name: str, config: Mapping[str, str], target: TargetState | None = None) -> ConnectorInfo:
        """Stores and starts a new connector. Raises ConnectorExists, InvalidConnector."""

    def put(self, name: str, config: Mapping[str, str]) -> tuple[ConnectorInfo, bool]:
        """Creates a connector, or gives it another configuration; whether it is new. Raises InvalidConnector.

        A password written as `[hidden]` stays what it was.
        """

    def patch(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        """Changes some keys; None removes one. Raises UnknownConnector, InvalidConnector."""

    def delete(self, name: str) -> None:
        """Ends and forgets a connector; its group's offsets stay. Raises UnknownConnector."""

    def purge(self, name: str, *, only_look: bool = False) -> tuple[str, ...]:
        """Removes what a connector that is stopped left on this machine; what stays there of its folder.

        only_look: removes nothing. Raises UnknownConnector, and NotPurged where records are parked or files wait.
        """

    def set_target(self, name: str, target: TargetState) -> None:
        """Returns once it is stored; the connector follows. Raises UnknownConnector."""

    def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """The status with what is being started again as RESTARTING. Raises UnknownConnector."""

    def restart_task(self, name: str, task: int) -> None:
        """Raises UnknownConnector, UnknownTask."""

    def settings(self, name: str, worker_id: str | None = None) -> ConnectorSettings:
        """What a connector runs from, with secrets and the folders of this machine, which has its files.

        worker_id: whose folders are meant; None for the worker that has the connector. Raises UnknownConnector,
        NotOwner, OtherWorker, NotReadable.
        """

    def forget_worker(self, worker_id: str) -> None:
        """Ask nothing of a worker any more that is gone for good. Raise UnknownWorker, WorkerAnswers."""

    def find_holders(self, name: str) -> tuple[HoldingWorker, ...]:
        """Return the workers that may have files of a connector, the one that runs it first. Raise UnknownConnector."""

    def flush(self, name: str, partitions: Sequence[tuple[str, int | None]] = ()) -> FlushReport:
        """Asks for all that waits now to go out, whatever the thresholds say. Returns at once; `flushed` follows it.

        partitions: these alone, by topic and number; None for all of the topic. Raises UnknownConnector,
        UnknownPartitions, FlushRefused where the connector is stopped, paused or failed, or is a source.
        """

    def flushed(self, name: str, flush_id: str) -> FlushReport:
        """How far a flush got. Raises UnknownConnector, UnknownFlush."""

    def topics(self, name: str) -> tuple[str, ...]:
        """Topics of which a record passed conversion since the last reset; none for a connector that is not there."""

    def reset_topics(self, name: str) -> None:
        """Raises UnknownConnector."""

    def offsets(self, name: str) -> tuple[StoredOffset, ...]:
        """Where the connector goes on: of a sink its group's. Raises UnknownConnector, OffsetsRefused."""

    def alter_offsets(self, name: str, offsets: Sequence[StoredOffset]) -> None:
        """All of them or none.

        Raises UnknownConnector, NotStopped unless it is stopped, OffsetsBusy while another request changes them,
        OffsetsRefused.
        """

    def reset_offsets(self, name: str) -> None:
        """Removes all. Raises as `alter_offsets` does."""
