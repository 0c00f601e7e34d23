"""The token endpoint of an authorization server, asked with client credentials (RFC 6749, section 4.4).

Of an answer that may hold a token nothing is ever quoted; of an error its words are, without what was sent.
"""

import base64
import json
import logging
import math
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote_plus

from requests import Request

from parquet_sink import __version__
from parquet_sink.config.secret import Secret
from parquet_sink.net.access_token import AccessToken, Blame, TokenFailed
from parquet_sink.net.asked_wait import asked_wait
from parquet_sink.net.exchange import Answer, FailureKind, Limits, RequestFailed
from parquet_sink.net.redaction import printable, redact
from parquet_sink.net.session import HttpSession
from parquet_sink.net.settings import ClientCredentials

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

log = logging.getLogger(__name__)


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
