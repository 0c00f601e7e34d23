"""The process that hosts connectors, with a Spark that is a fake: order of things, stops, and what fails alone."""

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.connectors.loading import Loaded
from parquet_sink.errors import ConnectorError, SetupError
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.kafka.settings import KafkaSettings
from parquet_sink.model.events import Event
from parquet_sink.process.signals import StopRequest
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import session as session_module
from parquet_sink.spark import warm_up
from parquet_sink.spark.slots import most_beside_others
from parquet_sink.worker.herder.errors import ShuttingDown
from parquet_sink.worker.herder.store import ConfigStore, StoredConnector
from parquet_sink.worker.herder.values import State, TargetState
from parquet_sink.worker.loop import supervisor
from parquet_sink.worker.loop import worker as module
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.connector_registry import ConnectorRegistry
from parquet_sink.worker.loop.event_aggregator import EventAggregator
from parquet_sink.worker.loop.herder import LocalHerder
from parquet_sink.worker.loop.request_queue import RequestQueue
from parquet_sink.worker.loop.status import Status
from parquet_sink.worker.loop.worker import LOOK_S, PATIENCE_S, SlotShares, Worker, stop_notice
from tests.factories import settings
from tests.messages import assert_line_says, assert_says, saying


class Java:
    """Java, as far as the worker knows it."""

    def __init__(self) -> None:
        self.killed, self.dead = threading.Event(), False

    def kill(self) -> None:
        self.killed.set()

    def gone(self, patience_s: float) -> bool:
        return self.dead


class Spark:
    """A session. `connects`: what its start does."""

    made: list["Spark"]
    connects: Callable[["Spark"], None]

    def __init__(self, master: str | None, folder: Path, extra: object = None) -> None:
        self.master, self.java, self.closed = master or "local", Java(), False
        Spark.made.append(self)

    def connect(self) -> None:
        Spark.connects(self)

    def open(self) -> Any:
        return self

    def tidy(self) -> bool:
        return False

    def silence_logging(self) -> None:
        self.hushed = True

    def close(self) -> None:
        self.closed = True


class Observer:
    """Notes what it sees; does what a test asks for at a poll."""

    def __init__(self) -> None:
        self.seen: list[list[Status]] = []
        self.at_poll: Callable[[], None] = lambda: None
        self.closed = 0
        self.events: list[Event] = []
        self.read_last: list[str] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def read(self, connectors: Sequence[Connector]) -> None:
        self.read_last += [connector.settings.name for connector in connectors]

    def poll(self, connectors: Sequence[Connector]) -> None:
        self.seen.append([connector.status for connector in connectors])
        self.at_poll()

    def close(self, connectors: Sequence[Connector]) -> None:
        self.closed += 1


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Worker]:
    """Makes workers over fakes. Queries run until they are asked to stop."""
    Spark.made, Spark.connects = [], lambda spark: None
    deadline = time.monotonic() + 60

    def start(self: Connector, spark: object, **more: object) -> None:
        self.status = Status.RUNNING

    def poll(self: Connector, spark: object) -> None:
        assert time.monotonic() < deadline
        if self.status is Status.STOPPING:
            self.status = Status.DONE

    monkeypatch.setattr(session_module, "Session", Spark)
    monkeypatch.setattr(session_module, "slots", lambda spark: 4)
    monkeypatch.setattr(module, "find_java", lambda: "java")
    monkeypatch.setattr(module, "POLL_S", 0.001)
    monkeypatch.setattr(supervisor, "START_S", 0.0)
    monkeypatch.setattr(Connector, "start", start)
    monkeypatch.setattr(Connector, "poll", poll)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def of(name: str) -> SinkSettings:
        one = settings(tmp_path / "tmp", name)
        return replace(one, kafka=replace(one.kafka, group=f"connect-{name}"))

    def make(*names: str, observer: Observer, stop_request: StopRequest | None = None, **more: Any) -> Worker:
        def load(config: Mapping[str, str], name: str) -> Loaded:
            return Loaded(of(name), (), (), name, dict(config))

        known = {name: load({"name": name}, name) for name in names}
        store = ConfigStore({name: StoredConnector({"name": name}) for name in names})
        registry = ConnectorRegistry(store, load, EventAggregator())
        return Worker(registry, known, observer=observer, stop_request=stop_request, **more)

    return make


