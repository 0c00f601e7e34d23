"""Secrets stay where they belong: one in every place that takes any, a worker at DEBUG with faults, a search of it all.

What is searched: what the program and other commands said, all that the REST API answers, Spark's pages and event log,
process lists, the run folder while it is there, temporary files, crash dumps, state, history, parked records, dead
letters, the group's metadata, uploaded files, and the target's own log.
"""

import base64
import hmac
import json
import os
import re
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from integration import processes
from integration.canary_scene import (
    NAMES,
    OURS,
    SETTINGS,
    Scene,
    at_the_target,
    avro,
    delivered,
    failed,
    in_kafka,
    produce,
    rows_of,
    serves,
    staged,
    write_secrets,
)
from integration.commands import Command
from integration.conftest import TopicFactory
from integration.processes import Process
from integration.registry import Trouble
from integration.spark_ui import pages
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from tests.messages import assert_says


@pytest.fixture
def scene(broker: Broker, topic: TopicFactory, tmp_path: Path) -> Iterator[Scene]:
    """See `staged`."""
    with staged(broker, topic, tmp_path) as made:
        yield made


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
    assert_says(broken, "config provider vault", "RuntimeError", "canary_parts.py")
    assert scene.canaries.within(said + broken) == set()


def worker_of(scene: Scene) -> list[str]:
    """The option for its file."""
    return ["--worker", scene.file("worker.properties")]


@pytest.mark.in_turn
def test_no_secret_is_left_or_said(scene: Scene) -> None:
    """With faults that echo what was sent, workers that die, records that are set aside, a refusal, a crash of Java."""
    port, events = free_port(), scene.folder / "events"
    events.mkdir()
    spark = {"eventLog.enabled": "true", "eventLog.compress": "false", "eventLog.dir": events.as_uri()}
    spark |= {"ui.enabled": "true", "ui.port": str(port)}
    options = [word for key, value in spark.items() for word in ("--conf", f"spark.{key}={value}")]
    echo = f"Bearer {scene.secrets['vault-value']} through {scene.secrets['proxy']}"
    scene.target.client.order_faults({"status": 503, "body": echo, "next": 1}, {"cut": "after", "next": 1})
    scene.registry.trouble(Trouble(500, json.dumps({"error_code": 1, "message": scene.secrets["registry"]}).encode()))
    produce(scene, 0)
    with running(scene, *options) as command:
        made = (*NAMES, "by-code")
        shown = [scene.ask("POST", "/connectors", scene.configuration(name), 201) for name in made]
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
            command.until(lambda name=name: failed(scene, name))
        shown += [scene.ask("GET", "/connectors/by-code/status"), pages(port), *answers(scene), asked(scene)]
        command.send()
        command.ended()
        said = command.said
    crashed = java_crashes(scene)
    assert not private.exists()
    assert "RuntimeError: ***** does not open this" in said
    assert "Fatal Python error: Aborted" in said, "a dump of a Python worker"
    assert list(scene.folder.rglob("core*")) == []
    leaks = {
        "answers": scene.canaries.within("".join(shown)),
        "log lines": scene.canaries.within(said),
        "log lines of a crash": scene.canaries.within(crashed),
        "what other commands say": scene.canaries.within(others(scene)),
        "files for all": scene.canaries.open_to_others(scene.folder / "store", scene.folder),
        "files": scene.canaries.below(scene.folder, ours),
        "Kafka": in_kafka(scene),
        "the target": at_the_target(scene),
    }
    assert not any(leaks.values()), "\n".join(f"{place}: {sorted(found)}" for place, found in leaks.items() if found)
    every_secret_was_used(scene)


@contextmanager
def running(scene: Scene, *options: str) -> Iterator[Command]:
    """The worker, as soon as it serves."""
    command = Command(scene.folder, ["worker", *options, scene.file("worker.properties")], scene.environment)
    try:
        command.until(lambda: serves(scene))
        yield command
    finally:
        command.close()


def java_crashes(scene: Scene) -> str:
    """Over a worker that came back with its connectors. What it said, all of it in JSON; Java leaves a dump behind."""
    with running(scene, "--log-format", "json") as command:
        produce(scene, 15)
        command.until(lambda: rows_of(scene) >= 20)
        [java] = processes.jvm(command.alive())
        os.kill(java.pid, signal.SIGSEGV)
        assert command.ended() == 1
        [dump] = scene.folder.glob("hs_err_pid*")
        assert "SIGSEGV" in dump.read_text(errors="replace")
        assert {"time", "level", "logger", "message"} <= set.intersection(
            *(set(json.loads(line)) for line in command.said.splitlines())
        )
        return command.said


def answers(scene: Scene) -> Iterator[str]:
    """All that the REST API says of connectors with secrets, and to those that are wrong."""
    paths = ("", "/config", "/tasks", "/status", "/tasks/0/status", "/offsets", "/topics")
    yield from (scene.ask("GET", f"/connectors/{name}{path}") for name in NAMES for path in paths)
    yield from map(partial(scene.ask, "GET"), ("/", "/connectors?expand=info&expand=status", "/progress", "/metrics"))
    config, wrong = scene.configuration("by-key")["config"], scene.secrets["wrong"]
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
    yield scene.ask("GET", "/connectors", status=401, password=scene.secrets["wrong password"])
    yield scene.ask("PUT", "/admin/loggers/root", {"level": "TRACE"})


def asked(scene: Scene) -> str:
    """What commands say that ask the worker."""
    options = ["--client-file", scene.file("client.properties")]
    said = scene.words("connectors", "show", "by-key", *options) + scene.words("status", *options, status=None)
    assert "by-key" in said
    return said


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
        scene.words("history", files[0], *worker_of(scene)),
        scene.words("history", "--json", files[1], *worker_of(scene)),
        scene.words("parked", "list", files[0], *worker_of(scene)),
        scene.words("check", "--connect", *files, *worker_of(scene)),
    ]
    assert "by-key" in said[0]
    return "".join(said)


def basic_of(user: str, password: str) -> str:
    """The header as OAuth 2.0 has it."""
    return "Basic " + base64.b64encode(f"{user}:{quote_plus(password)}".encode()).decode()


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
    assert held == set(SETTINGS)
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
