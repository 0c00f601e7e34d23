"""What is said of offsets that Kafka no longer has."""

from parquet_sink.kafka.leader_epochs import offsets_deleted, topic_recreated


def test_offsets_deleted_by_retention_are_counted() -> None:
    """The message names the range that is gone, how many offsets it has, and the cure."""
    message = str(offsets_deleted("orders", 3, 10, 50, 60))
    for words in ("Topic orders, topic-partition 3", "offsets 10 to 49", "(40 offsets)", "To go on at 50", "CONTINUE"):
        assert words in message


def test_a_topic_made_anew_is_named_as_such() -> None:
    """When the group stands past the end the topic was deleted and recreated, which the message says."""
    assert "deleted and recreated" in str(offsets_deleted("orders", 0, 100, 0, 5))
    for words in ("Topic orders, topic-partition 0", "offset 7", "deleted and recreated", "policy=CONTINUE"):
        assert words in str(topic_recreated("orders", 0, 7))
