"""`check` in words."""

from pathlib import Path

import pytest

from parquet_sink.cli import check
from parquet_sink.cli.main import main
from parquet_sink.kafka import native
from parquet_sink.process.native import SWITCH
from tests.cli.connector_file import connector_lines
from tests.messages import assert_says


@pytest.mark.parametrize(
    ("where", "name", "slower"),
    [(native, "EXTENSION", "confluent-kafka reads records"), (check, "JSON", "Arrow reads JSON")],
)
def test_what_was_not_built_is_told_with_the_cure(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    name: str,
    slower: str,
) -> None:
    """What each part in C saves, and how it gets there; nothing where the environment turns both off."""
    (tmp_path / "out").mkdir()
    file = tmp_path / "orders.properties"
    file.write_text("".join(f"{key}={text}\n" for key, text in connector_lines(tmp_path).items()))
    monkeypatch.setenv("PARQUET_SINK_BOOTSTRAP_SERVERS", "localhost:1")
    monkeypatch.setattr(where, name, "parquet_sink.process._of_no_build")

    assert main(["check", str(file)]) == 0
    assert "in C" not in capsys.readouterr().out

    monkeypatch.delenv(SWITCH)
    assert main(["check", str(file)]) == 0
    (line,) = [one for one in capsys.readouterr().out.splitlines() if slower in one]
    assert_says(line, "µs of CPU", "_of_no_build was not built", "install a C compiler")
