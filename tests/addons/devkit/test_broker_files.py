"""A broker's folder is its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_sink.addons.devkit import broker_files
from parquet_sink.addons.devkit.broker_files import (
    TOOLS,
    TOOLS_LOGGING,
    archive_options,
    format_from_cache,
    held_alone,
    keep_format,
    stem,
    tool_command,
    usable_archive,
)
from parquet_sink.errors import InvalidConfiguration, SetupError
from parquet_sink.process.cache import whole_name
from tests.messages import saying

JARS = Path("/jars")


def test_a_folder_is_held_by_one_alone(tmp_path: Path) -> None:
    """A second one is told which folder is in use; afterwards it is free."""
    for _ in range(2):
        with (
            held_alone(tmp_path),
            pytest.raises(SetupError, match=saying(str(tmp_path), "in use", "another broker")),
            held_alone(tmp_path),
        ):
            pass


def test_who_inherits_it_holds_it_until_its_end(tmp_path: Path) -> None:
    """The process that started the broker may let go, or end."""
    with held_alone(tmp_path) as held:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[held])
    with pytest.raises(SetupError, match="in use"), held_alone(tmp_path):
        pass
    child.communicate(b"\n")
    with held_alone(tmp_path):
        pass


def test_what_happens_meanwhile_is_told_as_it_is(tmp_path: Path) -> None:
    """No other error is taken for a folder in use, and the folder is free then."""
    before = os.listdir("/proc/self/fd")
    with pytest.raises(BlockingIOError, match="no processes left"), held_alone(tmp_path):
        raise BlockingIOError("no processes left")
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_folder_is_formatted_from_the_cache(tmp_path: Path) -> None:
    """What Kafka wrote into one folder is in the next, too; each is a cluster of its own; a damaged one is none."""
    jars, first, second = (tmp_path / name for name in ("kafka-4.1.2", "first", "second"))
    for folder in (jars, first, second):
        folder.mkdir()
    assert not format_from_cache(second, jars, "1")
    (first / "bootstrap.checkpoint").write_bytes(b"features")
    for _ in range(2):
        keep_format(first, jars)
    ids = set()
    for _ in range(2):
        assert format_from_cache(second, jars, "7")
        assert (second / "bootstrap.checkpoint").read_bytes() == b"features"
        found = dict(line.split("=") for line in (second / "meta.properties").read_text().splitlines())
        assert (found["version"], found["node.id"]) == ("1", "7")
        ids |= {found["cluster.id"], found["directory.id"]}
    assert len(ids) == 4
    (kept,) = (path for path in tmp_path.iterdir() if path.is_file())
    kept.write_bytes(b"feature")
    (second / "meta.properties").unlink()
    assert not format_from_cache(second, jars, "7")
    assert not (second / "meta.properties").exists()


def test_a_cache_that_takes_nothing_is_no_trouble(tmp_path: Path) -> None:
    """The folder is formatted all the same, by Kafka."""
    keep_format(tmp_path, tmp_path / "nowhere" / "kafka-4.1.2")
    assert not format_from_cache(tmp_path, tmp_path / "nowhere" / "kafka-4.1.2", "1")


@pytest.mark.parametrize("name", ["consumer-groups", "kafka-consumer-groups", "kafka-consumer-groups.sh"])
def test_a_tool_goes_by_the_names_of_its_script(name: str) -> None:
    """As Kafka's documentation writes it, or without what all of them have in common."""
    command = tool_command([name, "--bootstrap-server", "broker:9092", "--list"], JARS, "/bin/java", 9092)
    assert command[0] == "/bin/java"
    assert command[-4:] == [TOOLS["consumer-groups"], "--bootstrap-server", "broker:9092", "--list"]
    assert TOOLS_LOGGING.is_file()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--list"], ["--bootstrap-server", "localhost:9093", "--list"]),
        (["--bootstrap-server=b:1", "--list"], ["--bootstrap-server=b:1", "--list"]),
        (["--version"], ["--version"]),
        ([], ["--bootstrap-server", "localhost:9093"]),
    ],
)
def test_without_a_broker_the_local_one_is_asked(arguments: list[str], expected: list[str]) -> None:
    """The broker that `parquet-sink kafka` starts, at the port that is given."""
    command = tool_command(["topics", *arguments], JARS, "java", 9093)
    assert command[command.index(TOOLS["topics"]) + 1 :] == expected


@pytest.mark.parametrize("words", [[], ["zookeeper-shell"], ["--list"]])
def test_a_tool_that_there_is_not_is_told_with_those_there_are(words: list[str]) -> None:
    """Nothing is fetched or run for it."""
    with pytest.raises(InvalidConfiguration, match="acls, consumer-groups, topics, console-producer, console-consumer"):
        tool_command(words, JARS, "java", 9092)


@pytest.fixture(autouse=True)
def javas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each Java tells its name as its version."""
    monkeypatch.setattr(broker_files, "version_text", lambda java: (java, 0))


def put(jars: Path, java: str) -> Path:
    """An archive that is whole."""
    made = jars.with_name("made.jsa")
    made.write_bytes(b"classes")
    return made.replace(jars.with_name(whole_name(stem(jars, java), made)))


def test_it_belongs_to_one_kafka_and_one_java(tmp_path: Path) -> None:
    """Another one has another file, beside the folder of jars."""
    made = {(kafka, java): put(tmp_path / kafka, java) for kafka in ("kafka-4.1.2", "kafka-4.2.0") for java in "ab"}
    assert len(set(made.values())) == 4
    assert {key: usable_archive(tmp_path / key[0], key[1]) for key in made} == made


def test_it_is_used_where_it_is_whole(tmp_path: Path) -> None:
    """Without one, with a part of one, or with one of another Java only, a start has no further options."""
    jars = tmp_path / "kafka-4.1.2"
    assert archive_options(jars, "17") == ()
    put(jars, "21")
    assert archive_options(jars, "17") == ()
    made = put(jars, "17")
    assert archive_options(jars, "17") == (f"-XX:SharedArchiveFile={made}", "-Xlog:disable")
    made.write_bytes(b"class")
    assert archive_options(jars, "17") == ()


def test_a_folder_that_cannot_be_read_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start needs no archive."""
    jars = tmp_path / "kafka-4.1.2"
    put(jars, "17").unlink()
    jars.with_name(f"{stem(jars, '17')}-7-00000000.jsa").symlink_to(tmp_path / "nowhere")
    assert archive_options(jars, "17") == ()
