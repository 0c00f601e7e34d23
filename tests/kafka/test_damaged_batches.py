"""What is told of batches that cannot be read; `integration/test_run_unreadable.py` reads around real ones."""

from confluent_kafka import KafkaError

from parquet_sink.kafka.damaged_batches import DamagedBatch
from parquet_sink.kafka.ranges_ahead import is_damage, is_trouble, until_damage
from tests.kafka.messages import Message
from tests.messages import assert_says

BAD = KafkaError(KafkaError._BAD_COMPRESSION, "Decompression failed")
CRC = KafkaError(KafkaError._BAD_MSG, "MessageSet at offset 5 failed CRC32C check")
ANSWER = KafkaError(KafkaError._BAD_MSG, "Local: Bad message format")


def test_damage_of_records_is_told_from_an_answer_that_cannot_be_read() -> None:
    """A batch that cannot be decompressed, or has another checksum, is left to the range's own reader."""
    assert [is_damage(error) for error in (BAD, CRC, ANSWER)] == [True, True, False]
    assert [is_trouble(error) for error in (BAD, CRC, ANSWER)] == [True, True, False]


def test_nothing_behind_a_damaged_batch_counts_as_read() -> None:
    """What the client gives behind it, where it lost its place, is no record and no end of the range."""
    messages = [Message(4, b"v"), Message(5, None, CRC), Message(900, b"v"), Message(901, None, ANSWER)]
    assert [message.offset() for message in until_damage(messages)] == [4, 5]  # type: ignore[arg-type]
    assert until_damage(messages[:1]) == messages[:1]  # type: ignore[arg-type]


def test_the_reason_names_the_offsets_and_the_key_of_the_bound() -> None:
    """One offset, or several, with what the client says."""
    damage = DamagedBatch("orders", 0, 5, "Decompression failed.")
    key = "[consumer.override.receive.message.max.bytes]=2147483647"
    assert_says(damage.describe(5, 6, "2147483647"), "with offset 5 is", key, "(Decompression failed)")
    assert "with offsets 7 to 9 is" in damage.describe(7, 10, "1")
