"""Connector files with an OAuth 2.0 client in place of a key."""

import pytest

from parquet_sink.config.secret import Secret, digest, dump_with_secrets, load_with_secrets
from parquet_sink.net.settings import ClientCredentials
from tests.connectors.ems.connector_files import CANARY, E, load_file, settings_of
from tests.messages import assert_says

O = f"{E}oauth2."  # noqa: E741 - beside E
CLIENT: dict[str, str | None] = {f"{E}authorization.key": None, f"{O}client.id": "sink", f"{O}client.secret": "s3cret"}


def test_id_and_secret_are_enough() -> None:
    """Tokens are asked for at the host of the endpoint, where the EMS gives them."""
    settings = settings_of(CLIENT)
    url = "https://team.realm.celonis.cloud/oauth2/token"
    assert settings.target.authorization == ClientCredentials("sink", Secret("s3cret"), url)  # type: ignore[union-attr]


def test_every_key_arrives() -> None:
    """A token endpoint elsewhere, a scope, and the secret in the form."""
    more = {"token.url": "https://auth:8443/t?tenant=1", "scope": "a.b:push c", "client.authentication": "POST"}
    settings = settings_of({**CLIENT, **{f"{O}{name}": text for name, text in more.items()}})
    expected = ClientCredentials("sink", Secret("s3cret"), "https://auth:8443/t?tenant=1", "a.b:push c", in_body=True)
    assert settings.target.authorization == expected  # type: ignore[union-attr]


def test_settings_cross_to_workers_whole_and_show_no_secret() -> None:
    """They are handed over by value, and are part of what tells connectors apart."""
    settings = settings_of({**CLIENT, f"{O}client.secret": "${env:SECRET}"})
    assert load_with_secrets(dump_with_secrets(settings)) == settings
    assert CANARY not in repr(settings)
    assert digest(settings) != digest(settings_of(CLIENT))


@pytest.mark.parametrize(
    ("changes", "key", "told"),
    [
        ({f"{O}client.secret": None}, f"{O}client.secret", ("missing", f"beside {O}client.id", "give the")),
        ({f"{O}client.id": " "}, f"{O}client.id", ("missing", f"beside {O}client.secret", "name the client")),
        (
            {f"{E}authorization.key": "AppKey k"},
            f"{E}authorization.key",
            ("Both", f"{O}client.id are set", "keep the key"),
        ),
        (
            {f"{E}authorization.key": "AppKey k", f"{O}client.id": None},
            *(f"{E}authorization.key", ("Both", f"{O}client.secret are set", "keep the key")),
        ),
        (
            {f"{O}client.id": None, f"{O}client.secret": None},
            f"{E}authorization.key",
            ("missing", "AppKey <key>", f"{O}client.id"),
        ),
        ({f"{O}token.url": "http://auth/t"}, f"{O}token.url", ('"http://auth/t"', "in clear", "use https")),
        ({f"{O}token.url": "auth/t"}, f"{O}token.url", ('"auth/t"', "not a valid URL", "https://<team>")),
        ({f"{O}token.url": "https://h:x/"}, f"{O}token.url", ("not a valid URL", "https://<team>")),
        ({f"{O}token.url": "https://<<team>>/"}, f"{O}token.url", ("template text", "<<...>>", "your own team")),
        ({f"{O}token.url": f"https://u:{CANARY}@h/t"}, f"{O}token.url", ("user or password", "remove them")),
        ({f"{O}token.url": "https://h/t#x"}, f"{O}token.url", ('"https://h/t#x"', "fragment", "begins with #")),
        ({f"{O}client.id": "grün"}, f"{O}client.id", ('"grün"', "no client id", "write")),
        ({f"{O}scope": 'a"b'}, f"{O}scope", ('"a"b"', "not a list of scopes", "write their names")),
        ({f"{O}client.authentication": "jwt"}, f"{O}client.authentication", ('"jwt"', "not one of", "basic, post")),
    ],
)
def test_what_is_wrong_is_named_with_its_cure(changes: dict[str, str | None], key: str, told: tuple[str, ...]) -> None:
    """One problem, of the key that is to be changed; no secret in it."""
    (problem,) = load_file({**CLIENT, **changes}).problems
    assert_says(problem, f"Invalid [{key}]", *told)
    assert CANARY not in problem


def test_tokens_may_be_asked_for_in_clear_where_that_is_permitted() -> None:
    """On this machine, or with the key that permits it for the endpoint."""
    assert load_file({**CLIENT, f"{O}token.url": "http://127.0.0.1:8085/oauth2/token"}).problems == ()
    assert load_file({**CLIENT, f"{O}token.url": "http://auth/t", f"{E}endpoint.allow.http": "true"}).problems == ()


def test_keys_of_tokens_without_a_client_are_warned_about() -> None:
    """Beside a fixed key they change nothing, and with a folder none of them does."""
    loaded = load_file({f"{O}scope": "a"})
    (warning,) = loaded.warnings
    assert_says(warning, f"[{O}scope]", "no effect", f"unless {O}client.id")
    client, secret = load_file({**CLIENT, f"{E}endpoint": "directory:/data"}).warnings
    assert_says(client, f"[{O}client.id]", "no effect")
    assert_says(secret, f"[{O}client.secret]", "no effect")
