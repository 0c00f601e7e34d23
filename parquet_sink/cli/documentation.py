"""docs/reference/cli.md: every command with its options, examples and exit statuses, as the parsers have them.

`python -m parquet_sink.cli.documentation > docs/reference/cli.md` writes the page.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from parquet_sink.cli.command_class import CommandPlugin, commands_for
from parquet_sink.cli.main import parser_for
from parquet_sink.cli.parsing import Parser
from parquet_sink.cli.worker_api import settings as worker_api
from parquet_sink.config.docs import TABLE_HEAD, row_of
from parquet_sink.process import logs

_INTRO: Final = """\
<!-- Written by `python -m parquet_sink.cli.documentation > docs/reference/cli.md`; do not edit. -->
# Commands

For whoever types commands or writes them into scripts: every command, its options and its exit statuses.
`parquet-sink COMMAND --help` prints the same for one command, `parquet-sink COMMAND ACTION --help` for an action. The
keys of connector and worker files are in [configuration.md](configuration.md).
"""
_STATUSES: Final = (
    ("0", "It is done: what was to stop stopped in order, or what was asked for is valid, sent or printed."),
    ("1", "A connector failed, or what was asked for was not done, or not all of it. Each command says when."),
    (
        "2",
        (
            "A file or the command line is wrong, something is missing on the machine (Java, a folder, a package), or "
            "a worker cannot be reached."
        ),
    ),
    ("130", "`check`, `demo`, `replay`, `reshape` or `tune` was stopped with Ctrl-C. `target` and `kafka` end with 0."),
    (
        "129, 130, 143",
        "`run` or `worker` was ended at once by a second SIGHUP, SIGINT or SIGTERM, a second or more after the first.",
    ),
)
_WHERE_A_WORKER_IS: Final = """
## Where a worker is

These options are the same for all commands that ask a worker. User and password are sent over https, and over http to
this machine alone. While a group rebalances, or another request changes the same offsets, a request is repeated for
half a minute.
"""
_CLIENT_FILE: Final = "\nKeys of a client file, in which placeholders are filled:\n"
_CONNECTORS_OF_A_WORKER: Final = """
## Connectors of a worker

`history`, `parked`, `archive` and `replay` take `--connector NAME` in place of files. The worker that has the connector
looks at its own files and answers; neither the connector file nor its secrets are needed where the command is typed.
Output and exit status are those of the command on the worker's machine.

- Of [several workers](../how-to/distributed.md) the one that has the connector answers. It knows what it sent itself.
- `replay`, `parked replay`, `parked drop` and `archive verify` are jobs of the worker, two at once. The command shows
  their progress. Ctrl-C stops the job; a second one leaves it to the worker. Jobs end with the worker.
