"""A topic whose files could go nowhere is refused when it is found, before anything of it is read."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from parquet_sink.errors import TopicUnusable
from parquet_sink.planner.discovery import METADATA_S
from parquet_sink.planner.planner import Planner
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.targets.table_map import parse
from tests.factories import Clock
from tests.messages import saying
from tests.planner.planner_cluster import SETTINGS, Cluster, Reported, planner_on


@pytest.fixture
def make(cluster: Cluster, clock: Clock, state: SqliteStore) -> Callable[[str], Planner]:
    """Makes a planner with a map of tables."""

    def made(tables: str) -> Planner:
        settings = replace(SETTINGS, tables=parse(tables))
        return planner_on(cluster, settings, state, clock, Reported)

    return made


def test_a_topic_that_is_there_at_the_start(make: Callable[[str], Planner], cluster: Cluster) -> None:
    """The message names key, topic, table and rule."""
    said = ("[connect.ems.target.table.map]", "Topic orders", 'table ""', "by orders(.*):$1,", "which is not a ")
    with pytest.raises(TopicUnusable, match=saying(*said)):
        make("orders(.*):$1").begin()
    assert cluster.group == {}


def test_a_topic_that_is_found_while_running(make: Callable[[str], Planner], cluster: Cluster, clock: Clock) -> None:
    """The others went on until then; nothing of the new one is planned or committed."""
    found = make("orders(.+):$1,bad(.*):$1")
    start = found.begin()
    cluster.logs["orders-eu", 0] = (0, 0)
    clock.sleep(METADATA_S)
    found.tick(start)
    assert ("orders-eu", 0) in cluster.group
    cluster.logs["bad", 0] = (0, 5)
    clock.sleep(METADATA_S)
    with pytest.raises(TopicUnusable, match=saying("[connect.ems.target.table.map]", "Topic bad", "go to table")):
        found.tick(start)
    assert ("bad", 0) not in cluster.group
