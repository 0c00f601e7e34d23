"""All files of one process, read and validated together; what `run` starts from and `check` prints."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from parquet_sink.config.files import read_configuration, this_machine
from parquet_sink.config.machine import Machine
from parquet_sink.config.providers import built_in_used
from parquet_sink.config.report import printable, quoted
from parquet_sink.connectors.connector_class import find_class
from parquet_sink.connectors.loading import Loaded, check_unique, load
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.process.program import add_plugin_path
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.worker_config.worker import BOOTSTRAP, NO_FILE, PLUGIN_PATH, Worker
from parquet_sink.worker_config.worker_file import LoadedWorker, load_worker, no_broker

_ABOUT: Final = re.compile(r"(?:Invalid|Warning) (?:file )?\[([^\]]*)\]")
_OF_A_CONNECTOR: Final = {"connector.class", "name", "topics", "topics.regex"}
_WORKER_FILE: Final = "Invalid file [{0}]. It looks like a worker file; write parquet-sink run --worker {0} …"
NO_OVERRIDES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True)
class Checked:
    """What was found. shared: problems between connectors (two of one name)."""

    worker: LoadedWorker
    connectors: tuple[Loaded, ...]
    shared: tuple[str, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """Every problem of every file, each naming its file."""
        files = [(self.worker.worker.source, self.worker.problems)]
        files += [(one.source, one.problems) for one in self.connectors]
        return tuple(f"{text} (in {source})" for source, texts in files for text in texts) + self.shared

    @property
    def warnings(self) -> tuple[str, ...]:
        """Every warning of every file, each naming its file."""
        files = [(self.worker.worker.source, self.worker.warnings)]
        files += [(one.source, one.warnings) for one in self.connectors]
        return tuple(f"{text} (in {source})" for source, texts in files for text in texts)

    @property
    def providers_used(self) -> list[str]:
        """Kafka's own config providers that placeholders of these files name."""
        own = self.worker.worker.converters
        texts = [own.shown(name) for name in own.given]
        return built_in_used([*texts, *(text for one in self.connectors for text in one.properties.values())])

    def settings(self) -> tuple[ConnectorSettings, ...]:
        """Of all connectors. Raises InvalidConfiguration with every problem of every file."""
        if self.problems:
            raise InvalidConfiguration(self.problems)
        return tuple(one.settings for one in self.connectors if one.settings is not None)

    def require(self) -> tuple[SinkSettings, ...]:
        """Of all connectors, which are sinks into Parquet files. Raises InvalidConfiguration as `settings` does."""
        self.settings()
        return tuple(one.require() for one in self.connectors)


def check_files(
    paths: Sequence[str],
    worker_path: str | None = None,
    *,
    bootstrap_servers: str | None = None,
    machine: Machine | None = None,
    overrides: Mapping[str, str] = NO_OVERRIDES,
) -> Checked:
    """Read and validate a worker file (None: defaults) and connector files. Raises nothing.

    bootstrap_servers: value of --bootstrap-servers. machine: this one when None. overrides: keys in place of those of
    each connector file.
    """
    machine = machine or this_machine()
    worker = read_worker(worker_path, bootstrap_servers=bootstrap_servers, machine=machine)
    connectors = tuple(_connector(path, worker.worker, overrides) for path in paths)
    return Checked(_about_brokers(worker, connectors), connectors, check_unique(connectors))


def _about_brokers(worker: LoadedWorker, connectors: Sequence[Loaded]) -> LoadedWorker:
    """With the warning about brokers that are guessed of those connectors alone whose files name none.

    It stays as it is where others may come by REST, and where positions of sources are kept at the worker's brokers.
    """
    storage = worker.worker.offset_storage
    guessed = [one.source for one in connectors if not one.names_brokers]
    if len(guessed) == len(connectors) or worker.worker.rest.given or (storage is not None and storage.topic):
        return worker
    told = [no_broker(", ".join(map(printable, guessed)))] if guessed else []
    warnings = [told if text == no_broker() else [text] for text in worker.warnings]
    return replace(worker, warnings=tuple(text for texts in warnings for text in texts))