def test_a_signal_stops_in_order(hosted: Callable[..., Worker]) -> None:
    """Connectors are asked to stop, seen as stopping, and done in the end: status 0, Spark closed."""
    observer, stop_request = Observer(), StopRequest()

    def ask() -> None:
        if not stop_request and observer.seen[-1] == [Status.RUNNING] * 2:
            signal.raise_signal(signal.SIGTERM)

    observer.at_poll = ask
    assert hosted("one", "two", observer=observer, stop_request=stop_request).run() == 0
    assert observer.seen[-1] == [Status.DONE] * 2
    assert observer.closed == 1
    assert Spark.made[0].closed


def test_a_worker_that_hands_over_goes_on_after_a_signal(hosted: Callable[..., Worker]) -> None:
    """Its connectors run and what is asked of it is done, until others have what it runs."""
    observer, stop_request, queue, hands_over = Observer(), StopRequest(), RequestQueue(), True
    rounds_after = 0

    def at_poll() -> None:
        nonlocal rounds_after, hands_over
        if not stop_request and observer.seen[-1] == [Status.RUNNING]:
            signal.raise_signal(signal.SIGTERM)
        elif stop_request and hands_over:
            assert observer.seen[-1] == [Status.RUNNING]
            rounds_after += 1
            if rounds_after == 3:
                queue.put(end)

    def end() -> None:
        nonlocal hands_over
        hands_over = False

    observer.at_poll = at_poll
    worker = hosted(
        "one", observer=observer, stop_request=stop_request, queue=queue, stays=True, hands_over=lambda: hands_over
    )
    assert worker.run() == 0
    assert rounds_after >= 3
    assert observer.seen[-1] == [Status.DONE]


