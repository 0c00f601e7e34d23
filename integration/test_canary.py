"""Secrets stay where they belong: one in every place that takes any, a worker at DEBUG with faults, a search of it all.

What is searched: what the program and other commands said, all that the REST API answers, Spark's pages and event log,
process lists, the run folder while it is there, temporary files, state, history, parked records, dead letters, the
group's metadata, uploaded files, and the target's own log.
"""

import base64
import hmac
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus

import pyarrow.parquet as pq
import pytest
import requests

from integration import processes
from integration import scripted_target as script
from integration.canaries import Canaries
from integration.commands import Command
from integration.conftest import TopicFactory
from integration.harness import committed
from integration.letters import letters
from integration.processes import Process
from integration.registry import RegistryServer, Trouble
from integration.scripted_target import Connection, ConnectProxy, ScriptedTarget
from integration.spark_ui import pages
from parquet_sink.config.files import read_configuration
from parquet_sink.devkit.broker import Broker
from parquet_sink.devkit.ports import free_port
from parquet_sink.devkit.target.process import TargetProcess
from parquet_sink.process.cache import cache_folder

ROOT: Final = Path(__file__).parents[1]
NAMES: Final = ("by-key", "by-token")
JAAS: Final = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";'
SCHEMA: Final = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]})
OURS: Final = frozenset(
    {"worker.properties", "vault.json", "secrets.properties", "proxy", "broken.properties"}
    | {f"{name}.properties" for name in (*NAMES, "by-code")}
)
"""Files that the test wrote with secrets in them."""


class TokenTarget(ScriptedTarget):
    """Gives a token and takes files with it; it fails at first, and echoes whatever it is sent."""

    def __init__(self, token: str) -> None:
        super().__init__(then=self._behave)
        self._token, self._uploads, self._asked = token, 0, 0
        self.accepted: list[bytes] = []

    def _behave(self, connection: Connection) -> None:
        connection.read_body()
        connection.rest = connection.request.body  # for who reads it once more
        sent = connection.request.headers.get("authorization", "")
        if "/oauth2/token" in connection.request.line:
            self._asked += 1
            broken = {"error": "server_error", "error_description": f"for {sent}"}
            good = {"access_token": self._token, "token_type": "Bearer", "expires_in": 899}
            script.answer(*((503, as_json(broken)) if self._asked == 1 else (200, as_json(good))))(connection)
            return
        self._uploads += 1
        if (trouble := {1: 401, 2: 503}.get(self._uploads)) is not None:
            script.answer(trouble, f"for {sent}".encode())(connection)
            return
        self.accepted.append(connection.request.body)
        script.accept(connection)


def as_json(value: object) -> bytes:
    """As it is sent."""
    return json.dumps(value).encode()


