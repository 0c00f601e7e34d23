"""Flushes of a connector that runs, in the worker: handed to the planner, reported, refused."""

from time import time

import pytest

from parquet_sink.model.events import FileAccepted, RecordsDelivered
from parquet_sink.model.flushes import FlushBounds, FlushProgress, progress_to_json, requests_from_json
from parquet_sink.model.receipts import Receipt
from parquet_sink.state.sqlite import SqliteStore
from parquet_sink.state.store import FLUSH, FLUSHED
from parquet_sink.worker.herder.errors import FlushRefused, UnknownConnector, UnknownFlush, UnknownPartitions
from parquet_sink.worker.herder.values import FlushState, TargetState
from parquet_sink.worker.loop.run_flushes import MOST_OPEN
from tests.worker.loop.worker_doubles import Loop


def receipt(first: int, last: int) -> Receipt:
    """An accepted file of eight rows."""
    return Receipt("one", "orders", 0, f"{first}.parquet", first, last, last + 1, 8, 10, 5, "request")


def running(loop: Loop) -> SqliteStore:
    """The state of connector one, which runs."""
    loop.requests.create("one", {})
    loop.settle()
    state = loop.made[-1].state
    assert state is not None
    return state


def seen(state: SqliteStore, reached: int) -> None:
    """As the planner reports it: offsets 10 to 20 waited."""
    (request,) = requests_from_json(state.get(FLUSH) or "")
    state.set(FLUSHED, progress_to_json([FlushProgress(request.id, (FlushBounds("orders", 0, 10, 20, reached),))]))


def test_a_flush_is_handed_over_and_followed(loop: Loop) -> None:
    """What went out with it is counted; what went out before it, or lies above, is not."""
    state = running(loop)
    before = receipt(0, 9)
    state.append_events([FileAccepted("one", time(), "orders", 0, before)])
    asked = loop.requests.flush("one")
    assert (asked.state, asked.partitions) == (FlushState.WAITING, ())
    assert loop.requests.flushed("one", asked.id).state is FlushState.WAITING
    mine = receipt(10, 19)
    state.append_events([FileAccepted("one", time(), "orders", 0, mine)])
    state.append_events([RecordsDelivered("one", time(), "orders", 0, 3, 12, 14, "a file")])
    seen(state, 10)
    found = loop.requests.flushed("one", asked.id)
    assert (found.state, found.partitions[0].files) == (FlushState.WAITING, 0)
    seen(state, 20)
    done = loop.requests.flushed("one", asked.id)
    (part,) = done.partitions
    assert (done.state, part.state, part.files, part.rows, part.size_bytes, part.records) == (
        *(FlushState.DONE, FlushState.DONE),
        *(1, 8, 5, 3),
    )
    assert loop.requests.flushed("one", asked.id) == done


def test_topic_partitions_are_named_by_what_is_there(loop: Loop) -> None:
    """All of a topic, or one; one that the connector does not have is refused with those that it has."""
    state = running(loop)
    loop.requests.flush("one", [("orders", None)])
    (request,) = requests_from_json(state.get(FLUSH) or "")
    assert request.partitions == (("orders", 0),)
    with pytest.raises(UnknownPartitions, match="orders:0"):
        loop.requests.flush("one", [("orders", 9)])
    with pytest.raises(UnknownPartitions, match="others"):
        loop.requests.flush("one", [("orders", 0), ("others", None)])


@pytest.mark.parametrize(("target", "cure"), [(TargetState.PAUSED, "resume it"), (TargetState.STOPPED, "resume it")])
def test_what_delivers_nothing_is_not_flushed(loop: Loop, target: TargetState, cure: str) -> None:
    """With what to do first."""
    running(loop)
    loop.requests.set_target("one", target)
    with pytest.raises(FlushRefused, match=cure):
        loop.requests.flush("one")
    loop.settle()
    with pytest.raises(FlushRefused, match=cure):
        loop.requests.flush("one")


def test_a_failed_connector_is_not_flushed(loop: Loop) -> None:
    """It is to be restarted; one that is not there is unknown."""
    loop.requests.create("one", {})
    loop.broken.add("one")
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.settle()
    with pytest.raises(FlushRefused, match="restart it"):
        loop.requests.flush("one")
    for ask in (lambda: loop.requests.flush("none"), lambda: loop.requests.flushed("none", "a")):
        with pytest.raises(UnknownConnector):
            ask()


def test_a_flush_of_a_run_that_ended_is_not_known(loop: Loop) -> None:
    """A restart ends what it followed, and says so."""
    running(loop)
    asked = loop.requests.flush("one")
    loop.requests.restart("one", include_tasks=True, only_failed=False)
    loop.settle()
    with pytest.raises(UnknownFlush, match=asked.id):
        loop.requests.flushed("one", asked.id)


def test_flushes_are_bounded(loop: Loop) -> None:
    """So many under way; those that are done make room."""
    state = running(loop)
    for _ in range(MOST_OPEN):
        loop.requests.flush("one")
    with pytest.raises(FlushRefused, match="wait for one"):
        loop.requests.flush("one")
    asked = requests_from_json(state.get(FLUSH) or "")
    state.set(FLUSHED, progress_to_json([FlushProgress(one.id, ()) for one in asked]))
    for _ in range(3 * MOST_OPEN):
        found = loop.requests.flush("one")
        done = requests_from_json(state.get(FLUSH) or "")
        assert len(done) <= MOST_OPEN + 1
        state.set(FLUSHED, progress_to_json([FlushProgress(one.id, ()) for one in done]))
    assert loop.requests.flushed("one", found.id).state is FlushState.DONE
