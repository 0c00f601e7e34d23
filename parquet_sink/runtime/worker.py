"""The process that hosts connectors: one Spark session, one streaming query for each connector, one loop.

Signals: the first SIGTERM or SIGINT finishes the flush in progress, commits and ends with 0; the second ends at once.
"""

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, Protocol

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from parquet_sink.config.settings import ConnectorSettings
from parquet_sink.errors import ConnectorError, SetupError
from parquet_sink.kafka.jars import find_java
from parquet_sink.runtime.connector import Connector, Status
from parquet_sink.runtime.scratch import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

LOOK_S: Final = 0.25
BEGIN_S: Final = 10.0


class Observer(Protocol):
    """Sees the connectors at each look: log lines, or the live view."""

    def look(self, connectors: Sequence[Connector]) -> None: ...
    def close(self, connectors: Sequence[Connector]) -> None: ...


class Worker:
    """Runs connectors until they are done, one has failed, or a signal comes."""

    def __init__(
        self,
        connectors: Sequence[ConnectorSettings],
        *,
        master: str | None = None,
        spark_conf: Mapping[str, str] | None = None,
        until_caught_up: bool = False,
        observer: Observer,
    ) -> None:
        self._settings, self._master, self._until_caught_up = connectors, master, until_caught_up
        self._spark_conf, self._observer = spark_conf, observer
        self._signals = 0
        self._connectors: list[Connector] = []

    def run(self) -> int:
        """0 when all are done, or stopped on a signal; 1 when a connector failed. Raises SetupError."""
        find_java()
        with scratch_folder() as folder:
            restore = self._listen()
            try:
                return self._host(folder)
            finally:
                restore()

    def _host(self, folder: Path) -> int:
        from parquet_sink.runtime import session  # takes a second to import

        try:
            spark = session.start(self._master, folder / "spark", self._spark_conf)
        except Exception as error:
            raise SetupError(
                f"Spark did not start with master {self._master or session.LOCAL_MASTER}: {error}"
            ) from error
        try:
            self._listen()  # again: PySpark takes SIGINT for itself when a session starts
            self._start(spark, folder, session.slots(spark))
            self._supervise(spark)
            return 1 if any(c.status is Status.FAILED for c in self._connectors) else 0
        except (Py4JError, ConnectionError) as error:
            if isinstance(error, Py4JJavaError):
                raise
            raise ConnectorError(
                "Spark's Java process ended while connectors ran: it was killed, or ran out of memory. "
                "What was not committed is sent again at the next start."
            ) from error
        finally:
            self._observer.close(self._connectors)
            for connector in self._connectors:
                connector.close()
            with suppress(Py4JError, ConnectionError):  # a Java process that is gone needs no stopping
                spark.stop()

    def _start(self, spark: "SparkSession", folder: Path, slots: int) -> None:
        """Starts one after the other; the first one warms Spark up for all.

        Each has BEGIN_S to begin before the next: forty at once would keep each other from it.
        """
        for index, settings in enumerate(self._settings):
            if self._signals:
                return
            connector = Connector(settings, folder / str(index), until_caught_up=self._until_caught_up)
            self._connectors.append(connector)
            connector.start(spark, slots=slots, warm_up=index == 0)
            deadline = time.monotonic() + BEGIN_S
            while connector.status is Status.RUNNING and not connector.has_begun() and not self._signals:
                self._look(spark)
                if time.monotonic() > deadline:
                    break
            self._look(spark)

    def _look(self, spark: "SparkSession") -> None:
        """One look after all connectors, and a pause."""
        for connector in self._connectors:
            connector.look(spark)
        self._observer.look(self._connectors)
        time.sleep(LOOK_S)

    def _supervise(self, spark: "SparkSession") -> None:
        while not self._signals and any(c.status is Status.RUNNING for c in self._connectors):
            self._look(spark)
        for connector in self._connectors:
            connector.ask_to_stop()
        for connector in self._connectors:
            connector.finish()

    def _listen(self) -> Callable[[], None]:
        before = {number: signal.signal(number, self._signalled) for number in (signal.SIGTERM, signal.SIGINT)}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        return restore

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals > 1:
            os.write(
                2, b"parquet-sink: second signal, ending at once; unfinished files are sent again at the next start\n"
            )
            os._exit(128 + number)
        os.write(2, b"parquet-sink: stopping; the flush in progress is finished first\n")
