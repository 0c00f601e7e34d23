"""Who may ask: users and passwords, the host that was meant, pages of other origins, headers of every answer."""

import logging
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace

import pytest

from parquet_sink.config.secret import Secret
from parquet_sink.process.logs import connector_of
from parquet_sink.worker.rest.authentication import CHALLENGE, Users
from parquet_sink.worker_config.rest.settings import CrossOrigin, RestSettings
from parquet_sink.worker_config.rest.values import Address, parse_rules
from tests.messages import assert_says
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, LOOPBACK, Client, serving

SETTINGS = RestSettings(listeners=LOOPBACK)
USERS = (("ann", Secret("secret-1")), ("böb", Secret("with:colon ü")))


def _basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (_basic("ann", "secret-1"), True),
        (_basic("ann", "secret-1").replace("Basic", "bAsIc"), True),
        (_basic("böb", "with:colon ü"), True),
        (_basic("ann", "secret-2"), False),
        (_basic("ann", ""), False),
        (_basic("böb", "secret-1"), False),
        (_basic("", ""), False),
        ("Bearer " + b64encode(b"ann:secret-1").decode(), False),
        ("Basic ann:secret-1", False),
        ("Basic \udcff", False),
        ("Basic", False),
        ("", False),
        (None, False),
    ],
)
def test_only_a_known_user_with_the_password_signs_in(header: str | None, allowed: bool) -> None:
    """By RFC 7617, in UTF-8."""
    assert (Users(USERS).find_user(header) is not None) is allowed


def test_every_path_asks_for_a_user(caplog: pytest.LogCaptureFixture) -> None:
    """401 with the challenge, nothing done; failures are told once in ten seconds, and no name is."""
    herder = FakeHerder()
    herder.kept["c"] = Kept(dict(GOOD))
    with caplog.at_level(logging.WARNING), serving(herder, replace(SETTINGS, users=USERS)) as client:
        paths = (
            ("GET", "/"),
            ("GET", "/health"),
            ("GET", "/metrics"),
            ("DELETE", "/connectors/c"),
            ("GET", "/x"),
        )
        for method, path in paths:
            for headers in ({}, {"Authorization": _basic("mallory", "guess")}):
                got = client.ask(method, path, headers=headers)
                assert got.error == (401, "User cannot access the resource.")
                assert got.headers["WWW-Authenticate"] == CHALLENGE
        signed = {"Authorization": _basic("ann", "secret-1")}
        assert client.ask("DELETE", "/connectors/c", headers=signed).status == 204
        assert "basic" in client.ask("GET", "/openapi.json", headers=signed).json["components"]["securitySchemes"]
    told = [one.getMessage() for one in caplog.records if "without a valid user" in one.getMessage()]
    assert len(told) == 1
    assert "mallory" not in caplog.text


def test_who_changed_what_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """One line for each change, with user and connector; none for who only looks."""
    herder = FakeHerder()
    herder.kept["a\nb"] = Kept(dict(GOOD))
    signed = {"Authorization": _basic("böb", "with:colon ü")}
    with caplog.at_level(logging.INFO), serving(herder, replace(SETTINGS, users=USERS)) as client:
        client.ask("GET", "/connectors", headers=signed)
        client.ask("PUT", "/connectors/a%0Ab/pause", headers=signed)
    [told] = [one for one in caplog.records if one.name.endswith("rest.app")]
    assert_says(told.getMessage(), "PUT /connectors/a%0Ab/pause", "by böb", "127.0.0.1", "202")
    assert connector_of(told) == "a\nb"


def test_probes_may_ask_for_health_alone() -> None:
    """Where the worker file says so."""
    with serving(FakeHerder(), replace(SETTINGS, users=USERS, anonymous_health=True)) as client:
        assert client.get("/health").status == 200
        assert client.ask("PUT", "/health").status == 401
        assert client.get("/").status == 401
        assert client.get("/health/../connectors").status == 401


@pytest.fixture(scope="module")
def named() -> Iterator[Client]:
    """Of a server that has a name behind a proxy."""
    with serving(FakeHerder(), replace(SETTINGS, advertised_host="worker.example.com")) as client:
        yield client


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:9999", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1:8083", 200),
        ("[::1]:8083", 200),
        ("worker.example.com:443", 200),
        ("evil.example.com", 421),
        ("localhost.evil.com", 421),
        ("127.0.0.1.evil.com", 421),
        ("[::1", 421),
        ("@localhost", 200),
    ],
)
def test_a_request_for_another_host_is_refused(named: Client, host: str, status: int) -> None:
    """A page whose name was made to mean this machine (DNS rebinding) reads nothing."""
    assert named.get("/connectors", Host=host).status == status


