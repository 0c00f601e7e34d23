"""Which raw files are meant: files, folders with all that is below them, patterns."""

import glob
import os
from collections.abc import Iterator, Sequence

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.reshape.reading import NotRaw, look
from parquet_sink.reshape.spans import RawFile


def find(given: Sequence[str]) -> list[RawFile]:
    """All files that have records, each once. Raises InvalidConfiguration with all that is wrong with any of them."""
    problems: list[str] = []
    paths: dict[str, str] = {}
    for text in given:
        found = [*_paths(text)]
        if not found:
            problems.append(f"Invalid [FILES]. {text}: {_why_none(text)}")
        for path in found:
            paths.setdefault(os.path.realpath(path), path)
    files: list[RawFile] = []
    for path in paths.values():
        try:
            one = look(path)
        except NotRaw as error:
            problems.append(f"Invalid [FILES]. {path} is no raw file: {error}; leave it out, or bring a whole one.")
        else:
            files += [] if one is None else [one]
    if problems:
        raise InvalidConfiguration(problems)
    return files


def _paths(text: str) -> Iterator[str]:
    if os.path.isdir(text):
        for folder, below, names in os.walk(text):
            below[:] = sorted(name for name in below if not name.startswith((".", "_")))
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".parquet"))
    elif os.path.lexists(text):
        yield text
    else:
        yield from sorted(glob.glob(text, recursive=True))


def _why_none(text: str) -> str:
    if os.path.isdir(text):
        return "the folder has no .parquet file, nor has one below it; name another."
    return "there is no such file; correct the path."
