"""Our worker, and a group of ours, started as a user starts them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Final

from integration.commands import Command
from integration.connect.clients import KCCTL
from integration.connect.play import until_ready
from integration.connect.steps import Ask, Side
from integration.worker_group import WorkerGroup
from parquet_sink import __version__
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.jars import read_lock
from parquet_sink.addons.devkit.ports import free_port

START_S: Final = 120.0
LOGGER: Final = "parquet_sink.worker.rest.app"
CLASS: Final = "com.celonis.kafka.connect.ems.sink.EmsSinkConnector"
PREFIX: Final = "connect.ems."
ODD: Final = "odd name & u"


_KEYS: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "consumer.auto.offset.reset": "earliest",
}


def properties(broker: Broker, port: int, folder: Path) -> dict[str, str]:
    """The worker's file."""
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "listeners": f"http://127.0.0.1:{port}",
        "config.storage.folder": str(folder / "store"),
        **_KEYS,
    }


@contextmanager
def our_worker(broker: Broker, folder: Path) -> Iterator[Side]:
    """A worker that runs. Fails with the end of its log when it does not come up."""
    port = free_port()
    for name in ("out", "tmp"):
        (folder / name).mkdir()
    path = folder / "worker.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties(broker, port, folder).items()))
    worker = Command(folder, ["worker", str(path)], {})
    try:
        url = f"http://127.0.0.1:{port}"
        until_ready(url, lambda: worker.process.poll() is None, lambda: worker.said, START_S)
        yield side(port, folder=folder)
        worker.send()
        assert worker.ended(60) == 0, worker.said[-3_000:]
    finally:
        worker.close()


class Turns:
    """Picks a worker for each request: the next one, for kcctl one that follows, for its own loggers the first."""

    def __init__(self, side: Side, group: WorkerGroup) -> None:
        follower = next(one for one in group.workers if one is not group.leader(group.workers[0]))
        self._first, self._follower, self._next = side.url, follower.url, cycle((side.url, *side.others))
        self._group = group

    def late(self, what: str) -> None:
        """A wait in vain ends the play, with the last words of each worker."""
        raise AssertionError(f"{what}\n{self._group.said()}")

    def __call__(self, ask: Ask) -> str:
        if ask.path.startswith("/admin/loggers") and "scope=cluster" not in ask.path:
            return self._first
        return self._follower if ask.client == KCCTL else next(self._next)


@contextmanager
def our_group(broker: Broker, folder: Path, count: int) -> Iterator[tuple[Side, Turns]]:
    """So many workers that see each other, and who of them is asked."""
    for name in ("out", "tmp"):
        (folder / name).mkdir()
    group = WorkerGroup(folder, broker, count, _KEYS)
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda worker: worker.start(), group.workers))
        group.until(lambda: len(group.placed(group.workers[0])) == count)
        found = side(*(int(one.url.rpartition(":")[2]) for one in group.workers), folder=folder)
        yield found, Turns(found, group)
    finally:
        group.close()


def side(port: int, *others: int, folder: Path) -> Side:
    """How it is asked, and what stands for what is its own. others: ports of further workers of its group."""
    own = {
        "endpoint": f"directory:{folder}/out",
        "target.table": "JUDGED",
        "commit.size.bytes": "1000000",
        "commit.records": "1000",
        "commit.interval.ms": "1000",
        "tmp.dir": f"{folder}/tmp",
    }
    urls = [f"http://127.0.0.1:{one}" for one in (port, *others)]
    texts = {
        **dict.fromkeys(urls, "<url>"),
        **{url.removeprefix("http://"): "<worker>" for url in urls},
        CLASS: "<class>",
        CLASS.rpartition(".")[2]: "<Class>",
        str(folder): "<folder>",
        LOGGER: "<logger>",
        read_lock().kafka_version: "<version>",
        __version__: "<version>",
    }
    keys = {f"{PREFIX}{name}": value for name, value in own.items()}
    found = Side("parquet-sink", urls[0], CLASS, LOGGER, keys, PREFIX, texts, tuple(urls[1:]))
    if not others:
        return found
    return replace(found, odd=ODD, texts={**texts, ODD: found.odd})  # in a group the name is to be of ASCII
