"""Buttons and forms without a script: what they say before and after, what is refused, and to whom they are shown."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest

from parquet_sink.addons.page.frame import COOKIE, TOKEN
from parquet_sink.config.secret import Secret
from parquet_sink.worker.herder.values import ConnectorProgress, StoredOffset, TargetState
from parquet_sink.worker_config.rest.roles import Role
from parquet_sink.worker_config.rest.settings import RestSettings
from tests.addons.page import scene
from tests.messages import assert_line_says
from tests.worker.rest.serving import GOOD, LOOPBACK, Client, Got

HTML: Final = {"Accept": "text/html", "Cookie": f"{COOKIE}=t"}
ONE: Final = "/ui/connectors/orders"
ROLES: Final = {"viewer": "dmlld2VyOnB3", "operator": "b3BlcmF0b3I6cHc=", "admin": "YWRtaW46cHc="}


@pytest.fixture
def herder(tmp_path: Path) -> scene.SceneHerder:
    """One that is changed here."""
    found = scene.SceneHerder(tmp_path)
    found.add("orders", scene.Part(partitions=((812, 21.4, 240.0), (330, 12.1, 96.5), (95, 4.0, 31.0))))
    found.add("invoices-refused", scene.Part(scene.State.FAILED, trace=scene.REFUSED))
    for name, target in (("payroll", TargetState.PAUSED), ("archive-2019", TargetState.STOPPED)):
        found.add(name)
        found.kept[name].target = target
    found.kept["archive-2019"].offsets = {("orders", 0): 1000, ("orders", 1): 1001}
    return found


@pytest.fixture
def page(herder: scene.SceneHerder) -> Iterator[Client]:
    """Its worker."""
    with scene.showing(herder) as client:
        yield client


def look(page: Client, path: str, **headers: str) -> str:
    """The text of a screen."""
    got = page.ask("GET", path, headers={**HTML, **headers})
    assert got.status == 200, (path, got.status)
    return unescape(got.raw.decode())


def send(page: Client, path: str, form: Mapping[str, str], **headers: str) -> Got:
    """A form as a browser sends it."""
    content = {"Content-Type": "application/x-www-form-urlencoded"}
    return page.ask("POST", path, headers={**HTML, **content, **headers}, raw=urlencode({TOKEN: "t", **form}).encode())


def said(page: Client, got: Got) -> str:
    """What the browser shows where an action sends it."""
    assert got.status == 303, got.raw
    cookies = "; ".join([f"{COOKIE}=t", *(one.partition(";")[0] for one in got.headers.get_all("Set-Cookie") or ())])
    found = re.search(
        r'class="notice( bad)?" role="status">(.*?)</p>', look(page, got.headers["Location"], Cookie=cookies)
    )
    assert found is not None
    return found[2]


@pytest.mark.parametrize(
    ("action", "before", "after", "target"),
    [
        ("pause", "flush in progress is finished", "until it is resumed", TargetState.PAUSED),
        ("stop", "offsets may be changed", "until it is resumed", TargetState.STOPPED),
        ("restart", "begins again from the committed offsets", "being started again", TargetState.STARTED),
        ("flush", "1,237 records wait in 3 topic-partitions", "nothing waited", TargetState.STARTED),
    ],
)
def test_an_action_says_what_will_happen_and_what_happened(
    page: Client, herder: scene.SceneHerder, action: str, before: str, after: str, target: TargetState
) -> None:
    """Looking changes nothing; the button does it."""
    assert before in look(page, f"{ONE}/do/{action}")
    assert (herder.kept["orders"].target, herder.asked) == (TargetState.STARTED, [])
    assert after in said(page, send(page, f"{ONE}/do/{action}", {}))
    assert herder.kept["orders"].target is target


def test_an_action_that_is_refused_says_why(page: Client, herder: scene.SceneHerder) -> None:
    """On the connector's own screen, in the words of REST."""
    herder.kept["orders"].target = TargetState.PAUSED
    assert "resume it" in said(page, send(page, f"{ONE}/do/flush", {}))
    assert page.ask("GET", f"{ONE}/do/destroy", headers=HTML).status == 404


def test_without_its_token_nothing_is_done(page: Client, herder: scene.SceneHerder) -> None:
    """As another site's form would be sent."""
    got = send(page, f"{ONE}/do/stop", {TOKEN: "another"})
    assert (got.status, herder.kept["orders"].target) == (403, TargetState.STARTED)


