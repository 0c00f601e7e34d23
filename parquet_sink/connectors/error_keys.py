"""Kafka Connect's keys for what becomes of errors, for any sink."""

from typing import Final

from parquet_sink.config.key import Key, Origin, Type
from parquet_sink.kafka.dead_letter_keys import DEAD_LETTER_KEYS, SET_ASIDE

ERROR_HANDLING_KEYS: Final = (
    Key(
        "errors.tolerance",
        SET_ASIDE,
        Type.STRING,
        "`none`: the connector stops at the first record that has no row, and names it; all before it is delivered. "
        "`all`: such records are set aside, wherever they fail, and the connector goes on: in the dead-letter topic, "
        "or in parked files where none is named. See [errors.md](errors.md) for what is never passed over.",
        default="none",
        choices=("none", "all"),
        origin=Origin.CONNECT,
    ),
    *DEAD_LETTER_KEYS,
    Key(
        "errors.log.enable",
        SET_ASIDE,
        Type.BOOLEAN,
        "A log line for each record that has no row: stage, class, topic, topic-partition, offset, timestamp, reason; "
        "100 at once and 10 a second, and how many more there were. What stops the connector is always logged, and so "
        "is, for each range of offsets, how many records were set aside.",
        default=False,
        origin=Origin.CONNECT,
    ),
    Key(
        "errors.log.include.messages",
        SET_ASIDE,
        Type.BOOLEAN,
        "Such a log line has key, value and headers, too, up to 1,000 characters each. Kafka Connect never logs them "
        "for sinks; they may be secret.",
        default=False,
        needs="errors.log.enable",
        origin=Origin.CONNECT,
    ),
)
