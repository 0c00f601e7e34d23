"""`parquet-sink parked drop`, of one connector: parked records that will never be good leave for ever."""

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from parquet_sink.cli.parked.reports import listing
from parquet_sink.files.storage import storage_trouble
from parquet_sink.parked.files import PARKING, ParkedFile
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.parked.locks import replaying
from parquet_sink.parked.scan import Selection, scan
from parquet_sink.settings.sink import SinkSettings


def drop(settings: SinkSettings, selection: Selection, *, sure: bool) -> bool:
    """Tells what was chosen, and removes it if that is sure. Whether nothing of it stays. Raises ConnectorError."""
    with storage_trouble(settings.parked_folder, "list parked records", PARKING):
        found = scan(settings.parked_folder)
    for line in listing(settings, selection, as_json=False):
        print(line)
    files = [file for file in found.files if selection.may_have(file)]
    with storage_trouble(settings.parked_folder, "read parked records", PARKING):
        chosen = sum(len(selection.rows(file.read(["offset", "stage"]))) for file in files)
    if not chosen:
        return True
    if not sure:
        print(
            f"parquet-sink: connector {settings.name}: nothing is dropped. {chosen:,} "
            f"record{'' if chosen == 1 else 's'} would be gone for good, but for what Kafka still has; give --yes.",
            file=sys.stderr,
        )
        return False
    folder = ParkedFolder(settings.parked_folder, settings.name, settings.parked.max_bytes)
    with replaying(folder.path):
        dropped = _drop(folder, files, selection)
    print(f"connector {settings.name}: {dropped:,} record{'' if dropped == 1 else 's'} dropped")
    return True


def _drop(folder: ParkedFolder, files: Sequence[ParkedFile], selection: Selection) -> int:
    """How many. What was parked after the folder was looked through stays."""
    dropped: list[int] = []
    for file in files:
        folder.change(file, partial(_without, file, selection, dropped))
    return sum(dropped)


def _without(file: ParkedFile, selection: Selection, dropped: list[int], table: pa.Table) -> pa.Table:
    chosen = selection.rows(table)
    stays = np.ones(table.num_rows, np.bool_)
    stays[chosen[chosen < file.rows]] = False
    dropped.append(int(table.num_rows - stays.sum()))
    return table.filter(pa.array(stays))
