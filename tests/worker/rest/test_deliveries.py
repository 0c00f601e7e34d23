"""What a connector sent and set aside, as the REST API tells it: whole by pages, and what is wrong or not there."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from parquet_sink.files.naming import file_name
from parquet_sink.history.records import UploadOutcome, UploadRecord
from parquet_sink.history.settings import HistorySettings
from parquet_sink.history.sqlite import write_history
from parquet_sink.parked.folder import ParkedFolder
from parquet_sink.settings.sink import SinkSettings, of_sink
from parquet_sink.worker.herder.errors import NotReadable
from tests.history.uploads import HOUR_MS, span, upload
from tests.parked.records import rejected
from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, Client


@pytest.fixture
def settings(herder: FakeHerder, tmp_path: Path) -> SinkSettings:
    """Of connector `c`, whose archive is a folder."""
    (tmp_path / "archive").mkdir()
    herder.files = tmp_path / "tmp"
    herder.kept["c"] = Kept({**GOOD, "connect.ems.archive.url": f"directory:{tmp_path / 'archive'}"})
    found = herder.settings("c")
    assert of_sink(found)
    return found


@pytest.fixture
def uploads(settings: SinkSettings) -> list[UploadRecord]:
    """Five, of which two end in one millisecond, in the history of `c`."""
    made = [upload(n * 10, n * 10 + 9, at_ms=5_000 + HOUR_MS * (n // 2)) for n in range(4)]
    made.append(upload(40, 49, at_ms=6_000 + HOUR_MS, outcome=UploadOutcome.REFUSED, cause="too wide"))
    path = Path(settings.history_file)
    path.parent.mkdir(parents=True)
    with closing(write_history(path, HistorySettings())) as history:
        history.append_files(made)
        history.append_ranges([span(0, 50)])
    return made


@pytest.fixture
def valid(api: Client) -> Iterator[Any]:
    """Asks, and holds the answer to the document."""
    document = api.get("/openapi.json").json

    def ask(path: str, schema: str) -> Any:
        got = api.get(path)
        assert got.status == 200, got.raw
        where = {"components": document["components"], "$ref": f"#/components/schemas/{schema}"}
        Draft202012Validator(where).validate(got.json)
        return got.json

    return ask


def _pages(valid: Any, path: str, schema: str, field: str) -> list[Any]:
    found, after = [], ""
    while True:
        page = valid(f"{path}{after}", schema)
        assert len(page[field]) <= 2
        found += page[field]
        if page["next"] is None:
            return found
        after = f"&after={page['next']}"


@pytest.mark.parametrize("oldest", [False, True])
def test_the_history_comes_whole_by_pages(valid: Any, uploads: list[UploadRecord], oldest: bool) -> None:
    """In order of time from either end; uploads of one millisecond come once each."""
    found = _pages(valid, f"/connectors/c/history?limit=2&oldest={oldest}", "Uploads", "files")
    ordered = uploads if oldest else uploads[::-1]
    assert [UploadRecord.from_dict(one) for one in found] == ordered


def test_the_history_is_chosen_from_by_what_the_command_chooses_by(valid: Any, uploads: list[UploadRecord]) -> None:
    """Topic, topic-partition, offsets, time, outcome, file; and all of it in figures of hours."""
    asked = {
        "topic=orders&partition=0&offset=12-29": [2, 1],
        "offset=12": [1],
        f"since={HOUR_MS}&until={6_000 + HOUR_MS}": [3, 2],
        "outcome=refused": [4],
        f"file={uploads[0].file_name}": [0],
        "topic=none": [],
    }
    for query, numbers in asked.items():
        page = valid(f"/connectors/c/history?{query}", "Uploads")
        assert [one["file_name"] for one in page["files"]] == [uploads[n].file_name for n in numbers], query
        assert (page["extent"]["files"], page["next"]) == (5, None)
    hours = valid("/connectors/c/history/summary", "UploadHours")["hours"]
    assert [(one["files"], one["others"]) for one in hours] == [(2, {}), (2, {"refused": 1})]


def test_an_offset_is_found(valid: Any, uploads: list[UploadRecord]) -> None:
    """In its file, or said where it is instead."""
    path = "/connectors/c/history/where?topic=orders&partition=0&offset="
    inside, behind = (valid(f"{path}{offset}", "Location")["location"] for offset in (12, 99))
    assert (inside["place"], inside["delivered"], inside["file"]["file_name"]) == ("file", True, uploads[1].file_name)
    assert (behind["place"], behind["delivered"]) == ("later", False)


def test_parked_records_are_told_by_reason_and_one_by_one(valid: Any, settings: SinkSettings) -> None:
    """Their content by an endpoint of its own alone."""
    folder = ParkedFolder(settings.parked_folder, "c", settings.parked.max_bytes)
    folder.prepare()
    folder.append("orders", 0, [rejected(n) for n in range(5)], 1_000)
    listed = valid("/connectors/c/parked?partition=0", "Parked")
    (group,) = listed["groups"]
    assert (listed["records"], group["records"], group["offsets"]) == (5, 5, {"0": [0, 4]})
    records = _pages(valid, "/connectors/c/parked/records?limit=2", "ParkedRecords", "records")
    assert [one["offset"] for one in records] == [0, 1, 2, 3, 4]
    assert "not JSON 3" not in json.dumps(records)
    page = valid("/connectors/c/parked/content?offset=3-9&limit=1", "ParkedRecords")
    assert (page["records"][0]["value"], page["left"], page["next"]) == ("not JSON 3", 1, "1")


def test_files_of_the_archive_are_told_by_pages(valid: Any, tmp_path: Path, settings: SinkSettings) -> None:
    """With what their names say, and one of another name too."""
    names = [file_name("orders", 0, n * 10, n * 10 + 9, 7, 10) for n in range(3)]
    place = tmp_path / "archive" / "c" / "orders"
    place.mkdir(parents=True)
    for name in (*names, "alien"):
        (place / name).write_bytes(b"content")
    found = _pages(valid, "/connectors/c/archive?limit=2", "Archived", "files")
    assert sorted(one["path"] for one in found) == sorted(f"orders/{name}" for name in (*names, "alien"))
    (one,) = valid("/connectors/c/archive?topic=orders&partition=0&offset=15", "Archived")["files"]
    assert (one["path"], one["first_offset"], one["size_bytes"]) == (f"orders/{names[1]}", 10, 7)


def test_a_connector_that_left_nothing_has_nothing(valid: Any, settings: SinkSettings) -> None:
    """That is no error."""
    assert valid("/connectors/c/history", "Uploads")["extent"] is None
    assert valid("/connectors/c/history/summary", "UploadHours")["hours"] == []
    assert valid("/connectors/c/history/where?topic=a&partition=0&offset=1", "Location")["location"] is None
    assert valid("/connectors/c/parked", "Parked")["groups"] == []
    assert valid("/connectors/c/parked/records", "ParkedRecords")["records"] == []
    assert valid("/connectors/c/archive", "Archived")["files"] == []


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("history?limit=0", "limit"),
        ("history?limit=1001", "limit"),
        ("history?partition=-1", "partition"),
        ("history?offset=1-x", "offset"),
        (f"history?offset={'9' * 5_000}", "offset"),
        ("history?outcome=fine", "outcome"),
        ("history?after=x", "after"),
        ("history/where?topic=orders&offset=1", "offset"),
        ("parked?stage=somewhere", "stage"),
        ("parked/records?partition=x", "partition"),
        ("parked/content?after=-1", "after"),
        ("archive?offset=1-2", "offset"),
    ],
)
def test_what_is_wrong_is_named(api: Client, uploads: list[UploadRecord], path: str, key: str) -> None:
    """The parameter, and what may be there."""
    status, message = api.get(f"/connectors/c/{path}").error
    assert (status, message.startswith(f"Invalid [{key}]. ")) == (400, True)


def test_what_is_not_there_is_said(api: Client, herder: FakeHerder, settings: SinkSettings) -> None:
    """A connector, an archive, files of one that writes none, a configuration that cannot be read, a torn history."""
    assert api.get("/connectors/none/history").error == (404, "Connector none not found")
    Path(settings.history_file).parent.mkdir(parents=True)
    Path(settings.history_file).write_text("torn " * 200)
    status, message = api.get("/connectors/c/history").error
    assert (status, settings.history_file in message) == (500, True)
    herder.kept["c"].config.pop("connect.ems.archive.url")
    status, message = api.get("/connectors/c/archive").error
    assert (status, "connect.ems.archive.url" in message) == (400, True)
    herder.kept["c"].config = {
        "connector.class": "FileStreamSinkConnector",
        "topics": "orders",
        "file": "/tmp/x",
        "value.converter": "StringConverter",
    }
    assert api.get("/connectors/c/parked").error[0] == 400
    herder.fails = NotReadable("no provider answers")
    assert api.get("/connectors/c/parked").error == (409, "no provider answers")
