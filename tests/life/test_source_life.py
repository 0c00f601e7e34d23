"""A source's whole life, at random: 40 of them each time, and 20,000 by `make slow`; and it finds what it is for."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from parquet_sink.addons.sources.file import finding, task
from parquet_sink.addons.sources.file.marks import Known
from parquet_sink.addons.sources.flow import flush as source_flush
from parquet_sink.addons.sources.flow import stream as source_stream
from parquet_sink.addons.sources.memory import MemoryFile
from parquet_sink.model.events import Event
from tests.life.source_life import SourceLife
from tests.thorough import examples

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
SLOW_RUNS, SLOW_LIVES = 20, 1_000
Step = tuple[str, Mapping[str, Any]]


def lives(number: int, steps: int) -> settings:
    """So many, each of so many steps at most."""
    return settings(max_examples=number, stateful_step_count=steps, deadline=None, suppress_health_check=QUIET)


@pytest.mark.timeout(1_800)  # half a minute, where nothing else runs
def test_the_promise_holds_through_a_sources_life() -> None:
    """Lines come at least once, unaltered, in order, and not again without a cause, whatever happens to files.

    The same lives each time: `make slow` looks for others.
    """
    run_state_machine_as_test(SourceLife, settings=settings(lives(examples(100), 25), derandomize=True, database=None))


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("number", range(SLOW_RUNS))
def test_the_promise_holds_through_thousands_of_lives_of_a_source(number: int) -> None:
    """The same, a thousand lives for each seed: rare orders of things come up."""
    of_this_seed = seed(number)(type(f"SourceLife{number}", (SourceLife,), {}))
    run_state_machine_as_test(of_this_seed, settings=settings(lives(SLOW_LIVES, 25), database=None))


def no_memory_within_a_poll(patch: pytest.MonkeyPatch) -> None:
    """What is remembered is thrown away at a failure in the middle."""
    patch.setattr(source_flush, "_remembered_at", lambda task, record: {})


def no_first_sight(patch: pytest.MonkeyPatch) -> None:
    """Which file has the name is not remembered before something of it is sent."""
    patch.setattr(task.FileTask, "noticed", lambda self: None)


def no_times(patch: pytest.MonkeyPatch) -> None:
    """A look does not see when a file was written to."""
    seen = task._stat

    def sizes(path: str) -> tuple[int, int, int] | None:
        found = seen(path)
        return None if found is None else (*found[:2], 0)

    patch.setattr(task, "_stat", sizes)


def no_names(patch: pytest.MonkeyPatch) -> None:
    """What is remembered of one file is taken for another."""
    of_memory = Known.of_memory

    def of_any(memory: Mapping[str, object], name: str) -> Known:
        return of_memory({key: value for key, value in memory.items() if key != "filename"}, name)

    patch.setattr(Known, "of_memory", of_any)


def older_memory(patch: pytest.MonkeyPatch) -> None:
    """Of what is remembered at the same places the older counts."""
    write, read = MemoryFile.write, MemoryFile.read

    def both(self: MemoryFile, before: Any, after: Any, tasks: Any) -> None:
        write(self, before, after, read(self, after) if before == after and read(self, after) else tasks)

    patch.setattr(MemoryFile, "write", both)


def events_of_now(patch: pytest.MonkeyPatch) -> None:
    """Events have the time of their noting."""
    events, ticks = source_stream._events, count(1)

    def later(connector: str, one: Any) -> Iterator[Event]:
        at_s = float(next(ticks))
        return (replace(event, at_s=at_s) for event in events(connector, one))

    patch.setattr(source_stream, "_events", later)


def no_warning_of_trust(patch: pytest.MonkeyPatch) -> None:
    """Nobody is told that a position is trusted of which nothing is remembered."""
    patch.setattr(finding, "_warn_of_trust", lambda path, position: None)


FIRST: Step = ("write", {"lines": 4, "large": 2, "tail": False})
SMALL: Step = ("write", {"lines": 3, "large": -1, "tail": False})
ON: Step = ("goes_on", {"polls": 9, "wait_s": 1})
AWAY: Step = ("brokers_fail", {"polls": 9, "how": "away", "at": 1, "landed": 0})
ROTATED: Step = ("happens", {"what": "rotate", "lines": 0})
REWRITTEN: Step = ("happens", {"what": "rewrite", "lines": 0})
ELSEWHERE: Step = ("another_file_is_named", {})
ROTATION = [("rotate", 0), ("write", 4)]
RESTARTED: Step = ("starts_again", {"cured": True, "killed": False, "meanwhile": []})
ROTATED_AND_RESTARTED: Step = ("starts_again", {"cured": True, "killed": False, "meanwhile": ROTATION})
TAIL: Step = ("happens_at_rest", {"what": "write", "lines": 0})
COPIED: Step = ("happens_at_rest", {"what": "copy", "lines": 0})
FORGOTTEN: Step = ("memory_is_lost", {})
REPLACED: Step = ("starts_again", {"cured": False, "killed": False, "meanwhile": [("replace", 0), ("write", 0)]})
LIVES = [
    (no_memory_within_a_poll, [FIRST, ON, ROTATED_AND_RESTARTED]),
    (no_first_sight, [SMALL, AWAY, ROTATED, SMALL]),
    (no_times, [SMALL, ON, REWRITTEN]),
    (no_names, [SMALL, ON, ELSEWHERE, SMALL, ON, ELSEWHERE]),
    (older_memory, [SMALL, ON, REWRITTEN, ON, RESTARTED]),
    (events_of_now, [FIRST, ON]),
    (no_warning_of_trust, [TAIL, COPIED, TAIL, ON, FORGOTTEN, REPLACED, COPIED]),
]


def lived(steps: list[Step]) -> None:
    """One life. Raises AssertionError when a promise is broken."""
    life = SourceLife()
    try:
        for name, given in steps:
            getattr(life, name)(**given)
    finally:
        life.teardown()


@pytest.mark.parametrize(("broken", "steps"), LIVES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_life_finds_what_was_broken_once(
    broken: Callable[[pytest.MonkeyPatch], None], steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these lives is good, and is not when a mend is taken out."""
    lived(steps)
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        lived(steps)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("broken", [broken for broken, _ in LIVES])
def test_a_source_that_is_broken_on_purpose_is_found_out(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a mend, a promise is broken by some life that nobody wrote down."""
    broken(monkeypatch)
    of_this_seed = seed(1)(type("BrokenLife", (SourceLife,), {}))
    found = settings(lives(1_000, 50), database=None, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(of_this_seed, settings=found)
