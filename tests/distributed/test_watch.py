"""What is odd about a group is told with its cure, once in the log, and not any more when it is over."""

from collections.abc import Mapping

import pytest

from parquet_sink.distributed.assignment import MemberInfo
from parquet_sink.distributed.watch import FORGOTTEN_S, LOOK_S, Watch
from parquet_sink.errors import BrokerAway
from tests.messages import assert_says

SESSION_S = 10.0


class World:
    """What a worker sees. away: whether no broker answers."""

    def __init__(self) -> None:
        self.members = [member("a", 1), member("b", 2)]
        self.counts = {"status": 5, "state": 5}
        self.foreign, self.now_s, self.away = 7, 0.0, False
        self.watch = Watch(self._members, self._counts, lambda: self.foreign, SESSION_S, lambda: self.now_s)

    def _members(self) -> list[MemberInfo]:
        if self.away:
            raise BrokerAway("no answer")
        return self.members

    def _counts(self) -> Mapping[str, int]:
        return self.counts

    def told(self, after_s: float = LOOK_S) -> tuple[str, ...]:
        """Looks in between, too."""
        until_s = self.now_s + after_s
        while self.now_s < until_s:
            self.now_s = min(self.now_s + LOOK_S, until_s)
            self.watch.look()
        return self.watch.warnings


def member(worker_id: str, stay: int) -> MemberInfo:
    """stay: a number for each time that it joined."""
    return MemberInfo(worker_id, f"m-{stay}", f"http://{worker_id}", 0)


@pytest.fixture
def world() -> World:
    """Two workers, whose topics Kafka Connect wrote before."""
    return World()


def test_a_group_in_order_is_told_nothing_of(world: World) -> None:
    """Also where a lost worker is still listed beside its next stay, and where Kafka Connect wrote before."""
    assert world.told(60.0) == ()
    world.members = [*world.members, member("a", 3)]
    assert world.told(SESSION_S) == ()
    world.members = world.members[1:]
    assert world.told(60.0) == ()


def test_two_workers_of_one_address_are_told(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Once both have been there for longer than a session, with the keys; and not any more when one has ended."""
    world.members = [*world.members, member("a", 3)]
    (found,) = world.told(SESSION_S + 3 * LOOK_S)
    assert_says(found, "2 workers", "the address a", "rest.advertised.host.name")
    world.told(60.0)
    assert caplog.messages == [found]
    world.members = world.members[1:]
    assert world.told() == ()


def test_topic_partitions_that_are_added_are_told(world: World) -> None:
    """With the topic, the counts and the cure; for as long as it is so."""
    world.told()
    world.counts = {"status": 6, "state": 5}
    (found,) = world.told()
    assert_says(found, "Topic status", "6 topic-partitions", "had 5", "Stop all workers", "delete the topic")
    assert world.told(600.0) == (found,)


def test_kafka_connect_beside_is_told(world: World) -> None:
    """Once it writes tasks, and until it has written none for a while."""
    assert world.told() == ()
    world.foreign = 9
    (found,) = world.told()
    assert "Kafka Connect" in found
    assert world.told(FORGOTTEN_S + LOOK_S) == ()


def test_while_no_broker_answers_things_are_as_they_were(world: World) -> None:
    """Nothing is taken back, and nothing fails."""
    world.foreign = 9
    found = world.told()
    world.away = True
    assert world.told(20.0) == found != ()
