"""From a command's options to a client of the worker."""

import os
import sys
from argparse import Namespace

from parquet_sink.cli.worker_api.api import WorkerApi, open_api
from parquet_sink.cli.worker_api.settings import FILE_VARIABLE, settings_of
from parquet_sink.config.files import read_configuration, this_machine


def open_worker(args: Namespace) -> WorkerApi:
    """The client; warnings about its file go to standard error. Raises InvalidConfiguration."""
    path = args.client_file or os.environ.get(FILE_VARIABLE) or ""
    parsed = read_configuration(path) if path else None
    settings, warnings = settings_of(args, this_machine(), parsed, path)
    for warning in warnings:
        print(warning, file=sys.stderr)
    return open_api(settings)
