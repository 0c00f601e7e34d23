"""Files of a replay in the history of the connector, best effort."""

import time
from collections.abc import Sequence

from parquet_sink.history.records import Origin, upload_record
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.replay.run import Watcher
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.task.outcome_history import history_of, sender_of


class Noted(Watcher):
    """Adds each file to the history. settings: of the connector, with the target that files go to."""

    def __init__(self, settings: SinkSettings) -> None:
        self._sender, self._history = sender_of(settings, Origin.REPLAY), history_of(settings)

    def flushed(self, planned: PlannedRange, receipts: Sequence[Receipt]) -> None:
        now_s = time.time()
        self._history.add([upload_record(one, self._sender, now_s, planned.topic_id) for one in receipts])

    def close(self) -> None:
        """Lets go of the file."""
        self._history.close()