def test_only_what_makes_sense_is_offered(page: Client) -> None:
    """By the connector's state."""
    acts = {
        name: set(re.findall(r"/do/(\w+)", look(page, f"/ui/connectors/{name}")))
        for name in ("orders", "payroll", "archive-2019", "invoices-refused")
    }
    assert acts == {
        "orders": {"flush", "pause", "restart", "stop"},
        "payroll": {"resume", "restart", "stop"},
        "archive-2019": {"resume"},
        "invoices-refused": {"restart", "stop"},
    }


def test_offsets_are_asked_twice(page: Client, herder: scene.SceneHerder) -> None:
    """Once what they are to be, once whether what that means is wanted; unless they moved meanwhile."""
    path, kept = "/ui/connectors/archive-2019/offsets", herder.kept["archive-2019"]
    assert 'name="to.orders:0"' in look(page, path)
    assert 'name="to.' not in look(page, f"{ONE}/offsets")
    form = {"to.orders:0": "900", "to.orders:1": "1005"}
    asked = unescape(send(page, path, form).raw.decode())
    assert_line_says(asked, "100 records", "sent again")
    assert_line_says(asked, "4 records", "never sent")
    sure = {**form, "sure": "yes", "was.orders:0": "1000", "was.orders:1": "1001"}
    assert send(page, path, {**sure, "was.orders:0": "7"}).status == 200
    assert kept.offsets == {("orders", 0): 1000, ("orders", 1): 1001}
    assert "2 offsets moved" in said(page, send(page, path, sure))
    assert kept.offsets == {("orders", 0): 900, ("orders", 1): 1005}
    assert "nothing was changed" in said(page, send(page, path, form))
    assert send(page, path, {"to.orders:0": "soon"}).status == 400


class OfSource(scene.SceneHerder):
    """Has the positions of a stopped source."""

    def progress(self) -> tuple[ConnectorProgress, ...]:
        return tuple(replace(one, kind="source") for one in super().progress())

    def offsets(self, name: str) -> tuple[StoredOffset, ...]:
        return (
            StoredOffset({"filename": "/ä.txt"}, {"position": 13}),
            StoredOffset({"filename": "/b"}, {"position": 2}),
        )

    def alter_offsets(self, name: str, offsets: Sequence[StoredOffset]) -> None:
        self.asked.append(("alter", *offsets))


def test_offsets_of_a_source_are_moved_as_they_are_stored(tmp_path: Path) -> None:
    """As JSON, which is shown as it stands; what is not a JSON object is refused, and nothing is moved."""
    herder, path = OfSource(tmp_path), "/ui/connectors/lines/offsets"
    herder.add("lines", connector__class="FileStreamSource")
    herder.kept["lines"].target = TargetState.STOPPED
    first, second = 'to.{"filename": "/ä.txt"}', 'to.{"filename": "/b"}'
    with scene.showing(herder) as page:
        assert f'name="{first}" value="{{"position": 13}}"' in look(page, path)
        form = {first: '{"position": 6}', second: "none"}
        asked = unescape(send(page, path, form).raw.decode())
        assert ("is read from there" in asked, "is read from its start" in asked) == (True, True)
        assert send(page, path, {first: "[6]"}).status == send(page, path, {first: "soon"}).status == 400
        assert herder.asked == []
        seen = {first.replace("to", "was", 1): '{"position": 13}', second.replace("to", "was", 1): '{"position": 2}'}
        assert "2 offsets moved" in said(page, send(page, path, {**form, **seen, "sure": "yes"}))
    moved = StoredOffset({"filename": "/ä.txt"}, {"position": 6}), StoredOffset({"filename": "/b"}, None)
    assert herder.asked == [("alter", *moved)]


