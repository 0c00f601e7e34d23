"""Requests of other threads, done in the loop."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from parquet_sink.worker.herder.errors import ShuttingDown, TimedOut, UnknownConnector
from parquet_sink.worker.loop import request_queue as module
from parquet_sink.worker.loop.request_queue import RequestQueue


def nothing() -> None:
    """Happens after each request."""


def refuse() -> None:
    """What a request may answer."""
    raise UnknownConnector("x")


def test_a_request_is_done_in_the_loop() -> None:
    """Its result, or what it raises, goes to who asked; what is to happen after it has happened by then."""
    queue, order = RequestQueue(), list[str]()

    def act() -> int:
        order.append(f"done in {threading.current_thread().name}")
        return 7

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(queue.ask, act, 20.0)
        queue.work(20.0, lambda: order.append("published"))
        assert asked.result(20) == 7
        assert order == [f"done in {threading.current_thread().name}", "published"]
        refused = pool.submit(queue.ask, refuse, 20.0)
        queue.work(20.0, nothing)
        with pytest.raises(UnknownConnector):
            refused.result(20)


def test_a_request_that_is_not_begun_in_time_is_not_done() -> None:
    """Who asked was told so."""
    queue, done = RequestQueue(), list[int]()
    with pytest.raises(TimedOut, match="it was not done"):
        queue.ask(lambda: done.append(1), 0.01)
    queue.work(0.0, nothing)
    assert done == []


def test_a_request_that_takes_too_long_may_still_be_done() -> None:
    """Who asked is told that, too."""
    queue, begun, go_on = RequestQueue(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert go_on.wait(20)

    with ThreadPoolExecutor(2) as pool:
        loop = pool.submit(queue.work, 20.0, nothing)
        with pytest.raises(TimedOut, match="may still finish it"):
            queue.ask(slow, 0.2)
        assert begun.is_set()
        go_on.set()
        loop.result(20)


def test_what_nobody_foresaw_ends_no_loop(caplog: pytest.LogCaptureFixture) -> None:
    """Who asked gets it, the log has it, the next one is done."""
    queue = RequestQueue()
    broken = queue.put(lambda: 1 // 0)
    fine = queue.put(lambda: 1)
    queue.work(0.1, nothing)
    queue.work(0.1, nothing)
    assert isinstance(broken.exception(0), ZeroDivisionError)
    assert fine.result(0) == 1
    assert "a request to the worker failed" in caplog.text


def test_who_asks_a_worker_that_ends_is_told() -> None:
    """Those that wait, and those that come later."""
    queue = RequestQueue()
    waits = queue.put(lambda: 1)
    queue.close()
    queue.close()
    with pytest.raises(ShuttingDown):
        waits.result(0)
    with pytest.raises(ShuttingDown):
        queue.ask(lambda: 1, 1.0)


def test_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is told that it was not done."""
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    queue = RequestQueue()
    queue.put(nothing)
    queue.put(nothing)
    with pytest.raises(TimedOut, match="too many requests"):
        queue.ask(nothing, 1.0)


def test_a_loop_without_requests_waits_as_long_as_it_was_told() -> None:
    """And no longer: queries must be looked after."""
    RequestQueue().work(0.0, nothing)
