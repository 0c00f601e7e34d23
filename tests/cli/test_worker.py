"""`parquet-sink worker`, up to where the loop takes over: the worker file, the store, the REST API."""

import os
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import requests

from parquet_sink.cli import hosting
from parquet_sink.cli.hosting import Plan, loader, trace_listeners
from parquet_sink.cli.main import main
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.loading import Loaded
from parquet_sink.errors import SetupError
from parquet_sink.process.signals import StopRequest
from parquet_sink.settings.connector import RestartSettings
from parquet_sink.worker.herder.store import FileConfigStore, StoredConnector
from parquet_sink.worker.herder.values import TargetState
from parquet_sink.worker.loop import worker
from parquet_sink.worker_config.worker import Worker
from tests.cli.connector_file import connector_lines
from tests.messages import assert_line_says, assert_says, saying

NAMED = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


class Ends:
    """A worker's loop that publishes once, looks at the API, and ends."""

    url = ""
    answers: list[object]
    configs: Sequence[Mapping[str, str]] = ()
    found: Sequence[Loaded] = ()

    def __init__(self, registry: object, known: object, **more: object) -> None:
        self._registry, self._more = registry, more

    def run(self) -> int:
        self._registry.begin({})  # type: ignore[attr-defined]
        self._more["publish"]()  # type: ignore[operator]
        if Ends.url:
            Ends.answers = [requests.get(Ends.url + path, timeout=20).json() for path in ("/connectors", "/progress")]
        assert self._more["stays"] is True
        Ends.found = [self._registry.load(config, config["name"]) for config in Ends.configs]  # type: ignore[attr-defined]
        return 0


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Makes a worker file that listens on a free port and keeps connectors below the test's folder."""
    monkeypatch.setattr(worker, "Worker", Ends)
    Ends.url, Ends.configs = "", ()

    def made(**keys: str) -> str:
        lines = {
            "bootstrap.servers": "there:9092",
            "listeners": "http://127.0.0.1:0",
            "config.storage.folder": str(tmp_path / "store"),
            **{name.replace("_", "."): text for name, text in keys.items()},
        }
        path = tmp_path / "worker.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in lines.items() if value))
        return str(path)

    return made


def test_stored_connectors_are_served(tmp_path: Path, write: Callable[..., str]) -> None:
    """From the store, over the API, at the port that was asked for; the store is free afterwards."""
    store = FileConfigStore(tmp_path / "store")
    store.put("orders", StoredConnector({**connector_lines(tmp_path), "name": "orders"}, TargetState.STOPPED))
    store.close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    Ends.url = f"http://127.0.0.1:{port}"
    assert main(["worker", write(listeners=Ends.url)]) == 0
    names, progress = Ends.answers
    assert names == ["orders"]
    assert isinstance(progress, list)
    assert (progress[0]["status"]["state"], progress[0]["status"]["worker_id"]) == ("STOPPED", f"127.0.0.1:{port}")
    FileConfigStore(tmp_path / "store").close()


