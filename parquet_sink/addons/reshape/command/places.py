"""Which raw files are meant, and where the files go.

Meant are files, folders with all that is below them, patterns, prefixes of file stores. Files go to a folder that is
new, or that has what the same settings made.
"""

import glob
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from parquet_sink.addons.reshape import stores
from parquet_sink.addons.reshape.marks import Mark, Marks, why_mixed
from parquet_sink.addons.reshape.reading import NotRaw, look
from parquet_sink.addons.reshape.spans import RawFile
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.store import FileStore, StoreUnusable

REJECTED = "_rejected"
"""Within the folder that files go to, where records without a row are kept unless another one is named."""
_CURE = "leave it out, or bring a whole one."


def find(given: Sequence[str], opened: Callable[[str], FileStore]) -> list[RawFile]:
    """All files that have records, each once. opened: gives the store of a root.

    Raises InvalidConfiguration with all that is wrong with any of them.
    """
    problems: list[str] = []
    stored = [file for text in given if stores.is_stored(text) for file in _stored(text, opened, problems)]
    paths: dict[str, str] = {}
    for text in given:
        if stores.is_stored(text):
            continue
        found = [*_paths(text)]
        if not found:
            problems.append(f"Invalid [FILES]. {text}: {_why_none(text)}")
        paths |= {os.path.realpath(path): path for path in found if os.path.realpath(path) not in paths}
    files = _looked_at(paths.values(), problems)
    if problems:
        raise InvalidConfiguration(problems)
    return [*{file.path: file for file in stored}.values(), *files]


def _stored(text: str, opened: Callable[[str], FileStore], problems: list[str]) -> Sequence[RawFile]:
    try:
        files, unnamed = stores.find(text, opened(stores.split(text)[0]))
    except StoreUnusable as error:
        problems.append(f"Invalid [FILES]. {text}: {error}")
        return ()
    reason = "its name does not say which offsets it has; fetch it, and give the local file."
    problems += [f"Invalid [FILES]. {path}: {reason}" for path in unnamed]
    if not files and not unnamed:
        problems.append(f"Invalid [FILES]. {text}: there is no .parquet file; correct the prefix.")
    return files


def _looked_at(paths: Iterable[str], problems: list[str]) -> list[RawFile]:
    files: list[RawFile] = []
    for path in paths:
        try:
            one = look(path)
        except NotRaw as error:
            problems.append(f"Invalid [FILES]. {path} is not a raw file: {error}; {_CURE}")
        else:
            files += [] if one is None else [one]
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


def prepare(out: str, wanted: Sequence[Mark], marks: Callable[[], Marks]) -> None:
    """Notes what is going to be there. Raises InvalidConfiguration."""
    try:
        place = marks()
        there = place.read()
        why = why_mixed(there, wanted)
        if not there and place.in_the_way():
            why = "it is not empty, and nothing in it is of a reshape"
        if why is not None:
            raise InvalidConfiguration([f"Invalid [--out]. {out}: {why}; name a place that is new or empty."])
        place.add(wanted)
    except StoreUnusable as error:
        raise InvalidConfiguration([f"Invalid [--out]. {out}: {error}"]) from None
    except OSError as error:
        raise InvalidConfiguration(
            [f"Invalid [--out]. {out}: {error.strerror}; name one that can be written."]
        ) from None


def prepare_rejected(settings: SinkSettings) -> None:
    """Makes the folder for rejected records, where there may be some. Raises StorageFailed."""
    if settings.errors.invalid_records:
        ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes).prepare()


@contextmanager
def work_folder(tmp_dir: str, connector: str) -> Iterator[str]:
    """A folder for temporary files, of one process at a time; what a killed one left is removed.

    Raises AnotherInstance, StorageFailed.
    """
    own = f"{connector}.reshape"
    with ConnectorLock(tmp_dir, own):
        folder = str(Path(naming.connector_folder(tmp_dir, own)) / "work")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
