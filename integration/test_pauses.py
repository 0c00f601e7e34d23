"""Workers that are paused around their lease: no upload of theirs begins after it."""

from pathlib import Path

import pytest

from integration.cluster_faults.pauses import TOPIC, paused
from parquet_sink.addons.devkit.broker import Broker

SESSION_MS = 1_500


@pytest.fixture(scope="module")
def configs(broker: Broker) -> Broker:
    """The shared broker, with the topic that the members of all groups watch."""
    broker.create_topic(TOPIC)
    return broker


@pytest.mark.parametrize(("count", "groups"), [(12, 6), pytest.param(300, 10, marks=pytest.mark.slow)])
def test_no_upload_begins_after_its_worker_s_lease(configs: Broker, tmp_path: Path, count: int, groups: int) -> None:
    """Whatever stood still, for however long: the worker, its membership alone, or what uploads."""
    counted = paused(configs, tmp_path, count, groups, SESSION_MS, count)
    assert counted.late == []
    assert counted.pauses.total() == count
    assert counted.lost > 0
    assert counted.uploads > count


def test_a_lease_that_is_too_long_is_found(configs: Broker, tmp_path: Path) -> None:
    """Of two sessions: what uploads does not know that its member was removed while that one stood still."""
    counted = paused(configs, tmp_path, 8, 4, SESSION_MS, 5, lease=2.0, kinds=["the member"])
    assert counted.late
