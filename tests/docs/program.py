"""The program beside packages of the examples, which are installed as a user does it."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from os import environ
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = ROOT / "docs" / "examples"
_PIP: Final = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")


def run(*args: str, path: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Python with this checkout, and with `path` before it."""
    own = {"PYTHONPATH": f"{path}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    return subprocess.run(
        [sys.executable, *args],
        env={**environ, **own},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=path,
    )


def install(folder: Path, *examples: str) -> str:
    """A folder that examples are built and installed to, with their entry points."""
    sources = []
    for name in examples:  # a build leaves files beside what it builds
        sources.append(folder / "sources" / name)
        shutil.copytree(EXAMPLES / name, sources[-1])
    done = run("-m", "pip", "install", *_PIP, "--target", str(folder / "site"), *map(str, sources), path=str(folder))
    assert done.returncode == 0, done.stderr
    return str(folder / "site")
