"""The page in a real browser: what a person sees, presses and types, with and without JavaScript."""

from collections.abc import Iterator
from pathlib import Path
from random import sample

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

from tests.addons.page import browser as browsers
from tests.addons.page import scene
from tests.addons.page.browser import SCREENS, visiting
from tests.thorough import examples

WITHOUT = "no Chromium: apt-get install chromium, or name one in CHROMIUM"
pytestmark = pytest.mark.skipif(browsers.chromium() is None, reason=WITHOUT)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests here; it is closed with them, because it keeps an event loop in this thread."""
    with browsers.launched() as found:
        yield found


@pytest.fixture(scope="module")
def herder(tmp_path_factory: pytest.TempPathFactory) -> scene.SceneHerder:
    """Of the worker of these tests."""
    return scene.every_state(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def address(herder: scene.SceneHerder) -> Iterator[str]:
    """Of the worker's page."""
    with scene.showing(herder) as client:
        yield f"http://127.0.0.1:{client.port}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screens_are_accessible(browser: Browser, address: str, scheme: str) -> None:
    """No screen has a finding of axe, an error, or a request to anybody else; the colours of both are looked at.

    A run takes some of the screens, the next one others: see `examples`.
    """
    found: dict[str, object] = {}
    rules = {"runOnly": ["color-contrast"]} if scheme == "dark" else None
    with visiting(browser, address, color_scheme=scheme) as (_, page, wrong):
        for path in sample(SCREENS, examples(len(SCREENS))) if scheme == "light" else SCREENS[5:9]:
            page.goto(path, wait_until="domcontentloaded")
            for one in Axe().run(page, options=rules).response["violations"]:
                found[f"{path}: {one['id']}"] = [node["html"] for node in one["nodes"]][:3]
        assert found == {}
        assert [one for one in wrong if "404" not in one] == []


def test_nothing_is_wider_than_a_telephone(browser: Browser, address: str) -> None:
    """No screen scrolls sideways at 360 pixels; what is wide scrolls within itself."""
    with visiting(browser, address, viewport={"width": 360, "height": 740}) as (_, page, _):
        for path in SCREENS:
            page.goto(path, wait_until="domcontentloaded")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, path


def test_the_page_follows_what_happens(browser: Browser, tmp_path: Path) -> None:
    """What changes is there without loading the page again: in a row, in counts, and as another order."""
    herder = scene.SceneHerder(tmp_path)
    for name in ("one", "two"):
        herder.add(name, scene.Part(partitions=((1, 1.0, 0.0),)))
    with scene.showing(herder) as client, visiting(browser, f"http://127.0.0.1:{client.port}") as (_, page, wrong):
        page.goto("/")
        expect(page.locator("#live")).to_have_text("live")
        page.evaluate("window.stays = true")
        page.get_by_role("link", name="two").focus()
        herder.parts["two"] = scene.Part(partitions=((4_711, 1.0, 0.0),))
        expect(page.locator("#r-two")).to_contain_text("4,711")
        assert page.evaluate("document.activeElement.textContent") == "two"
        herder.parts["two"] = scene.Part(scene.State.FAILED, trace=scene.REFUSED)
        expect(page.locator("#rows tr").first).to_contain_text("the key is not valid")
        expect(page.locator("#counts .s-failed .n")).to_have_text("1")
        herder.add("three")
        expect(page.locator("#rows tr")).to_have_count(3)
        assert page.evaluate("window.stays")
        assert wrong == []


def test_a_worker_that_ends_is_told(browser: Browser, tmp_path: Path) -> None:
    """The page says that it is not up to date any more, and keeps what it has."""
    herder = scene.SceneHerder(tmp_path)
    herder.add("one")
    with scene.showing(herder) as client, visiting(browser, f"http://127.0.0.1:{client.port}") as (_, page, _):
        page.goto("/ui")
        expect(page.locator("#live")).to_have_text("live")
        client.stop()
        expect(page.locator("#live")).to_have_text("not connected")
        expect(page.locator("#rows tr")).to_have_count(1)


def test_all_is_read_without_javascript(browser: Browser, address: str) -> None:
    """States are chosen by links, names and offsets are found by forms, and a file leads to its answers."""
    with visiting(browser, address, java_script_enabled=False) as (_, page, _):
        page.goto("/ui")
        page.locator("#counts .s-failed").click()
        expect(page.locator("#rows tr")).to_have_count(1)
        page.goto("/ui")
        page.get_by_label("Find").fill("stock")
        page.get_by_label("Find").press("Enter")
        expect(page.locator("#rows tr")).to_have_count(1)
        page.goto("/ui/connectors/orders/files")
        page.get_by_label("Offset").fill("1500")
        page.get_by_role("button", name="Look").click()
        page.get_by_role("status").get_by_role("link").click()
        for text in ("9f86d081884c7d65", "1,180 to 1,779", "200", "chunk-1180"):
            expect(page.locator("main")).to_contain_text(text)


def test_names_are_found_while_they_are_typed(browser: Browser, address: str) -> None:
    """`/` goes to the field, each letter hides rows, and what comes by events stays hidden."""
    with visiting(browser, address) as (_, page, wrong):
        page.goto("/ui")
        page.keyboard.press("/")
        page.keyboard.type("stock")
        expect(page.locator("#rows tr:visible")).to_have_count(1)
        page.wait_for_timeout(1_500)
        expect(page.locator("#rows tr:visible")).to_have_count(1)
        assert wrong == []


