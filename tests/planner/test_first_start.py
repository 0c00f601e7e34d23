"""`auto.offset.reset` is about the first start: what comes later is read as a whole, what is forgotten is said."""

from pathlib import Path
from typing import Any

import pytest

from parquet_sink.errors import OffsetsLost
from parquet_sink.model.events import OffsetsPassedOver
from parquet_sink.state.sqlite import SqliteStore, forget_delivered
from parquet_sink.state.store import STARTED
from tests.factories import Clock
from tests.kafka.simulation import KEY, Cluster, Query
from tests.messages import assert_says

OTHER = ("other", 0)


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with one topic of 10 records."""
    made = Cluster()
    made.make("orders", 10)
    return made


def started(cluster: Cluster, path: Path, *topics: str, reset: str = "latest", **kafka: Any) -> Query:
    """A run of a connector begins, over the state that earlier ones left."""
    state = SqliteStore.for_new_run(path / "state.db")
    assert not state.get(STARTED)
    return Query(cluster, state, Clock(1_000_000.0), topics=topics or ("orders",), offset_reset=reset, **kafka)


def test_a_first_start_begins_at_the_end(cluster: Cluster, tmp_path: Path) -> None:
    """With `latest`, at the end of each topic-partition, which is committed at once, also of an empty one."""
    cluster.make("other", 0)
    assert started(cluster, tmp_path, "orders", "other").start == {KEY: 10, OTHER: 0}
    assert {key: offset for key, (offset, _) in cluster.offsets.items()} == {KEY: 10, OTHER: 0}


def test_a_restart_right_after_the_first_goes_on_there(cluster: Cluster, tmp_path: Path) -> None:
    """What came between two starts is read, of idle topic-partitions too."""
    cluster.make("other", 0)
    started(cluster, tmp_path, "orders", "other")
    cluster.topics["orders"].count, cluster.topics["other"].count = 12, 5
    assert started(cluster, tmp_path, "orders", "other").start == {KEY: 10, OTHER: 0}


def test_a_topic_that_is_new_at_a_start_is_read_as_a_whole(cluster: Cluster, tmp_path: Path) -> None:
    """It came while the connector was stopped, or just before: none of its records is skipped."""
    started(cluster, tmp_path, "orders")
    cluster.make("other", 5)
    assert started(cluster, tmp_path, "orders", "other").start == {KEY: 10, OTHER: 0}


def test_the_group_tells_a_worker_that_never_had_the_connector(cluster: Cluster, tmp_path: Path) -> None:
    """A takeover with no memory of its own: that the group has an offset is enough."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    started(cluster, tmp_path / "first", "orders")
    cluster.make("other", 5)
    assert started(cluster, tmp_path / "second", "orders", "other").start == {KEY: 10, OTHER: 0}


def test_a_topic_that_is_made_anew_while_stopped_is_read_as_a_whole(cluster: Cluster, tmp_path: Path) -> None:
    """Kafka forgets the group's offsets with the topic, and the connector knows that it has begun."""
    started(cluster, tmp_path)
    cluster.remake(5)
    assert started(cluster, tmp_path).start == {KEY: 0}


def test_a_topic_of_a_pattern_that_matched_none_is_read_as_a_whole(cluster: Cluster, tmp_path: Path) -> None:
    """The first start had nothing to commit, and was the first all the same."""
    cluster.delete("orders")
    assert started(cluster, tmp_path, topics_regex="ord.*").start == {}
    cluster.make("orders", 5)
    assert started(cluster, tmp_path, topics_regex="ord.*").start == {KEY: 0}


def test_a_start_that_commits_nothing_was_none(cluster: Cluster, tmp_path: Path) -> None:
    """One that dies before its first commit leaves the next one to be the first."""

    def dies() -> None:
        raise ConnectionError

    cluster.between["commit"] = dies
    with pytest.raises(ConnectionError):
        started(cluster, tmp_path)
    assert started(cluster, tmp_path).start == {KEY: 10}


def delivered(cluster: Cluster, path: Path, **kafka: Any) -> None:
    """A run delivers ten records, stops, and the group is forgotten while two more come."""
    query = started(cluster, path, reset="earliest", **kafka)
    query.clock.sleep(60)
    for _ in range(5):
        query.tick()
    assert cluster.stands().offset == 10
    cluster.offsets.clear()
    cluster.topics["orders"].count = 12


def test_a_forgotten_group_is_said_where_all_is_sent_again(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With `earliest` it begins anew, and the log has both offsets."""
    delivered(cluster, tmp_path)
    caplog.clear()
    assert started(cluster, tmp_path, reset="earliest").start == {KEY: 0}
    (line,) = [record.message for record in caplog.records]
    assert_says(line, "connect-orders has lost", "offsets.retention.minutes", "up to offset 10", "begins at 0", "again")


def test_a_forgotten_group_stops_where_records_would_be_skipped(cluster: Cluster, tmp_path: Path) -> None:
    """With `latest` it fails as for lost offsets, and says where it had got."""
    delivered(cluster, tmp_path)
    with pytest.raises(OffsetsLost) as caught:
        started(cluster, tmp_path)
    assert_says(str(caught.value), "no committed offset any more", "below offset 10", "To go on at 10", "CONTINUE")
    assert "--to-offset 10 --execute" in str(caught.value)
    assert cluster.offsets == {}


def test_a_forgotten_group_goes_on_where_loss_is_accepted(cluster: Cluster, tmp_path: Path) -> None:
    """With `latest` and CONTINUE it goes on where it had got, so nothing is lost or sent again."""
    delivered(cluster, tmp_path)
    query = started(cluster, tmp_path, lost_offsets="CONTINUE")
    assert query.start == {KEY: 10}
    assert [e for e in query.state.events_after(0).events if isinstance(e, OffsetsPassedOver)] == []


def test_what_retention_took_of_a_forgotten_group_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    """Offsets that were neither delivered nor kept are counted as lost."""
    delivered(cluster, tmp_path)
    cluster.topics["orders"].first = 11
    query = started(cluster, tmp_path, reset="earliest")
    assert query.start == {KEY: 11}
    (lost,) = [e for e in query.state.events_after(0).events if isinstance(e, OffsetsPassedOver)]
    assert (lost.start, lost.end) == (10, 11)


def test_a_reset_makes_the_next_start_a_first(cluster: Cluster, tmp_path: Path) -> None:
    """Where an operator removes the offsets, what the connector wrote down of them goes, too."""
    delivered(cluster, tmp_path)
    forget_delivered(tmp_path / "state.db")
    assert started(cluster, tmp_path).start == {KEY: 12}
