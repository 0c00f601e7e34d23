"""A target in a process of its own, that can be killed and started again on the same port and data.

It never outlives the process that started it, however that ends.
"""

import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from parquet_sink.addons.devkit.target.client import TargetClient
from parquet_sink.addons.devkit.target.contract import DEFAULT_AUTHORIZATION, UPLOAD_PATH, Repeats
from parquet_sink.addons.devkit.target.tokens import TOKEN_PATH
from parquet_sink.errors import SetupError
from parquet_sink.process.signals import ParentDeathGuard

_READY: Final = "target ready at "
_STOP_S: Final = 20.0
_REPEATS: Final[Mapping[Repeats, list[str]]] = {
    "recognise": [],
    "forget": ["--forget-names"],
    "refuse": ["--refuse-repeated"],
}


class TargetProcess:
    """`parquet-sink target` on loopback. As a context manager it starts the target, and stops it at the end.

    data_dir: None for a temporary folder, which outlives `kill()` and `restart()` and goes with the context.
    discard, deleted_column, repeats, slow_s, oauth_client, token_s: see the options. ready_s: how long a start may
    take, in seconds.
    `log` is the file with the target's own words.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        authorization: str = DEFAULT_AUTHORIZATION,
        discard: bool = False,
        deleted_column: str | None = None,
        repeats: Repeats = "recognise",
        slow_s: float = 0.0,
        oauth_client: str | None = None,
        token_s: int = 900,
        port: int = 0,
        ready_s: float = 60.0,
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="parquet-sink-target-")
        self._data_dir = data_dir or Path(self._temporary.name) / "data"
        self._authorization, self._discard, self._port, self._ready_s = authorization, discard, port, ready_s
        self._deleted_column, self._repeats, self._slow_s = deleted_column, repeats, slow_s
        self._oauth_client, self._token_s = oauth_client, token_s
        self._process: subprocess.Popen[str] | None = None
        self._guard: ParentDeathGuard | None = None
        self.log = Path(self._temporary.name) / "target.log"
        self.url = ""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            self._temporary.cleanup()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self._temporary.cleanup()

    @property
    def pid(self) -> int | None:
        """The process id while the target runs."""
        return self._process.pid if self._process else None

    @property
    def client(self) -> TargetClient:
        """A fresh client of this target."""
        return TargetClient(self.url)

    def endpoint(self, pool: str = "demo") -> str:
        """The upload address for `connect.ems.endpoint`."""
        return self.url + UPLOAD_PATH.format(pool=pool)

    @property
    def keys(self) -> dict[str, str]:
        """Of connector files, in place of those that tests and benchmarks write for a push API: none."""
        return {}

    @property
    def token_url(self) -> str:
        """Where a target with a client gives access tokens."""
        return self.url + TOKEN_PATH

    def start(self) -> None:
        """Start and wait until the target takes connections. Raises SetupError with what the target said."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for who started us to handle, in order
            )
        self._guard = ParentDeathGuard(self._process.pid)
        line = self._first_line(self._process)
        if not line.startswith(_READY):
            self.kill()
            raise SetupError(f"The target did not start: {self._last_words()}")
        self.url = line.removeprefix(_READY).strip()
        self._port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> int | None:
        """SIGTERM, and SIGKILL when that takes too long; the exit status, None when it did not run."""
        return self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Start again on the same port with the same data; kills the target first if it still runs."""
        self.kill()
        self.start()

    def _command(self) -> list[str]:
        where = ["--discard"] if self._discard else ["--data-dir", str(self._data_dir)]
        alone = self._oauth_client is not None and self._authorization == DEFAULT_AUTHORIZATION
        key = [] if alone else [f"--authorization={self._authorization}"]
        if self._deleted_column is not None:
            where.append(f"--deleted-column={self._deleted_column}")
        where += _REPEATS[self._repeats]
        if self._slow_s:
            where.append(f"--slow={self._slow_s}")
        if self._oauth_client is not None:
            where += [f"--oauth-client={self._oauth_client}", f"--token-seconds={self._token_s}"]
        return [sys.executable, "-m", "parquet_sink.addons.devkit.target", "--port", str(self._port), *key, *where]

    def _first_line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            return process.stdout.readline() if selector.select(self._ready_s) else ""

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2_000:].strip() or f"it said nothing within {self._ready_s:g} s"

    def _end(self, number: signal.Signals) -> int | None:
        process, guard = self._process, self._guard
        self._process = self._guard = None
        if process is None:
            return None
        process.send_signal(number)
        try:
            return process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        finally:
            if process.stdout:
                process.stdout.close()
            if guard is not None:
                guard.release()