def test_a_configuration_is_saved_once_its_difference_was_seen(page: Client, herder: scene.SceneHerder) -> None:
    """What is wrong is said key by key and saves nothing; a hidden password stays; another's change is noticed."""
    path, kept = f"{ONE}/config/edit", herder.kept["orders"]
    shown = look(page, path)
    text = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", shown, re.DOTALL)[1]  # type: ignore[index]
    was = re.search(r'name="was" value="(\w+)"', shown)[1]  # type: ignore[index]
    wrong = send(page, path, {"text": text.replace("30000", "many"), "was": was, "do": "yes"}).raw.decode()
    assert "Invalid [connect.ems.commit.interval.ms]" in wrong
    changed = {"text": text.replace("30000", "60000") + "tasks.max=3\n", "was": was}
    checked = send(page, path, changed).raw.decode()
    assert ("2 keys differ" in checked, "Save" in checked, kept.config.get("tasks.max")) == (True, True, None)
    assert "secret-key" not in checked
    assert "somebody else" in send(page, path, {**changed, "was": "another", "do": "yes"}).raw.decode()
    assert "Saved" in said(page, send(page, path, {**changed, "do": "yes"}))
    assert (kept.config["tasks.max"], kept.config["connect.ems.commit.interval.ms"]) == ("3", "60000")


def test_a_check_says_the_same_to_who_types(page: Client) -> None:
    """A part of a page: problems and difference, of a connector that is there and of a new one."""
    got = send(page, "/ui/check", {"connector": "orders", "text": "connector.class=EmsSink\ntopics=a,b"}).raw.decode()
    assert ("<html" in got, "Invalid [connect.ems.endpoint]" in got, "<ins>a,b</ins>" in got) == (False, True, True)
    assert "Invalid [name]" in send(page, "/ui/check", {"text": "topics=a"}).raw.decode()
    assert "problem" in send(page, "/ui/check", {"text": "{"}).raw.decode()


def test_a_connector_is_made_from_a_form(page: Client, herder: scene.SceneHerder) -> None:
    """Fields are the class's keys, with documentation; what is left out has its default."""
    shown = look(page, "/ui/new?class=EmsSink")
    assert ('name="k.connect.ems.commit.records"' in shown, 'type="password"' in shown) == (True, True)
    fields = {f"k.{key}": text for key, text in GOOD.items()}
    form = {"by": "form", **fields, "k.name": "new-one", "k.errors.tolerance": "", "text": "tasks.max=2"}
    checked = send(page, "/ui/new", form).raw.decode()
    assert ("Make the connector" in checked, "new-one" in herder.kept) == (True, False)
    assert "is made" in said(page, send(page, "/ui/new", {**form, "do": "yes"}))
    made = herder.kept["new-one"].config
    assert (made["tasks.max"], made["topics"], "errors.tolerance" in made) == ("2", "orders", False)


def test_a_connector_is_made_of_a_file(page: Client, herder: scene.SceneHerder) -> None:
    """Pasted as properties; one that is there already is refused, and what was typed stays."""
    text = "".join(f"{key}={value}\n" for key, value in {**GOOD, "name": "pasted"}.items())
    assert "textarea" in look(page, "/ui/new?by=paste")
    form = {"by": "paste", "text": text, "do": "yes"}
    assert "is made" in said(page, send(page, "/ui/new", form))
    again = send(page, "/ui/new", form).raw.decode()
    assert ("already exists" in again, "topics=orders" in again) == (True, True)


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_buttons_are_shown_to_who_may_press_them(herder: scene.SceneHerder, role: str) -> None:
    """And do nothing for others, who press them all the same."""
    users = tuple((name, Secret("pw")) for name in ROLES)
    roles = tuple((name, Role(name)) for name in ROLES)
    settings = replace(RestSettings(listeners=LOOPBACK), users=users, roles=roles)
    by = {"Authorization": f"Basic {ROLES[role]}"}
    acts, admin = role != "viewer", role == "admin"
    with scene.showing(herder, settings=settings) as page:
        one, config = look(page, ONE, **by), look(page, f"{ONE}/config", **by)
        assert [f"/do/{act}" in one for act in ("flush", "pause", "restart", "stop")] == [acts] * 4
        assert ["config/edit" in config, "/ui/new" in look(page, "/ui", **by)] == [admin, admin]
        assert ("/orders/offsets" in one) is acts
        assert (send(page, f"{ONE}/do/flush", {}, **by).status, bool(herder.asked)) == (303, acts)
        for path in (f"{ONE}/config/edit", "/ui/new"):
            assert page.ask("GET", path, headers={**HTML, **by}).status == (200 if admin else 403)
        assert send(page, "/ui/check", {"text": "a=b"}, **by).status == (200 if admin else 403)
