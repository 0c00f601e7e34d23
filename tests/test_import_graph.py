"""Packages follow the data: what is pure stays pure, the core knows nothing of the shell, planners stay small."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import parquet_sink
from parquet_sink import plugins
from parquet_sink.connectors.kinds import find_kind

ROOT = Path(parquet_sink.__file__).parent
NAME = "parquet_sink"

PURE_MODULES = (
    "parquet_sink.errors",
    "parquet_sink.planner.admission",
    "parquet_sink.files.rotation",
    "parquet_sink.files.naming",
    "parquet_sink.targets.retry",
    "parquet_sink.targets.outcome",
    "parquet_sink.targets.push.answers",
    "parquet_sink.net.exchange",
    "parquet_sink.addons.tune.model",
    "parquet_sink.distributed.assignment",
    "parquet_sink.distributed.records",
    "parquet_sink.distributed.state",
)
KEYS = (
    "parquet_sink.files.settings",
    "parquet_sink.history.settings",
    "parquet_sink.kafka.settings",
    "parquet_sink.net.settings",
    "parquet_sink.notify.settings",
    "parquet_sink.targets.push.settings",
    "parquet_sink.targets.s3.settings",
)
"""Keys and their checks, of rooms that are not pure themselves."""
CONVERT = ("parquet_sink.convert", "parquet_sink.addons.formats")
CONVERT_SHELL = frozenset(
    {"parquet_sink.addons.formats.protobuf.compile"}
    | {f"parquet_sink.convert.{name}" for name in ("decoders", "registry.client", "registry.folder", "registry.http")}
)
"""Where decoders are kept in a process, schemas come over the network, and protoc is run; all else there is pure."""
CONFIG_SHELL = frozenset({"parquet_sink.config.files"})
"""What reads files, and looks at the machine."""
CONNECTORS_SHELL = frozenset(
    f"parquet_sink.connectors.{name}"
    for name in (*("check", "class_keys", "connector_class", "documentation", "loading"),)
) | frozenset(
    f"parquet_sink.worker_config.{name}"
    for name in ("config_providers", "event_listeners", "provider_class", "sealed_values", "worker_file")
)
"""What reads files, seals, or looks for connector classes in installed packages; all else there is pure."""

IMPURE = frozenset(
    {
        *("asyncio", "concurrent", "ctypes", "fcntl", "glob", "http", "io", "mmap", "multiprocessing", "os", "random"),
        *("secrets", "select", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading"),
        *("time", "uuid", "confluent_kafka", "duckdb", "py4j", "pyspark", "requests", "rich", "starlette", "urllib3"),
        *("uvicorn", "urllib.request", "urllib.error", "pyarrow.parquet", "pyarrow.fs", "pyarrow.dataset"),
        "grpc_tools",
        *("importlib.metadata", "pyarrow.flight", "pyarrow.csv", "pyarrow.orc", "pyarrow.feather"),
    }
)
"""Network, file system, clock, randomness, processes, Spark."""

IMPURE_NAMES = frozenset({"pathlib.Path", "pathlib.PosixPath", "builtins.open", "datetime.datetime", "datetime.date"})
"""Names by which a module of many uses reaches the file system or the clock."""

IMPURE_CALLS = frozenset({"open", "input", "print"})

OVER_THE_LOOP = tuple(f"distributed.{name}" for name in ("cluster", "herder", "owned"))
"""What of distributed workers begins and ends connectors in the worker's loop."""
SHELL = tuple(
    f"parquet_sink.{name}" for name in ("cli", "__main__", "worker.loop", *OVER_THE_LOOP, "addons.devkit.demo")
)
HARNESSES = (
    "parquet_sink.addons.devkit.target",
    "parquet_sink.addons.devkit.broker",
    "parquet_sink.addons.devkit.broker_files",
    "parquet_sink.addons.devkit.ivy",
    "parquet_sink.addons.devkit.jars",
    "parquet_sink.addons.devkit.kafka_command",
    "parquet_sink.addons.devkit.make_kafka_archive",
    "parquet_sink.addons.devkit.ports",
)


