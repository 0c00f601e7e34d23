"""The process that hosts connectors: one Spark session, one streaming query for each connector, one loop.

Signals: the first SIGTERM, SIGINT or SIGHUP finishes the flush in progress, commits and ends with 0; a later one ends
at once (`process.signals`). What goes wrong with one connector, or with what shows them, ends none of the others. What
may take long (starting a query, asking Kafka, ending a query) is done beside the loop, which therefore always answers.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from parquet_sink.connectors.loading import Loaded
from parquet_sink.errors import ConnectorError, SetupError
from parquet_sink.model.events import Event
from parquet_sink.process.java_home import find_java
from parquet_sink.process.signals import StopRequest
from parquet_sink.process.threads import in_thread
from parquet_sink.process.usage import cores_are_busy, usable_cores
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.spark.causes import message_of
from parquet_sink.spark.run_folder import RunFolder, run_folder
from parquet_sink.spark.slots import EXPECTED, local_master, most_beside_others, share
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.connector_registry import ConnectorRegistry
from parquet_sink.worker.loop.request_queue import Background, RequestQueue, at_once
from parquet_sink.worker.loop.supervisor import SIDE_BY_SIDE, Supervisor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from parquet_sink.spark.session import Session

LOOK_S: Final = 2.0
"""How often a cluster's slots are counted: Spark reports two before its first executor, and executors come and go."""
PATIENCE_S: Final = 60.0
"""How long a cluster may have too few slots before that is warned about: executors take a while to come."""
_LOCAL: Final = "restart the worker, which gives each connector its own, or give it more (--master local[N,4])"
_CLUSTER: Final = "give Spark more of the cluster (--conf spark.cores.max=N, spark.executor.instances=N, more machines)"
T = TypeVar("T")
_FLUSH: Final = "; the flush in progress is finished first, for at most {:g} s"
_AT_ONCE: Final = "; a second signal ends it at once"
JAVA_ENDED: Final = (
    "Spark's Java process ended while connectors ran: it was killed, or ran out of memory. "
    "What was not committed is sent again at the next start."
)
SPARK_ENDED: Final = (
    "Spark has stopped while connectors ran: its master removed it, or could keep no executor. "
    "What was not committed is sent again at the next start."
)
POLL_S: Final = 0.25
WARM_UP_S: Final = 30.0
"""How long it may take; then it is done without."""
SOON_S: Final = 0.1
"""How often is looked while something begins or ends: what follows it, follows at once."""
WAITS_S: Final = 10.0
"""How long a start of Spark waits for what others do on the same cores, where those are busy."""
GIVE_UP_S: Final = 5.0
"""How long a start of Spark that is given up may take to notice."""
log = logging.getLogger(__name__)


class SlotShares:
    """cores: of the machine that bound what one connector may take beside others, None for any number of slots.

    warns: whether too few are warned about.
    """

    def __init__(self, *, local: bool, cores: int | None, warns: bool) -> None:
        self._local, self._cores, self._warns = local, cores, warns
        self._seen: tuple[int, int] | None = None
        self._look_at_s, self._short_since_s, self._warned = 0.0, 0.0, False
        self.each = 1
        """Slots that each connector may take at once."""

    def changed(self, connectors: int, count: Callable[[], int], now_s: float) -> bool:
        """Whether `each` is new. count: asks Spark; when connectors come or go, and on a cluster every LOOK_S."""
        same = self._seen is not None and self._seen[0] == connectors
        if same and (self._local or now_s < self._look_at_s):
            return False
        self._look_at_s = now_s + LOOK_S
        seen = connectors, count()
        if seen != self._seen:
            self._short_since_s, self._warned = now_s, False
        self._seen, before = seen, self.each
        self._warn(*seen, now_s - self._short_since_s)
        most = None if self._cores is None else most_beside_others(connectors, self._cores)
        self.each = share(seen[1], connectors, most)
        return not same or self.each != before

    def _warn(self, connectors: int, slots: int, short_s: float) -> None:
        """Once for each shortage."""
        if self._warned or not self._warns or connectors <= slots or (not self._local and short_s < PATIENCE_S):
            return
        self._warned = True
        cure = _LOCAL if self._local else _CLUSTER
        log.warning("%d connectors share %d slots of Spark, so some wait for others; %s", connectors, slots, cure)


def stop_notice(most_s: float) -> str:
    """What a first signal promises. most_s: how long a flush may take; 0 where no connector runs that has one."""
    return (_FLUSH.format(most_s) if most_s else "") + _AT_ONCE


class Observer(Protocol):
    """Takes events, and polls the connectors several times a second: `worker.loop.events.EventDispatcher`."""

    def emit(self, event: Event) -> None: ...
    def read(self, connectors: Sequence[Connector]) -> None: ...
    def poll(self, connectors: Sequence[Connector]) -> None: ...
    def close(self, connectors: Sequence[Connector]) -> None: ...


