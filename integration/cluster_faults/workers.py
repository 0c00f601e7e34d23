"""Three workers of one group, each with a link of its own to Kafka, and the target's log that tells them apart."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import requests

from integration.cluster_faults.history import Owner, Sent
from integration.cluster_faults.link import Link
from integration.oracle.judge import files_of
from integration.oracle.oracle import span
from integration.worker_group import WorkerGroup
from integration.worker_process import WorkerProcess
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import HOST, free_port
from parquet_sink.addons.devkit.target.client import TargetClient
from parquet_sink.distributed.records import ASSIGNMENT
from parquet_sink.distributed.state import ConfigState

COUNT: Final = 3
ASK_S: Final = 10.0
POOL: Final = "WORKER_POOL"
"""The variable by which each worker uploads to a pool of its own: the target's log names the sender of each file."""
LONG: Final = ("-XX:TieredStopAtLevel=4",)
"""A broker that runs for long is compiled as well as Java can, as people's brokers are."""
_KEYS: Final = {"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"}


@contextmanager
def linked_broker() -> Iterator[tuple[Broker, list[Link]]]:
    """A broker that each worker reaches by its own link alone; others by `bootstrap_servers`."""
    with ExitStack() as parts:
        links = [parts.enter_context(Link()) for _ in range(COUNT)]
        port, names = free_port(), [f"LINK{number}" for number in range(COUNT)]
        told = [f"{name}://{HOST}:{link.port}" for name, link in zip(names, links, strict=True)]
        properties = {"advertised.listeners": ",".join([f"PLAINTEXT://{HOST}:{port}", *told])}
        broker = parts.enter_context(
            Broker(port=port, properties=properties, listeners=dict.fromkeys(names, "PLAINTEXT"), java_options=LONG)
        )
        for name, link in zip(names, links, strict=True):
            link.to = int(broker.address(name).rpartition(":")[2])
        yield broker, links


class Workers:
    """`group` has them; each is named by its pool, `w0` and so on."""

    def __init__(self, folder: Path, broker: Broker, links: Sequence[Link], session_ms: int) -> None:
        self.links = links
        self.group = WorkerGroup(folder, broker, 0, {**_KEYS, "session.timeout.ms": str(session_ms)})
        for number, link in enumerate(links):
            host = HOST if number % 2 else "localhost"  # people spell one broker in several ways
            worker = self.group.add({"bootstrap.servers": f"{host}:{link.port}"}, {POOL: f"w{number}"})
            self.group.workers.append(worker)

    def __getitem__(self, number: int) -> WorkerProcess:
        return self.group.workers[number]

    def start(self) -> None:
        """All of them; returns when each sees the others."""
        self.group.start()

    def placed(self) -> dict[int, tuple[str, ...]]:
        """Connectors by worker's number, as the first tells that answers; workers that are members alone."""
        return {number: tuple(one["name"] for one in has) for number, has in self._connectors().items()}

    def moving(self) -> bool:
        """Whether a connector waits for the worker that has it to release it, or nobody answers."""
        found = self._connectors()
        return not found or any(one["waits_for"] for has in found.values() for one in has)

    def _connectors(self) -> dict[int, list[dict[str, Any]]]:
        for worker in self.group.workers:
            try:
                answer = requests.get(f"{worker.url}/workers", timeout=ASK_S)
            except requests.RequestException:
                continue
            found = {one["worker_id"]: one["connectors"] for one in answer.json()["workers"]} if answer.ok else {}
            ids = {number: one.url.removeprefix("http://") for number, one in enumerate(self.group.workers)}
            return {number: found[worker_id] for number, worker_id in ids.items() if worker_id in found}
        return {}

    def states(self) -> dict[str, str]:
        """Of all connectors, as the first tells that answers."""
        for worker in self.group.workers:
            try:
                answer = requests.get(f"{worker.url}/connectors?expand=status", timeout=ASK_S)
            except requests.RequestException:
                continue
            if answer.ok:
                return {name: one["status"]["connector"]["state"] for name, one in answer.json().items()}
        return {}

    def write(self, chance: random.Random, method: str, path: str, body: Mapping[str, str] | None = None) -> int:
        """One request at any of them: its status, 0 when there was no answer."""
        worker = chance.choice(self.group.workers)
        try:
            return requests.request(method, worker.url + path, json=body, timeout=ASK_S).status_code
        except requests.RequestException:
            return 0

    def insist(self, method: str, path: str, body: Mapping[str, str], within_s: float) -> None:
        """Until it is done. Raises TimeoutError."""
        deadline, chance = time.monotonic() + within_s, random.Random(1)
        while not 200 <= (status := self.write(chance, method, path, body)) < 300:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{method} {path} was not done within {within_s:.0f} s: {status}")
            time.sleep(0.5)

    def owners(self) -> dict[str, list[Owner]]:
        """By connector, whom the leaders gave it to, in order: all assignments that the config topic has had."""
        worker_of, found = self._pools(), dict[str, list[Owner]]()
        for entry in self.group.config_records():
            if entry.key == ASSIGNMENT.key():
                for name, one in ConfigState().fold([entry]).assignment.placements.items():
                    known = found.setdefault(name, [])
                    if one.worker and (not known or known[-1] != Owner(worker_of[one.worker], one.since_ms)):
                        known.append(Owner(worker_of[one.worker], one.since_ms))
        return found

    def config_state(self) -> ConfigState:
        """What the config topic says in the end."""
        return ConfigState().fold(self.group.config_records())

    def _pools(self) -> dict[str, str]:
        return {one.url.removeprefix("http://"): f"w{number}" for number, one in enumerate(self.group.workers)}

    def keep(self, folder: Path) -> None:
        """Copies the log of each worker's every life."""
        for number, worker in enumerate(self.group.workers):
            (folder / f"w{number}.log").write_text("".join(command.said for command in worker.commands))

    def close(self) -> None:
        for link in self.links:
            link.mend()
        self.group.close()


def endpoint(of_pool: Callable[[str], str]) -> str:
    """The upload address of each worker's own pool, which a connector's configuration holds for all."""
    return of_pool("{}").format(f"${{env:{POOL}}}")


def sent(client: TargetClient, connector: str, table: str) -> list[Sent]:
    """All files of a connector, in order of acceptance."""
    return [
        Sent(connector, span(file["name"])[0], file["pool"], file["received_at_ms"], file["accepted_at_ms"])
        for file in files_of(client, table)
    ]
