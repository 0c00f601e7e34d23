"""Spark's Java process: started apart from the program, so that signals reach the program alone, and tied to its life.

PySpark's own way of starting it leaves it in the program's process group, where a SIGTERM for all ends it in the middle
of a flush; and it cannot be given up before it answers.
"""

import logging
import os
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Any, Final

from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from parquet_sink.errors import SetupError
from parquet_sink.process import logs
from parquet_sink.process.signals import ParentDeathGuard
from parquet_sink.spark.causes import java_message

log = logging.getLogger(__name__)

LOOK_S: Final = 0.05
END_S: Final = 10.0
"""How long Java may take to end by itself, once its input is closed."""
LAST_LINES: Final = 50
_DEAF: Final = 'trap "" HUP INT TERM; exec "$@"'
"""Signals that are ignored stay so across exec, in Java and in the Python processes that it starts.

SIGTERM ends Spark at once, in the middle of a flush, unless it was ignored when Java started. The planner, which Java
itself ends by SIGTERM, listens to it again (`process.signals.restore_sigterm`)."""


class Java:
    """The process, from `launch` to `end`. folder: for all its temporary files. run_folder: removed with it.

    A session of its own keeps signals for the program's process group away; a service manager that signals each
    process finds it deaf. It ends when its input does; should that take too long, or the program die, it is killed.
    """

    def __init__(self, folder: Path, run_folder: Path) -> None:
        self._folder, self._run_folder = folder, run_folder
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: ParentDeathGuard | None = None
        self._given_up = False
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._relay: Thread | None = None

    def launch(self, command: Sequence[str], variables: Mapping[str, str]) -> Any:
        """Starts it and waits until it answers; PySpark's gateway to it. Raises SetupError when it ends instead.

        command: as `java_command` has it. variables: of its environment, on top of those of this process.
        """
        connection_file = self._folder / "gateway"
        self._start(command, variables, connection_file)
        self._wait_for(connection_file)
        with connection_file.open("rb") as file:
            port, secret = read_int(file), UTF8Deserializer().loads(file)  # type: ignore[no-untyped-call]
        connection_file.unlink()
        log.debug("start: Java answers")
        return _connected(port, secret)

    def _start(self, command: Sequence[str], variables: Mapping[str, str], connection_file: Path) -> None:
        if self._given_up:
            raise SetupError("Spark was given up before it started.")
        self._forget()
        environment = {
            **os.environ,
            **variables,
            "TMPDIR": str(self._folder),
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file),
        }
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _DEAF, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        self._guard = ParentDeathGuard(self._process.pid, self._run_folder)
        assert self._process.stdout is not None
        self._relay = logs.relay(self._process.stdout, self._last)
        if self._given_up:  # meanwhile
            self._process.kill()

    def _forget(self) -> None:
        """One that has ended, for another to take its place."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        if self._guard is not None:
            self._guard.release()
        self._last.clear()

    def _wait_for(self, connection_file: Path) -> None:
        assert self._process is not None
        while not connection_file.exists():
            if (status := self._process.poll()) is not None:
                raise SetupError(f"Java ended with exit status {status} before it was up{self._why()}.")
            time.sleep(LOOK_S)

    def _why(self) -> str:
        """What it wrote before it ended, for a message."""
        if self._relay is not None:
            self._relay.join(END_S)
        words = java_message(tuple(self._last)).rstrip(".")
        return f": {words}" if words else ""

    def gone(self, patience_s: float) -> bool:
        """Whether it has ended; waits so long for that, since its sockets close before it is gone."""
        if self._process is None:
            return False
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    @property
    def pid(self) -> int | None:
        """The process id, None before the launch."""
        return None if self._process is None else self._process.pid

    @property
    def crashed(self) -> bool:
        """Whether a signal ended it, and not one of ours."""
        return self._process is not None and (self._process.poll() or 0) < 0 and not self._given_up

    def kill(self) -> None:
        """Ends it at once. A launch under way fails, one that comes is refused."""
        self._given_up = True
        if self._process is not None:
            self._process.kill()

    def end(self) -> None:
        """Closes its input, upon which it ends; kills it when that takes too long."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not self.gone(END_S):
            self._process.kill()
            self._process.wait()
        if self._guard is not None:
            self._guard.release()


def _connected(port: int, secret: str) -> Any:
    """PySpark connects to a Java that it did not start itself by these variables; its children need not know them."""
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
