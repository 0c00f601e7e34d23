"""What can be known before the start is told before it: once, in one line, under the key that names it."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from parquet_sink.cli.beside import hosted
from parquet_sink.cli.main import main
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.check import Checked, check_files, format_report
from parquet_sink.connectors.loading import load
from parquet_sink.validate.preflight import inspect
from parquet_sink.worker_config.worker import Worker
from parquet_sink.worker_config.worker_file import LoadedWorker
from tests.messages import assert_says

CONNECTOR = {
    "topics": "orders",
    "connect.ems.endpoint": "https://localhost:9/api",
    "connect.ems.authorization.key": "AppKey demo",
    "connect.ems.target.table": "t",
    "connect.ems.commit.size.bytes": "1000000",
    "connect.ems.commit.records": "1000",
    "connect.ems.commit.interval.ms": "1000",
}
WORKER = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
AVRO = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.schema.registry.url": "https://localhost:8081",
    "value.converter.schema.registry.ssl.truststore.type": "PEM",
    "value.converter.schema.registry.ssl.keystore.type": "PEM",
}


def write(path: Path, keys: Mapping[str, str]) -> str:
    """A properties file."""
    path.write_text("".join(f"{name}={value}\n" for name, value in keys.items()))
    return str(path)


@pytest.fixture
def passwd(tmp_path: Path) -> str:
    """A file that is there and holds no certificate."""
    path = tmp_path / "passwd"
    path.write_text("root:x:0:0\n")
    return str(path)


def inspected(
    folder: Path,
    connector: Mapping[str, str] | None = None,
    worker: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    names: tuple[str, ...] = ("orders",),
) -> Checked:
    """What is found about these files."""
    paths = [
        write(
            folder / f"{name}.properties",
            {**CONNECTOR, "name": name, "connect.ems.tmp.dir": str(folder / "tmp"), **(connector or {})},
        )
        for name in names
    ]
    given = write(folder / "worker.properties", {**WORKER, **(worker or {})})
    return inspect(check_files(paths, given, bootstrap_servers="localhost:9092"), environment or {})


def test_right_files_have_no_problem(tmp_path: Path) -> None:
    """And nothing is made: the folder for temporary files is not there yet."""
    checked = inspected(tmp_path)
    assert checked.problems == ()
    assert not (tmp_path / "tmp").exists()
    assert len(checked.require()) == 1


@pytest.mark.parametrize("endpoint", ["https://localhost:9/api", "http://localhost:9/api"])
def test_authorities_of_the_target_are_read(tmp_path: Path, passwd: str, endpoint: str) -> None:
    """A file that holds no certificate is told, whatever the address is."""
    checked = inspected(tmp_path, {"connect.ems.tls.ca.file": passwd, "connect.ems.endpoint": endpoint})
    [problem] = checked.problems
    assert_says(problem, "Invalid [connect.ems.tls.ca.file]", passwd, "certificates in PEM form", "Name a file")


@pytest.mark.parametrize("endpoint", ["https://localhost:9/api", "http://localhost:9/api"])
def test_a_bundle_that_is_not_there_is_told_once(tmp_path: Path, endpoint: str) -> None:
    """A variable of the environment is nobody's file: one line for all connectors."""
    environment = {"REQUESTS_CA_BUNDLE": str(tmp_path / "none.pem")}
    changed = {"connect.ems.endpoint": endpoint}
    checked = inspected(tmp_path, changed, environment=environment, names=("a", "b", "c"))
    [problem] = checked.problems
    assert_says(problem, "Invalid [REQUESTS_CA_BUNDLE]", str(tmp_path / "none.pem"), "no such file")


def test_stores_of_a_registry_are_read(tmp_path: Path, passwd: str) -> None:
    """Both are told at once, under the keys that name them."""
    stores = {f"value.converter.schema.registry.ssl.{one}.location": passwd for one in ("truststore", "keystore")}
    problems = inspected(tmp_path, AVRO | stores).problems
    assert [problem.partition("]")[0] for problem in problems] == [f"Invalid [{key}" for key in stores]
    assert inspected(tmp_path, worker=AVRO | stores, names=("a", "b")).worker.problems == tuple(
        problem.removesuffix(f" (in {tmp_path / 'orders.properties'})") for problem in problems
    )


