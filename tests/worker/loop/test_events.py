"""Events on their way to listeners: each once, in order, and none stopped by another's trouble."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.model.events import (
    ConnectorRunning,
    ConnectorStarting,
    ConnectorStopped,
    Event,
    EventsDropped,
    FileArchived,
    OffsetCommitted,
)
from parquet_sink.model.receipts import Archiving
from parquet_sink.worker.loop.connector import Connector
from parquet_sink.worker.loop.events import EventDispatcher, Isolated
from parquet_sink.worker.loop.log_lines import LogLines
from tests.messages import assert_says
from tests.state.memory_events import MemoryEvents


class Recorder:
    """A listener that keeps what it is given."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.refreshes = self.closes = 0

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def refresh(self, connectors: Sequence[Connector]) -> None:
        self.refreshes += 1

    def close(self, connectors: Sequence[Connector]) -> None:
        self.closes += 1


class Raising(Recorder):
    """A listener that raises at everything."""

    def on_event(self, event: Event) -> None:
        raise ValueError(event)

    def refresh(self, connectors: Sequence[Connector]) -> None:
        raise ValueError

    def close(self, connectors: Sequence[Connector]) -> None:
        raise ValueError


class Unreadable(MemoryEvents):
    """A store whose disk is gone."""

    def events_after(self, position: int) -> Any:
        raise OSError("disk I/O error")


def connector(state: Any, name: str = "orders", news: Sequence[Event] = ()) -> Any:
    """What the dispatcher asks of a connector. news: what it has at the next look."""
    looks = chain([news], repeat(()))
    return SimpleNamespace(settings=SimpleNamespace(name=name), state=state, news=partial(next, looks))


def committed(number: int, partition: int = 0, name: str = "orders") -> OffsetCommitted:
    """The `number`-th commit of a topic-partition."""
    return OffsetCommitted(name, float(number), "orders", partition, number)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.booleans()), max_size=60))
def test_nothing_is_missed_and_order_holds(happens: list[tuple[str, int, bool]]) -> None:
    """Whatever happens in which order, and whenever is polled: every event once, in order for each topic-partition."""
    stores = {name: MemoryEvents() for name in "ab"}
    connectors = [connector(store, name) for name, store in stores.items()]
    recorder = Recorder()
    dispatcher = EventDispatcher([Isolated("raising", Raising), recorder])
    appended: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, (name, partition, polls) in enumerate(happens):
        stores[name].append_events([committed(number, partition, name)])
        appended[name, partition].append(number)
        if polls:
            dispatcher.poll(connectors)
    dispatcher.close(connectors)
    told: dict[tuple[str, int], list[int]] = defaultdict(list)
    for event in recorder.events:
        assert isinstance(event, OffsetCommitted)
        told[event.connector, event.partition].append(event.next_offset)
    assert told == appended
    assert recorder.closes == 1


def test_a_listener_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Others hear of everything, whether they come before or after it."""
    first, last = Recorder(), Recorder()
    dispatcher = EventDispatcher([first, Isolated("raising", Raising), last])
    store = MemoryEvents()
    store.append_events([committed(1)])
    dispatcher.emit(ConnectorStarting("orders", 1.0))
    dispatcher.poll([connector(store)])
    dispatcher.close([connector(store)])
    assert first.events == last.events == [ConnectorStarting("orders", 1.0), committed(1)]
    assert (last.refreshes, last.closes) == (1, 1)
    assert "raising: ValueError" in caplog.text


def test_what_was_dropped_is_counted() -> None:
    """A reader that came too late is told how many events it did not see, before those that are left."""
    store, recorder = MemoryEvents(3), Recorder()
    dispatcher = EventDispatcher([recorder], clock=lambda: 5.0)
    store.append_events([committed(number) for number in range(10)])
    dispatcher.poll([connector(store)])
    assert recorder.events == [EventsDropped("orders", 5.0, 7), committed(7), committed(8), committed(9)]


def test_an_unreadable_log_ends_nothing_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Other connectors' events come all the same, and so do its own once it can be read again."""
    broken, whole, recorder = MemoryEvents(), MemoryEvents(), Recorder()
    whole.append_events([committed(1, name="whole")])
    broken.append_events([committed(1)])
    read = broken.events_after
    dispatcher = EventDispatcher([recorder])
    connectors = [connector(broken), connector(whole, "whole")]

    def unreadable(position: int) -> Any:
        raise OSError("disk I/O error")

    broken.events_after = unreadable  # type: ignore[method-assign]
    dispatcher.poll(connectors)
    dispatcher.poll(connectors)
    assert recorder.events == [committed(1, name="whole")]
    assert len(caplog.records) == 1
    assert_says(caplog.messages[0], "connector orders", "cannot be read", "OSError: disk I/O error")
    broken.events_after = read  # type: ignore[method-assign]
    dispatcher.poll(connectors)
    assert recorder.events == [committed(1, name="whole"), committed(1)]


