"""The command line with a schema registry: `run` in a process of its own, and `check --connect`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from integration.conftest import TopicFactory
from integration.formats.files import only
from integration.formats.records import FORMATS, record
from integration.harness import Sink
from integration.registry import RegistryServer
from integration.wire import encode_avro
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.cli.main import main
from tests.messages import assert_says

SECRET: Final = "canary-4711"
BASIC: Final = "Basic YWRhOmNhbmFyeS00NzEx"  # ada:canary-4711
SIGNING_IN: Final = {"value.converter.basic.auth.user.info": "ada:${env:CANARY}"}
TIMEOUT_S: Final = 120.0
Write = Callable[[Mapping[str, str]], list[str]]


@pytest.fixture
def files(tmp_path: Path, broker: Broker) -> Write:
    """Writes a connector file; gives the words of the command line that name it and the worker file."""

    def write(properties: Mapping[str, str]) -> list[str]:
        connector, worker = tmp_path / "connector.properties", tmp_path / "worker.properties"
        connector.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        worker.write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
        return ["--worker", str(worker), str(connector)]

    return write


@pytest.mark.in_turn
def test_run_until_caught_up(sink: Sink, broker: Broker, topic: TopicFactory, files: Write, tmp_path: Path) -> None:
    """Avro from a registry that wants a password, at DEBUG: status 0, all delivered, and no secret in what it says."""
    name = topic()
    with RegistryServer() as open_to_all:
        schema = json.dumps(record("Order", id="long", note="string"))
        values = encode_avro(open_to_all, name, schema, [{"id": n, "note": "für Ada"} for n in range(50)])
    broker.produce(name, [(None, value) for value in values])
    with RegistryServer(authorization=BASIC) as registry:
        registry.register(f"{name}-value", schema)
        arguments = files({**sink.properties(name), **FORMATS["avro"].properties(registry), **SIGNING_IN})
        ended = subprocess.run(
            [sys.executable, "-m", "parquet_sink", "run", "--until-caught-up", *arguments],
            env={**os.environ, "CANARY": SECRET, "PARQUET_SINK_LOG_LEVEL": "DEBUG"},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert ended.returncode == 0, ended.stdout[-3_000:]
    assert SECRET not in ended.stdout
    assert "Ada" not in ended.stdout
    assert [(row["id"], row["note"]) for row in only(sink).rows] == [(n, "für Ada") for n in range(50)]
    assert sink.offsets(name) == [50]


def test_check_tries_the_registry(
    sink: Sink,
    topic: TopicFactory,
    files: Write,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up: OK and status 0. Wrong password, or nobody there: FAILED with its cure and status 1, and no secret."""
    monkeypatch.setenv("CANARY", SECRET)
    name = topic()

    def check(url: str, **more: str) -> tuple[int, str]:
        own = {f"value.converter.{key.replace('_', '.')}": value for key, value in more.items()}
        avro = {"value.converter": "AvroConverter", "value.converter.schema.registry.url": url}
        status = main(["check", "--connect", *files({**sink.properties(name), **avro, **own})])
        said = capsys.readouterr().out
        assert SECRET not in said
        [line] = [line.strip() for line in said.splitlines() if "schema registry" in line]
        return status, line

    with RegistryServer(authorization=BASIC) as registry:
        right = check(registry.url, basic_auth_user_info="ada:${env:CANARY}")
        wrong = check(registry.url, basic_auth_user_info="ada:${env:CANARY}x")
    assert (right[0], wrong[0]) == (0, 1)
    assert_says(right[1], f"OK      schema registry {registry.url}: ", "answers when asked", "AVRO, JSON, PROTOBUF")
    assert_says(wrong[1], f"FAILED  schema registry {registry.url}: ", "answered 401", "Correct basic.auth.user.info")
    nowhere = f"http://127.0.0.1:{free_port()}"
    down = check(nowhere, max_retries="0")
    assert down[0] == 1
    assert down[1].startswith(f"FAILED  schema registry {nowhere}: ")
    assert "Connection refused" in down[1]
