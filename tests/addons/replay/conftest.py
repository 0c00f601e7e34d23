"""A world of its own for each test."""

from pathlib import Path

import pytest

from tests.addons.replay.world import World
from tests.task.fakes import made


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Files of 700 records."""
    return World(made(tmp_path, 700), monkeypatch)