def test_news_of_a_connector_come_once_after_what_its_log_has() -> None:
    """Also of one whose log cannot be read: what it keeps for this look would be lost."""
    news, recorder, broken = FileArchived("orders", 9.0, "f", Archiving("directory:/a", 1)), Recorder(), Unreadable()
    store = MemoryEvents()
    store.append_events([committed(1)])
    dispatcher = EventDispatcher([recorder])
    connectors = [connector(store, news=[news]), connector(broken, "broken", [news])]
    dispatcher.poll(connectors)
    assert recorder.events == [committed(1), news, news]
    dispatcher.poll(connectors)
    assert len(recorder.events) == 3


def test_a_log_that_was_made_anew_is_read_from_its_beginning() -> None:
    """When the state file was removed under a running connector, its new one begins anew, too."""
    one, recorder = connector(MemoryEvents()), Recorder()
    dispatcher = EventDispatcher([recorder])
    one.state.append_events([committed(1), committed(2)])
    dispatcher.poll([one])
    one.state = MemoryEvents()
    one.state.append_events([committed(3)])
    dispatcher.poll([one])
    assert recorder.events == [committed(1), committed(2), committed(3)]


def test_a_connector_that_is_not_prepared_has_no_events() -> None:
    """It has no event log yet; listeners are refreshed all the same."""
    recorder = Recorder()
    EventDispatcher([recorder]).poll([connector(None)])
    assert (recorder.events, recorder.refreshes) == ([], 1)


class Broken:
    """A listener that fails from its second call on, and whenever it is closed."""

    def __init__(self) -> None:
        self.calls = self.closes = 0

    def on_event(self, event: Event) -> None:
        self.refresh(())

    def refresh(self, connectors: Sequence[Connector]) -> None:
        self.calls += 1
        if self.calls > 1:
            raise TypeError("a slip")

    def close(self, connectors: Sequence[Connector]) -> None:
        self.closes += 1
        raise OSError("no terminal")


def test_log_lines_take_the_place_of_a_view_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """The error is told once, the view is closed, and the event at which it failed has its log line, too."""
    caplog.set_level(logging.INFO)
    broken = Broken()
    isolated = Isolated("the live view", lambda: broken, LogLines)
    isolated.refresh([])
    isolated.on_event(ConnectorRunning("orders", 1.0))
    isolated.refresh([])
    isolated.on_event(ConnectorStopped("orders", 2.0))
    isolated.close([])
    assert (broken.calls, broken.closes) == (2, 1)
    replaced, *lines = caplog.messages
    assert_says(replaced, "live view", "TypeError: a slip", "log lines", "the run goes on")
    assert lines == ["connector orders: running", "connector orders: done"]


def test_a_view_that_cannot_begin_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    """The terminal may be gone before the view is made."""
    caplog.set_level(logging.INFO)

    def make() -> Broken:
        raise OSError(5, "Input/output error")

    isolated = Isolated("the live view", make, LogLines)
    isolated.on_event(ConnectorRunning("orders", 1.0))
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_listener_without_a_replacement_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """Each cause is logged once, and every event comes to it all the same."""
    broken = Broken()
    isolated = Isolated("metrics", lambda: broken)
    for number in range(4):
        isolated.on_event(ConnectorRunning("orders", float(number)))
    isolated.close([])
    assert broken.calls == 4
    assert [record.message for record in caplog.records] == [
        "metrics: TypeError: a slip",
        "metrics: OSError: no terminal",
    ]
