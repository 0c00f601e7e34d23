"""Files of one process validated together, and the report an operator reads."""

import sys
from pathlib import Path

import pytest

from parquet_sink.config.files import read_configuration, this_machine
from parquet_sink.config.machine import Machine
from parquet_sink.connectors.check import check_files, format_report
from parquet_sink.errors import InvalidConfiguration
from tests.messages import assert_says, saying

GOOD = """\
name=orders
topics=orders
value.converter=json
value.converter.schemas.enable=false
connect.ems.endpoint=https://h/x
connect.ems.authorization.key=AppKey ${file:SECRETS:key}
connect.ems.target.table=ORDERS
connect.ems.commit.size.bytes=100000
connect.ems.commit.records=10
connect.ems.commit.interval.ms=1000
"""

OK = ("OK", "connector orders", "orders -> table ORDERS")
WAY = [
    ("  what happens",),
    ("    1. decoded", "value: JSON without a schema", "key: not read", "headers: not read"),
    ("    2. ", "tombstone", "no row", "offset is committed"),
    ("    3. flattened", "lists as JSON text"),
    ("    4. ", "added", "kafkaPartition, kafkaOffset, kafkaTimestamp, kafkaPartitionOffset"),
    ("    5. ", "table ORDERS"),
    ("    6. ", "fails", "stops before it"),
]


def _write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text.replace("SECRETS", str(folder / "secrets")), encoding="utf-8")
    return str(path)


