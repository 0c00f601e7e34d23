"""Whatever happens to a connector, docs/explanation/reliability.md holds."""

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.life.broken import BROKEN, RARE
from tests.life.known import KNOWN
from tests.life.machine import Life
from tests.thorough import examples

LIVES = settings(max_examples=examples(100), stateful_step_count=12, suppress_health_check=list(HealthCheck))
SLOW_RUNS, SLOW_LIVES = 20, 1_000


@pytest.mark.timeout(1_800)  # half a minute, where nothing else runs
def test_whatever_happens_the_promise_holds() -> None:
    """Any life: records, answers, crashes, lost files and other hands in any order break no promise.

    The same lives each time: `make slow` looks for others.
    """
    run_state_machine_as_test(Life, settings=settings(LIVES, derandomize=True, database=None))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("number", range(SLOW_RUNS))
def test_whatever_happens_in_thousands_of_lives(number: int) -> None:
    """The same, a thousand lives for each seed."""
    of_this_seed = seed(number)(type(f"Life{number}", (Life,), {}))
    run_state_machine_as_test(of_this_seed, settings=settings(LIVES, max_examples=SLOW_LIVES, database=None))


@pytest.mark.parametrize("name", KNOWN)
def test_what_once_broke_a_promise_holds(name: str) -> None:
    """Each life that was found to break one, in its shortest form."""
    KNOWN[name].play()


@pytest.mark.parametrize("name", BROKEN)
def test_a_sink_that_is_broken_on_purpose_breaks_a_promise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its mend, a known life breaks the promise that it once broke."""
    BROKEN[name](monkeypatch)
    with pytest.raises(AssertionError, match=KNOWN[name].broken):
        KNOWN[name].play()


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", [name for name in BROKEN if name not in RARE])
def test_a_sink_that_is_broken_on_purpose_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its mend, a promise is broken by some life that nobody wrote down: which one first is left to chance."""
    BROKEN[name](monkeypatch)
    of_this_seed = seed(1)(type("BrokenLife", (Life,), {}))
    lives = settings(LIVES, max_examples=SLOW_LIVES, database=None, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(of_this_seed, settings=lives)
