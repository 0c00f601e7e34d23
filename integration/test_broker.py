"""The local broker, its command and its jars, with real Java, real Ivy and real Kafka."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from integration.conftest import TopicFactory
from parquet_sink.addons.devkit import broker_files, jars, make_kafka_archive
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.broker_files import archive_options
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.errors import KafkaFailed, SetupError
from parquet_sink.kafka.resets import reset_command
from parquet_sink.kafka.settings import KafkaSettings
from tests.messages import assert_says, saying

COMMAND = """
import argparse, sys
from parquet_sink.addons.devkit import kafka_command as command
parser = argparse.ArgumentParser()
command.add_arguments(parser)
sys.exit(command.run(parser.parse_args()))
"""
STARTS_AND_WAITS = """
import time
from parquet_sink.addons.devkit.broker import Broker
broker = Broker()
broker.start()
print(broker.pid, broker.data_dir, flush=True)
time.sleep(600)
"""


def records(broker: Broker, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of all records of topic-partition 0, in order."""
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "log_level": 0})
    try:
        end = reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)[1]
        reader.assign([TopicPartition(topic, 0, 0)])
        return [(message.key(), message.value()) for message in reader.consume(end, timeout=20)]
    finally:
        reader.close()


def wait_until(condition: Callable[[], bool], timeout_s: float = 30) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


def runs(pid: int) -> bool:
    """Whether a process is alive (one that ended but was not collected is not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_records_arrive_with_null_keys_and_values(broker: Broker, topic: TopicFactory) -> None:
    """What `produce` sends is what a consumer reads, nulls and empty values included."""
    sent = [(b"k", b"v"), (None, b""), (b"gone", None), (None, None)]
    name = topic()
    broker.produce(name, sent)
    assert records(broker, name) == sent


def test_topic_has_its_partitions_and_leaves(broker: Broker, topic: TopicFactory) -> None:
    """A created topic is ready in all its topic-partitions, and a deleted one is gone, when the calls return."""
    name = topic(3, config={"retention.ms": "60000"})
    broker.produce(name, [(None, b"x")], partition=2)
    assert re.findall(rf"{name}:(\d):(\d)", broker.run_tool("org.apache.kafka.tools.GetOffsetShell")) == [
        ("0", "0"),
        ("1", "0"),
        ("2", "1"),
    ]
    broker.delete_topic(name)
    assert name not in broker.run_tool("org.apache.kafka.tools.TopicCommand", "--list")


def test_failures_name_the_topic(broker: Broker, topic: TopicFactory) -> None:
    """An existing topic cannot be created, an unknown one neither deleted nor written to; each error names it."""
    name = topic()
    with pytest.raises(KafkaFailed, match=saying(name, "not be created")):
        broker.create_topic(name)
    with pytest.raises(KafkaFailed, match=saying("Topic unknown", "not be deleted")):
        broker.delete_topic("unknown")
    with pytest.raises(KafkaFailed, match=saying("Topic unknown", "1 records", "not accepted")):
        broker.produce("unknown", [(None, b"x")])


def test_kafkas_own_tool_resets_offsets(broker: Broker, topic: TopicFactory) -> None:
    """`kafka-consumer-groups` sees a group's offset and sets it back."""
    name = topic()
    broker.produce(name, [(None, b"x")] * 9)
    group = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"connect-{name}"})
    try:
        group.commit(offsets=[TopicPartition(name, 0, 7)], asynchronous=False)
        described = broker.consumer_groups("--describe", "--group", f"connect-{name}")
        assert re.search(rf"{name}\s+0\s+7\s+9\s+2", described)
        where = ("--group", f"connect-{name}", "--topic", name)
        broker.consumer_groups("--reset-offsets", *where, "--to-earliest", "--execute")
        assert group.committed([TopicPartition(name, 0)], timeout=20)[0].offset == 0
    finally:
        group.close()


def test_the_command_of_a_message_resets_offsets(broker: Broker, topic: TopicFactory) -> None:
    """Typed as it stands there, into a shell."""
    name = topic(partitions=3)
    kafka = KafkaSettings(group=f"connect-{name}", client={"bootstrap.servers": broker.bootstrap_servers})
    for partition in range(3):
        broker.produce(name, [(None, b"x")] * 9, partition=partition)
    group = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": kafka.group})
    try:
        group.commit(offsets=[TopicPartition(name, partition, 7) for partition in range(3)], asynchronous=False)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        for command in (reset_command(kafka, f"{name}:0", to=8), reset_command(kafka, f"{name}:2")):
            subprocess.run(command.strip("`"), shell=True, check=True, timeout=120, env={**os.environ, "PATH": path})
        found = group.committed([TopicPartition(name, partition) for partition in range(3)], timeout=20)
        assert [one.offset for one in found] == [8, 7, 0]
    finally:
        group.close()


def test_failing_tool_is_told_in_its_own_words(broker: Broker) -> None:
    """A tool that ends with an error raises with what it said."""
    with pytest.raises(KafkaFailed, match=r"exit status 1(.|\n)*no-such-option"):
        broker.consumer_groups("--no-such-option")


