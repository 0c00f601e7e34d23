"""Slots of Spark and connectors come and go; each connector's share follows."""

import pytest

from parquet_sink.spark.slots import most_beside_others
from parquet_sink.worker.loop.slot_shares import LOOK_S, PATIENCE_S, SlotShares


class Cluster:
    """Counts how often it was asked."""

    def __init__(self, slots: int) -> None:
        self.slots, self.asked = slots, 0

    def count(self) -> int:
        self.asked += 1
        return self.slots


def test_executors_that_come_later_are_used() -> None:
    """Spark says 2 before the first executor of a cluster is there, and what there is afterwards."""
    shares, cluster = SlotShares(local=False, cores=None, tells=True), Cluster(2)
    assert shares.changed(1, cluster.count, 0.0)
    assert shares.each == 2
    cluster.slots = 32
    assert not shares.changed(1, cluster.count, LOOK_S / 2)
    assert shares.changed(1, cluster.count, LOOK_S)
    assert shares.each == 32
    cluster.slots = 16
    assert shares.changed(1, cluster.count, 2 * LOOK_S)
    assert shares.each == 16
    assert not shares.changed(1, cluster.count, 3 * LOOK_S)


def test_local_slots_are_asked_for_once_for_each_number_of_connectors() -> None:
    """They are fixed, and the loop has better things to do."""
    shares, spark = SlotShares(local=True, cores=5, tells=True), Cluster(11)
    assert shares.changed(8, spark.count, 0.0)
    assert not shares.changed(8, spark.count, 100.0)
    assert (shares.each, spark.asked) == (4, 1)
    assert shares.changed(10, spark.count, 101.0)
    assert shares.each == 2


def test_too_few_local_slots_are_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """With the cure; and again when it got worse."""
    shares = SlotShares(local=True, cores=4, tells=True)
    for connectors in (11, 12, 13):
        shares.changed(connectors, Cluster(11).count, 0.0)
    assert [message.split(";")[0] for message in caplog.messages] == [
        "12 connectors share 11 slots of Spark, so that some wait for others",
        "13 connectors share 11 slots of Spark, so that some wait for others",
    ]
    assert "--master local[N,4]" in caplog.text


def test_too_few_slots_of_a_cluster_are_told_once_they_had_time_to_come(caplog: pytest.LogCaptureFixture) -> None:
    """Executors that come within a minute are no shortage; a shortage is told once."""
    shares, cluster = SlotShares(local=False, cores=None, tells=True), Cluster(2)
    shares.changed(3, cluster.count, 0.0)
    shares.changed(3, cluster.count, PATIENCE_S - 1)
    assert caplog.messages == []
    for second in range(3):
        shares.changed(3, cluster.count, PATIENCE_S + second * LOOK_S)
    (told,) = caplog.messages
    assert "spark.cores.max" in told


def test_what_runs_files_alone_locally_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """`run` has the slots that its files need, or those that its user chose."""
    SlotShares(local=True, cores=None, tells=False).changed(3, Cluster(1).count, 0.0)
    assert caplog.messages == []


def test_one_alone_takes_four_and_beside_others_one_for_each_core_but_one() -> None:
    """On two cores a backlog leaves the others their turn; more than five change nothing."""
    shares = SlotShares(local=True, cores=2, tells=True)
    found = []
    for connectors in (1, 2, 4, 1):
        assert shares.changed(connectors, Cluster(11).count, 0.0)
        found.append(shares.each)
    assert found == [4, 1, 1, 4]
    assert [most_beside_others(3, cores) for cores in (0, 1, 2, 4, 5, 64)] == [1, 1, 1, 3, 4, 4]
