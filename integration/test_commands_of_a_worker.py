"""What a worker's commands say of its connectors on real parts, from the command line and from its page."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, cast

import pytest
import requests
from playwright.sync_api import expect

from integration.conftest import TopicFactory
from integration.harness import Sink
from integration.letters import letters
from integration.numbered import numbered
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.cli.main import main
from tests.addons.page import browser
from tests.messages import assert_says

LONG = "x" * 60


@pytest.fixture
def sink(broker: Broker, target: TargetProcess, tmp_path: Path) -> Sink:
    """Properties, rows and offsets of a connector; the Spark is the worker's own."""
    return Sink(cast(Any, None), broker, target, tmp_path)


@pytest.fixture(scope="module")
def shared(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    """The worker of all tests here."""
    folder = tmp_path_factory.mktemp("worker")
    made = WorkerProcess(folder, broker, {"offset.storage.file.filename": str(folder / "offsets")})
    made.start()
    yield made
    try:
        made.stop()
        assert "Traceback" not in made.command.said
    finally:
        made.close()


@pytest.fixture
def worker(shared: WorkerProcess) -> Iterator[WorkerProcess]:
    """The worker without connectors."""
    yield shared
    for name in shared.do("GET", "/connectors"):
        shared.do("DELETE", f"/connectors/{name}")


def typed(*words: str, **environment: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command, as it is typed."""
    found = subprocess.run(
        [sys.executable, "-m", "parquet_sink", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    return found.returncode, found.stdout, found.stderr


def asked(worker: WorkerProcess, *words: str, **environment: str) -> tuple[int, str, str]:
    """Likewise, of one that asks the worker."""
    return typed(*words, "--url", worker.url, **environment)


def test_all_that_a_worker_knows_of_a_connector_is_asked_of_it(
    worker: WorkerProcess,
    sink: Sink,
    broker: Broker,
    topic: TopicFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was sent, where a record is, what is parked, and the archive; all of it is sent again, while it runs."""
    name, archive = topic(), tmp_path / "archive"
    archive.mkdir()
    keys = {"commit_records": 10, "archive_url": f"directory:{archive}", "data_primary_key": "n"}
    config = {**sink.properties(name, **keys), "errors.tolerance": "all"}
    broker.produce(name, [*numbered(20), (None, b"no JSON"), *numbered(9, 20)])
    worker.do("POST", "/connectors", {"name": sink.name, "config": config})
    worker.until(lambda: sink.offsets(name) == [30])
    of_it = ("--connector", sink.name)

    def asked(*words: str) -> tuple[int, str, str]:
        """In this process: what the commands load takes longer than what they do."""
        status = main([*words, "--url", worker.url])
        return status, *capsys.readouterr()

    status, out, err = asked("history", *of_it)
    assert (status, err) == (0, "")
    assert f"connector {sink.name}: " in out
    assert_says(out, f"{name} 0", "offsets 0 to 9", "10 rows")
    status, out, _ = asked("history", "--where", f"{name}:0:25", *of_it)
    assert (status, "accepted" in out) == (0, True)
    status, out, _ = asked("parked", "show", "--content", *of_it)
    assert (status, "no JSON" in out) == (0, True)
    status, out, _ = asked("archive", "verify", *of_it)
    assert (status, "complete: " in out) == (0, True)

    files = len(sink.target.client.files(sink.table))
    status, out, _ = asked("replay", "--dry-run", *of_it)
    assert (status, "nothing was sent" in out) == (0, True)
    status, out, err = asked("replay", "--json", "--times", "2", "--rate", "100%", *of_it)
    found = json.loads(out)
    assert (found["same"], found["different"], found["new"]) == (2 * files, 0, 0), err
    assert {one["repeated"] for one in sink.target.client.files(sink.table)} == {2}
    assert "secret" not in out.lower()

    status, out, _ = asked("parked", "replay", "--dry-run", *of_it)
    assert (status, "would stay parked" in out) == (1, True)
    assert asked("parked", "drop", "--all", *of_it)[0] == 1
    assert asked("parked", "drop", "--all", "--yes", *of_it)[0] == 0
    assert "nothing is parked" in asked("parked", "list", *of_it)[1]
    jobs = worker.do("GET", f"/connectors/{sink.name}/jobs")
    assert {one["state"] for one in jobs} == {"ENDED"}


def test_a_configuration_is_edited(worker: WorkerProcess, sink: Sink, topic: TopicFactory) -> None:
    """In an editor that is a program: what is valid is put, a hidden password stays; what is not is kept in a file."""
    config, records = sink.properties(topic()), "connect.ems.commit.records"
    worker.do("POST", "/connectors", {"name": sink.name, "config": config, "initial_state": "STOPPED"})
    edit = ("connectors", "edit", sink.name, "--yes")
    status, out, err = asked(worker, *edit, VISUAL=f"sed -i s/^{records}=.*/{records}=7/")
    assert status == 0, (out, err)
    assert {f"- {records}=100000", f"+ {records}=7"} <= set(out.splitlines())
    stored = worker.do("GET", f"/connectors/{sink.name}/config")
    assert (stored[records], stored["connect.ems.authorization.key"]) == ("7", "[hidden]")
    status, out, err = asked(worker, *edit, VISUAL=f"sed -i s/^{records}=.*/{records}=many/")
    assert (status, "is not a whole number" in out, "nothing was put" in err) == (1, True, True), (out, err)
    (kept,) = re.findall(r"kept in (\S+)", err)
    assert f"{records}=many" in Path(kept).read_text()
    assert worker.do("GET", f"/connectors/{sink.name}/config") == stored


def test_files_are_checked_and_keys_explained(sink: Sink, broker: Broker, topic: TopicFactory, tmp_path: Path) -> None:
    """`check --json --connect` is one object, right or wrong; `explain` takes the end of a name, and knows when not."""
    file = tmp_path / "c.properties"
    keys = {**sink.properties(topic()), "value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    file.write_text("".join(f"{key}={text}\n" for key, text in keys.items()))
    check = ("check", "--json", "--connect", "--bootstrap-servers", broker.bootstrap_servers, str(file))
    status, out, _ = typed(*check)
    found = json.loads(out)
    assert (status, found["valid"], found["exit_status"], found["connectors"][0]["name"]) == (0, True, 0, sink.name)
    tried = {one["health"] for one in found["connectors"][0]["tried"]}
    assert ("ok" in tried, "failed" in tried) == (True, False)
    file.write_text(file.read_text() + "connect.ems.commit.records=many\n")
    status, out, _ = typed(*check)
    found = json.loads(out)
    assert (status != 0, found["valid"], found["exit_status"]) == (True, False, status)
    assert "connect.ems.commit.records" in [one["key"] for one in found["connectors"][0]["problems"]]
    status, out, err = typed("explain", "commit.records")
    assert (status, err, out.startswith("connect.ems.commit.records")) == (0, "", True), out
    status, out, err = typed("explain", "comit.records")
    assert (status, "connect.ems.commit.records" in out + err) == (2, True)


class Visitor:
    """Reads the page and sends its forms, as a browser without JavaScript."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker, self._session = worker, requests.Session()
        self._session.headers["Accept"] = "text/html"

    def look(self, path: str) -> str:
        return self._shown(self._session.get(self._worker.url + path, timeout=30))[1]

    def send(self, path: str, to: str, status: int = 200, **form: str) -> tuple[str, str]:
        """A form of the screen at a path; where that leads, and what is shown there."""
        token = re.search(r'name="token" value="([^"]+)"', self.look(path))
        assert token is not None
        return self._shown(self._session.post(self._worker.url + to, {"token": token[1], **form}, timeout=60), status)

    def _shown(self, got: requests.Response, status: int = 200) -> tuple[str, str]:
        assert got.status_code == status, got.text
        return got.url.removeprefix(self._worker.url), unescape(got.text)

    def ended(self, job: str) -> str:
        """The screen of a job, once it runs no more."""
        self._worker.until(lambda: "<h2>It runs" not in self.look(job))
        return self.look(job)


@pytest.mark.in_turn
def test_parked_records_are_replayed_from_the_page(
    worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory
) -> None:
    """By forms alone: a dry run says that they would stay, and once the configuration is mended they are sent."""
    name, one, visitor = topic(), f"/ui/connectors/{sink.name}", Visitor(worker)
    broker.produce(name, [(b"key", json.dumps({"n": n, "t": LONG if n % 3 == 1 else "t"}).encode()) for n in range(10)])
    chunks = {"flattener_jsonblob_chunks": 1, "error_policy": "CONTINUE"}
    config = sink.properties(name, **chunks, data_fallback_varchar_length=40)
    worker.do("PUT", f"/connectors/{sink.name}/config", config)
    worker.until(lambda: sink.offsets(name) == [10])
    assert "3 parked records" in visitor.look(f"{one}/diverted")
    job, _ = visitor.send(f"{one}/diverted", f"{one}/diverted/replay", dry="yes")
    said = visitor.ended(job)
    assert_says(said, "status 1", "nothing is sent")
    assert "3 would stay parked" in said, said
    worker.do("PUT", f"/connectors/{sink.name}/config", config | {"connect.ems.data.fallback.varchar.length": "400"})
    job, said = visitor.send(f"{one}/diverted", f"{one}/diverted/replay", dry="no")
    assert "It has begun" in said
    said = visitor.ended(job)
    assert_says(said, "<h2>It is done</h2>", "3 records done with", "0 stay parked")
    assert "No record is parked" in visitor.look(f"{one}/diverted")
    assert [row["kafkaOffset"] for row in sink.rows()] == list(range(10))
    assert job in visitor.look(f"{one}/replay")


@pytest.mark.skipif(browser.chromium() is None, reason="no Chromium: apt-get install chromium, or name it in CHROMIUM")
def test_a_range_is_tried_from_the_page(worker: WorkerProcess, sink: Sink, broker: Broker, topic: TopicFactory) -> None:
    """In a browser: the report of the dry run appears as it is written, and nothing was sent."""
    name = topic()
    broker.produce(name, numbered(20))
    worker.do("PUT", f"/connectors/{sink.name}/config", sink.properties(name, commit_records=10))
    worker.until(lambda: sink.offsets(name) == [20])
    with browser.launched() as chromium, browser.visiting(chromium, worker.url) as (_, page, wrong):
        page.goto(f"/ui/connectors/{sink.name}")
        page.get_by_role("link", name="Replay", exact=True).click()
        page.locator("[name=topic]").select_option(name)
        for field, text in (("partition", "0"), ("from", "10"), ("to", "19")):
            page.locator(f"[name={field}]").fill(text)
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("#job h2")).to_have_text("It is done, nothing is sent", timeout=60_000)
        expect(page.locator("#job pre")).to_contain_text("nothing was sent")
        assert wrong == []
    assert [one["repeated"] for one in sink.target.client.files(sink.table)] == [0, 0]


@pytest.mark.in_turn
def test_a_source_is_moved_from_the_page(
    worker: WorkerProcess, broker: Broker, topic: TopicFactory, tmp_path: Path
) -> None:
    """Once it is stopped: its position is shown as it is stored, and set; or removed, and all is read again."""
    name, one, file, visitor = topic(), "/ui/connectors/lines", tmp_path / "in.txt", Visitor(worker)
    file.write_text("first\nsecond\n")
    keys = {"connector.class": "FileStreamSource", "file": str(file), "topic": name, "tasks.max": "1"}
    config = {**keys, "value.converter": "StringConverter", "connect.ems.tmp.dir": str(tmp_path / "tmp")}
    worker.do("PUT", "/connectors/lines/config", config)
    position, of = json.dumps({"position": 13}), json.dumps({"filename": str(file)})
    worker.until(lambda: f"{position}</td>" in visitor.look(f"{one}/offsets"))
    assert 'name="to.' not in visitor.look(f"{one}/offsets")

    def send(to: str, *, status: int = 200, **form: str) -> tuple[str, str]:
        return visitor.send(
            f"{one}/offsets", f"{one}/offsets", status, **{f"to.{of}": to, f"was.{of}": position}, **form
        )

    def moved(to: str, means: str) -> None:
        worker.do("PUT", "/connectors/lines/stop")
        worker.until(lambda: 'name="to.' in visitor.look(f"{one}/offsets"))
        assert means in send(to)[1]
        assert "1 offset moved" in send(to, sure="yes")[1]
        worker.do("PUT", "/connectors/lines/resume")

    moved('{"position": 6}', "read from there")
    worker.until(lambda: lines(broker, name) == ["first", "second", "second"])
    worker.until(lambda: f"{position}</td>" in visitor.look(f"{one}/offsets"))
    moved("none", "read from its start")
    worker.until(lambda: lines(broker, name) == ["first", "second", "second", "first", "second"])
    worker.do("PUT", "/connectors/lines/stop")
    worker.until(lambda: 'name="to.' in visitor.look(f"{one}/offsets"))
    assert "is not an offset; write JSON" in send("6", status=400)[1]


def lines(broker: Broker, topic: str) -> list[str]:
    """Values of a topic."""
    return [str(one.value() or b"", "utf-8") for one in letters(broker, topic)]
