"""Commits that an earlier owner of a connector cannot make any more, on a real broker."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from integration.conftest import TopicFactory
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.errors import AnotherInstance, BrokerAway, LeaseLost
from parquet_sink.kafka.client.options import fence_options
from parquet_sink.kafka.group import manual_offsets
from parquet_sink.kafka.group.committed import Committed, RangePlan
from parquet_sink.kafka.group.offsets import FenceTaken, GroupOffsets
from parquet_sink.kafka.settings import KafkaSettings, Ownership
from parquet_sink.model.instance import Instance
from parquet_sink.process.lease import LeaseFile, clock_ns

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
    with pytest.raises(AnotherInstance, match="this instance stops|This instance stops"):
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
    with pytest.raises(AnotherInstance, match="is now 9, committed by instance"):
        older.commit({key: 7})
    assert committed(kafka, key).offset == 9
    newer.commit({key: 10})


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


def test_a_transaction_that_took_too_long_is_no_takeover(kafka: KafkaSettings, make: Make) -> None:
    """Brokers refuse it as they refuse one that was fenced; the offsets are still ours, so it goes on."""
    key = (kafka.topics[0], 0)
    mine = make()
    mine.take_over()
    mine.read([key])
    mine.claim({key: 3})
    with_the_same_id = Producer({**fence_options(kafka), "log_level": 0})
    with_the_same_id.init_transactions(15)  # has its epoch raised, as the coordinator does then
    mine.commit({key: 5})
    assert committed(kafka, key).offset == 5


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
    with closing(member), pytest.raises(AnotherInstance, match="the connector still runs in Kafka Connect"):
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
    with pytest.raises(FenceTaken, match=r"another instance took the connector over"):
        older._verify_and_send({key: 9}, {})
    older.verify = looked  # type: ignore[method-assign]
    with pytest.raises(AnotherInstance, match="committed by an operator or another program"):
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
