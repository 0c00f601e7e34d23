"""The group's offsets: read, signed, committed, never backwards, and another hand noticed."""

import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from parquet_sink.errors import AnotherInstance, BrokerAway, KafkaFailed, KafkaRefused, LeaseLost
from parquet_sink.kafka.client import options as client_options
from parquet_sink.kafka.group.committed import NO_IDS, TOO_LARGE, Committed, RangePlan, commit_metadata
from parquet_sink.kafka.group.offsets import GroupOffsets
from parquet_sink.kafka.settings import KafkaSettings, Ownership
from parquet_sink.model.instance import Instance
from parquet_sink.model.partitions import PartitionKey
from tests.messages import saying

KAFKA = KafkaSettings(topics=("orders",), group="connect-orders", client={"bootstrap.servers": "localhost:9092"})
ME = Instance("me", "host-a", 1, "2026-01-01T00:00:00Z")
OTHER = Instance("other", "host-b", 2, "2026-01-02T00:00:00Z")


class Group:
    """A fake of the broker's side: what is committed, by whom; and what goes wrong next."""

    def __init__(self) -> None:
        self.committed_offsets: dict[PartitionKey, tuple[int, str]] = {}
        self.commits: list[dict[PartitionKey, int]] = []
        self.error: KafkaError | None = None
        self.answer_lost = False
        self.events: list[SimpleNamespace] = []
        self.most_bytes = 10**9
        self.too_large = KafkaError.INVALID_COMMIT_OFFSET_SIZE

    def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self._fail()
        found = []
        for tp in asked:
            offset, signed = self.committed_offsets.get((tp.topic, tp.partition), (-1001, ""))
            found.append(TopicPartition(tp.topic, tp.partition, offset, signed))
        return found

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        assert not asynchronous
        self._fail()
        if sum(len(tp.metadata or "") for tp in offsets) > self.most_bytes:
            raise KafkaException(KafkaError(self.too_large))
        self.commits.append({(tp.topic, tp.partition): tp.offset for tp in offsets})
        self.committed_offsets |= {(tp.topic, tp.partition): (tp.offset, tp.metadata) for tp in offsets}
        if self.answer_lost:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return offsets

    def _fail(self) -> None:
        if self.error is not None:
            raise KafkaException(self.error)

    def poll(self, timeout: float) -> SimpleNamespace | None:
        """The next event."""
        return self.events.pop(0) if self.events else None

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def group() -> Group:
    """A group without offsets."""
    return Group()


@pytest.fixture
def make(group: Group, monkeypatch: pytest.MonkeyPatch) -> Callable[..., GroupOffsets]:
    """Makes the offsets of the group as an instance sees them."""
    monkeypatch.setattr(client_options, "build", lambda kind, settings, *more: group)
    return lambda instance=ME, ids=NO_IDS, kafka=KAFKA: GroupOffsets(kafka, instance, ids)


