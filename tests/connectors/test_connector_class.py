"""Connector classes are plug-ins: the page on them is followed to the letter, and what comes of it is used."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink import plugins
from parquet_sink.config.machine import Machine
from parquet_sink.config.secret import dump_with_secrets, load_with_secrets
from parquet_sink.connectors.connector_class import CONNECTOR_CLASSES, find_class
from parquet_sink.connectors.documentation import help_text, markdown
from parquet_sink.connectors.ems.sink import EmsSink
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.worker_config.worker import Worker
from tests.connectors.packages import install
from tests.messages import assert_says

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "connector-classes.md").read_text(encoding="utf-8")
CANARY = "canary-93ab"
DOCUMENTED = (
    "| `shop.minutes` | 32-bit whole number | 5 | 1 or more | Age in minutes at which records are uploaded. "
    "| the connector class |\n"
)
"""The row of the reference's table that is made of the page's package."""
SHOP = {"connector.class": "ShopSink", "name": "shop", "topics": "orders", "shop.table": "T", "shop.token": CANARY}
WORKER = Worker(machine=Machine(environ={"TOKEN": CANARY}))


def block(language: str) -> str:
    """The page's one block in a language."""
    found = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.split(".")[0].endswith("_sink") and not name.startswith("parquet_sink"):
            del sys.modules[name]


@pytest.fixture
def shop(site: Path) -> Path:
    """The page's package, installed."""
    declared = tomllib.loads(block("toml"))["project"]["entry-points"]["parquet_sink.connectors"]
    install(site, "shop_sink", block("python"), declared)
    return site


def load_shop(**changed: str) -> Loaded:
    """A file of the page's class, with keys set otherwise."""
    return load({**SHOP, **{name.replace("_", "."): text for name, text in changed.items()}}, WORKER, source="shop")


@pytest.mark.parametrize("name", ["com.example.ShopSinkConnector", "ShopSinkConnector", "ShopSink"])
def test_a_class_of_another_package_is_found_by_its_names(shop: Path, name: str) -> None:
    """Full name, last part, and that without Connector; its settings are what the runtime runs."""
    loaded = load_shop(connector_class=name)
    assert loaded.problems == ()
    assert loaded.warnings == ()
    settings = loaded.require()
    assert (settings.name, settings.kafka.group, settings.kafka.topics) == ("shop", "connect-shop", ("orders",))
    assert settings.flush.commit_interval_ms == 300_000
    assert load_with_secrets(dump_with_secrets(settings)) == settings


def test_its_keys_are_validated(shop: Path) -> None:
    """Missing, mistyped and misspelt keys, rules between keys, shared keys: all told at once, no secret shown."""
    loaded = load_shop(topics="a b", shop_table="orders", shop_minutes="61", shop_tokn=CANARY)
    topics, minutes = loaded.problems
    assert_says(topics, "[topics]", '"a b"', "not a topic name", "1 to 249", "topics.regex")
    assert_says(minutes, "[shop.minutes]", "within the hour", "60 or less")
    (warning,) = loaded.warnings
    assert_says(warning, "[shop.tokn]", "unknown", "no effect", "Did you mean shop.token?")
    (problem,) = load_shop(shop_minutes="0").problems
    assert_says(problem, "[shop.minutes]", '"0"', "less than 1", "1 or more")
    (problem,) = load_shop(shop_table="").problems
    assert_says(problem, "[shop.table]", "missing", "name the table")
    assert CANARY not in repr(loaded)


def test_keys_of_another_class_are_unknown_to_it(shop: Path) -> None:
    """A key of the EMS sink has no effect in a file of a class that does not have it."""
    loaded = load({**SHOP, "connect.ems.commit.records": "7"}, WORKER, source="shop")
    assert loaded.problems == ()
    (warning,) = loaded.warnings
    assert_says(warning, "[connect.ems.commit.records]", "unknown", "no effect")


def test_its_keys_are_documented(shop: Path) -> None:
    """The reference of the class and the help of the command line have its section; the built-in one's page has not."""
    page = markdown("ShopSink")
    assert "## The shop's lake\n" in page
    assert DOCUMENTED in page
    assert "connect.ems.endpoint`" not in page
    assert "shop." not in markdown()
    assert_says(help_text(), "connector.class=com.example.ShopSinkConnector: The shop's lake\n")


