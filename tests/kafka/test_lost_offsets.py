"""What is said of offsets that Kafka no longer has."""

from parquet_sink.kafka.leader_epochs import offsets_deleted, topic_recreated
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import assert_says

KAFKA = KafkaSettings(group="g", client={"bootstrap.servers": "k:9092"})
COMMAND = "parquet-sink kafka --tool consumer-groups --bootstrap-server k:9092 --group g --topic orders"


def test_offsets_deleted_by_retention_are_counted() -> None:
    """The message names the range that is gone, how many offsets it has, and the cure."""
    message = offsets_deleted(KAFKA, "orders", 3, 10, 50, 60)
    assert_says(message, "Topic orders, topic-partition 3", "offsets 10 to 49", "(40 offsets)", "CONTINUE")
    assert_says(message, "To go on at 50", f"`{COMMAND}:3 --reset-offsets --to-offset 50 --execute`")


def test_a_topic_made_anew_is_named_as_such() -> None:
    """When the group stands past the end the topic was deleted and recreated, which the message says."""
    message = offsets_deleted(KAFKA, "orders", 0, 100, 0, 5)
    assert_says(message, "deleted and recreated", f"`{COMMAND}:0 --reset-offsets --to-earliest --execute`")
    message = topic_recreated(KAFKA, "orders", 0, 7)
    assert_says(message, "Topic orders, topic-partition 0", "offset 7", "deleted and recreated", "policy=CONTINUE")
    assert_says(message, f"`{COMMAND} --reset-offsets --to-earliest --execute`")


def test_a_copied_group_has_a_cure_of_its_own() -> None:
    """Offsets of another topic's id may come from another cluster, and are committed again as they are then."""
    message = str(topic_recreated(KAFKA, "orders", 0, 7))
    assert_says(message, "copied from another cluster", "--to-current", "--to-earliest", "deleted and recreated")
