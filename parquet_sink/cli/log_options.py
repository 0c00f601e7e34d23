"""How a command that runs for long writes its log lines."""

import argparse

from parquet_sink.process.logs import FORMATS


def add_log_format(parser: argparse.ArgumentParser) -> None:
    """Read by `cli`, before the command begins."""
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        help="log lines as text, or as JSON: one object a line, for collectors (default: PARQUET_SINK_LOG_FORMAT, else "
        "text); with json there is no live view",
    )
