"""Where the files go: a folder that is new, or that has what the same settings made."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from parquet_sink.addons.reshape.marks import Mark, Marks, why_mixed
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files import naming
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.targets.store import StoreUnusable

REJECTED = "_rejected"
"""Within the folder, where records without a row are kept unless another one is named."""


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
