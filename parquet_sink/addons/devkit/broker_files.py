"""Files of a local broker: its properties, logging and folder, Kafka's command line tools, the class data archive."""

import base64
import fcntl
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parquet_sink.addons.devkit.ports import HOST
from parquet_sink.errors import InvalidConfiguration, SetupError
from parquet_sink.process.cache import is_whole, whole_name
from parquet_sink.process.java_home import version_text

CONSUMER_GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOOLS: Final = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "consumer-groups": CONSUMER_GROUPS,
    "topics": "org.apache.kafka.tools.TopicCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
"""By the names that Kafka's own scripts have, without kafka- and .sh."""
JAVA: Final = (
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"),
    "--enable-native-access=ALL-UNNAMED",  # else Java 24 and newer warn of each library for compression, at length
)
TOOLS_LOGGING: Final = Path(__file__).with_name("tools-log4j2.properties")
META: Final = "meta.properties"
"""A formatted folder has it."""
_CHECKPOINT: Final = "bootstrap.checkpoint"
_SERVER: Final = "--bootstrap-server"
_NO_BROKER: Final = frozenset({"--help", "--version"})
LOGGING: Final = """\
status = error
rootLogger = info, file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${sys:parquet.sink.log}
appender.file.filePattern = ${sys:parquet.sink.log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
"""


@dataclass(frozen=True)
class Listener:
    """A further address of the broker. protocol: Kafka's `security.protocol`. port: of loopback."""

    name: str
    protocol: str
    port: int


def server_properties(
    folder: Path, port: int, controller_port: int, own: Mapping[str, str], listeners: Sequence[Listener] = ()
) -> str:
    """The content of `server.properties`: one node, small, quick to answer; `own` goes above it."""
    also = "".join(f",{one.name}://{HOST}:{one.port}" for one in listeners)
    protocols = "".join(f",{one.name}:{one.protocol}" for one in listeners)
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}{also}",
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT{protocols}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(folder),
        # After SIGKILL a restarted broker waits until its former self is given up: 3 s instead of 9.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "metadata.max.idle.interval.ms": "0",  # no record without news twice a second: a third of an idle broker's CPU
        "num.network.threads": "2",
        "num.io.threads": "2",
        "log.cleaner.dedupe.buffer.size": "4194304",
        # The first entry of an index touches a file of so many bytes; of 10 MB that can take 60 ms (ext4, Linux 6.18).
        "log.index.size.max.bytes": "1048576",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        **own,
    }
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(value: str) -> str:
    """A value as Java's properties format wants it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def cluster_id() -> str:
    """A new cluster id: 16 random bytes in the base64 that Kafka uses, not starting with a dash."""
    return "p" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]


def format_from_cache(data: Path, jars: Path, node_id: str) -> bool:
    """Formats a new folder as `kafka-storage format` does, without its second of Java. Whether the cache can do that.

    What Kafka writes into `bootstrap.checkpoint` depends on its version alone.
    """
    with suppress(OSError):
        if (kept := next((one for one in sorted(_checkpoints(jars)) if is_whole(one)), None)) is not None:
            shutil.copyfile(kept, data / _CHECKPOINT)
            ids = {"version": "1", "cluster.id": cluster_id(), "node.id": node_id, "directory.id": cluster_id()}
            (data / META).write_text("".join(f"{key}={value}\n" for key, value in ids.items()))
            return True
    return False


def keep_format(data: Path, jars: Path) -> None:
    """Keeps what Kafka wrote into a new folder, for the next one; no harm where the cache takes nothing."""
    with suppress(OSError), tempfile.TemporaryDirectory(prefix=f"{jars.name}.format-", dir=jars.parent) as work:
        copy = Path(shutil.copyfile(data / _CHECKPOINT, Path(work, _CHECKPOINT)))
        name = jars.with_name(whole_name(f"{jars.name}-bootstrap", copy))
        if not any(map(is_whole, _checkpoints(jars))):
            copy.replace(name)


def _checkpoints(jars: Path) -> Iterator[Path]:
    return jars.parent.glob(f"{jars.name}-bootstrap-*.checkpoint")


@contextmanager
def held_alone(folder: Path) -> Iterator[int]:
    """A descriptor that holds the folder: who inherits it keeps it from other brokers until it ends.

    Kafka's own lock comes too late: a second broker writes into the first one's metadata before it asks for it. Raises
    SetupError when another broker has the folder, OSError when it cannot be used.
    """
    held = os.open(folder / "in-use.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(held, folder)
        yield held
    finally:
        os.close(held)


def _lock(held: int, folder: Path) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SetupError(
            f"Kafka's folder {folder} is in use by another broker. Stop it, or name another one."
        ) from None


def tool_command(words: Sequence[str], jars: Path, java: str, port: int, options: Sequence[str] = ()) -> list[str]:
    """The program to run for `NAME ARGUMENT ...`. Where the arguments name no broker, the local one at `port` is asked.

    options: of Java, besides ours.
    Raises InvalidConfiguration for a tool that there is not.
    """
    name, arguments = (words[0], list(words[1:])) if words else ("", [])
    name = name.removeprefix("kafka-").removesuffix(".sh")
    if name not in TOOLS:
        raise InvalidConfiguration([f"Invalid [--tool]. {name!r} is not a tool; write one of {', '.join(TOOLS)}."])
    if not any(word.partition("=")[0] == _SERVER or word in _NO_BROKER for word in arguments):
        arguments = [_SERVER, f"localhost:{port}", *arguments]
    java_options = [*JAVA, *options, f"-Dlog4j2.configurationFile={TOOLS_LOGGING.as_uri()}", "-cp", f"{jars}/*"]
    return [java, *java_options, TOOLS[name], *arguments]


def stem(jars: Path, java: str) -> str:
    """How the names begin of archives for Kafka's jars and a Java."""
    version, _ = version_text(java)
    return f"{jars.name}-{hashlib.sha256(version.encode()).hexdigest()[:16]}"


def usable_archive(jars: Path, java: str) -> Path | None:
    """The archive for Kafka's jars and a Java, if there is one that is whole: Java crashes with a part of one."""
    with suppress(OSError):
        return next((one for one in sorted(jars.parent.glob(f"{stem(jars, java)}-*.jsa")) if is_whole(one)), None)
    return None


def archive_options(jars: Path, java: str) -> tuple[str, ...]:
    """Java's options to use it, none where there is no archive.

    Java is told to say nothing of one that does not fit: what tools print is read by programs.
    """
    archive = usable_archive(jars, java)
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable")
