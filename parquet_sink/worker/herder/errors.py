"""Why a worker does not do what it was asked for. Each endpoint has its own words for them, as in Kafka Connect."""

from collections.abc import Sequence


class HerderError(Exception):
    """Base of all below. Messages hold no secrets."""


class UnknownConnector(HerderError):
    """No connector has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown connector {name}")
        self.name = name


class UnknownTask(HerderError):
    """The connector is there and has no task of this number."""

    def __init__(self, name: str, task: int) -> None:
        super().__init__(f"Unknown task: {name}-{task}")


class UnknownLogger(HerderError):
    """No logger of this program has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Logger {name} not found.")


class ConnectorExists(HerderError):
    """A connector of this name is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Connector {name} already exists")


class InvalidConnector(HerderError):
    """problems: each reads `Invalid [key]. reason`; nothing was changed."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class NotStopped(HerderError):
    """The request needs a connector that is stopped."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
            f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
        )


class OffsetsRefused(HerderError):
    """The broker, or what it has, does not allow these offsets; nothing was changed.

    alone: whether the text says all, in Kafka Connect's words.
    """

    def __init__(self, message: str, *, alone: bool = False) -> None:
        super().__init__(message)
        self.alone = alone


class NotPurged(HerderError):
    """What a connector left cannot be removed, or holds what exists nowhere else; the message names place and cure."""


class OffsetsBusy(HerderError):
    """Another request is changing the connector's offsets; nothing was changed by this one."""


class FlushRefused(HerderError):
    """The connector cannot flush now; nothing was done, and the message names the cure."""


class UnknownPartitions(HerderError):
    """The connector does not have these topic-partitions; nothing was done, and the message names those that it has."""


class UnknownFlush(HerderError):
    """Nobody follows a flush of this id."""

    def __init__(self, name: str, flush_id: str) -> None:
        super().__init__(
            f"Connector {name} knows no flush {flush_id}: it is long ago, or the connector was started again or moved "
            "since. What is committed went out; ask for another flush for what still waits."
        )


class Elsewhere(HerderError):
    """Another worker of the group does this; nothing was done. The message is for where that one is not reached.

    url: of its REST API; None while there is no such worker.
    """

    def __init__(self, url: str | None, message: str) -> None:
        super().__init__(message)
        self.url = url


class NotLeader(Elsewhere):
    """Only the leader of a group of workers does this."""

    def __init__(self, url: str | None) -> None:
        super().__init__(
            url,
            "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway.",
        )


class NotOwner(Elsewhere):
    """Only the worker that has the connector does this."""

    def __init__(self, url: str | None, name: str) -> None:
        super().__init__(
            url,
            f"Cannot complete request momentarily: no worker that answers has connector {name}, likely because a "
            "rebalance was underway.",
        )


class UnknownWorker(HerderError):
    """No worker of this id has a connector's folder."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"Worker {worker_id} is not known: nothing of a connector is waited for there.")


class WorkerAnswers(HerderError):
    """The worker is in the group, so what it has is not given up."""

    def __init__(self, worker_id: str) -> None:
        super().__init__(f"Worker {worker_id} is in the group, so it is not forgotten; stop it first.")


class OtherWorker(Elsewhere):
    """Only the worker that was named can do this."""

    def __init__(self, url: str | None, name: str, worker_id: str) -> None:
        super().__init__(
            url,
            f"Worker {worker_id} does not answer, so what connector {name} left there is not known (parked records, "
            "history, files that wait). Start that worker and repeat this; if it is gone for good, with its disk, type "
            f"parquet-sink workers --forget {worker_id}",
        )


class NotReadable(HerderError):
    """The connector's configuration cannot be read now, so what it needs is not known; the message says why."""


class TimedOut(HerderError):
    """The worker did not get to it in time; it may still do it."""


class StoreFailed(HerderError):
    """What was asked for cannot be kept, so it was not done; the message names place and cure."""


class ShuttingDown(HerderError):
    """The worker ends; nothing was changed."""
