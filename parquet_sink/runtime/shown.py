"""How a connector stands, in words that hold: it runs when a broker answered, and says what it waits for."""

from parquet_sink.runtime.connector import Connector, Status
from parquet_sink.state.store import OUTAGE


def shown(connector: Connector) -> Status:
    """Its status; before a broker told where its topic-partitions start, it is starting."""
    if connector.status is Status.RUNNING and not connector.has_begun():
        return Status.STARTING
    return connector.status


def trouble(connector: Connector) -> str | None:
    """Why it failed, or what keeps it from Kafka now; None when nothing does."""
    if connector.failure is not None:
        return connector.failure.message
    away = connector.state.get(OUTAGE) if connector.state is not None and connector.status is Status.RUNNING else None
    return None if away is None else str(away)