def modules() -> dict[str, Path]:
    """Every module of the package, by name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = (NAME, *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def not_imported(node: ast.AST) -> bool:
    """Whether it is `if TYPE_CHECKING:` or `if __name__ == "__main__":`, of which a module's importers have nothing."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")


@cache
def told(path: Path) -> tuple[tuple[ast.AST, bool], ...]:
    """Imports and calls of a file, those within functions included; of each whether the module's importers have it.

    A file is parsed once, and its tree is not kept: both take seconds.
    """
    found: list[tuple[ast.AST, bool]] = []
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text(encoding="utf-8")), True)]
    while waiting:
        node, had = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            found.append((node, had))
        waiting += [(child, had and not not_imported(child)) for child in ast.iter_child_nodes(node)]
    return tuple(found)


def nodes(module: str) -> Iterator[ast.AST]:
    """Imports and calls of a module, those for the type checker or a program alone left out."""
    return (node for node, had in told(MODULES[module]) if had)


@cache
def imports(module: str) -> frozenset[str]:
    """What a module imports anywhere: dotted names, `from a import b` as `a` and `a.b`."""
    found: set[str] = set()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


@cache
def own(module: str) -> frozenset[str]:
    """Modules of the package that a module imports, and the packages they are in."""
    named = {name for name in imports(module) if name in MODULES}
    return frozenset(named | {name.rsplit(".", 1)[0] for name in named if name != NAME})


@cache
def reached(module: str) -> frozenset[str]:
    """The module and all of the package that it imports, directly or not."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting += own(current)
    return frozenset(seen)


def within(name: str, packages: tuple[str, ...]) -> bool:
    """Whether a module is one of these or in one of them."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@cache
