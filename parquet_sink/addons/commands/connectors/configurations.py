"""`connectors create`, `update` and `validate`: connector files, or single keys, to the worker."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from parquet_sink.addons.commands.connectors.life_cycle import Outcome, each, wait_until
from parquet_sink.addons.commands.connectors.printing import print_json, print_lines, print_trouble, status_text
from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.config.file_syntax import parse_file
from parquet_sink.config.files import LARGEST_BYTES, read_new_connector
from parquet_sink.config.properties import Parsed
from parquet_sink.config.report import counted, printable, quoted
from parquet_sink.connectors.connector_class import DEFAULT_CLASS
from parquet_sink.errors import InvalidConfiguration, WorkerRefused
from parquet_sink.worker.herder.values import State

_CLASS: Final = "connector.class"
_STANDARD_INPUT: Final = "standard input"
_HEADING: Final = "Connector configuration is invalid and contains the following "
_ENDING: Final = "You can also find the above list of errors at the endpoint"


@dataclass(frozen=True)
class ConnectorFile:
    """A connector file as it goes to the worker, placeholders unfilled: the worker fills them."""

    path: str
    name: str
    config: Mapping[str, str]
    initial_state: str


def create(args: Namespace, api: WorkerApi) -> bool:
    """A new connector of each file; whether all are there."""
    files = {one.name: one for one in _read(args.targets)}

    def post(name: str) -> Outcome:
        state = State((args.initial_state or files[name].initial_state).upper())
        content: dict[str, object] = {"name": name, "config": files[name].config}
        if state is not State.RUNNING:  # workers before 3.7 do not know the field
            content["initial_state"] = str(state)
        made = _send(api, "POST", ("connectors",), content)
        return _done(name, "create", made) | waited(args, api, name, state)

    return each(args, list(files), post, lambda done: _said(done, "created"))


def update(args: Namespace, api: WorkerApi) -> bool:
    """Another configuration for connectors that are there; whether all have it."""
    if args.set or args.unset:
        return _update_keys(args, api)
    files = {one.name: one for one in _read(args.targets)}

    def put(name: str) -> Outcome:
        if not args.create and name not in api.get("connectors"):
            raise WorkerRefused(f"Connector {name} not found; to create it, add --create.", 404)
        made = _send(api, "PUT", ("connectors", name, "config"), files[name].config)
        return _done(name, "update", made) | waited(args, api, name)

    return each(args, list(files), put, lambda done: _said(done, "has the file's configuration"))


def _update_keys(args: Namespace, api: WorkerApi) -> bool:
    changes: dict[str, str | None] = dict(args.set or ())
    both = sorted(set(changes) & set(args.unset or ()))
    if both:
        raise InvalidConfiguration(
            [f"Invalid [--unset]. {quoted(key)} is given by --set, too; choose." for key in both]
        )
    changes |= dict.fromkeys(args.unset or ())

    def patch(name: str) -> Outcome:
        made = _send(api, "PATCH", ("connectors", name, "config"), changes)
        return _done(name, "update", made) | waited(args, api, name)

    return each(args, args.targets, patch, lambda done: _said(done, f"changed {', '.join(changes)}"))


def _done(name: str, action: str, made: Mapping[str, Any]) -> Outcome:
    """With what parquet-sink's workers warn of, beside the connector as Kafka Connect's answer has it."""
    connector = {field: content for field, content in made.items() if field != "warnings"}
    return {"name": name, "action": action, "connector": connector, "warnings": list(made.get("warnings", ()))}


def waited(args: Namespace, api: WorkerApi, name: str, wanted: State | None = None) -> Outcome:
    """The status, if it was waited for. An update leaves a connector in the state it has."""
    if args.wait is None:
        return {}
    if wanted is None:
        wanted = _state_now(api, name)
    return {"status": wait_until(api, name, wanted, args.wait, stale=args.action in ("update", "edit"))}


def _state_now(api: WorkerApi, name: str) -> State:
    """What the connector is to be: paused or stopped, else running."""
    try:
        state = api.get("connectors", name, "status")["connector"]["state"]
    except WorkerRefused:  # one that is new has no status for a moment
        return State.RUNNING
    return State(state) if state in (State.PAUSED, State.STOPPED) else State.RUNNING


def _said(done: Outcome, what: str) -> str:
    return f"connector {done['name']}: {what}{status_text(done.get('status'))}"


def _send(api: WorkerApi, method: str, path: tuple[str, ...], content: object) -> Any:
    """The answer. Raises WorkerRefused; of a list of problems only these."""
    try:
        return api.ask(method, path, content=content)
    except WorkerRefused as error:
        if not error.message.startswith(_HEADING):
            raise
        lines = [line for line in error.message.splitlines()[1:] if line and not line.startswith(_ENDING)]
        raise WorkerRefused("\n  ".join(["its configuration is invalid:", *lines]), error.status) from None


def validate(args: Namespace, api: WorkerApi) -> bool:
    """What the worker says of each file; whether all are valid."""
    answers = [_validated(api, one) for one in _read(args.targets)]
    if args.json:
        print_json(answers)
    else:
        for one in answers:
            print_lines(problem_lines(one))
    return not any(one["error_count"] for one in answers)


def _validated(api: WorkerApi, one: ConnectorFile) -> dict[str, Any]:
    path = ("connector-plugins", one.config[_CLASS], "config", "validate")
    try:
        answer = api.ask("PUT", path, content=one.config)
    except (InvalidConfiguration, WorkerRefused) as error:
        if isinstance(error, WorkerRefused) and error.status is None:
            raise
        print_trouble(one.name, error)
        answer = {"name": one.config[_CLASS], "error_count": 1, "configs": [], "error": str(error)}
    return {"file": one.path, "connector": one.name, **answer}


def problem_lines(answer: Mapping[str, Any]) -> Iterable[str]:
    """What a worker says of a configuration: how many problems and warnings, then each."""
    problems, warnings = answer["error_count"], answer.get("warnings", ())
    counts = [counted(problems, "problem")] if problems else ["valid"]
    counts += [counted(len(warnings), "warning")] if warnings else []
    yield f"{answer['file']}: connector {answer['connector']}: {', '.join(counts)}"
    for config in answer["configs"]:
        value = config["value"]
        if value["errors"]:
            yield from (f"  {_with_name(error, value['name'])}" for error in value["errors"])
            if value["recommended_values"]:
                yield f"    it may be {', '.join(map(str, value['recommended_values']))}"
    yield from (f"  {warning}" for warning in warnings)


def _with_name(error: str, name: str) -> str:
    """A problem that names its key, as parquet-sink's do, or with the key in front."""
    return error if f"[{name}]" in error else f"{name}: {error}"