@pytest.mark.parametrize("asked", [True, False])
def test_what_is_done_beside_a_query_is_waited_for(
    hosted: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    """After a signal and where connectors end by themselves: it is looked after, and heard, until it is at rest."""
    observer, stop_request = Observer(), StopRequest()
    rests = iter([False, False])
    monkeypatch.setattr(Connector, "at_rest", property(lambda self: next(rests, True)))

    def end() -> None:
        (run,) = worker._registry.runs
        if asked and not stop_request:
            signal.raise_signal(signal.SIGTERM)
        elif run.status is Status.RUNNING and not asked:
            run.status = Status.DONE

    worker = hosted("one", observer=observer, stop_request=stop_request)
    observer.at_poll = end
    assert worker.run() == 0
    assert observer.seen[-2:] == [[Status.DONE]] * 2
    assert next(rests, None) is None


def test_it_is_told_once_that_spark_is_up(hosted: Callable[..., Worker]) -> None:
    """When it is, and before any connector runs on it."""
    observer, stop_request, told = Observer(), StopRequest(), list[list[Status]]()
    observer.at_poll = lambda: stop_request.request() if observer.seen[-1] == [Status.RUNNING] else None
    worker = hosted(
        "one",
        observer=observer,
        stop_request=stop_request,
        spark_is_up=lambda: told.append([one.status for one in worker._registry.runs]),
    )
    assert worker.run() == 0
    assert len(told) == 1
    assert Status.RUNNING not in told[0]


@pytest.mark.parametrize("fails", [False, True])
def test_spark_is_warmed_up_before_it_is_told(
    hosted: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Where no connector is there yet, and somebody is told; one that fails is as none."""
    done, stop_request = list[str](), StopRequest()

    def finish(running: str, within_s: float) -> None:
        done.append(running)
        if fails:
            raise SetupError("it did not come to an end")

    def told() -> None:
        done.append("told")
        stop_request.request()

    monkeypatch.setattr(warm_up, "start", lambda spark, folder: f"query in {folder.name}")
    monkeypatch.setattr(warm_up, "finish", finish)
    assert hosted(observer=Observer(), stop_request=stop_request, stays=True, spark_is_up=told).run() == 0
    assert done == ["query in warm-up", "told"]


@pytest.mark.parametrize("ends", ["the others are done", "the cores are free", "it took long enough"])
def test_spark_is_not_started_while_others_take_over_on_busy_cores(
    hosted: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """Until they are done, or for a bounded time; where a core is free it is started at once."""
    observer, stop_request, polls = Observer(), StopRequest(), 0
    others = busy = True

    def at_poll() -> None:
        nonlocal polls, others, busy
        polls += 1
        if polls == 3 and ends != "it took long enough":
            assert not Spark.made
            others, busy = ends != "the others are done", ends != "the cores are free"
        if Spark.made:
            stop_request.request()

    observer.at_poll = at_poll
    monkeypatch.setattr(module, "WAITS_S", 0.05 if ends == "it took long enough" else 60.0)
    monkeypatch.setattr(module, "cores_are_busy", lambda: busy)
    worker = hosted("one", observer=observer, stop_request=stop_request, spark_waits=lambda: others)
    assert worker.run() == 0
    assert polls > 3 or ends == "it took long enough"  # which three polls may take, too
    assert Spark.made


@pytest.mark.parametrize("steady", [True, False])
def test_what_is_steady_is_not_looked_at_because_of_others(
    hosted: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch, steady: bool
) -> None:
    """However many rounds requests make; what begins or ends is looked at in each of them."""
    stop_request, queue, polled, poll = StopRequest(), RequestQueue(), list[bool](), Connector.poll

    def counted(self: Connector, spark: Any) -> None:
        polled.append(bool(stop_request))
        poll(self, spark)

    def wakes() -> None:
        while len(polled) < 1:
            time.sleep(0.001)
        for _ in range(50):
            queue.wake()
            time.sleep(0.002)
        stop_request.request()
        queue.wake()

    monkeypatch.setattr(module, "POLL_S", 60.0)
    monkeypatch.setattr(Connector, "steady", property(lambda self: steady))
    monkeypatch.setattr(Connector, "poll", counted)
    waking = threading.Thread(target=wakes)
    waking.start()
    assert hosted("one", observer=Observer(), stop_request=stop_request, queue=queue).run() == 0
    waking.join()
    before_the_stop = polled.count(False)
    assert before_the_stop == 1 if steady else before_the_stop > 10


def test_a_connector_that_is_closed_is_read_to_its_end(hosted: Callable[..., Worker]) -> None:
    """Also where it ends long before events are looked at again."""
    observer, stop_request, queue = Observer(), StopRequest(), RequestQueue()

    def at_poll() -> None:
        if observer.seen[-1] == [Status.RUNNING]:
            queue.put(lambda: worker._registry.delete("one"))
            worker._poll_all_s = time.monotonic() + 60

    def published() -> None:
        if Status.RUNNING in chain(*observer.seen) and not worker._registry.runs and not stop_request:
            stop_request.request()
            queue.wake()

    observer.at_poll = at_poll
    worker = hosted("one", observer=observer, stop_request=stop_request, queue=queue, stays=True, publish=published)
    assert worker.run() == 0
    assert observer.read_last == ["one"]
    assert [Status.DONE] not in observer.seen


def test_a_wish_before_spark_is_up_gives_its_start_up(hosted: Callable[..., Worker]) -> None:
    """Java is killed, which ends the start; nothing failed."""
    stop_request, observer = StopRequest(), Observer()

    def connect(spark: Spark) -> None:
        stop_request.on_signal(signal.SIGINT, None)
        assert spark.java.killed.wait(20)
        raise SetupError("Java ended")

    Spark.connects = connect
    assert hosted("one", observer=observer, stop_request=stop_request).run() == 0
    assert Spark.made[0].closed


def test_a_start_of_spark_that_fails_is_told(hosted: Callable[..., Worker]) -> None:
    """With master and cause."""

    def connect(spark: Spark) -> None:
        raise ValueError("no such master")

    Spark.connects = connect
    with pytest.raises(SetupError, match=saying("Spark did not start", "local[4,4]", "no such master")):
        hosted("one", observer=Observer()).run()


def test_a_connector_that_runs_already_is_told_before_spark_starts(
    hosted: Callable[..., Worker], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody waits ten seconds for it."""
    with ConnectorLock(str(tmp_path / "tmp"), "one"):
        assert hosted("one", observer=Observer()).run() == 1
    assert Spark.made == []
    assert_line_says(caplog.text, "Connector one", "already running", "on this machine")


def test_one_that_cannot_run_keeps_nobody_from_it(hosted: Callable[..., Worker], tmp_path: Path) -> None:
    """The others start, and the exit status tells in the end."""
    observer, stop_request = Observer(), StopRequest()
    observer.at_poll = lambda: (
        stop_request.on_signal(15, None) if [Status.FAILED, Status.RUNNING] in observer.seen else None
    )
    with ConnectorLock(str(tmp_path / "tmp"), "one"):
        assert hosted("one", "two", observer=observer, stop_request=stop_request).run() == 1
    assert observer.seen[-1] == [Status.FAILED, Status.DONE]


@pytest.mark.parametrize("method", ["start", "poll"])
def test_an_exception_ends_one_connector(
    hosted: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Whatever goes wrong with one, the other runs on."""
    observer, stop_request = Observer(), StopRequest()
    honest = getattr(Connector, method)

    def broken(self: Connector, *words: object, **named: object) -> None:
        if self.settings.name == "one" and self.status is not Status.FAILED:
            raise OSError(28, "No space left on device")
        honest(self, *words, **named)

    monkeypatch.setattr(Connector, method, broken)
    observer.at_poll = lambda: (
        stop_request.on_signal(15, None) if [Status.FAILED, Status.RUNNING] in observer.seen else None
    )
    assert hosted("one", "two", observer=observer, stop_request=stop_request).run() == 1
    assert observer.seen[-1] == [Status.FAILED, Status.DONE]


def test_the_end_of_java_is_told_once(hosted: Callable[..., Worker], caplog: pytest.LogCaptureFixture) -> None:
    """In one clear sentence, and not as a failure of each connector."""
    observer = Observer()

    def kill() -> None:
        if [Status.RUNNING] in observer.seen:
            Spark.made[0].java.dead = True

    observer.at_poll = kill
    with pytest.raises(ConnectorError, match=saying("Java process ended", "killed")):
        hosted("one", observer=observer).run()
    assert "failed" not in caplog.text
    assert observer.closed == 1


def test_a_worker_lives_on_without_connectors(
    hosted: Callable[..., Worker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come and go by requests of other threads; who failed is no reason for another status at the end."""
    monkeypatch.setattr(Connector, "begun", True)  # there is no planner to say so
    observer, stop_request, queue = Observer(), StopRequest(), RequestQueue()
    worker = hosted(observer=observer, stop_request=stop_request, queue=queue, stays=True)
    herder = LocalHerder(worker._registry, queue, KafkaSettings())
    worker._publish = herder.publish

    def until(state: State, name: str = "one") -> None:
        deadline = time.monotonic() + 30
        while herder.status(name).state is not state:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def ask() -> None:
        try:
            herder.ping()
            assert herder.names() == ()
            herder.create("one", {})
            until(State.RUNNING)
            with ConnectorLock(str(tmp_path / "tmp"), "two"):
                herder.create("two", {})
                until(State.FAILED, "two")
            herder.set_target("one", TargetState.STOPPED)
            until(State.STOPPED)
        finally:
            stop_request.on_signal(signal.SIGTERM, None)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        assert worker.run() == 0
        asked.result(30)
    assert [one.status.state for one in herder.progress()] == [State.STOPPED, State.FAILED]
    with pytest.raises(ShuttingDown):
        herder.create("three", {})
    assert Spark.made[0].master == "local[11,4]"


@pytest.mark.parametrize(("connectors", "master"), [(1, "local[4,4]"), (3, "local[6,4]")])
def test_slots_are_as_many_as_connectors_need(hosted: Callable[..., Worker], connectors: int, master: str) -> None:
    """One for each, and three more."""
    observer, stop_request = Observer(), StopRequest()
    observer.at_poll = lambda: stop_request.on_signal(15, None) if Status.RUNNING in observer.seen[-1] else None
    names = [f"c{n}" for n in range(connectors)]
    assert hosted(*names, observer=observer, stop_request=stop_request).run() == 0
    assert Spark.made[0].master == master


@pytest.mark.parametrize(("expected", "master"), [(2, "local[11,4]"), (20, "local[23,4]")])
def test_a_worker_that_stays_has_slots_for_connectors_that_may_come(
    hosted: Callable[..., Worker], expected: int, master: str
) -> None:
    """For eight at least, and for those that a worker of a group may be given by others."""
    observer, stop_request = Observer(), StopRequest()
    observer.at_poll = lambda: stop_request.on_signal(15, None) if Status.RUNNING in observer.seen[-1] else None
    assert hosted("one", observer=observer, stop_request=stop_request, stays=True).run(expected) == 0
    assert Spark.made[0].master == master


def test_slots_of_a_cluster_are_shared_as_they_come(
    hosted: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark tells of two before its first executor is there; a connector that runs has those that come later."""
    observer, stop_request, shared = Observer(), StopRequest(), list[int]()
    worker = hosted("one", observer=observer, stop_request=stop_request, master="spark://m:7077")
    found = iter([2, 2, 32])
    monkeypatch.setattr(session_module, "slots", lambda spark: next(found, 32))
    monkeypatch.setattr("parquet_sink.worker.loop.worker.LOOK_S", 0.0)
    monkeypatch.setattr(Connector, "share", lambda self, slots: shared.append(slots))
    observer.at_poll = lambda: stop_request.on_signal(signal.SIGTERM, None) if 32 in shared else None
    assert worker.run() == 0
    assert shared == [32]


@pytest.mark.parametrize(("dead", "told"), [(True, "Java process ended"), (False, "its master removed it")])
def test_spark_that_has_stopped_ends_the_worker(
    hosted: Callable[..., Worker], monkeypatch: pytest.MonkeyPatch, dead: bool, told: str
) -> None:
    """A cluster's master that throws the application out leaves Java alive: only another start helps."""

    def slots(spark: Spark) -> int:
        Spark.made[0].java.dead = dead
        raise RuntimeError("Cannot call methods on a stopped SparkContext")

    worker = hosted("one", observer=Observer(), master="spark://m:7077", stays=True)
    monkeypatch.setattr(session_module, "slots", slots)
    with pytest.raises(ConnectorError, match=told):
        worker.run()
    assert Spark.made[0].closed


@pytest.mark.parametrize(
    ("most_s", "said"),
    [
        (0.0, ()),
        (1.5, ("flush in progress", "at most 1.5 s")),
    ],
)
def test_a_stop_promises_what_there_is(most_s: float, said: tuple[str, ...]) -> None:
    """Where nothing runs there is no flush to wait for, and none is told of."""
    notice = stop_notice(most_s)
    assert_says(notice, "second signal", "at once", *said)
    assert ("flush" in notice) == bool(said)


class Cluster:
    """Counts how often it was asked."""

    def __init__(self, slots: int) -> None:
        self.slots, self.asked = slots, 0

    def count(self) -> int:
        self.asked += 1
        return self.slots


def test_executors_that_come_later_are_used() -> None:
    """Spark says 2 before the first executor of a cluster is there, and what there is afterwards."""
    shares, cluster = SlotShares(local=False, cores=None, warns=True), Cluster(2)
    assert shares.changed(1, cluster.count, 0.0)
    assert shares.each == 2
    cluster.slots = 32
    assert not shares.changed(1, cluster.count, LOOK_S / 2)
    assert shares.changed(1, cluster.count, LOOK_S)
    assert shares.each == 32
    cluster.slots = 16
    assert shares.changed(1, cluster.count, 2 * LOOK_S)
    assert shares.each == 16
    assert not shares.changed(1, cluster.count, 3 * LOOK_S)


def test_local_slots_are_asked_for_once_for_each_number_of_connectors() -> None:
    """They are fixed, and the loop has better things to do."""
    shares, spark = SlotShares(local=True, cores=5, warns=True), Cluster(11)
    assert shares.changed(8, spark.count, 0.0)
    assert not shares.changed(8, spark.count, 100.0)
    assert (shares.each, spark.asked) == (4, 1)
    assert shares.changed(10, spark.count, 101.0)
    assert shares.each == 2


def test_too_few_local_slots_are_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """With the cure; and again when it got worse."""
    shares = SlotShares(local=True, cores=4, warns=True)
    for connectors in (11, 12, 13):
        shares.changed(connectors, Cluster(11).count, 0.0)
    at_12, at_13 = caplog.messages
    assert_says(at_12, "12 connectors", "11 slots", "wait for others", "--master local[N,4]")
    assert_says(at_13, "13 connectors", "11 slots", "wait for others", "--master local[N,4]")


def test_too_few_slots_of_a_cluster_are_told_once_they_had_time_to_come(caplog: pytest.LogCaptureFixture) -> None:
    """Executors that come within a minute are no shortage; a shortage is told once."""
    shares, cluster = SlotShares(local=False, cores=None, warns=True), Cluster(2)
    shares.changed(3, cluster.count, 0.0)
    shares.changed(3, cluster.count, PATIENCE_S - 1)
    assert caplog.messages == []
    for second in range(3):
        shares.changed(3, cluster.count, PATIENCE_S + second * LOOK_S)
    (told,) = caplog.messages
    assert "spark.cores.max" in told


def test_what_runs_files_alone_locally_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """`run` has the slots that its files need, or those that its user chose."""
    SlotShares(local=True, cores=None, warns=False).changed(3, Cluster(1).count, 0.0)
    assert caplog.messages == []


def test_one_alone_takes_four_and_beside_others_one_for_each_core_but_one() -> None:
    """On two cores a backlog leaves the others their turn; more than five change nothing."""
    shares = SlotShares(local=True, cores=2, warns=True)
    found = []
    for connectors in (1, 2, 4, 1):
        assert shares.changed(connectors, Cluster(11).count, 0.0)
        found.append(shares.each)
    assert found == [4, 1, 1, 4]
    assert [most_beside_others(3, cores) for cores in (0, 1, 2, 4, 5, 64)] == [1, 1, 1, 3, 4, 4]