def test_the_command_line_knows_it(shop: Path, tmp_path: Path) -> None:
    """`check` in a process of its own, which was told nothing but where packages are installed."""
    file = tmp_path / "shop.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in SHOP.items()))
    command = [sys.executable, "-m", "parquet_sink.cli.main", "check", "--bootstrap-servers", "b:1", str(file)]
    environment = {"PYTHONPATH": f"{ROOT}:{shop}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert_says(done.stdout.splitlines()[0], str(file), "OK", "connector shop", "orders -> table T")


def test_an_unknown_class_is_told_with_those_that_are_there(shop: Path) -> None:
    """The message has the key, the value, what is known, installed ones included, the cure and the nearest name."""
    loaded = load_shop(connector_class="ShopSnk")
    assert loaded.settings is None
    known = ", ".join([*plugins.BUILT_IN[plugins.CONNECTORS], "com.example.ShopSinkConnector"])
    (problem,) = loaded.problems
    assert_says(problem, "[connector.class]", '"ShopSnk"', "not a known connector class", known)
    assert_says(problem, "install the Python package", "Did you mean com.example.ShopSinkConnector?")


def test_a_class_from_a_provider_is_not_shown() -> None:
    """What a placeholder stood for may be a secret."""
    loaded = load({**SHOP, "connector.class": "${env:TOKEN}"}, WORKER, source="shop")
    (problem,) = loaded.problems
    assert_says(problem, "[connector.class]", '"${env:TOKEN}"', "not a usable connector class", "correct it")
    assert CANARY not in problem


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import nowhere_at_all", ("cannot be loaded", "ModuleNotFoundError", "No module named 'nowhere_at_all'")),
        ("", ("cannot be loaded", "AttributeError", "no attribute 'Bad'")),
        ("class Bad:\n    def __init__(self): raise RuntimeError('no\\x1b')", ("(RuntimeError: no\\u001b)",)),
        ("class Bad:\n    keys = check = None", ("cannot be used as connector class", "it has no")),
    ],
)
def test_a_broken_package_is_named(site: Path, source: str, told: tuple[str, ...]) -> None:
    """Whatever is wrong with it becomes a problem of the file that names it, and costs nobody else the help."""
    install(site, "bad_sink", source, {"Bad": "bad_sink:Bad"})
    loaded = load({**SHOP, "connector.class": "Bad"}, WORKER, source="shop")
    (problem,) = loaded.problems
    assert_says(problem, "[connector.class]", '"Bad"', "bad_sink:Bad", *told, "correct the package")
    assert_says(help_text(), "bad_sink:Bad", *told)
    assert "connect.ems.endpoint" in help_text()


def test_a_short_name_of_two_classes_is_refused(shop: Path) -> None:
    """Neither is chosen for the user; by its full name each is."""
    install(shop, "other_sink", "from shop_sink import ShopSink as Other", {"org.other.ShopSink": "other_sink:Other"})
    loaded = load_shop()
    (problem,) = loaded.problems
    assert_says(problem, "[connector.class]", '"ShopSink"', "com.example.ShopSinkConnector", "org.other.ShopSink")
    assert_says(problem, "in full")
    assert load_shop(connector_class="org.other.ShopSink").problems == ()


def test_the_built_in_class_registers_itself_as_any_other() -> None:
    """What a checkout finds is what an installed package declares."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert declared[plugins.CONNECTORS] == plugins.BUILT_IN[plugins.CONNECTORS]


@pytest.mark.parametrize(
    "name",
    ["com.celonis.kafka.connect.ems.sink.EmsSinkConnector", "EmsSinkConnector", "EmsSink", "parquet_sink.EmsSink"],
)
def test_the_ems_sink_has_the_names_that_kafka_connect_takes(name: str) -> None:
    """By its full name, its last part, that without Connector, and our own name."""
    assert isinstance(find_class(name), EmsSink)
    assert name in {short for full in plugins.names(CONNECTOR_CLASSES) for short in (full, *_short(full))}


def _short(full: str) -> tuple[str, ...]:
    return tuple(plugins.short_names(CONNECTOR_CLASSES, full))


def test_installed_packages_are_not_looked_through_for_a_built_in_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start of the EMS sink does not get slower with the number of packages."""

    def forbidden(**_: str) -> None:
        raise AssertionError("looked through")

    monkeypatch.setattr("importlib.metadata.entry_points", forbidden)
    assert isinstance(find_class(), EmsSink)
