"""`history`, `parked` and `archive` of a worker's connector: what they print is what they print with its file."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from parquet_sink.archive.archive import path_of
from parquet_sink.cli.main import main
from parquet_sink.cli.worker_api.jobs import run_job
from parquet_sink.files.naming import file_name
from parquet_sink.history.records import UploadOutcome
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import write_history
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.sink import of_sink
from tests.cli.connector_file import connector_lines
from tests.history.uploads import HOUR_MS, span, upload
from tests.messages import assert_line_says
from tests.parked.records import offsets, rejected
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import serving

Both = Callable[..., tuple[int, str, str]]


@pytest.fixture
def herder(tmp_path: Path) -> FakeHerder:
    """Connector `orders` with a history, parked records and an archive."""
    for folder in ("archive", "out"):
        (tmp_path / folder).mkdir()
    config = {**connector_lines(tmp_path), "connect.ems.archive.url": f"directory:{tmp_path / 'archive'}"}
    (tmp_path / "orders.properties").write_text("".join(f"{key}={value}\n" for key, value in config.items()))
    made = FakeHerder()
    made.kept["orders"] = Kept(config)
    settings = made.settings("orders")
    assert of_sink(settings)
    path = Path(settings.history_file)
    path.parent.mkdir(parents=True)
    with closing(write_history(path, HistorySettings())) as history:
        history.append_files([upload(n * 10, n * 10 + 9, at_ms=5_000 + n * HOUR_MS // 3) for n in range(7)])
        history.append_files([upload(70, 79, at_ms=3 * HOUR_MS, outcome=UploadOutcome.REFUSED, cause="too wide")])
        history.append_ranges([span(0, 80)])
    folder = ParkedFolder(settings.parked_folder, "orders", settings.parked.max_bytes)
    folder.prepare()
    folder.append("orders", 0, [rejected(n) for n in range(7)], 1_000)
    for name in (*(file_name("orders", 0, n * 10, n * 10 + 9, 7, 10) for n in range(3)), "alien"):
        place = tmp_path / "archive" / "orders" / path_of("orders", name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"content")
    return made


@pytest.fixture
def url(herder: FakeHerder, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of its worker."""
    for name in ("URL", "USER", "PASSWORD", "CLIENT_FILE"):
        monkeypatch.delenv(f"PARQUET_SINK_{name}", raising=False)
    monkeypatch.setenv("PARQUET_SINK_BOOTSTRAP_SERVERS", "localhost:1")
    with serving(herder) as client:
        yield f"http://127.0.0.1:{client.port}"


@pytest.mark.parametrize(
    "words",
    [
        "history",
        "history --json",
        "history --limit 3 --attempts",
        "history --limit 0 --offset 15-42",
        "history --outcome refused --outcome accepted --since 1970-01-01T01:00Z",
        "history --topic none",
        "history --summary",
        "history --summary --json --until 1970-01-01T02:00Z",
        "history --where orders:0:12",
        "history --where orders:0:999",
        "history --json --where orders:0:75",
        "parked list",
        "parked list --json --offset 2-4",
        "parked show",
        "parked show --limit 2 --content",
        "parked show --limit 0 --json --content --stage VALUE_CONVERTER",
        "archive list",
        "archive list --json --topic orders --offset 15",
    ],
)
def test_a_worker_s_connector_reads_as_its_file_does(
    url: str, tmp_path: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status, standard output and standard error, to the letter."""
    found = []
    for which in ([str(tmp_path / "orders.properties")], ["--connector", "orders", "--url", url]):
        status = main([*words.split(), *which])
        found.append((status, *capsys.readouterr()))
    assert found[0] == found[1]
    assert found[0][1]


def test_long_answers_come_in_pages(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them, whatever a page holds."""
    from parquet_sink.cli.worker_api import remote

    for words in ("history --json", "parked show --limit 0 --json", "archive list"):
        main([*words.split(), str(tmp_path / "orders.properties")])
        whole = capsys.readouterr().out
        for size in (1, 2, 5):
            monkeypatch.setattr(remote, "_PAGE", size)
            monkeypatch.setattr(remote, "_PAGE_OF_ARCHIVE", size)
            assert main([*words.split(), "--connector", "orders", "--url", url]) == 0
            assert capsys.readouterr().out == whole


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("history --connector orders orders.properties", "--connector"),
        ("history --connector orders --tmp-dir /tmp", "--tmp-dir"),
        ("parked list --connector orders --worker worker.properties", "--worker"),
        ("archive list --connector orders --bootstrap-servers a:1", "--bootstrap-servers"),
        ("parked list --url http://localhost:1 orders.properties", "--url"),
        ("archive list --timeout 3 orders.properties", "--timeout"),
        ("parked list", "connector.properties"),
        ("archive list", "connector.properties"),
    ],
)
def test_options_that_do_not_go_together_are_named(words: str, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anybody is asked."""
    assert main(words.split()) == 2
    assert f"Invalid [{key}]. " in capsys.readouterr().err


def test_what_a_worker_does_not_have_is_said(url: str, herder: FakeHerder, capsys: pytest.CaptureFixture[str]) -> None:
    """A connector; a history; whatever one of Kafka Connect's does not know. The others have their turn."""
    assert main(["history", "--connector", "none", "--connector", "orders", "--url", url]) == 1
    out, err = capsys.readouterr()
    assert "connector orders: 8 uploads" in out
    assert re.search("parquet-sink: connector none: .*not found", err)
    herder.kept["fresh"] = Kept({**herder.kept["orders"].config, "connect.ems.tmp.dir": "/nowhere"})
    assert main(["history", "--connector", "fresh", "--url", url]) == 0
    assert_line_says(capsys.readouterr().err, "fresh", "sent nothing", "the worker's machine")
    assert main(["parked", "list", "--connector", "orders", "--url", f"{url}/nothing"]) == 1
    assert "Kafka Connect" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["archive verify", "parked drop --offset 1-2", "parked replay --dry-run"])
