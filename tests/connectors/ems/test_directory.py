"""A connector file whose target is a folder."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.config.machine import Machine
from parquet_sink.connectors.check import check_files
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.targets.directory.settings import DirectorySettings
from parquet_sink.targets.settings import RetrySettings
from parquet_sink.validate.preflight import inspect
from parquet_sink.worker_config.worker import Worker
from tests.messages import assert_says

E = "connect.ems."
GOOD = {
    "name": "orders",
    "topics": "orders",
    "value.converter": JsonConverter.class_name,
    "value.converter.schemas.enable": "false",
    f"{E}endpoint": "directory:/data/lake",
    f"{E}target.table": "ORDERS",
    f"{E}commit.size.bytes": "10000000",
    f"{E}commit.records": "1000",
    f"{E}commit.interval.ms": "30000",
}
WITHOUT_EFFECT = {
    "authorization.key": "AppKey k",
    "connection.id": "c",
    "endpoint.allow.http": "true",
    "data.fallback.varchar.length": "80",
    "http.connect.timeout.ms": "1",
    "pool.max.idle": "1",
    "proxy.host": "p",
    "proxy.port": "1",
}


def loaded(changes: Mapping[str, str | None] | None = None) -> Loaded:
    """The file with these changes."""
    properties = {**GOOD, **(changes or {})}
    worker = Worker(machine=Machine())
    return load({key: text for key, text in properties.items() if text is not None}, worker, source="f")


@pytest.mark.parametrize(
    ("endpoint", "folder"),
    [
        ("directory:/data/lake", "/data/lake"),
        ("directory:///data/lake/", "/data/lake"),
        ("DIRECTORY:/a b/ü%20/../x", "/a b/x"),
    ],
)
def test_an_endpoint_may_be_a_folder(endpoint: str, folder: str) -> None:
    """It needs no credential; what follows the scheme is the path as it stands."""
    found = loaded({f"{E}endpoint": endpoint, f"{E}max.retries": "3"})
    assert (found.problems, found.warnings) == ((), ())
    settings = found.require()
    assert settings.target == DirectorySettings(folder, "ORDERS")
    assert settings.retry == RetrySettings(max_retries=3)


@pytest.mark.parametrize("path", ["", "lake", "//host/x", "/", "/a\x07"])
def test_what_names_no_folder_is_told(path: str) -> None:
    """Relative, of another machine, or the root: one problem, with the form."""
    [problem] = loaded({f"{E}endpoint": f"directory:{path}"}).problems
    assert_says(problem, f"Invalid [{E}endpoint]", f'"directory:{path[:2]}', "folder")


def test_a_folder_needs_a_table() -> None:
    """It names the folder within."""
    [problem] = loaded({f"{E}target.table": None}).problems
    assert_says(problem, f"Invalid [{E}target.table]", "missing", "name of the table")


def test_keys_of_http_are_named() -> None:
    """Each that is set has a warning; the file can be used."""
    found = loaded({E + name: text for name, text in WITHOUT_EFFECT.items()})
    assert found.problems == ()
    assert {warning.partition("]")[0] for warning in found.warnings} == {
        f"Warning [{E}{name}" for name in WITHOUT_EFFECT
    }
    for warning in found.warnings:
        assert_says(warning, "no effect", f"{E}endpoint is a folder", "HTTP")


def test_a_length_that_chunks_need_has_an_effect() -> None:
    """The length of text columns is also that of chunks, whatever the target is."""
    found = loaded({f"{E}data.fallback.varchar.length": "80", f"{E}flattener.jsonblob.chunks": "2"})
    assert (found.problems, found.warnings) == ((), ())


@pytest.mark.parametrize("kind", ["absent", "file"])
def test_a_folder_that_cannot_be_used_is_told_before_the_start(tmp_path: Path, kind: str) -> None:
    """Under the key that names it, with the cure."""
    place = tmp_path / "place"
    if kind == "file":
        place.touch()
    file = tmp_path / "orders.properties"
    file.write_text("".join(f"{key}={text}\n" for key, text in {**GOOD, f"{E}endpoint": f"directory:{place}"}.items()))
    worker = tmp_path / "worker.properties"
    worker.write_text("bootstrap.servers=localhost:1\n")
    checked = inspect(check_files([str(file)], str(worker)), {})
    [connector] = checked.connectors
    [problem] = connector.problems
    assert problem.startswith(f"Invalid [{E}endpoint]. {place}: ")
    assert f"{E}endpoint" in problem
    place.unlink(missing_ok=True)
    place.mkdir()
    assert [one.problems for one in inspect(check_files([str(file)], str(worker)), {}).connectors] == [()]
