"""The errors that name offsets which Kafka no longer has."""

from parquet_sink.errors import RESET_TOOL, OffsetsLost


def offsets_deleted(topic: str, partition: int, start: int, low: int, high: int) -> OffsetsLost:
    """The next offset to read is `start`, and the topic-partition holds [low, high) only."""
    if start > high:
        what = (
            f"the group stands at offset {start}, but the topic-partition ends at {high}: it was deleted and made anew"
        )
    else:
        what = f"offsets {start} to {low - 1} were deleted by retention before they were read ({low - start} offsets)"
    return OffsetsLost(
        f"Topic {topic}, topic-partition {partition}: {what}. To go on at {low if start < low else 'its start'}, set "
        f"connect.ems.lost.offsets.policy=CONTINUE or reset the group's offset with {RESET_TOOL}."
    ).at((topic, partition))


def topic_recreated(topic: str, partition: int, start: int) -> OffsetsLost:
    """The group's offset `start` belongs to a topic that is gone, not to the one that has its name now."""
    return OffsetsLost(
        f"Topic {topic}, topic-partition {partition}: the group stands at offset {start} of a topic that was deleted "
        f"and made anew; what it held from there on is gone. To go on at the new topic's first record, set "
        f"connect.ems.lost.offsets.policy=CONTINUE or reset the group's offset with {RESET_TOOL}."
    ).at((topic, partition))
