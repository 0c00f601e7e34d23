"""distributed/membership.py with a real coordinator: workers that join, leave, are killed, frozen and come back."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from integration.cluster_faults.workers import linked_broker
from integration.conftest import TopicFactory
from integration.group_member import timing
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import HOST
from parquet_sink.distributed.assignment import MemberInfo
from parquet_sink.distributed.membership import GroupMembers, Membership
from parquet_sink.distributed.watch import Watch
from parquet_sink.errors import SetupError
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.process.lease import LeaseFolder, holds
from tests.messages import assert_says

SESSION_MS = 6_000
"""The shortest that brokers allow as they come."""
LONG_MS = 30_000
"""For what must not wait for a session: this long, on a busy machine, too."""
LOOK_S = 0.02


def until(check: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Waits; fails when it takes too long."""
    deadline = time.monotonic() + timeout_s
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(LOOK_S)


@dataclass
class Worker:
    """A process that is a member."""

    worker_id: str
    process: "subprocess.Popen[str]"
    leases: LeaseFolder
    output: Path

    @property
    def states(self) -> list[tuple[str, str]]:
        """Member id, and `leads` or `follows`, since it began."""
        lines = self.output.read_text().splitlines()
        return [(line.split()[0], line.split()[1]) for line in lines] or [("-", "follows")]

    @property
    def member_id(self) -> str:
        return self.states[-1][0]

    @property
    def leads(self) -> bool:
        return self.states[-1][1] == "leads"

    def has_lease(self) -> bool:
        return self.had(self.member_id)

    def had(self, member_id: str) -> bool:
        """Whether the lease of one of its member ids goes on."""
        return holds(self.leases.path(member_id))

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)


class Group:
    """A group of its own, with an observer."""

    def __init__(self, broker: Broker, topic: str, folder: Path, stack: ExitStack) -> None:
        self.name, self.topic = f"group-{uuid.uuid4().hex[:8]}", topic
        self.kafka = KafkaSettings((topic,), None, self.name, {"bootstrap.servers": broker.bootstrap_servers})
        self._folder, self._stack, self._observer = folder, stack, GroupMembers(self.kafka)
        self._servers = broker.bootstrap_servers

    def start(self, worker_id: str, servers: str = "", session_ms: int = SESSION_MS) -> Worker:
        """servers: by which it reaches the broker, where not as others do."""
        name = f"{worker_id}-{uuid.uuid4().hex[:4]}"
        output = self._folder / f"{name}.out"
        arguments = [servers or self._servers, self.name, self.topic, worker_id, str(session_ms), str(self._folder)]
        command = [sys.executable, "-m", "integration.group_member", *arguments]
        with output.open("w") as file:
            process = self._stack.enter_context(subprocess.Popen(command, stdout=file, text=True))
        self._stack.callback(process.kill)
        return Worker(worker_id, process, LeaseFolder(self._folder), output)

    def joined(self, worker_id: str, servers: str = "", session_ms: int = SESSION_MS) -> Worker:
        """A worker that has its lease."""
        worker = self.start(worker_id, servers, session_ms)
        until(worker.has_lease, 30, f"{worker_id} has no lease")
        return worker

    def listed(self) -> list[MemberInfo]:
        return self._observer.listed()

    def has(self, member_id: str) -> bool:
        return any(one.member_id == member_id for one in self.listed())

    def lapses(self, workers: list[Worker], seconds: float, done: Callable[[], bool] = lambda: False) -> list[str]:
        """Who had no lease at some time in so many seconds, or until something is done."""
        found: list[str] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not done():
            found += [one.worker_id for one in workers if not one.has_lease()]
            time.sleep(LOOK_S)
        return found


@pytest.fixture
def group(broker: Broker, topic: TopicFactory, tmp_path: Path) -> Iterator[Group]:
    """On the shared broker."""
    with ExitStack() as stack:
        yield Group(broker, topic(prefix="config"), tmp_path, stack)


def in_this_process(
    group: Group,
    worker_id: str,
    session_ms: int = SESSION_MS,
    holds_back: Callable[[Sequence[MemberInfo]], bool] = lambda members: False,
) -> Membership:
    """A member that begins."""
    return Membership(
        group.kafka,
        config_topic=group.topic,
        worker_id=worker_id,
        url=f"http://{worker_id}/",
        timing=timing(session_ms),
        lease=lambda member_id, until_ns: None,
        position=lambda: 7,
        holds_back=holds_back,
    )


