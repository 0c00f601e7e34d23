"""What the package imports from others is what pyproject.toml declares, no more and no less."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import parquet_sink

ROOT = Path(parquet_sink.__file__).parent
MODULES = {str(path.relative_to(ROOT.parent).with_suffix("")).replace("/", "."): path for path in ROOT.rglob("*.py")}
PYPROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WITH_TARGET = "parquet_sink.addons.devkit."
"""What runs with the extra `target` only."""
WITH_SQL = "parquet_sink.addons.sql."
"""What runs with the extra `sql` only."""
WITH_S3 = "parquet_sink.targets.s3."
"""What runs with the extra `s3` only."""
WITH_WORKER = ("parquet_sink.worker.rest.", "parquet_sink.worker.metrics.", "parquet_sink.addons.page.")
"""What runs with the extra `worker` only."""
WITH_TRACES = "parquet_sink.worker.metrics.traces"
"""What runs with the extra `traces` only."""
WITH_PLOT = "parquet_sink.addons.tune.plot"
"""What runs with the extra `plot` only."""
BROUGHT = {"py4j"}
"""PySpark pins the one version that it works with: a bound of ours could only be wrong."""
NOT_IMPORTED = {"grpcio-tools", "tzdata"}
"""Run as a process of its own; read by Python's zoneinfo."""


def normalized(requirement: str) -> str:
    """The distribution that a requirement names."""
    return re.split(r"[\s\[<>=!~;(]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def declared(requirements: list[str]) -> set[str]:
    """The distributions that are required, and those that a named extra of them adds."""
    found = set()
    for requirement in requirements:
        found.add(normalized(requirement))
        for extra in re.findall(r"[\w-]+", (re.search(r"\[([^]]*)\]", requirement) or [""])[0]):
            found |= {
                normalized(one)
                for one in requires(normalized(requirement)) or ()
                if re.search(rf"extra == .{extra}\W", one)
            }
    return found


@cache
def distributions() -> dict[str, set[str]]:
    """By top-level module, the distributions that have it."""
    return {
        module: {name.lower().replace("_", "-") for name in names} for module, names in packages_distributions().items()
    }


@cache
def imports(module: str) -> set[str]:
    """The modules that a module imports from, wherever in it."""
    nodes = list(ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


@cache
def foreign(module: str) -> set[str]:
    """Distributions of what a module imports that is neither Python's nor ours."""
    tops = {name.split(".")[0] for name in imports(module)} - {"parquet_sink", "__future__"}
    third = {top for top in tops if top not in sys.stdlib_module_names}
    if "google" in third:  # several distributions share that name
        assert all(name.startswith("google.protobuf") for name in imports(module) if name.split(".")[0] == "google")
        return {"protobuf"}.union(*(distributions()[top] for top in third - {"google"}))
    found = set().union(*(distributions()[top] for top in third - {"opentelemetry"}))
    return found | {of_opentelemetry(name) for name in imports(module) if name.split(".")[0] == "opentelemetry"}


def of_opentelemetry(name: str) -> str:
    """The distribution of a module: several share that name, too."""
    exporter = "opentelemetry.exporter.otlp.proto.http"
    known = {exporter: exporter.replace(".", "-"), "opentelemetry.sdk": "opentelemetry-sdk"}
    return next((found for start, found in known.items() if name.startswith(start)), "opentelemetry-api")


@cache
def of_extra(name: str) -> frozenset[str]:
    """The distributions of an extra."""
    return frozenset(declared(PYPROJECT["optional-dependencies"][name]))


@cache
def core() -> frozenset[str]:
    """The distributions that are always there."""
    return frozenset(declared(PYPROJECT["dependencies"]) | BROUGHT)


def allowed(module: str) -> frozenset[str]:
    """The distributions that a module may import from."""
    if module.startswith(WITH_TRACES):
        return of_extra("traces")
    extras = {
        WITH_TARGET: "target",
        WITH_SQL: "sql",
        WITH_S3: "s3",
        WITH_WORKER: "worker",
        WITH_PLOT: "plot",
    }
    return core().union(*(of_extra(name) for start, name in extras.items() if module.startswith(start)))


def test_what_is_imported_is_declared() -> None:
    """No module relies on what another distribution happens to bring along."""
    assert len(MODULES) > 500
    assert {module: missing for module in MODULES if (missing := foreign(module) - allowed(module))} == {}


def test_what_is_declared_is_imported() -> None:
    """No dependency is installed for nothing."""
    extras = (WITH_TARGET, WITH_SQL, WITH_S3, WITH_PLOT, *WITH_WORKER)
    needed = {one for module in MODULES if not module.startswith(extras) for one in foreign(module)}
    assert {normalized(one) for one in PYPROJECT["dependencies"]} - needed == NOT_IMPORTED
