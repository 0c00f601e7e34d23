"""`parquet-sink target`: options and start. Imports nothing heavy before `run`."""

import argparse
import ipaddress
import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from parquet_sink.addons.devkit.target.contract import DEFAULT_AUTHORIZATION, Repeats
from parquet_sink.addons.devkit.target.faults import MAX_LATENCY_S
from parquet_sink.addons.devkit.target.tokens import TOKEN_PATH, Client
from parquet_sink.config.quantity import seconds
from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration, SetupError, SinkError, install

DEFAULT_PORT: Final = 8085
TOKEN_S: Final = 900
MOST_TOKEN_S: Final = 86_400
_NEEDED: Final = ("duckdb", "starlette", "uvicorn", "python_multipart")


_EXAMPLE: Final = """\
example:
  parquet-sink target --port 8085 --data-dir depot --authorization 'AppKey demo'

It needs the extra target: pip install '.[target]' in a copy of the repository. Ctrl-C ends it with 0."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `parquet-sink target`."""
    parser.epilog = _EXAMPLE
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help=f"0: any free one (default {DEFAULT_PORT})")
    parser.add_argument("--data-dir", help="folder for files, journal and tables (default: temporary, removed at exit)")
    parser.add_argument(
        "--authorization",
        action="append",
        type=Secret,
        metavar="KEY",
        help=f"accepted value of the Authorization header, may be repeated (default '{DEFAULT_AUTHORIZATION}')",
    )
    parser.add_argument(
        "--oauth-client",
        action="append",
        type=_client,
        metavar="ID:SECRET",
        help=f"a client that POST {TOKEN_PATH} gives access tokens, which uploads are accepted with, "
        "in place of the default key; may be repeated",
    )
    parser.add_argument(
        "--oauth-scope", metavar="SCOPE", help="the scope that tokens must be asked for (default: any, or none)"
    )
    parser.add_argument(
        "--token-seconds",
        type=_lifetime,
        default=TOKEN_S,
        metavar="SECONDS",
        help=f"how long a token is good, 1 to {MOST_TOKEN_S} (default {TOKEN_S})",
    )
    parser.add_argument("--discard", action="store_true", help="accept files and discard them, for benchmarks")
    parser.add_argument(
        "--deleted-column",
        metavar="NAME",
        help="boolean column that is true in a row that deletes the row of its key, __deleted say (default: none)",
    )
    repeats = parser.add_mutually_exclusive_group()
    repeats.add_argument(
        "--refuse-repeated", action="store_true", help="answer 409 to a file whose name its table was given before"
    )
    repeats.add_argument(
        "--forget-names",
        action="store_true",
        help="put a file that comes again into its table again, as a target without a memory of names does",
    )
    parser.add_argument(
        "--slow",
        type=_seconds,
        default=0.0,
        metavar="DURATION",
        help=f"wait so long before each answer to an upload, 0 to {MAX_LATENCY_S:g} (default 0)",
    )
    parser.add_argument("--access-log", action="store_true", help="one line on standard error for each request")
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="allow a --host other than loopback, with --authorization; read-outs and faults then need it as well",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT, then 0. Raises SetupError and InvalidConfiguration."""
    _check(args)
    require_extra("The target")
    from parquet_sink.addons.devkit.target.server import TargetSettings, serve

    logging.basicConfig(level=logging.INFO if args.access_log else logging.WARNING)
    with _data_dir(args) as data_dir:
        keys = args.authorization or ([] if args.oauth_client else [Secret(DEFAULT_AUTHORIZATION)])
        guarded = not is_loopback(args.host)
        serve(
            TargetSettings(
                host=args.host,
                port=args.port,
                data_dir=data_dir,
                authorization=keys,
                guard_all=guarded,
                access_log=args.access_log,
                deleted_column=args.deleted_column,
                repeats=_repeats(args),
                slow_s=args.slow,
                clients=args.oauth_client or (),
                token_s=args.token_seconds,
                scope=args.oauth_scope,
            )
        )
    return 0


def require_extra(who: str) -> None:
    """Raises SetupError, naming the first Python package of the extra `target` that is not there, and the cure."""
    for package in _NEEDED:
        if find_spec(package) is None:
            raise SetupError(f"{who} needs the Python package {package}. {install('target')}")


def main(argv: list[str] | None = None) -> int:
    """`python -m parquet_sink.addons.devkit.target`: the exit status, errors told on standard error."""
    parser = argparse.ArgumentParser(prog="parquet-sink target", description="The reference push target.")
    add_arguments(parser)
    try:
        return run(parser.parse_args(argv))
    except SinkError as error:
        print(error, file=sys.stderr)
        return error.exit_status


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to this host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check(args: argparse.Namespace) -> None:
    problems = []
    if any(not key.reveal().strip() for key in args.authorization or ()):
        problems.append("Invalid [--authorization]. It is empty; give the value that clients send, 'AppKey demo' say.")
    problems += _beside_discard(args) if args.discard else []
    if args.deleted_column is not None and not args.deleted_column.strip():
        problems.append("Invalid [--deleted-column]. It is empty; name a column, or leave it out.")
    if args.oauth_scope is not None and not args.oauth_client:
        problems.append("Invalid [--oauth-scope]. Without --oauth-client there are no tokens; leave it out.")
    problems += [] if is_loopback(args.host) else _remote(args)
    if problems:
        raise InvalidConfiguration(problems)


def _beside_discard(args: argparse.Namespace) -> list[str]:
    given = {"--data-dir": args.data_dir, "--deleted-column": args.deleted_column, "--forget-names": args.forget_names}
    why = {"--data-dir": "nothing is stored"}
    return [
        f"Invalid [{option}]. With --discard {why.get(option, 'there are no tables')}; leave one of the two out."
        for option, value in given.items()
        if value
    ]


def _remote(args: argparse.Namespace) -> list[str]:
    if not args.allow_remote:
        return [
            f"Invalid [--host]. {args.host} can be reached by other machines; use 127.0.0.1, or add --allow-remote."
        ]
    if args.authorization or args.oauth_client:
        return []
    return ["Invalid [--authorization]. It is required with --allow-remote: the default is known to all."]


def _repeats(args: argparse.Namespace) -> Repeats:
    return "refuse" if args.refuse_repeated else "forget" if args.forget_names else "recognise"


def _seconds(text: str) -> float:
    found = seconds(text)
    if found is None or not found <= MAX_LATENCY_S:
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0 to {MAX_LATENCY_S:g}")
    return found


def _lifetime(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_TOKEN_S):
        raise argparse.ArgumentTypeError(f"must be an integer from 1 to {MOST_TOKEN_S}")
    return int(text)


def _client(text: str) -> Client:
    name, colon, secret = text.partition(":")
    if not (name and colon and secret):
        raise argparse.ArgumentTypeError("must be the client's id and its secret with a colon between")
    return Client(name, Secret(secret))


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise argparse.ArgumentTypeError("must be an integer from 0 to 65535")
    return int(text)


@contextmanager
def _data_dir(args: argparse.Namespace) -> Iterator[Path | None]:
    if args.discard:
        yield None
    elif args.data_dir:
        yield Path(args.data_dir)
    else:
        with tempfile.TemporaryDirectory(prefix="parquet-sink-target-") as folder:
            yield Path(folder)
