"""Leader epochs: which belongs to an offset, and what the client says of a log that was cut back."""

from parquet_sink.kafka.leader_epochs import LeaderEpochs, log_truncated, truncation_offset
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import assert_says

KEY = ("orders", 0)
SAID = (
    "Partition log truncation detected at offset 100 (leader epoch 2): broker end offset is 60 (offset leader epoch 0)"
)
CLIENT_KNOWS_NO_EPOCH = "No epoch found less or equal to offset 100: broker end offset is -1"


def test_an_offset_has_the_epoch_of_its_range() -> None:
    """The one that was seen when the range was planned; what is seen later belongs to later ranges."""
    epochs = LeaderEpochs({KEY: 3})
    epochs.on_accepted(KEY)
    assert epochs.committed == {}
    epochs.on_planned(KEY)
    epochs.current[KEY] = 5
    epochs.on_accepted(KEY)
    assert epochs.committed == {KEY: 3}


def test_an_epoch_may_be_unknown() -> None:
    """An older cluster tells none, and an operator commits none: then none is held, not an earlier one."""
    epochs = LeaderEpochs()
    epochs.set(KEY, 3)
    epochs.on_planned(KEY)
    epochs.on_accepted(KEY)
    assert epochs.committed == {}
    epochs.set(KEY, 3)
    epochs.set(KEY, None)
    assert epochs.committed == {}


def test_a_topic_that_is_gone_has_no_epoch() -> None:
    """Nothing of it is left for a topic of that name that comes later."""
    epochs = LeaderEpochs({KEY: 3})
    epochs.on_planned(KEY)
    epochs.on_accepted(KEY)
    epochs.forget(KEY)
    epochs.on_accepted(KEY)
    assert (epochs.current, epochs.committed) == ({}, {})


def test_only_another_leader_makes_doubtful() -> None:
    """While the leader is the same its log cannot have been cut, and nobody need be asked."""
    epochs = LeaderEpochs({KEY: 3})
    assert epochs.to_verify(KEY) == -1
    epochs.set(KEY, 3)
    assert epochs.to_verify(KEY) == -1
    epochs.current[KEY] = 4
    assert epochs.to_verify(KEY) == 3


def test_where_a_log_was_cut_is_what_the_client_says() -> None:
    """Only an offset below the one that was asked for is a cut; where the client knows none there is none to tell."""
    assert truncation_offset(SAID, 100) == 60
    assert truncation_offset(SAID, 60) is None
    assert truncation_offset(CLIENT_KNOWS_NO_EPOCH, 100) is None
    assert truncation_offset("something else", 100) is None


def test_a_cut_names_records_and_both_cures() -> None:
    """An operator hears which records differ, how to have them, and how to go on without."""
    said = log_truncated(KafkaSettings(group="g"), "orders", 0, 100, 60)
    assert_says(said, "Topic orders, topic-partition 0", "from 60 to 99", "reset the group's offset to 60")
    assert_says(said, "--group g --topic orders:0 --reset-offsets --to-offset 60 --execute")
    assert_says(said, "go on at 100", "connect.ems.lost.offsets.policy=CONTINUE")