def test_the_keyboard_reaches_everything(browser: Browser, address: str) -> None:
    """The first stop leads past the navigation, and the next ones are what can be pressed, each to be seen."""
    with visiting(browser, address) as (_, page, _):
        page.goto("/ui")
        page.keyboard.press("Tab")
        expect(page.get_by_text("To the content")).to_be_focused()
        page.keyboard.press("Enter")
        stops = []
        for _ in range(14):
            page.keyboard.press("Tab")
            stops.append(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
        assert set(stops) <= {"solid", "auto"}
        assert page.evaluate("document.activeElement.closest('#rows') !== null")


def test_what_failed_is_copied_whole(browser: Browser, address: str) -> None:
    """Cause and cure stand apart on the page, and are together in the clipboard."""
    with visiting(browser, address, permissions=["clipboard-read", "clipboard-write"]) as (_, page, wrong):
        page.goto("/ui/connectors/invoices-refused")
        expect(page.locator(".cause")).to_contain_text("status 401, the key is not valid.")
        expect(page.locator(".cure")).to_contain_text("Write a valid key to connect.ems.authorization.key")
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == scene.REFUSED
        assert wrong == []


def test_a_point_of_the_time_line_leads_to_its_file(browser: Browser, address: str) -> None:
    """A file's shape says why it ended, its title what it is, and a click shows digest and answers."""
    with visiting(browser, address) as (_, page, wrong):
        page.goto("/ui/connectors/orders")
        dot = page.locator(".dot").first
        assert "rows" in (dot.locator("title").text_content() or "")
        dot.click()
        expect(page.locator("main")).to_contain_text("SHA-256")
        expect(page.locator("main")).to_contain_text("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
        assert wrong == []


def test_a_configuration_is_downloaded_without_secrets(browser: Browser, address: str) -> None:
    """As a file that can be given to a worker again: passwords are hidden, and stay what they are."""
    with visiting(browser, address) as (_, page, _):
        page.goto("/ui/connectors/orders/config")
        with page.expect_download() as started:
            page.get_by_role("link", name="Download").click()
        text = started.value.path().read_text()
        assert started.value.suggested_filename == "orders.properties"
        assert "connect.ems.authorization.key=[hidden]\n" in text
        assert "secret-key" not in text + page.content()


def test_a_parked_record_is_shown(browser: Browser, address: str) -> None:
    """By reason, and one with its key and value; bytes that are no text are in base64."""
    with visiting(browser, address) as (_, page, wrong):
        page.goto("/ui/connectors/orders/diverted")
        expect(page.locator("tbody tr")).to_have_count(2)
        page.get_by_role("link", name="Show one").first.click()
        expect(page.locator("main")).to_contain_text("Column total has an integer")
        expect(page.get_by_label("Value")).to_contain_text('"total": 12')
        page.goto("/ui/connectors/orders/diverted/record?topic=orders&partition=1&offset=1300")
        expect(page.get_by_label("Value")).to_contain_text("//4=")
        expect(page.locator("main")).to_contain_text("trace: 4bf92f")
        assert wrong == []


def test_six_hundred_connectors_come_in_one_request(browser: Browser, tmp_path: Path) -> None:
    """One document has them all, and what changes of them comes by one stream."""
    herder = scene.many(tmp_path)
    with scene.showing(herder) as client, visiting(browser, f"http://127.0.0.1:{client.port}") as (_, page, wrong):
        asked: list[str] = []
        page.on("request", lambda one: asked.append(one.url.partition(str(client.port))[2].partition("?")[0]))
        page.goto("/ui")
        expect(page.locator("#live")).to_have_text("live")
        assert [one for one in asked if not one.endswith("icon.svg")] == [
            "/ui",
            "/ui/static/page.css",
            "/ui/static/page.js",
            "/ui/live",
        ]
        assert page.locator("#rows tr").count() == 600
        herder.parts["connector-300"] = scene.Part(partitions=((123_456, 1.0, 0.0),))
        expect(page.locator("#r-connector-300")).to_contain_text("123k")
        assert wrong == []


def test_an_action_is_pressed_and_says_what_it_did(browser: Browser, tmp_path: Path) -> None:
    """With and without JavaScript; the buttons beside the name follow the state."""
    for script in (True, False):
        herder = scene.every_state(tmp_path / str(script))
        with scene.showing(herder) as client:
            address = f"http://127.0.0.1:{client.port}"
            with visiting(browser, address, java_script_enabled=script) as (_, page, wrong):
                page.goto("/ui/connectors/orders")
                page.get_by_role("link", name="Pause").click()
                expect(page.get_by_text("then nothing more is taken")).to_be_visible()
                page.get_by_role("button", name="Pause").click()
                expect(page.get_by_role("status")).to_contain_text("until it is resumed")
                expect(page.get_by_role("link", name="Resume")).to_be_visible()
                assert wrong == []


def test_a_configuration_is_judged_as_one_types(browser: Browser, tmp_path: Path) -> None:
    """What is wrong appears beside the text, then what differs; only then it can be saved."""
    herder = scene.every_state(tmp_path)
    with scene.showing(herder) as client, visiting(browser, f"http://127.0.0.1:{client.port}") as (_, page, wrong):
        page.goto("/ui/connectors/orders/config/edit")
        text = page.get_by_role("textbox")
        before = text.input_value()
        text.fill(before.replace("30000", "many"))
        expect(page.get_by_text("Invalid [connect.ems.commit.interval.ms]")).to_be_visible()
        expect(page.get_by_role("button", name="Save")).to_have_count(0)
        text.fill(before.replace("30000", "60000"))
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("Saved")
        assert herder.kept["orders"].config["connect.ems.commit.interval.ms"] == "60000"
        assert wrong == []