def test_what_takes_its_time_is_done_by_the_worker(
    url: str, tmp_path: Path, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own there; what is printed, and the status, are those of the file."""
    found = []
    for which in ([str(tmp_path / "orders.properties")], ["--connector", "orders", "--url", url]):
        status = main([*words.split(), *which])
        found.append((status, capsys.readouterr().out))
    assert found[0] == found[1]


def test_what_is_dropped_by_the_worker_is_gone(
    url: str, herder: FakeHerder, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing else."""
    assert main(["parked", "drop", "--offset", "0-4", "--yes", "--connector", "orders", "--url", url]) == 0
    assert "5 records dropped" in capsys.readouterr().out
    settings = herder.settings("orders")
    assert of_sink(settings)
    assert offsets(ParkedFolder(settings.parked_folder, "orders", 1)) == [5, 6]


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("--connector orders --target https://x", "--target"),
        ("--connector orders --worker w.properties", "--worker"),
        ("--connector orders --verify --differences /tmp/d", "--differences"),
        ("--connector orders.properties --url http://localhost:1", "--url"),
        ("--connector orders --times 0", "--times"),
    ],
)
def test_a_replay_by_a_worker_refuses_what_only_a_file_can(
    words: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anybody is asked."""
    assert main(["replay", *words.split()]) == 2
    assert f"Invalid [{key}]. " in capsys.readouterr().err


class Following:
    """A worker whose job goes on until it is told to stop."""

    url, name = "http://worker", "orders"

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...], object]] = []
        self.stopped = False

    def ask(self, method: str, path: tuple[str, ...], content: object = None) -> dict[str, object]:
        """Begins it, or stops it."""
        self.asked.append((method, tuple(path), content))
        self.stopped |= method == "DELETE"
        return self._job(0)

    def get(self, *path: str, after: int) -> dict[str, object]:
        """One more line each time."""
        return self._job(after)

    def _job(self, after: int) -> dict[str, object]:
        ended = self.stopped and after >= 3
        lines = [{"text": f"line {after}\x1b[2J", "error": after == 1}]
        return {
            "id": "j",
            "state": "ENDED" if ended else "RUNNING",
            "exit_status": 130 if ended else None,
            "progress": {"done": after, "total": 4, "told": "x"},
            "lines": lines,
            "next": after + 1,
            "more": False,
        }


def test_a_job_is_followed_line_by_line_and_stopped_by_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    """Its lines go where they went there, without what a terminal would obey; its status is the command's."""
    worker = Following()
    naps = iter([None, None, KeyboardInterrupt])

    def sleep(seconds: float) -> None:
        if next(naps, None) is not None:
            raise KeyboardInterrupt

    options = {"from": 0, "dry_run": False, "topic": None, "file": ["a"]}
    assert run_job(worker, ("replay",), options, sleep=sleep) == 130  # type: ignore[arg-type]
    assert worker.asked == [("POST", ("replay",), {"from": 0, "file": ["a"]}), ("DELETE", ("jobs", "j"), None)]
    out, err = capsys.readouterr()
    assert "line 1" in err
    assert "\x1b" not in out + err


def test_a_second_ctrl_c_leaves_the_job_to_itself() -> None:
    """The command ends at once."""

    def sleep(seconds: float) -> None:
        raise KeyboardInterrupt

    class Deaf(Following):
        def ask(self, method: str, path: tuple[str, ...], content: object = None) -> dict[str, object]:
            return self._job(0)

    with pytest.raises(KeyboardInterrupt):
        run_job(Deaf(), ("replay",), {}, sleep=sleep)  # type: ignore[arg-type]
