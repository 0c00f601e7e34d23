"""Connector files: where what is passed over is kept."""

import pytest

from parquet_sink.parked.settings import ParkedSettings
from tests.connectors.ems.connector_files import E, load_file, settings_of
from tests.messages import assert_says

CONTINUE = {f"{E}error.policy": "CONTINUE"}
DLQ = {"errors.deadletterqueue.topic.name": "dlq"}


def test_by_default_what_is_passed_over_is_parked_below_tmp_dir() -> None:
    """256 MiB of it, in a folder that belongs to the connector."""
    found = settings_of({**CONTINUE, f"{E}tmp.dir": "/data/tmp", "name": "orders"})
    assert found.parked == ParkedSettings(None, 256 << 20)
    assert found.parked_folder == "/data/tmp/orders/.parked"


def test_a_folder_that_is_named_is_taken() -> None:
    """Below it each connector has its own; a relative one is below the working folder."""
    found = settings_of({**CONTINUE, f"{E}parked.dir": "kept", f"{E}parked.max.bytes": "2000000", "name": "a/b"})
    assert found.parked_folder.endswith("/kept/a%2Fb")
    assert found.parked_folder.startswith("/")
    assert found.parked.max_bytes == 2_000_000


@pytest.mark.parametrize(
    ("keys", "parks"),
    [
        ({}, False),
        (CONTINUE, True),
        ({"errors.tolerance": "all"}, True),
        ({f"{E}error.policy.continue.on.invalid.input": "true"}, True),
        ({**CONTINUE, **DLQ}, False),
        ({"errors.tolerance": "all", **DLQ}, False),
    ],
)
def test_what_parks(keys: dict[str, str], parks: bool) -> None:
    """Whatever passes over, unless a dead-letter topic takes it; else keys of parking are warned about."""
    loaded = load_file({**keys, f"{E}parked.max.bytes": "2000000"})
    assert loaded.require().errors.parks is parks
    warned = any(f"[{E}parked.max.bytes]. Nothing new is parked" in text for text in loaded.warnings)
    assert warned is not parks


def test_records_are_not_kept_in_memory_only() -> None:
    """With files in memory a folder on a disk must be named."""
    in_memory = {**CONTINUE, f"{E}inmemfs.enable": "true"}
    (problem,) = load_file(in_memory).problems
    assert_says(problem, f"[{E}parked.dir]", "missing", f"{E}inmemfs.enable is true", "folder on a disk")
    assert load_file({**in_memory, f"{E}parked.dir": "/data"}).problems == ()
    assert load_file({f"{E}inmemfs.enable": "true"}).problems == ()
