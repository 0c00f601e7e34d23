"""docs/how-to/own-targets.md: a target of another package is checked, described, filled, archived to, replayed to."""

import argparse
import re
import sqlite3
import tomllib
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.addons.replay.command.setup import settings_for
from parquet_sink.addons.replay.copies import Copy
from parquet_sink.addons.replay.sending import CopySender
from parquet_sink.archive.archive import Archive, open_archive
from parquet_sink.connectors.documentation import help_text
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files.naming import parts_of
from parquet_sink.targets.outcome import Health
from parquet_sink.targets.settings import address_of, problems_of
from parquet_sink.validate.probe import probe_archive, probe_target
from parquet_sink.worker.rest.plugins import config_infos
from parquet_sink.worker_config.worker import Worker
from tests.cli.connector_file import connector_lines
from tests.connectors.packages import forget, install
from tests.messages import assert_says, saying
from tests.spark_task import SparkTask
from tests.worker.rest.serving import by_keys

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "own-target"
SOURCE = (EXAMPLE / "shop_depot.py").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "how-to" / "own-targets.md").read_text(encoding="utf-8")
TYPE, PATH = "connect.ems.target.type", "depot.path"


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package, installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    install(folder, "shop_depot", SOURCE, declared["parquet_sink.targets"], "parquet_sink.targets")
    yield folder
    forget("shop_depot")


def keys(**more: str) -> dict[str, str]:
    """A connector file whose target is a depot; further keys with underscores for full stops."""
    given = connector_lines(Path("/data")) | {"connector.class": "EmsSink", TYPE: "depot"}
    del given["connect.ems.endpoint"]
    return given | {name.replace("__", "."): text for name, text in more.items()}


def loaded(**more: str) -> Loaded:
    """It, validated."""
    return load(keys(**more), Worker(), source="f")


def stored(path: Path) -> dict[str, int]:
    """What a depot has: names with sizes."""
    with closing(sqlite3.connect(path)) as database:
        return dict(database.execute("SELECT name, length(content) FROM files").fetchall())


