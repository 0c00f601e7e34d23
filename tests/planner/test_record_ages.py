"""A flush interval that cannot be kept is said: in the log, as an event, and when it is over."""

from dataclasses import replace

import pytest

from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.model.events import FlushIntervalExceeded
from parquet_sink.planner.record_ages import LOG_S
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import PAUSE
from tests.factories import Clock
from tests.messages import assert_says
from tests.planner.planner_cluster import SETTINGS, Cluster, done, planner_on

KEYS = [("orders", number) for number in range(5)]
INTERVAL_S = 3.0
TICK_S = 0.75


class Connector:
    """One whose micro-batches take as long as a test says, with a record a second in each topic-partition."""

    def __init__(self, state: SqliteStore, clock: Clock) -> None:
        self.cluster, self.clock, self._state = Cluster(), clock, state
        self.cluster.logs = dict.fromkeys(KEYS, (0, 0))
        self.done: dict[tuple[str, int], int] = {}

    def begin(self, *, reported: bool = False) -> None:
        flush = FlushSettings(1_000_000, 100_000, int(INTERVAL_S * 1_000))
        made = replace(SETTINGS, flush=flush)
        self.planner = planner_on(self.cluster, made, self._state, self.clock, reported=reported)
        self.planner.begin()

    def run(self, seconds: float, batch_s: float) -> None:
        """Ticks; each micro-batch takes so long."""
        end_s = self.clock.seconds + seconds
        while self.clock.seconds < end_s:
            self.cluster.logs = {key: (0, high + 1) for key, (_, high) in self.cluster.logs.items()}
            due = self.planner.tick(self.done)
            self.done = {(one.topic, one.partition): one.end for one in due}
            self.clock.sleep(batch_s if due else TICK_S)

    def ask(self, seconds: float, trigger_s: float, batch_s: float) -> None:
        """Likewise, of a sink that reports them, in a query that asks once in so many seconds."""
        end_s = self.clock.seconds + seconds
        while self.clock.seconds < end_s:
            self.cluster.logs = {key: (0, high + 1) for key, (_, high) in self.cluster.logs.items()}
            due = self.planner.tick(self.done)
            self.done = {(one.topic, one.partition): one.end for one in due}
            if due:
                self.clock.sleep(batch_s)
                self._state.record_accepted([done(one) for one in due], self.clock.now())
            self.clock.sleep(trigger_s - batch_s * bool(due))

    def told(self) -> list[FlushIntervalExceeded]:
        return [one for one in self._state.events_after(0).events if isinstance(one, FlushIntervalExceeded)]


@pytest.fixture
def connector(state: SqliteStore, clock: Clock) -> Connector:
    """One that has not begun."""
    return Connector(state, clock)


def test_an_interval_that_is_kept_is_not_told(connector: Connector, caplog: pytest.LogCaptureFixture) -> None:
    """Nor is one that is exceeded by what a micro-batch takes."""
    connector.begin()
    connector.run(60, batch_s=2.0)
    assert connector.told() == []
    assert caplog.messages == []


def test_micro_batches_that_take_longer_are_told(connector: Connector, caplog: pytest.LogCaptureFixture) -> None:
    """With how many waited, how long, and for what; in the log at once, and then every ten minutes."""
    connector.begin()
    connector.run(LOG_S + 90, batch_s=30.0)
    told = connector.told()
    assert {(one.partitions, one.interval_s, one.batch_ranges, one.batch_s) for one in told} == {
        (len(KEYS), INTERVAL_S, len(KEYS), 30.0)
    }
    assert {one.waited_s for one in told} == {30 - 2 * TICK_S}
    assert len(told) == pytest.approx(LOG_S / 30 + 2, abs=2)
    assert len(caplog.messages) == 2
    assert_says(caplog.messages[0], "connector orders", "flush interval of 3 s", "exceeded", "5 topic-partitions")


@pytest.mark.parametrize("batch_s", [0.5, 9.0])
def test_a_trigger_that_is_longer_is_told_as_that(
    connector: Connector, caplog: pytest.LogCaptureFixture, batch_s: float
) -> None:
    """In a PySpark program no slot helps: it names trigger and interval, and what the micro-batch took."""
    connector.begin(reported=True)
    connector.ask(300, trigger_s=30.0, batch_s=batch_s)
    told = connector.told()
    assert len(told) > 5
    assert {(one.idle_s, one.batch_s) for one in told if one.batch_ranges} == {(30.0 - batch_s, batch_s)}
    assert_says(
        caplog.messages[0], "connector orders", "interval of 3 s", "trigger of 3 s or less", "raise the interval"
    )
    assert "slots" not in caplog.text


def test_a_trigger_that_is_no_longer_is_not_to_blame(connector: Connector) -> None:
    """Micro-batches that take long are, where Spark asks for the next at once, or soon."""
    connector.begin(reported=True)
    connector.ask(300, trigger_s=31.0, batch_s=30.0)
    assert {(one.idle_s, one.batch_s) for one in connector.told()} == {(0.0, 30.0)}


def test_brokers_that_are_away_are_not_a_trigger(connector: Connector) -> None:
    """Spark asks all the time; so it is no longer trigger that is named when they are there again."""
    connector.begin(reported=True)
    connector.ask(60, trigger_s=TICK_S, batch_s=0.5)
    connector.cluster.away = 40
    connector.ask(60, trigger_s=TICK_S, batch_s=0.5)
    assert [one for one in connector.told() if one.idle_s] == []


def test_what_came_during_a_micro_batch_is_as_old_as_that(connector: Connector) -> None:
    """Nobody looked meanwhile: it is not held back for another interval, and its age in figures is not too young."""
    connector.begin()
    connector.run(10, batch_s=30.0)
    connector.cluster.logs = {key: (0, high + 1) for key, (_, high) in connector.cluster.logs.items()}
    assert len(connector.planner.tick(connector.done)) == len(KEYS)


def test_its_end_is_told_once(connector: Connector) -> None:
    """So that nothing says that it goes on."""
    connector.begin()
    connector.run(100, batch_s=30.0)
    connector.run(100, batch_s=0.5)
    counts = [one.partitions for one in connector.told()]
    assert counts.count(0) == 1
    assert counts[-1] == 0


def test_a_slow_first_micro_batch_is_not_told(connector: Connector, caplog: pytest.LogCaptureFixture) -> None:
    """In it all is loaded: neither it nor what came meanwhile is late."""
    connector.begin()
    connector.clock.sleep(30)  # what Spark takes before it asks, such as a micro-batch that it repeats
    connector.run(30, batch_s=30.0)
    connector.run(60, batch_s=0.5)
    assert connector.told() == []
    assert caplog.messages == []


@pytest.mark.parametrize("excuse", ["start", "pause"])
def test_what_waited_for_something_else_is_not_late(
    connector: Connector, state: SqliteStore, clock: Clock, excuse: str
) -> None:
    """What was there at the start, and what came during a pause."""
    if excuse == "start":
        connector.cluster.logs = dict.fromkeys(KEYS, (0, 50))
        connector.cluster.times.of = dict.fromkeys(KEYS, int(clock.now() * 1_000) - 3_600_000)
    connector.begin()
    state.set(PAUSE, excuse == "pause")
    connector.run(100 if excuse == "pause" else 0, batch_s=0.5)
    state.set(PAUSE, False)
    connector.run(60, batch_s=0.5)
    assert connector.told() == []