def _read(paths: Iterable[str]) -> list[ConnectorFile]:
    """All files before anything is sent. Raises InvalidConfiguration with what is wrong with them."""
    found: dict[str, ConnectorFile] = {}
    problems: list[str] = []
    for path in dict.fromkeys(paths):
        try:
            one = _read_one(path)
        except InvalidConfiguration as error:
            problems += error.problems
            continue
        if one.name in found:
            problems.append(
                f"Invalid [name]. {quoted(one.name)} is in {found[one.name].path} and {path}; leave one out."
            )
        found[one.name] = one
    if problems:
        raise InvalidConfiguration(problems)
    return list(found.values())


def _from_standard_input() -> Parsed:
    """Raises InvalidConfiguration."""
    if sys.stdin.isatty():
        print("parquet-sink: reading a connector from standard input, to its end (Ctrl-D)", file=sys.stderr)
    data = sys.stdin.buffer.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES or not data.strip():
        why = f"larger than {LARGEST_BYTES} bytes" if data.strip() else "empty; write a connector file to it"
        raise InvalidConfiguration([f"Invalid file [{_STANDARD_INPUT}]. It is {why}."])
    return parse_file(data, _STANDARD_INPUT)


def _read_one(path: str) -> ConnectorFile:
    parsed = _from_standard_input() if path == "-" else read_new_connector(path)
    path = _STANDARD_INPUT if path == "-" else path
    for warning in parsed.warnings:
        print(f"{warning} (in {printable(path)})", file=sys.stderr)
    name = parsed.properties.get("name", "")
    if not name.strip():
        raise InvalidConfiguration(
            [f"Invalid [name]. It is missing; give the connector a name. (in {printable(path)})"]
        )
    return ConnectorFile(path, name, {_CLASS: DEFAULT_CLASS, **parsed.properties}, parsed.initial_state)
