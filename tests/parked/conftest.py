"""Folders of parked records, and what may go wrong with a disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from parquet_sink.parked.folder import ParkedFolder

MAX: int = 100_000_000


@pytest.fixture
def folder(tmp_path: Path) -> ParkedFolder:
    """One that is ready."""
    made = ParkedFolder(str(tmp_path / "parked"), "sink", MAX)
    made.prepare()
    return made


class Crash(BaseException):
    """The process is gone."""


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """A context within which the n-th change of the disk (from 0) does not happen, nor any after it."""

    @contextmanager
    def crashing(step: int) -> Iterator[None]:
        left = [step]

        def patched(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **more: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    raise Crash
                return function(*args, **more)

            return call

        with monkeypatch.context() as patch:
            for name in ("fsync", "replace", "unlink", "rmdir", "makedirs"):
                patch.setattr(os, name, patched(getattr(os, name)))
            yield

    return crashing
