"""What a reader checks beside its records: whether its topic is still there, and whether the log was truncated."""

import logging
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from parquet_sink.errors import KafkaFailed, TopicGone
from parquet_sink.kafka import leader_epochs
from parquet_sink.kafka.client import errors as client_errors
from parquet_sink.kafka.client.renewal import Renewal

log = logging.getLogger(__name__)

ASK_AFTER_S: Final = 5.0
"""After so long without a record, and each time as long again, a reader asks whether its topic is there."""
TIMEOUT_S: Final = 5.0


class ReaderChecks:
    """For the reader of one range, which begins at `start`. stop: whether a loss stops the connector."""

    def __init__(self, topic: str, partition: int, start: int, *, stop: bool) -> None:
        self._topic, self._partition, self._start, self._stop = topic, partition, start, stop
        self._asked = 0
        self._renewal = Renewal()

    def on_silence(self, consumer: Consumer, silent_s: float) -> bool:
        """To be called when no record came for so long; the client reports no topic that is gone. Raises TopicGone.

        True when the consumer gets no answer, and is to be replaced.
        """
        due, asked = int(silent_s / ASK_AFTER_S), self._asked
        self._asked = due
        if due <= asked:
            return False
        self._renewal.asked()
        try:
            consumer.get_watermark_offsets(TopicPartition(self._topic, self._partition), timeout=TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() in client_errors.UNKNOWN:
                raise TopicGone(
                    f"Topic {self._topic}, topic-partition {self._partition} was deleted while it was read."
                ).at((self._topic, self._partition)) from None
            return self._renewal.is_due(error.args[0].code())
        self._renewal.answered()
        return False

    def on_truncation(self, message: str, received: int) -> int | None:
        """The client's message says that the log is another one below `received`. Returns when reading goes on there.

        Gives where the log was cut back to, None when that cannot be told. Raises OffsetsLost if what was delivered
        differs and that is not accepted, and KafkaFailed if only what was read of this range does: then it is read
        again from its start.
        """
        cut = leader_epochs.truncation_offset(message, received)
        if cut is None:
            log.warning(
                "Topic %s, topic-partition %d: whether the log was cut back below %d cannot be told. %s Going on.",
                self._topic, self._partition, received, message,
            )  # fmt: skip
            return None
        error = leader_epochs.log_truncated(self._topic, self._partition, min(received, self._start), cut)
        if cut >= self._start:
            raise KafkaFailed(
                f"Topic {self._topic}, topic-partition {self._partition}: the log was cut back to {cut} while it was "
                f"read."
            ).at((self._topic, self._partition))
        if self._stop:
            raise error
        log.warning("%s Going on at %d.", error, received)
        return cut
