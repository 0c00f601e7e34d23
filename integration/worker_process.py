"""`parquet-sink worker` as a process, asked over its REST API."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import requests

from integration.commands import Command
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port


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
        """Of all connectors, by name; their tasks agree."""
        found = self.do("GET", "/connectors?expand=status")
        for one in found.values():
            state = one["status"]["connector"]["state"]
            assert {task["state"] for task in one["status"]["tasks"]} <= {state}, one
        return {name: one["status"]["connector"]["state"] for name, one in found.items()}

    def until(self, condition: Callable[[], bool], timeout_s: float = 120.0) -> None:
        self.command.until(condition, timeout_s)

    def until_state(self, name: str, state: str) -> None:
        self.until(lambda: self.states().get(name) == state)

    def close(self) -> None:
        for command in self.commands:
            command.close()
        self._session.close()
