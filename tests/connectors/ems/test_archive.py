"""A connector file with an archive."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.archive.settings import ArchiveSettings
from parquet_sink.commands.preflight import inspect
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.check import check_files
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.connectors.worker import Worker
from tests.connectors.ems.connector_files import GOOD as PUSH
from tests.connectors.ems.connector_files import E

URL = f"{E}archive.url"
GOOD = {**PUSH, f"{E}endpoint": "directory:/data/lake"}
GOOD.pop(f"{E}authorization.key")


def loaded(changes: Mapping[str, str]) -> Loaded:
    """The file of a folder with these changes."""
    return load({**GOOD, **changes}, Worker(machine=Machine()), source="f")


def test_without_the_key_there_is_none() -> None:
    """Nothing is archived unless it is asked for."""
    assert loaded({}).require().archive is None


def test_an_archive_is_required_unless_it_is_said_otherwise() -> None:
    """The folder as it stands, the connector's name, and a folder below tmp.dir for what waits."""
    found = loaded({URL: "directory:/data//archive/", f"{E}tmp.dir": "/tmp/x"})
    assert (found.problems, found.warnings) == ((), ())
    waiting = "/tmp/x/orders/.archive"
    assert found.require().archive == ArchiveSettings("/data/archive", "orders", waiting, True, 1_000_000_000)
    behind = loaded({URL: "directory:/a", f"{E}archive.required": "false", f"{E}archive.max.waiting.bytes": "2000000"})
    archive = behind.require().archive
    assert archive is not None
    assert (archive.required, archive.max_waiting_bytes, behind.warnings) == (False, 2_000_000, ())


@pytest.mark.parametrize("url", ["/data/archive", "file:/data", "directory:", "directory:data", "directory:/"])
def test_what_names_no_archive_is_told(url: str) -> None:
    """One problem, with the form."""
    [problem] = loaded({URL: url}).problems
    assert problem.startswith(f"Invalid [{URL}]. ")
    assert "directory:/path/to/folder" in problem or "folder for the files" in problem


@pytest.mark.parametrize("folder", ["/data/lake", "/data/lake/", "/data/lake/archive", "/data"])
def test_the_targets_own_folder_is_no_archive(folder: str) -> None:
    """Neither itself, nor one within the other."""
    [problem] = loaded({URL: f"directory:{folder}"}).problems
    assert problem.startswith(f"Invalid [{URL}]. ")
    assert "/data/lake" in problem


def test_keys_that_mean_nothing_are_named() -> None:
    """What waits is bounded where something waits; and without an archive there is nothing to require."""
    [warning] = loaded({URL: "directory:/a", f"{E}archive.max.waiting.bytes": "2000000"}).warnings
    assert warning.startswith(f"Warning [{E}archive.max.waiting.bytes]. It has no effect")
    [warning] = loaded({f"{E}archive.required": "false"}).warnings
    assert URL in warning


@pytest.mark.parametrize("kind", ["absent", "file", "link to the target"])
def test_an_archive_that_cannot_be_used_is_told_before_the_start(tmp_path: Path, kind: str) -> None:
    """Under its key; a link does not hide that it is the target's own folder."""
    place, lake = tmp_path / "place", tmp_path / "lake"
    lake.mkdir()
    if kind == "file":
        place.touch()
    elif kind == "link to the target":
        place.symlink_to(lake)
    keys = {**GOOD, f"{E}endpoint": f"directory:{lake}", URL: f"directory:{place}", f"{E}tmp.dir": str(tmp_path)}
    (tmp_path / "orders.properties").write_text("".join(f"{key}={text}\n" for key, text in keys.items()))
    (tmp_path / "worker.properties").write_text("bootstrap.servers=localhost:1\n")
    checked = inspect(check_files([str(tmp_path / "orders.properties")], str(tmp_path / "worker.properties")), {})
    [problem] = checked.connectors[0].problems
    assert problem.startswith(f"Invalid [{URL}]. ")
