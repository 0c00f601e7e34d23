"""Kafka's config providers: `${env:NAME}`, `${file:PATH:KEY}` and `${directory:PATH:FILE}` in any value.

They work without being declared. A value that a provider gave is never shown: messages name the placeholder.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from parquet_sink.config.machine import Machine
from parquet_sink.config.properties import parse_properties
from parquet_sink.config.report import Report, printable
from parquet_sink.errors import InvalidConfiguration

_PLACEHOLDER = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_SLIP = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NOT_OURS = ("transforms.", "predicates.")
"""Keys in whose values `${name}` is a group of a regular expression."""
KNOWN = ("env", "file", "directory")


@dataclass(frozen=True)
class Resolved:
    """Texts after the providers were asked.

    values: by key. shown: the same as written in the file. provided: keys whose value a provider gave. failed: keys
    that have no value because a provider failed (reported already).
    """

    values: Mapping[str, str] = field(repr=False)
    shown: Mapping[str, str] = field(repr=False)
    provided: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()


def resolve(properties: Mapping[str, str], machine: Machine, report: Report) -> Resolved:
    """Replace every placeholder once (what a provider gives is not searched again)."""
    values: dict[str, str] = {}
    provided, failed = set(), set()
    for name, text in properties.items():
        if (slip := _slip(name, text, machine)) is not None:
            failed.add(name)
            report.problem(name, slip)
            continue
        if _PLACEHOLDER.search(text) is None:
            values[name] = text
            continue
        provided.add(name)
        try:
            values[name] = _PLACEHOLDER.sub(lambda found: _ask(found, machine), text)
        except LookupError as error:
            failed.add(name)
            report.problem(name, str(error.args[0]))
    return Resolved(values, dict(properties), frozenset(provided), frozenset(failed))


def _slip(name: str, text: str, machine: Machine) -> str | None:
    """`${EMS_KEY}`, as a shell has it: a variable's name without the provider that would look it up."""
    if name.startswith(_NOT_OURS):
        return None
    for found in _SLIP.finditer(text):
        if found[1].isupper() or found[1] in machine.environ:
            return (
                f"{found[0]} names no config provider, so it would be taken as it stands; for the environment variable "
                f"write ${{env:{found[1]}}}."
            )
    return None


def _ask(found: re.Match[str], machine: Machine) -> str:
    """The value of one placeholder. Raises LookupError with a reason that names the placeholder alone."""
    provider, path, name = found.group(1), found.group(2) or "", found.group(3)
    placeholder = printable(found.group(0))
    if provider == "env":
        return _from_environment(placeholder, name, machine)
    if provider == "file":
        return _from_file(placeholder, path, name, machine)
    if provider == "directory":
        return _from_directory(placeholder, path, name, machine)
    raise LookupError(f"{placeholder} names the unknown config provider {provider}; use env, file or directory.")


def _from_environment(placeholder: str, name: str, machine: Machine) -> str:
    if name not in machine.environ:
        raise LookupError(f"{placeholder}: the environment variable {name} is not set; set it before the start.")
    return machine.environ[name]


def _from_file(placeholder: str, path: str, name: str, machine: Machine) -> str:
    if not path:
        raise LookupError(f"{placeholder} names no key; write ${{file:PATH:KEY}}.")
    text = _read(placeholder, path, machine)
    try:
        values = parse_properties(text, path).properties
    except InvalidConfiguration as error:
        raise LookupError(f"{placeholder}: {path} is not in properties form. {error}") from None
    if name not in values:
        raise LookupError(f"{placeholder}: the file {path} has no key {name}; correct the path or the key.")
    return values[name]


def _from_directory(placeholder: str, path: str, name: str, machine: Machine) -> str:
    if not path or "/" in name or name in ("", ".", ".."):
        raise LookupError(f"{placeholder} names no file of a folder; write ${{directory:PATH:FILE}}.")
    return _read(placeholder, f"{path}/{name}", machine).rstrip("\r\n")


def _read(placeholder: str, path: str, machine: Machine) -> str:
    try:
        return machine.read_text(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LookupError(f"{placeholder}: the file {path} cannot be read ({reason}); correct it.") from None
    except ValueError:
        raise LookupError(f"{placeholder}: the file {path} is not UTF-8 text; correct it.") from None
