"""`parquet-sink connectors ACTION`: what a worker's REST API offers, from a terminal or a script."""

import argparse
import os
from collections.abc import Callable
from typing import Final

from parquet_sink.cli.options import complete_file, complete_name, complete_target
from parquet_sink.cli.worker_api.settings import add_options, duration_s
from parquet_sink.errors import InvalidConfiguration

_LARGEST: Final = (1 << 63) - 1
OffsetSetting = tuple[str, int, int | None]
WAIT_S: Final = 60.0
EXAMPLE: Final = """\
examples:
  parquet-sink connectors list --url https://sink.example:8443 --client-file client.properties
  parquet-sink connectors create orders.properties --wait
  parquet-sink connectors update orders.properties             # all its keys from the file
  parquet-sink connectors update orders --set connect.ems.commit.records=5000
  parquet-sink connectors edit orders                          # in $EDITOR
  parquet-sink connectors restart orders --include-tasks --only-failed
  parquet-sink connectors flush orders --wait
  parquet-sink connectors stop orders --wait
  parquet-sink connectors offsets orders --to orders:0:1200    # where it goes on, once it is stopped

The API is Kafka Connect's, so workers of Kafka Connect answer, too. Placeholders in files are filled by the worker.
Exit status: 0 all was done; 1 the worker refused something or did not answer, or what was waited for did not come; \
2 wrong options or files, or the worker cannot be reached.
parquet-sink connectors ACTION --help explains an action.
"""
_WARNINGS: Final = "What the worker warns of is printed, and is no failure."
_MORE: Final = {
    "list": "Names are cut at 48 characters; --json has them whole.",
    "create": _WARNINGS,
    "update": "A file replaces the whole configuration. A value behind --set is seen in the list of processes: give "
    f"secrets by placeholder. {_WARNINGS}",
    "edit": "Passwords are shown as [hidden]. What was edited and not put (invalid, not confirmed, or changed by "
    "somebody else meanwhile) is kept in a file that is named, and the status is 1.",
    "validate": _WARNINGS,
    "flush": "With --wait the status is 1 where offsets did not go out: they are listed with the reason, also when the "
    "worker ended or the connector was restarted meanwhile.",
    "offsets": "Offsets are changed only while the connector is stopped, and not to more than the end.",
}
"""What the help of an action says beside its summary."""
_LIFE_CYCLE: Final = {
    "pause": "they keep their position and take no records",
    "resume": "they go on",
    "stop": "they end their tasks and give up what they hold; their offsets may be changed then",
    "restart": "they are started again",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """An action, what it is about, and where the worker is."""
    parser.epilog = EXAMPLE
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, title="actions")

    def action(name: str, summary: str) -> argparse.ArgumentParser:
        more = f" {_MORE[name]}" if name in _MORE else ""
        made = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.{more}")
        add_options(made)
        made.add_argument("--json", action="store_true", help="print one JSON document")
        return made

    action("list", "all connectors of the worker, a line each")
    _add_one_name(action("show", "one connector: state, tasks, why they failed, topics, configuration"))
    _add_create(action("create", "a new connector of each file"))
    _add_update(action("update", "another configuration for connectors that are there: a file, or single keys"))
    made = action("edit", "one connector's configuration in $VISUAL or $EDITOR: validated, shown as a difference, put")
    _add_one_name(made)
    made.add_argument("--yes", action="store_true", help="put it without a question, if it is valid")
    _add_wait(made)
    _add_targets(action("validate", "what the worker says of connector files; nothing is changed"), "+", complete_file)
    for name, what in _LIFE_CYCLE.items():
        made = action(name, f"{name} connectors: {what}")
        _add_targets(made, "*", complete_name)
        made.add_argument("--all", action="store_true", help="all connectors of the worker")
        _add_wait(made)
        if name == "restart":
            _add_restart(made)
    made = action("delete", "end and forget connectors; the offsets of their groups stay")
    _add_targets(made, "+", complete_name)
    made.add_argument(
        "--purge",
        action="store_true",
        help="also remove what they left on the machines of workers (state, history), once they have ended; refused "
        "while records are parked there",
    )
    _add_wait(made)
    _add_flush(action("flush", "what waits in a connector goes out now, whatever its thresholds say"))
    _add_offsets(action("offsets", "where a connector's group stands; with an option, where a stopped one goes on"))


def _add_targets(parser: argparse.ArgumentParser, nargs: str, completer: Callable[..., list[str]]) -> None:
    of_files = completer is complete_file
    targets = parser.add_argument(
        "targets",
        nargs=nargs,
        metavar="FILE" if of_files else "NAME",
        help="connector files, .properties or .json; - for standard input" if of_files else "names of connectors",
    )
    targets.completer = completer  # type: ignore[attr-defined]


def _add_one_name(parser: argparse.ArgumentParser) -> None:
    name = parser.add_argument("targets", nargs=1, metavar="NAME", help="the connector")
    name.completer = complete_name  # type: ignore[attr-defined]


def _add_create(parser: argparse.ArgumentParser) -> None:
    _add_targets(parser, "+", complete_file)
    parser.add_argument(
        "--initial-state",
        choices=("running", "paused", "stopped"),
        help="what it is to do at first (default: initial_state of a JSON file, else running)",
    )
    _add_wait(parser)