@dataclass
class Scene:
    """Everything around the program, and the secrets in it."""

    canaries: Canaries
    folder: Path
    broker: Broker
    target: TargetProcess
    tokens: TokenTarget
    proxy: ConnectProxy
    registry: RegistryServer
    secrets: Mapping[str, str]
    topics: tuple[str, str]
    dead: str
    port: int

    @property
    def environment(self) -> dict[str, str]:
        """Of the program and of other commands."""
        return {
            "PARQUET_SINK_LOG_LEVEL": "DEBUG",
            "PARQUET_SINK_CACHE": str(cache_folder()),
            "HOME": str(self.folder / "home"),
            "PYTHONPATH": str(ROOT),
            "SINK_SECRET": self.secrets["hmac"],
        }

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def words(self, *words: str, status: int | None = 0) -> str:
        """What another command says, at DEBUG."""
        done = subprocess.run(
            [sys.executable, "-m", "parquet_sink", *words],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=self.folder,
        )
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> str:
        """All that the REST API answers."""
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        headers = {} if data is None else {"Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self.port}{path}"
        answer = requests.request(method, url, data=data, headers=headers, timeout=60)
        assert answer.status_code == status, answer.text
        return f"{answer.headers}\n{answer.text}"

    def write(self, name: str, properties: Mapping[str, str]) -> None:
        (self.folder / name).write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


@pytest.fixture
def scene(broker: Broker, topic: TopicFactory, tmp_path: Path) -> Iterator[Scene]:
    """A worker file, and two connectors, with all that takes secrets.

    One signs with a key and goes through a proxy; the other one signs with tokens, and asks a schema registry.
    """
    canaries = Canaries()
    names = ("vault-token", "vault-value", "jaas", "ssl", "proxy", "hmac", "transform", "client", "token", "registry")
    secrets = {name: canaries(name) for name in (*names, "producer", "admin", "unused", "next client", "wrong")}
    (tmp_path / "home").mkdir()
    with ExitStack() as stack:
        target = stack.enter_context(TargetProcess(authorization=f"Bearer {secrets['vault-value']}"))
        tokens = stack.enter_context(TokenTarget(secrets["token"]))
        proxy = stack.enter_context(ConnectProxy())
        basic = base64.b64encode(f"ada:{secrets['registry']}".encode()).decode()
        registry = stack.enter_context(RegistryServer(authorization=f"Basic {basic}"))
        topics = (topic(prefix="key"), topic(prefix="token"))
        dead = topic(prefix="dead")
        made = Scene(canaries, tmp_path, broker, target, tokens, proxy, registry, secrets, topics, dead, free_port())
        _write(made)
        yield made


def _write(scene: Scene) -> None:
    """The worker's file, the connectors' files, and where their secrets stand."""
    secrets, folder = scene.secrets, scene.folder
    (folder / "vault.json").write_text(json.dumps({"sink": {"key": f"Bearer {secrets['vault-value']}"}}))
    write_secrets(scene, secrets["client"])
    (folder / "proxy").write_text(secrets["proxy"] + "\n")
    (folder / "proxy").chmod(0o600)
    worker = {
        "bootstrap.servers": scene.broker.bootstrap_servers,
        "config.providers": "env,file,directory,vault",
        "config.providers.vault.class": "integration.canary_parts.Vault",
        "config.providers.vault.param.file": scene.file("vault.json"),
        "config.providers.vault.param.token": secrets["vault-token"],
        "consumer.sasl.jaas.config": JAAS.format(secrets["jaas"]),
        "consumer.ssl.key.password": secrets["ssl"],
        "producer.sasl.jaas.config": JAAS.format(secrets["producer"]),
        "listeners": f"http://127.0.0.1:{scene.port}",
        "config.storage.folder": scene.file("store"),
    }
    scene.write("worker.properties", worker)
    shared = {
        "connector.class": "parquet_sink.EmsSink",
        "connect.ems.commit.size.bytes": "1000000",
        "connect.ems.commit.records": "100",
        "connect.ems.commit.interval.ms": "1000",
        "connect.ems.retry.interval": "1000",
        "connect.ems.tmp.dir": scene.file("data"),
        "errors.tolerance": "all",
        "errors.log.enable": "true",
    }
    by_key = {
        **shared,
        "name": "by-key",
        "topics": scene.topics[0],
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "connect.ems.endpoint": scene.target.endpoint(),
        "connect.ems.authorization.key": "${vault:sink:key}",
        "connect.ems.target.table": "KEYS",
        "connect.ems.pool.max.idle": "0",
        "connect.ems.proxy.host": "127.0.0.1",
        "connect.ems.proxy.port": str(scene.proxy.port),
        "connect.ems.proxy.auth.type": "BASIC",
        "connect.ems.proxy.auth.username": "grace",
        "connect.ems.proxy.auth.password": f"${{directory:{folder}:proxy}}",
        "connect.ems.obfuscation.fields": "name",
        "connect.ems.obfuscation.method": "hmac-sha256",
        "connect.ems.obfuscation.hmac.key": "${env:SINK_SECRET}",
        "transforms": "sealed",
        "transforms.sealed.type": "integration.canary_parts.Sealed",
        "transforms.sealed.key": secrets["transform"],
    }
    by_token = {
        **shared,
        "name": "by-token",
        "topics": scene.topics[1],
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": scene.registry.url,
        "value.converter.basic.auth.credentials.source": "USER_INFO",
        "value.converter.basic.auth.user.info": f"${{file:{scene.file('secrets.properties')}:registry}}",
        "connect.ems.endpoint": scene.tokens.endpoint,
        "connect.ems.oauth2.client.id": "sink",
        "connect.ems.oauth2.client.secret": f"${{file:{scene.file('secrets.properties')}:client}}",
        "connect.ems.target.table": "TOKENS",
        "errors.deadletterqueue.topic.name": scene.dead,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "admin.override.sasl.jaas.config": JAAS.format(secrets["admin"]),
    }
    scene.write("by-key.properties", by_key)
    scene.write("by-code.properties", {**by_key, "name": "by-code", "transforms.sealed.fails": "true"})
    scene.write("by-token.properties", by_token)


def write_secrets(scene: Scene, client: str) -> None:
    """A properties file that a config provider reads."""
    held = {"registry": f"ada:{scene.secrets['registry']}", "client": client, "unused": scene.secrets["unused"]}
    scene.write("secrets.properties", held)


def ours(path: Path) -> bool:
    """What the test itself wrote, and the worker's own store, which is looked at by itself."""
    return path.parent.name == "store" or path.name in OURS


def test_the_files_are_right(scene: Scene) -> None:
    """Every place takes its secret, and a check at DEBUG says none; nor what a provider's class says when it breaks."""
    said = scene.words("check", scene.file("by-key.properties"), scene.file("by-token.properties"), *worker_of(scene))
    assert "OK (connector by-key" in said
    text = (scene.folder / "by-key.properties").read_text().replace("${vault:sink:key}", "${vault:broken:key}")
    (scene.folder / "broken.properties").write_text(text)
    broken = scene.words("check", scene.file("broken.properties"), *worker_of(scene), status=2)
    assert "the config provider vault failed with RuntimeError in canary_parts.py" in broken
    assert scene.canaries.within(said + broken) == set()


def worker_of(scene: Scene) -> list[str]:
    """The option for its file."""
    return ["--worker", scene.file("worker.properties")]


def test_no_secret_is_left_or_said(scene: Scene) -> None:
    """With faults that echo what was sent, workers that die, records that are set aside, and a refusal at the end."""
    port, events = free_port(), scene.folder / "events"
    events.mkdir()
    spark = {"eventLog.enabled": "true", "eventLog.compress": "false", "eventLog.dir": events.as_uri()}
    spark |= {"ui.enabled": "true", "ui.port": str(port)}
    options = [word for key, value in spark.items() for word in ("--conf", f"spark.{key}={value}")]
    echo = f"Bearer {scene.secrets['vault-value']} through {scene.secrets['proxy']}"
    scene.target.client.order_faults({"status": 503, "body": echo, "next": 1}, {"cut": "after", "next": 1})
    scene.registry.trouble(Trouble(500, json.dumps({"error_code": 1, "message": scene.secrets["registry"]}).encode()))
    produce(scene, 0)
    command = Command(scene.folder, ["worker", *options, scene.file("worker.properties")], scene.environment)
    try:
        command.until(lambda: serves(scene))
        made = (*NAMES, "by-code")
        shown = [scene.ask("POST", "/connectors", configuration(scene, name), 201) for name in made]
        command.until(lambda: delivered(scene, 5))
        shown += [pages(port), *answers(scene)]
        private = seen_while_it_runs(scene, command)
        shown += [another_secret(scene, command)]
        for worker in python_workers(command):
            os.kill(worker.pid, signal.SIGABRT)
        produce(scene, 5)
        command.until(lambda: delivered(scene, 10))
        scene.target.client.order_faults({"status": 403, "body": echo})
        produce(scene, 10)
        for name in ("by-key", "by-code"):
            command.until(lambda name=name: '"FAILED"' in scene.ask("GET", f"/connectors/{name}/status"))
        shown += [scene.ask("GET", "/connectors/by-code/status")]
        shown += [pages(port), *answers(scene)]
        command.send()
        command.ended()
        said = command.said
    finally:
        command.close()
    assert not private.exists()
    assert "RuntimeError: ***** does not open this" in said
    assert scene.canaries.within("".join(shown)) == set()
    assert scene.canaries.within(said) == set()
    assert scene.canaries.within(others(scene)) == set()
    assert scene.canaries.open_to_others(scene.folder / "store", scene.folder) == []
    assert scene.canaries.below(scene.folder, ours) == []
    assert list(scene.folder.rglob("core*")) == []
    nothing_in_kafka(scene)
    nothing_at_the_target(scene)
    every_secret_was_used(scene)


def serves(scene: Scene) -> bool:
    """Whether the REST API does."""
    with suppress(requests.ConnectionError):
        return requests.get(f"http://127.0.0.1:{scene.port}/health", timeout=10).ok
    return False


def configuration(scene: Scene, name: str) -> dict[str, Any]:
    """A connector as it is posted."""
    return {"name": name, "config": read_configuration(scene.file(f"{name}.properties")).properties}


def answers(scene: Scene) -> Iterator[str]:
    """All that the REST API says of connectors with secrets, and to those that are wrong."""
    paths = ("", "/config", "/tasks", "/status", "/tasks/0/status", "/offsets", "/topics")
    yield from (scene.ask("GET", f"/connectors/{name}{path}") for name in NAMES for path in paths)
    yield from map(partial(scene.ask, "GET"), ("/", "/connectors?expand=info&expand=status", "/progress", "/metrics"))
    config, wrong = configuration(scene, "by-key")["config"], scene.secrets["wrong"]
    for changes in (
        {},
        {"connect.ems.authorization.key": wrong},
        {"connect.ems.authorization.key": "${vault:broken:key}"},
        {"transforms.sealed.key": wrong, "transforms.sealed.type": "integration.canary_parts.Nobody"},
        {"connect.ems.oauth2.client.secret": wrong, "connect.ems.endpoint": f"http://u:{wrong}@h/"},
        {"consumer.override.sasl.jaas.config": wrong, "topics": ""},
    ):
        changed = {**config, **changes}
        yield scene.ask("PUT", "/connector-plugins/EmsSink/config/validate", changed)
        if changes:
            yield scene.ask("PUT", "/connectors/by-key/config", changed, 400)
    yield scene.ask("PUT", "/connectors/by-key/config", f'{{"connect.ems.authorization.key": "AppKey {wrong}", ', 500)
    yield scene.ask("PUT", "/admin/loggers/root", {"level": "TRACE"})


def another_secret(scene: Scene, command: Command) -> str:
    """A secret that was changed where a config provider finds it is used after a restart. What is answered."""
    write_secrets(scene, scene.secrets["next client"])
    answered = scene.ask("POST", "/connectors/by-token/restart?includeTasks=true", status=202)
    scene.broker.produce(scene.topics[1], [(None, avro(scene, bytes([2 * 7])))])
    basic = basic_of("sink", scene.secrets["next client"])
    command.until(lambda: any(one.headers.get("authorization") == basic for one in scene.tokens.requests))
    return answered


def others(scene: Scene) -> str:
    """What other commands say about the connectors, at DEBUG."""
    files = [scene.file(f"{name}.properties") for name in NAMES]
    said = [
        scene.words("history", "list", files[0], *worker_of(scene)),
        scene.words("history", "list", "--json", files[1], *worker_of(scene)),
        scene.words("parked", "list", files[0], *worker_of(scene)),
        scene.words("check", "--connect", *files, *worker_of(scene), status=1),
    ]
    assert "by-key" in said[0]
    return "".join(said)


def produce(scene: Scene, first: int) -> None:
    """Five good records for each connector, and one bad one."""
    numbers = range(first, first + 5)
    good = [(None, json.dumps({"n": n, "name": "Ada"}).encode()) for n in numbers]
    scene.broker.produce(scene.topics[0], [*good, (None, b"{ no")])
    values = [*(bytes([2 * n]) for n in numbers), b"\xff"]
    scene.broker.produce(scene.topics[1], [(None, avro(scene, value)) for value in values])


def avro(scene: Scene, value: bytes) -> bytes:
    """A record with the id of its schema."""
    return b"\0" + scene.registry.register(f"{scene.topics[1]}-value", SCHEMA).to_bytes(4, "big") + value


def basic_of(user: str, password: str) -> str:
    """The header as OAuth 2.0 has it."""
    return "Basic " + base64.b64encode(f"{user}:{quote_plus(password)}".encode()).decode()


def delivered(scene: Scene, count: int) -> bool:
    """Whether both targets have so many rows."""
    scene.target.client.sync()
    return scene.target.client.tables().get("KEYS", 0) >= count and rows_of(scene) >= count


def rows_of(scene: Scene) -> int:
    """Rows that were accepted with a token."""
    return sum(pq.read_metadata(io.BytesIO(parquet_of(body))).num_rows for body in scene.tokens.accepted)


def parquet_of(body: bytes) -> bytes:
    """The file in an upload."""
    return body[body.index(b"PAR1") : body.rindex(b"PAR1") + 4]


def python_workers(command: Command) -> list[Process]:
    """Of Spark's tasks."""
    found = processes.workers(command.alive())
    assert found
    return found


def run_folder(command: Command) -> Path:
    """Where Java has its temporary files is below it."""
    [java] = processes.jvm(command.alive())
    found = re.search(r"-Djava\.io\.tmpdir=(\S+)/spark", java.command)
    assert found is not None
    return Path(found[1])


def seen_while_it_runs(scene: Scene, command: Command) -> Path:
    """Secrets are in files for the owner alone, and in no process list; nobody would leave a core dump. The folder."""
    folder = run_folder(command)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    settings = list(folder.rglob("settings.json"))
    held = set().union(*map(scene.canaries.in_file, settings))
    assert held == set(scene.secrets) - {"vault-token", "unused", "token", "next client", "wrong"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in settings} == {0o600}
    assert scene.canaries.open_to_others(folder, folder.parent) == []
    alive = command.alive()
    assert len(alive) > 3
    for one in alive:
        assert scene.canaries.within(one.command) == set()
        with suppress(OSError):  # one that ended meanwhile
            place = Path("/proc", str(one.pid))
            assert scene.canaries.within((place / "environ").read_bytes()) <= {"hmac"}, one.command
            assert re.search(r"Max core file size +0 ", (place / "limits").read_text()), one.command
    return folder


def nothing_in_kafka(scene: Scene) -> None:
    """Neither beside the group's offsets nor in dead letters."""
    beside = [
        committed(scene.broker, f"connect-{name}", topic) for name, topic in zip(NAMES, scene.topics, strict=True)
    ]
    assert all(found[0][0] for found in beside)
    dead = letters(scene.broker, scene.dead)
    assert len(dead) >= 2
    written = [repr((one.key(), one.value(), one.headers())) for one in dead]
    assert scene.canaries.within(repr(beside) + "".join(written)) == set()


def nothing_at_the_target(scene: Scene) -> None:
    """In no file, and not in what the target said."""
    assert scene.canaries.below(scene.target.log.parent) == []
    for number, body in enumerate(scene.tokens.accepted):
        assert scene.canaries.within(body) == set()
        file = scene.folder / f"upload-{number}"
        file.write_bytes(parquet_of(body))
        assert scene.canaries.in_file(file) == set()


def every_secret_was_used(scene: Scene) -> None:
    """Else it would be no wonder that it is nowhere: each came where it should."""
    secrets = scene.secrets
    sent = {request.headers.get("authorization") for request in scene.tokens.requests}
    clients = {basic_of("sink", secrets[name]) for name in ("client", "next client")}
    assert sent == {*clients, f"Bearer {secrets['token']}"}
    grace = base64.b64encode(f"grace:{secrets['proxy']}".encode()).decode()
    assert {head.headers["proxy-authorization"] for head in scene.proxy.heads} == {f"Basic {grace}"}
    assert {one.headers["authorization"] for one in scene.registry.asked} == {
        "Basic " + base64.b64encode(f"ada:{secrets['registry']}".encode()).decode()
    }
    hidden = hmac.new(secrets["hmac"].encode(), b"Ada", sha256).hexdigest()
    assert set(scene.target.client.table("KEYS")["name"].to_pylist()) == {hidden}
