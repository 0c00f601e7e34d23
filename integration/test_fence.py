"""Commits that an earlier owner of a connector cannot make any more, on a real broker."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from integration.conftest import TopicFactory
from integration.harness import Sink
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import AnotherInstance, BrokerAway, LeaseLost
from parquet_sink.kafka.client import options
from parquet_sink.kafka.client.options import fence_options
from parquet_sink.kafka.group import manual_offsets
from parquet_sink.kafka.group.committed import Committed, RangePlan
from parquet_sink.kafka.group.offsets import FenceTaken, GroupOffsets
from parquet_sink.kafka.settings import KafkaSettings, Ownership
from parquet_sink.model.instance import Instance
from parquet_sink.process.lease import LeaseFile, clock_ns
from parquet_sink.worker.loop.status import Status
from tests.messages import saying

Make = Callable[..., GroupOffsets]


def fenced(broker: Broker, topic: str) -> KafkaSettings:
    """Settings of a connector of a cluster, in a group of its own."""
    return KafkaSettings(
        (topic,),
        None,
        f"connect-{topic}",
        {"bootstrap.servers": broker.bootstrap_servers},
        owned=Ownership(f"parquet-sink-connect-{topic}"),
    )


@pytest.fixture
def kafka(broker: Broker, topic: TopicFactory) -> KafkaSettings:
    """A topic with a topic-partition, and a group for it."""
    return fenced(broker, topic())


@pytest.fixture
def make(kafka: KafkaSettings) -> Iterator[Make]:
    """Makes the group's offsets as another instance sees them."""
    with ExitStack() as stack:

        def made(settings: KafkaSettings = kafka, **more: object) -> GroupOffsets:
            return stack.enter_context(closing(GroupOffsets(settings, Instance.new(), **more)))  # type: ignore[arg-type]

        yield made


def committed(kafka: KafkaSettings, key: tuple[str, int]) -> Committed:
    """As anybody reads it."""
    with closing(GroupOffsets(replace(kafka, owned=Ownership()), Instance.new())) as anybody:
        return anybody.read([key])[key]


def test_the_older_of_two_owners_commits_nothing_more(kafka: KafkaSettings, make: Make) -> None:
    """The newer one begins where the older one stood; the next commit of that one fails, and moves nothing back."""
    key = (kafka.topics[0], 0)
    older, newer = make(), make()
    older.take_over()
    older.read([key])
    older.claim({key: 3})
    older.commit({key: 5})
    newer.take_over()
    assert newer.read([key])[key].offset == 5
    newer.claim({key: 5})
    newer.commit({key: 9})
    with pytest.raises(AnotherInstance, match="(?i)this instance stops"):
        older.commit({key: 7})
    newer.commit({key: 10})
    assert committed(kafka, key).offset == 10


def test_a_commit_between_look_and_commit_is_refused(kafka: KafkaSettings, make: Make) -> None:
    """What is committed after the older one looked is not overwritten, other than without a fence."""
    key = (kafka.topics[0], 0)
    older, newer = make(), make()
    older.take_over()
    older.read([key])
    older.claim({key: 3})
    looked = older.verify

    def overtaken(keys: object = None) -> None:
        looked([key])
        older.verify = looked  # type: ignore[method-assign]
        newer.take_over()
        newer.read([key])
        newer.claim({key: 3})
        newer.commit({key: 9})

    older.verify = overtaken  # type: ignore[method-assign]
    with pytest.raises(AnotherInstance, match=saying("is now 9", "committed by instance")):
        older.commit({key: 7})
    assert committed(kafka, key).offset == 9
    newer.commit({key: 10})


def test_without_a_fence_it_is_overwritten(kafka: KafkaSettings, make: Make) -> None:
    """What comes between a look and its commit is lost then: so the tests before can fail."""
    key, unfenced = (kafka.topics[0], 0), replace(kafka, owned=Ownership())
    older, newer = make(unfenced), make(unfenced)
    older.read([key])
    older.claim({key: 3})
    looked = older.verify

    def overtaken(keys: object = None) -> None:
        looked([key])
        newer.read([key])
        newer.claim({key: 3})
        newer.commit({key: 9})

    older.verify = overtaken  # type: ignore[method-assign]
    older.commit({key: 7})
    assert committed(kafka, key).offset == 7


