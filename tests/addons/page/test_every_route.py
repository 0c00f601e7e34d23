"""Each route of the real application, asked for with each kind of credential."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from starlette.routing import Route

from parquet_sink.addons.page.frame import COOKIE, TOKEN
from parquet_sink.addons.page.transport import NOTICE, notice_in
from parquet_sink.config.secret import Secret
from parquet_sink.distributed import signing
from parquet_sink.worker.rest.peers import SIGNATURE, Forwarded
from parquet_sink.worker_config.rest.roles import Role
from parquet_sink.worker_config.rest.settings import RestSettings
from tests.addons.page import scene
from tests.worker.rest.peer import KEY, Peer
from tests.worker.rest.serving import LOOPBACK, Client, Got

ROLES: Final = ("viewer", "operator", "admin")
SETTINGS: Final = RestSettings(
    listeners=LOOPBACK,
    users=tuple((role, Secret("pw")) for role in ROLES),
    roles=tuple((role, Role(role)) for role in ROLES),
    anonymous_health=True,
)
VIEWER: Final = """
/ /admin/loggers /admin/loggers/{logger} /connector-plugins /connector-plugins/{plugin}/config /connectors
/connectors/{connector} /connectors/{connector}/archive /connectors/{connector}/config
/connectors/{connector}/flush/{flush} /connectors/{connector}/history /connectors/{connector}/history/summary
/connectors/{connector}/history/where /connectors/{connector}/jobs /connectors/{connector}/jobs/{job}
/connectors/{connector}/parked /connectors/{connector}/parked/records /connectors/{connector}/status
/connectors/{connector}/tasks /connectors/{connector}/tasks-config /connectors/{connector}/tasks/{task}/status
/connectors/{connector}/topics /health /metrics /openapi.json /progress /ui /ui/connectors/{connector}
/ui/connectors/{connector}/config /ui/connectors/{connector}/config/download
/ui/connectors/{connector}/diverted /ui/connectors/{connector}/do/{action}
/ui/connectors/{connector}/files /ui/connectors/{connector}/files/{file} /ui/connectors/{connector}/jobs/{job}
/ui/connectors/{connector}/replay /ui/connectors/{connector}/tuning /ui/live /ui/static/{name} /ui/workers
/ui/{rest:path} /workers /connectors/{connector}/workers /connectors/{connector}/folder
"""
OPERATOR: Final = """
GET /connectors/{connector}/offsets
GET /connectors/{connector}/parked/content
GET /ui/connectors/{connector}/diverted/record
GET /ui/connectors/{connector}/offsets
DELETE /connectors/{connector}/jobs/{job}
POST /connectors/{connector}/archive/verify
POST /connectors/{connector}/flush
POST /connectors/{connector}/parked/replay
POST /connectors/{connector}/replay
POST /connectors/{connector}/restart
POST /connectors/{connector}/tasks/{task}/restart
POST /ui/connectors/{connector}/diverted/replay
POST /ui/connectors/{connector}/do/{action}
POST /ui/connectors/{connector}/jobs/{job}/stop
POST /ui/connectors/{connector}/replay
POST /ui/connectors/{connector}/offsets
PUT /connectors/{connector}/pause
PUT /connectors/{connector}/resume
PUT /connectors/{connector}/stop
PUT /connectors/{connector}/topics/reset
"""
ADMIN: Final = """
GET /ui/connectors/{connector}/config/edit
GET /ui/new
DELETE /connectors/{connector}
DELETE /connectors/{connector}/offsets
DELETE /workers/{worker}
PATCH /connectors/{connector}/config
PATCH /connectors/{connector}/offsets
POST /connectors
POST /connectors/{connector}/parked/drop
POST /ui/check
POST /ui/connectors/{connector}/config/edit
POST /ui/new
PUT /admin/loggers/{logger}
PUT /connector-plugins/{plugin}/config/validate
PUT /connectors/{connector}/config
"""
WORKER: Final = """
DELETE /connectors/{connector}/left
GET /connectors/{connector}/left
GET /page/facts
GET /page/tuning/{connector}
"""
"""Routes that are not there for anybody but other workers."""
NEEDED: Final[Mapping[str, str]] = {
    **{f"GET {path}": "viewer" for path in VIEWER.split()},
    **{
        row: role
        for role, rows in (("operator", OPERATOR), ("admin", ADMIN), ("worker", WORKER))
        for row in rows.strip().splitlines()
    },
}
FILLED: Final = {
    "{connector}": "orders",
    "{plugin}": "EmsSink",
    "{logger}": "root",
    "{task}": "0",
    "{worker}": "worker-9:8083",
    "{flush}": "f1",
    "{job}": "j1",
    "{file}": "f",
    "{action}": "pause",
    "{name}": "page.css",
    "{rest:path}": "nothing",
}
Scene = tuple[scene.SceneHerder, Client]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give the herder and a client of a worker with users, roles, a page and peers."""
    herder = scene.every_state(tmp_path_factory.mktemp("scene"))
    with scene.showing(herder, settings=SETTINGS, peers=Peer()) as client:
        yield herder, client


