"""`event.listeners` of a worker file: classes of other packages are told of events, and harm nothing."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from parquet_sink import plugins
from parquet_sink.model.events import ConnectorRunning, ConnectorStopped, FileAccepted
from parquet_sink.model.receipts import Receipt
from parquet_sink.worker.loop.events import EventDispatcher, isolated
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker
from tests.connectors.packages import forget, install
from tests.messages import assert_says

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")
CANARY = "canary-77"
BROKEN = f"""
class Broken:
    keys = ()

    def __init__(self, values):
        pass

    def on_event(self, event):
        raise ValueError("{CANARY}")

    def close(self):
        pass
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's listener, installed, and one that is broken."""
    monkeypatch.syspath_prepend(tmp_path)
    (source,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    name, path = re.findall(r'^"(.*)" = "(.*)"$', PAGE, re.MULTILINE)[0]
    install(tmp_path, "shop_audit", source, {name: path}, plugins.LISTENERS)
    (tmp_path / "shop_broken.py").write_text(BROKEN)
    yield tmp_path
    for package in ("shop_audit", "shop_broken"):
        forget(package)


def worker(**listeners: str) -> LoadedWorker:
    """A worker file with these keys below `event.listeners`."""
    keys = {f"event.listeners{key}": text for key, text in listeners.items()}
    return load_worker({"bootstrap.servers": "k:9092", **keys}, source="w.properties")


def test_it_is_told_of_events(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The page's class writes a line for each file; one that is broken beside it is told of without its words."""
    keys = {"": "broken, audit", ".audit.class": "Audit", ".audit.param.file": f"{site}/lines"}
    loaded = worker(**keys, **{".broken.class": "shop_broken.Broken"})
    assert (loaded.problems, loaded.warnings) == ((), ())
    dispatcher = EventDispatcher(isolated(loaded.require().listeners))
    receipt = Receipt("orders", "orders", 0, "f", 0, 9, 10, 10, 10, 99, "records")
    accepted = FileAccepted("c", 1.0, "orders", 0, receipt)
    for event in (ConnectorRunning("c", 0.0), accepted, ConnectorStopped("c", 2.0)):
        dispatcher.emit(event)
    dispatcher.close(())
    assert [json.loads(line) for line in (site / "lines").read_text().splitlines()] == [json.loads(accepted.to_json())]
    (line,) = caplog.messages
    assert_says(line, "event listener broken", "ValueError", "shop_broken.py, line 9", "correct its class")
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    ("keys", "key", "words"),
    [
        ({".audit.class": ""}, ".audit.class", ("missing", "name the class", "event listener audit")),
        ({".audit.class": "Adit"}, ".audit.class", ('"Adit"', "not a known event listener", "known are Audit")),
        ({".audit.param.file": ""}, ".audit.param.file", ("missing", "name the file")),
        (
            {".audit.class": "shop_broken.BROKEN"},
            ".audit.class",
            ('"shop_broken.BROKEN"', "cannot be loaded", "correct"),
        ),
        ({"": "audit,audit"}, "", ('"audit"', "twice", "once")),
    ],
)
def test_what_is_wrong_is_told_by_its_key(site: Path, keys: dict[str, str], key: str, words: tuple[str, ...]) -> None:
    """When the worker file is checked."""
    good = {"": "audit", ".audit.class": "com.example.AuditListener", ".audit.param.file": f"{site}/lines"}
    (found,) = worker(**{**good, **keys}).problems
    assert_says(found, f"Invalid [event.listeners{key}]", *words)


def test_keys_without_effect_are_warned_about(site: Path) -> None:
    """With the nearest there is."""
    good = {"": "audit", ".audit.class": "Audit", ".audit.param.file": f"{site}/lines"}
    loaded = worker(**good, **{".audit.param.flie": "x", ".other.class": "x", ".audit.clas": "x"})
    assert loaded.problems == ()
    assert [text.partition("]. ")[0] for text in loaded.warnings] == [
        "Warning [event.listeners.other.class",
        "Warning [event.listeners.audit.clas",
        "Warning [event.listeners.audit.param.flie",
    ]