def test_host_and_origin_are_checked_where_users_sign_in_too() -> None:
    """A browser may send a user's password by itself, so neither another host nor another origin is let in with it."""
    herder = FakeHerder()
    herder.kept["c"] = Kept(dict(GOOD))
    with serving(herder, replace(SETTINGS, users=USERS)) as client:
        signed_in = {"Authorization": _basic("ann", "secret-1")}
        assert client.ask("GET", "/", headers={**signed_in, "Host": "anything.example.com"}).status == 421
        for origin in ("https://evil.example.com", "http://[", "http://]"):
            for headers in (signed_in, {}):
                asked = client.ask("DELETE", "/connectors/c", headers={**headers, "Origin": origin})
                assert asked.error[0] == 403
    assert set(herder.kept) == {"c"}


def test_a_page_of_another_origin_changes_nothing(api: Client, herder: FakeHerder) -> None:
    """Also by requests that a browser sends without asking first; its own origin may, and reading is not hindered."""
    herder.kept["c"] = Kept(dict(GOOD))
    for origin in ("https://evil.example.com", "null", f"http://localhost:{api.port + 1}"):
        assert api.ask("POST", "/connectors/c/restart", headers={"Origin": origin}).error[0] == 403
        read = api.get("/connectors", Origin=origin)
        assert (read.status, read.headers["Access-Control-Allow-Origin"]) == (200, None)
    assert herder.asked == []
    same = {"Origin": f"http://127.0.0.1:{api.port}"}
    assert api.ask("POST", "/connectors/c/restart", headers=same).status == 204


@pytest.mark.parametrize(
    ("origins", "origin", "allowed", "credentials"),
    [
        (("https://ops.example.com",), "https://ops.example.com", "https://ops.example.com", "true"),
        (("https://ops.example.com",), "https://ops.example.com.evil.com", None, None),
        (("https://ops.example.com",), "https://opsxexample.com", None, None),
        (("https://*.example.com",), "https://a.b.example.com", "https://a.b.example.com", "true"),
        (("https://*.example.com",), "https://evil.com/.example.com", None, None),
        (("*",), "https://anybody.com", "*", None),
    ],
)
def test_origins_that_are_named_may_read_and_change(
    origins: tuple[str, ...], origin: str, allowed: str | None, credentials: str | None
) -> None:
    """`*` lets everybody in, who then cannot send credentials."""
    herder = FakeHerder()
    herder.kept["c"] = Kept(dict(GOOD))
    with serving(herder, replace(SETTINGS, cross_origin=CrossOrigin(origins, ("GET", "PUT")))) as client:
        read = client.get("/connectors", Origin=origin)
        assert read.headers["Access-Control-Allow-Origin"] == allowed
        assert (read.headers["Access-Control-Allow-Credentials"] if allowed else None) == credentials
        asked = {"Origin": origin, "Access-Control-Request-Method": "PUT"}
        assert (client.ask("OPTIONS", "/connectors/c/pause", headers=asked).status == 200) is (allowed is not None)
        changed = client.ask("PUT", "/connectors/c/pause", headers={"Origin": origin})
        assert changed.status == (202 if allowed else 403)
        wrong = {"Origin": origin, "Access-Control-Request-Method": "DELETE"}
        assert client.ask("OPTIONS", "/connectors/c", headers=wrong).status == 400


def test_every_answer_has_the_headers_of_the_rules() -> None:
    """Set replaces, add adds, dates are counted from now; errors have them, too."""
    rules = parse_rules('set X-Frame-Options: DENY,"add Cache-Control: no-cache, no-store",setDate Expires: 0')
    with serving(FakeHerder(), replace(SETTINGS, headers=rules)) as client:
        for path in ("/", "/nothing"):
            headers = client.get(path).headers
            assert (headers["X-Frame-Options"], headers["Cache-Control"]) == ("DENY", "no-cache, no-store")
            assert headers["Expires"].endswith(" GMT")


def test_loggers_may_have_an_address_of_their_own() -> None:
    """Then they are there alone, and nothing else is."""
    settings = replace(SETTINGS, admin=(Address("http", "127.0.0.1", 0),))
    with serving(FakeHerder(), settings) as client:
        assert client.get("/admin/loggers").status == 404
        admin = Client(client.admin_ports[0])
        assert admin.get("/admin/loggers").status == 200
        assert admin.get("/connectors").status == 404
    with serving(FakeHerder(), replace(SETTINGS, admin=())) as client:
        assert client.get("/admin/loggers").status == 404


def test_topic_tracking_may_be_off() -> None:
    """403 in Kafka Connect's words; resetting may be off alone."""
    herder = FakeHerder()
    with serving(herder, replace(SETTINGS, topic_tracking=False)) as client:
        assert client.get("/connectors/c/topics").error == (403, "Topic tracking is disabled.")
        assert client.ask("PUT", "/connectors/c/topics/reset").error == (403, "Topic tracking is disabled.")
    with serving(herder, replace(SETTINGS, topic_reset=False)) as client:
        assert client.get("/connectors/c/topics").status == 200
        assert client.ask("PUT", "/connectors/c/topics/reset").error == (403, "Topic tracking reset is disabled.")
