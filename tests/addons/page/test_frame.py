"""The page's frame: who gets it, what guards it, what is sent again."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink.addons.page import frame, transport
from parquet_sink.addons.page.frame import Done, Pages, View, Visit, does, shows
from parquet_sink.worker.rest.app import make_app
from parquet_sink.worker.rest.server import RestServer, open_listeners
from parquet_sink.worker_config.rest.settings import RestSettings
from parquet_sink.worker_config.worker import Worker
from tests.addons.page import scene
from tests.worker.rest.fake_herder import FakeHerder
from tests.worker.rest.serving import GOOD, LOOPBACK, Client, Got, by_keys

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


class Screens:
    """An action that pauses, beside a screen of its own."""

    @shows("/ui")
    def first(self, visit: Visit) -> View:
        return View("error.html", {"message": "<b>bold</b>", "status": 404})

    @does("/ui/connectors/{connector}/pause")
    def pause(self, visit: Visit) -> Done:
        visit.api.ask("PUT", f"/connectors/{visit.connector}/pause")
        return Done("/ui", f"{visit.connector} pauses: {visit.form['why']}")


@pytest.fixture
def small() -> Iterator[tuple[Client, FakeHerder]]:
    """A worker with one connector, and the page above."""
    herder, settings = FakeHerder(), RestSettings(listeners=LOOPBACK)
    herder.create("orders", {**GOOD, "name": "orders"})
    worker, pages = Worker(), Pages("worker-1:8083", lambda env: (Screens(),))
    app = make_app(herder, worker, settings, lambda: (b"", "text/plain"), by_keys(worker), None, pages)
    listening = open_listeners(settings)
    server = RestServer(app, app, listening)
    server.start()
    try:
        yield Client(listening.settings.listeners[0].port), herder
    finally:
        pages.close()
        server.stop()


def send(client: Client, path: str, form: str, **headers: str) -> Got:
    """A form, as a browser sends it."""
    sent = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    return client.ask("POST", path, raw=form.encode(), headers=sent)


def test_the_first_path_is_the_page_for_browsers_alone(page: Client) -> None:
    """`/` is HTML for who asks for HTML first, and Kafka Connect's JSON for all others."""
    assert page.get("/", Accept=BROWSER).headers["content-type"].startswith("text/html")
    for accept in ("*/*", "application/json", "application/json, text/html", "application/json;q=0.9, */*"):
        assert set(page.get("/", Accept=accept).json) == {"version", "commit", "kafka_cluster_id"}
    assert page.get("/").json["version"]
    assert page.get("/ui", Accept="*/*").headers["content-type"].startswith("text/html")


def test_nothing_foreign_runs_in_the_page(page: Client) -> None:
    """Each answer of the page has the policy, and no screen has a script, a style or an address that it forbids."""
    for path in ("/ui", "/ui/workers", "/ui/static/page.js", "/ui/connectors/nobody"):
        got = page.get(path)
        assert got.headers["content-security-policy"].startswith("default-src 'self'")
        assert got.headers["x-content-type-options"] == "nosniff"
        if path.startswith("/ui/static"):
            continue
        text = got.raw.decode()
        assert not re.search(r"\sstyle=|\son\w+=|<style|javascript:", text)
        assert not [one for one in re.findall(r"<script[^>]*>", text) if "src=" not in one]
        assert not re.findall(r'(?:src=|<link[^>]*href=)"(?:https?:)?//', text)


def test_text_of_connectors_is_escaped(tmp_path: Path) -> None:
    """A connector's name and its error stand on the page as text, whatever they hold."""
    herder = scene.SceneHerder(tmp_path)
    herder.add("a<script>alert(1)</script>", scene.Part(scene.State.FAILED, trace='"><img src=x onerror=alert(1)>'))
    with scene.showing(herder) as client:
        text = client.get("/ui").raw.decode()
    assert "<script>alert" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_form_needs_the_token_of_its_cookie(small: tuple[Client, FakeHerder]) -> None:
    """Without the token, with another one, or without the cookie nothing is done."""
    client, herder = small
    path = "/ui/connectors/orders/pause"
    cookie = client.get("/ui").headers["set-cookie"].partition(";")[0]
    token = cookie.partition("=")[2]
    for form, headers in (
        ("why=x", {"Cookie": cookie}),
        ("token=other&why=x", {"Cookie": cookie}),
        ("token=&why=x", {}),
    ):
        refused = send(client, path, form, **headers)
        assert refused.status == 403
        assert b"Load the page again" in refused.raw
        assert herder.kept["orders"].target == "STARTED"
    done = send(client, path, f"token={token}&why=%3Cb%3E", Cookie=cookie)
    assert (done.status, done.headers["location"]) == (303, "/ui")
    assert herder.kept["orders"].target == "PAUSED"
    told = client.get("/ui", Cookie=f"{cookie}; {done.headers['set-cookie'].partition(';')[0]}")
    assert b"orders pauses: &lt;b&gt;" in told.raw
    assert "parquet_sink_notice" in told.headers["set-cookie"]  # it is said once


