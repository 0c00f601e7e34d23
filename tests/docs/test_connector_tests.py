"""docs/how-to/connector-tests.md: its files give what it shows."""

import re
from pathlib import Path
from typing import Final

import pytest

from parquet_sink.cli.main import main

PAGE: Final = (Path(__file__).parents[2] / "docs" / "how-to" / "connector-tests.md").read_text(encoding="utf-8")
FILES: Final = re.compile(r"`([\w/.]+\.(?:properties|jsonl|json))`:\n\n```\w+\n(.*?)```", re.DOTALL)
SHOWN: Final = re.compile(r"```text\n(.*?)```", re.DOTALL)


def test_the_example_is_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page's files, as they are written there, are equal; --update changes nothing; what is printed is shown."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases").mkdir()
    files = dict(FILES.findall(PAGE))
    assert len(files) == 3
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["test", "orders.properties", "cases/"]) == 0
    assert [capsys.readouterr().out] == SHOWN.findall(PAGE)
    expected = tmp_path / "cases" / "created.expected.json"
    expected.unlink()
    assert main(["test", "--update", "orders.properties", "cases/"]) == 0
    assert expected.read_text(encoding="utf-8") == files["cases/created.expected.json"]
