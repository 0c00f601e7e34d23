"""The command line: the commands, by name, and the exit statuses.

Exit status: 0 done, 1 a connector failed, 2 invalid configuration or a missing part. Each command is loaded only
when it is asked for, so that `--help` is quick; those of other packages for `--help`, too, which says what is wrong.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

from parquet_sink import __version__
from parquet_sink.cli.command_class import CommandPlugin, Commands, commands_for, is_built_in
from parquet_sink.cli.parsing import Parser
from parquet_sink.config.report import printable, quoted
from parquet_sink.errors import InvalidConfiguration, SetupError, SinkError
from parquet_sink.process.logs import JSON, configure_program, json_line, log_format
from parquet_sink.process.program import bound_arenas, forbid_core_dumps, lenient_streams
from parquet_sink.process.signals import StopRequest

SHELLS: Final = ("bash", "zsh", "fish")
_EPILOG: Final = """\
parquet-sink help COMMAND    a command and its options
parquet-sink explain KEY     a key of connector and worker files

Exit status: 0 done, 1 a connector failed, 2 invalid configuration or a missing part."""
_ASKED: Final = "_ARGCOMPLETE"
"""Set by the shell's function when it wants completions; its value is the first word that is ours."""
log = logging.getLogger(__name__)


def wanted(argv: Sequence[str]) -> str | None:
    """The command that words name; None: none."""
    return next((word for word in argv if not word.startswith("-")), None)


def parser_for(argv: Sequence[str], found: Commands | None = None) -> Parser:
    """The parser, with the options of the command that `argv` names. found: all commands, where they are known.

    Raises SetupError when the options of another package's command cannot be had.
    """
    name_wanted = wanted(argv)
    found = found or commands_for(name_wanted)
    parser = Parser(
        prog="parquet-sink",
        description="Kafka topics arrive as Parquet files at a push API, in an S3 bucket or in a folder: at least "
        "once, on Spark.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"parquet-sink {__version__}", help="print the version")
    parser.add_argument(
        "--completion",
        action=ShellCode,
        choices=SHELLS,
        help="print what completes commands, options, files and names of connectors; for bash put "
        'eval "$(parquet-sink --completion bash)" into ~/.bashrc',
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in found.usable.items():
        text = command.help
        sub = commands.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        if name == name_wanted:
            _add_arguments(name, command, sub)
            sub.set_defaults(run=command.run)
    return parser


def _add_arguments(name: str, command: CommandPlugin, parser: argparse.ArgumentParser) -> None:
    try:
        command.add_arguments(parser)
    except Exception as error:
        if is_built_in(name):
            raise
        kind = type(command)
        raise SetupError(
            f"The options of command {quoted(name)} cannot be had from {kind.__module__}:{kind.__qualname__} "
            f"({type(error).__name__}: {printable(str(error))}); correct the package that has it."
        ) from error


def main(argv: Sequence[str] | None = None, stop_request: StopRequest | None = None) -> int:
    """Runs a command; returns the exit status. stop_request: it may have been made already, while modules loaded."""
    words = list(sys.argv[1:] if argv is None else argv)
    hosts = words[:1] in (["run"], ["worker"])
    forbid_core_dumps()
    if hosts:
        bound_arenas()
    complete(parser_for)
    stop_request = StopRequest() if stop_request is None else stop_request
    with lenient_streams(), stop_request.handling() if hosts else nullcontext():
        found = commands_for(wanted(words))
        for problem in found.problems.values():
            print(f"parquet-sink: {problem}", file=sys.stderr)
        if wanted(words) in found.problems:
            return SetupError.exit_status
        try:
            parser = parser_for(words, found)
            if not words:
                parser.print_help(sys.stderr)
                return SetupError.exit_status
            args, unknown = parser.parse_known_args(words)
            parser.require_known(args, unknown)
        except SetupError as error:
            print(f"parquet-sink: {error}", file=sys.stderr)
            return error.exit_status
        args.stop_request = stop_request
        return run_parsed(args)


def run_parsed(args: argparse.Namespace) -> int:
    """Runs the command that was asked for; the exit status. What is wrong is told."""
    report: Callable[[str], None] = partial(print, file=sys.stderr)
    try:
        args.log_format = log_format(getattr(args, "log_format", None))
        configure_program(args.log_format)
        if args.log_format == JSON:
            report, args.stop_request.line_of = partial(log.error, "%s"), partial(json_line, "WARNING")
        return int(args.run(args))
    except InvalidConfiguration as error:
        for problem in error.problems:
            report(problem)
        return error.exit_status
    except SinkError as error:
        report(f"parquet-sink: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        return 130


class ShellCode(argparse.Action):
    """`--completion SHELL`: prints the shell's function, and ends."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, shell: Any, option: str | None = None
    ) -> None:
        from argcomplete.shell_integration import shellcode

        print(shellcode([parser.prog], shell=shell))
        parser.exit()


def complete(parser_for: Callable[[Sequence[str]], argparse.ArgumentParser]) -> None:
    """Answers the shell and ends the process, if a shell asks; else does nothing."""
    if _ASKED not in os.environ:
        return
    import argcomplete
    from argcomplete.lexers import split_line

    words = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))[3]
    argcomplete.autocomplete(parser_for(words[int(os.environ[_ASKED]) :]), always_complete_options=False)


if __name__ == "__main__":
    sys.exit(main())
