"""What deploy/ has, read: the commands, the files that each finds in its place, and where what it writes stays."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from parquet_sink.config.machine import Machine

ROOT: Final = Path(__file__).parents[2]
DEPLOY: Final = ROOT / "deploy"
UNITS: Final = sorted((DEPLOY / "systemd").glob("*.service"))
WORKER: Final = DEPLOY / "kubernetes" / "worker" / "worker.yaml"
WORKERS: Final = DEPLOY / "kubernetes" / "workers" / "workers.yaml"
KEY: Final = "AppKey demo"
USERS: Final = "operator: secret\n"
POD: Final = {"metadata.name": "parquet-sink-0", "metadata.namespace": "default"}
"""What Kubernetes knows of a pod."""


@dataclass(frozen=True)
class Deployment:
    """One way to run the worker. command: behind `parquet-sink`. files: texts by the paths that the command finds.

    stays: folders that it may write and that outlive it. grace_s: how long its stop may take. environment: variables
    that it is given.
    """

    name: str
    command: Sequence[str]
    files: Mapping[str, str]
    connector: Mapping[str, str]
    stays: Sequence[str]
    grace_s: float
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def worker_file(self) -> str:
        """Its text."""
        return self.files[self.command[-1]]

    @property
    def machine(self) -> Machine:
        """With these files and no others."""
        return Machine(
            read_text=self.files.__getitem__,
            is_file=self.files.__contains__,
            environ=self.environment,
            host_name="here",
        )


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


REST: Final = {"users.properties": USERS, "server.pem": "", "ca.pem": ""}
"""Files of the REST API that whoever installs it makes."""


def systemd() -> Deployment:
    """The worker's unit."""
    return _systemd("systemd", "parquet-sink-worker.service", "", "systemd")


def systemd_workers() -> Deployment:
    """One of several workers, of the group `orders`."""
    return _systemd("systemd workers", "parquet-sink-worker@.service", "orders", "systemd/workers")


def _systemd(name: str, file: str, instance: str, folder: str) -> Deployment:
    found = unit(DEPLOY / "systemd" / file)
    service = file.replace("@", f"@{instance}")
    credentials = dict(one.split(":", 1) for one in found["LoadCredential"])
    command = shlex.split(found["ExecStart"][0].replace("%i", instance))[1:]
    return Deployment(
        name=name,
        command=command,
        files={command[-1]: _text(f"{folder}/{Path(command[-1]).name}")}
        | {f"/run/credentials/{service}/{name}": f"{KEY}\n" for name in credentials}
        | ({f"/etc/parquet-sink/rest/{name}": text for name, text in REST.items()} if instance else {}),
        connector=_connector(folder),
        stays=[f"/var/lib/{name}" for name in found["StateDirectory"]],
        grace_s=float(found["TimeoutStopSec"][0]),
    )


def compose() -> Deployment:
    """The worker's service."""
    return _compose("compose", "compose.yaml", "worker")


def compose_workers() -> Deployment:
    """The first of three."""
    return _compose("compose workers", "workers.yaml", "worker-1")


def _compose(name: str, file: str, service_name: str) -> Deployment:
    service = yaml_of(f"compose/{file}")["services"][service_name]
    mounts = dict(one.removesuffix(":ro").split(":") for one in service["volumes"])
    named = {source: target for source, target in mounts.items() if not source.startswith("./")}
    rest = mounts.pop("./rest", None)
    return Deployment(
        name=name,
        command=service["command"],
        files={target: _text(f"compose/{source}") for source, target in mounts.items() if source not in named}
        | {f"/run/secrets/{name}": KEY for name in service["secrets"]}
        | ({} if rest is None else {f"{rest}/{name}": text for name, text in REST.items()}),
        connector=_connector("compose"),
        stays=list(named.values()),
        grace_s=float(service["stop_grace_period"].removesuffix("s")),
    )


def kubernetes() -> Deployment:
    """The Deployment, with Secrets as the head of its file says how to make them."""
    return _kubernetes("kubernetes", WORKER, "Deployment")


def kubernetes_workers() -> Deployment:
    """The StatefulSet, likewise."""
    return _kubernetes("kubernetes workers", WORKERS, "StatefulSet")


def _kubernetes(name: str, path: Path, kind: str) -> Deployment:
    objects = {one["kind"]: one for one in documents(path)}
    pod = objects[kind]["spec"]["template"]["spec"]
    found = container(path)
    secrets = {"parquet-sink-secrets": {"ems-key": KEY}, "parquet-sink-rest": REST}
    volumes = {one["name"]: one for one in pod["volumes"]}
    claimed = {one["metadata"]["name"] for one in objects[kind]["spec"].get("volumeClaimTemplates", ())}
    files, stays = {}, []
    for mount in found["volumeMounts"]:
        volume, path_within = volumes.get(mount["name"], {}), mount["mountPath"]
        if mount["name"] in claimed:
            stays.append(path_within)
        elif "persistentVolumeClaim" in volume:
            assert volume["persistentVolumeClaim"]["claimName"] == objects["PersistentVolumeClaim"]["metadata"]["name"]
            stays.append(path_within)
        elif "configMap" in volume:
            assert volume["configMap"]["name"] == objects["ConfigMap"]["metadata"]["name"]
            files[path_within] = objects["ConfigMap"]["data"][mount["subPath"]]
        elif "secret" in volume:
            files |= {f"{path_within}/{name}": text for name, text in secrets[volume["secret"]["secretName"]].items()}
        else:
            assert "emptyDir" in volume
    return Deployment(
        name=name,
        command=found["args"],
        files=files,
        connector=_connector("kubernetes/worker"),
        stays=stays,
        grace_s=pod["terminationGracePeriodSeconds"],
        environment={one["name"]: POD[one["valueFrom"]["fieldRef"]["fieldPath"]] for one in found.get("env", ())},
    )


def container(path: Path = WORKER) -> dict[str, Any]:
    """That of the pods of a file."""
    (found,) = pod_of(path)["containers"]
    assert isinstance(found, dict)
    return found


def pod_of(path: Path) -> dict[str, Any]:
    """What pods of a file are made by."""
    (found,) = (
        one["spec"]["template"]["spec"] for one in documents(path) if one["kind"] in {"Deployment", "StatefulSet"}
    )
    assert isinstance(found, dict)
    return found


def uid_of_image() -> int:
    """The user of the project's image."""
    found = re.search(r"useradd --uid (\d+) .*\bsink\b", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1])
