"""Packages with plug-ins, as an installer leaves them in a folder."""

import sys
from pathlib import Path


def install(
    folder: Path, package: str, source: str, entry_points: dict[str, str], group: str = "parquet_sink.connectors"
) -> None:
    """A package with entry points of a group."""
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text(source)
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: 1.0\n")
    lines = [f"{name} = {path}" for name, path in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


def forget(package: str) -> None:
    """What was imported of a package that goes away."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]
