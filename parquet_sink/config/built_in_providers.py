"""Kafka's own config providers: the environment, a properties file, a folder with a file for each value.

The registry names them by Kafka's classes. name: what placeholders call it, for messages.
"""

import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Self

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import parse_properties
from parquet_sink.config.provider import Answer, NotGiven, Provider
from parquet_sink.config.report import quoted
from parquet_sink.config.values import Values
from parquet_sink.errors import InvalidConfiguration


def _absolute(value: Value) -> str | None:
    wrong = [one for one in value if not one.startswith("/")] if isinstance(value, tuple) else []
    return f"{quoted(wrong[0])} is not an absolute path; write it from / on." if wrong else None


def _pattern(value: Value) -> str | None:
    try:
        re.compile(str(value))
    except re.error as error:
        return f"{quoted(str(value))} is not a regular expression ({error}); correct it."
    return None


class EnvironmentProvider:
    """`${env:NAME}`. allowed: names that it may give are all of what this matches; None: any."""

    keys = (
        Key(
            "allowlist.pattern",
            "Params",
            Type.STRING,
            "Regular expression; variables whose whole name it matches may be read.",
            check=Check("a regular expression", _pattern),
            origin=Origin.CONNECT,
        ),
    )

    @classmethod
    def on_machine(cls, machine: Machine, name: str, values: Values) -> Self:
        """As the worker file wants it."""
        pattern = values.text("allowlist.pattern")
        return cls(name, machine, None if pattern is None else re.compile(pattern))

    def __init__(self, name: str, machine: Machine, allowed: re.Pattern[str] | None = None) -> None:
        self._name, self._environ, self._allowed = name, machine.environ, allowed

    def ask(self, path: str, keys: Collection[str]) -> Mapping[str, Answer]:
        """The path is passed over, as in Kafka."""
        return {key: self._one(key) for key in keys}

    def _one(self, key: str) -> Answer:
        if self._allowed is not None and self._allowed.fullmatch(key) is None:
            return NotGiven(
                f": {key} is not among config.providers.{self._name}.param.allowlist.pattern of the worker file; allow "
                "it there, or correct the name."
            )
        if key not in self._environ:
            return NotGiven(f": the environment variable {key} is not set; set it before the start.")
        return self._environ[key]


class _Files:
    """Reads files. allowed: folders, or files, that they must be in; None: any."""

    keys = (
        Key(
            "allowed.paths",
            "Params",
            Type.LIST,
            "Absolute paths of folders, or files, that may be read.",
            check=Check("absolute paths", _absolute),
            origin=Origin.CONNECT,
        ),
    )

    @classmethod
    def on_machine(cls, machine: Machine, name: str, values: Values) -> Self:
        """As the worker file wants it."""
        return cls(name, machine, values.names("allowed.paths") if "allowed.paths" in values.given else None)

    def __init__(self, name: str, machine: Machine, allowed: Sequence[str] | None = None) -> None:
        self._name, self._machine = name, machine
        self._allowed = None if allowed is None else [posixpath.normpath(one) for one in allowed]

    def _read(self, path: str) -> Answer:
        place = posixpath.normpath(posixpath.join(self._machine.working_dir, path))
        if self._allowed is not None and not any(_within(place, one) for one in self._allowed):
            return NotGiven(
                f": {path} is not below config.providers.{self._name}.param.allowed.paths of the worker file; allow it "
                "there, or correct the path."
            )
        try:
            return self._machine.read_text(path)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return NotGiven(f": the file {path} cannot be read ({reason}); correct it.", passes=True)
        except ValueError:
            return NotGiven(f": the file {path} is not UTF-8 text; correct it.")


class FileProvider(_Files):
    """`${file:PATH:KEY}`: a key of a properties file, which is read once for all of its keys."""

    def ask(self, path: str, keys: Collection[str]) -> Mapping[str, Answer]:
        if not path:
            return dict.fromkeys(keys, NotGiven(f" names no key; write ${{{self._name}:PATH:KEY}}."))
        text = self._read(path)
        if isinstance(text, NotGiven):
            return dict.fromkeys(keys, text)
        try:
            values = parse_properties(text, path).properties
        except InvalidConfiguration as error:
            return dict.fromkeys(keys, NotGiven(f": {path} is not in properties form. {error}"))
        return {
            key: values.get(key, NotGiven(f": the file {path} has no key {key}; correct the path or the key."))
            for key in keys
        }


class DirectoryProvider(_Files):
    """`${directory:PATH:FILE}`: the content of a file, without the end of its last line."""

    def ask(self, path: str, keys: Collection[str]) -> Mapping[str, Answer]:
        return {key: self._one(path, key) for key in keys}

    def _one(self, path: str, key: str) -> Answer:
        if not path or "/" in key or key in ("", ".", ".."):
            return NotGiven(f" names no file of a folder; write ${{{self._name}:PATH:FILE}}.")
        text = self._read(f"{path}/{key}")
        return text if isinstance(text, NotGiven) else text.rstrip("\r\n")


BUILT_IN: Final[Mapping[str, Callable[[str, Machine], Provider]]] = {
    "env": EnvironmentProvider,
    "file": FileProvider,
    "directory": DirectoryProvider,
}
"""Those that are there without being named."""


def built_in(machine: Machine) -> dict[str, Provider]:
    """Where a worker file names no provider."""
    return {name: make(name, machine) for name, make in BUILT_IN.items()}


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
