"""`parquet-sink worker` as a process, asked over its REST API."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import requests

from integration.commands import Command
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port

LOOKS: Final = 20
"""How often a status is asked for until it is of one moment."""


class WorkerProcess:
    """One worker file; its worker may be started again and again, and finds its connectors.

    python: of an environment in which the package is installed; None for this one. environment: above our own.
    """

    def __init__(
        self,
        folder: Path,
        broker: Broker,
        more: Mapping[str, str] | None = None,
        python: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder, self.url, self._python = folder, f"http://127.0.0.1:{free_port()}", python
        self.store = folder / "store"
        self._file = folder / "worker.properties"
        keys = {
            "bootstrap.servers": broker.bootstrap_servers,
            "listeners": self.url,
            "config.storage.folder": str(self.store),
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
            **(more or {}),
        }
        self._file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
        self.commands: list[Command] = []
        self._environment = environment or {}
        self._session = requests.Session()

    @property
    def command(self) -> Command:
        """The one that was started last."""
        return self.commands[-1]

    @property
    def started(self) -> bool:
        return bool(self.commands)

    def start(self, *words: str) -> None:
        """Returns when it is healthy."""
        words = ("worker", *words, str(self._file))
        self.commands.append(Command(self._folder, words, self._environment, python=self._python))
        self.command.until(self._is_healthy)

    def _is_healthy(self) -> bool:
        try:
            return self.ask("GET", "/health").status_code == 200
        except requests.ConnectionError:
            return False

    def stop(self) -> None:
        """As a service manager does it."""
        self.command.send()
        assert self.command.ended() == 0, self.command.said[-3_000:]

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> requests.Response:
        return self._session.request(method, self.url + path, json=body, timeout=100, **more)

    def do(self, method: str, path: str, body: object = None) -> Any:
        """What is answered; fails when it is an error."""
        answer = self.ask(method, path, body)
        assert answer.ok, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.text else None

    def states(self) -> dict[str, str]:
        """Of all connectors, by name; their tasks agree, in a group a moment later: each has a record of its own."""
        for _ in range(LOOKS):
            found = self.do("GET", "/connectors?expand=status").values()
            statuses = {one["status"]["name"]: one["status"] for one in found}
            torn = [one for one in statuses.values() if len(_states(one)) > 1]
            if not torn:
                return {name: one["connector"]["state"] for name, one in statuses.items()}
            time.sleep(0.1)
        raise AssertionError(torn)

    def until(self, condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
        self.command.until(condition, timeout_s)

    def until_state(self, name: str, state: str) -> None:
        self.until(lambda: self.states().get(name) == state)

    def close(self) -> None:
        for command in self.commands:
            command.close()
        self._session.close()


def _states(status: Mapping[str, Any]) -> set[str]:
    """Of a connector and its tasks."""
    return {status["connector"]["state"], *(task["state"] for task in status["tasks"])}