def test_what_a_provider_gave_is_not_told(tmp_path: Path, passwd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine finds wrong is told with the placeholder, too."""
    monkeypatch.setenv("BUNDLE", passwd)
    found = inspected(tmp_path, {"connect.ems.tls.ca.file": "${env:BUNDLE}"}).connectors[0].problems
    assert len(found) == 1
    assert_says(found[0], "[connect.ems.tls.ca.file]", "${env:BUNDLE}")
    assert passwd not in found[0]


@pytest.mark.parametrize("kind", ["link", "file", "parent", "dangling"])
def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path, kind: str) -> None:
    """A connector's folder that is a link or a file, and a path that cannot be made."""
    base = tmp_path / "tmp"
    if kind == "parent":
        base.write_text("")
        changed = {"connect.ems.tmp.dir": str(base / "below")}
    else:
        base.mkdir()
        changed = {}
        {
            "link": lambda: (base / "orders").symlink_to(tmp_path),
            "dangling": lambda: (base / "orders").symlink_to(tmp_path / "none"),
            "file": lambda: (base / "orders").write_text(""),
        }[kind]()
    [problem] = inspected(tmp_path, changed).problems
    assert problem.startswith(f"Invalid [connect.ems.tmp.dir]. {base}")


def test_another_users_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tmp.dir` may be open to everybody."""
    (tmp_path / "tmp" / "orders").mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    [problem] = inspected(tmp_path).problems
    assert_says(problem, "[connect.ems.tmp.dir]", str(tmp_path / "tmp" / "orders"), "another user", "name a folder")


def test_a_file_is_never_both_right_and_wrong(tmp_path: Path) -> None:
    """What the Kafka client would refuse stands below its file, which is not called OK."""
    report = format_report(inspected(tmp_path, {"consumer.override.no.such": "1"}))
    assert f"{tmp_path / 'orders.properties'}: 1 problem\n  Invalid [consumer.override.no.such]. " in report
    assert "OK (connector" not in report


def test_a_setting_of_the_worker_file_is_told_there_once(tmp_path: Path) -> None:
    """However many connectors inherit it; one that a connector sets itself is that connector's."""
    checked = inspected(tmp_path, worker={"consumer.no.such": "1"}, names=("a", "b"))
    assert [problem.partition("]")[0] for problem in checked.worker.problems] == ["Invalid [consumer.no.such"]
    assert [one.problems for one in checked.connectors] == [(), ()]


@pytest.mark.parametrize("prefix", ["consumer.", "consumer.override."])
def test_a_setting_that_is_missing_belongs_where_signing_in_is_set_up(tmp_path: Path, prefix: str) -> None:
    """The mechanism of a worker whose connectors all sign in is not a key of theirs."""
    keys = {f"{prefix}security.protocol": "SASL_SSL"}
    checked = inspected(tmp_path, *((None, keys) if prefix == "consumer." else (keys, None)))
    [problem] = checked.problems
    assert_says(problem, f"Invalid [{prefix}sasl.mechanism]", "missing", "Kafka's default, GSSAPI", "is not in")


@pytest.mark.parametrize(
    ("changed", "options", "environment", "about"),
    [
        ({"connect.ems.tls.ca.file": "/etc/passwd"}, [], {}, "connect.ems.tls.ca.file"),
        ({}, [], {"REQUESTS_CA_BUNDLE": "/none.pem"}, "REQUESTS_CA_BUNDLE"),
        ({"consumer.override.no.such": "1"}, [], {}, "consumer.override.no.such"),
        ({}, ["--master", "locl[4]"], {}, "--master"),
        ({}, ["--conf", "spark.driver.memory=lots"], {}, "--conf spark.driver.memory"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_both_commands_tell_it_in_one_line_with_status_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    command: str,
    changed: dict[str, str],
    options: list[str],
    environment: dict[str, str],
    about: str,
) -> None:
    """`check` does not say OK of what `run` would refuse, and `run` refuses it before Java and Spark are looked for."""
    if options and command == "check":
        return  # it has no such option
    for name, value in {**environment, "JAVA_HOME": "/nowhere"}.items():
        monkeypatch.setenv(name, value)
    file = write(tmp_path / "c.properties", {**CONNECTOR, **WORKER, "name": "orders", **changed})
    assert main([command, "--bootstrap-servers", "localhost:9", *options, file]) == 2
    told = capsys.readouterr()
    lines = (told.err if command == "run" else told.out).splitlines()
    assert [line.partition("]")[0].strip() for line in lines if "Invalid" in line] == [f"Invalid [{about}"]
    assert all("[connect.ems.tmp.dir]" in message for message in caplog.messages)
    assert "Traceback" not in told.out + told.err


@pytest.mark.parametrize(
    ("folder", "told"),
    [("/tmp", True), ("/tmp/sink/a", True), ("/var/../tmp/x", True), ("/var/tmp/sink", False), ("/tmpfs", False)],
)
def test_a_folder_that_the_system_empties_is_warned_about(tmp_path: Path, folder: str, told: bool) -> None:
    """Whatever names it, and of any class: lock, state and history would be gone."""
    for class_ in ("EmsSink", "FileStreamSink"):
        keys = {"connect.ems.tmp.dir": folder, "connector.class": class_}
        found = [text for text in inspected(tmp_path, keys).warnings if "[connect.ems.tmp.dir]" in text]
        assert len(found) == told
        for text in found:
            assert_says(text, f"{folder.replace('/var/..', '')} holds", "the connector's lock", "Name a folder")


def test_check_says_which_providers_a_worker_would_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a worker file that lists none, where files name those that `run` alone has without a list."""
    monkeypatch.setenv("KEY", "AppKey k")
    keys = {**CONNECTOR, "name": "orders", "connect.ems.authorization.key": "${env:KEY}"}
    file = write(tmp_path / "c.properties", keys)
    said = "Warning [config.providers]"
    for lines, words in ((WORKER, True), ({**WORKER, "config.providers": "env"}, False)):
        worker = write(tmp_path / "w.properties", {**lines, "bootstrap.servers": "localhost:9"})
        assert main(["check", "--worker", worker, file]) == 0
        out = capsys.readouterr().out
        assert (said in out) is words
        if words:
            (line,) = [one for one in out.splitlines() if said in one]
            assert_says(line, "not set", "env, file, directory", "write config.providers=env")
    assert (
        main(["check", "--bootstrap-servers", "localhost:9", write(tmp_path / "d.properties", {**keys, **WORKER})]) == 0
    )
    assert said not in capsys.readouterr().out


PASSING = {"errors.tolerance": "all"}


def test_a_folder_for_parked_records_that_cannot_be_used(tmp_path: Path, passwd: str) -> None:
    """It is a problem under its own key, where something may be parked; elsewhere nobody asks for it."""
    found = inspected(tmp_path, {**PASSING, "connect.ems.parked.dir": passwd})
    (problem,) = found.problems
    assert_says(problem, "Invalid [connect.ems.parked.dir]", passwd, "is not a folder", "name a folder")
    assert inspected(tmp_path, {"connect.ems.parked.dir": passwd}).problems == ()


def test_parking_in_the_systems_temporary_folder_is_warned_about(tmp_path: Path) -> None:
    """The system may empty it; a folder that is named, for files or for parked records, is believed."""
    keys = {**PASSING, "connect.ems.tmp.dir": tempfile.gettempdir()}
    said = "diverted records are kept"
    assert any(said in text for text in inspected(tmp_path, keys).warnings)
    assert not any(said in text for text in inspected(tmp_path, {**keys, "connect.ems.parked.dir": "/data"}).warnings)
    assert not any(said in text for text in inspected(tmp_path, PASSING).warnings)


def test_settings_of_the_dead_letter_clients_are_told_before_the_start(tmp_path: Path) -> None:
    """Under the key that has them, a connector's or the worker's; they do not matter without a dead-letter topic."""
    own = {"producer.override.linger.ms": "soon", "admin.override.security.protocol": "TLS"}
    dead = {"errors.deadletterqueue.topic.name": "dlq", "errors.tolerance": "all"}
    found = inspected(tmp_path, {**own, **dead}, {**WORKER, "producer.compression.type": "best"})
    problems = [problem.split("]")[0] for one in found.connectors for problem in one.problems]
    assert problems == ["Invalid [producer.override.linger.ms", "Invalid [admin.override.security.protocol"]
    assert [problem.split("]")[0] for problem in found.worker.problems] == ["Invalid [producer.compression.type"]
    assert inspected(tmp_path, own).connectors[0].problems == ()


@pytest.mark.parametrize(
    ("store", "own", "key"),
    [
        ("/tmp/wk", None, "config.storage.folder]. /tmp/wk/connectors holds"),
        ("/tmp/wk", "/tmp/own", "connect.ems.tmp.dir]. /tmp/own holds"),
        (None, None, "connect.ems.tmp.dir]. /tmp holds"),
        ("/var/lib/wk", None, ""),
    ],
)
def test_a_folder_that_may_be_emptied_is_told_by_the_key_that_names_it(
    store: str | None, own: str | None, key: str
) -> None:
    """In a worker that is the worker file's, unless the connector names its own."""
    worker = Worker(store_folder=store, machine=Machine(tmp_dir="/tmp"))
    if store is not None:
        worker = hosted(worker, store)
    named = {} if own is None else {"connect.ems.tmp.dir": own}
    loaded = load({**CONNECTOR, **WORKER, "name": "orders", **named}, worker, source="orders.properties")
    [found] = inspect(Checked(LoadedWorker(worker), (loaded,), ())).connectors
    assert found.problems == ()
    warnings = [text for text in found.warnings if "below /tmp" in text]
    assert [text.partition(" the connector's")[0] for text in warnings] == ([f"Warning [{key}"] if key else [])
    assert all(("in the worker file" in text) == (store is not None and own is None) for text in warnings)


@pytest.mark.parametrize("archived", [False, True])
def test_a_topic_whose_files_no_folder_takes_is_told(tmp_path: Path, archived: bool) -> None:
    """Kafka allows 249 characters, and a file's name has 255 bytes; a push API and an object's name take more."""
    (tmp_path / "out").mkdir()
    folder = f"directory:{tmp_path / 'out'}"
    keys = {"connect.ems.archive.url": folder} if archived else {"connect.ems.endpoint": folder}
    for length, told in ((249, True), (188, True), (187, False)):
        (problem,) = [*inspected(tmp_path, {**keys, "topics": "t" * length}).connectors[0].problems, ""][:1]
        assert bool(problem) == told
        if told:
            assert_says(problem, f"Invalid [{next(iter(keys))}]", "t" * length, f"{length + 68} bytes", "255")
    assert inspected(tmp_path, {"topics": "t" * 249}).connectors[0].problems == ()