def test_a_worker_that_joins_disturbs_nobody(group: Group) -> None:
    """The leader leads on, all keep their member ids, and no lease lapses; the observer sees who is there."""
    first = group.joined("a:1")
    second = group.joined("b:2")
    before = first.states, second.states
    third = group.start("c:3")
    assert group.lapses([first, second], 30, done=third.has_lease) == []
    assert (first.states, second.states) == before
    assert (first.leads, second.leads, third.leads) == (True, False, False)
    assert sorted((one.worker_id, one.member_id, one.url) for one in group.listed()) == [
        (one.worker_id, one.member_id, f"http://{one.worker_id}/") for one in (first, second, third)
    ]


def test_the_next_leader_comes_after_the_lease_of_a_killed_one(group: Group) -> None:
    """When the coordinator has removed it, its lease is over; the other's does not lapse meanwhile."""
    first, second = group.joined("a:1"), group.joined("b:2")
    first.send(signal.SIGKILL)
    member_id = first.member_id
    assert group.lapses([second], 30, done=lambda: not group.has(member_id)) == []
    assert not first.had(member_id)
    assert group.lapses([second], 30, done=lambda: second.leads) == []
    assert second.leads


def test_a_frozen_worker_keeps_its_membership_as_long_as_its_lease(group: Group) -> None:
    """It is removed after the lease; when it goes on it has no lease until it is a member again, by another id."""
    first, second = group.joined("a:1"), group.joined("b:2")
    first.send(signal.SIGSTOP)
    member_id = first.member_id
    assert first.had(member_id)
    until(lambda: not group.has(member_id), SESSION_MS / 1000 + 5, "it is not removed")
    assert not first.had(member_id)
    until(lambda: second.leads, 10, "nobody leads")
    first.send(signal.SIGCONT)
    until(lambda: first.member_id not in {member_id, "-"}, 20, "it is not back")
    until(first.has_lease, 20, "it has no lease")
    assert not first.leads
    assert group.has(first.member_id)


@pytest.mark.slow
def test_a_worker_that_was_cut_off_costs_nobody_its_lease(tmp_path: Path) -> None:
    """What it asked for as the member that was removed is answered late, and must not make it join twice.

    The group would wait for a member that nobody is, until its session is over.
    """
    with linked_broker() as (broker, (link, *_)), ExitStack() as stack:
        broker.create_topic("configs")
        group = Group(broker, "configs", tmp_path, stack)
        first, second = group.joined("a:1"), group.joined("b:2")
        cut = group.joined("c:3", f"{HOST}:{link.port}")
        for _ in range(3):
            member_id = cut.member_id
            link.cut()
            assert group.lapses([first, second], 2.5 * SESSION_MS / 1000) == []
            link.mend()
            back = partial(_is_back, cut, member_id)
            assert group.lapses([first, second], 2 * SESSION_MS / 1000, done=back) == []
            assert back()
            assert len(group.listed()) == 3
            assert group.lapses([first, second], SESSION_MS / 1000) == []


def _is_back(worker: Worker, former: str) -> bool:
    return worker.member_id not in {former, "-"} and worker.has_lease()


def test_a_worker_that_is_restarted_at_once_costs_nobody_its_lease(group: Group) -> None:
    """Its earlier stay is lost and listed still: the rebalance that waits for its session is shorter than a lease."""
    first, second, third = group.joined("a:1"), group.joined("b:2"), group.joined("c:3")
    third.send(signal.SIGKILL)
    again = in_this_process(group, third.worker_id)
    assert group.lapses([first, second], 40, done=lambda: again.now().lease_until_ns > 0) == []
    there = {one.member_id for one in again.members()}
    assert there == {first.member_id, second.member_id, again.now().member_id}
    again.leave()


def test_a_worker_may_join_later(group: Group) -> None:
    """It is told who is there, and is nobody's member until it is to join."""
    first, ready, seen = group.joined("a:1"), threading.Event(), list[str]()

    def holds_back(members: Sequence[MemberInfo]) -> bool:
        seen[:] = [one.worker_id for one in members]
        return not ready.is_set()

    later = in_this_process(group, "b:2", holds_back=holds_back)
    until(lambda: seen == [first.worker_id], 10, "it does not know who is there")
    time.sleep(1)
    assert later.now().member_id == ""
    assert [one.worker_id for one in group.listed()] == [first.worker_id]
    ready.set()
    until(lambda: later.now().lease_until_ns > 0, 20, "it does not join")
    later.leave()


def test_who_leaves_is_gone_at_once(group: Group) -> None:
    """Its lease ends first, and the other leads without waiting for a session."""
    first, second = group.joined("a:1", session_ms=LONG_MS), group.joined("b:2", session_ms=LONG_MS)
    member_id = first.member_id
    first.send(signal.SIGTERM)
    left_at = time.monotonic()
    assert first.process.wait(LONG_MS / 1000) == 0
    assert not first.had(member_id)
    assert group.lapses([second], LONG_MS / 1000, done=lambda: second.leads) == []
    assert second.leads
    assert time.monotonic() - left_at < LONG_MS / 1000