def test_offsets_are_read_and_absent_ones_are_left_out(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """A topic-partition without a commit is absent from what is read."""
    group.committed_offsets["orders", 0] = (7, "")
    assert make().read([("orders", 0), ("orders", 1)]) == {("orders", 0): Committed(7, "")}
    assert make().read([]) == {}


def test_a_commit_is_signed(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """Beside each offset stands who committed it, within the broker's limit of 4,096 bytes."""
    make().commit({("orders", 0): 7})
    offset, signed = group.committed_offsets["orders", 0]
    assert offset == 7
    assert json.loads(signed) == {
        "by": "parquet-sink", "id": "me", "host": "host-a", "pid": 1, "started": "2026-01-01T00:00:00Z",
        "plan": None, "topic_id": None,
    }  # fmt: skip
    instance, plan = (
        Instance("x" * 12, "h" * 253, 2**31, "2026-01-01T00:00:00Z"),
        RangePlan(2**62, 2**63, "end_of_range"),
    )
    longest = commit_metadata(instance, plan, "A" * 22)
    assert len(longest) < 4_096


def test_a_commit_names_its_topic(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """Beside each offset stands the id of its topic, as it is known when the offset is sent."""
    ids = {"orders": "first"}
    mine = make(ids=ids)
    mine.claim({("orders", 0): 7, ("items", 0): 3})
    ids["items"] = "late"
    mine.commit({("items", 0): 4})
    found = mine.read([("orders", 0), ("items", 0)])
    assert {key: one.topic_id for key, one in found.items()} == {("orders", 0): "first", ("items", 0): "late"}


def test_advance_keeps_the_topic(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """What another process of the instance commits belongs to the topic that the last offset belonged to."""
    make(ids={"orders": "first"}).commit({("orders", 0): 7})
    make().advance({("orders", 0): 9}, {})
    found = make().read([("orders", 0)])["orders", 0]
    assert (found.offset, found.topic_id) == (9, "first")


def test_what_is_ahead_is_what_a_commit_would_send(make: Callable[..., GroupOffsets]) -> None:
    """Who asks first knows for which topics a commit counts."""
    mine = make()
    mine.commit({("orders", 0): 7})
    assert mine.uncommitted({("orders", 0): 7, ("orders", 1): 0}) == {("orders", 1): 0}


def test_commits_never_go_backwards(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """A lower or equal offset is not sent, whatever else is committed with it."""
    mine = make()
    mine.commit({("orders", 0): 7, ("orders", 1): 3})
    mine.commit({("orders", 0): 6, ("orders", 1): 4})
    mine.commit({("orders", 0): 7})
    assert group.commits == [{("orders", 0): 7, ("orders", 1): 3}, {("orders", 1): 4}]


def test_another_instance_is_named(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """When another instance took the group over, this one stops, and says who, where and what to do."""
    mine = make()
    mine.commit({("orders", 0): 7})
    other = make(OTHER)
    other.read([("orders", 0)])
    other.claim({("orders", 0): 7}, {})
    with pytest.raises(AnotherInstance) as found:
        mine.commit({("orders", 0): 9})
    for words in (
        "connect-orders",
        "topic orders, topic-partition 0",
        "other",
        "host-b",
        "process 2",
        "Run each connector once",
    ):
        assert words in str(found.value)
    assert found.value.topic_partition == ("orders", 0)
    assert group.committed_offsets["orders", 0] == (7, commit_metadata(OTHER))


def test_what_changed_since_it_was_read_is_not_taken_over(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """Offsets that another hand set, or that vanished, while a start was looked up must be looked up again."""
    mine = make()
    for before, now in [(None, (3, "")), ((7, ""), (3, "")), ((7, ""), (7, commit_metadata(OTHER))), ((7, ""), None)]:
        group.committed_offsets = {} if before is None else {("orders", 0): before}
        mine.read([("orders", 0)])
        group.committed_offsets = {} if now is None else {("orders", 0): now}
        with pytest.raises(BrokerAway, match=saying("orders, topic-partition 0", "by another hand")):
            mine.claim({("orders", 0): 7})
        assert group.commits == []
        mine.read([("orders", 0)])
        mine.claim({("orders", 0): 7})
        group.commits.clear()


def test_offsets_of_others_are_neither_recommitted_nor_reset(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """Only what still carries our signature is written again; what is gone may be set anew, not renewed."""
    mine = make()
    mine.commit({("orders", 0): 7})
    group.committed_offsets["orders", 0] = (3, "")
    for act in (mine.recommit, mine.reset):
        with pytest.raises(AnotherInstance, match=saying("was 7", "now 3")):
            act({("orders", 0): 7})
    del group.committed_offsets["orders", 0]
    with pytest.raises(KafkaFailed, match="is gone"):
        mine.recommit({("orders", 0): 7})
    mine.reset({("orders", 0): 0})
    assert group.committed_offsets["orders", 0] == (0, commit_metadata(ME))


def test_an_offset_that_stays_where_it_was_is_not_told_as_moved(
    group: Group, make: Callable[..., GroupOffsets]
) -> None:
    """A reset to where the group stands, or a newer instance, changes whose offset it is and not the offset."""
    mine = make()
    mine.claim({("orders", 0): 7}, {})
    group.committed_offsets["orders", 0] = (7, "")
    with pytest.raises(AnotherInstance, match=saying("still 7", "operator", "another program")):
        mine.verify()


def test_the_newer_hand_wins(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """An instance that starts later claims the group and goes on committing while the older one ends."""
    older, newer = make(), make(OTHER)
    older.commit({("orders", 0): 7})
    newer.read([("orders", 0)])
    newer.claim({("orders", 0): 7}, {})
    newer.commit({("orders", 0): 9})
    with pytest.raises(AnotherInstance):
        older.verify()
    assert group.committed_offsets["orders", 0][0] == 9


def test_a_worker_without_a_lease_is_no_second_instance(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """What another one of its cluster signed is not this one's failure: it waits to hear what is still its own."""
    mine = make(kafka=replace(KAFKA, owned=Ownership(lease="/no/such/lease")))
    mine.claim({("orders", 0): 7}, {})
    group.committed_offsets["orders", 0] = (7, commit_metadata(OTHER))
    with pytest.raises(LeaseLost, match="lease is over"):
        mine.verify()


def test_offsets_reset_by_an_operator_are_noticed(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """A reset while the connector runs is not fought: the connector stops and says so."""
    mine = make()
    mine.claim({("orders", 0): 7}, {})
    group.committed_offsets["orders", 0] = (0, "")
    with pytest.raises(AnotherInstance, match=saying("was 7", "now 0", "operator", "another program")):
        mine.verify()


def test_a_commit_whose_answer_was_lost_is_not_another_instance(
    group: Group, make: Callable[..., GroupOffsets]
) -> None:
    """A commit that timed out but was made is our own: the next one goes through."""
    mine = make()
    mine.commit({("orders", 0): 7})
    group.answer_lost = True
    with pytest.raises(BrokerAway):
        mine.commit({("orders", 0): 9})
    group.answer_lost = False
    mine.verify()
    mine.commit({("orders", 0): 9})
    assert group.committed_offsets["orders", 0] == (9, commit_metadata(ME))


def test_a_range_under_way_is_put_down(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """Beside the offset stands the range that begins there, and once that is done it is gone."""
    mine = make()
    mine.claim({("orders", 0): 7, ("orders", 1): 3}, {("orders", 0): RangePlan(0, 20, "records")})
    found = mine.read([("orders", 0), ("orders", 1)])
    assert {key: one.plan for key, one in found.items()} == {
        ("orders", 0): RangePlan(0, 20, "records"),
        ("orders", 1): None,
    }
    mine.verify()
    mine.commit({("orders", 0): 20})
    assert mine.read([("orders", 0)])[("orders", 0)].plan is None


@pytest.mark.parametrize(
    "signed",
    ["", "null", "[]", "7", "x", '{"id": "a", "topic_id": "b"}', '{"by": "parquet-sink", "plan": 7, "topic_id": 7}'],
)
def test_odd_metadata_is_another_program(signed: str) -> None:
    """Whatever stands beside an offset, naming its author and looking for a range does not fail."""
    assert Committed(1, signed).committer() == "an operator or another program"
    assert Committed(1, signed).plan is None
    assert Committed(1, signed).topic_id == ""
    assert not Committed(1, signed).is_from(ME)


def test_a_range_that_ends_before_the_offset_is_none() -> None:
    """A plan that an offset has passed already is not flushed again."""
    assert Committed(20, commit_metadata(ME, RangePlan(0, 20, "size"))).plan is None
    assert Committed(19, commit_metadata(ME, RangePlan(0, 20, "size"))).plan == RangePlan(0, 20, "size")


def test_advance_commits_for_another_process_of_the_instance(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """The program may commit what its own query had accepted, only upwards."""
    make().commit({("orders", 0): 7, ("orders", 1): 9})
    make().advance({("orders", 0): 8, ("orders", 1): 5}, {})
    assert {key: offset for key, (offset, _) in group.committed_offsets.items()} == {("orders", 0): 8, ("orders", 1): 9}


def test_advance_puts_down_what_is_left_of_a_range(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """After a failure the rest of the range stands beside the offset, so that the same files come again."""
    make().commit({("orders", 0): 7, ("orders", 1): 9})
    rest = {("orders", 0): RangePlan(0, 30, "records"), ("orders", 1): RangePlan(0, 30, "records")}
    make().advance({("orders", 0): 8, ("orders", 1): 9}, rest)
    found = make().read([("orders", 0), ("orders", 1)])
    assert {key: one.plan for key, one in found.items()} == {
        ("orders", 0): RangePlan(0, 30, "records"),
        ("orders", 1): None,
    }


def test_advance_leaves_the_offsets_of_others_alone(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """What another hand committed since stays as it is, and is named."""
    make(OTHER).commit({("orders", 0): 3})
    with pytest.raises(AnotherInstance, match=saying("orders, topic-partition 0", "by instance other ", "stays")):
        make().advance({("orders", 0): 8}, {})
    assert group.committed_offsets["orders", 0][0] == 3


@pytest.mark.parametrize("code", [KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION, KafkaError._SSL])
def test_refusals_are_final(group: Group, make: Callable[..., GroupOffsets], code: int) -> None:
    """What waiting does not cure is not taken for a broker that is away, and names the cure."""
    group.error = KafkaError(code)
    for act in (lambda: make().read([("orders", 0)]), lambda: make().claim({("orders", 0): 1}, {})):
        with pytest.raises(KafkaRefused, match="connect-orders.*(Check|Give)") as found:
            act()
        assert not isinstance(found.value, BrokerAway)


def test_who_may_not_see_the_group_is_told_so(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """The client itself gets no answer then; only an event says why, among others."""
    codes = (KafkaError._TRANSPORT, KafkaError.GROUP_AUTHORIZATION_FAILED)
    group.events = [SimpleNamespace(error=lambda code=code: KafkaError(code)) for code in codes]
    group.error = KafkaError(KafkaError._WAIT_COORD)
    with pytest.raises(
        KafkaRefused, match=saying("(ACL) Describe on group connect-orders", "comes with Read", "kafka-acls")
    ):
        make().read([("orders", 0)])
    with pytest.raises(BrokerAway):
        make().read([("orders", 0)])


@pytest.mark.parametrize("code", [KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.COORDINATOR_NOT_AVAILABLE])
def test_a_broker_that_is_away_may_come_back(group: Group, make: Callable[..., GroupOffsets], code: int) -> None:
    """No answer is BrokerAway, and after it comes back committing goes on."""
    group.error = KafkaError(code)
    mine = make()
    for act in (lambda: mine.read([("orders", 0)]), lambda: mine.commit({("orders", 0): 1})):
        with pytest.raises(BrokerAway, match="connect-orders"):
            act()
    group.error = None
    mine.commit({("orders", 0): 1})
    assert group.commits == [{("orders", 0): 1}]


def test_an_error_of_one_topic_partition_is_an_error(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """A refusal inside an answer that came is not passed over."""

    class Bad:
        topic, partition, offset, metadata = "orders", 0, -1001, None
        error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    group.commit = lambda offsets, asynchronous: [Bad()]  # type: ignore[method-assign,assignment,misc,return-value,list-item]
    with pytest.raises(KafkaFailed, match=saying("connect-orders", "cannot be committed")):
        make().claim({("orders", 0): 7}, {})
    group.committed = lambda asked, timeout: [Bad()]  # type: ignore[method-assign,assignment,misc,return-value,list-item]
    with pytest.raises(KafkaFailed, match=saying("connect-orders", "cannot be read")):
        make().read([("orders", 0)])


MANY = {("orders", partition): partition for partition in range(3_000)}


def test_many_offsets_are_committed_in_pieces(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """One commit stays well below a broker's limit of a message, and all offsets arrive, each once."""
    group.most_bytes = 1_000_000
    make(ids={"orders": "A" * 22}).claim(MANY)
    assert {key: offset for key, (offset, _) in group.committed_offsets.items()} == MANY
    assert sum(map(len, group.commits)) == len(MANY)
    assert len(group.commits) == 3


@pytest.mark.parametrize("too_large", sorted(TOO_LARGE))
def test_a_broker_with_a_smaller_limit_gets_smaller_pieces(
    too_large: int, group: Group, make: Callable[..., GroupOffsets]
) -> None:
    """A commit that the broker finds too large is sent again in halves, whatever it calls that."""
    group.most_bytes, group.too_large = 10_000, too_large
    make().claim(MANY)
    assert {key: offset for key, (offset, _) in group.committed_offsets.items()} == MANY


def test_an_offset_that_alone_is_too_large_is_a_failure(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """Halving ends with a single offset; then the broker's answer is told."""
    group.most_bytes = 10
    with pytest.raises(KafkaFailed, match=saying("connect-orders", "cannot be committed")):
        make().claim(MANY)
    assert group.commits == []


def test_pieces_before_a_failure_are_ours(group: Group, make: Callable[..., GroupOffsets]) -> None:
    """When the broker becomes unavailable between two pieces, a later look finds no other hand in the first."""
    mine, send = make(), group.commit

    def once(offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
        done = send(offsets, asynchronous)
        group.error = KafkaError(KafkaError._TIMED_OUT)
        return done

    group.commit = once  # type: ignore[method-assign]
    with pytest.raises(BrokerAway):
        mine.commit(MANY)
    group.error = None
    mine.verify()
    group.commit = send  # type: ignore[method-assign]
    mine.commit(MANY)
    assert {key: offset for key, (offset, _) in group.committed_offsets.items()} == MANY
