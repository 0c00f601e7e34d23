"""What tests of the planner share; a test that wants another cluster or time has its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink.state.sqlite import SqliteStore
from tests.factories import Clock
from tests.planner.planner_cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """One empty topic-partition."""
    return Cluster()


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still."""
    return Clock(1_000_000.0)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[SqliteStore]:
    """The connector's state."""
    found = SqliteStore(tmp_path / "state.db")
    yield found
    found.close()
