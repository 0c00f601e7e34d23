"""A real Apache Kafka broker on loopback: for the demo, the tests, and whoever wants to try the sink.

One process is broker and KRaft controller at once. It never outlives the process that started it, however that ends.
"""

import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from parquet_sink.addons.devkit.broker_files import (
    CONSUMER_GROUPS,
    JAVA,
    LOGGING,
    META,
    TOOLS_LOGGING,
    Listener,
    archive_options,
    cluster_id,
    format_from_cache,
    held_alone,
    keep_format,
    server_properties,
)
from parquet_sink.addons.devkit.jars import Report, fetch, print_progress
from parquet_sink.addons.devkit.ports import HOST, accepts_connections, free_port, refuse_used_port
from parquet_sink.errors import KafkaFailed, SetupError
from parquet_sink.process.signals import ParentDeathGuard

START_ATTEMPTS: Final = 3
START_TIMEOUT_S: Final = 180.0
STOP_TIMEOUT_S: Final = 20.0
REQUEST_TIMEOUT_S: Final = 30.0

# The quick compiler and the serial collector: half the start-up (2 s) and 210 MB, and no slower at these loads.
_JAVA_LIGHT: Final = JAVA
_JAVA_SERVER: Final = ("-Xms128m", "-Xmx512m", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true")
_QUIET_CLIENT: Final[dict[str, str | int | float | bool]] = {"log_level": 0, "log.connection.close": False}
_QUICK_PRODUCER: Final[dict[str, str | int | float | bool]] = {
    "linger.ms": 5,
    "message.timeout.ms": int(REQUEST_TIMEOUT_S * 1000),
    "topic.metadata.propagation.max.ms": 3_000,  # an unknown topic is told soon: ours are waited for when created
}


class Broker:
    """One broker; use it as a context manager, or call `start()` and in the end `close()`.

    port: None takes a free one, which `restart()` keeps. data_dir: None takes a temporary folder, removed by `close()`;
    a folder that is named is kept and can be started from again. properties: Kafka's own server properties, above ours.
    listeners: further ones beside PLAINTEXT, by name, with their security protocols; each has a port of its own.
    retention_check_ms: how often Kafka looks for segments to delete. java_options: further ones, above ours.
    """

    def __init__(
        self,
        *,
        port: int | None = None,
        data_dir: Path | None = None,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        auto_create_topics: bool = False,
        retention_check_ms: int = 300_000,
        java_options: Sequence[str] = (),
        report: Report = print_progress,
    ) -> None:
        self.data_dir = (data_dir or Path(tempfile.mkdtemp(prefix="parquet-sink-kafka-"))).absolute()
        self._temporary = data_dir is None
        if self._temporary:
            self._remove_folder = weakref.finalize(self, shutil.rmtree, self.data_dir, ignore_errors=True)
        self._port = port
        self._listeners: list[Listener] = []
        for name, protocol in (listeners or {}).items():
            self._listeners.append(Listener(name, protocol, free_port(port or 0, *self._listener_ports())))
        self._properties = {
            "auto.create.topics.enable": str(auto_create_topics).lower(),
            "log.retention.check.interval.ms": str(retention_check_ms),
            "log.initial.task.delay.ms": str(min(retention_check_ms, 30_000)),
            **(properties or {}),
        }
        self._report, self._java_options = report, java_options
        self._jars, self._java = Path(), tuple[str, ...]()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ParentDeathGuard | None = None
        self._log_start = 0

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `host:port`; known once started."""
        return f"{HOST}:{self._port}"

    def address(self, listener: str) -> str:
        """Likewise of a further listener."""
        return next(f"{HOST}:{one.port}" for one in self._listeners if one.name == listener)

    def _listener_ports(self) -> list[int]:
        return [one.port for one in self._listeners]

    @property
    def log_path(self) -> Path:
        return self.data_dir / "server.log"

    @property
    def pid(self) -> int:
        """Process id of the broker's Java. Raises SetupError when it does not run."""
        if self._process is None:
            raise SetupError("The local Kafka broker is not running. Call start() first.")
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and wait until topics and consumer groups work. Raises SetupError with the end of Kafka's log."""
        if self.running:
            return
        self._dismiss()
        jars, java = fetch(report=self._report)
        self._jars, self._java = jars, (java, *_JAVA_LIGHT, *archive_options(jars, java), "-cp", f"{jars}/*")
        attempts = 1 if self._port else START_ATTEMPTS
        for attempt in range(1, attempts + 1):
            port = self._port or free_port(*self._listener_ports())
            try:
                self._launch(port)
                self._wait_until_ready(port)
            except BaseException as error:
                self.kill()
                if attempt == attempts or "Address already in use" not in str(error):
                    raise
            else:
                self._port = port
                return

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the broker in an orderly way (0.5 s); its data stay, and `start()` goes on from them."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._dismiss()

    def kill(self) -> None:
        """End the broker with SIGKILL; its data stay, and `start()` goes on from them."""
        if self._process is not None:
            self._process.kill()
        self._dismiss()

    def restart(self) -> None:
        """Stop, if it still runs, and start again at the same address with the same data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop, and remove the temporary folder."""
        self.stop()
        if self._temporary:
            self._remove_folder()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] = (),
    ) -> None:
        """Create a topic and wait until each topic-partition has a leader. Raises KafkaFailed.

        replicas: brokers by topic-partition, where the cluster has several; its number is that of topic-partitions.
        """
        admin = self._admin()
        partitions = len(replicas) or partitions
        placed = {"replica_assignment": [list(one) for one in replicas]} if replicas else {"replication_factor": 1}
        try:
            admin.create_topics([NewTopic(name, partitions, config=dict(config or {}), **placed)])[name].result()
            self._until_listed(admin, name, lambda leaders: len(leaders) == partitions and min(leaders) >= 0)
        except KafkaException as error:
            raise KafkaFailed(f"Topic {name} could not be created at {self.bootstrap_servers}: {error}") from error

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone. Raises KafkaFailed."""
        admin = self._admin()
        try:
            admin.delete_topics([name])[name].result()
            self._until_listed(admin, name, lambda leaders: not leaders)
        except KafkaException as error:
            raise KafkaFailed(f"Topic {name} could not be deleted at {self.bootstrap_servers}: {error}") from error

    def produce(
        self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]], partition: int | None = None
    ) -> None:
        """Send (key, value) pairs and wait until all are acknowledged. Raises KafkaFailed naming the first failure."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers, **_QUICK_PRODUCER, **_QUIET_CLIENT})
        failures: list[str] = []

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                failures.append(str(error))

        for key, value in records:
            while True:
                try:
                    producer.produce(topic, value, key, -1 if partition is None else partition, delivered)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        unsent = producer.flush(REQUEST_TIMEOUT_S)
        if failures or unsent:
            cause = failures[0] if failures else f"no answer within {REQUEST_TIMEOUT_S:.0f} s"
            raise KafkaFailed(f"Topic {topic}: {len(failures) + unsent} records were not accepted: {cause}")

    def run_tool(self, main_class: str, *arguments: str, timeout_s: float = REQUEST_TIMEOUT_S) -> str:
        """Run one of Kafka's command line tools against this broker; its standard output.

        `--bootstrap-server` is added. Raises KafkaFailed with what the tool said when it fails or takes too long.
        """
        command = [*self._java, f"-Dlog4j2.configurationFile={TOOLS_LOGGING.as_uri()}", main_class]
        command += ["--bootstrap-server", self.bootstrap_servers, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise KafkaFailed(f"{main_class} did not end within {timeout_s:.0f} s") from error
        if done.returncode != 0:
            raise KafkaFailed(f"{main_class} ended with exit status {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def consumer_groups(self, *arguments: str) -> str:
        """What `kafka-consumer-groups` prints, as for `--describe --group NAME`. Raises KafkaFailed."""
        return self.run_tool(CONSUMER_GROUPS, *arguments)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, **_QUIET_CLIENT})

    def _until_listed(self, admin: AdminClient, name: str, wanted: Callable[[list[int]], bool]) -> None:
        """Wait until the leaders of a topic, as clients see them, are as wanted."""

        def as_wanted() -> bool:
            topic = admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics.get(name)
            return wanted([partition.leader for partition in topic.partitions.values()] if topic else [])

        self._until(as_wanted, f"topic {name} was not as asked for", time.monotonic() + REQUEST_TIMEOUT_S)

    def _launch(self, port: int) -> None:
        """Write the configuration, format the folder if it is new, start Java and tether it."""
        refuse_used_port(port)
        try:
            (self.data_dir / "data").mkdir(parents=True, exist_ok=True)
            with held_alone(self.data_dir) as held:
                self._process = self._start_java(port, held)
        except OSError as error:
            cause = error.strerror or error
            raise SetupError(f"Kafka's folder {self.data_dir} cannot be used: {cause}. Name a writable one.") from error
        self._guard = ParentDeathGuard(self._process.pid, self.data_dir if self._temporary else None)

    def _start_java(self, port: int, held: int) -> subprocess.Popen[bytes]:
        """The broker's process. held: a descriptor that Java inherits, so that it has its folder until it ends."""
        controller_port = free_port(port, *self._listener_ports())
        (self.data_dir / "server.properties").write_text(
            server_properties(self.data_dir / "data", port, controller_port, self._properties, self._listeners)
        )
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        command = self._java_with_logging("server", LOGGING)
        self._format(command)
        server = [*_JAVA_SERVER, *self._java_options, "kafka.Kafka", str(self.data_dir / "server.properties")]
        with (self.data_dir / "console.log").open("wb") as console:
            return subprocess.Popen(
                [*command, *server],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                pass_fds=[held],
                start_new_session=True,  # Ctrl-C is ours to handle, in order
            )

    def _java_with_logging(self, name: str, logging: str) -> list[str]:
        path = self.data_dir / f"{name}-log4j2.properties"
        path.write_text(logging)
        return [*self._java, f"-Dlog4j2.configurationFile={path.as_uri()}", f"-Dparquet.sink.log={self.log_path}"]

    def _format(self, java: list[str]) -> None:
        """Give a new folder its cluster id."""
        data, own = self.data_dir / "data", self._properties
        if (data / META).exists() or format_from_cache(data, self._jars, own.get("node.id", "1")):
            return
        command = [*java, "kafka.tools.StorageTool", "format", "--cluster-id", cluster_id()]
        command += ["--config", str(self.data_dir / "server.properties")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("\t")]
            raise SetupError("\n".join([f"Kafka could not format {self.data_dir}:", *said]))
        keep_format(data, self._jars)

    def _wait_until_ready(self, port: int) -> None:
        """Wait for the socket, then for an answer about topics, then for the coordinator of groups."""
        deadline = time.monotonic() + START_TIMEOUT_S
        self._until(lambda: accepts_connections(port), "it does not listen", deadline)
        client = {"bootstrap.servers": f"{HOST}:{port}", **_QUIET_CLIENT}
        admin = AdminClient(client)
        self._until(lambda: bool(admin.list_topics(timeout=2).brokers), "it does not list topics", deadline)
        consumer = Consumer({**client, "group.id": "parquet-sink-ready"})  # reads only: leaves no group behind
        try:
            asked = [TopicPartition("parquet-sink-ready", 0)]
            self._until(lambda: bool(consumer.committed(asked, timeout=2)), "groups have no coordinator", deadline)
        finally:
            consumer.close()

    def _until(self, check: Callable[[], bool], trouble: str, deadline: float) -> None:
        while True:
            try:
                if check():
                    return
                last = ""
            except KafkaException as error:
                last = f" ({error})"
            if self._process is not None and (status := self._process.poll()) is not None:
                raise SetupError(f"Kafka ended with exit status {status}. {self._log_tail()}")
            if time.monotonic() > deadline:
                raise SetupError(f"Kafka runs, but {trouble} in time{last}. {self._log_tail()}")
            time.sleep(0.05)

    def _log_tail(self, lines: int = 15) -> str:
        """The last lines of what Kafka said since it was launched, without stack traces."""
        said = []
        for path, start in ((self.data_dir / "console.log", 0), (self.log_path, self._log_start)):
            if path.exists():
                text = path.read_bytes()
                said += text[start if start <= len(text) else 0 :].decode(errors="replace").splitlines()
        kept = [line for line in said if line.strip() and not line.startswith("\t")]
        errors = [line for line in kept[:-lines] if " ERROR " in line or " FATAL " in line]
        return "\n".join([f"The end of its log {self.log_path}:", *errors[-5:], *kept[-lines:]])

    def _dismiss(self) -> None:
        """Reap the broker, then let its tether go: in this order the process id cannot be another's."""
        if self._process is not None:
            self._process.wait()
        if self._guard is not None:
            self._guard.release()
        self._process = self._guard = None
