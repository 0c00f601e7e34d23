"""`parquet-sink check`: are these files right?"""

import argparse
import os

from parquet_sink.config.check import check_files, format_report
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.runtime.command import add_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `check`: the files as for `run`."""
    add_files(parser)


def run(args: argparse.Namespace) -> int:
    """0 when all is well, 2 when a file is wrong; everything found is printed."""
    checked = check_files(args.files, args.worker, bootstrap_servers=args.bootstrap_servers)
    print(format_report(checked))
    return InvalidConfiguration.exit_status if checked.problems else os.EX_OK
