"""Writes the golden files anew: `python -m tests.golden`, after what they hold was changed on purpose."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden import files, keys, persisted
from tests.golden.cases import cases


def described() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each case by its name."""
    for case in cases():
        with tempfile.TemporaryDirectory() as folder:
            yield case.name, files.described(files.made(case, Path(folder)))


keys.FILE.write_text(keys.written(keys.tables()), encoding="utf-8")
persisted.FILE.write_text(persisted.written(persisted.persisted()), encoding="utf-8")
files.FILE.write_text(files.written(dict(described())), encoding="utf-8")
