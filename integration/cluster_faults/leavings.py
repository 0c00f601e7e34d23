"""Connectors that leave something at each worker that had them, and what must have become of it in the end.

One sink does not wait for its archive, posts notices, and parks each fifth record; archive and webhook are away half of
the time. One source follows a file that is rotated while lines of it are unread.
"""

import json
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import requests
from confluent_kafka import Consumer, Producer, TopicPartition

from integration.cluster_faults.link import Link
from integration.cluster_faults.workers import ASK_S, Workers
from integration.oracle.judge import files_of
from integration.s3.server import ACCESS_KEY, REGION, SECRET_KEY, S3Server
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.target.client import TargetClient
from tests.notify.receiver import Receiver

SINK: Final = "leaves"
SOURCE: Final = "lines"
BUCKET: Final = "archived"
STEP_S: Final = 1.0
AWAY_S: Final = 10.0
ROTATE_S: Final = 15.0
BAD_EVERY: Final = 5
_LONG: Final = 100


class Leavings:
    """`open` first, then `start` the load, which goes on until `stop`; `close` in any case."""

    def __init__(self, broker: Broker, endpoint: str, folder: Path) -> None:
        self._broker, self._endpoint, self._tmp = broker, endpoint, folder / "tmp"
        self._file = folder / "lines.txt"
        self._parts = ExitStack()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leavings", daemon=True)
        self.failure: str | None = None
        self.bad: set[int] = set()
        self.records = self.lines = 0
        self._received: set[int] = set()

    def open(self) -> None:
        """Start archive and webhook."""
        self._server = self._parts.enter_context(S3Server())
        self._server.client.create_bucket(Bucket=BUCKET)
        self._archive = self._parts.enter_context(Link())
        self._archive.to = self._server.port
        self._receiver = Receiver()
        self._parts.callback(self._receiver.shutdown)
        self._file.touch()

    def close(self) -> None:
        """End everything that it started."""
        self._ends.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._parts.close()

    def configs(self) -> dict[str, dict[str, str]]:
        """Return configurations by name, once their topics are there."""
        for topic in (SINK, SOURCE):
            self._broker.create_topic(topic, 1)
        string = "org.apache.kafka.connect.storage.StringConverter"
        source = {"connector.class": "FileStreamSource", "file": str(self._file), "topic": SOURCE}
        sink = {
            "connector.class": "com.celonis.kafka.connect.ems.sink.EmsSinkConnector",
            "topics": SINK,
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "connect.ems.endpoint": self._endpoint,
            "connect.ems.authorization.key": "AppKey demo",
            "connect.ems.target.table": SINK.upper(),
            "connect.ems.commit.size.bytes": "1000000",
            "connect.ems.commit.records": "500",
            "connect.ems.commit.interval.ms": "1000",
            "connect.ems.tmp.dir": str(self._tmp),
            "connect.ems.retry.interval": "1000",
            "connect.ems.error.policy": "CONTINUE",
            "connect.ems.flattener.jsonblob.chunks": "1",
            "connect.ems.data.fallback.varchar.length": "40",
            "connect.ems.max.retries": "1000",
            "connect.ems.http.response.timeout.ms": "2000",
            "connect.ems.archive.url": f"s3://{BUCKET}/kept",
            "connect.ems.archive.required": "false",
            "connect.ems.s3.endpoint": f"http://127.0.0.1:{self._archive.port}",
            "connect.ems.s3.region": REGION,
            "connect.ems.s3.access.key.id": ACCESS_KEY,
            "connect.ems.s3.secret.access.key": SECRET_KEY,
            "connect.ems.notify.url": self._receiver.url,
        }
        return {SINK: {"name": SINK, **sink}, SOURCE: {"name": SOURCE, **source, "value.converter": string}}

    def start(self) -> None:
        """Begin with the load."""
        self._thread.start()

    def stop(self) -> None:
        """End the load, with archive and webhook there again."""
        self._ends.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._archive.mend()
        self._receiver.answers = [(204, {})]

    def _run(self) -> None:
        try:
            self._load()
        except Exception as error:  # noqa: BLE001 - the run ends with it
            self.failure = f"{type(error).__name__}: {error}"

    def _load(self) -> None:
        servers = {"bootstrap.servers": self._broker.bootstrap_servers, "log_level": 0}
        producer = Producer({**servers, "enable.idempotence": True})
        rotated_s, toggled_s, away, rotated_at = time.monotonic(), time.monotonic(), False, 0
        with closing(Consumer({**servers, "group.id": uuid.uuid4().hex})) as consumer:
            consumer.assign([TopicPartition(SOURCE, 0, 0)])
            while not self._ends.wait(STEP_S):
                self._produce(producer)
                self._append()
                self._receive(consumer)
                now_s = time.monotonic()
                if now_s - toggled_s >= AWAY_S:
                    toggled_s, away = now_s, not away
                    (self._archive.cut if away else self._archive.mend)()
                    self._receiver.answers = [(503 if away else 204, {})]
                begun = bool(self._received)  # a file that is renamed before the source begins is nobody's
                if begun and now_s - rotated_s >= ROTATE_S and self._received >= set(range(rotated_at)):
                    rotated_s, rotated_at = now_s, self.lines
                    self._file.rename(self._file.with_name(f"lines.txt.{rotated_at}"))
                    self._append()

    def _produce(self, producer: Producer) -> None:
        for number in range(self.records, self.records + BAD_EVERY):
            value = {"n": number, **({"text": "x" * _LONG} if number % BAD_EVERY == 0 else {})}
            producer.produce(SINK, json.dumps(value).encode(), f"key-{number}".encode(), partition=0)
            self.bad |= {number} if number % BAD_EVERY == 0 else set()
        self.records += BAD_EVERY
        assert producer.flush(60) == 0, "the broker takes no records"

    def _append(self) -> None:
        with self._file.open("a") as file:
            file.writelines(f"{number}\n" for number in range(self.lines, self.lines + BAD_EVERY))
        self.lines += BAD_EVERY

    def _receive(self, consumer: Consumer) -> None:
        for message in consumer.consume(10_000, 0.1):
            if message.error() is None:
                self._received.add(int(message.value() or b""))

    def waiting(self) -> list[Path]:
        """Return what waits for archive or webhook at any worker."""
        return [path for kind in (".archive/*/*", ".notices/*.json") for path in self._tmp.glob(f"*/{SINK}/{kind}")]

    def is_read(self) -> bool:
        """Return True once all lines were received."""
        servers = {"bootstrap.servers": self._broker.bootstrap_servers, "log_level": 0}
        with closing(Consumer({**servers, "group.id": uuid.uuid4().hex})) as consumer:
            end = consumer.get_watermark_offsets(TopicPartition(SOURCE, 0), timeout=10)[1]
            consumer.assign([TopicPartition(SOURCE, 0, 0)])
            deadline = time.monotonic() + 10
            while len(self._received) < self.lines <= end and time.monotonic() < deadline:
                self._receive(consumer)
        return len(self._received) >= self.lines

    def is_parked(self, workers: Workers) -> bool:
        """Return True once each record that has no row is parked at a worker."""
        return self._parked(workers) >= self.bad

    def _parked(self, workers: Workers) -> set[int]:
        path = f"{workers.group.workers[0].url}/connectors/{SINK}"
        holders = self._get(f"{path}/workers", {}).get("workers", ())
        return {offset for holder in holders for offset in self._parked_at(path, holder["worker_id"])}

    def _parked_at(self, path: str, worker_id: str) -> Iterator[int]:
        after: str | None = "0"
        while after is not None:
            query = {"worker": worker_id, "limit": "1000", "after": after}
            page = self._get(f"{path}/parked/records", query)
            yield from (record["offset"] for record in page.get("records", ()))
            after = page.get("next")

    def _get(self, url: str, query: Mapping[str, str]) -> dict[str, Any]:
        answer = requests.get(url, params=query, timeout=ASK_S)
        return dict(answer.json()) if answer.ok else {}

    def troubles(self, client: TargetClient, workers: Workers) -> list[str]:
        """Return what was lost, in words."""
        accepted = {file["name"] for file in files_of(client, SINK.upper())}
        archived = {key.rpartition("/")[2] for key in self._server.keys(BUCKET)}
        lacking = {
            "files are not archived": accepted - archived,
            "files have no notice": accepted - {notice["file"] for _, notice in self._receiver.taken},
            "records are not parked": self.bad - self._parked(workers),
            "lines were not received": set(range(self.lines)) - self._received,
        }
        print(f"left: {len(accepted)} files, {len(self.bad)} records to park, {self.lines} lines", flush=True)
        return [f"{len(missing)} {what}: {sorted(missing)[:3]}" for what, missing in lacking.items() if missing]
