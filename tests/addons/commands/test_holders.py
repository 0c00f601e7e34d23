"""Commands ask each worker that has files of a connector, and end with status 1 where one does not answer."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

import pytest

from parquet_sink.addons.replay.command.command import _find_begun
from parquet_sink.archive.archive import path_of
from parquet_sink.cli.main import main
from parquet_sink.cli.worker_api.api import open_worker
from parquet_sink.cli.worker_api.remote import RemoteConnector
from parquet_sink.files import naming
from parquet_sink.files.durable_state import count_files
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import write_history
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.sink import SinkSettings, of_sink
from parquet_sink.worker.herder.errors import OtherWorker
from parquet_sink.worker.herder.values import HoldingWorker, WorkerInfo, Workers
from tests.cli.connector_file import connector_lines
from tests.history.uploads import upload
from tests.messages import assert_says
from tests.parked.records import offsets, rejected
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.peer import Peer
from tests.worker.rest.serving import serving

IDS = ("runs:1", "had:1")


class HolderHerder(FakeHerder):
    """One of two workers; the first runs the connector. urls: of those that answer."""

    def __init__(self, worker_id: str, urls: dict[str, str]) -> None:
        super().__init__()
        self.worker_id, self.urls = worker_id, urls

    def find_holders(self, name: str) -> tuple[HoldingWorker, ...]:
        self._find(name)
        return tuple(HoldingWorker(worker, worker == IDS[0], worker in self.urls) for worker in IDS)

    def workers(self) -> Workers:
        members = (WorkerInfo(worker, url, worker == IDS[0], 1, ()) for worker, url in self.urls.items())
        return Workers(1, 2, tuple(members))

    def settings(self, name: str, worker_id: str | None = None) -> ConnectorSettings:
        worker_id = worker_id or IDS[0]
        if worker_id != self.worker_id:
            raise OtherWorker(self.urls.get(worker_id), name, worker_id)
        return super().settings(name)


class Scene:
    """Two workers; the one that had the connector has parked records, and sent a file that is in the archive."""

    def __init__(self, folder: Path, parts: ExitStack) -> None:
        (folder / "archive").mkdir()
        (folder / "out").mkdir()
        self.urls: dict[str, str] = {}
        self.herders: list[HolderHerder] = []
        peers = parts.enter_context(closing(Peer()))
        config = {**connector_lines(folder), "connect.ems.archive.url": f"directory:{folder / 'archive'}"}
        for worker_id in IDS:
            herder = HolderHerder(worker_id, self.urls)
            herder.kept["orders"], herder.files = Kept(config), folder / worker_id
            client = parts.enter_context(serving(herder, peers=peers))
            self.urls[worker_id] = f"http://127.0.0.1:{client.port}"
            self.herders.append(herder)
        for number, worker_id in enumerate(IDS):
            settings = self.settings(worker_id)
            path = Path(settings.history_file)
            path.parent.mkdir(parents=True)
            sent = upload(number * 10, number * 10 + 9)
            with closing(write_history(path, HistorySettings())) as history:
                history.append_files([sent])
            place = folder / "archive" / "orders" / path_of("orders", sent.file_name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(bytes(sent.size_bytes))
        self.parked = ParkedFolder(settings.parked_folder, "orders", settings.parked.max_bytes)
        self.parked.prepare()
        self.parked.append("orders", 0, [rejected(number) for number in range(7)], 1_000)

    def settings(self, worker_id: str) -> SinkSettings:
        """Return the connector's settings at a worker."""
        settings = self.herders[IDS.index(worker_id)].settings("orders", worker_id)
        assert of_sink(settings)
        return settings

    def run(self, *words: str) -> int:
        """Return the exit status of a command, asked of the worker that runs the connector."""
        return main([*words, "--connector", "orders", "--url", self.urls[IDS[0]]])


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """Two workers that answer."""
    for name in ("URL", "USER", "PASSWORD", "CLIENT_FILE"):
        monkeypatch.delenv(f"PARQUET_SINK_{name}", raising=False)
    with ExitStack() as parts:
        yield Scene(tmp_path, parts)


def lose(scene: Scene) -> None:
    """Let the worker that had the connector leave the group."""
    del scene.urls[IDS[1]]


def test_parked_records_are_listed_at_each_worker(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Each worker's lines stand below its id."""
    assert scene.run("parked", "list") == 0
    runs, had = capsys.readouterr().out.split(f"worker {IDS[1]}:\n")
    assert runs.startswith(f"worker {IDS[0]}:\n")
    assert "7 records" not in runs
    assert "7 records" in had


def test_parked_records_leave_the_worker_that_has_them(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """A drop is done by each worker in its own folder."""
    assert scene.run("parked", "drop", "--offset", "0-4", "--yes") == 0
    assert "5 records dropped" in capsys.readouterr().out
    assert offsets(scene.parked) == [5, 6]


@pytest.mark.parametrize(
    "words", ["parked list", "parked list --json", "parked replay", "history", "archive verify --quick"]
)
def test_a_worker_that_does_not_answer_is_named(scene: Scene, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The status is 1, the cure can be typed, and nothing is called complete."""
    lose(scene)
    assert scene.run(*words.split()) == 1
    printed = capsys.readouterr()
    assert_says(printed.out + printed.err, IDS[1], "does not answer", f"parquet-sink workers --forget {IDS[1]}")
    assert "complete" not in printed.out


def test_an_archive_is_compared_with_all_workers_at_once(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that another worker sent is not alien, and one that is missing is missed."""
    assert scene.run("archive", "verify", "--quick") == 0
    assert "complete: 2 files" in capsys.readouterr().out
    archived = Path(cast(Any, scene.settings(IDS[0]).archive).address.removeprefix("directory:"))
    next(archived.rglob("*firstOffset-10_*")).unlink()
    assert scene.run("archive", "verify", "--quick") == 1
    assert "1 file missing" in capsys.readouterr().out


def test_an_offset_is_found_at_the_worker_that_sent_it(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """The one that runs the connector does not know it."""
    assert scene.run("history", "--where", "orders:0:12") == 0
    assert "firstOffset-10_" in capsys.readouterr().out
    lose(scene)
    assert scene.run("history", "--where", "orders:0:12") == 1
    assert f"--forget {IDS[1]}" in capsys.readouterr().err


def test_a_replay_is_resumed_where_it_was_stopped(scene: Scene) -> None:
    """The worker whose folder has its journal goes on with it."""
    folder = Path(naming.replay_journal_folder(scene.settings(IDS[1]).tmp_dir, "orders"))
    folder.mkdir(parents=True)
    (folder / ".lock").touch()
    assert count_files(str(folder.parent))[naming.PARKED_FOLDER] == 1
    with open_worker(Namespace(client_file=None, url=scene.urls[IDS[0]], timeout=30.0)) as api:
        connector = RemoteConnector(api, "orders")
        assert _find_begun(connector).worker_id is None
        (folder / "plan.json").touch()
        assert _find_begun(connector).worker_id == IDS[1]