def read_worker(path: str | None, *, bootstrap_servers: str | None, machine: Machine) -> LoadedWorker:
    """Read and validate a worker file; None: defaults. Its plug-ins can be found from here on. Raises nothing."""
    if path is None:
        return load_worker({}, source=NO_FILE, bootstrap_option=bootstrap_servers, machine=machine)
    try:
        parsed = read_configuration(path)
    except InvalidConfiguration as error:
        return LoadedWorker(Worker(source=path, machine=machine), error.problems)
    add_plugin_path(_plain_folders(parsed.properties))  # its config providers may be there
    loaded = load_worker(
        parsed.properties,
        source=path,
        bootstrap_option=bootstrap_servers,
        machine=machine,
        connector_keys=find_class().keys,
    )
    missing = [
        f"Warning [{PLUGIN_PATH}]. {quoted(folder)} is not a folder, so nothing is found there; correct it."
        for folder in add_plugin_path(loaded.worker.plugin_path)
    ]
    return replace(loaded, warnings=(*parsed.warnings, *loaded.warnings, *missing))


def _plain_folders(properties: Mapping[str, str]) -> list[str]:
    """Of `plugin.path`, those that no config provider must be asked for."""
    folders = (one.strip() for one in properties.get(PLUGIN_PATH, "").split(","))
    return [one for one in folders if one and "${" not in one]


def _connector(path: str, worker: Worker, overrides: Mapping[str, str]) -> Loaded:
    try:
        parsed = read_configuration(path)
    except InvalidConfiguration as error:
        return Loaded(None, error.problems, (), path)
    if BOOTSTRAP in parsed.properties and not _OF_A_CONNECTOR & parsed.properties.keys():
        return Loaded(None, (_WORKER_FILE.format(printable(path)),), (), path)
    loaded = load({**parsed.properties, **overrides}, worker, source=path)
    return replace(loaded, warnings=parsed.warnings + loaded.warnings)


def format_report(checked: Checked) -> str:
    """The report of `check`: for each file OK or its problems, its warnings, and what happens to a record, in order."""
    worker = checked.worker
    lines = []
    if worker.problems or worker.warnings or worker.worker.source != NO_FILE:
        good = "defaults are taken" if worker.worker.source == NO_FILE else "OK (worker)"
        lines += _section(worker.worker.source, good, worker.problems, worker.warnings)
    for one in checked.connectors:
        good = "" if one.settings is None else f"OK (connector {one.settings.name}: {one.settings.summary()})"
        lines += _section(one.source, good, one.problems, one.warnings)
        lines += [] if one.settings is None else _steps(one.settings)
    return "\n".join([*lines, *checked.shared])


def report_fields(checked: Checked, tried: Mapping[str, Sequence[Mapping[str, str]]]) -> dict[str, Any]:
    """The report as JSON has it. tried: what became of what each connector names, where that was tried."""
    worker = checked.worker
    return {
        "valid": not checked.problems,
        "worker": {"file": worker.worker.source, **_findings(worker.problems, worker.warnings)},
        "connectors": [_connector_fields(one, tried) for one in checked.connectors],
        "shared": _findings(checked.shared, ()),
    }


def _connector_fields(one: Loaded, tried: Mapping[str, Sequence[Mapping[str, str]]]) -> dict[str, Any]:
    settings = one.settings
    return {
        "file": one.source,
        "name": None if settings is None else settings.name,
        "summary": None if settings is None else settings.summary(),
        **_findings(one.problems, one.warnings),
        "steps": [] if settings is None else _step_texts(settings),
        "tried": None if settings is None or settings.name not in tried else list(tried[settings.name]),
    }


def _findings(problems: Sequence[str], warnings: Sequence[str]) -> dict[str, Any]:
    return {"problems": list(map(_finding, problems)), "warnings": list(map(_finding, warnings))}


def _finding(text: str) -> dict[str, Any]:
    """A text, and the key that it is about where it begins with one."""
    found = _ABOUT.match(text)
    return {"key": None if found is None else found[1], "text": text}


def _steps(settings: ConnectorSettings) -> list[str]:
    steps = _step_texts(settings)
    return ["  what happens to a record:", *(f"    {number}. {step}" for number, step in enumerate(steps, 1))]


def _step_texts(settings: ConnectorSettings) -> list[str]:
    keys = headers = False
    if settings.transforms:
        from parquet_sink.transform.building import needs_of  # loads Arrow, as transforms did when they were checked

        needs = needs_of(settings.transforms)
        keys, headers = needs.keys, needs.headers
    return list(settings.description(keys=keys, headers=headers))


def _section(source: str, good: str, problems: Sequence[str], warnings: Sequence[str]) -> list[str]:
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return [f"{source}: {count if problems else good}", *(f"  {text}" for text in (*problems, *warnings))]
