"""What deploy/ has for systemd, compose and Kubernetes is well formed, and names only what the program has."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from parquet_sink.cli import main as cli
from parquet_sink.cli.worker_api.settings import FILE_VARIABLE
from parquet_sink.config.properties import parse_properties
from parquet_sink.connectors.ems.sink import EMS_KEYS
from parquet_sink.connectors.loading import load
from parquet_sink.spark import options
from parquet_sink.worker.herder.store import FOLDER_KEY
from parquet_sink.worker.loop.herder import PING_S
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker
from tests.docs import deployments
from tests.docs.deployments import DEPLOY, KEY, ROOT, UNITS, Deployment, documents, unit

GROUPS = [deployments.systemd_workers(), deployments.compose_workers(), deployments.kubernetes_workers()]
ALL = [deployments.systemd(), deployments.compose(), deployments.kubernetes(), *GROUPS]
PODS = [(deployments.kubernetes(), deployments.WORKER), (deployments.kubernetes_workers(), deployments.WORKERS)]
END_S = 25
"""What Spark may take to end, after the flush in progress."""
KINDS = {
    *("ConfigMap", "PersistentVolumeClaim", "Service", "Deployment", "ServiceAccount", "Role", "RoleBinding"),
    *("StatefulSet", "PodDisruptionBudget"),
}
FOLDERS = [DEPLOY / "kubernetes" / name for name in ("worker", "workers", "on-spark")]
OF_A_SERVICE = {
    *("build", "image", "command", "volumes", "secrets", "healthcheck", "stop_grace_period", "restart", "read_only"),
    *(
        "tmpfs",
        "cap_drop",
        "security_opt",
        "mem_limit",
        "logging",
        "ports",
        "environment",
        "depends_on",
        "network_mode",
        "hostname",
    ),
}
"""Keys of the Compose specification that are used; another one is a slip of the pen, or wants to be added here."""


@pytest.fixture(params=ALL, ids=[one.name for one in ALL])
def deployment(request: pytest.FixtureRequest) -> Deployment:
    """Each of them."""
    found: Deployment = request.param
    return found


def loaded(deployment: Deployment) -> LoadedWorker:
    """Its worker file, with secrets where it says that they are."""
    properties = parse_properties(deployment.worker_file, "worker file").properties
    return load_worker(properties, source="worker file", machine=deployment.machine)


def parsed(words: Sequence[str]) -> Any:
    """The program's own reading of a command. Ends the test when it has no such option."""
    return cli.parser_for(list(words)).parse_args(list(words))


def stop_s() -> float:
    """How long a stop waits for the flush in progress."""
    (found,) = [key.default for key in EMS_KEYS if key.name == "connect.ems.stop.timeout.ms"]
    assert isinstance(found, int)
    return found / 1000


def test_the_command_is_the_program_s(deployment: Deployment) -> None:
    """`parquet-sink worker` with options that it has, and a worker file that is there."""
    args = parsed(deployment.command)
    assert args.command == "worker"
    assert args.worker in deployment.files


def test_the_worker_file_is_valid(deployment: Deployment) -> None:
    """Not even a warning; and its connectors are kept where they outlive the worker."""
    found = loaded(deployment)
    assert (found.problems, found.warnings) == ((), ())
    named = FOLDER_KEY in deployment.worker_file
    assert named or deployment.name.startswith("systemd")  # $STATE_DIRECTORY
    if named:
        assert any(str(found.worker.store_folder).startswith(f"{one}/") for one in deployment.stays)


def test_the_connector_is_valid(deployment: Deployment) -> None:
    """It finds its secret, and its folder outlives the worker."""
    found = load(deployment.connector, loaded(deployment).require(), source="orders.json")
    assert (found.problems, found.warnings) == ((), ())
    assert found.settings is not None
    assert KEY not in json.dumps(dict(deployment.connector))
    assert any(found.settings.files.tmp_dir.startswith(f"{one}/") for one in deployment.stays)


def test_connectors_read_nothing_but_their_secrets(deployment: Deployment) -> None:
    """Who may make connectors by REST could have other files sent somewhere, such as the server's key."""
    worker = loaded(deployment).require()
    (names,) = re.findall(r"^config.providers=(\S+)$", deployment.worker_file, re.MULTILINE)
    for path in {"/etc/passwd", *deployment.files} - {one for one in deployment.files if one.endswith("/ems-key")}:
        folder, _, file = path.rpartition("/")
        known = [f"${{{name}:{folder}:{file}}}" for name in names.split(",")]
        for placeholder in (*known, f"${{directory:{folder}:{file}}}", "${env:HOME}"):
            config = {**deployment.connector, "connect.ems.target.table": placeholder}
            assert load(config, worker, source="orders.json").problems, placeholder


