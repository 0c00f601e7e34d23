"""Where the files go: a folder that is new, or that has what the same settings made."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.reshape.marks import FOLDER, Mark, MarkFolder, why_mixed

REJECTED = "_rejected"
"""Within the folder, where records without a row are kept unless another one is named."""


def prepare(out: str, wanted: Sequence[Mark]) -> None:
    """Makes the folder, and notes what is going to be there. Raises InvalidConfiguration."""
    problem = "Invalid [--out]. "
    try:
        with suppress(FileExistsError):
            os.mkdir(out)
        marks = MarkFolder(out)
        there = marks.read()
        if not there and any(name != FOLDER for name in os.listdir(out)):
            raise InvalidConfiguration(
                [f"{problem}{out} is not empty, and nothing in it is of a reshape; name a folder that is new or empty."]
            )
        why = why_mixed(there, wanted)
        if why is not None:
            raise InvalidConfiguration([f"{problem}{out}: {why}; name a folder that is new or empty."])
        marks.add(wanted)
    except OSError as error:
        raise InvalidConfiguration([f"{problem}{out}: {error.strerror}; name a folder that can be written."]) from None


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