@pytest.mark.in_turn
def test_broker_survives_kill_and_restart() -> None:
    """After SIGKILL, and after an orderly stop, it comes back at the same address with the same records."""
    with Broker() as own:
        address, folder, first = own.bootstrap_servers, own.data_dir, own.pid
        own.create_topic("kept")
        own.produce("kept", [(b"1", b"before kill")])
        own.kill()
        assert (own.running, runs(first)) == (False, False)
        own.start()
        own.produce("kept", [(b"2", b"before restart")])
        second = own.pid
        own.restart()
        assert own.bootstrap_servers == address
        assert len({first, second, own.pid}) == 3
        assert records(own, "kept") == [(b"1", b"before kill"), (b"2", b"before restart")]
    assert not folder.exists()
    with pytest.raises(SetupError, match="not running"):
        _ = own.pid


@pytest.mark.in_turn
def test_named_folder_is_kept_and_started_from_again(tmp_path: Path) -> None:
    """A folder that was named outlives its broker; the next one finds the records, and two cannot share it."""
    with Broker(data_dir=tmp_path / "kafka") as first:
        first.create_topic("kept")
        first.produce("kept", [(None, b"x")])
        before = (tmp_path / "kafka" / "server.properties").read_text()
        with pytest.raises(SetupError, match=saying(str(tmp_path / "kafka"), "another broker")):
            Broker(data_dir=tmp_path / "kafka").start()
        assert (tmp_path / "kafka" / "server.properties").read_text() == before
    with Broker(data_dir=tmp_path / "kafka") as second:
        assert records(second, "kept") == [(None, b"x")]


def test_own_properties_and_quick_retention_are_honoured() -> None:
    """Properties given go above ours, topics come on first use if asked for, and retention is checked often."""
    properties = {"num.partitions": "3", "log.retention.ms": "100"}
    with Broker(properties=properties, auto_create_topics=True, retention_check_ms=200) as own:
        own.produce("made", [(None, b"x")] * 5, partition=1)
        reader = Consumer({"bootstrap.servers": own.bootstrap_servers, "group.id": "reader", "log_level": 0})
        try:
            assert len(reader.list_topics("made", timeout=20).topics["made"].partitions) == 3
            where = TopicPartition("made", 1)
            assert wait_until(lambda: reader.get_watermark_offsets(where, timeout=20) == (5, 5))
        finally:
            reader.close()


def test_used_port_is_named(broker: Broker) -> None:
    """A port that somebody listens on is refused by number, before anything is started."""
    port = int(broker.bootstrap_servers.partition(":")[2])
    with pytest.raises(SetupError, match=saying(f"Port {port}", "127.0.0.1", "cannot be used")):
        Broker(port=port).start()


def test_invalid_property_is_told_in_kafkas_words() -> None:
    """A property that Kafka refuses ends the start with Kafka's reason and without its stack trace."""
    own = Broker(properties={"num.io.threads": "many"})
    with pytest.raises(SetupError, match="Invalid value many for configuration num.io.threads") as refused:
        own.start()
    assert "\tat " not in str(refused.value)
    own.close()
    assert not own.data_dir.exists()


