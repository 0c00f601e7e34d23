"""What is common to settings of all kinds of connectors: how a worker of a cluster owns one."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.config.secret import dump_with_secrets, load_with_secrets
from parquet_sink.kafka.settings import Ownership
from parquet_sink.settings.connector import with_cluster
from parquet_sink.settings.record_sink import DeliverySettings, RecordSinkSettings
from tests.factories import settings
from tests.task.record_doubles import Kept, Setup

OWNED = Ownership("parquet-sink-orders", "/run/lease", "workers-state")


@dataclass(frozen=True)
class OfAnotherPackage:
    """Settings of a kind that knows no clusters."""

    name: str


def owned(given: Any) -> Any:
    """Settings of a connector of a cluster."""
    return with_cluster(given, fence=OWNED.fence, lease=OWNED.lease, state_topic=OWNED.state_topic)


def test_each_kind_knows_how_it_is_owned(tmp_path: Path) -> None:
    """A sink's clients of Kafka do, a source itself; nothing else of the settings changes, nor their fingerprint."""
    sink = settings(tmp_path)
    assert owned(sink) == replace(sink, kafka=replace(sink.kafka, owned=OWNED))
    assert owned(sink).fingerprint == sink.fingerprint
    records = RecordSinkSettings(
        "list", sink.kafka, DeliverySettings(10**9, 1_000, 1_000), Setup(Kept()), str(tmp_path)
    )
    assert owned(records).kafka.owned == OWNED
    source = SourceSettings("s", "m:T", ({},), "numbers", ("t",), None)
    assert owned(source) == replace(source, owned=OWNED)


def test_a_kind_that_knows_no_clusters_stays_as_it_is() -> None:
    """It runs all the same."""
    other = OfAnotherPackage("other")
    assert owned(other) is other


def test_it_reaches_the_processes_of_spark(tmp_path: Path) -> None:
    """By value, with all other settings."""
    assert load_with_secrets(dump_with_secrets(owned(settings(tmp_path)))).kafka.owned == OWNED