def test_a_stop_has_the_time_it_may_take(deployment: Deployment) -> None:
    """The flush in progress, then the end of Spark."""
    assert deployment.grace_s >= stop_s() + END_S


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_what_systemd_reads(path: Path, tmp_path: Path) -> None:
    """By `systemd-analyze verify`, which knows each setting; with a program that is there."""
    found = unit(path)
    words = shlex.split(found["ExecStart"][0].replace("%i", "orders"))
    args = parsed(words[1:])
    assert float(found["TimeoutStopSec"][0]) >= stop_s() + END_S
    for named in [args.worker, *getattr(args, "connectors", [])]:
        assert Path(named).parts[1:3] == ("etc", "parquet-sink")
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / path.name
    copy.write_text(path.read_text(encoding="utf-8").replace(words[0], sys.executable), encoding="utf-8")
    told = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_the_files_unit_has_no_listeners() -> None:
    """Each of its instances would want the address for itself."""
    assert "listeners" not in parse_properties((DEPLOY / "systemd" / "run.properties").read_text(), "run").properties
    found = load_worker(
        parse_properties((DEPLOY / "systemd" / "run.properties").read_text(), "run").properties, source=""
    )
    assert (found.problems, found.warnings) == ((), ())


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("kubernetes/*/[sw]*.yaml")), ids=lambda path: path.name)
def test_objects_are_kubernetes_own(path: Path) -> None:
    """By the schemas of the newest version that is known; no key that it does not have."""
    for one in documents(path):
        assert one["kind"] in KINDS
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folders_are_what_kustomize_reads(folder: Path) -> None:
    """As `kubectl apply -k` puts them together, they are valid, too."""
    told = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, timeout=60, check=False
    )
    assert told.returncode == 0, told.stderr
    objects = list(yaml.safe_load_all(told.stdout))
    for one in objects:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    (image,) = [one["image"] for each in objects for one in _containers(each)]
    assert image.startswith("registry.example/parquet-sink:")


def _containers(one: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        one["spec"]["template"]["spec"]["containers"] if one["kind"] in {"Deployment", "StatefulSet"} else []
    )
    return found


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
@pytest.mark.parametrize(("deployment", "path"), PODS, ids=["worker", "workers"])
def test_probes_ask_what_the_worker_answers(probe: str, deployment: Deployment, path: Path) -> None:
    """Its health, without a user, at the address that the pod's network reaches; for longer than an answer takes."""
    container, rest = deployments.container(path), loaded(deployment).require().rest
    asked = container[probe]["httpGet"]
    (port,) = [one["containerPort"] for one in container["ports"] if one["name"] == asked["port"]]
    assert asked["path"] == "/health"
    assert (asked["scheme"].lower(), "0.0.0.0", port) in [(one.scheme, one.host, one.port) for one in rest.listeners]
    assert rest.users
    assert rest.anonymous_health
    assert container[probe]["timeoutSeconds"] > PING_S


@pytest.mark.parametrize("path", [deployments.WORKER, deployments.WORKERS], ids=["worker", "workers"])
def test_services_lead_to_the_workers(path: Path) -> None:
    """By labels and port."""
    objects = documents(path)
    (template,) = [one["spec"] for one in objects if one["kind"] in {"Deployment", "StatefulSet"}]
    labels = template["template"]["metadata"]["labels"]
    assert template["selector"]["matchLabels"] == labels
    for service in (one["spec"] for one in objects if one["kind"] == "Service"):
        assert service["selector"].items() <= labels.items()
        assert {one["targetPort"] for one in service["ports"]} <= {
            one["name"] for one in deployments.container(path)["ports"]
        }


def test_the_service_is_the_worker_s_name() -> None:
    """Of the one worker, by which it shows itself."""
    (service,) = [one for one in documents(deployments.WORKER) if one["kind"] == "Service"]
    worker_id = loaded(deployments.kubernetes()).require().rest.worker_id
    assert worker_id == f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"


def test_workers_find_each_other_by_their_pods_names() -> None:
    """The headless Service gives each pod the name that its worker advertises, also before it is ready."""
    (pods,) = [one for one in documents(deployments.WORKERS) if one["kind"] == "StatefulSet"]
    (service,) = [
        one["spec"]
        for one in documents(deployments.WORKERS)
        if one["kind"] == "Service" and one["metadata"]["name"] == pods["spec"]["serviceName"]
    ]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    name = f"{pods['metadata']['name']}-0.{pods['spec']['serviceName']}.default.svc"
    rest = loaded(deployments.kubernetes_workers()).require().rest
    assert rest.worker_id == f"{name}:{service['ports'][0]['port']}"
    assert rest.advertised.scheme == "https"


@pytest.mark.parametrize("deployment", GROUPS, ids=lambda one: one.name)
def test_several_workers_are_a_group(deployment: Deployment) -> None:
    """Each has a name of its own, trusts the others' certificates, and shows no password in the config topic."""
    worker = loaded(deployment).require()
    assert worker.distributed is not None
    assert worker.distributed.secrets == "refused"
    assert not worker.rest.worker_id.startswith(("localhost", "0.0.0.0"))
    assert worker.rest.tls is not None
    assert worker.rest.tls.authorities is not None