@pytest.mark.parametrize("gap_s", [0.0, 0.3])
def test_who_leave_together_are_gone_at_once(group: Group, gap_s: float) -> None:
    """None stays for its session, the follower neither: its client would not leave when it is merely closed."""
    leaving = [group.joined("a:1", session_ms=LONG_MS), group.joined("b:2", session_ms=LONG_MS)]
    for worker in sorted(leaving, key=lambda one: not one.leads):
        worker.send(signal.SIGTERM)
        time.sleep(gap_s)
    assert [worker.process.wait(LONG_MS / 1000) for worker in leaving] == [0, 0]
    assert group.listed() == []


@pytest.mark.in_turn
def test_a_coordinator_that_was_away_finds_all_again(tmp_path: Path) -> None:
    """Frozen for less than a session it costs no membership. After a longer time all join anew, and one leads."""
    with ExitStack() as stack:
        own = stack.enter_context(Broker())
        own.create_topic("config")
        group = Group(own, "config", tmp_path, stack)
        workers = [group.joined("a:1"), group.joined("b:2")]
        before = [one.states for one in workers]
        os.kill(own.pid, signal.SIGSTOP)
        time.sleep(SESSION_MS / 3000)
        os.kill(own.pid, signal.SIGCONT)
        assert group.lapses(workers, SESSION_MS / 1000) == []
        assert [one.states for one in workers] == before
        own.stop()
        until(lambda: [one.member_id for one in workers] == ["-", "-"], 20, "a session without end")
        assert not any(one.had(states[-1][0]) for one, states in zip(workers, before, strict=True))
        own.start()
        until(lambda: all(one.has_lease() for one in workers), 60, "no lease")
        assert sorted(one.member_id for one in group.listed()) == sorted(one.member_id for one in workers)
        until(lambda: sum(one.leads for one in workers) == 1, 10, "no leader")


def refusal(membership: Membership) -> str:
    """Why it ended."""
    until(lambda: membership._failed is not None, 20, "it goes on")
    membership.leave()
    with pytest.raises(SetupError) as refused:
        membership.now()
    return str(refused.value)


def test_a_group_of_others_is_refused(group: Group) -> None:
    """Members with another protocol: the message names the key, what it is, and the cure."""
    other = Consumer({"bootstrap.servers": str(group.kafka.client["bootstrap.servers"]), "group.id": group.name})
    joined: list[object] = []
    other.subscribe([group.topic], on_assign=lambda *assigned: joined.append(assigned))
    while not joined:
        other.poll(0.1)
    words = refusal(in_this_process(group, "a:1"))
    other.close()
    assert_says(words, f"[group.id] {group.name}", "members of another kind", "Stop", "group.id of its own")


def test_a_session_that_brokers_do_not_allow_is_refused(group: Group) -> None:
    """The message names the key, its value and the brokers' keys."""
    words = refusal(in_this_process(group, "a:1", 1_000))
    assert_says(words, "[session.timeout.ms] 1000", "not allow", "group.min.session.timeout.ms")


def test_what_it_commits_is_how_far_the_worker_read(group: Group) -> None:
    """So that Kafka's tools show how much of the config topic the last worker to commit has still to read."""
    membership = in_this_process(group, "a:1")
    until(lambda: membership.now().lease_until_ns > 0, 20, "no lease")
    assert [one.worker_id for one in membership.members()] == ["a:1"]
    reader = Consumer({"bootstrap.servers": str(group.kafka.client["bootstrap.servers"]), "group.id": group.name})
    (found,) = reader.committed([TopicPartition(group.topic, 0)], timeout=10)
    reader.close()
    assert (found.offset, found.metadata) == (7, "a:1")
    membership.leave()
    assert membership.now().member_id == ""
    assert membership.members() == []


def test_two_workers_of_one_name_are_told(group: Group) -> None:
    """Both stay members, so the coordinator lists them; after longer than a session that is odd."""
    now_s = [0.0]
    watch = Watch(group.listed, dict, lambda: -1, SESSION_MS / 1_000, lambda: now_s[0])
    one, other = group.joined("twin"), group.joined("twin")
    for now_s[0] in (0.0, 100.0):
        watch.look()
    (found,) = watch.warnings
    assert_says(found, "2 workers", "address twin")
    other.send(signal.SIGTERM)
    until(lambda: len(group.listed()) == 1, 30, "it is still listed")
    watch.look()
    assert watch.warnings == ()
    assert one.has_lease()
