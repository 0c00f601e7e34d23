"""The options that name connector files, worker file and Kafka's address, as several commands have them."""

import argparse
from typing import Final, Literal

from parquet_sink.connectors.documentation import help_text

_KEYS: Final = "all keys"


class _HelpWithKeys(argparse.RawDescriptionHelpFormatter):
    """Writes the help on keys only when help is asked for: installed packages may have some."""

    def add_text(self, text: str | None) -> None:
        super().add_text(help_text() if text is _KEYS else text)


def explain_keys(parser: argparse.ArgumentParser) -> None:
    """Lets `--help` end with all keys of connector files."""
    parser.formatter_class = _HelpWithKeys
    parser.epilog = _KEYS


def add_files(parser: argparse.ArgumentParser, least: Literal["+", "*"] = "+") -> None:
    """The connector files, and where what they share comes from. least: `*` where none may be given, too."""
    parser.add_argument(
        "files",
        nargs=least,
        metavar="connector.properties",
        help="connector files, .properties or .json; one connector each",
    )
    parser.add_argument(
        "--worker", metavar="worker.properties", help="worker file: bootstrap.servers, consumer.*, converters"
    )
    parser.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT,…",
        help="Kafka's address; wins over PARQUET_SINK_BOOTSTRAP_SERVERS and the worker file",
    )
