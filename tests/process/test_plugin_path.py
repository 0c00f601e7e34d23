"""Folders with packages of a user's own."""

import os
import sys
from pathlib import Path

import pytest

from parquet_sink.process.program import add_plugin_path


def test_packages_are_found_here_and_in_what_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind what is installed, each folder once, a folder that is not there told."""
    monkeypatch.setattr(sys, "path", ["/installed"])
    monkeypatch.setenv("PYTHONPATH", "/before")
    missing = str(tmp_path / "none")
    assert add_plugin_path([str(tmp_path), missing]) == [missing]
    assert add_plugin_path([str(tmp_path)]) == []
    assert sys.path == ["/installed", str(tmp_path)]
    assert os.environ["PYTHONPATH"] == f"/before{os.pathsep}{tmp_path}"


def test_without_folders_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even an empty PYTHONPATH is set, which would name the working directory."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert add_plugin_path([]) == []
    assert "PYTHONPATH" not in os.environ
