"""The stage of the canary test: everything around a worker that takes a secret, and a secret in each."""

import base64
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import requests

from integration import scripted_target as script
from integration.canaries import Canaries
from integration.conftest import TopicFactory
from integration.harness import committed
from integration.letters import letters
from integration.registry import RegistryServer
from integration.scripted_target import Connection, ConnectProxy, ScriptedTarget
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.addons.devkit.target.process import TargetProcess
from parquet_sink.config.files import read_configuration
from parquet_sink.process.cache import cache_folder
from tests.worker.rest.certificates import make as make_certificates

ROOT: Final = Path(__file__).parents[1]
NAMES: Final = ("by-key", "by-token")
JAAS: Final = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";'
SCHEMA: Final = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]})
SETTINGS: Final = (
    *("vault-value", "jaas", "ssl", "proxy", "hmac", "transform", "client", "registry"),
    *("producer", "admin", "own consumer"),
)
"""Where secrets are that Spark's processes need."""
ELSEWHERE: Final = (
    *("vault-token", "unused", "token", "next client", "wrong"),
    *("tls", "rest", "misspelt", "wrong password"),
)
OURS: Final = frozenset(
    {
        "worker.properties",
        "vault.json",
        "secrets.properties",
        "proxy",
        "broken.properties",
        "users",
        "client.properties",
    }
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
            "PYTHONFAULTHANDLER": "1",
            "SINK_SECRET": self.secrets["hmac"],
        }

    @property
    def url(self) -> str:
        """Of the REST API, with TLS."""
        return f"https://127.0.0.1:{self.port}"

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

    def ask(self, method: str, path: str, body: Any = None, status: int = 200, password: str | None = None) -> str:
        """All that the REST API answers. password: None for the right one."""
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        headers = {} if data is None else {"Content-Type": "application/json"}
        signed = ("grace", self.secrets["rest"] if password is None else password)
        trusted = self.file("authority.pem")
        url = self.url + path
        answer = requests.request(method, url, data=data, headers=headers, timeout=60, auth=signed, verify=trusted)
        assert answer.status_code == status, answer.text
        return f"{answer.headers}\n{answer.text}"

    def configuration(self, name: str) -> dict[str, Any]:
        """A connector as it is posted; one of its keys is misspelt, so that nobody knows that it is a password."""
        found = dict(read_configuration(self.file(f"{name}.properties")).properties)
        return {"name": name, "config": {**found, "connect.ems.authorization.kye": self.secrets["misspelt"]}}

    def write(self, name: str, properties: Mapping[str, str]) -> None:
        (self.folder / name).write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


@contextmanager
def staged(broker: Broker, topic: TopicFactory, folder: Path) -> Iterator[Scene]:
    """A worker file, and connectors, with all that takes secrets.

    One signs with a key and goes through a proxy; another one signs with tokens, and asks a schema registry; the last
    one is like the first, and has a transform that fails.
    """
    canaries = Canaries()
    secrets = {name: canaries(name) for name in (*SETTINGS, *ELSEWHERE)}
    (folder / "home").mkdir()
    with ExitStack() as stack:
        target = stack.enter_context(TargetProcess(authorization=f"Bearer {secrets['vault-value']}"))
        tokens = stack.enter_context(TokenTarget(secrets["token"]))
        proxy = stack.enter_context(ConnectProxy())
        basic = base64.b64encode(f"ada:{secrets['registry']}".encode()).decode()
        registry = stack.enter_context(RegistryServer(authorization=f"Basic {basic}"))
        topics = (topic(prefix="key"), topic(prefix="token"))
        dead = topic(prefix="dead")
        made = Scene(canaries, folder, broker, target, tokens, proxy, registry, secrets, topics, dead, free_port())
        _write(made)
        yield made


