"""Rows written behind what is decoded: the same as in turn, bounded, and nothing left when something breaks."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_sink.errors import KafkaFailed, RegistryFailed
from parquet_sink.files import naming
from parquet_sink.kafka.several_ranges import ReadAhead, ReadInTurn
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.records import RecordBatch
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.connector import ErrorSettings
from parquet_sink.task import task as task_module
from parquet_sink.task.outcome import RangeOutcome
from parquet_sink.task.write_behind import WriteBehind
from tests.task.fakes import ACCEPTED, REFUSED, UNKNOWN, Run, Target
from tests.thorough import examples

VALUES = (
    b'{"id":1}',
    b'{"id":2,"new":"x"}',
    b'{"id":"text"}',
    b'{"id":1.5}',
    b'{"other":[1,{"a":2}]}',
    b"not JSON",
    None,
)


class Attempt:
    """Of a range, as far as `WriteBehind` knows it: each item is a call that is left to do."""

    ended = False

    def staged(self, call: Callable[[], None]) -> Callable[[], None]:
        """Itself."""
        return call


def taken(behind: WriteBehind, call: Callable[[], object], flush: Attempt | None = None) -> None:
    """Puts the call in the second stage."""
    attempt: Any = flush or Attempt()
    behind.take(attempt, call)  # type: ignore[arg-type]


def threads() -> set[str]:
    """Names of all that run."""
    return {thread.name for thread in threading.enumerate()}


def test_calls_are_made_in_order_and_all_before_the_end() -> None:
    """In one thread, which ends."""
    done: list[int] = []
    with WriteBehind() as behind:
        for number in range(100):
            taken(behind, lambda number=number: done.append(number))
    assert done == list(range(100))
    assert "write-behind" not in threads()


def test_nothing_is_done_for_a_range_that_has_ended() -> None:
    """The end of a range that was read is no end of what was not written."""
    flush, done = Attempt(), []

    def end() -> None:
        done.append("ended")
        flush.ended = True

    with WriteBehind() as behind:
        taken(behind, end, flush)
        taken(behind, lambda: done.append("more"), flush)
        taken(behind, lambda: done.append("another range"))
    assert done == ["ended", "another range"]


def test_a_defect_is_raised_where_records_are_taken() -> None:
    """By the next take, or at the end; nothing behind it is done."""
    done: list[str] = []

    def broken() -> None:
        raise ZeroDivisionError

    def take_two(*, waits: bool) -> None:
        with WriteBehind() as behind:
            taken(behind, broken)
            while waits and "write-behind" in threads():
                time.sleep(0.001)
            taken(behind, lambda: done.append("behind"))
            assert not waits

    for waits in (False, True):
        with pytest.raises(ZeroDivisionError):
            take_two(waits=waits)
    assert done == []


def test_what_waits_is_dropped_when_the_user_fails() -> None:
    """What is under way ends first, so that nobody writes files any more."""
    begun, go_on, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        begun.set()
        assert go_on.wait(30)
        done.append("slow")

    def take_and_fail() -> None:
        with WriteBehind() as behind:
            taken(behind, slow)
            taken(behind, lambda: done.append("waits"))
            assert begun.wait(30)
            threading.Timer(0.05, go_on.set).start()
            raise KafkaFailed("gone")

    with pytest.raises(KafkaFailed):
        take_and_fail()
    assert done == ["slow"]


@pytest.mark.parametrize(("room", "fit"), [(1, 1), (3.5, 3), (0, 1)])
def test_what_waits_is_bounded_by_its_bytes(room: float, fit: int) -> None:
    """A batch that is larger than all room waits alone."""
    batch = RecordBatch.of("t", 0, range(10), [0] * 10, [b"{}"] * 10)
    flush = SimpleNamespace(ended=False, staged=lambda item: lambda: go_on.wait(30))
    go_on, staged = threading.Event(), 0

    def take_all(behind: WriteBehind) -> None:
        nonlocal staged
        for _ in range(10):
            behind.take(flush, batch)  # type: ignore[arg-type]
            staged += 1

    with WriteBehind(round(room * batch.nbytes)) as behind:
        user = threading.Thread(target=take_all, args=(behind,))
        user.start()
        while staged < fit + 1:  # one is under way
            time.sleep(0.001)
        time.sleep(0.05)
        assert staged == fit + 1
        go_on.set()
        user.join()


def outcome_of(
    kind: type, planned: PlannedRange, batches: list[RecordBatch | BaseException], answers: list[Any], parks: bool
) -> tuple[RangeOutcome, Target]:
    """What a task says of one range, and the target with what it has then."""
    target = Target(*answers)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(task_module, "reading", kind)
        errors = ErrorSettings(invalid_records=True) if parks else ErrorSettings()
        ParkedFolder(naming.parked_folder(folder, "sink"), "sink", 10**9).prepare()
        run = Run(Path(folder))
        (outcome,) = run(target, (planned, batches), records=5, errors=errors, replans=True).values()
    return outcome, target


@settings(max_examples=examples(60))
@given(
    records=st.lists(st.tuples(st.integers(1, 3), st.sampled_from(VALUES)), min_size=1, max_size=40),
    cut=st.integers(1, 9),
    accepted=st.integers(0, 20),
    trouble=st.sampled_from((None, KafkaFailed("gone"), RegistryFailed("away"))),
    parks=st.booleans(),
)
def test_both_ways_have_the_same_outcome(
    records: list[tuple[int, bytes | None]], cut: int, accepted: int, trouble: BaseException | None, parks: bool
) -> None:
    """Files, what is accepted, rejected and learned: with gaps, what earlier attempts delivered, and trouble.

    A range that is planned again where an earlier attempt got to may have learned from records behind: they come again.
    """
    offsets = [sum(gap for gap, _ in records[: at + 1]) for at in range(len(records))]
    planned = PlannedRange("orders", 0, 0, offsets[-1] + 1, "interval", accepted=min(accepted, offsets[-1]))
    batches: list[RecordBatch | BaseException] = [
        RecordBatch.of(
            "orders",
            0,
            offsets[at : at + cut],
            [1_000] * len(offsets[at : at + cut]),
            [v for _, v in records[at : at + cut]],
        )
        for at in range(0, len(records), cut)
    ]
    batches += [] if trouble is None else [trouble]
    found = [outcome_of(kind, planned, batches, [], parks) for kind in (ReadInTurn, ReadAhead)]
    (in_turn, one), (behind, other) = found
    assert [(file.name, file.digest) for file in one.files] == [(file.name, file.digest) for file in other.files]
    for name in ("accepted_until", "failure", "again", "read", "value_bytes", "gaps"):
        assert getattr(in_turn, name) == getattr(behind, name), name
    if in_turn.again is None or in_turn.again.wait_s or accepted == 0:  # else a file of before ended it, behind
        assert in_turn.learned == behind.learned
    diverted = [
        one.diverted and (one.diverted.count, one.diverted.first, one.diverted.last) for one in (in_turn, behind)
    ]
    assert diverted[0] == diverted[1]


@pytest.mark.parametrize("answer", [REFUSED, UNKNOWN])
def test_a_refused_file_ends_the_range_in_both_ways(answer: Any) -> None:
    """However far the rows behind it had been decoded, nothing behind it is accepted."""
    planned = PlannedRange("orders", 0, 0, 400, "records")
    batches: list[Any] = [
        RecordBatch.of("orders", 0, range(n, n + 10), [1] * 10, [b'{"id":1}'] * 10) for n in range(0, 400, 10)
    ]
    for kind in (ReadInTurn, ReadAhead):
        outcome, target = outcome_of(kind, planned, batches, [ACCEPTED, answer], parks=False)
        assert (outcome.accepted_until, len(target.files)) == (5, 1)
        assert outcome.failure is not None
