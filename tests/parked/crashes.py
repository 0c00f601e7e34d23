"""What a crash leaves of changes to the disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Crash(BaseException):
    """The process is gone."""


@contextmanager
def crash_at(step: int) -> Iterator[None]:
    """A context within which the n-th change of the disk (from 0) does not happen, nor any after it."""
    left = [step]

    def patched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Crash
            return function(*args, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace", "unlink", "rmdir", "makedirs"):
            patch.setattr(os, name, patched(getattr(os, name)))
        yield
