"""`parquet-sink help [COMMAND [ACTION]]`: what `--help` says."""

import argparse
from typing import Any

from parquet_sink.cli.command_class import commands_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command, and what it does where it has actions."""
    parser.epilog = "examples:\n  parquet-sink help run\n  parquet-sink help connectors edit"
    words = parser.add_argument("words", nargs="*", metavar="COMMAND [ACTION]", help="what to explain")
    words.completer = complete  # type: ignore[attr-defined]


def run(args: argparse.Namespace) -> int:
    """0; an unknown command ends with 2."""
    from parquet_sink.cli.main import parser_for  # which loads us

    parser_for(args.words).parse_args([*args.words, "--help"])
    raise AssertionError


def complete(prefix: str, parsed_args: argparse.Namespace, **more: Any) -> list[str]:
    """For argcomplete: commands, then actions."""
    from parquet_sink.cli.main import parser_for

    given = parsed_args.words or []
    if given and given[0] not in commands_for(None).usable:
        return []
    names = list(commands_for(None).usable) if not given else list(parser_for(given[:1]).under[given[0]].under)
    return [name for name in names if name.startswith(prefix)]
