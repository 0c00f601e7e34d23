"""What screens show where something is not there, is not allowed, or is elsewhere."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.addons.page import facts
from parquet_sink.config.secret import Secret
from parquet_sink.worker.herder.errors import Elsewhere, NotOwner, NotReadable
from parquet_sink.worker.herder.values import HoldingWorker
from parquet_sink.worker.rest.call import Reply
from parquet_sink.worker.rest.peers import SIGNATURE, Forwarded
from parquet_sink.worker_config.rest.roles import Role
from parquet_sink.worker_config.rest.settings import RestSettings
from tests.addons.page import scene
from tests.messages import assert_says
from tests.worker.rest.serving import LOOPBACK, Client


def text_of(client: Client, path: str, **headers: str) -> str:
    """Of a screen, without its tags."""
    return re.sub(r"<[^>]+>", "", client.get(path, **headers).raw.decode())


def test_a_worker_without_connectors_says_what_to_do(tmp_path: Path) -> None:
    """The first thing that a new user sees is how a connector is made."""
    with scene.showing(scene.SceneHerder(tmp_path)) as client:
        assert "parquet-sink connectors create" in text_of(client, "/ui")


def test_what_is_not_there_is_said(page: Client) -> None:
    """A connector, a file, a record or an offset that is unknown is named, with what can be done."""
    assert page.get("/ui/connectors/nobody").status == 404
    assert "Connector nobody not found" in text_of(page, "/ui/connectors/nobody")
    assert page.get("/ui/connectors/orders/files/none.parquet").status == 404
    record = "/ui/connectors/orders/diverted/record?topic=orders&partition=0&offset=9"
    assert "replayed, or dropped" in text_of(page, record)
    where = "/ui/connectors/orders/files?topic=orders&partition=0&at="
    assert "behind all that the history has" in text_of(page, f"{where}99999999")
    assert "nothing of this topic-partition" in text_of(page, f"{where.replace('=0', '=77')}5")
    assert "Invalid [offset]" in text_of(page, f"{where}-5")
    assert "nothing to" not in text_of(page, "/ui/connectors/archive-2019").lower()


def test_other_workers_that_had_the_connector_are_named(tmp_path: Path) -> None:
    """What is parked, or was sent, there is not on the screen; the command that asks for it is."""
    herder = scene.every_state(tmp_path)
    with scene.showing(herder) as client:
        for path, command in (("diverted", "parked list"), ("files", "history")):
            herder.others = ()
            assert "had the connector before" not in text_of(client, f"/ui/connectors/orders/{path}")
            herder.others = (HoldingWorker("worker-2:8083", runs=False, answers=False),)
            text = text_of(client, f"/ui/connectors/orders/{path}")
            assert_says(text, "worker-2:8083 had the connector before", f"parquet-sink {command} --connector orders")


def test_a_configuration_that_cannot_be_read_does_not_hide_the_connector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its screens are there, and say why nothing is known of its files."""
    herder = scene.SceneHerder(tmp_path)
    herder.add("orders", scene.Part(scene.State.FAILED, trace="Invalid [topics]. It is missing; name one."))

    def refuse(name: str, worker_id: str | None = None) -> None:
        raise NotReadable("Invalid [topics]. It is missing; name one.")

    monkeypatch.setattr(herder, "settings", refuse)
    with scene.showing(herder) as client:
        for path in ("", "/files", "/diverted", "/config"):
            assert client.get(f"/ui/connectors/orders{path}").status == 200
        assert "Name one." in text_of(client, "/ui/connectors/orders")


def test_a_viewer_sees_no_record_and_no_configuration_that_is_not_for_viewers(tmp_path: Path) -> None:
    """The page shows what REST gives who signed in, and refuses what REST refuses."""
    herder = scene.every_state(tmp_path)
    roles = (("ann", Role.VIEWER), ("bob", Role.ADMIN))
    users = tuple((name, Secret("pw")) for name, _ in roles)
    settings = RestSettings(listeners=LOOPBACK, users=users, roles=roles)
    ann, bob = {"Authorization": "Basic YW5uOnB3"}, {"Authorization": "Basic Ym9iOnB3"}
    record = "/ui/connectors/orders/diverted/record?topic=orders&partition=0&offset=1241"
    with scene.showing(herder, settings=settings) as client:
        assert client.get("/ui").status == 401
        assert client.get("/ui", **ann).status == 200
        assert "order_id" in text_of(client, record, **bob)
        assert client.get(record, **ann).status == 403
        assert "order_id" not in text_of(client, record, **ann)
        assert client.get("/ui/live?of=%2Fui").status == 401


class Other:
    """The other worker of a group, which has the connector."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def forward(self, elsewhere: Elsewhere, request: Forwarded) -> Reply:
        self.asked.append(request.target)
        files: Mapping[str, object] = {"enabled": True, "files": [], "next": None}
        return Reply(files)

    def believes(self, request: Forwarded) -> bool:
        return True


def test_what_another_worker_knows_is_asked_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a connector that is elsewhere come from there, and so does what tune recommends."""
    herder, other = scene.SceneHerder(tmp_path), Other()
    herder.add("orders")

    def elsewhere(name: str, worker_id: str | None = None) -> None:
        raise NotOwner("http://worker-2:8083", name)

    monkeypatch.setattr(herder, "settings", elsewhere)
    with scene.showing(herder, peers=other) as client:
        assert client.get("/ui").status == 200
        assert client.get("/ui/connectors/orders").status == 200
        assert client.get("/page/facts").status == 404  # that is for workers alone
        signed = client.get("/page/facts", **{SIGNATURE: "by worker-2"})
        assert (signed.status, signed.json["orders"]["hour"]["files"]) == (200, 0)
    assert other.asked == ["/connectors/orders/history?limit=400"]


def test_a_recommendation_is_what_tune_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it cannot use is said in its words, one is computed at a time, and no secret is written for it."""
    written: list[str] = []
    run = facts.subprocess.run

    def look(command: list[str], **options: object) -> object:
        written.append(Path(command[-1]).read_text())
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(facts.subprocess, "run", look)
    herder = scene.every_state(tmp_path)
    with scene.showing(herder) as client:
        text = text_of(client, "/ui/connectors/orders/tuning?aim=freshness&value=zz")
        assert "is not a duration above 0" in text
        assert "has no history" in text_of(client, "/ui/connectors/payroll/tuning?aim=files&value=10")
    assert "connect.ems.commit.interval.ms=30000" in written[0]
    assert not [one for one in written if "secret-key" in one]