class Worker:
    """Runs the connectors of a registry until they are done or have failed, or a stop is requested.

    known: configurations of the registry's store that were validated already. stays: it lives on without connectors,
    since more may come by `queue`. publish: called when something may have changed. stop_request: None listens by
    itself. spark_is_up: called once; for who is told so Spark is warmed up before, where no connector is there yet.
    spark_waits: whether others need this machine's cores more than a start of Spark does, for WAITS_S at most.
    hands_over: whether it goes on for a while, though a stop is requested, because others take over what it runs.
    """

    def __init__(
        self,
        registry: ConnectorRegistry,
        known: Mapping[str, Loaded],
        *,
        master: str | None = None,
        spark_conf: Mapping[str, str] | None = None,
        until_caught_up: bool = False,
        stays: bool = False,
        track_topics: bool = True,
        observer: Observer,
        queue: RequestQueue | None = None,
        publish: Callable[[], None] = lambda: None,
        spark_is_up: Callable[[], None] | None = None,
        spark_waits: Callable[[], bool] | None = None,
        hands_over: Callable[[], bool] = lambda: False,
        stop_request: StopRequest | None = None,
    ) -> None:
        self._spark_is_up, self._spark_waits, self._hands_over = spark_is_up, spark_waits, hands_over
        self._registry, self._known, self._master, self._stays = registry, known, master, stays
        self._until_caught_up, self._spark_conf, self._observer = until_caught_up, spark_conf, observer
        self._queue, self._publish = queue or RequestQueue(), publish
        self._stop_request = StopRequest() if stop_request is None else stop_request
        self._supervisor = Supervisor(
            registry, self._made, track_topics=track_topics, background=lambda act: self._followed(in_thread(act))
        )
        self._folder: RunFolder | None = None
        self._made_so_far, self._poll_all_s = 0, 0.0
        self._session: Session | None = None
        self._launch: Background = at_once
        local = (master or "local").startswith("local")
        bound = usable_cores() if stays and master is None else None
        self._shares = SlotShares(local=local, cores=bound, warns=stays or not local)
        self._mend: Callable[[], None] = lambda: None

    def run(self, expected: int = 0) -> int:
        """0 when all are done, or stopped by request; 1 when a connector failed, unless it stays.

        expected: connectors that it may come to have, where it stays. Raises SetupError, ConnectorError.
        """
        with self._stop_request.handling():
            try:
                find_java()
                with run_folder() as folder:
                    return self._host(folder, expected)
            except SetupError:
                if self._stop_request:  # whoever signals a whole group ends what was asked for here
                    return 0
                raise
            finally:
                self._queue.close()

    def _made(self, settings: ConnectorSettings) -> Connector:
        assert self._folder is not None
        folder = self._folder.path / str(self._made_so_far)
        self._made_so_far += 1
        return Connector(
            settings,
            folder,
            until_caught_up=self._until_caught_up,
            waits=self._stays,
            emit=self._observer.emit,
            hand_on=lambda connector: self._observer.read([connector]),
            launch=self._launched,
            background=lambda act: self._followed(in_thread(act)),
        )

    def _launched(self, act: Callable[[], T], /) -> "Future[T]":
        """By what starts queries now: connectors are made before Spark is there."""
        return self._followed(self._launch(act))

    def _followed(self, doing: "Future[T]") -> "Future[T]":
        """The loop looks as soon as it is done."""
        doing.add_done_callback(lambda done: self._queue.wake())
        return doing

    def _host(self, folder: RunFolder, expected: int) -> int:
        """Prepares connectors before Spark starts, so that one that runs already fails at once."""
        self._folder = folder
        try:
            self._registry.begin(self._known)
            self._step()
            self._publish()
            if self._stays or self._supervisor.busy:
                self._wait_for_others()
                self._run_on_spark(folder, expected)
        finally:
            self._queue.close()
            self._publish()
            self._observer.close(self._registry.runs)
            for connector in self._registry.runs:
                connector.close()
        return int(not self._stays and self._supervisor.failed)

    def _run_on_spark(self, folder: RunFolder, expected: int) -> None:
        from parquet_sink.spark.session import Session  # takes a second to import

        connectors = self._supervisor.sharers()
        master = self._master or local_master(max(connectors, expected, EXPECTED) if self._stays else connectors)
        session = self._session = Session(master, folder.path, self._spark_conf)
        try:
            spark = self._started(session)
            if spark is not None:
                folder.remember()
                self._mend = folder.repair
                self._begin_warm_up(spark, folder)
                self._supervise(spark)
        finally:
            session.close()

    def _started(self, session: "Session") -> "SparkSession | None":
        """Spark, or None when a stop was requested before it was up. In a thread, so that it can be given up."""
        from parquet_sink.spark.query import Launcher

        errors: list[Exception] = []

        def start() -> None:
            try:
                session.connect()
            except Exception as error:  # noqa: BLE001 - raised below, in the main thread
                errors.append(error)
            self._queue.wake()

        starter = Thread(target=start, name="spark-start", daemon=True)
        starter.start()
        while starter.is_alive() and not self._stop_request:
            self._round_without_spark()
        if self._stop_request:
            session.java.kill()
            starter.join(GIVE_UP_S)
            self._supervisor.step(self._stop_request.requested_at_s)
            return None
        if errors:
            raise _not_started(session, errors[0]) from errors[0]
        self._launch = Launcher(session.tidy)
        try:
            return self._launch(session.open).result()
        except Exception as error:
            raise _not_started(session, error) from error

    def _wait_for_others(self) -> None:
        """A start of Spark is seconds of CPU, which others on these cores need for what they take over."""
        waits, until_s = self._spark_waits, time.monotonic() + WAITS_S
        while waits is not None and not self._stop_request and time.monotonic() < until_s:
            if not (cores_are_busy() and waits()):
                return
            self._round_without_spark()

    def _round_without_spark(self) -> None:
        self._step()
        self._observer.poll(self._registry.runs)
        self._publish()
        self._queue.work(POLL_S, self._publish)

    def _begin_warm_up(self, spark: "SparkSession", folder: RunFolder) -> None:
        """Beside the loop, and only where no connector is there, which would wait for it."""
        from parquet_sink.spark import warm_up

        told = self._spark_is_up
        if told is None:
            return
        if self._supervisor.busy:
            told()
            return
        begun = self._launch(partial(warm_up.start, spark, folder.path / "warm-up"))

        def finish() -> None:
            try:
                warm_up.finish(begun.result(WARM_UP_S), WARM_UP_S)
                self._supervisor.warmed_up()
            except Exception as error:  # the first connector's start takes longer, and no more
                log.debug("Spark was not warmed up", exc_info=error)
            told()

        in_thread(finish)

    def _supervise(self, spark: "SparkSession") -> None:
        while not self._stops and (self._stays or self._supervisor.busy):
            self._round(spark)
        self._queue.close()
        if self._stop_request and self._session is not None:
            self._session.silence_logging()
        stop_at_s = self._stop_request.requested_at_s or time.monotonic()
        self._supervisor.step(stop_at_s)
        while self._supervisor.active:
            self._round(spark, stop_at_s)

    def _round(self, spark: "SparkSession", stop_at_s: float | None = None) -> None:
        """Looks after connectors once, then does what is asked for, or pauses.

        Requests, starts and stops make many rounds: what is steady, and events, are looked at each POLL_S all the same.
        """
        if self._java_gone(0.0):
            raise ConnectorError(JAVA_ENDED)
        with suppress(OSError):  # whoever needs the folder reports it
            self._mend()
        self._step(stop_at_s)
        if stop_at_s is None:
            self._start_next(spark)
        now_s = time.monotonic()
        all_due = stop_at_s is not None or now_s >= self._poll_all_s
        if all_due:
            self._poll_all_s = now_s + POLL_S
        for connector in self._registry.runs:
            if all_due or not connector.steady:
                self._alone(connector, partial(connector.poll, spark))
        if all_due:
            self._observer.poll(self._registry.runs)
        self._publish()
        self._wait()

    @property
    def _stops(self) -> bool:
        """Whether all are to end now."""
        return bool(self._stop_request) and not self._hands_over()

    def _step(self, stop_at_s: float | None = None) -> None:
        self._supervisor.step(stop_at_s)
        self._stop_request.notice = stop_notice(self._supervisor.longest_stop_s())

    def _wait(self) -> None:
        """Until it is time for the next round, or something was asked for."""
        if self._queue.closed:
            time.sleep(min(SOON_S, POLL_S))
        else:
            soon = self._supervisor.starting or self._registry.leaving
            self._queue.work(min(SOON_S, POLL_S) if soon else POLL_S, self._publish)

    def _start_next(self, spark: "SparkSession") -> None:
        """Slots are shared again when connectors come or go, or executors of a cluster. Raises ConnectorError."""
        now_s = time.monotonic()
        if self._shares.changed(self._supervisor.sharers(), partial(self._slots, spark), now_s):
            self._supervisor.share(self._shares.each)
        for _ in range(SIDE_BY_SIDE):
            connector = self._supervisor.next_to_start(now_s)
            if connector is None:
                break
            self._alone(connector, partial(self._supervisor.start, connector, spark, self._shares.each))

    def _slots(self, spark: "SparkSession") -> int:
        from parquet_sink.spark.session import slots

        try:
            return slots(spark)
        except Exception as error:
            raise ConnectorError(JAVA_ENDED if self._java_gone(2.0) else SPARK_ENDED) from error

    def _alone(self, connector: Connector, act: Callable[[], None]) -> None:
        """An uncaught error ends its connector alone, unless Java is gone. Raises ConnectorError then."""
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
