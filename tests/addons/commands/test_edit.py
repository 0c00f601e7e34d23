"""`connectors edit` and files from standard input: what is put, what is kept, and that nothing is lost."""

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.scripted_worker import ScriptedWorker
from parquet_sink.addons.commands.connectors import edit
from parquet_sink.cli.main import main
from tests.messages import assert_says
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, serving

Edit = Callable[..., tuple[int, str, str]]


class Script:
    """An editor: each time it is opened it does the next change. seen: what it was given."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._changes, self._count = folder, list[tuple[str, str]](), 0
        self._program = folder / "editor.py"
        self._program.write_text(
            "import pathlib, sys\n"
            "folder, file = map(pathlib.Path, sys.argv[1:])\n"
            "number = len(list(folder.glob('seen-*')))\n"
            "(folder / f'seen-{number}').write_text(file.read_text())\n"
            "old, new = (folder / f'change-{number}').read_text().split('|')\n"
            "if new == 'FAIL': sys.exit(3)\n"
            "text = file.read_text()\n"
            "assert old in text\n"
            "file.write_text(text.replace(old, new) if old else text)\n"
        )

    def then(self, old: str, new: str) -> "Script":
        (self._folder / f"change-{self._count}").write_text(f"{old}|{new}")
        self._count += 1
        return self

    @property
    def command(self) -> str:
        return f"{sys.executable} {self._program} {self._folder}"

    @property
    def seen(self) -> list[str]:
        return [path.read_text() for path in sorted(self._folder.glob("seen-*"))]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """The editor of the environment."""
    folder = tmp_path / "an editor's"
    folder = tmp_path / "editor"
    folder.mkdir()
    made = Script(folder)
    monkeypatch.setenv("EDITOR", made.command)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return made


@pytest.fixture
def herder() -> FakeHerder:
    """With connector `orders`, which has a password."""
    made = FakeHerder()
    made.kept["orders"] = Kept({**GOOD, "name": "orders", "connect.ems.target.table": "a\\b é"})
    return made


@pytest.fixture
def run(
    herder: FakeHerder, script: Script, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Edit]:
    """Types the command, and answers its questions: exit status, standard output, standard error."""
    for name in ("URL", "USER", "PASSWORD", "CLIENT_FILE"):
        monkeypatch.delenv(f"PARQUET_SINK_{name}", raising=False)
    with serving(herder) as client:

        def typed(*words: str, answers: str = "", terminal: bool = True) -> tuple[int, str, str]:
            stdin = io.StringIO(answers)
            monkeypatch.setattr(stdin, "isatty", lambda: terminal, raising=False)
            monkeypatch.setattr(sys, "stdin", stdin)
            status = main(["connectors", "edit", *words, "--url", f"http://127.0.0.1:{client.port}"])
            return status, *capsys.readouterr()

        yield typed


def kept_text(err: str) -> str:
    """What the file holds that the message names."""
    return Path(err.partition("what you edited is kept in ")[2].splitlines()[0]).read_text()


def test_what_was_edited_is_shown_and_put(run: Edit, herder: FakeHerder, script: Script, tmp_path: Path) -> None:
    """The password stays, hidden all the while; nothing of it stays behind."""
    script.then("connect.ems.commit.records=1000", "connect.ems.commit.records=2000")
    status, out, err = run("orders", answers="y\n")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert "- connect.ems.commit.records=1000" in lines
    assert "+ connect.ems.commit.records=2000" in lines
    assert_says(lines[-1], "connector orders", "changed", "connect.ems.commit.records")
    assert "secret-key" not in out + script.seen[0]
    assert "connect.ems.authorization.key=[hidden]" in script.seen[0]
    put = herder.kept["orders"].config
    assert (put["connect.ems.commit.records"], put["connect.ems.target.table"]) == ("2000", "a\\b é")
    assert list(tmp_path.glob("parquet-sink-edit-*")) == []


def test_what_is_not_valid_is_edited_again(run: Edit, herder: FakeHerder, script: Script) -> None:
    """From where it was left, with what is wrong by its key; a line that is no property, too."""
    script.then("connect.ems.commit.records=1000", "connect.ems.commit.records=many")
    script.then("records=many", "records=\\u00zz").then("records=\\u00zz", "records=7")
    status, out, _ = run("orders", answers="\ny\ny\n")
    assert status == 0
    assert "Invalid [connect.ems.commit.records]" in out
    assert "hexadecimal" in out
    assert "records=many" in script.seen[1]
    assert herder.kept["orders"].config["connect.ems.commit.records"] == "7"


def test_what_was_edited_is_kept_where_it_is_not_put(run: Edit, herder: FakeHerder, script: Script) -> None:
    """Not valid and given up, no to the question, and an editor that fails afterwards."""
    before = dict(herder.kept["orders"].config)
    script.then("records=1000", "records=many")
    status, _, err = run("orders", answers="n\n")
    assert (status, "records=many" in kept_text(err)) == (1, True)
    script.then("records=1000", "records=5")
    status, _, err = run("orders", answers="n\n")
    assert (status, "records=5" in kept_text(err)) == (1, True)
    script.then("records=1000", "records=6").then("records=6", "FAIL")
    status, _, err = run("orders", answers="e\n")
    assert (status, "records=6" in kept_text(err)) == (1, True)
    assert "status 3" in err
    assert herder.kept["orders"].config == before


def test_nothing_changed_puts_nothing(run: Edit, herder: FakeHerder, script: Script) -> None:
    """And asks nothing."""
    script.then("", "")
    status, out, _ = run("orders")
    assert (status, len(out.splitlines())) == (0, 1)
    assert_says(out, "connector orders", "nothing was changed")


def test_a_change_by_another_meanwhile_is_not_overwritten(
    run: Edit, herder: FakeHerder, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was edited is kept."""
    script.then("records=1000", "records=5")
    put = edit._put

    def later(*args: object) -> None:
        herder.kept["orders"].config["connect.ems.commit.records"] = "9"
        put(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(edit, "_put", later)
    status, _, err = run("orders", "--yes")
    assert (status, "Somebody else" in err, "records=5" in kept_text(err)) == (1, True, True)
    assert herder.kept["orders"].config["connect.ems.commit.records"] == "9"


def test_without_a_terminal_yes_is_needed(run: Edit, herder: FakeHerder, script: Script) -> None:
    """With it what is valid is put, and what is not is kept."""
    assert run("orders", terminal=False)[0] == 2
    script.then("records=1000", "records=5").then("records=5", "records=many")
    assert run("orders", "--yes", terminal=False)[0] == 0
    status, _, err = run("orders", "--yes", terminal=False)
    assert (status, "records=many" in kept_text(err)) == (1, True)


def test_an_editor_that_is_not_there_is_named(run: Edit, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variable that names it."""
    monkeypatch.setenv("VISUAL", "/no/such/editor")
    status, _, err = run("orders")
    assert (status, "VISUAL" in err, "/no/such/editor" in err) == (2, True, True)


@pytest.mark.parametrize("text", ["name=new\ntopics=orders\n", '{"name": "new", "config": {"topics": "orders"}}'])
def test_a_connector_is_made_from_standard_input(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As properties or JSON, whichever it is."""
    with ScriptedWorker() as worker:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["connectors", "create", "-", "--url", worker.url]) == 0
        assert worker.connectors["new"].config["topics"] == "orders"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" \n")))
    assert main(["connectors", "create", "-", "--url", "http://localhost:1"]) == 2
    assert "standard input" in capsys.readouterr().err
