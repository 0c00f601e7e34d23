"""The options that name connectors of a worker in place of connector files, and what does not go with them."""

import argparse
from argparse import Namespace
from collections.abc import Mapping
from typing import Final

from parquet_sink.cli.options import complete_name
from parquet_sink.cli.worker_api.settings import DEFAULT_TIMEOUT_S, add_options
from parquet_sink.errors import InvalidConfiguration

NO_TARGET: Final = "connector.properties"
_OF_FILES: Final = {"worker": None, "bootstrap_servers": None, "tmp_dir": None}
"""Options that go with connector files."""
_OF_WORKER: Final = {"url": None, "client_file": None, "timeout": DEFAULT_TIMEOUT_S}


def add_connectors(parser: argparse.ArgumentParser) -> None:
    """The options that name connectors of a worker in place of files."""
    group = parser.add_argument_group(
        "connectors of a worker, in place of files",
        "The worker that runs the connector looks at its own files, and answers.",
    )
    named = group.add_argument(
        "--connector",
        dest="of_worker",
        action="append",
        metavar="NAME",
        help="this connector of a worker; may be repeated",
    )
    named.completer = complete_name  # type: ignore[attr-defined]
    add_options(group)


def of_worker(args: Namespace, *, needed: bool = True) -> bool:
    """Whether connectors of a worker are meant, and not files. needed: whether one of the two must be.

    Raises InvalidConfiguration with options that do not go together.
    """
    if getattr(args, "given", ()):  # a worker does it for whom it asked
        return False
    given = bool(args.of_worker)
    wrong = [] if not given else [_misplaced(name, "--connector") for name in _given(args, _OF_FILES)]
    if given and args.files:
        wrong.append("Invalid [--connector]. Connector files are given as well; remove one of the two.")
    if not given:
        wrong += misplaced_beside_files(args)
        if needed and not args.files:
            wrong.append(
                f"Invalid [{NO_TARGET}]. It is missing; give connector files, or --connector NAME of a worker."
            )
    if wrong:
        raise InvalidConfiguration(wrong)
    return given


def misplaced_beside_files(args: Namespace) -> list[str]:
    """What is wrong with options that go with connectors of a worker alone, where files are meant."""
    return [_misplaced(name, "connector files") for name in _given(args, _OF_WORKER)]


def _given(args: Namespace, options: Mapping[str, object]) -> list[str]:
    return [name for name, default in options.items() if getattr(args, name, default) != default]


def _misplaced(name: str, beside: str) -> str:
    cure = "the worker knows it; remove it" if beside == "--connector" else "add --connector NAME, or remove it"
    return f"Invalid [--{name.replace('_', '-')}]. It does not go with {beside}; {cure}."
