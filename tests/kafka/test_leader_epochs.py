"""Leader epochs: which belongs to an offset, and what the client says of a log that was cut back."""

from parquet_sink.kafka.leader_epochs import Epochs, cut_at, cut_back

KEY = ("orders", 0)
SAID = (
    "Partition log truncation detected at offset 100 (leader epoch 2): broker end offset is 60 (offset leader epoch 0)"
)


def test_an_offset_has_the_epoch_of_its_range() -> None:
    """The one that was seen when the range was planned; what is seen later belongs to later ranges."""
    epochs = Epochs({KEY: 3})
    epochs.accept(KEY)
    assert epochs.held == {}
    epochs.take(KEY)
    epochs.seen[KEY] = 5
    epochs.accept(KEY)
    assert epochs.held == {KEY: 3}


def test_an_epoch_may_be_unknown() -> None:
    """An older cluster tells none, and an operator commits none: then none is held, not an earlier one."""
    epochs = Epochs()
    epochs.hold(KEY, 3)
    epochs.take(KEY)
    epochs.accept(KEY)
    assert epochs.held == {}
    epochs.hold(KEY, 3)
    epochs.hold(KEY, None)
    assert epochs.held == {}


def test_a_topic_that_is_gone_has_no_epoch() -> None:
    """Nothing of it is left for a topic of that name that comes later."""
    epochs = Epochs({KEY: 3})
    epochs.take(KEY)
    epochs.accept(KEY)
    epochs.forget(KEY)
    epochs.accept(KEY)
    assert (epochs.seen, epochs.held) == ({}, {})


def test_only_another_leader_makes_doubtful() -> None:
    """While the leader is the same its log cannot have been cut, and nobody need be asked."""
    epochs = Epochs({KEY: 3})
    assert epochs.doubtful(KEY) == -1
    epochs.hold(KEY, 3)
    assert epochs.doubtful(KEY) == -1
    epochs.seen[KEY] = 4
    assert epochs.doubtful(KEY) == 3


def test_where_a_log_was_cut_is_what_the_client_says() -> None:
    """Only an offset below the one that was asked for is a cut; where the client knows none there is none to tell."""
    assert cut_at(SAID, 100) == 60
    assert cut_at(SAID, 60) is None
    assert cut_at("No epoch found less or equal to offset 100: broker end offset is -1", 100) is None
    assert cut_at("something else", 100) is None


def test_a_cut_names_records_and_both_cures() -> None:
    """An operator hears which records differ, how to have them, and how to go on without."""
    said = str(cut_back("orders", 0, 100, 60))
    for words in ("Topic orders, topic-partition 0", "from 60 to 99 are others", "reset the group's offset to 60"):
        assert words in said
    assert "to go on at 100 without, set connect.ems.lost.offsets.policy=CONTINUE" in said