def block(language: str) -> str:
    """The page's first block in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_page_shows_the_package_word_for_word() -> None:
    """What is read there is what is tested here; and it is short."""
    assert block("python") == SOURCE
    assert block("toml").strip() in (EXAMPLE / "pyproject.toml").read_text()
    assert len([line for line in SOURCE.splitlines() if line.strip()]) <= 82
    lines = dict(line.split("=", 1) for line in block("properties").splitlines())
    assert load(keys() | lines, Worker(), source="f").require().target.target_table == "ORDERS"


def test_its_keys_are_checked_where_a_file_names_it() -> None:
    """What is missing, what is misspelt; elsewhere its keys are unknown, and a type that nobody has is told."""
    [missing] = loaded().problems
    assert_says(missing, f"[{PATH}]", "missing", "name the file")
    found = loaded(depot__path="/data/x.db", depot__paht="/x")
    assert found.problems == ()
    [warning] = found.warnings
    assert_says(warning, "[depot.paht]", "unknown", "no effect", "Did you mean depot.path?")
    assert address_of(found.require().target) == "depot:/data/x.db"
    [problem] = loaded(connect__ems__target__type="depto").problems[:1]
    assert_says(problem, f"[{TYPE}]", '"depto"', "not one of push, s3")


def test_a_package_that_cannot_be_loaded_is_told(site: Path) -> None:
    """Under the key that names it; nothing else of the file is guessed at."""
    (site / "shop_depot" / "__init__.py").write_text("import nowhere")
    [problem] = loaded(depot__path="/x.db").problems
    assert_says(problem, f"[{TYPE}]", '"depot"', "cannot be loaded", "shop_depot:DepotClass")


def test_its_keys_are_described() -> None:
    """For a terminal, and by the REST API with what is wrong."""
    assert_says(help_text(), "connect.ems.target.type=depot: The depot", "The database", "folder must be there")
    infos = config_infos(keys(), {}, by_keys(Worker()))
    [found] = [one for one in infos["configs"] if one["definition"]["name"] == PATH]
    assert (found["definition"]["group"], found["definition"]["required"]) == ("The depot", True)
    [error] = found["value"]["errors"]
    assert_says(error, f"[{PATH}]", "missing", "name the file")
    assert infos["error_count"] == 1
    assert "The depot" in infos["groups"]
    without: Any = config_infos({**keys(), TYPE: "push"}, {}, by_keys(Worker()))
    assert PATH not in [one["definition"]["name"] for one in without["configs"]]


def test_it_is_tried_without_storing(tmp_path: Path) -> None:
    """`check --connect` tells whether its folder is there."""
    good = probe_target(loaded(depot__path=str(tmp_path / "x.db")).require().target)
    assert (good.health, good.item) == (Health.OK, f"target depot:{tmp_path}/x.db")
    assert probe_target(loaded(depot__path="/nowhere/x.db").require().target).health is Health.FAILED
    assert not (tmp_path / "x.db").exists()


def test_a_task_fills_it(spark_task: SparkTask, tmp_path: Path) -> None:
    """Files of a range are there once, under their table; a repetition is the same."""
    path = tmp_path / "orders.db"
    spark_task.configure(connect__ems__target__type="depot", depot__path=str(path))
    spark_task.produce(*(b'{"id": %d}' % number for number in range(7)))
    ranges = spark_task.due()
    for _ in range(2):
        outcome = spark_task.flush(*ranges)["orders", 0]
        assert (outcome.accepted_until, outcome.failure) == (7, None)
        assert [name.split("/")[0] for name in stored(path)] == ["T", "T"]


def archived(spark_task: SparkTask, tmp_path: Path) -> Archive:
    """The archive of a task whose files go into a folder."""
    spark_task.configure(connect__ems__archive__url=f"depot:{tmp_path}/archive.db")
    spark_task.produce(*(b'{"id": %d}' % number for number in range(7)))
    assert spark_task.flush()["orders", 0].accepted_until == 7
    archive = spark_task.settings.archive
    assert archive is not None
    assert probe_archive(archive).health is Health.OK
    return open_archive(archive)


def test_an_archive_is_kept_in_it(spark_task: SparkTask, tmp_path: Path) -> None:
    """By the address alone; each file is listed, has its digest, and is read back."""
    archive = archived(spark_task, tmp_path)
    files = [*archive.files()]
    assert [one.where.split("/")[0] for one in files] == ["orders", "orders"]
    for one in files:
        assert archive.fetch(one.where, str(tmp_path / "back"))
        content = (tmp_path / "back").read_bytes()
        assert (len(content), sha256(content).hexdigest()) == (one.size_bytes, archive.digest(one.where))
        (tmp_path / "back").unlink()
    assert not archive.fetch("orders/other", str(tmp_path / "back"))


def test_a_folder_that_is_not_there_is_told_before_the_start(spark_task: SparkTask) -> None:
    """Under the key that names it: the depot's, and for an archive that of its address."""
    reason = ("no folder", "/nowhere", "make it")
    [problem] = problems_of(loaded(depot__path="/nowhere/x.db").require().target, {})
    assert_says(problem, "[depot.path]", *reason)
    spark_task.configure(connect__ems__archive__url="depot:/nowhere/archive.db")
    archive = spark_task.settings.archive
    assert archive is not None
    [problem] = archive.place.problems({})
    assert_says(problem, "[connect.ems.archive.url]", *reason)


def test_a_replay_goes_to_its_address(spark_task: SparkTask, tmp_path: Path) -> None:
    """In place of the connector's own target; and a file of an archive comes under the name of the first time."""
    archive, path = archived(spark_task, tmp_path), tmp_path / "again.db"
    file = str(spark_task.folder / "connector.properties")
    args = argparse.Namespace(connector=file, worker=None, bootstrap_servers="nowhere:9092", target_key=None)
    target = settings_for(args, f"depot:{path}").target
    assert target == import_module("shop_depot").DepotTarget(str(path), "T")
    one = next(archive.files())
    parts = parts_of(one.where.rpartition("/")[2])
    assert parts is not None
    copy = Copy("orders", 0, one.where.rpartition("/")[2], 0, parts.last_offset, 5, 5, one.size_bytes, where=one.where)
    assert CopySender(spark_task.settings, lambda: archive, target.open()).send(copy).accepted
    assert stored(path) == {f"T/{copy.name}": one.size_bytes}


def test_a_replay_to_what_names_nothing_is_refused(spark_task: SparkTask) -> None:
    """An address of no scheme that is known needs a credential, as any push API does."""
    file = str(spark_task.folder / "connector.properties")
    args = argparse.Namespace(connector=file, worker=None, bootstrap_servers="nowhere:9092", target_key="AppKey k")
    with pytest.raises(InvalidConfiguration, match=saying("[--target]")):
        settings_for(args, "depto:/data/x.db")