def _assert_lines(text: str, *lines: tuple[str, ...]) -> None:
    """So many lines, and the parts of each."""
    for line, parts in zip(text.splitlines(), lines, strict=True):
        assert_says(line, *parts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of secrets."""
    (tmp_path / "secrets").write_text("key = canary-7f31\n", encoding="utf-8")
    return tmp_path


def test_good_files_give_settings_and_a_short_report(folder: Path) -> None:
    """Secrets come from their file; the report says what runs."""
    worker = _write(folder, "w.properties", "bootstrap.servers=k:1")
    path = _write(folder, "a.properties", GOOD)
    checked = check_files([path], worker)
    (settings,) = checked.require()
    assert settings.target.authorization.reveal() == "AppKey canary-7f31"
    _assert_lines(format_report(checked), (worker, "OK", "worker"), (path, *OK), *WAY)


def test_a_worker_file_in_the_place_of_a_connector_file_is_one_error_that_says_where_it_goes(folder: Path) -> None:
    """As `connect-standalone.sh` has it, first; a connector file with a stray bootstrap.servers is none."""
    worker = _write(folder, "w.properties", "bootstrap.servers=k:1\nvalue.converter=json\n")
    good = _write(folder, "a.properties", GOOD + "bootstrap.servers=k:1\n")
    (problem,) = check_files([worker, good]).problems
    assert_says(problem, f"[{worker}]", "a worker file", f"--worker {worker}", f"(in {worker})")


OWN = "consumer.override.bootstrap.servers=mine:9092\n"


@pytest.mark.parametrize(
    ("files", "guessed"),
    [
        ([("a", "")], ["no file"]),
        ([("a", OWN)], []),
        ([("a", OWN), ("b", OWN)], []),
        ([("a", OWN), ("b", "")], ["b"]),
        (
            [("a", "consumer.override.bootstrap.servers= \n"), ("b", "producer.override.bootstrap.servers=x:1\n")],
            ["no file"],
        ),
    ],
)
def test_brokers_are_guessed_of_connectors_alone_that_name_none(
    folder: Path, files: list[tuple[str, str]], guessed: list[str]
) -> None:
    """Nothing is said where each file names its own; else of which connectors, where it is not of all."""
    paths = [_write(folder, name, GOOD.replace("=orders", f"={name}", 1) + more) for name, more in files]
    checked = check_files(paths)
    assert not checked.problems
    told = [one for one in checked.warnings if "[bootstrap.servers]" in one]
    assert len(told) == len(guessed)
    for one, name in zip(told, guessed, strict=True):
        assert_says(one, "No broker", "localhost:9092", "--bootstrap-servers", "no worker file")
        assert [path for path in paths if path in one] == ([] if name == "no file" else [str(folder / name)])
    assert ("localhost:9092" in format_report(checked)) == bool(guessed)


@pytest.mark.parametrize(("key", "guessed"), [("producer", False), ("consumer", True)])
def test_a_source_names_the_brokers_of_its_producer(folder: Path, key: str, guessed: bool) -> None:
    """Those of a consumer mean nothing to it."""
    worker = _write(folder, "w", f"offset.storage.file.filename={folder}/places\nvalue.converter=string\n")
    source = "name=s\nconnector.class=FileStreamSource\nfile=/tmp/x\ntopic=t\n"
    checked = check_files([_write(folder, "s", f"{source}{key}.override.bootstrap.servers=mine:9092\n")], worker)
    assert not checked.problems
    assert any("No broker" in one for one in checked.warnings) == guessed


@pytest.mark.parametrize("more", ["listeners=http://localhost:0\n", "offset.storage.topic=places\n"])
def test_brokers_of_the_worker_itself_are_guessed_all_the_same(folder: Path, more: str) -> None:
    """Connectors that come by REST, and positions of sources, are there."""
    path, worker = _write(folder, "a", GOOD + OWN), _write(folder, "w", more)
    assert_says(" ".join(check_files([path], worker).warnings), "[bootstrap.servers]", "No broker", worker)


def test_problems_of_all_files_are_told_together(folder: Path) -> None:
    """Worker, connectors, unreadable files: one run names everything."""
    worker = _write(folder, "w.properties", "bootstrap.servers=k:1\ngroup.id=g\nplugin.path=/p\n")
    good = _write(folder, "a.properties", GOOD)
    bad = _write(folder, "b.properties", GOOD.replace("records=10", "records=x") + "topics=orders\n")
    twin = _write(folder, "c.properties", GOOD)
    checked = check_files([good, bad, twin, str(folder / "none")], worker)
    _assert_lines(
        format_report(checked),
        (worker, "3 problems"),
        *(
            (f"  Invalid [{what}.storage.topic]", "missing", "name the topic", f"connect-{topic}")
            for what, topic in (("config", "configs"), ("status", "status"), ("offset", "offsets"))
        ),
        ("  Warning [plugin.path]", '"/p"', "not a folder", "correct it"),
        (good, *OK),
        *WAY,
        (bad, "1 problem"),
        ("  Invalid [connect.ems.commit.records]", '"x"', "not a whole number", "digits only", "1 or more"),
        ("  Warning [topics]", "twice", "lines 2 and 11", "last one counts"),
        (twin, *OK),
        *WAY,
        (str(folder / "none"), "1 problem"),
        (f"  Invalid file [{folder / 'none'}]", "No such file", "correct the path"),
        ("Invalid [name]", '"orders"', good, twin, "its own"),
    )
    with pytest.raises(InvalidConfiguration) as caught:
        checked.require()
    assert len(caught.value.problems) == 6
    assert len(checked.warnings) == 2
    assert "canary-7f31" not in repr(checked) + str(caught.value)


def test_without_a_worker_file_connectors_are_judged_by_themselves(folder: Path) -> None:
    """The servers' default is said once, not for each connector."""
    checked = check_files([_write(folder, "a.properties", GOOD)])
    assert checked.problems == ()
    assert format_report(checked).count("Warning [bootstrap.servers]") == 1
    assert check_files([], bootstrap_servers="k:1").warnings == ()


def test_an_unreadable_worker_file_does_not_hide_the_connectors_problems(folder: Path) -> None:
    """Both are told."""
    checked = check_files([_write(folder, "a.properties", "topics=a/b")], str(folder / "none"), machine=Machine())
    assert checked.problems[0].startswith(f"Invalid file [{folder / 'none'}]")
    assert any(problem.startswith("Invalid [topics]") for problem in checked.problems)


def test_a_first_state_is_for_a_worker(folder: Path) -> None:
    """Without a worker nobody could resume the connector; what starts at once may say so."""
    text = '{"config": {"name": "a"}, "initial_state": "%s"}'
    with pytest.raises(InvalidConfiguration, match=saying("[initial_state]", "PAUSED", "for a worker")):
        read_configuration(_write(folder, "a.json", text % "paused"))
    assert read_configuration(_write(folder, "b.json", text % "running")).properties == {"name": "a"}


def test_a_file_of_unreasonable_size_is_refused(folder: Path) -> None:
    """A configuration is small; reading is bounded."""
    path = _write(folder, "big", "#" * (1024 * 1024 + 1))
    with pytest.raises(InvalidConfiguration, match=saying(path, "larger than 1048576 bytes", "correct the path")):
        read_configuration(path)
    with pytest.raises(InvalidConfiguration, match=saying(str(folder), "Is a directory", "correct the path")):
        read_configuration(str(folder))


def test_this_machine_reads_files_and_keeps_the_environment_out_of_its_repr(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real machine knows its folders and never prints its environment."""
    monkeypatch.setenv("CANARY_VARIABLE", "canary-9d")
    machine = this_machine()
    assert machine.environ["CANARY_VARIABLE"] == "canary-9d"
    assert machine.read_text(str(folder / "secrets")) == "key = canary-7f31\n"
    assert machine.is_file(str(folder / "secrets"))
    assert not machine.is_file(str(folder))
    assert "canary-9d" not in repr(machine)


def test_a_config_provider_may_be_on_the_plugin_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plug-ins are found before the worker file asks for one."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PYTHONPATH", "")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "provider_on_the_path.py").write_text(
        "class P:\n    keys = ()\n    def __init__(self, values): pass\n"
        "    def get(self, path, keys): return dict.fromkeys(keys, 'k:9')\n"
    )
    text = f"plugin.path={folder}/plugins\nconfig.providers=p\nconfig.providers.p.class=provider_on_the_path.P\n"
    worker = _write(folder, "w.properties", text + "bootstrap.servers=${p:x}\n")
    found = check_files([], worker, machine=this_machine())
    assert found.problems == ()
    assert found.worker.worker.bootstrap_servers == "k:9"


GROUP = """\
bootstrap.servers=k:1
group.id=workers
config.storage.topic=c
status.storage.topic=s
offset.storage.topic=o
"""


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("consumer.override.group.id=workers\n", "the workers' group.id"),
        ("consumer.override.group.id=größe\n", "printable ASCII"),
        ("consumer.override.group.id=a b&c\n", ""),
    ],
)
def test_groups_that_no_connector_of_a_group_of_workers_can_have(folder: Path, lines: str, told: str) -> None:
    """That of the workers, and one that the Kafka client takes in no transaction; a worker alone has the latter."""
    path = _write(folder, "a.properties", GOOD + lines)
    checked = check_files([path], _write(folder, "w.properties", GROUP))
    assert ("\n".join(checked.problems).count("Invalid [name]"), told in "\n".join(checked.problems)) == (
        int(bool(told)),
        True,
    )
    assert check_files([path], _write(folder, "alone.properties", "bootstrap.servers=k:1")).problems == ()
