"""Folders of parked records."""

from pathlib import Path

import pytest

from parquet_sink.parked.folder import ParkedFolder

MAX: int = 100_000_000


@pytest.fixture
def folder(tmp_path: Path) -> ParkedFolder:
    """One that is ready."""
    made = ParkedFolder(str(tmp_path / "parked"), "sink", MAX)
    made.prepare()
    return made
