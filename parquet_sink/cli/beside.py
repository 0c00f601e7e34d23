"""Connector files for commands beside a running connector: with the folders that a worker keeps for its connectors."""

import argparse
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from parquet_sink.config.files import this_machine
from parquet_sink.connectors.check import NO_OVERRIDES, Checked, check_files, read_worker
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.files.naming import connector_folder
from parquet_sink.files.settings import IN_MEMORY, TMP_DIR
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.validate.preflight import inspect
from parquet_sink.worker_config.worker import STORE_FOLDER, Worker

FOLDERS: Final = "connectors"
"""Below `config.storage.folder`: the folder of each connector that names none."""

log = logging.getLogger(__name__)


def hosted(worker: Worker, store_folder: str) -> Worker:
    """The worker with its connectors' folders below that of their store."""
    folder = os.path.join(worker.machine.absolute(store_folder), FOLDERS)
    return replace(worker, machine=replace(worker.machine, tmp_dir=folder))


def folders_of(path: str) -> list[Path]:
    """Where the worker of a worker file keeps its connectors' folders, and so does each of a group on this machine.

    Raises InvalidConfiguration with what is wrong in the file beside secrets that are not here, and where it names no
    folder.
    """
    loaded = read_worker(path, bootstrap_servers=None, machine=this_machine())
    failed, worker = loaded.resolved.failed, loaded.worker
    if STORE_FOLDER in failed or len(loaded.problems) != len(failed):
        worker = loaded.require()
    if worker.store_folder is None:
        raise InvalidConfiguration([f"Invalid [{STORE_FOLDER}]. It is missing; name the worker's folder. (in {path})"])
    store = Path(worker.machine.absolute(worker.store_folder))
    return [store / FOLDERS, *sorted(store.glob(f"workers/*/{FOLDERS}"))]


def settings_beside(args: argparse.Namespace) -> tuple[SinkSettings, ...]:
    """Those of the files that the options of `add_files` name, or that a worker gave. Raises InvalidConfiguration."""
    if given := given_settings(args):
        return given
    checked = inspect(check_beside(args.files, args.worker, bootstrap_servers=args.bootstrap_servers))
    for warning in checked.warnings:
        log.debug("%s", warning)
    return checked.require()


def tmp_dir_beside(loaded: Loaded, worker: Worker) -> str | None:
    """`tmp.dir` of a file that is right but for values that no provider gives here; None of any other file.

    For what reads a connector's folder alone, where secrets need not be. None too where name or folder has no value.
    """
    resolved = loaded.resolved
    named = {"name", TMP_DIR, IN_MEMORY, "connector.class"}
    if not resolved.failed or named & resolved.failed or len(loaded.problems) != len(resolved.failed):
        return None
    name, given = (resolved.values.get(key, "").strip() for key in ("name", TMP_DIR))
    if not name or resolved.values.get(IN_MEMORY, "").strip().lower() == "true":
        return None
    if given:
        return worker.machine.absolute(given)
    if worker.store_folder is not None:
        theirs = hosted(worker, worker.store_folder).machine.tmp_dir
        if os.path.isdir(connector_folder(theirs, name)):
            return theirs
    return worker.machine.tmp_dir


def given_settings(args: argparse.Namespace) -> tuple[SinkSettings, ...]:
    """What a worker gave for a job of its own (`cli.job`); empty where files are to be read."""
    found: tuple[SinkSettings, ...] = getattr(args, "given", ())
    return found


def check_beside(
    paths: Sequence[str],
    worker_path: str | None,
    *,
    bootstrap_servers: str | None = None,
    overrides: Mapping[str, str] = NO_OVERRIDES,
) -> Checked:
    """As `check_files`; a connector that names no tmp.dir has the folder that a worker made for it, where there is one.

    The worker is that of the worker file's `config.storage.folder`, or of its default.
    """
    checked = check_files(paths, worker_path, bootstrap_servers=bootstrap_servers, overrides=overrides)
    worker = checked.worker.worker
    if worker.store_folder is None:
        return checked
    theirs = hosted(worker, worker.store_folder)
    return replace(checked, connectors=tuple(_of_worker(one, worker, theirs) for one in checked.connectors))


def _of_worker(loaded: Loaded, worker: Worker, theirs: Worker) -> Loaded:
    if loaded.settings is None or loaded.properties.get(TMP_DIR, "").strip():
        return loaded
    name = loaded.settings.name
    made, other = (connector_folder(one.machine.tmp_dir, name) for one in (theirs, worker))
    if not os.path.isdir(made):
        return loaded
    if os.path.isdir(other):
        log.warning(
            "connector %s names no %s and has two folders: %s, which a worker made, is taken, and not %s. Name the "
            "right folder there, or remove the other.",
            name,
            TMP_DIR,
            made,
            other,
        )
    return replace(loaded, settings=load(loaded.properties, theirs, source=loaded.source).settings)
