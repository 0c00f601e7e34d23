"""Access tokens: asked for once, shared by the threads of a process, and renewed before they end.

Where they come from is `net.token_endpoint`, what they are `net.access_token`.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from parquet_sink.config.secret import Secret
from parquet_sink.net.access_token import AccessToken, Blame, TokenFailed

RENEW_AT: Final = 0.8
"""The share of a token's life after which another is asked for, as Kafka's clients have it."""
RENEW_WITHIN_S: Final = 10.0
"""The longest that an upload waits for a newer token while it has a good one."""
PAUSE_S: Final = 30.0
"""Between two attempts to renew a token that is still good."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Kept:
    """Times are the clock's; None: until it is refused."""

    token: AccessToken
    renew_at: float | None
    ends_at: float | None

    def fresh(self, now: float) -> bool:
        return self.renew_at is None or now < self.renew_at

    def good(self, now: float) -> bool:
        return self.ends_at is None or now < self.ends_at


class TokenSource:
    """The token of one client; threads may share it. One of them asks, the others wait, or use the one that is good.

    ask: gets a token within so many seconds, or raises TokenFailed. clock: seconds.
    """

    def __init__(self, ask: Callable[[float], AccessToken], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._clock = ask, clock
        self._asking = threading.Lock()
        self._writing = threading.Lock()
        self._kept: _Kept | None = None
        self._turns = 0
        self._failed: TokenFailed | None = None

    def get(self, seconds: float) -> AccessToken:
        """A token that is good, within so many seconds. Raises TokenFailed."""
        turn, kept, began = self._turns, self._kept, self._clock()
        if kept is not None and kept.good(began):
            return kept.token if kept.fresh(began) else self._renewed(kept, seconds)
        if not self._asking.acquire(timeout=max(0.0, seconds)):
            raise TokenFailed("another request for one is still under way", Blame.SERVER, passing=True)
        try:
            return self._own_turn(turn, seconds - (self._clock() - began))
        finally:
            self._asking.release()

    def reject(self, token: Secret) -> None:
        """Somebody refused this token: it is not given out again."""
        with self._writing:
            if self._kept is not None and self._kept.token.value == token:
                self._kept = None

    def _own_turn(self, turn: int, seconds: float) -> AccessToken:
        """For who has waited: what came of another's turn meanwhile, whatever that was, is its answer, too."""
        kept, failed = self._kept, self._failed
        if kept is not None and kept.good(self._clock()):
            return kept.token
        if self._turns != turn and failed is not None:
            raise TokenFailed(failed.cause, failed.blame, passing=failed.passing, wait_s=failed.wait_s)
        return self._asked(seconds)

    def _renewed(self, kept: _Kept, seconds: float) -> AccessToken:
        """A newer one, or the same as long as it is good: what cannot be renewed now may be later."""
        if not self._asking.acquire(blocking=False):
            return kept.token
        try:
            return self._asked(min(seconds, RENEW_WITHIN_S)) if self._kept is kept else kept.token
        except TokenFailed as failed:
            log.warning("an access token could not be renewed, and is used as long as it is good: %s", failed.cause)
            with self._writing:
                if self._kept is kept:
                    self._kept = _Kept(kept.token, self._clock() + PAUSE_S, kept.ends_at)
            return kept.token
        finally:
            self._asking.release()

    def _asked(self, seconds: float) -> AccessToken:
        began, self._failed = self._clock(), None
        try:
            token = self._ask(seconds)
        except TokenFailed as failed:
            self._failed = failed
            raise
        finally:
            self._turns += 1
        with self._writing:
            self._kept = _kept(token, began)
        return token


def _kept(token: AccessToken, began: float) -> _Kept:
    """Its life is counted from before it was asked for: it ends no later than that."""
    if token.lives_s is None:
        return _Kept(token, None, None)
    return _Kept(token, began + RENEW_AT * token.lives_s, began + token.lives_s)
