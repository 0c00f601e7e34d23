"""What deploy/ has for Kubernetes is started as far as a machine without Kubernetes can do it."""

import json
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from integration import certificates, kubernetes_api
from integration.commands import Command
from parquet_sink import __version__
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.ports import free_port
from tests.docs import deployments

HAS = re.compile("connector orders: .*has it now")
USER = {"Authorization": "Basic b3BlcmF0b3I6c2VjcmV0"}  # operator:secret


def pod(
    root: Path,
    ports: Mapping[str, int],
    deployment: deployments.Deployment | None = None,
    more: str = "",
    made: Path | None = None,
) -> list[str]:
    """Puts the files of the pod below a folder, its ports elsewhere; the words of its command.

    deployment: None for the one worker. more: lines of the worker file. made: certificates; None: they are made.
    """
    deployment = deployment or deployments.kubernetes()

    def here(text: str) -> str:
        for before, port in ports.items():
            text = text.replace(before, f"127.0.0.1:{port}" if before.endswith(":9092") else str(port))
        return text.replace("/etc/parquet-sink", f"{root}/etc").replace("/data/", f"{root}/data/")

    for path, text in deployment.files.items():
        place = Path(here(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(here(text), encoding="utf-8")
    made = made or certificates.make(Path(tempfile.mkdtemp(dir=root)))
    (root / "etc" / "rest" / "server.pem").write_text((made / "good.pem").read_text())
    (root / "etc" / "rest" / "ca.pem").write_text((made / "ca.pem").read_text())
    worker_file = Path(here(deployment.command[-1]))
    worker_file.write_text(worker_file.read_text(encoding="utf-8") + more)
    (root / "orders.json").write_text(here(json.dumps({"name": "orders", "config": dict(deployment.connector)})))
    return [here(word) for word in deployment.command]


def asked(port: int, method: str, path: str, headers: Mapping[str, str] = {}, body: str | None = None) -> int:
    """The status, 0 when nobody answers."""
    return answered(port, method, path, headers, body)[0]


def answered(
    port: int, method: str, path: str, headers: Mapping[str, str] = {}, body: str | None = None
) -> tuple[int, bytes]:
    """Status and content; 0 when nobody answers. As a kubelet asks: without looking at the certificate."""
    context = ssl._create_unverified_context()
    connection = HTTPSConnection("127.0.0.1", port, timeout=12, context=context)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def checked(port: int) -> int:
    """The exit status of the health check of compose, which asks the container's loopback."""
    service = deployments.yaml_of("compose/compose.yaml")["services"]["worker"]
    how, python, *words = service["healthcheck"]["test"]
    assert (how, python) == ("CMD", "python")
    words = [word.replace("8083", str(port)) for word in words]
    return subprocess.run([sys.executable, *words], stderr=subprocess.DEVNULL, timeout=30, check=False).returncode


@pytest.mark.in_turn
def test_the_command_of_the_deployment(tmp_path: Path) -> None:
    """Its probes are answered, also while no broker is there; others sign in; a stop takes less than its grace period.

    A connector that comes meanwhile waits, its secret stays where it is, and each line of the log is JSON.
    """
    ports = {"kafka-bootstrap.kafka:9092": free_port(), "8083": free_port(), "8443": free_port()}
    words, probe = pod(tmp_path, ports), deployments.container()["startupProbe"]
    path, port = probe["httpGet"]["path"], ports["8443"]
    worker = Command(tmp_path, words, {})
    try:
        allowed_s = probe["periodSeconds"] * probe["failureThreshold"]
        worker.until(lambda: asked(port, "GET", path) == 200, allowed_s)
        assert asked(port, "GET", "/connectors") == 401
        assert asked(port, "POST", "/connectors", USER, (tmp_path / "orders.json").read_text()) == 201
        worker.until(lambda: "orders: starting" in worker.said)
        assert asked(port, "GET", path) == 200
        assert checked(ports["8083"]) == 0
        began = time.monotonic()
        worker.send()
        assert worker.ended() == 0
        assert time.monotonic() - began < deployments.kubernetes().grace_s
        assert checked(ports["8083"]) != 0
        assert deployments.KEY not in (tmp_path / "data" / "store" / "connectors.json").read_text()
        assert all(json.loads(line)["message"] for line in worker.said.splitlines())
    finally:
        worker.close()


def pod_of_the_set(root: Path, broker: Broker, more: str = "", made: Path | None = None) -> tuple[Command, int]:
    """The command of a pod of the StatefulSet, started, and its port for others."""
    (server,) = broker.bootstrap_servers.split(",")
    ports = {"kafka-bootstrap.kafka:9092": int(server.rpartition(":")[2]), "8083": free_port(), "8443": free_port()}
    deployment = deployments.kubernetes_workers()
    factors = "".join(f"{what}.storage.replication.factor=1\n" for what in ("config", "status", "offset"))
    *words, file = pod(root, ports, deployment, factors + more, made)
    own = shutil.copy(file, f"{file}-{ports['8443']}")  # several pods have all other files at the same places
    return Command(root, [*words, own], deployment.environment), ports["8443"]


def workers(port: int) -> list[dict[str, Any]]:
    """As a pod tells them; none when it does not answer."""
    status, content = answered(port, "GET", "/workers", USER)
    return json.loads(content)["workers"] if status == 200 else []


@pytest.mark.in_turn
def test_the_command_of_the_stateful_set(tmp_path: Path, broker: Broker) -> None:
    """A pod of the group is ready, leads it under the name that its pod has for the others, and has what is made."""
    worker, port = pod_of_the_set(tmp_path, broker)
    try:
        path = deployments.container(deployments.WORKERS)["readinessProbe"]["httpGet"]["path"]
        worker.until(lambda: asked(port, "GET", path) == 200, 120)
        worker.until(lambda: [one["leads"] for one in workers(port)] == [True])
        body = (tmp_path / "orders.json").read_text()
        worker.until(lambda: asked(port, "POST", "/connectors", USER, body) == 201)
        worker.until(lambda: bool(HAS.search(worker.said)))
        (found,) = workers(port)
        name = f"parquet-sink-0.parquet-sink-workers.default.svc:{port}"
        assert (found["worker_id"], found["url"]) == (name, f"https://{name}")
        began = time.monotonic()
        worker.send()
        assert worker.ended() == 0
        assert time.monotonic() - began < deployments.kubernetes_workers().grace_s
    finally:
        worker.close()


@pytest.mark.in_turn
def test_pods_of_the_stateful_set_share_connectors(tmp_path: Path, broker: Broker) -> None:
    """They ask each other by TLS: one that does not lead passes a write on; what a stopped one had the other takes."""
    made = certificates.make(Path(tempfile.mkdtemp(dir=tmp_path)))
    here = f"group.id={tmp_path.name}\nrest.advertised.host.name=127.0.0.1\n"  # in place of the name of the pod
    here += "".join(f"{what}.storage.topic={tmp_path.name}-{what}\n" for what in ("config", "status", "offset"))
    pods = {port: command for command, port in (pod_of_the_set(tmp_path, broker, here, made) for _ in range(2))}
    try:
        for port, command in pods.items():
            command.until(partial(_sees_two_and_a_leader, port))
        follower = next(port for port in pods if f"127.0.0.1:{port}" not in _leader(port))
        body = (tmp_path / "orders.json").read_text()
        pods[follower].until(lambda: _is_there(*answered(follower, "POST", "/connectors", USER, body)))
        pods[follower].until(lambda: any(HAS.search(command.said) for command in pods.values()))
        owner = next(port for port, command in pods.items() if HAS.search(command.said))
        (other,) = pods.keys() - {owner}
        pods[owner].send()
        pods[other].until(lambda: bool(HAS.search(pods[other].said)))
        assert pods[owner].ended() == 0
        pods[other].until(lambda: [one["worker_id"] for one in workers(other)] == [f"127.0.0.1:{other}"])
    finally:
        for command in pods.values():
            command.close()


def _sees_two_and_a_leader(port: int) -> bool:
    return sorted(one["leads"] for one in workers(port)) == [False, True]


def _is_there(status: int, content: bytes) -> bool:
    """409 alone says so, too, while there is no leader."""
    return status == 201 or b"already exists" in content


def _leader(port: int) -> str:
    return next(one["url"] for one in workers(port) if one["leads"])


@pytest.mark.slow
def test_the_driver_asks_for_executors(tmp_path: Path) -> None:
    """With Kubernetes as Spark's master: pods of the executors' image, which know the driver's address and go with it.

    Nothing is asked for that its Role does not allow.
    """
    folder = deployments.DEPLOY / "kubernetes" / "on-spark"
    (patch,), rest = deployments.documents(folder / "driver.yaml"), deployments.documents(folder / "spark.yaml")
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    (role,) = [one for one in rest if one["kind"] == "Role"]
    ports = {"kafka-bootstrap.kafka:9092": free_port(), "8083": free_port(), "8443": free_port()}
    file = pod(tmp_path, ports)[-1]
    with kubernetes_api.serving("parquet-sink-0") as api:
        known = {"$(POD_NAME)": api.pod, "$(POD_NAMESPACE)": "default", "$(POD_IP)": "127.0.0.2"}
        known |= {
            "https://kubernetes.default.svc": api.url,
            "7078": (port := str(free_port())),
            "7079": str(free_port()),
        }
        known |= {container["args"][-1]: file}
        worker = Command(tmp_path, [replaced(word, known) for word in container["args"]], {})
        try:
            worker.until(lambda: len(api.of_kind("Pod")) == 2)
            worker.send()
            assert worker.ended() == 0
        finally:
            worker.close()
    for one in api.of_kind("Pod"):
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        (found,) = one["spec"]["containers"]
        told = {each["name"]: each.get("value") for each in found["env"]}
        assert told["SPARK_DRIVER_URL"] == f"spark://CoarseGrainedScheduler@127.0.0.2:{port}"
        assert (found["image"], found["args"]) == (
            f"registry.example/parquet-sink-executor:{__version__}",
            ["executor"],
        )
        assert found["resources"]["limits"]["memory"] == "3072Mi"
        assert [owner["name"] for owner in one["metadata"]["ownerReferences"]] == [api.pod]
    (rule,) = role["rules"]
    assert {verb for verb, _ in api.asked} <= set(rule["verbs"])
    assert {resource for _, resource in api.asked} <= set(rule["resources"])


def replaced(text: str, known: Mapping[str, str]) -> str:
    """Each of them, as the kubelet replaces names of variables."""
    for before, after in known.items():
        text = text.replace(before, after)
    return text
