"""The sink as its users start it: `python -m parquet_sink run`, in a session of its own, observed from outside."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from confluent_kafka import Consumer, TopicPartition

from integration.bench import load
from integration.bench.figures import Accepted
from integration.bench.processes import tree
from parquet_sink.addons.devkit.target.contract import DEFAULT_AUTHORIZATION
from parquet_sink.errors import SetupError

POLL_S: Final = 0.1
STOP_S: Final = 60.0
_NAME: Final = re.compile(
    r"topic-(?P<topic>.+)_partition-(?P<partition>\d+)_firstOffset-(?P<first>\d+)_lastOffset-(?P<last>\d+)"
    r"_bytes-(?P<bytes>\d+)_rows-(?P<rows>\d+)\.parquet"
)


def connector_file(
    folder: Path, name: str, topic: str, endpoint: str, flush: Mapping[str, int], more: Mapping[str, str]
) -> Path:
    """Writes a connector file with everything on. flush: `commit.*` keys without prefix. more: lines that win."""
    keys = connector_keys(folder, name, topic, endpoint, flush, more)
    path = folder / f"{name}.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return path


def connector_keys(
    folder: Path, name: str, topic: str, endpoint: str, flush: Mapping[str, int], more: Mapping[str, str]
) -> dict[str, str]:
    """Return the keys of such a file."""
    return {
        "name": name,
        "connector.class": "com.celonis.kafka.connect.ems.sink.EmsSinkConnector",
        "topics": topic,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "connect.ems.endpoint": endpoint,
        "connect.ems.authorization.key": DEFAULT_AUTHORIZATION,
        "connect.ems.target.table": name,
        "connect.ems.tmp.dir": str(folder / "files"),
        "connect.ems.data.primary.key": "order_id",
        "connect.ems.flattener.enable": "true",
        "connect.ems.embed.kafka.metadata": "true",
        **{f"connect.ems.{key}": str(value) for key, value in flush.items()},
        **more,
    }


class SinkProcess:
    """One run of the command line. A context manager: the process and all its children are gone at its end."""

    def __init__(
        self,
        files: Sequence[Path],
        servers: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """environment: variables on top of those of this process. options: further ones of the command line."""
        self._command = [sys.executable, "-m", "parquet_sink", "run", "--no-live", "--bootstrap-servers", servers]
        self._command += [*options, *map(str, files)]
        self._servers, self._environment = servers, {**os.environ, **(environment or {})}
        self.log = folder / "sink.log"
        self.started_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.started_at = time.time()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> int | None:
        """SIGTERM, and SIGKILL for whatever is left of the tree after STOP_S; the exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(signal.SIGTERM)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
        finally:  # also when this wait is interrupted
            if process.poll() is None:
                process.kill()
            for pid in {member.pid for member in tree(process.pid)} - {process.pid}:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return process.wait()

    def wait_for_exit(self, timeout_s: float) -> None:
        """Wait until the sink ends by itself. Raise SetupError if it fails, or takes longer than timeout_s."""
        assert self._process is not None
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise SetupError(f"The sink did not end within {timeout_s:.0f} s. {self._last_words()}") from None
        if status:
            raise SetupError(f"The sink ended with exit status {status}. {self._last_words()}")

    def wait(self, what: str, check: Callable[[], bool], timeout_s: float) -> None:
        """Until `check` holds. Raises SetupError when the sink ended, or took too long."""
        deadline = time.monotonic() + timeout_s
        while not check():
            if self._process is None or self._process.poll() is not None:
                raise SetupError(f"The sink ended before {what}. {self._last_words()}")
            if time.monotonic() > deadline:
                raise SetupError(f"Within {timeout_s:.0f} s there was not: {what}. {self._last_words()}")
            time.sleep(POLL_S)

    def until_committed(self, group: str, topic: str, partitions: int, timeout_s: float) -> None:
        """Until the group has committed everything that can be read, so that nothing is left to do."""
        ends = load.ends(self._servers, topic, partitions)
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": group, "enable.auto.commit": False})
        asked = [TopicPartition(topic, partition) for partition in ends]

        def caught_up() -> bool:
            time.sleep(0.4)
            return all(found.offset >= ends[found.partition] for found in consumer.committed(asked, timeout=30))

        try:
            self.wait(f"lag 0 of group {group}", caught_up, timeout_s)
        finally:
            consumer.close()

    def _last_words(self) -> str:
        text = self.log.read_text(errors="replace")
        return "The end of its log:\n" + "\n".join(text.splitlines()[-25:])


def accepted(client: Any, table: str) -> list[Accepted]:
    """The files that the target took for a table, in order of acceptance."""
    found = []
    for file in client.files(table):
        name = _NAME.fullmatch(file["name"])
        if name is None:
            raise SetupError(f"The target has a file {file['name']!r}, whose name says no offsets.")
        numbers = {key: int(name[key]) for key in ("partition", "first", "last", "bytes", "rows")}
        at = file["accepted_at_ms"] / 1000
        found.append(
            Accepted(numbers["partition"], numbers["first"], numbers["last"], numbers["rows"], numbers["bytes"], at)
        )
    return found
