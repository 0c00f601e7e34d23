"""Setting records aside: where they are kept, and the policy that decides which ones are."""

import logging
from typing import Protocol

from parquet_sink.errors import ConnectorError
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordParts
from parquet_sink.model.rejected import Rejected, Stage
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.task.reject_policy import SetAside, Stop, stopped_by

log = logging.getLogger(__name__)


class SetAsideStore(Protocol):
    """Keeps the rejected records of one Spark task, each at least once: a range that comes again brings them again."""

    def put(self, rejected: Rejected) -> None:
        """Takes a record, with key, value and headers; in offset order for each range. It need not be kept yet.

        Raises ConnectorError when this record, or one taken before, cannot be kept: nothing from it on is accepted.
        """
        ...

    def flush(self, planned: PlannedRange) -> None:
        """Returns when all records of the range that were put are kept for good, also beyond a crash of the machine.

        Called once for each range that had any, after its last record. Raises ConnectorError when they are not kept,
        which then holds for all of the range: whichever it was, the range is accepted up to its first such record.
        """
        ...

    def close(self) -> None:
        """The task has ended, well or not: lets go of what is of this task alone. Raises nothing.

        What was put and not flushed need not be kept.
        """
        ...


class SetAsidePolicy:
    """A `RejectPolicy` that keeps rejected records in a store, and passes over them if the settings say so.

    Where they may not be passed over, the record goes to the store all the same, and the connector fails, as in Kafka
    Connect.
    """

    def __init__(self, settings: ErrorSettings, store: SetAsideStore) -> None:
        self._settings, self._store = settings, store

    @property
    def sets_aside(self) -> bool:
        return self._settings.invalid_records

    @property
    def needs(self) -> RecordParts:
        return RecordParts(single=True)

    def decide(self, rejected: Rejected) -> Stop | SetAside:
        """Raises what the store raises, if the record was to be passed over.

        What is to be obfuscated and cannot be is not written anywhere.
        """
        if rejected.stage is Stage.OBFUSCATION:
            return Stop(stopped_by(rejected))
        if self._passes_over(rejected.stage):
            self._store.put(rejected)
            return SetAside()
        try:
            self._store.put(rejected)
        except ConnectorError as error:
            log.warning("topic %s, topic-partition %d, offset %d is not set aside: %s", *_where(rejected), error)
        return Stop(stopped_by(rejected))

    def _passes_over(self, stage: Stage) -> bool:
        return self._settings.refused_files if stage is Stage.TASK_PUT else self._settings.invalid_records

    def flush(self, planned: PlannedRange) -> None:
        """As the store's."""
        self._store.flush(planned)

    def close(self) -> None:
        """As the store's."""
        self._store.close()


def _where(rejected: Rejected) -> tuple[str, int, int]:
    return rejected.topic, rejected.partition, rejected.offset
