"""The process that hosts connectors: one Spark session, one streaming query for each connector, one loop.

Signals: the first SIGTERM, SIGINT or SIGHUP finishes the flush in progress, commits and ends with 0; a later one ends
at once (`process.signals`). What goes wrong with one connector, or with what shows them, ends none of the others.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Final, Protocol

from parquet_sink.errors import ConnectorError, SetupError
from parquet_sink.model.events import Event
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.process.java_home import find_java
from parquet_sink.process.signals import StopRequest
from parquet_sink.runtime.connector import Connector
from parquet_sink.runtime.status import Status
from parquet_sink.spark.causes import message_of
from parquet_sink.spark.run_folder import RunFolder, run_folder
from parquet_sink.spark.slots import local_master, share

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from parquet_sink.spark.session import Session

log = logging.getLogger(__name__)

PROMISE: Final = "; the flush in progress is finished first, for at most {:g} s; a second signal ends it at once"
JAVA_ENDED: Final = (
    "Spark's Java process ended while connectors ran: it was killed, or ran out of memory. "
    "What was not committed is sent again at the next start."
)
POLL_S: Final = 0.25
START_S: Final = 10.0
GIVE_UP_S: Final = 5.0
"""How long a start of Spark that is given up may take to notice."""


class Observer(Protocol):
    """Takes events, and polls the connectors several times a second: `runtime.events.EventDispatcher`."""

    def emit(self, event: Event) -> None: ...
    def poll(self, connectors: Sequence[Connector]) -> None: ...
    def close(self, connectors: Sequence[Connector]) -> None: ...


class Worker:
    """Runs connectors until they are done or have failed, or a stop is wished for. wish: None listens by itself."""

    def __init__(
        self,
        connectors: Sequence[SinkSettings],
        *,
        master: str | None = None,
        spark_conf: Mapping[str, str] | None = None,
        until_caught_up: bool = False,
        observer: Observer,
        stop_request: StopRequest | None = None,
    ) -> None:
        self._settings, self._master, self._until_caught_up = connectors, master, until_caught_up
        self._spark_conf, self._observer = spark_conf, observer
        self._stop_request = StopRequest() if stop_request is None else stop_request
        self._connectors: list[Connector] = []
        self._session: Session | None = None
        self._mend: Callable[[], None] = lambda: None

    def run(self) -> int:
        """0 when all are done, or stopped on a wish; 1 when a connector failed. Raises SetupError, ConnectorError."""
        with self._stop_request.handling():
            longest_s = max((one.stop_timeout_ms / 1000 for one in self._settings), default=0.0)
            self._stop_request.notice = PROMISE.format(longest_s)
            try:
                find_java()
                with run_folder() as folder:
                    return self._host(folder)
            except SetupError:
                if self._stop_request:  # whoever signals a whole group ends what was asked for here
                    return 0
                raise

    def _host(self, folder: RunFolder) -> int:
        """Prepares connectors before Spark starts, so that one that runs already fails at once."""
        for index, settings in enumerate(self._settings):
            self._connectors.append(
                Connector(
                    settings,
                    folder.path / str(index),
                    until_caught_up=self._until_caught_up,
                    emit=self._observer.emit,
                )
            )
        try:
            for connector in self._connectors:
                self._alone(connector, connector.prepare)
            if any(connector.status is Status.STARTING for connector in self._connectors):
                self._run_on_spark(folder)
        finally:
            self._observer.close(self._connectors)
            for connector in self._connectors:
                connector.close()
        return int(any(connector.status is Status.FAILED for connector in self._connectors))

    def _run_on_spark(self, folder: RunFolder) -> None:
        from parquet_sink.spark.session import Session  # takes a second to import

        master = self._master or local_master(len(self._connectors))
        session = self._session = Session(master, folder.path, self._spark_conf)
        try:
            spark = self._started(session)
            if spark is not None:
                folder.remember()
                self._mend = folder.mend
                self._start(spark)
                self._supervise(spark)
        finally:
            session.close()

    def _started(self, session: "Session") -> "SparkSession | None":
        """Spark, or None when a stop was wished for before it was up. In a thread, so that it can be given up."""
        errors: list[Exception] = []

        def start() -> None:
            try:
                session.connect()
            except Exception as error:  # noqa: BLE001 - raised below, in the main thread
                errors.append(error)

        starter = Thread(target=start, name="spark-start", daemon=True)
        starter.start()
        while starter.is_alive() and not self._stop_request:
            self._observer.poll(self._connectors)
            starter.join(POLL_S)
        if self._stop_request:
            session.java.kill()
            starter.join(GIVE_UP_S)
            for connector in self._connectors:
                connector.request_stop()
            return None
        if errors:
            raise _not_started(session, errors[0]) from errors[0]
        try:
            return session.open()
        except Exception as error:
            raise _not_started(session, error) from error

    def _start(self, spark: "SparkSession") -> None:
        """Starts one after the other; the first one warms Spark up for all.

        Each has START_S to begin before the next: forty at once would keep each other from it.
        """
        from parquet_sink.spark.session import slots

        found = share(slots(spark), len(self._connectors))
        for index, connector in enumerate(c for c in self._connectors if c.status is Status.STARTING):
            if self._stop_request:
                return
            self._alone(connector, partial(connector.start, spark, slots=found, warm_up=index == 0))
            deadline = time.monotonic() + START_S
            while connector.status is Status.RUNNING and not connector.has_started() and not self._stop_request:
                self._poll(spark)
                if time.monotonic() > deadline:
                    break
            self._poll(spark)

    def _supervise(self, spark: "SparkSession") -> None:
        while not self._stop_request and any(connector.active for connector in self._connectors):
            self._poll(spark)
        if self._stop_request and self._session is not None:
            self._session.hush()
        for connector in self._connectors:
            self._alone(connector, partial(connector.request_stop, self._stop_request.requested_at_s))
        while any(connector.active for connector in self._connectors):
            self._poll(spark)

    def _poll(self, spark: "SparkSession") -> None:
        """Polls all connectors once, and pauses."""
        if self._java_gone(0.0):
            raise ConnectorError(JAVA_ENDED)
        with suppress(OSError):  # whoever needs the folder reports it
            self._mend()
        for connector in self._connectors:
            self._alone(connector, partial(connector.poll, spark))
        self._observer.poll(self._connectors)
        time.sleep(POLL_S)

    def _alone(self, connector: Connector, act: Callable[[], None]) -> None:
        """What a connector did not foresee ends it alone, unless Java is gone. Raises ConnectorError then."""
        try:
            act()
        except Exception as error:
            if self._java_gone(2.0):
                raise ConnectorError(JAVA_ENDED) from error
            connector.fail_unexpectedly(error)

    def _java_gone(self, patience_s: float) -> bool:
        return self._session is not None and self._session.java.gone(patience_s)


def _not_started(session: "Session", error: Exception) -> SetupError:
    """The cause in words; the trace is for DEBUG."""
    log.debug("Spark did not start", exc_info=error)
    why = str(error) if isinstance(error, SetupError) else message_of(error)
    return SetupError(
        f"Spark did not start with master {session.master}: {why.rstrip('.')}. Check --master and --conf."
    )
