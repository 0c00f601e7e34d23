"""`parquet-sink replay`, as tests give it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Sink
from parquet_sink.cli.main import main


class Command:
    """`parquet-sink replay` of a connector."""

    def __init__(self, sink: Sink, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._sink, self._folder, self._capsys = sink, folder, capsys

    def __call__(self, properties: Mapping[str, str], *options: str) -> tuple[int, dict[str, Any]]:
        """Exit status, and what it printed as JSON."""
        worker = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
        path = self._folder / "c.properties"
        path.write_text(
            "".join(f"{key}={value}\n" for key, value in {**properties, **worker}.items()), encoding="utf-8"
        )
        self._capsys.readouterr()
        servers = self._sink.broker.bootstrap_servers
        status = main(["replay", "--connector", str(path), "--bootstrap-servers", servers, "--json", *options])
        return status, json.loads(self._capsys.readouterr().out or "{}")


@pytest.fixture
def replay(sink: Sink, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Of one test. Beside a running connector it would lower the priority of its process, which here runs all tests."""
    monkeypatch.setattr("os.setpriority", lambda *args: None)
    return Command(sink, tmp_path, capsys)
