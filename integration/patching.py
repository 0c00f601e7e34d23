"""Changes modules of the sink from outside as they are loaded, for a `sitecustomize` of a test's own folder.

Python imports `sitecustomize` at the start of every process that has its folder on the PYTHONPATH; so the changes are
in each process of a sink, and production code has no hooks.
"""

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

Change = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From a function to what takes its place."""


class _Patches(MetaPathFinder):
    """Lets the named modules be found as always, and changes functions of theirs once they are loaded."""

    def __init__(self, changes: Mapping[str, Mapping[str, Change]]) -> None:
        self._changes = changes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._changes:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def patched(module: ModuleType) -> None:
                execute(module)
                for name, change in self._changes[fullname].items():
                    _patch(module, name, change)

            spec.loader.exec_module = patched  # type: ignore[method-assign]
        return spec


def _patch(module: ModuleType, path: str, change: Change) -> None:
    *outer, name = path.split(".")
    owner: Any = functools.reduce(getattr, outer, module)
    setattr(owner, name, change(getattr(owner, name)))


def install(changes: Mapping[str, Mapping[str, Change]]) -> None:
    """changes: by module, then by function, `Class.method` say. Once in a process, before the modules are loaded."""
    sys.meta_path.insert(0, _Patches(changes))