def test_compose_has_three_workers() -> None:
    """Alike but for their names, by which the others reach them."""
    services = deployments.yaml_of("compose/workers.yaml")["services"]
    assert [one.pop("hostname") for one in services.values()] == list(services)
    assert len(services) == 3
    assert all(one == services["worker-1"] for one in services.values())


@pytest.mark.parametrize("path", [deployments.WORKER, deployments.WORKERS], ids=["worker", "workers"])
def test_the_pod_s_user_is_the_image_s(path: Path) -> None:
    """By number, which `runAsNonRoot` needs; the volume is its own."""
    pod = deployments.pod_of(path)["securityContext"]
    assert {pod["runAsUser"], pod["runAsGroup"], pod["fsGroup"]} == {deployments.uid_of_image()}


def test_the_image_has_the_extras() -> None:
    """All that a connector or a worker may need, as docs/how-to/deploy.md lists it; not what draws or develops."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    [installed] = re.findall(r"'/src\[([\w,]+)\]'", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert set(installed.split(",")) == set(declared) - {"plot", "docs", "dev", "release"}
    [told] = re.findall(
        r"the extras ((?:`\w+`[, and]*)+)", (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    )
    assert set(re.findall(r"`(\w+)`", told)) == set(installed.split(","))


def test_packages_of_the_image_are_locked() -> None:
    """All that the image installs has its version and hashes, those of development; the base image has a digest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    [extras] = re.findall(r"--no-deps --no-build-isolation '/src\[([\w,]+)\]'", text)
    optional = [package for extra in extras.split(",") for package in project["optional-dependencies"][extra]]
    image, development = (_pins(ROOT / f"requirements-{name}.txt") for name in ("image", "dev"))
    needed = {re.split(r"[^\w.-]", package)[0].lower() for package in [*project["dependencies"], *optional]}
    assert needed <= image.keys()
    assert image.items() <= development.items()
    assert image.keys().isdisjoint({"pytest", "mypy", "ruff", "matplotlib"})
    assert text.count("pip install") == text.count("--require-hashes") + text.count("--no-deps") == 3
    assert re.search(r"^FROM python:\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)


def _pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([^ ]+)", lock.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_image_reaps_orphans_and_hands_signals_on() -> None:
    """Process 1 is tini, and no shell stands between it and the program."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert json.loads(re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[-1]) == ["tini", "--", "parquet-sink"]
    assert re.search(r"apt-get install .*\btini\b", text)


def test_the_driver_on_kubernetes_is_given_what_it_names() -> None:
    """Options of the program, values that Spark can take, variables and ports that the pod has."""
    (patch,) = documents(DEPLOY / "kubernetes" / "on-spark" / "driver.yaml")
    (container,) = _containers(patch)
    args = parsed(container["args"])
    assert args.worker == deployments.container()["args"][-1]
    assert options.problems(args.master, args.conf) == []
    conf = dict(args.conf)
    assert {name for value in conf.values() for name in re.findall(r"\$\((\w+)\)", value)} == {
        one["name"] for one in container["env"]
    }
    assert {conf["spark.driver.port"], conf["spark.driver.blockManager.port"]} == {
        str(one["containerPort"]) for one in container["ports"]
    }
    account = patch["spec"]["template"]["spec"]["serviceAccountName"]
    assert account in [one["metadata"]["name"] for one in documents(DEPLOY / "kubernetes" / "on-spark" / "spark.yaml")]


def test_the_executor_s_python_is_the_image_s() -> None:
    """Its PySpark lies where the image's Python has it."""
    (version,) = re.findall(r"^FROM python:([\d.]+)-", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert f"/usr/local/lib/python{version}/site-packages/pyspark" in (
        DEPLOY / "kubernetes" / "on-spark" / "Dockerfile"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "path",
    [ROOT / "compose.yaml", *(DEPLOY / "compose" / name for name in ("compose.yaml", "workers.yaml"))],
    ids=["project", "worker", "workers"],
)
def test_compose_files_are_read_strictly(path: Path) -> None:
    """Keys that are known, commands that the program has, volumes and secrets that are declared."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert found.keys() <= {"name", "services", "volumes", "secrets", "x-worker"}
    for service in found["services"].values():
        assert service.keys() <= OF_A_SERVICE
        if service["image"] == "parquet-sink":
            parsed(service["command"])
        named = {one.partition(":")[0] for one in service.get("volumes", ())}
        assert {one for one in named if not one.startswith(".")} <= found["volumes"].keys()
        assert set(service.get("secrets", ())) <= found.get("secrets", {}).keys()


def test_exec_in_a_container_of_the_group_signs_in() -> None:
    """The worker wants a user on loopback, too: the client file is among the files of the REST API."""
    service = deployments.yaml_of("compose/workers.yaml")["services"]["worker-1"]
    assert loaded(deployments.compose_workers()).require().rest.users
    assert service["environment"].keys() == {FILE_VARIABLE}
    (rest,) = [one.split(":")[1] for one in service["volumes"] if one.startswith("./rest:")]
    assert Path(service["environment"][FILE_VARIABLE]).parent == Path(rest)
