"""Retries uploads with back-off, and logs their attempts. Clocks, jitter and sleep are given by the caller.

The n-th wait is `retry.interval` doubled n-1 times, at most 5 minutes, of which a random share between half and all is
waited, so that many topic-partitions do not come back at once. What the target asks for takes its place when it is
longer, with the same cap. `max.retries` counts attempts in all, as in the reference; the time of all attempts and
waits together stays within `sink.put.timeout.ms`: a wait that would end later is not begun.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import tenacity

from parquet_sink.model.ranges import LONGEST_CAUSE, NO_TRIES, Attempt, AttemptCount, Tries, logged
from parquet_sink.targets.outcome import Outcome, Verdict
from parquet_sink.targets.settings import RetrySettings

LONGEST_WAIT_SECONDS: Final = 300.0
LEAST_SHARE: Final = 0.5
WAIT_HERE_S: Final = 2.0
"""Longest wait between two attempts within a Spark task; a longer one gives the slot back."""
PAUSE_S: Final = 1.0
"""Until it is looked again whether an attempt is allowed."""
NOT_ALLOWED: Final = Outcome(
    Verdict.RETRIABLE,
    "this worker's lease is over: it lost its session with the brokers, and another may have the connector by now",
    "It is sent again by whichever worker has the connector",
)
"""What comes of an attempt that is not made."""


@dataclass(frozen=True)
class RetryPolicy:
    """attempts: in all. interval_seconds: first wait. budget_seconds: for attempts and waits together."""

    attempts: int
    interval_seconds: float
    budget_seconds: float
    retry_refused: bool

    @classmethod
    def of(cls, settings: RetrySettings) -> "RetryPolicy":
        return cls(
            attempts=max(1, settings.max_retries),
            interval_seconds=settings.retry_interval_ms / 1000,
            budget_seconds=settings.put_timeout_ms / 1000,
            retry_refused=settings.error_policy == "RETRY",
        )


@dataclass(frozen=True)
class Surroundings:
    """What the policy does not know itself.

    elapsed: seconds since this task began with the upload. now: epoch seconds. jitter: a number from 0 to 1. sleep:
    waits so many seconds, or less when stopped. stopped: whether to give up waiting. longest_wait_s: a longer wait is
    not waited here, but is the caller's. allowed: looked at right before each attempt; where it is not, none is made
    here any more, and the next is the caller's.
    """

    elapsed: Callable[[], float]
    now: Callable[[], float]
    jitter: Callable[[], float]
    sleep: Callable[[float], None]
    stopped: Callable[[], bool]
    longest_wait_s: float = WAIT_HERE_S
    allowed: Callable[[], bool] = lambda: True


def should_retry(outcome: Outcome, policy: RetryPolicy) -> bool:
    """Whether another attempt could help, as far as the outcome tells."""
    if outcome.verdict is Verdict.REFUSED:
        return policy.retry_refused
    return outcome.verdict is not Verdict.ACCEPTED


def wait_seconds(attempt: int, policy: RetryPolicy, retry_after: float | None, jitter: float) -> float:
    """Seconds to wait after the `attempt`-th attempt (from 1). `jitter` is in 0 to 1."""
    exponent = min(attempt - 1, 32)  # beyond that the cap holds anyway
    backoff = min(LONGEST_WAIT_SECONDS, policy.interval_seconds * 2.0**exponent)
    jittered = backoff * (LEAST_SHARE + (1 - LEAST_SHARE) * jitter)
    return max(jittered, min(retry_after or 0.0, LONGEST_WAIT_SECONDS))


def within_budget(attempts: int, elapsed: float, wait: float, policy: RetryPolicy) -> bool:
    """Whether after so many attempts and seconds, and this wait, another attempt is allowed."""
    return attempts < policy.attempts and elapsed + wait < policy.budget_seconds


@dataclass(frozen=True)
class Sent:
    """How sending ended. tries: all of them, with earlier ones. wait_s: until the next one is due, None: no more.

    answers: how the attempts came out that were made here, without the earlier ones; none is left out.
    """

    outcome: Outcome
    tries: Tries
    wait_s: float | None
    answers: tuple[AttemptCount, ...]


def send_with_retries(
    send: Callable[[float], Outcome],
    policy: RetryPolicy,
    around: Surroundings,
    before_wait: Callable[[Outcome, float], None],
    earlier: Tries = NO_TRIES,
) -> Sent:
    """Calls `send(seconds left)` until its outcome is final, the budget ends, or a wait is longer than is waited here.

    A longer wait is the driver's: whoever waits here keeps a Spark slot from others. earlier: attempts made before such
    a wait, and the time since the first of them. `before_wait` gets each outcome that will be tried again, and the
    seconds until then.
    """
    attempts = _Attempts(send, policy, around, before_wait, earlier)
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda outcome: should_retry(outcome, policy) and not around.stopped()),
        wait=attempts.wait,
        stop=attempts.stop,
        sleep=around.sleep,
        before_sleep=lambda state: before_wait(_outcome(state), state.upcoming_sleep),
        retry_error_callback=_outcome,
    )
    outcome = retrying(attempts.attempt)
    answers = tuple(AttemptCount(*answer, count) for answer, count in attempts.counts.items())
    return Sent(outcome, attempts.tries(), attempts.postponed_s, answers)


class _Attempts:
    """The attempts of one upload in this task, counted on from earlier ones."""

    def __init__(
        self,
        send: Callable[[float], Outcome],
        policy: RetryPolicy,
        around: Surroundings,
        before_wait: Callable[[Outcome, float], None],
        earlier: Tries,
    ) -> None:
        self._send, self._policy, self._around, self._before_wait = send, policy, around, before_wait
        self._earlier, self._log = earlier, earlier.log
        self._last: Outcome | None = None
        self.counts: Counter[tuple[str, int | None]] = Counter()
        self.postponed_s: float | None = None

    def tries(self) -> Tries:
        attempts = self._earlier.attempts + self.counts.total()
        elapsed_s = self._earlier.elapsed_s + self._around.elapsed()
        return Tries(attempts, elapsed_s, log=self._log, sent_before=self._earlier.sent_before)

    def attempt(self) -> Outcome:
        if self._last is not None and self._around.stopped():  # the wait was cut short
            return self._last
        if not self._around.allowed():
            self.postponed_s = PAUSE_S
            return NOT_ALLOWED
        at_ms, began_s = round(self._around.now() * 1000), self._around.elapsed()
        outcome = self._send(max(0.0, self._policy.budget_seconds - self._earlier.elapsed_s - began_s))
        verdict, cause = str(outcome.verdict), outcome.cause[:LONGEST_CAUSE]
        attempt = Attempt(at_ms, self._around.elapsed() - began_s, verdict, outcome.status, cause)
        self._last, self._log = outcome, logged(self._log, attempt)
        self.counts[verdict, outcome.status] += 1
        return outcome

    def wait(self, state: tenacity.RetryCallState) -> float:
        asked = _outcome(state).retry_after_seconds
        return wait_seconds(self.tries().attempts, self._policy, asked, self._around.jitter())

    def stop(self, state: tenacity.RetryCallState) -> bool:
        if self.postponed_s is not None:
            self._before_wait(_outcome(state), self.postponed_s)
            return True
        tries = self.tries()
        allowed = within_budget(tries.attempts, tries.elapsed_s, state.upcoming_sleep, self._policy)
        if self._around.stopped() or not allowed:
            return True
        if state.upcoming_sleep <= self._around.longest_wait_s:
            return False
        self.postponed_s = state.upcoming_sleep
        self._before_wait(_outcome(state), state.upcoming_sleep)
        return True


def _outcome(state: tenacity.RetryCallState) -> Outcome:
    assert state.outcome is not None
    result: Outcome = state.outcome.result()
    return result