def test_a_form_of_another_origin_is_refused(small: tuple[Client, FakeHerder]) -> None:
    """The guards of REST stand before the page, too: origin and host."""
    client, herder = small
    refused = send(client, "/ui/connectors/orders/pause", "token=x", Origin="https://evil.example", Cookie="a=b")
    assert refused.status == 403
    assert client.get("/ui", Host="evil.example").status == 421
    assert herder.kept["orders"].target == "STARTED"


def test_what_a_browser_cannot_have_sent_is_an_error_page(small: tuple[Client, FakeHerder]) -> None:
    """Bodies that are no form, unknown connectors and cookies that are nonsense are answered in words."""
    client, _ = small
    cookie = client.get("/ui").headers["set-cookie"].partition(";")[0]
    token = cookie.partition("=")[2]
    path = "/ui/connectors/orders/pause"
    assert client.ask("POST", path, {"why": "x"}, {"Cookie": cookie}).status == 415
    assert send(client, path, "token=%ff", Cookie=cookie).status == 400
    assert send(client, "/ui/connectors/nobody/pause", f"token={token}&why=x", Cookie=cookie).status == 404
    for notice in ("e30=", "bm90aGluZw==", "%%%", "WzFd"):
        assert b"uncaught" not in client.get("/ui", Cookie=f"{transport.NOTICE}={notice}").raw


def test_defects_are_not_shown(small: tuple[Client, FakeHerder], caplog: pytest.LogCaptureFixture) -> None:
    """What nobody foresaw is answered without what is inside, and logged."""
    client, _ = small
    cookie = client.get("/ui").headers["set-cookie"].partition(";")[0]
    refused = send(client, "/ui/connectors/orders/pause", f"token={cookie.partition('=')[2]}", Cookie=cookie)
    assert refused.status == 500
    assert b"KeyError" not in refused.raw
    assert "KeyError" in caplog.text


def events(client: Client, path: str, count: int) -> list[dict[str, object]]:
    """The first events of a stream."""
    connection = client.connection()
    try:
        connection.request("GET", path)
        answer, found = connection.getresponse(), []
        assert answer.status == 200
        while len(found) < count:
            line = answer.readline().decode()
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
        return found
    finally:
        connection.close()


def test_parts_are_sent_when_they_change(tmp_path: Path) -> None:
    """A stream has only the rows that are not as the browser has them, and all of them where it has nothing."""
    herder = scene.SceneHerder(tmp_path)
    for name in ("one", "two"):
        herder.add(name, scene.Part(partitions=((0, None, 0.0),)))
    with scene.showing(herder) as client:
        render = re.search(r'data-render="([^"]+)"', client.get("/ui").raw.decode())
        assert render is not None
        herder.parts["two"] = scene.Part(partitions=((4_711, None, 0.0),))
        (sent,) = events(client, f"/ui/live?of=%2Fui&render={render[1]}", 1)
        assert list(sent["rows"]) == ["r-two"]  # type: ignore[call-overload]
        assert "4,711" in sent["rows"]["r-two"]  # type: ignore[index]
        (whole,) = events(client, "/ui/live?of=%2Fui%3Fstate%3Drunning", 1)
        assert {"counts", "rows"} <= {*whole["parts"]}  # type: ignore[misc]
        assert client.get("/ui/live?of=%2Fui%2Fnothing").status == 404


def test_streams_are_bounded(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Browsers above the bound are told to come again."""
    monkeypatch.setattr(frame, "MOST_STREAMS", 0)
    refused = page.get("/ui/live?of=%2Fui")
    assert (refused.status, refused.headers["retry-after"]) == (503, "10")


def test_files_of_the_page_alone_are_served(page: Client) -> None:
    """Nothing outside its folder is reached, however the name is written."""
    assert page.get("/ui/static/page.css").headers["content-type"].startswith("text/css")
    for name in ("..%2Fframe.py", "%2e%2e%2fframe.py", "page.py", "nothing.css", ".css"):
        assert page.get(f"/ui/static/{name}").status == 404