def list_routes(folder: Path) -> set[str]:
    """Return method and path of each route of the application, by its own route table."""
    app, _ = scene.make_scene_app(scene.every_state(folder), None, SETTINGS, Peer())
    rows: set[str] = set()
    for route in app.routes:
        assert isinstance(route, Route)
        endpoint: Any = route.endpoint
        methods = route.methods if route.methods is not None else set(endpoint._methods)
        rows |= {f"{method} {route.path}" for method in methods - {"HEAD"}}
    return rows


def test_each_route_of_the_application_is_in_the_table(tmp_path: Path) -> None:
    """A new route fails here until the table says who may use it."""
    assert list_routes(tmp_path) == set(NEEDED)


def fill(path: str) -> str:
    """Return a path whose variable parts have values."""
    for name, text in FILLED.items():
        path = path.replace(name, text)
    return f"{path}?of=/ui/none" if path == "/ui/live" else path


def ask(client: Client, row: str, headers: Mapping[str, str]) -> Got:
    """Send a request for a route: for a page's action a form with the token of its cookie."""
    method, path = row.split(" ")
    if method == "POST" and path.startswith("/ui/"):
        form = {TOKEN: "t", "config": "{}", "sure": "yes"}
        sent = {"Cookie": f"{COOKIE}=t", "Content-Type": "application/x-www-form-urlencoded", **headers}
        return client.ask(method, fill(path), headers=sent, raw=urlencode(form).encode())
    return client.ask(method, fill(path), headers={"Content-Type": "application/json", **headers})


def sign_in(user: str, password: str) -> dict[str, str]:
    """Return the header of basic authentication."""
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def is_refused(got: Got) -> bool:
    """Return True if an answer is a refusal, or a redirect of the page that says that the action failed."""
    cookies = [text for text in got.headers.get_all("Set-Cookie", []) if text.startswith(f"{NOTICE}=")]
    notice = notice_in(cookies[0].partition("=")[2].partition(";")[0].strip('"')) if cookies else None
    return got.status in (401, 403) or (got.status == 303 and notice is not None and notice["failed"])


def forge(row: str, kind: str) -> dict[str, str]:
    """Return a signature that no worker of the group made for this request now."""
    method, path = row.split(" ")
    request = Forwarded(method, fill(path), {}, b"")
    if kind == "expired":
        return {SIGNATURE: signing.sign("member", request, KEY, "HmacSHA256", now_ms=1_000)}
    if kind == "of another request":
        now_ms = signing._now_ms()
        return {SIGNATURE: signing.sign("member", Forwarded("GET", "/x", {}, b""), KEY, "HmacSHA256", now_ms=now_ms)}
    return {SIGNATURE: {"empty": "", "made up": "x", "in the form": f"HmacSHA256 {signing._now_ms()} n eA=="}[kind]}


@pytest.mark.parametrize("row", sorted(NEEDED))
def test_nobody_without_a_credential_reaches_a_route(served: Scene, row: str) -> None:
    """No credential and a wrong one get 401, a forged or old signature 403, also with a user's password beside it."""
    herder, client = served
    herder.asked.clear()
    kept = set(herder.kept)
    for headers in ({}, sign_in("admin", "guess"), {"Authorization": "Bearer x"}):
        if row != "GET /health":
            assert ask(client, row, headers).status == 401
    for kind in ("empty", "made up", "in the form", "expired", "of another request"):
        assert ask(client, row, forge(row, kind)).status == 403
        assert ask(client, row, {**forge(row, kind), **sign_in("admin", "pw")}).status == 403
    assert (herder.asked, set(herder.kept)) == ([], kept)


@pytest.mark.parametrize("row", sorted(NEEDED))
def test_a_role_reaches_what_is_its_own(served: Scene, row: str) -> None:
    """A lower role is refused and nothing is done; routes for workers are not there for any user."""
    herder, client = served
    herder.asked.clear()
    before = dict(herder.kept)
    kept = set(before)
    for role in ROLES:
        got = ask(client, row, sign_in(role, "pw"))
        if NEEDED[row] == "worker":
            assert got.status == 404
        elif not Role(role).includes(Role(NEEDED[row])):
            assert is_refused(got), (role, got.status)
            assert (herder.asked, set(herder.kept)) == ([], kept)
        elif not row.startswith("POST /ui/"):
            assert not is_refused(got), (role, got.status)
        herder.asked.clear()
        herder.kept.clear()
        herder.kept.update(before)


def test_a_worker_reaches_its_routes_once_by_each_signature(served: Scene) -> None:
    """A signature of the group lets in, and not a second time."""
    _, client = served
    for row in WORKER.strip().splitlines():
        method, path = row.split(" ")
        headers = Peer().signed("", method, fill(path), b"")
        first = client.ask(method, fill(path), headers=headers)
        assert first.status not in (401, 403)
        assert client.ask(method, fill(path), headers=headers).status == 403


def test_a_made_up_header_creates_no_connector(served: Scene) -> None:
    """Neither the page nor REST takes a header for a signature, whatever cookie and form come with it."""
    herder, client = served
    form = urlencode({TOKEN: "t", "name": "mine", "config": "name=mine"}).encode()
    headers = {
        SIGNATURE: "x",
        "Cookie": f"{COOKIE}=t",
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"http://127.0.0.1:{client.port}",
    }
    assert client.ask("POST", "/ui/new", headers=headers, raw=form).status == 403
    assert "mine" not in herder.kept
