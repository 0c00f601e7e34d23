"""The command line: the commands, by name, and the exit statuses.

Exit status: 0 done, 1 a connector failed, 2 invalid configuration or a missing part. Each command is imported only
when it is asked for, so that `--help` is quick.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Final, Protocol, cast

from parquet_sink import __version__
from parquet_sink.commands.completion import SHELLS, ShellCode, complete
from parquet_sink.errors import InvalidConfiguration, SinkError
from parquet_sink.process import core_dumps
from parquet_sink.process.log_format import JSON, json_line
from parquet_sink.process.logs import configure_program, log_format
from parquet_sink.process.signals import StopRequest
from parquet_sink.process.streams import lenient_streams

log = logging.getLogger(__name__)

COMMANDS: Final = {
    "run": ("parquet_sink.commands.run", "run connectors: Kafka Connect's standalone form"),
    "worker": ("parquet_sink.commands.worker", "run connectors that come and go by REST: Kafka Connect's worker"),
    "connectors": (
        "parquet_sink.commands.connectors.command",
        "a worker's connectors over its REST API: list, create, change, pause, restart, offsets",
    ),
    "status": ("parquet_sink.commands.status.command", "how a worker's connectors stand: lag, age, last upload, error"),
    "check": ("parquet_sink.commands.check", "validate connector files; with --connect try broker and target"),
    "try": ("parquet_sink.commands.try_record", "show what becomes of one record, step by step; nothing is sent"),
    "parked": ("parquet_sink.commands.parked.command", "what connectors passed over: list, show, send again, drop"),
    "history": ("parquet_sink.commands.history.command", "what connectors sent, when, and where a record is"),
    "archive": (
        "parquet_sink.commands.archive.command",
        "what the archive of a connector has, and whether that is what was sent",
    ),
    "replay": (
        "parquet_sink.commands.replay.command",
        "send again what was delivered, or elsewhere, compared with the first time",
    ),
    "reshape": ("parquet_sink.commands.reshape.command", "make rows of raw files, as a shaped connector would have"),
    "tune": (
        "parquet_sink.commands.tune.command",
        "which thresholds give what matters, from what the topics really get",
    ),
    "demo": ("parquet_sink.devkit.demo.command", "see the whole job on this machine, with proof"),
    "target": ("parquet_sink.devkit.target.command", "the reference push target: stores, upserts, injects faults"),
    "kafka": ("parquet_sink.devkit.kafka_command", "a local Kafka broker, for trying things out"),
}


class Command(Protocol):
    """What a command's module offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, args: argparse.Namespace) -> int: ...


def parser_for(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the options of the command that `argv` names (all of them without imports otherwise)."""
    parser = argparse.ArgumentParser(
        prog="parquet-sink",
        description="Kafka topics arrive as Parquet files at a push API: at-least-once, on Spark.",
        epilog="Exit status: 0 done, 1 a connector failed, 2 invalid configuration or a missing part.",
    )
    parser.add_argument("--version", action="version", version=f"parquet-sink {__version__}")
    parser.add_argument(
        "--completion",
        action=ShellCode,
        choices=SHELLS,
        help='print what lets a shell complete commands, options and names: eval "$(parquet-sink --completion bash)"',
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = next((word for word in argv if not word.startswith("-")), None)
    for name, (module, summary) in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == wanted:
            command = cast(Command, import_module(module))
            command.add_arguments(sub)
            sub.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    core_dumps.forbid()
    complete(parser_for)
    stop_request = StopRequest()
    with lenient_streams(), stop_request.handling() if words[:1] in (["run"], ["worker"]) else nullcontext():
        args = parser_for(words).parse_args(words)
        args.stop_request = stop_request
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    tell: Callable[[str], None] = partial(print, file=sys.stderr)
    try:
        args.log_format = log_format(getattr(args, "log_format", None))
        configure_program(args.log_format)
        if args.log_format == JSON:
            tell, args.stop_request.line_of = partial(log.error, "%s"), partial(json_line, "WARNING")
        return int(args.run(args))
    except InvalidConfiguration as error:
        for problem in error.problems:
            tell(problem)
        return error.exit_status
    except SinkError as error:
        tell(f"parquet-sink: {error}")
        return error.exit_status
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