def test_who_claims_looks_again_when_it_was_overtaken(kafka: KafkaSettings, make: Make) -> None:
    """Of two that begin at once both may claim, one after the other; the offset that the first committed stays."""
    key = (kafka.topics[0], 0)
    first, second = make(), make()
    for one in (first, second):
        one.take_over()
        one.read([key])
    first.claim({key: 3})
    second.read([key])
    second.claim({key: 3})
    second.commit({key: 5})
    with pytest.raises(AnotherInstance):
        first.commit({key: 4})
    assert committed(kafka, key).offset == 5


class Slow:
    """A producer that sleeps before its first commit, longer than brokers wait for one."""

    def __init__(self, producer: Producer) -> None:
        self._producer, self._slept = producer, False

    def __getattr__(self, name: str) -> object:
        if name == "commit_transaction" and not self._slept:
            self._slept = True
            time.sleep(4)
        return getattr(self._producer, name)


def test_a_transaction_that_took_too_long_is_no_takeover(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers refuse it as they refuse one that was fenced; the offsets are still ours, so it goes on."""
    monkeypatch.setattr(options, "TRANSACTION_MS", 1_000)
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    with Broker(properties=often) as impatient:
        impatient.create_topic("slow")
        kafka, key = fenced(impatient, "slow"), ("slow", 0)
        with closing(GroupOffsets(kafka, Instance.new())) as mine:
            mine.take_over()
            mine.read([key])
            mine.claim({key: 3})
            assert mine._fence is not None
            mine._fence._producer = slow = Slow(mine._fence._producer)  # type: ignore[assignment,arg-type]
            mine.commit({key: 5})
            assert mine._fence._producer is not slow
            assert mine.read([key])[key].offset == 5


def test_who_lost_its_lease_does_not_take_the_fence_back(kafka: KafkaSettings, make: Make, tmp_path: Path) -> None:
    """Once it was taken over, it stops; and what begins without a lease waits."""
    key, lease = (kafka.topics[0], 0), LeaseFile(str(tmp_path / "lease"))
    lease.write(clock_ns() + 60_000_000_000)
    owned = replace(kafka.owned, lease=lease.path)
    older, newer = make(replace(kafka, owned=owned)), make()
    older.take_over()
    older.read([key])
    older.claim({key: 3})
    lease.write(0)
    older.commit({key: 4})
    newer.take_over()
    with pytest.raises(LeaseLost, match="lease is over"):
        older.commit({key: 5})
    newer.read([key])
    newer.claim({key: 4})
    newer.commit({key: 6})
    with pytest.raises(LeaseLost, match="lease is over"):
        make(replace(kafka, owned=owned)).take_over()
    assert committed(kafka, key).offset == 6


def test_what_stands_beside_an_offset_survives(kafka: KafkaSettings, make: Make) -> None:
    """Signature, range and topic id as without a fence, and the leader epoch."""
    key, plan = (kafka.topics[0], 0), RangePlan(3, 8, "interval")
    mine = make(ids={key[0]: "an-id"}, epochs={key: 4})
    mine.take_over()
    mine.read([key])
    mine.claim({key: 3}, {key: plan})
    found = committed(kafka, key)
    assert (found.offset, found.plan, found.topic_id, found.epoch) == (3, plan, "an-id", 4)
    assert found.committer().startswith("instance ")


def test_a_transaction_that_a_dead_owner_left_open_holds_up_nobody(kafka: KafkaSettings, make: Make) -> None:
    """Until it ends brokers tell no offset that it is about; whoever takes the fence ends it at once."""
    key, options = (kafka.topics[0], 0), {"bootstrap.servers": kafka.client["bootstrap.servers"]}
    before = make()
    before.take_over()
    before.read([key])
    before.claim({key: 3})
    dead = Producer({**fence_options(kafka), "log_level": 0})
    dead.init_transactions(15)
    dead.begin_transaction()
    reader = Consumer({**options, "group.id": kafka.group})
    dead.send_offsets_to_transaction([TopicPartition(*key, 7)], reader.consumer_group_metadata(), 15)
    with pytest.raises(KafkaException) as untold:
        reader.committed([TopicPartition(*key)], timeout=2.0)
    assert untold.value.args[0].code() == KafkaError._TIMED_OUT
    reader.close()
    after = make()
    after.take_over()
    assert after.read([key])[key].offset == 3
    after.claim({key: 3})
    after.commit({key: 4})
    assert committed(kafka, key).offset == 4


def test_a_group_with_members_is_left_alone(kafka: KafkaSettings, make: Make) -> None:
    """A transaction would pass: so the group is asked for members first, and the error says who they may be."""
    member = Consumer({"bootstrap.servers": kafka.client["bootstrap.servers"], "group.id": kafka.group})
    member.subscribe([kafka.topics[0]])
    while not member.assignment():
        member.poll(0.2)
    with closing(member), pytest.raises(AnotherInstance, match=saying(kafka.group, "active members", "still runs")):
        make().take_over()


def test_offsets_that_an_operator_sets_stay(kafka: KafkaSettings, make: Make, broker: Broker) -> None:
    """A worker that had the connector before, and slept meanwhile, commits nothing over them."""
    key = (kafka.topics[0], 0)
    broker.produce(key[0], [(None, b"1")] * 10)
    older = make()
    older.take_over()
    older.read([key])
    older.claim({key: 8})
    looked = older.verify
    manual_offsets.alter(kafka, {key: 2})
    older.verify = lambda keys=None: None  # type: ignore[method-assign]
    with pytest.raises(FenceTaken, match=saying(kafka.group, "another instance", "took the connector over")):
        older._verify_and_send({key: 9}, {})
    older.verify = looked  # type: ignore[method-assign]
    with pytest.raises(AnotherInstance, match=saying(kafka.group, "committed by", "an operator")):
        older.commit({key: 9})
    assert manual_offsets.read(kafka) == {key: (2, 10)}
    manual_offsets.reset(kafka)
    assert manual_offsets.read(kafka) == {}


def test_many_offsets_are_one_commit() -> None:
    """However many requests it takes, and also where a broker finds them too large: all of them, or none."""
    with Broker(properties={"message.max.bytes": "30000"}) as strict:
        strict.create_topic("many", 300)
        kafka, wanted = fenced(strict, "many"), {("many", partition): partition for partition in range(300)}
        with closing(GroupOffsets(kafka, Instance.new())) as mine:
            for _ in range(10):  # as the planner does: the first transaction of a cluster has a topic made
                with suppress(BrokerAway):
                    mine.take_over()
                    break
            mine.read(list(wanted))
            mine.claim(wanted, {key: RangePlan(at, at + 1, "x" * 100) for key, at in wanted.items()})
            assert {key: found.offset for key, found in mine.read(list(wanted)).items()} == wanted


def test_a_connector_moves_between_workers(sink: Sink, topic: TopicFactory, tmp_path: Path) -> None:
    """Without a lease nothing is sent; a second worker goes on where the first stood, which fails if it goes on."""
    name, state = topic(), topic(prefix="state", config={"cleanup.policy": "compact"})
    cluster = {"fence": f"parquet-sink-{name}", "state_topic": state}
    mine, others = LeaseFile(str(tmp_path / "mine")), LeaseFile(str(tmp_path / "others"))
    for lease in (mine, others):
        lease.write(clock_ns() + 600_000_000_000)
    first = sink.make(sink.properties(name), cluster={**cluster, "lease": mine.path}).start()
    sink.broker.produce(name, [(None, b'{"id": 1}')] * 5)
    first.until_records(5)
    mine.write(0)
    sink.broker.produce(name, [(None, b'{"id": 2}')] * 5)
    waits = time.monotonic() + 4
    first.until(lambda: time.monotonic() > waits and sum(one.lag for one in first.progress()) == 5)
    assert first.records == 5
    elsewhere = {
        **sink.properties(name),
        "consumer.override.group.id": f"connect-{sink.name}",
        "name": f"{sink.name}-2",
    }
    second = sink.make(elsewhere, cluster={**cluster, "lease": others.path}).start().until_records(5)
    assert [row["id"] for row in sink.rows()] == [1] * 5 + [2] * 5
    assert first.status is Status.RUNNING  # it waits, as one does that may be given its connector again
    mine.write(clock_ns() + 600_000_000_000)
    first.until_ended()
    assert first.failure.kind == "AnotherInstance"
    sink.broker.produce(name, [(None, b'{"id": 3}')] * 5)
    second.until_records(10).stop()
    assert sink.offsets(name) == [15]
