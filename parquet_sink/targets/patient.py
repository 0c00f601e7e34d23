"""Waits between attempts where nobody else would plan the next one."""

import time
from collections.abc import Callable
from dataclasses import replace

from parquet_sink.errors import ConnectorError, UploadPostponed
from parquet_sink.files.accumulator import FinishedFile
from parquet_sink.model.ranges import Tries
from parquet_sink.model.receipts import Receipt
from parquet_sink.targets.uploader import Delivers


class PatientDeliverer:
    """A `Deliverer` that waits here, however long."""

    def __init__(self, inner: Delivers, sleep: Callable[[float], None] = time.sleep) -> None:
        self._inner, self._sleep = inner, sleep

    def deliver(self, file: FinishedFile, earlier: Tries, superseded: Callable[[], bool]) -> Receipt:
        while True:
            try:
                return self._inner.deliver(file, earlier, superseded)
            except UploadPostponed as error:
                if error.again is None:
                    raise
                self._sleep(error.again.wait_s)
                tries = error.again.tries
                earlier = replace(tries, elapsed_s=tries.elapsed_s + error.again.wait_s)

    def failed(self, file: FinishedFile, error: ConnectorError) -> Receipt:
        return self._inner.failed(file, error)
