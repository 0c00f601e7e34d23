"""When to try again, and after how long."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_sink.model.ranges import NO_TRIES, Tries
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.retry import (
    LONGEST_WAIT_SECONDS,
    WAIT_HERE_S,
    RetryPolicy,
    Surroundings,
    send_with_retries,
    should_retry,
    wait_seconds,
)
from parquet_sink.targets.settings import RetrySettings
from tests.factories import Clock

POLICY = RetryPolicy(attempts=10, interval_seconds=1, budget_seconds=1000, retry_refused=False)


def test_policy_of_settings() -> None:
    """The keys mean attempts in all, milliseconds, and whether refusals are tried again."""
    settings = RetrySettings(max_retries=3, retry_interval_ms=1500, put_timeout_ms=9000)
    assert RetryPolicy.of(settings) == RetryPolicy(3, 1.5, 9.0, retry_refused=False)


@pytest.mark.parametrize(
    ("verdict", "throw", "retry"),
    [
        (Verdict.ACCEPTED, False, False),
        (Verdict.REFUSED, False, True),
        (Verdict.RETRIABLE, True, True),
        (Verdict.UNKNOWN, True, True),
    ],
)
def test_what_is_tried_again(verdict: Verdict, throw: bool, retry: bool) -> None:
    """Refusals are tried again with RETRY only; retriable and unknown outcomes always."""
    policies = (POLICY, RetryPolicy(10, 1, 1000, retry_refused=True))
    assert [should_retry(Outcome(verdict, ""), p) for p in policies] == [throw, retry]


def test_waits_grow_from_the_interval() -> None:
    """Waits start at retry.interval, double, and end at five minutes."""
    waits = [wait_seconds(n, POLICY, None, 1.0) for n in (1, 2, 3, 9, 10, 5000)]
    assert waits == [1, 2, 4, 256, LONGEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS]


@given(st.integers(1, 100), st.floats(0, 1), st.none() | st.floats(0, 1e12))
def test_waits_are_bounded(attempt: int, jitter: float, retry_after: float | None) -> None:
    """Whatever a target asks for, a wait is between half the interval and five minutes."""
    assert 0.5 <= wait_seconds(attempt, POLICY, retry_after, jitter) <= LONGEST_WAIT_SECONDS


def test_retry_after_wins_when_longer() -> None:
    """A target that asks for more time gets it, up to the cap; asking for less does not shorten a wait."""
    assert wait_seconds(1, POLICY, 30, 1.0) == 30
    assert wait_seconds(1, POLICY, 9999, 1.0) == LONGEST_WAIT_SECONDS
    assert wait_seconds(3, POLICY, 1, 1.0) == 4


class Sleeper(Clock):
    """A clock with what else retries see of the world."""

    stopped = False

    def around(self) -> Surroundings:
        """Nothing is left to chance."""
        return Surroundings(self.now, self.now, lambda: 1.0, self.sleep, lambda: self.stopped)


def run(policy: RetryPolicy, clock: Sleeper, outcomes: Callable[[int], Outcome]) -> tuple[Outcome, int, list[float]]:
    """Sends until it ends; also the seconds left that each attempt was given."""
    given_seconds: list[float] = []

    def send(left: float) -> Outcome:
        given_seconds.append(left)
        return outcomes(len(given_seconds))

    earlier, waits = NO_TRIES, list[float]()
    while True:
        before = clock.seconds
        around = replace(clock.around(), elapsed=lambda: clock.seconds - before)  # noqa: B023 - called within the round
        sent = send_with_retries(send, policy, around, lambda outcome, wait: waits.append(wait), earlier)
        if sent.wait_s is None:
            break
        assert sent.wait_s > WAIT_HERE_S
        clock.sleep(sent.wait_s)  # as the driver does
        earlier = Tries(sent.tries.attempts, sent.tries.elapsed_s + sent.wait_s)
    assert sent.tries.attempts == len(given_seconds)
    assert waits[: len(clock.waits)] == clock.waits, "each wait is told"
    return sent.outcome, sent.tries.attempts, given_seconds


def test_attempts_are_bounded() -> None:
    """max.retries counts attempts in all, and the last outcome is returned."""
    clock = Sleeper()
    policy = RetryPolicy(4, 1, 1000, retry_refused=False)
    outcome, attempts, left = run(policy, clock, lambda n: Outcome(Verdict.UNKNOWN, f"no. {n}"))
    assert (outcome.cause, attempts, clock.waits) == ("no. 4", 4, [1, 2, 4])
    assert left == [1000, 999, 997, 993]


def test_time_is_bounded() -> None:
    """A wait that would pass the budget is not begun."""
    clock = Sleeper()
    _, attempts, _ = run(RetryPolicy(100, 10, 60, retry_refused=False), clock, lambda n: Outcome(Verdict.RETRIABLE, ""))
    assert (attempts, clock.waits) == (3, [10, 20])


def test_the_third_attempt_may_do() -> None:
    """Acceptance ends the retries."""
    outcomes = [Outcome(Verdict.UNKNOWN, ""), Outcome(Verdict.RETRIABLE, ""), Outcome(Verdict.ACCEPTED, "")]
    outcome, attempts, _ = run(POLICY, Sleeper(), lambda n: outcomes[n - 1])
    assert (outcome.verdict, attempts) == (Verdict.ACCEPTED, 3)


def test_a_refusal_ends_at_once() -> None:
    """With THROW a refusal is not tried again."""
    assert run(POLICY, Sleeper(), lambda n: Outcome(Verdict.REFUSED, ""))[1] == 1


def test_retry_after_is_waited() -> None:
    """The wait that a target asks for is waited, where it asks for more than ours."""
    clock = Sleeper()
    asked = [60.0, 240.0, None]
    run(
        RetryPolicy(4, 1, 1000, retry_refused=False),
        clock,
        lambda n: Outcome(Verdict.RETRIABLE, "", retry_after_seconds=asked[min(n, 3) - 1]),
    )
    assert clock.waits == [60, 240, 4]


@pytest.mark.parametrize("when", ["while sending", "while waiting"])
def test_a_stop_ends_the_retries(when: str) -> None:
    """When the connector stops, neither a wait nor an attempt is begun any more."""
    clock = Sleeper()

    def sleep(seconds: float) -> None:
        clock.stopped = True

    def outcome(n: int) -> Outcome:
        clock.stopped = when == "while sending"
        return Outcome(Verdict.UNKNOWN, f"no. {n}")

    clock.sleep = sleep  # type: ignore[method-assign]
    assert run(POLICY, clock, outcome)[:2] == (Outcome(Verdict.UNKNOWN, "no. 1"), 1)
