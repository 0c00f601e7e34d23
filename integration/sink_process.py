"""The sink under test: `parquet-sink run` as a process of its own, in a session of its own."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from integration import processes
from integration.oracle.records import DROP
from integration.processes import Process

TABLE: Final = "CRASH"
LOG: Final = "sink.log"
TRANSFORMS: Final = {
    "transforms": "drop,hoist,mark,cast,unmark",
    "transforms.drop.type": "Filter",
    "transforms.drop.predicate": "dropped",
    "predicates": "dropped",
    "predicates.dropped.type": "HasHeaderKey",
    "predicates.dropped.name": DROP,
    "transforms.hoist.type": "HoistField$Key",
    "transforms.hoist.field": "key",
    "transforms.mark.type": "InsertField$Value",
    "transforms.mark.static.field": "mark",
    "transforms.mark.static.value": "7",
    "transforms.cast.type": "Cast$Value",
    "transforms.cast.spec": "mark:int32",
    "transforms.unmark.type": "ReplaceField$Value",
    "transforms.unmark.exclude": "mark",
}
"""Some records are dropped, keys become objects; all others are what they were, by another way."""
_FAILED: Final = re.compile(r" ERROR connector \S+ failed: ")


def connector(topic: str, endpoint: str, tmp_dir: Path, table: str = TABLE) -> dict[str, str]:
    """A connector, named as its topic, with small files and quick flushes. table: which the map gives its topic."""
    return {
        "name": topic,
        "connector.class": "com.celonis.kafka.connect.ems.sink.EmsSinkConnector",
        "topics": topic,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "connect.ems.endpoint": endpoint,
        "connect.ems.authorization.key": "AppKey demo",
        "connect.ems.target.table": f"NOT_{table}",
        "connect.ems.target.table.map": f"audit:AUDIT,.*:{table}",
        "connect.ems.commit.size.bytes": "100000",
        "connect.ems.commit.records": "500",
        "connect.ems.commit.interval.ms": "1000",
        "connect.ems.tmp.dir": str(tmp_dir),
        "connect.ems.data.primary.key": "key",
        "connect.ems.tombstones": "row",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "connect.ems.error.policy": "RETRY",
        "connect.ems.retry.interval": "1000",
        "connect.ems.max.retries": "20",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead_letters_of(topic),
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        **TRANSFORMS,
    }


def dead_letters_of(topic: str) -> str:
    """The name of its dead-letter topic."""
    return f"{topic}-dead"


class SinkProcess:
    """Connectors in one `parquet-sink run`. All starts write to one log.

    connectors: the settings of each connector file, written to `folder`. environment: above our own.
    """

    def __init__(
        self, connectors: Sequence[Mapping[str, str]], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._files = [folder / f"{connector['name']}.properties" for connector in connectors]
        for path, connector in zip(self._files, connectors, strict=True):
            path.write_text("".join(f"{key}={value}\n" for key, value in connector.items()), encoding="utf-8")
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._marks: list[str] = []
        self.log = folder / LOG
        self._looked_until = 0
        self._failures: list[str] = []
        self.starts = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *options: str) -> None:
        """Starts it; `ended` tells when it is over."""
        command = [sys.executable, "-m", "parquet_sink", "run", *options, *map(str, self._files)]
        self._marks.append(uuid.uuid4().hex)
        with self.log.open("ab") as log:
            self._looked_until, self._failures = log.tell(), []
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**self._environment, processes.MARK: self._marks[-1]},
                start_new_session=True,
            )
        self.starts += 1

    def ended(self) -> int | None:
        """The exit status, None while it runs; negative is a signal's number."""
        return None if self._process is None else self._process.poll()

    def run_to_end(self, timeout_s: float, *options: str) -> int:
        """Starts it and waits for its end; the exit status. Raises subprocess.TimeoutExpired."""
        self.start(*options)
        assert self._process is not None
        return self._process.wait(timeout_s)

    def terminate(self, timeout_s: float) -> int:
        """SIGTERM, and waits for the end; the exit status. Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout_s)

    def processes(self) -> list[Process]:
        """The program with all its children, as long as one of them lives."""
        return processes.of_run(self._marks[-1])

    def left_over(self) -> list[Process]:
        """Processes of earlier starts, and of this one if it has ended."""
        over = self._marks if self.ended() is not None else self._marks[:-1]
        return [one for mark in over for one in processes.of_run(mark)]

    def end_all(self) -> None:
        """Ends whatever lives of any start."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            alive = [one for mark in self._marks for one in processes.of_run(mark)]
            for one in alive:
                processes.kill(one)
            if not alive:
                break
            time.sleep(0.05)
        if self._process is not None:
            self._process.wait()

    def failed(self) -> list[str]:
        """Lines since the last start by which connectors failed for good, which ends no program while others run."""
        with self.log.open("rb") as log:
            log.seek(self._looked_until)
            whole = log.read().rpartition(b"\n")[0]
        self._looked_until += len(whole)
        self._failures += [line for line in whole.decode(errors="replace").splitlines() if _FAILED.search(line)]
        return self._failures

    def last_words(self, lines: int = 30) -> str:
        """The end of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