def _add_update(parser: argparse.ArgumentParser) -> None:
    targets = parser.add_argument(
        "targets",
        nargs="+",
        metavar="FILE|NAME",
        help="connector files, - for standard input; with --set and --unset names of connectors",
    )
    targets.completer = complete_target  # type: ignore[attr-defined]
    parser.add_argument("--create", action="store_true", help="a connector that is not there is created")
    parser.add_argument(
        "--set", action="append", type=_key_value, metavar="KEY=VALUE", help="change this key alone; may be repeated"
    )
    parser.add_argument("--unset", action="append", metavar="KEY", help="remove this key; may be repeated")
    _add_wait(parser)


def _add_restart(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--include-tasks", action="store_true", help="their tasks as well")
    parser.add_argument(
        "--only-failed", action="store_true", help="only what failed; the others are reported as left as they are"
    )
    parser.add_argument("--task", type=int, metavar="N", help="only this task")


def _add_wait(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wait",
        type=duration_s,
        nargs="?",
        const=WAIT_S,
        metavar="DURATION",
        help=f"until the worker reports that it is so, at most so long (without a number: {WAIT_S:g})",
    )


def _add_flush(parser: argparse.ArgumentParser) -> None:
    _add_one_name(parser)
    parser.add_argument(
        "--topic-partition",
        action="append",
        type=_topic_partition,
        metavar="TOPIC[:N]",
        help="only topic-partition N of this topic, or all of the topic; may be repeated",
    )
    parser.add_argument(
        "--wait",
        type=duration_s,
        nargs="?",
        const=WAIT_S,
        metavar="DURATION",
        help="until all of it is accepted and committed, at most so long, and say what is not "
        f"(without a number: {WAIT_S:g})",
    )


def _add_offsets(parser: argparse.ArgumentParser) -> None:
    _add_one_name(parser)
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--to",
        action="append",
        type=offset_setting,
        metavar="TOPIC:N:OFFSET",
        help="where topic-partition N goes on; OFFSET none removes it; may be repeated",
    )
    change.add_argument("--from", dest="from_file", metavar="FILE", help="where it goes on, as --json printed it")
    change.add_argument("--reset", action="store_true", help="remove all offsets")
    parser.add_argument(
        "--yes",
        action="store_true",
        help="do it also where it skips records, which are never sent then, or starts over",
    )


def run(args: argparse.Namespace) -> int:
    """0 when all was done, 1 when the worker refused something or it did not come to be; 2 wrong options."""
    check_options(args)
    from parquet_sink.addons.commands.connectors import configurations, edit, flush, life_cycle, listing, offsets
    from parquet_sink.cli.worker_api.api import open_worker, understanding

    does = {
        "list": listing.print_list,
        "show": listing.print_one,
        "create": configurations.create,
        "update": configurations.update,
        "edit": edit.edit,
        "validate": configurations.validate,
        "offsets": offsets.offsets,
        "flush": flush.flush,
        "delete": life_cycle.delete,
    }
    action = does.get(args.action, life_cycle.change)
    with open_worker(args) as api, understanding(api):
        return os.EX_OK if action(args, api) else 1


def check_options(args: argparse.Namespace) -> None:
    """Raises InvalidConfiguration with all that does not go together."""
    wrong = [*_wrong_targets(args), *_wrong_choice(args)]
    if wrong:
        raise InvalidConfiguration(wrong)


def _wrong_targets(args: argparse.Namespace) -> list[str]:
    given = getattr(args, "targets", ())
    if "" in given:
        return ['Invalid name [""]. A connector has a name that is not empty; correct it.']
    if args.action not in _LIFE_CYCLE or bool(given) is not args.all:
        return []
    if given:
        return ["Invalid [--all]. Names are given as well; remove one of them."]
    return [f"Invalid [{args.action}]. It needs the names of connectors, or --all."]


def _wrong_choice(args: argparse.Namespace) -> list[str]:
    given = vars(args).get
    wait, task = given("wait"), given("task")
    wrong = []
    if wait is not None and not wait > 0:
        wrong.append(f"Invalid [--wait]. {wait:g} is not more than 0; give seconds.")
    if task is not None and (args.include_tasks or args.only_failed):
        wrong.append("Invalid [--task]. It is one task alone; remove it, or --include-tasks and --only-failed.")
    if task is not None and task < 0:
        wrong.append(f"Invalid [--task]. {task} is less than 0; give a task's number.")
    if given("create") and (args.set or args.unset):
        wrong.append("Invalid [--create]. Single keys make no connector; give a connector file, or remove it.")
    if args.action == "offsets" and given("yes") and not (args.to or args.from_file or args.reset):
        wrong.append("Invalid [--yes]. Nothing is to be changed; remove it, or give --to, --from or --reset.")
    return wrong


def _key_value(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise argparse.ArgumentTypeError("it is not KEY=VALUE, such as tasks.max=2")  # the value may be a secret
    return key.strip(), value


def _topic_partition(text: str) -> tuple[str, int | None]:
    topic, colon, number = text.partition(":")
    if not topic or (colon and not _is_number(number)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a topic or topic-partition such as orders, or orders:3")
    return topic, int(number) if colon else None


def offset_setting(text: str) -> OffsetSetting:
    """Topic, topic-partition and offset, None for `none`. Raises argparse.ArgumentTypeError."""
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not (topic and _is_number(partition) and (offset == "none" or _is_number(offset))):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a topic, topic-partition and offset such as orders:3:1200, or orders:3:none"
        )
    return topic, int(partition), None if offset == "none" else int(offset)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= _LARGEST
