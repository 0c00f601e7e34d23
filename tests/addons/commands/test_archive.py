"""`parquet-sink archive`: what is listed, what is found wrong, and with which status it ends."""

import json
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from parquet_sink.cli import main as cli
from parquet_sink.files.naming import connector_folder, file_name, history_file
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import write_history
from parquet_sink.model.receipts import Archiving
from tests.cli.connector_file import connector_lines
from tests.history.uploads import span, upload
from tests.messages import assert_line_says


def content(number: int) -> bytes:
    """Of a file."""
    return b"%d" % number * 10


class Scene:
    """A connector with an archive of three files, and the history of them."""

    def __init__(self, folder: Path) -> None:
        self.archive = folder / "archive"
        (folder / "out").mkdir()
        self.archive.mkdir()
        keys = {**connector_lines(folder), "connect.ems.archive.url": f"directory:{self.archive}"}
        self.file, self.worker = folder / "orders.properties", folder / "worker.properties"
        self.file.write_text("".join(f"{key}={text}\n" for key, text in keys.items()))
        self.worker.write_text("bootstrap.servers=localhost:1\n")
        self.paths = [self.archive / "orders" / "orders" / self.name(number) for number in range(3)]
        self.paths[0].parent.mkdir(parents=True)
        tmp = str(folder / "tmp")
        Path(connector_folder(tmp, "orders")).mkdir(parents=True)
        self.history = Path(history_file(tmp, "orders"))
        here = Archiving(f"directory:{self.archive}", 1)
        with closing(write_history(self.history, HistorySettings())) as history:
            for number, path in enumerate(self.paths):
                path.write_bytes(content(number))
                digest = sha256(content(number)).hexdigest()
                one = upload(number * 10, number * 10 + 9, size_bytes=10, digest=digest, archive=here)
                history.append_files([replace(one, file_name=path.name)])
            history.append_ranges([span(0, 30, done_until=30)])

    @staticmethod
    def name(number: int) -> str:
        """Of a file."""
        return file_name("orders", 0, number * 10, number * 10 + 9, 10, 10)

    def run(self, action: str, *words: str) -> int:
        """Its exit status."""
        return cli.main(["archive", action, *words, "--worker", str(self.worker), str(self.file)])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """One with nothing wrong."""
    return Scene(tmp_path)


def test_a_complete_archive(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 0, in words and as JSON; --quick reads nothing."""
    assert scene.run("verify") == 0
    assert_line_says(capsys.readouterr().out, "complete", "3 files", "unaltered", "30 bytes read")
    assert scene.run("verify", "--quick", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["complete"], told["files"], told["read_bytes"], told["gaps"]) == (True, 3, 0, [])


def test_everything_that_is_wrong_is_told(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """A gap, an altered file of the same size, an alien one: each by name, and status 1."""
    scene.paths[0].unlink()
    scene.paths[1].write_bytes(b"x" * 10)
    (scene.paths[2].parent / "alien").touch()
    assert scene.run("verify") == 1
    told = capsys.readouterr().out
    assert_line_says(told, "missing", "orders 0", "offsets 0 to 9", "1 file", scene.name(0))
    assert_line_says(told, "altered", f"orders/{scene.name(1)}", "SHA-256", sha256(b"x" * 10).hexdigest())
    assert_line_says(told, "alien", "orders/alien", "not in the history")
    assert_line_says(told, "1 file missing", "1 file altered", "1 file alien", "2 files of the history")
    assert scene.run("verify", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["files"] for one in found["gaps"]] == [[scene.name(0)]]
    assert (len(found["altered"]), found["alien"]) == (1, ["orders/alien"])


def test_a_file_of_another_size_is_altered_without_reading_it(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Also with --quick."""
    scene.paths[0].write_bytes(b"")
    assert scene.run("verify", "--quick") == 1
    assert_line_says(capsys.readouterr().out, "altered", scene.name(0), "0 bytes", "had 10")


def test_another_connectors_files_are_not_looked_at(scene: Scene) -> None:
    """It shares the archive."""
    (scene.archive / "payments" / "orders").mkdir(parents=True)
    (scene.archive / "payments" / "orders" / "x").touch()
    assert scene.run("verify") == 0


def test_files_are_listed(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """With offsets and sizes, all or those that are chosen; as JSON one a line."""
    assert scene.run("list") == 0
    assert_line_says(capsys.readouterr().out, "3 files", "30 bytes", "in directory:")
    assert scene.run("list", "--json", "--topic", "orders", "--partition", "0", "--offset", "12") == 0
    [line] = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["path"], told["first_offset"], told["last_offset"]) == (f"orders/{scene.name(1)}", 10, 19)
    assert scene.run("list", "--topic", "other") == 0
    assert "0 files" in capsys.readouterr().out


def test_an_archive_or_history_that_cannot_be_read_is_told(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1 without a history; an archive that is away is a problem of the connector file."""
    scene.history.unlink()
    assert scene.run("verify") == 1
    assert_line_says(capsys.readouterr().err, "no history", str(scene.history))
    scene.archive.rename(scene.archive.with_name("away"))
    assert scene.run("list") == 2
    assert "Invalid [connect.ems.archive.url]" in capsys.readouterr().err


def test_options_of_the_other_action_are_refused(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """All at once, and so are numbers below 0."""
    assert scene.run("list", "--quick", "--progress", "--offset", "-1") == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_a_connector_without_an_archive_is_told(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is read."""
    lines = scene.file.read_text().splitlines()
    scene.file.write_text("\n".join(line for line in lines if "archive" not in line.partition("=")[0]))
    assert scene.run("verify") == 2
    assert_line_says(capsys.readouterr().err, "orders", "no archive", "connect.ems.archive.url")