def impurities(module: str) -> frozenset[str]:
    """Whatever ties a module to the world outside: imports, and calls of built-in functions."""
    found = {name for name in imports(module) if within(name, tuple(IMPURE)) or name in IMPURE_NAMES}
    calls = {node.func.id for node in nodes(module) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return frozenset(found | (calls & IMPURE_CALLS))


def pure_modules() -> list[str]:
    """What the design calls pure."""
    convert = [name for name in MODULES if within(name, CONVERT) and name not in CONVERT_SHELL]
    shape = [name for name in MODULES if within(name, ("parquet_sink.rows",))]
    config = [name for name in MODULES if within(name, ("parquet_sink.config",)) and name not in CONFIG_SHELL]
    connectors = [
        name
        for name in MODULES
        if within(name, ("parquet_sink.connectors", "parquet_sink.worker_config")) and name not in CONNECTORS_SHELL
    ]
    return sorted({*PURE_MODULES, *convert, *shape, *config, *connectors, *KEYS})


def allowed(module: str) -> dict[str, set[str]]:
    """What a pure module may reach all the same, and where."""
    found = {
        "parquet_sink.rows.obfuscation.methods": {"uuid"}
    }  # `randomsalt` asks for fresh salts; tests pass another source
    packages = {"importlib.metadata", "importlib.metadata.entry_points"}
    found["parquet_sink.plugins"] = packages  # a converter that is not built in is looked for among those installed
    found["parquet_sink.process.native"] = {"os"}  # a variable turns off what is in C; the result is the same
    if module.startswith("parquet_sink.addons.formats.protobuf."):  # they read what protoc made of a schema
        found["parquet_sink.addons.formats.protobuf.compile"] = {"open", "os", "subprocess", "tempfile"}
    return found


def test_pure_modules_have_no_world() -> None:
    """No pyspark, network, file system, clock or randomness, neither own nor by what is imported from the package."""
    found = {
        (module, name): impure
        for module in pure_modules()
        for name in reached(module)
        if (impure := impurities(name)) and impure != allowed(module).get(name)
    }
    assert found == {}


def test_exceptions_from_purity_are_needed() -> None:
    """No module is excused for something that it does not do."""
    for module in pure_modules():
        for name, excused in allowed(module).items():
            assert name not in reached(module) or impurities(name) == excused
    shell = CONVERT_SHELL | CONFIG_SHELL | CONNECTORS_SHELL
    assert {name for name in shell if not any(map(impurities, reached(name)))} == set()


def test_the_core_knows_nothing_of_the_shell() -> None:
    """Imports point from cli, runtime and demo to the core, never back; nor does the core need target or broker."""
    imported = {(module, name) for module in MODULES if not within(module, SHELL) for name in imports(module)}
    known = {(module, name) for module, name in imported if within(name, SHELL)}
    assert {(module, name) for module, name in known if not within(module, ("parquet_sink.addons",))} == set()
    harnesses = {(module, name) for module, name in imported if within(name, HARNESSES)}
    assert {module for module, _ in harnesses if not within(module, HARNESSES)} == set()


def test_configuration_knows_nothing_of_what_it_configures() -> None:
    """Configuration is the first room: it imports errors and itself, and no other package."""
    config = [name for name in MODULES if within(name, ("parquet_sink.config",))]
    outside = {one for name in config for one in own(name) if not within(one, ("parquet_sink.config",))}
    assert outside <= {NAME, "parquet_sink.errors"}


ROOMS = (
    "api",
    *("model", "process", "config", "plugins", "net", "convert", "transform", "rows", "files", "parked", "targets"),
    *("state", "history", "archive", "kafka", "notify", "planner", "settings", "task", "worker_config", "connectors"),
    *("validate", "spark", "worker", "distributed", "cli", "addons"),
)
"""Packages, and one module, in the order in which they may know each other: each imports only those before it, so there
is no circle.
"""


def room(module: str) -> str:
    """The package directly below parquet_sink that a module is in, or its own name."""
    return module.split(".")[1] if "." in module else module


def test_every_package_has_its_place() -> None:
    """No package stands outside the order."""
    packages = {room(name) for name, path in MODULES.items() if path.name == "__init__.py"}
    assert packages == {*ROOMS, NAME} - {"plugins"}


def test_the_architecture_lists_packages_in_that_order() -> None:
    """In ARCHITECTURE.md each package stands below all that it may import."""
    text = (ROOT.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = re.findall(r"^  (\w+)(?:/|\.py) ", text, re.MULTILINE)
    assert [name for name in listed if name in ROOMS] == list(ROOMS)


def test_a_room_does_not_know_the_next() -> None:
    """A module imports its own package and those that come before it, and neither the commands nor what starts them."""
    later = {one: {*ROOMS[index + 1 :], "__main__"} for index, one in enumerate(ROOMS)}
    modules_of_rooms = [module for module in MODULES if room(module) in ROOMS]
    assert len(modules_of_rooms) > 500
    found = {(module, name) for module in modules_of_rooms for name in own(module) if room(name) in later[room(module)]}
    assert found == set()


def test_no_circles_among_modules() -> None:
    """No module imports itself by way of others: not within a function, and not for the type checker alone either."""
    paths = [path for name in (NAME, "integration", "tests") for path in (ROOT.parent / name).rglob("*.py")]
    known = {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
        if not path.name.startswith("test_")
    }
    assert len(known) > 700
    TopologicalSorter({name: named_modules(path) & known.keys() - {name} for name, path in known.items()}).prepare()


def named_modules(path: Path) -> set[str]:
    """The modules that stand in import statements: of `from a.b import c` either a.b.c or a.b."""
    found: set[str] = set()
    for node, _ in told(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if is_module(name) else str(node.module) for name in inner}
    return found


@cache
def is_module(name: str) -> bool:
    """Whether a dotted name is a module or package of this repository."""
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def test_every_import_of_the_package_exists() -> None:
    """A module named in an import of the package is there."""
    wanted = {(name, one) for name in MODULES for one in imports(name) if one.startswith(f"{NAME}.")}
    parents = {(name, one) for name, one in wanted if one in MODULES or one.rsplit(".", 1)[0] in MODULES}
    assert wanted == parents


HEAVY = (
    *("pyarrow.parquet", "requests", "orjson", "rich", "duckdb", "pandas", "starlette", "tenacity"),
    *("urllib3", "confluent_kafka.schema_registry", "httpx2", "fastavro", "google.protobuf", "grpc_tools"),
    *("defusedxml", "cryptography", "parquet_sink.convert", "parquet_sink.rows", "parquet_sink.addons.formats"),
)
"""Modules, or packages with all that is in them. NumPy is not among them: PyArrow itself loads it.

Each connector has planning processes: what they import is memory once more for each of them.
"""
PARENTS = frozenset(
    {"parquet_sink.convert", "parquet_sink.rows"}
    | {f"parquet_sink.convert.{name}" for name in ("connect_values", "json", "plain", "registry")}
)
"""Empty packages: settings are in them, which every process knows."""


@pytest.mark.parametrize(
    "module",
    [
        *("parquet_sink.spark.source", "parquet_sink.planner.planner", "parquet_sink.spark.sink"),
        *("parquet_sink.addons.sources.flow.stream", "parquet_sink.addons.sources.flow.planner"),
    ],
)
def test_planning_processes_stay_light(module: str) -> None:
    """The processes beside the driver, one or two for each connector, do not load what only workers and views need."""
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name for name in done.stdout.split() if within(name, HEAVY)}
    assert loaded - PARENTS - {name for name in loaded if name.endswith(".settings")} == set()


@pytest.mark.parametrize("module", [f"parquet_sink.cli.{name}" for name in ("run", "worker", "check")])
def test_files_are_checked_before_anything_heavy_is_loaded(module: str) -> None:
    """What a mistake in a file is answered with comes at once: neither Spark nor Arrow nor HTTP is loaded for it."""
    program = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    libraries = [one for one in HEAVY if not one.startswith(NAME)]
    heavy = (*libraries, "pyarrow", "numpy", "pyspark", "importlib.metadata")
    assert {name for name in done.stdout.split() if within(name, heavy)} == set()


def test_the_program_does_not_load_arrow() -> None:
    """It hosts connectors, and sees none of their records: a start has no time for it, nor has a worker the memory."""
    modules = (
        "parquet_sink.cli.run, parquet_sink.worker.loop.worker, parquet_sink.spark.session, parquet_sink.spark.query"
    )
    program = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert {"pyarrow", "numpy"} & set(done.stdout.split()) == set()


@pytest.mark.parametrize("group", plugins.BUILT_IN)
def test_registered_classes_are_loaded_without_what_they_use(group: str) -> None:
    """What is registered loads no HTTP, Kafka, Spark or SQL before it is used; transforms alone load Arrow."""
    modules = {path.partition(":")[0] for path in plugins.BUILT_IN[group].values()}
    program = f"import importlib, sys; [*map(importlib.import_module, {sorted(modules)})]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    heavy = {
        *HEAVY,
        "pyarrow",
        "numpy",
        "pyspark",
        "py4j",
        "boto3",
        "botocore",
        "confluent_kafka",
        "uvicorn",
        "sqlite3",
    }
    arrow = {"pyarrow", "numpy", "orjson"} if group in (plugins.TRANSFORMS, plugins.PREDICATES) else set()
    libraries = [one for one in heavy - arrow if not one.startswith(NAME)]
    assert {name for name in done.stdout.split() if within(name, libraries)} == set()


def test_kinds_of_connectors_name_what_is_there() -> None:
    """Each part of a kind is a callable of its room, or of an add-on."""
    for name in plugins.BUILT_IN[plugins.CONNECTOR_KINDS]:
        parts = {field: path for field, path in asdict(find_kind(name)).items() if field != "type" and path}
        assert {"flow", "stored_offsets", "problems"} <= {*parts}
        assert all(callable(plugins.named(path)) for path in parts.values())


def test_tests_import_no_tests() -> None:
    """What several tests need is in a module of its own: `tests/factories.py`, or beside them."""
    pages = [*Path(__file__).parent.rglob("test_*.py"), *(Path(__file__).parents[1] / "integration").glob("test_*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    found = {
        str(path): node.module
        for path, text in texts.items()
        if re.search(r"^\s*from\s.*test_", text, re.MULTILINE)  # to parse them all takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2].startswith("test_")
    }
    assert len(pages) > 100
    assert found == {}