- For `replay`, a value that ends in `.properties` or `.json`, has a `/`, or is there is a file; all else is a name.
- `--worker`, `--bootstrap-servers`, `--tmp-dir`, `--target` and `--differences` go with files alone.
"""
_ENVIRONMENT: Final = (
    (("PARQUET_SINK_BOOTSTRAP_SERVERS",), "Kafka's address, if `--bootstrap-servers` is not given"),
    (
        (worker_api.URL_VARIABLE, worker_api.USER_VARIABLE, worker_api.PASSWORD_VARIABLE, worker_api.FILE_VARIABLE),
        "[where a worker is](#where-a-worker-is), and as whom it is asked",
    ),
    ((logs.LEVEL_VARIABLE,), f"level of log lines: {', '.join(f'`{one}`' for one in logs.LEVELS)} (default INFO)"),
    (
        (logs.FORMAT_VARIABLE,),
        f"form of log lines: {', '.join(f'`{one}`' for one in logs.FORMATS)} (default text); `--log-format` wins",
    ),
    (
        ("OTEL_EXPORTER_OTLP_ENDPOINT",),
        "where [traces](../how-to/monitoring.md#traces) are sent; others of OpenTelemetry's apply, too",
    ),
    (("JAVA_HOME",), "which Java; else the one on the `PATH`"),
    (
        ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"),
        "certificate authorities of the target, unless `connect.ems.tls.ca.file` is set",
    ),
    (
        ("PARQUET_SINK_JAVA_ARCHIVE",),
        "`off`: start without the [CDS archive of Java's classes](../how-to/operations.md#start-and-stop)",
    ),
    (
        ("PARQUET_SINK_CACHE", "PARQUET_SINK_MAVEN_REPOSITORY"),
        "where jars and CDS archives are kept, and jars come from ([CONTRIBUTING.md](../../CONTRIBUTING.md#set-up))",
    ),
)
_CODE: Final = re.compile(
    r"""parquet-sink [a-z]+(?: [A-Z]+)*(?: --help)?|eval "[^"]+"|"[^"]+"|--[a-z.-]+|\S*[$\[_*{}=|/]\S*"""
    r"|(?<!\d)[A-Za-z]*(?:\.[a-z0-9]+)+|[A-Z]{5,}|\d+(?:\.\d+)+"
)
"""What of a help text is a name or a value: options, variables, keys, paths."""


def page() -> str:
    """All of it, of the commands that are built in."""
    parts = [_INTRO, *_overview(), *_statuses(), *_commands(), *_shared(), *_environment()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def _overview() -> Iterator[str]:
    yield from ("| Command | What it does |", "|---|---|")
    yield from (f"| [`{name}`](#{name}) | {_cell(command.help)} |" for name, command in _built_in())
    yield "\nOptions without a command:\n"
    yield from _table([one for one in parser_for(["run"])._actions if one.option_strings])


def _statuses() -> Iterator[str]:
    yield from ("\n## Exit statuses\n", "| Status | When |", "|---|---|")
    yield from (f"| {status} | {when} |" for status, when in _STATUSES)
    yield ""


def _environment() -> Iterator[str]:
    yield from ("## Environment\n", "| Variable | Meaning |", "|---|---|")
    yield from (f"| {', '.join(f'`{one}`' for one in names)} | {meaning} |" for names, meaning in _ENVIRONMENT)
    yield ""


def _built_in() -> Iterator[tuple[str, CommandPlugin]]:
    yield from commands_for("run").usable.items()


def _commands() -> Iterator[str]:
    for name, _ in _built_in():
        yield f"## {name}\n"
        yield from _one(parser_for([name]).under[name])


def _one(parser: Parser) -> Iterator[str]:
    """A command, or one of its actions: usage, what it does, arguments and options by group, examples, statuses."""
    yield f"```text\n{_usage(parser)}\n```\n"
    yield f"{_sentence(parser.description or '')}\n"
    if parser.under:
        yield from _epilog(parser.epilog or "")
        yield from _actions(parser)
    else:
        for group in parser._action_groups:
            yield from _group(group, parser)
        yield from _epilog(parser.epilog or "")


def _actions(parser: Parser) -> Iterator[str]:
    """Options that all actions have are listed once."""
    common = [_names(one) for one in next(iter(parser.under.values()))._actions]
    for one in parser.under.values():
        common = [names for names in common if names in [_names(action) for action in one._actions]]
    first = next(iter(parser.under.values()))
    yield "All actions have these options:\n"
    yield from _options([one for one in first._actions if _names(one) in common])
    for name, one in parser.under.items():
        yield f"### {parser.prog.rpartition(' ')[2]} {name}\n"
        yield f"```text\n{_usage(one)}\n```\n"
        yield f"{_sentence(one.description or '')}\n"
        own = [action for action in one._actions if action.metavar != "NAME" and _names(action) not in common]
        yield from _options(own) if own else ()


def _names(action: argparse.Action) -> tuple[str, ...]:
    return tuple(action.option_strings) or (action.dest,)


def _group(group: argparse._ArgumentGroup, parser: Parser) -> Iterator[str]:
    actions = group._group_actions
    if not actions:
        return
    if group.title and group not in parser._action_groups[:2]:
        yield f"{_sentence(group.title)}:\n"
    if group.description:
        yield f"{_sentence(group.description)}\n"
    yield from _options(actions)


def _options(actions: Sequence[argparse.Action]) -> Iterator[str]:
    """A table, and a line for options that are explained once for all commands."""
    elsewhere = {_names(one) for one in _worker_options()}
    own = [one for one in actions if _names(one) not in elsewhere]
    yield from _table(own)
    if len(own) < len(actions):
        listed = ", ".join(f"`{_names(one)[-1]}`" for one in actions if _names(one) in elsewhere)
        yield f"{listed}: see [where a worker is](#where-a-worker-is).\n"


def _table(actions: Sequence[argparse.Action]) -> Iterator[str]:
    shown = [one for one in actions if "--help" not in one.option_strings]
    if shown:
        yield "| Argument | Meaning |" if not shown[0].option_strings else "| Option | Meaning |"
        yield "|---|---|"
        yield from (f"| `{_written(one)}` | {_help(one)} |" for one in shown)
        yield ""


def _written(action: argparse.Action) -> str:
    """An option as it is typed, or the name of an argument."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    if not action.option_strings:
        return str(value).replace("|", r"\|")
    if action.nargs == 0:
        return action.option_strings[-1]
    text = f"[{value}]" if action.nargs == "?" else f"{value} ..." if action.nargs == "+" else str(value)
    return f"{action.option_strings[-1]} {text}".replace("|", r"\|")


def _help(action: argparse.Action) -> str:
    return _cell(Parser()._get_formatter()._expand_help(action))


def _cell(text: str) -> str:
    return _coded(" ".join(text.split())).replace("|", r"\|")


def _coded(text: str) -> str:
    """A help text with names and values as code."""

    def code(match: re.Match[str]) -> str:
        word = match[0]
        bare = word.strip("(),;:")
        bare = bare.removesuffix(".")
        return word.replace(bare, f"`{bare}`") if bare else word

    return re.sub(rf"(?<![\w`/]){_CODE.pattern}", code, text)


def _sentence(text: str) -> str:
    text = _coded(" ".join(text.split()))
    return text if text.startswith("parquet-sink ") else text[:1].upper() + text[1:]


def _usage(parser: Parser) -> str:
    if parser.usage:
        return parser.usage % {"prog": parser.prog}
    if parser.under:
        return f"{parser.prog} ACTION [options] ..."
    needed = [_written(one).replace("\\", "") for one in parser._actions if one.required and one.option_strings]
    words = [_positional(one) for one in parser._actions if not one.option_strings]
    return " ".join([parser.prog, *needed, "[options]", *words])


def _positional(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    forms = {"+": f"{name} [{name} ...]", "*": f"[{name} ...]", "?": f"[{name}]"}
    return forms.get(str(action.nargs), name)


def _epilog(text: str) -> Iterator[str]:
    """Examples as a block of text, and what stands beside them as paragraphs."""
    for indented, lines in groupby(text.splitlines(), key=lambda line: line.startswith("  ")):
        if indented:
            yield "\n".join(["```text", *(line.removeprefix("  ") for line in lines), "```\n"])
        else:
            yield from (f"{_sentence(line)}\n" for line in lines if line.strip() and not line.startswith("example"))


def _worker_options() -> list[argparse.Action]:
    parser = Parser(add_help=False)
    worker_api.add_options(parser)
    return parser._actions


def _shared() -> Iterator[str]:
    yield _WHERE_A_WORKER_IS
    yield from _table(_worker_options())
    yield _CLIENT_FILE
    yield from [*TABLE_HEAD, *map(row_of, worker_api.CLIENT_KEYS)]
    yield _CONNECTORS_OF_A_WORKER


if __name__ == "__main__":
    sys.stdout.write(page())
