"""`parquet-sink kafka`: a local broker in the foreground, until Ctrl-C or SIGTERM; or one of Kafka's tools."""

import argparse
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.broker_files import TOOLS, archive_options, tool_command
from parquet_sink.addons.devkit.jars import fetch
from parquet_sink.errors import KafkaFailed

CHECK_INTERVAL_S = 1.0
_EXAMPLES: Final = """\
examples:
  parquet-sink kafka --port 9092
  parquet-sink kafka --port 9092 --tool topics --list
  parquet-sink kafka --tool consumer-groups --bootstrap-server localhost:9092 --describe --group connect-orders

Tools work with any broker; for TLS or a login give them --command-config client.properties (the consoles: \
--producer.config, --consumer.config). The exit status is the tool's."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this command's options to its parser."""
    parser.description = (
        "Start a local Apache Kafka broker on loopback, for trying things out; topics are created on first use. "
        "Ctrl-C or SIGTERM stops it. Kafka is fetched from Maven Central once."
    )
    parser.epilog = _EXAMPLES
    parser.add_argument("--port", type=_port, default=9092, help="port to listen on (default: 9092)")
    parser.add_argument(
        "--data-dir", type=Path, help="keep topics in this folder (default: a temporary one, removed at the end)"
    )
    parser.add_argument("--fetch-only", action="store_true", help="fetch Kafka's jars, print their folder, and end")
    parser.add_argument(
        "--tool",
        nargs=argparse.REMAINDER,
        metavar="NAME ...",
        help=(
            f"run one of Kafka's own tools ({', '.join(TOOLS)}) with the arguments that follow, instead of a broker; "
            "without --bootstrap-server it asks localhost at --port"
        ),
    )


def run(args: argparse.Namespace) -> int:
    """Run until a signal comes. Raises SetupError when Kafka cannot be fetched or started, KafkaFailed when it ends."""
    if args.fetch_only:
        print(fetch()[0])
        return 0
    if args.tool is not None:
        _become_tool(args.tool, args.port)
    with _until_signal() as stop:
        broker = Broker(port=args.port, data_dir=args.data_dir, auto_create_topics=True)
        with broker:
            print(f"Kafka listens on {broker.bootstrap_servers}; its log is {broker.log_path}", flush=True)
            while not stop.wait(CHECK_INTERVAL_S):
                if not broker.running:
                    raise KafkaFailed(f"The local Kafka broker ended by itself. See its log, {broker.log_path}.")
    print("Kafka is stopped", flush=True)
    return 0


def _become_tool(words: Sequence[str], port: int) -> NoReturn:
    """The tool takes the place of this process: terminal, signals and exit status are its own."""
    tool_command(words, Path(), "java", port)  # a wrong name is told before anything is fetched
    jars, java = fetch()
    command = tool_command(words, jars, java, port, archive_options(jars, java))
    os.execvp(command[0], command)  # noqa: S606 -- no shell is wanted


@contextmanager
def _until_signal() -> Iterator[threading.Event]:
    """An event that the first SIGINT or SIGTERM sets; a second one ends the program at once."""
    stop = threading.Event()
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def on_signal(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, former[signal.Signals(number)])

    for number in former:
        signal.signal(number, on_signal)
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _port(text: str) -> int:
    """A port number to listen on."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number from 1 to 65535")
    return int(text)
