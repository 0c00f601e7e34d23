"""Access tokens (OAuth 2 client credentials): asked for at the token endpoint, shared by threads, renewed in time.

The endpoint is that of RFC 6749, section 4.4. Of an answer that may hold a token nothing is ever quoted; of an error
its words are, without what was sent.
"""

import base64
import json
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus

from requests import Request

from parquet_sink import __version__
from parquet_sink.config.secret import Secret
from parquet_sink.net.exchange import (
    AccessToken,
    Answer,
    Blame,
    FailureKind,
    Limits,
    RequestFailed,
    TokenFailed,
    asked_wait,
)
from parquet_sink.net.redaction import printable, redact
from parquet_sink.net.session import HttpSession
from parquet_sink.net.settings import ClientCredentials

log = logging.getLogger(__name__)

MOST_ANSWER_BYTES: Final = 64 * 1024
_LONGEST_TOKEN: Final = 16 * 1024
_LONGEST_LIFE_S: Final = 10 * 365 * 86_400.0
_MAY_PASS: Final = frozenset({408, 421, 425, 429})
_NEVER: Final = frozenset({501, 505})
_NETWORK: Final = {
    FailureKind.CONNECT: (Blame.NETWORK, "no connection to it"),
    FailureKind.CONNECT_TIMEOUT: (Blame.NETWORK, "no connection to it in time"),
    FailureKind.PROXY: (Blame.NETWORK, "the proxy could not reach it, or could not be reached itself"),
    FailureKind.PROXY_REFUSED: (Blame.PROXY, "the proxy refused the connection"),
    FailureKind.TLS: (Blame.TLS, "its certificate or TLS version is not acceptable"),
    FailureKind.BROKEN: (Blame.SERVER, "the connection broke before its whole answer had come"),
    FailureKind.NO_ANSWER: (Blame.SERVER, "no whole answer of it came in time"),
}
_FINAL: Final = frozenset({Blame.PROXY, Blame.TLS})
RENEW_AT: Final = 0.8
"""The share of a token's life after which another is asked for, as Kafka's clients have it."""
RENEW_WITHIN_S: Final = 10.0
"""The longest that an upload waits for a newer token while it has a good one."""
PAUSE_S: Final = 30.0
"""Between two attempts to renew a token that is still good."""


class TokenEndpoint:
    """Asks one endpoint as one client. No connection is kept: a token is asked for a few times an hour.

    http: goes there. connect_s, answer_s: bounds in seconds. now: epoch seconds. hidden: more that may not be in a
    message.
    """

    def __init__(
        self,
        client: ClientCredentials,
        http: HttpSession,
        connect_s: float,
        answer_s: float,
        now: Callable[[], float] = time.time,
        hidden: tuple[str, ...] = (),
    ) -> None:
        self._client, self._http, self._connect_s, self._answer_s = client, http, connect_s, answer_s
        self._now = now
        self.secrets = (*_secrets(client), *hidden)
        self._shown = client.token_url.partition("?")[0]

    def ask(self, seconds: float) -> AccessToken:
        """A new token, within so many seconds. Raises TokenFailed, which names the address."""
        limits = Limits(seconds, self._connect_s, self._answer_s, MOST_ANSWER_BYTES)
        try:
            answer = self._http.exchange(self._request(), limits)
        except RequestFailed as error:
            raise self._unanswered(error.kind, error.detail) from None
        finally:
            self._http.close()
        token = self._token(answer)
        log.debug("%s gave an access token, good for %s s", self._shown, token.lives_s or "unknown")
        return token

    def _request(self) -> Request:
        client = self._client
        fields = {"grant_type": "client_credentials", **({"scope": client.scope} if client.scope else {})}
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": f"parquet-sink/{__version__}",
        }
        if client.in_body:
            fields |= {"client_id": client.client_id, "client_secret": client.client_secret.reveal()}
        else:
            headers["Authorization"] = f"Basic {_basic(client)}"
        return Request("POST", client.token_url, headers=headers, data=fields)

    def _token(self, answer: Answer) -> AccessToken:
        if not 200 <= answer.status < 300:
            raise self._refused(answer)
        if answer.broken is not None:
            raise self._unanswered(answer.broken)
        fields = _json_object(answer.body)
        value, kind = fields.get("access_token"), fields.get("token_type", "Bearer")
        if answer.too_long or not isinstance(value, str) or not isinstance(kind, str):
            what = printable(answer.headers.get("content-type", "")) or "no content type"
            raise self._failed(f"it answered {answer.status}, but not with a token ({what})", Blame.ADDRESS, True)
        if kind.lower() != "bearer":
            raise self._failed("it gives tokens of another type than Bearer, which cannot be sent", Blame.ADDRESS)
        if not value or len(value) > _LONGEST_TOKEN or not all("!" <= char <= "~" for char in value):
            raise self._failed("it gave a token that no HTTP header can carry", Blame.ADDRESS)
        return AccessToken(Secret(value), _life(fields.get("expires_in")))

    def _refused(self, answer: Answer) -> TokenFailed:
        """What an error means, by the code of RFC 6749 (section 5.2) where there is one, else by its status."""
        fields = _json_object(answer.body)
        words = [
            fields[name] for name in ("error", "error_description", "message") if isinstance(fields.get(name), str)
        ]
        said = f": {printable(redact(': '.join(words), self.secrets))}" if words else ""
        status = answer.status
        passing = status in _MAY_PASS or (status >= 500 and status not in _NEVER)
        wait = asked_wait(status, answer.headers, self._now())
        return self._failed(f"it answered {status}{said}", _blame(status, fields.get("error")), passing, wait)

    def _unanswered(self, kind: FailureKind, detail: str = "") -> TokenFailed:
        blame, cause = _NETWORK[kind]
        shown = printable(redact(detail, self.secrets))
        return self._failed(f"{cause} ({shown})" if shown else cause, blame, blame not in _FINAL)

    def _failed(self, cause: str, blame: Blame, passing: bool = False, wait_s: float | None = None) -> TokenFailed:
        text = f"there is no access token from {self._shown}: {cause}"
        return TokenFailed(text, blame, passing=passing, wait_s=wait_s)


def _basic(client: ClientCredentials) -> str:
    """Id and secret as section 2.3.1 has them: each encoded like a field of a form, then both in base 64."""
    pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret.reveal())}"
    return base64.b64encode(pair.encode()).decode()


def _secrets(client: ClientCredentials) -> tuple[str, ...]:
    """Whatever may not be in a message, also when a server echoes it."""
    secret = client.client_secret.reveal()
    return (secret, quote_plus(secret), _basic(client))


def _blame(status: int, code: object) -> Blame:
    if code == "invalid_scope":
        return Blame.SCOPE
    if code in ("invalid_client", "unauthorized_client", "invalid_grant", "access_denied") or status in (401, 403):
        return Blame.CLIENT
    if status == 407:
        return Blame.PROXY
    if status in _MAY_PASS or (status >= 500 and status not in _NEVER):
        return Blame.SERVER
    return Blame.ADDRESS if code is None or status != 400 else Blame.CLIENT


def _life(value: object) -> float | None:
    """Seconds as a number or, as some servers have it, as text; None for what says nothing. Never negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(seconds) else min(max(0.0, seconds), _LONGEST_LIFE_S)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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