def test_a_store_in_use_is_told(tmp_path: Path, write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the process that has it, and the key to set; status 2."""
    store = FileConfigStore(tmp_path / "store")
    assert main(["worker", write()]) == 2
    store.close()
    told = capsys.readouterr().err
    assert_line_says(told, f"process {os.getpid()}", str(tmp_path / "store"), "stop that one", "config.storage.folder")


def test_a_port_in_use_is_told(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is started; the store is free again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert main(["worker", write(listeners=taken)]) == 2
    assert_line_says(capsys.readouterr().err, "Invalid [listeners]", taken, "Address already in use", "free port")
    assert main(["worker", write()]) == 0


def test_a_wrong_worker_file_is_told(write: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that is wrong, with the file's name; status 2."""
    path = write(group_id="g", topic_tracking_enable="maybe")
    assert main(["worker", "--master", "nowhere", path]) == 2
    told = capsys.readouterr().err
    assert "Invalid [--master]" in told
    assert_line_says(told, "Invalid [config.storage.topic]", "missing", "name the topic", "connect-configs")
    assert_line_says(told, "Invalid [topic.tracking.enable]", '"maybe"', "neither true nor false", "one of them", path)


def test_without_a_home_the_folder_must_be_named(
    write: Callable[..., str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows where connectors would be found again."""
    for name in ("HOME", "STATE_DIRECTORY", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert main(["worker", write(config_storage_folder="")]) == 2
    assert_line_says(capsys.readouterr().err, "[config.storage.folder]", "missing", "no HOME", "name a folder")


def test_a_worker_has_the_config_providers_that_its_file_names(
    tmp_path: Path, write: Callable[..., str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no others, as in Kafka Connect: else whoever reaches the API would read files and environment of its user."""
    monkeypatch.setenv("TABLE", "T")
    (tmp_path / "out").mkdir()
    Ends.configs = [{**connector_lines(tmp_path), "connect.ems.target.table": "${env:TABLE}"}]
    assert main(["worker", write()]) == 0
    (problem,) = Ends.found[0].problems
    assert_says(problem, "[connect.ems.target.table]", "${env:TABLE}", "provider env", "write config.providers=env")
    assert main(["worker", write(config_providers="env")]) == 0
    assert Ends.found[0].problems == ()
    assert main(["worker", write(consumer_client_id="${file:/etc/passwd:x}")]) == 2
    assert_line_says(capsys.readouterr().err, "[consumer.client.id]", "provider file", "worker file", "not list")


@pytest.mark.parametrize("master", [None, "local[2]", "spark://there:7077"])
def test_files_are_below_the_workers_own_folder(tmp_path: Path, write: Callable[..., str], master: str | None) -> None:
    """Of connectors that name no folder; on a cluster, whose machines have no such folder, the system's it is."""
    (tmp_path / "out").mkdir()
    lines = connector_lines(tmp_path)
    mine = lines.pop("connect.ems.tmp.dir")
    Ends.configs = [lines, {**lines, "connect.ems.tmp.dir": mine}]
    assert main(["worker", *([] if master is None else ["--master", master]), write()]) == 0
    default = tempfile.gettempdir() if master == "spark://there:7077" else str(tmp_path / "store" / "connectors")
    assert [found.require().tmp_dir for found in Ends.found] == [default, mine]


def test_connectors_by_rest_are_judged_as_files_are(tmp_path: Path) -> None:
    """By their keys, and by what the machine and the libraries know."""
    (tmp_path / "out").mkdir()
    load = loader(Plan(Worker(bootstrap_servers="there:9092"), StopRequest()))
    good = connector_lines(tmp_path)
    assert load(good, "orders").problems == ()
    no_file = load({**good, "consumer.override.fetch.max.bytes": "many"}, "orders")
    assert no_file.settings is None
    assert "consumer.override.fetch.max.bytes" in no_file.problems[0]


def test_what_serves_the_rest_api_may_not_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says which package, and how to get it."""
    hosting.require_packages("The REST API")
    monkeypatch.setattr(hosting, "_SERVING", ("starlette", "no_such_package"))
    with pytest.raises(SetupError, match=saying("REST API", "no_such_package", "Install the extra 'worker'")):
        hosting.require_packages("The REST API")


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {**NAMED, "OTEL_SDK_DISABLED": "true"},
        {**NAMED, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_a_collector_there_are_no_traces(environment: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """Nor is anything loaded or said."""
    assert trace_listeners(environment) == []
    assert caplog.messages == []


def test_another_protocol_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The variables are for all programs of a machine, so it is no error."""
    assert trace_listeners({**NAMED, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) == []
    (line,) = caplog.messages
    assert_says(line, "OTEL_EXPORTER_OTLP_ENDPOINT", "http/protobuf alone", "not by grpc")


def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With the command that cures it; the connectors run."""
    monkeypatch.setitem(sys.modules, "parquet_sink.worker.metrics.traces", None)
    assert trace_listeners({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}) == []
    assert "pip install '.[traces]'" in caplog.text


def test_with_a_collector_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Isolated: whatever goes wrong with it ends nothing."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    (listener,) = trace_listeners(NAMED)
    listener.close([])


def test_an_unavailable_folder_is_tried_again(tmp_path: Path) -> None:
    """A folder may be mounted again, so the configuration is read again; beside a wrong key nothing is."""
    load = loader(Plan(Worker(bootstrap_servers="there:9092"), StopRequest()))
    lines = connector_lines(tmp_path)
    archived = {**lines, "connect.ems.archive.url": f"directory:{tmp_path}/archive"}
    wrong = {**lines, "consumer.override.fetch.max.bytes": "many"}
    for missing, folder in ((lines, "out"), (archived, "archive")):
        found = load(missing, "orders")
        assert (found.settings, found.again) == (None, RestartSettings())
        assert load(wrong, "orders").again is None
        (tmp_path / folder).mkdir()
        assert load(missing, "orders").problems == ()
    (tmp_path / "file").write_text("")
    unusable = load({**lines, "connect.ems.tmp.dir": str(tmp_path / "file")}, "orders")
    assert (unusable.settings, unusable.again) == (None, RestartSettings())


def test_workers_of_a_group_have_memory_folders_of_their_own(tmp_path: Path) -> None:
    """Two workers on one machine do not share a connector's lock, also if its files are kept in memory."""
    (tmp_path / "out").mkdir()
    worker = Worker(bootstrap_servers="there:9092", machine=Machine(memory_dir=str(tmp_path / "memory")))
    lines = {**connector_lines(tmp_path), "connect.ems.inmemfs.enable": "true"}
    alone = loader(Plan(worker, StopRequest()))(lines, "orders").require()
    assert alone.tmp_dir == str(tmp_path / "memory")
    workers = [hosting._with_own_folder(worker, worker_id) for worker_id in ("a:1", "b:1")]
    folders = [loader(Plan(each, StopRequest()))(lines, "orders").require().tmp_dir for each in workers]
    assert folders == [str(tmp_path / "memory" / name) for name in ("a%3A1", "b%3A1")]
