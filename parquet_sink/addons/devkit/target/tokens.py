"""Access tokens for uploads, as an authorization server gives them (OAuth 2.0, client credentials)."""

import base64
import binascii
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from parquet_sink.config.secret import Secret

TOKEN_PATH: Final = "/oauth2/token"
MOST_TOKENS: Final = 10_000


@dataclass(frozen=True)
class Client:
    """Who may ask for tokens."""

    id: str
    secret: Secret


class Denied(Exception):
    """No token, in the words of RFC 6749 (section 5.2)."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(status, code, text)
        self.status, self.code, self.text = status, code, text


class Tokens:
    """What was given to whom. lives_s: how long a token is good. scope: what must be asked for, None: anything.

    asked: requests by the status they were answered with. clock: seconds.
    """

    def __init__(
        self,
        clients: Sequence[Client],
        lives_s: int,
        scope: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients, self._lives_s, self._scope, self._clock = tuple(clients), lives_s, scope, clock
        self._good_until: dict[str, float] = {}
        self.asked: Counter[str] = Counter()

    def give(self, authorization: str | None, body: bytes) -> dict[str, object]:
        """The answer to a request with this header and form. Raises Denied."""
        form = _form(body)
        self._check_client(*_credentials(authorization, form))
        if form.get("grant_type") != "client_credentials":
            raise Denied(400, "unsupported_grant_type", "the grant is client_credentials here")
        scope = form.get("scope", "")
        if self._scope is not None and self._scope not in scope.split():
            raise Denied(400, "invalid_scope", f"ask for the scope {self._scope}")
        token = secrets.token_urlsafe(32)
        now = self._clock()
        if len(self._good_until) >= MOST_TOKENS:
            self._good_until = {one: end for one, end in self._good_until.items() if end > now}
        self._good_until[token] = now + self._lives_s
        return {"access_token": token, "token_type": "Bearer", "expires_in": self._lives_s, "scope": scope}

    def allow(self, authorization: str) -> bool:
        """Whether a header carries a token that is good now."""
        kind, _, token = authorization.partition(" ")
        return kind.lower() == "bearer" and self._clock() < self._good_until.get(token, 0.0)

    def withdraw(self) -> int:
        """No token given so far is good any more; how many those were."""
        count = len(self._good_until)
        self._good_until.clear()
        return count

    def _check_client(self, name: str, secret: str) -> None:
        known = [one for one in self._clients if one.id == name]
        if not any(hmac.compare_digest(one.secret.reveal().encode(), secret.encode()) for one in known):
            raise Denied(401, "invalid_client", "no client with this id and secret")


def _form(body: bytes) -> Mapping[str, str]:
    pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    if len(dict(pairs)) != len(pairs):
        raise Denied(400, "invalid_request", "a field stands twice in the form")
    return dict(pairs)


def _credentials(authorization: str | None, form: Mapping[str, str]) -> tuple[str, str]:
    """Id and secret, of the header or of the form, but not of both."""
    in_form = "client_secret" in form
    if (authorization is not None) == in_form:
        raise Denied(
            400 if in_form else 401,
            "invalid_request" if in_form else "invalid_client",
            "give id and secret in a Basic header, or as client_id and client_secret in the form",
        )
    if authorization is None:
        return form.get("client_id", ""), form["client_secret"]
    kind, _, value = authorization.partition(" ")
    try:
        name, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        kind = ""
    if kind.lower() != "basic":
        raise Denied(401, "invalid_client", "the header is no Basic one")
    return unquote_plus(name), unquote_plus(secret)