def _write(scene: Scene) -> None:
    """The worker's file, the connectors' files, and where their secrets stand."""
    secrets, folder = scene.secrets, scene.folder
    (folder / "vault.json").write_text(json.dumps({"sink": {"key": f"Bearer {secrets['vault-value']}"}}))
    write_secrets(scene, secrets["client"])
    (folder / "proxy").write_text(secrets["proxy"] + "\n")
    (folder / "proxy").chmod(0o600)
    make_certificates(folder, secrets["tls"])
    (folder / "users").write_text(f"grace: {secrets['rest']}\n")
    asks = {"url": scene.url, "username": "grace", "password": secrets["rest"]}
    scene.write("client.properties", {**asks, "tls.ca.file": scene.file("authority.pem")})
    worker = {
        "bootstrap.servers": scene.broker.bootstrap_servers,
        "config.providers": "env,file,directory,vault",
        "config.providers.vault.class": "integration.canary_parts.Vault",
        "config.providers.vault.param.file": scene.file("vault.json"),
        "config.providers.vault.param.token": secrets["vault-token"],
        "consumer.sasl.jaas.config": JAAS.format(secrets["jaas"]),
        "consumer.ssl.key.password": secrets["ssl"],
        "producer.sasl.jaas.config": JAAS.format(secrets["producer"]),
        "listeners": scene.url,
        "listeners.https.ssl.keystore.location": scene.file("server.pem"),
        "listeners.https.ssl.key.password": secrets["tls"],
        "rest.basic.auth.file": scene.file("users"),
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
        "consumer.override.sasl.jaas.config": JAAS.format(secrets["own consumer"]),
    }
    scene.write("by-key.properties", by_key)
    scene.write("by-code.properties", {**by_key, "name": "by-code", "transforms.sealed.fails": "true"})
    scene.write("by-token.properties", by_token)


def write_secrets(scene: Scene, client: str) -> None:
    """A properties file that a config provider reads."""
    held = {"registry": f"ada:{scene.secrets['registry']}", "client": client, "unused": scene.secrets["unused"]}
    scene.write("secrets.properties", held)


def serves(scene: Scene) -> bool:
    """Whether the REST API does."""
    with suppress(requests.ConnectionError, AssertionError):
        return bool(scene.ask("GET", "/health"))
    return False


def failed(scene: Scene, name: str) -> bool:
    """Whether this connector has."""
    return '"FAILED"' in scene.ask("GET", f"/connectors/{name}/status")


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


def delivered(scene: Scene, count: int) -> bool:
    """Whether both targets have so many rows."""
    scene.target.client.sync()
    return scene.target.client.tables().get("KEYS", 0) >= count and rows_of(scene) >= count


def rows_of(scene: Scene) -> int:
    """Rows that were accepted with a token."""
    return sum(pq.read_metadata(io.BytesIO(file)).num_rows for file in files_of(scene))


def files_of(scene: Scene) -> list[bytes]:
    """Those in uploads; `check --connect` sends a form without one."""
    return [body[body.index(b"PAR1") : body.rindex(b"PAR1") + 4] for body in scene.tokens.accepted if b"PAR1" in body]


def in_kafka(scene: Scene) -> set[str]:
    """Secrets beside the group's offsets, or in dead letters."""
    beside = [
        committed(scene.broker, f"connect-{name}", topic) for name, topic in zip(NAMES, scene.topics, strict=True)
    ]
    assert all(found[0][0] for found in beside)
    dead = letters(scene.broker, scene.dead)
    assert len(dead) >= 2
    written = [repr((one.key(), one.value(), one.headers())) for one in dead]
    return scene.canaries.within(repr(beside) + "".join(written))


def at_the_target(scene: Scene) -> list[str]:
    """Secrets in uploaded files, and in what the target said."""
    found = scene.canaries.below(scene.target.log.parent)
    found += sorted(set().union(*map(scene.canaries.within, scene.tokens.accepted)))
    for number, content in enumerate(files_of(scene)):
        file = scene.folder / f"upload-{number}"
        file.write_bytes(content)
        found += sorted(scene.canaries.in_file(file))
    return found
