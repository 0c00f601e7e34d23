"""The reference target as an authorization server."""

import base64
from urllib.parse import urlencode

import pytest

from parquet_sink.addons.devkit.target import tokens as module
from parquet_sink.addons.devkit.target.tokens import Client, Denied, Tokens
from parquet_sink.config.secret import Secret

GRANT = "grant_type=client_credentials"
FORM = f"{GRANT}&client_id=sink&client_secret=s%3A1"
HEADER = "Basic " + base64.b64encode(b"sink:s%3A1").decode()


class Clock:
    """A time that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def make(clock: Clock | None = None, scope: str | None = None) -> Tokens:
    """A server with one client."""
    return Tokens([Client("sink", Secret("s:1"))], 60, scope, clock or Clock())


def test_a_token_is_good_for_its_life() -> None:
    """And no longer."""
    clock = Clock()
    tokens = make(clock)
    given = tokens.give(HEADER, GRANT.encode())
    assert {name: given[name] for name in ("token_type", "expires_in")} == {"token_type": "Bearer", "expires_in": 60}
    header = f"bearer {given['access_token']}"
    clock.now = 59.9
    assert tokens.allow(header)
    clock.now = 60
    assert not tokens.allow(header)


def test_tokens_can_be_withdrawn() -> None:
    """All at once; new ones are good."""
    tokens = make()
    old = tokens.give(None, FORM.encode())["access_token"]
    assert tokens.withdraw() == 1
    new = tokens.give(None, FORM.encode())["access_token"]
    assert [tokens.allow(f"Bearer {one}") for one in (old, new)] == [False, True]


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "AppKey x", "Basic x"])
def test_what_is_no_token_opens_nothing(header: str) -> None:
    """Also while there are good ones."""
    tokens = make()
    tokens.give(HEADER, GRANT.encode())
    assert not tokens.allow(header)


@pytest.mark.parametrize(
    ("header", "form", "status", "code"),
    [
        (None, GRANT, 401, "invalid_client"),
        (HEADER, FORM, 400, "invalid_request"),
        (None, FORM.replace("s%3A1", "other"), 401, "invalid_client"),
        (None, FORM.replace("sink", "other"), 401, "invalid_client"),
        ("Bearer x", GRANT, 401, "invalid_client"),
        ("Basic ?", GRANT, 401, "invalid_client"),
        ("Basic /w==", GRANT, 401, "invalid_client"),
        (HEADER, "grant_type=password", 400, "unsupported_grant_type"),
        (HEADER, "", 400, "unsupported_grant_type"),
        (HEADER, f"{GRANT}&{GRANT}", 400, "invalid_request"),
        (HEADER, f"{GRANT}&scope=read", 400, "invalid_scope"),
        (HEADER, GRANT, 400, "invalid_scope"),
    ],
)
def test_who_is_denied(header: str | None, form: str, status: int, code: str) -> None:
    """In the words of RFC 6749, without what was sent."""
    with pytest.raises(Denied) as caught:
        make(scope="push").give(header, form.encode())
    assert (caught.value.status, caught.value.code) == (status, code)


def test_a_scope_may_stand_among_others() -> None:
    """It is given back as it was asked for."""
    form = urlencode({"grant_type": "client_credentials", "scope": "read push"})
    assert make(scope="push").give(HEADER, form.encode())["scope"] == "read push"


def test_what_is_over_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that runs for months does not grow."""
    monkeypatch.setattr(module, "MOST_TOKENS", 3)
    clock = Clock()
    tokens = make(clock)
    for clock.now in range(0, 6_000, 60):
        tokens.give(HEADER, GRANT.encode())
    assert len(tokens._good_until) <= 3
