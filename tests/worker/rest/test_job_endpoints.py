"""Jobs over REST: begun, looked at, stopped, and what is refused before anything begins."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.worker.rest.fake_herder import FakeHerder, Kept
from tests.worker.rest.serving import GOOD, Client


@pytest.fixture
def connector(herder: FakeHerder, tmp_path: Path) -> str:
    """The path of one that is there."""
    herder.files = tmp_path
    herder.kept["c"] = Kept({**GOOD, "name": "c"})
    return "/connectors/c"


def _ended(api: Client, path: str) -> Any:
    end_s = time.monotonic() + 60
    while (found := api.get(path).json)["state"] != "ENDED":
        assert time.monotonic() < end_s
        time.sleep(0.05)
    return found


def test_a_job_is_begun_looked_at_and_stopped(api: Client, connector: str) -> None:
    """With its command, its lines by number, and its status; a stop of one that has ended changes nothing."""
    begun = api.ask("POST", f"{connector}/parked/replay", {"dry_run": True, "partition": 0, "topic": "--yes"})
    assert begun.status == 202
    command = ["parked", "replay", "--dry-run", "--partition=0", "--topic=--yes"]
    assert (begun.json["command"], begun.json["state"]) == (command, "RUNNING")
    path = begun.headers["Location"].removeprefix(f"http://127.0.0.1:{api.port}")
    found = _ended(api, path)
    assert found["exit_status"] == 0
    assert found["lines"][-1]["text"].startswith("connector c: nothing to replay")
    assert api.get(f"{path}?after={found['next']}").json["lines"] == []
    assert api.ask("DELETE", path).status == 202
    (listed,) = [one for one in api.get(f"{connector}/jobs").json if one["id"] == found["id"]]
    assert (listed["exit_status"], listed["lines"]) == (0, [])


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("replay", {"target": "https://x"}, "target"),
        ("replay", {"times": "two"}, "times"),
        ("replay", {"times": 1.5}, "times"),
        ("replay", {"dry_run": "yes"}, "dry_run"),
        ("replay", {"file": "a"}, "file"),
        ("parked/drop", {"stage": "NOWHERE"}, "stage"),
        ("parked/replay", [], "options"),
        ("archive/verify", {}, "connect.ems.archive.url"),
    ],
)
def test_what_is_no_option_is_refused(api: Client, connector: str, path: str, body: object, said: str) -> None:
    """By its name, and nothing begins."""
    before = api.get(f"{connector}/jobs").json
    status, message = api.ask("POST", f"{connector}/{path}", body).error
    assert status in (400, 500)
    assert said in message
    assert api.get(f"{connector}/jobs").json == before


def test_what_is_not_there_has_no_jobs(api: Client, connector: str) -> None:
    """A connector, or one of its jobs."""
    assert api.get("/connectors/none/jobs").error[0] == 404
    assert api.ask("POST", "/connectors/none/replay").error[0] == 404
    status, message = api.get(f"{connector}/jobs/none").error
    assert (status, "none" in message) == (404, True)
