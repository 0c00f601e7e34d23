"""docs/how-to/own-sinks.md, own-sources.md: the packages are installed, found by entry point, validated and used."""

import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.addons.sources.task import Reached
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.connector_class import find_class, type_of
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.convert.decoded import Untyped
from parquet_sink.errors import RetryLater
from parquet_sink.model.records import RecordBatch
from parquet_sink.settings.record_sink import RecordSinkSettings
from parquet_sink.targets.record_sink import SinkRecords
from parquet_sink.transform.records import DecodedRecords
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_file import load_worker
from tests.connectors.packages import forget, install
from tests.messages import assert_says, saying

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "own-sink"
SOURCE = ROOT / "docs" / "examples" / "own-source"
SINK_PAGE, SOURCE_PAGE = (
    (ROOT / "docs" / "how-to" / f"own-{kind}.md").read_text(encoding="utf-8") for kind in ("sinks", "sources")
)


def _block(language: str, page: str = SINK_PAGE) -> str:
    """A page's first block in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package, installed."""
    monkeypatch.syspath_prepend(tmp_path)
    declared = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    install(tmp_path, "shop_sink", (EXAMPLE / "shop_sink.py").read_text(), declared["parquet_sink.connectors"])
    yield tmp_path
    forget("shop_sink")


def _loaded(folder: Path, **changed: str) -> Loaded:
    keys = dict(line.split("=", 1) for line in _block("properties").splitlines())
    return load({**keys, **changed}, Worker(machine=Machine(working_dir=str(folder))), source="shop.properties")


def _records(values: list[object]) -> SinkRecords:
    batch = RecordBatch.of(
        "orders", 0, range(len(values)), [0] * len(values), [b""] * len(values), [None] * len(values)
    )
    positions = pa.array(range(len(values)))
    return SinkRecords(DecodedRecords(batch, positions, (Untyped(positions, values),)))


def test_the_page_shows_the_package_word_for_word() -> None:
    """What is read there is what is tested here; and it is as short as it says."""
    assert _block("python") == (EXAMPLE / "shop_sink.py").read_text()
    assert _block("toml").strip() in (EXAMPLE / "pyproject.toml").read_text()
    assert len([line for line in _block("python").splitlines() if line.strip()]) <= 50


def test_its_class_is_found_and_its_file_is_judged(site: Path) -> None:
    """By its short name; its own problems are told by `check` like any other."""
    assert type_of(find_class("ShopSink")) == "sink"
    settings = _loaded(site).settings
    assert isinstance(settings, RecordSinkSettings)
    assert settings.summary() == f"orders -> {site}/orders.db"
    (told,) = _loaded(site, **{"shop.database": ""}).problems
    assert_says(told, "Invalid [shop.database]", "is missing", "name the file")
    file = site / "shop.properties"
    file.write_text(_block("properties").replace("orders.db", "none/orders.db"))
    done = subprocess.run(
        [sys.executable, "-m", "parquet_sink", "check", "--bootstrap-servers", "b:1", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=site,
        env={"PYTHONPATH": f"{ROOT}:{site}"},
    )
    assert done.returncode == 2
    assert_says(done.stdout, "Invalid [shop.database]", "no folder", f"{site}/none", "make it")


def test_records_that_come_again_are_there_once(site: Path) -> None:
    """A flush makes them durable; what was not flushed is gone."""
    settings = _loaded(site).settings
    assert isinstance(settings, RecordSinkSettings)
    for values in ([{"id": 1}], [{"id": 1}, {"id": 2}]):
        sink = settings.sink.open()
        sink.put(_records(values))  # type: ignore[arg-type]
        sink.flush()
        sink.close()
    lost = settings.sink.open()
    lost.put(_records([{"id": 9}]))
    lost.close()
    with closing(sqlite3.connect(site / "orders.db")) as database:
        assert database.execute("SELECT at, value FROM records").fetchall() == [(0, '{"id": 1}'), (1, '{"id": 2}')]


def test_a_database_that_is_busy_is_tried_again(site: Path) -> None:
    """It is no bug, and no fault of a record."""
    settings = _loaded(site).settings
    assert isinstance(settings, RecordSinkSettings)
    with closing(sqlite3.connect(site / "orders.db")) as other:
        other.execute("CREATE TABLE t (a)")
        other.execute("INSERT INTO t VALUES (1)")
        sink = settings.sink.open()
        with pytest.raises(RetryLater, match=saying("not take rows", "database is locked")):
            sink.put(_records([{"id": 1}]))
        sink.close()


@pytest.fixture
def source_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's source, installed, and a database with two orders."""
    monkeypatch.syspath_prepend(tmp_path)
    declared = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]["entry-points"]
    install(tmp_path, "shop_source", (SOURCE / "shop_source.py").read_text(), declared["parquet_sink.connectors"])
    with closing(sqlite3.connect(tmp_path / "orders.db")) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item)")
        database.executemany("INSERT INTO orders VALUES (?, ?)", [(1, "tea"), (2, "cup")])
    yield tmp_path
    forget("shop_source")


def test_the_source_is_on_the_page_word_for_word() -> None:
    """And it is as short as the page says."""
    text = (SOURCE / "shop_source.py").read_text()
    assert _block("python", SOURCE_PAGE) == text
    assert _block("toml", SOURCE_PAGE).strip() in (SOURCE / "pyproject.toml").read_text()
    assert len([line for line in text.splitlines() if line.strip()]) <= 50


def test_a_source_goes_on_behind_what_is_in_kafka(source_site: Path) -> None:
    """Its class is a source, its file is judged like any, and its task is told where it stood."""
    assert type_of(find_class("ShopSource")) == "source"
    keys = dict(line.split("=", 1) for line in _block("properties", SOURCE_PAGE).splitlines())
    machine = Machine(working_dir=str(source_site))
    worker = load_worker({"offset.storage.file.filename": "/tmp/offsets"}, source="worker", machine=machine).require()
    settings = load(keys, worker, source="shop.properties").settings
    assert isinstance(settings, SourceSettings)
    assert (settings.task, settings.kind, settings.topics) == ("shop_source:Orders", "source", ("orders",))
    told = {name: str(text) for name, text in settings.tasks[0].items()}
    place = {"database": str(source_site / "orders.db")}
    found = []
    for reached in (Reached(), Reached([(place, {"id": 1})])):
        task = import_module("shop_source").Orders()
        task.start(told, reached)
        found.append([(one.topic, one.value, one.source_offset) for one in task.poll()])
        assert task.poll() == []
        task.stop()
    second = ("orders", {"id": 2, "item": "cup"}, {"id": 2})
    assert found == [[("orders", {"id": 1, "item": "tea"}, {"id": 1}), second], [second]]
