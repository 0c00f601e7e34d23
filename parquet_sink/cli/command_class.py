"""What a command of the command line is, and which there are: those built in, and those of installed packages."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from parquet_sink.cli.built_in import BuiltIn
from parquet_sink.config.report import quoted
from parquet_sink.plugins import BUILT_IN, COMMANDS, Kind, Located, PluginUnusable, declared, load

NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@runtime_checkable
class CommandPlugin(Protocol):
    """A command. It is made without arguments, and its module is loaded for each `parquet-sink --help`, too.

    help: one line for `parquet-sink --help`, which begins in lower case and has no full stop.
    """

    help: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds the command's options and arguments; only when the command is asked for."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Does it; the exit status: 0 done, 1 it failed, 2 what was asked for cannot be done as it is set up.

        A `parquet_sink.errors.SinkError` is reported as one line, with its own exit status.
        """
        ...


_UNLOADED: Final = BuiltIn("", "")
"""A command of another package, while it is only one that could be asked for."""
KIND: Final[Kind[CommandPlugin]] = Kind(COMMANDS, "command", (), CommandPlugin)  # type: ignore[type-abstract]


@dataclass(frozen=True)
class Commands:
    """Commands by name, those built in first, and what is wrong with others: by name, in words."""

    usable: Mapping[str, CommandPlugin]
    problems: Mapping[str, str] = field(default_factory=dict)


def is_built_in(name: str) -> bool:
    """Whether a command is parquet-sink's own."""
    return name in BUILT_IN[COMMANDS]


def commands_for(wanted: str | None) -> Commands:
    """All commands, for one that is wanted, or for the list of all (None).

    Installed packages are looked through only when what is wanted is not built in, and loaded only when it is theirs or
    the list is wanted.
    """
    usable = {name: load(KIND, Located(name, path)) for name, path in BUILT_IN[COMMANDS].items()}
    if wanted is not None and is_built_in(wanted):
        return Commands(usable)
    paths, problems = _installed()
    for name, path in sorted(paths.items()):
        try:
            usable[name] = load(KIND, Located(name, path)) if wanted in (None, name) else _UNLOADED
        except PluginUnusable as error:
            problems[name] = f"Command {error}"
    return Commands(usable, problems)


def _installed() -> tuple[dict[str, str], dict[str, str]]:
    """Where the commands of installed packages are, and which of them cannot be taken, and why: both by name."""
    paths: dict[str, str] = {}
    problems: dict[str, str] = {}
    for one in declared(KIND):
        name, here = quoted(one.name), f"{one.path} of package {one.package}"
        if is_built_in(one.name):
            problems[one.name] = (
                f"Command {name} is parquet-sink's own ({BUILT_IN[COMMANDS][one.name]}); {here} is not taken. "
                f"Give that one another name in the package's entry points."
            )
        elif NAME.fullmatch(one.name) is None:
            problems[one.name] = (
                f"Command {name} ({here}) is not taken: a name has lower-case letters, digits and single hyphens "
                f"between them. Give it such a name in the package's entry points."
            )
        elif paths.setdefault(one.name, one.path) != one.path:
            problems[one.name] = (
                f"Command {name} stands for {paths[one.name]} and for {here}, and neither is taken. "
                f"Uninstall one of the packages, or give one of the commands another name."
            )
    return {name: path for name, path in paths.items() if name not in problems}, problems
