"""Kafka topics arrive as Parquet files at a push API, in an S3 bucket or in a folder: at least once, on Spark."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Final

__version__ = "0.2.0"

_MOVED: Final = {
    "connectors.provider_class": "worker_config.provider_class",
    "connectors.source": "addons.sources.connector",
    "convert.own": "convert.custom",
    "pipeline.settings": "settings.sink",
    "pipeline": "task",
    "kafka.keys": "kafka.settings",
    "rows.keys": "rows.settings",
    "shape.shaper": "rows.row_builder",
    "shape": "rows",
    "targets.target": "targets.settings",
}
"""Rooms that plug-ins imported from before there was `parquet_sink.api`, and where they are now."""


class _Former(MetaPathFinder, Loader):
    """Finds what moved under its former name, too: it is the same module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.removeprefix("parquet_sink.")
        if name == fullname or not any(name == one or name.startswith(f"{one}.") for one in _MOVED):
            return None
        return spec_from_loader(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = spec.name.removeprefix("parquet_sink.")
        former = next(one for one in _MOVED if name == one or name.startswith(f"{one}."))
        module = import_module(f"parquet_sink.{_MOVED[former]}{name.removeprefix(former)}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run under its own name; only that name is given back to it."""
        module.__spec__ = module.__spec__.loader_state if module.__spec__ is not None else None


sys.meta_path.insert(0, _Former())  # first: the usual finder would load a moved package's modules a second time
