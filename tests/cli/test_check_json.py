"""`check --json`: findings by file and key, with the status that words would have."""

import json
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.cli.main import main
from tests.cli.connector_file import connector_lines


@pytest.fixture
def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Checks a connector file with changed keys: its status by words, and what JSON says."""
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("PARQUET_SINK_BOOTSTRAP_SERVERS", "localhost:1")

    def check(*words: str, **changes: str) -> tuple[int, dict[str, Any]]:
        file = tmp_path / "orders.properties"
        keys = connector_lines(tmp_path) | {f"connect.ems.{name.replace('_', '.')}": v for name, v in changes.items()}
        file.write_text("".join(f"{key}={text}\n" for key, text in keys.items()))
        status = main(["check", str(file), *words])
        capsys.readouterr()
        assert main(["check", str(file), "--json", *words]) == status
        return status, json.loads(capsys.readouterr().out)

    return check


def test_a_file_that_is_right(checked: Any) -> None:
    """With its name, and what happens to a record."""
    status, found = checked()
    (one,) = found["connectors"]
    assert (status, found["valid"], found["exit_status"]) == (0, True, 0)
    assert (one["name"], one["problems"], one["tried"]) == ("orders", [], None)
    assert one["steps"]


def test_what_is_wrong_is_told_by_its_key(checked: Any) -> None:
    """Problems, and warnings beside them."""
    status, found = checked(commit_records="many", comit_size="1")
    (one,) = found["connectors"]
    assert (status, found["valid"], found["exit_status"], one["name"]) == (2, False, 2, None)
    assert [problem["key"] for problem in one["problems"]] == ["connect.ems.commit.records"]
    assert "connect.ems.comit.size" in [warning["key"] for warning in one["warnings"]]
    assert one["problems"][0]["text"].startswith("Invalid [connect.ems.commit.records]")


def test_what_was_tried_is_told_item_by_item(checked: Any) -> None:
    """A broker that nobody runs is a failure; the target's folder is there."""
    status, found = checked("--connect")
    assert (status, found["exit_status"]) == (1, 1)
    tried = {one["health"] for one in found["connectors"][0]["tried"]}
    assert "failed" in tried
    assert all(set(one) == {"health", "item", "text"} for one in found["connectors"][0]["tried"])


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """It is a problem like any other."""
    assert main(["check", "--json", "missing.properties"]) == 2
    (one,) = json.loads(capsys.readouterr().out)["connectors"]
    assert (one["file"], one["problems"][0]["key"]) == ("missing.properties", "missing.properties")