def test_broker_ends_with_the_process_that_started_it() -> None:
    """When its parent is killed without a chance to clean up, the broker ends and its temporary folder goes."""
    with subprocess.Popen([sys.executable, "-c", STARTS_AND_WAITS], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, _, folder = parent.stdout.readline().strip().partition(" ")
        assert runs(int(pid))
        parent.kill()
    assert wait_until(lambda: not runs(int(pid)))
    assert wait_until(lambda: not Path(folder).exists())


def test_command_runs_until_sigterm() -> None:
    """`parquet-sink kafka` says where it listens, and SIGTERM ends it with status 0 and nothing left."""
    port = free_port()
    command = [sys.executable, "-c", COMMAND, "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert_says(first, f"listens on 127.0.0.1:{port}", "its log is")
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "Kafka is stopped\n"
    assert process.returncode == 0
    assert not Path(first.rpartition(" ")[2].strip()).parent.exists()


def test_command_only_fetches_when_asked() -> None:
    """`--fetch-only` prints the folder of Kafka's jars and starts nothing."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "--fetch-only"], capture_output=True, text=True, check=True, timeout=250
    )
    assert jars.is_complete(Path(done.stdout.strip()), jars.read_lock())


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A Maven repository in a folder: the jars of the cache in Maven's layout."""
    lock = jars.read_lock()
    folder, _ = jars.fetch()
    for jar in lock.jars:
        place = tmp_path / "mirror" / jar.organisation.replace(".", "/") / jar.module / jar.revision / jar.name
        place.parent.mkdir(parents=True)
        place.symlink_to(folder / jar.name)
    return tmp_path / "mirror"


def settings(repository: str, cache: Path) -> dict[str, str]:
    """The environment for a fetch from `repository` into `cache`."""
    own = {"PARQUET_SINK_MAVEN_REPOSITORY": repository, "PARQUET_SINK_CACHE": str(cache)}
    return {**os.environ, **own}


def test_ivy_fetches_from_a_mirror(mirror: Path, tmp_path: Path) -> None:
    """Real Ivy brings every jar of the lock file from the mirror alone, counted, and the result is verified."""
    said: list[str] = []
    folder, _ = jars.fetch(report=said.append, environment=settings(mirror.as_uri(), tmp_path / "cache"))
    lock = jars.read_lock()
    assert jars.is_complete(folder, lock)
    assert {path.name for path in folder.glob("*.jar")} == {jar.name for jar in lock.jars}
    assert_says(said[-1], f"Kafka {lock.kafka_version}", f"{len(lock.jars)} of {len(lock.jars)} jars")


def test_altered_jar_of_a_mirror_is_refused(mirror: Path, tmp_path: Path) -> None:
    """A mirror that serves another file under a jar's name is found out, and the jar is named."""
    place = next(mirror.rglob("snakeyaml-*.jar"))
    place.unlink()
    place.write_bytes(b"not the published file")
    with pytest.raises(SetupError, match=saying("snakeyaml-", ".jar", mirror.as_uri(), "not the published file")):
        jars.fetch(report=lambda text: None, environment=settings(mirror.as_uri(), tmp_path / "cache"))
    assert not (tmp_path / "cache" / f"kafka-{jars.read_lock().kafka_version}").exists()


def test_unreachable_registry_is_told_with_cause_and_cure(tmp_path: Path) -> None:
    """When nobody answers at the address, the error names it, the cause, and the variables that help."""
    address = f"http://127.0.0.1:{free_port()}/maven2"
    with pytest.raises(SetupError) as failed:
        jars.fetch(report=lambda text: None, environment=settings(address, tmp_path))
    for part in (address, "Connection refused", "https_proxy", "PARQUET_SINK_MAVEN_REPOSITORY"):
        assert part in str(failed.value)


@pytest.mark.in_turn
def test_kafka_s_tools_run_from_the_command_line(broker: Broker) -> None:
    """A record sent with one tool is read with another; each one's exit status is the command's."""
    words = [sys.executable, "-m", "parquet_sink", "kafka", "--port", broker.bootstrap_servers.rpartition(":")[2]]
    made = subprocess.run([*words, "--tool", "topics", "--create", "--topic", "told"], check=False, timeout=60)
    assert made.returncode == 0
    produce = [*words, "--tool", "console-producer", "--topic", "told"]
    assert subprocess.run(produce, input=b'{"id":1}\n', check=False, timeout=60).returncode == 0
    read = [*words, "--tool", "console-consumer", "--topic", "told", "--from-beginning", "--max-messages", "1"]
    assert subprocess.run(read, capture_output=True, check=False, timeout=60).stdout == b'{"id":1}\n'
    again = subprocess.run(
        [*words, "--tool", "topics", "--create", "--topic", "told"], capture_output=True, check=False, timeout=60
    )
    assert again.returncode == 1


@pytest.mark.parametrize("codec", ["lz4", "snappy", "zstd"])
def test_a_tool_that_compresses_prints_nothing_of_java_s(broker: Broker, topic: TopicFactory, codec: str) -> None:
    """Java warns of libraries that are not Java, from version 24 on, unless it is told that they are wanted."""
    words = [sys.executable, "-m", "parquet_sink", "kafka", "--port", broker.bootstrap_servers.rpartition(":")[2]]
    produce = [*words, "--tool", "console-producer", "--topic", topic(), "--compression-codec", codec]
    sent = subprocess.run(produce, input=b'{"id":1}\n', capture_output=True, check=False, timeout=60)
    assert (sent.returncode, sent.stdout, sent.stderr) == (0, b"", b"")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A copy of the archive of the broker's Java classes, which is made if need be, in a cache of its own."""
    return Path(shutil.copy(make_kafka_archive.make(), tmp_path))


def java_with(archive: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """How Java starts with the archive, as it does for a broker."""
    folder, java = jars.fetch()
    command = [java, *broker_files.JAVA, *archive_options(archive.parent / folder.name, java), *options]
    return subprocess.run(
        [*command, "-cp", f"{folder}/*", "kafka.Kafka", "--version"], capture_output=True, text=True, check=False
    )


def test_java_takes_the_archive_of_its_classes(archive: Path) -> None:
    """It was made for this Java, these jars and these options: Java maps it, and would not start otherwise."""
    started = java_with(archive, "-Xshare:on", "-Xlog:class+load")
    assert started.returncode == 0, started
    assert "kafka.Kafka$ source: shared objects file (top)" in started.stdout


@pytest.mark.parametrize("kept", [0, 20_000_000])
def test_a_start_goes_without_a_damaged_archive(archive: Path, kept: int) -> None:
    """A part of it is there, as after a full disk: Java, which would crash, starts without it, and says nothing."""
    archive.chmod(0o600)
    with archive.open("r+b") as file:
        file.truncate(kept)
    started = java_with(archive)
    assert (started.returncode, len(started.stdout.splitlines()), started.stderr) == (0, 1, ""), started
