"""What deploy/ has, read: the commands, the files that each finds in its place, and where what it writes stays."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from parquet_sink.config.machine import Machine

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
UNITS: Final = sorted((DEPLOY / "systemd").glob("*.service"))
KEY: Final = "AppKey demo"
USERS: Final = "operator: secret\n"


@dataclass(frozen=True)
class Deployment:
    """One way to run the worker. command: behind `parquet-sink`. files: texts by the paths that the command finds.

    stays: folders that it may write and that outlive it. grace_s: how long its stop may take.
    """

    name: str
    command: Sequence[str]
    files: Mapping[str, str]
    connector: Mapping[str, str]
    stays: Sequence[str]
    grace_s: float

    @property
    def worker_file(self) -> str:
        """Its text."""
        return self.files[self.command[-1]]

    @property
    def machine(self) -> Machine:
        """With these files and no others."""
        return Machine(read_text=self.files.__getitem__, is_file=self.files.__contains__)


def unit(path: Path) -> dict[str, list[str]]:
    """The settings of a unit's service, each with all its values."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def documents(path: Path) -> list[dict[str, Any]]:
    """Kubernetes' objects of a file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def _connector(folder: str) -> dict[str, str]:
    found = json.loads((DEPLOY / folder / "orders.json").read_text(encoding="utf-8"))
    return {**found["config"], "name": found["name"]}


def yaml_of(name: str) -> Any:
    """A file of deploy/, read."""
    return yaml.safe_load(_text(name))


def _text(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def systemd() -> Deployment:
    """The worker's unit."""
    found = unit(DEPLOY / "systemd" / "parquet-sink-worker.service")
    credentials = dict(one.split(":", 1) for one in found["LoadCredential"])
    return Deployment(
        name="systemd",
        command=shlex.split(found["ExecStart"][0])[1:],
        files={"/etc/parquet-sink/worker.properties": _text("systemd/worker.properties")}
        | {f"/run/credentials/parquet-sink-worker.service/{name}": f"{KEY}\n" for name in credentials},
        connector=_connector("systemd"),
        stays=[f"/var/lib/{name}" for name in found["StateDirectory"]],
        grace_s=float(found["TimeoutStopSec"][0]),
    )


def compose() -> Deployment:
    """The worker's service."""
    service = yaml_of("compose/compose.yaml")["services"]["worker"]
    mounts = dict(one.removesuffix(":ro").split(":") for one in service["volumes"])
    named = {source: target for source, target in mounts.items() if not source.startswith("./")}
    return Deployment(
        name="compose",
        command=service["command"],
        files={target: _text(f"compose/{source}") for source, target in mounts.items() if source not in named}
        | {f"/run/secrets/{name}": KEY for name in service["secrets"]},
        connector=_connector("compose"),
        stays=list(named.values()),
        grace_s=float(service["stop_grace_period"].removesuffix("s")),
    )


def kubernetes() -> Deployment:
    """The Deployment, with Secrets as the head of its file says how to make them."""
    objects = {one["kind"]: one for one in documents(DEPLOY / "kubernetes" / "worker" / "worker.yaml")}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    secrets = {
        "parquet-sink-secrets": {"ems-key": KEY},
        "parquet-sink-rest": {"users.properties": USERS, "server.pem": ""},
    }
    volumes = {one["name"]: one for one in pod["volumes"]}
    files, stays = {}, []
    for mount in container["volumeMounts"]:
        volume, path = volumes[mount["name"]], mount["mountPath"]
        if "persistentVolumeClaim" in volume:
            assert volume["persistentVolumeClaim"]["claimName"] == objects["PersistentVolumeClaim"]["metadata"]["name"]
            stays.append(path)
        elif "configMap" in volume:
            assert volume["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]
            files[path] = objects["ConfigMap"]["data"][mount["subPath"]]
        elif "secret" in volume:
            files |= {f"{path}/{name}": text for name, text in secrets[volume["secret"]["secretName"]].items()}
    return Deployment(
        name="kubernetes",
        command=container["args"],
        files=files,
        connector=_connector("kubernetes/worker"),
        stays=stays,
        grace_s=pod["terminationGracePeriodSeconds"],
    )


def container() -> dict[str, Any]:
    """That of the Deployment."""
    (found,) = next(
        one for one in documents(DEPLOY / "kubernetes" / "worker" / "worker.yaml") if one["kind"] == "Deployment"
    )["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def uid_of_image() -> int:
    """The user of the project's image."""
    found = re.search(r"useradd --uid (\d+) .*\bsink\b", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1])
