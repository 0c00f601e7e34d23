"""`connectors edit`: a connector's configuration in an editor, validated by the worker, shown as a difference, put."""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from parquet_sink.addons.commands.connectors.configurations import problem_lines, waited
from parquet_sink.addons.commands.connectors.life_cycle import Outcome, each
from parquet_sink.addons.commands.connectors.printing import status_text
from parquet_sink.cli.worker_api.api import WorkerApi
from parquet_sink.config.file_syntax import parse_file
from parquet_sink.config.files import read_named
from parquet_sink.config.properties import as_properties
from parquet_sink.config.report import printable
from parquet_sink.connectors.connector_class import DEFAULT_CLASS
from parquet_sink.errors import InvalidConfiguration, SetupError, SinkError, WorkerRefused

EDITORS: Final = ("VISUAL", "EDITOR")
_CLASS: Final = "connector.class"
_HEAD: Final = """\
# Connector {name} at {url}
#
# Change what is to change, save, and leave the editor. The worker validates it, the difference is shown, and it is put
# when you say so. [hidden] stands for a password that stays as it is; a new one takes its place. Leave the file as it
# is to change nothing. `parquet-sink explain KEY` explains a key.
"""
Ask = Callable[[str], str]


class NotPut(SinkError):
    """Nothing was changed at the worker; the message says where the text is kept."""


def edit(args: Namespace, api: WorkerApi) -> bool:
    """Whether the worker has what was edited, or nothing was changed."""
    if not (args.yes or sys.stdin.isatty()):
        raise InvalidConfiguration(
            ["Invalid [--yes]. Standard input is not a terminal, so nobody can be asked; add --yes, or use update."]
        )
    return each(args, args.targets, lambda name: _edit(args, api, name), _said)


def _edit(args: Namespace, api: WorkerApi, name: str) -> Outcome:
    before: dict[str, str] = api.get("connectors", name, "config")
    folder = Path(tempfile.mkdtemp(prefix="parquet-sink-edit-"))
    file = folder / "connector.properties"
    text = _HEAD.format(name=printable(name), url=api.url) + as_properties(before)
    try:
        file.write_text(text, encoding="utf-8")
        after = _edited(args, api, file, before)
        if after is not None:
            _put(api, name, before, after)
    except BaseException as error:
        if file.is_file() and file.read_text(encoding="utf-8", errors="replace") != text:
            print(f"parquet-sink: what you edited is kept in {file}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, KeyboardInterrupt):
            raise NotPut("Nothing was put.") from None
        raise
    shutil.rmtree(folder, ignore_errors=True)
    changed = [] if after is None else [key for key, _, _ in changes(before, after)]
    done: dict[str, object] = {"name": name, "action": "edit", "changed": changed}
    return done | (waited(args, api, name) if changed else {})


def _edited(args: Namespace, api: WorkerApi, file: Path, before: Mapping[str, str]) -> dict[str, str] | None:
    """What is to be put; None when nothing is to change. Raises NotPut, SetupError."""
    while True:
        _open_editor(file)
        after, problems = _judged(api, file)
        if not problems and not list(changes(before, after)):
            return None
        _tell(args, difference(before, after))
        if problems:
            _tell(args, ["It is not valid:", *problems])
            if args.yes or _asked("Edit it again? [Y/n] ") in ("n", "no"):
                raise NotPut("What was edited is not valid, and nothing was put.")
            continue
        answer = "y" if args.yes else _asked("Put it? [y/N/e: edit again] ")
        if answer in ("y", "yes"):
            return after
        if answer not in ("e", "edit"):
            raise NotPut("Nothing was put.")


def _tell(args: Namespace, lines: Iterable[str]) -> None:
    """Standard output is for JSON alone where that is wanted."""
    for line in lines:
        print(printable(line), file=sys.stderr if args.json else sys.stdout)


def _asked(question: str) -> str:
    try:
        return input(question).strip().lower()
    except EOFError:
        return "n"


def _open_editor(file: Path) -> None:
    """Returns when it has ended. Raises SetupError for one that cannot be run, NotPut for one that failed."""
    name, command = next(((one, text) for one in EDITORS if (text := os.environ.get(one, "").strip())), ("", "vi"))
    cure = f"correct {name}" if name else f"name one in {' or '.join(EDITORS)}"
    try:
        status = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise SetupError(f"The editor {command} cannot be run ({error}); {cure}.") from None
    if status:
        raise NotPut(f"The editor {command} ended with status {status}, and nothing was put.")


def _judged(api: WorkerApi, file: Path) -> tuple[dict[str, str], list[str]]:
    """The configuration, and what is wrong with it."""
    try:
        after = dict(parse_file(read_named(str(file)), str(file)).properties)
    except InvalidConfiguration as error:
        return {}, [f"  {problem}" for problem in error.problems]
    path = ("connector-plugins", after.get(_CLASS) or DEFAULT_CLASS, "config", "validate")
    try:
        answer: dict[str, Any] = api.ask("PUT", path, content=after)
    except WorkerRefused as error:
        if error.status is None:
            raise
        return after, [f"  {error}"]
    lines = list(problem_lines({"file": "", "connector": "", **answer}))[1:]
    return after, lines if answer["error_count"] else []


def _put(api: WorkerApi, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Unless somebody else changed it meanwhile. Raises NotPut, WorkerRefused."""
    if api.get("connectors", name, "config") != before:
        raise NotPut("Somebody else changed it meanwhile, and nothing was put; edit it again, from what it is now.")
    api.ask("PUT", ("connectors", name, "config"), content=after)


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[tuple[str, str | None, str | None]]:
    """Each key that differs, with its text before and after; None where it is not there."""
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield key, before.get(key), after.get(key)


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """A line for each text that goes, and for each that comes."""
    for key, old, new in changes(before, after):
        if old is not None:
            yield f"- {key}={old}"
        if new is not None:
            yield f"+ {key}={new}"


def _said(done: Outcome) -> str:
    changed = done["changed"]
    what = f"changed {', '.join(changed)}" if changed else "nothing was changed"
    return f"connector {done['name']}: {what}{status_text(done.get('status'))}"
