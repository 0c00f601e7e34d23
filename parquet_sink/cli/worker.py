"""`parquet-sink worker`."""

import argparse
import logging
from dataclasses import replace
from pathlib import Path

from parquet_sink.cli.beside import hosted
from parquet_sink.cli.hosting import Plan, host, log_lines
from parquet_sink.cli.options import add_hosting, add_log_format
from parquet_sink.config.files import this_machine
from parquet_sink.config.report import counted, in_log
from parquet_sink.connectors.check import read_worker
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.spark import options
from parquet_sink.spark.slots import EXPECTED, local_master
from parquet_sink.worker.herder.store import FOLDER_KEY, ConfigStore, FileConfigStore

log = logging.getLogger(__name__)

_EXAMPLE = """\
example:
  cp config/worker.properties config/orders.properties .
  parquet-sink worker worker.properties
  parquet-sink connectors create orders.properties --wait
"""
_SURPLUS = (
    "A worker's connectors are created while it runs: parquet-sink connectors create {0}. Or run files without a "
    "worker: parquet-sink run --worker worker.properties {0}"
)
"""Said of one argument too many, which is a connector file most likely."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The worker file, and how to run it."""
    parser.epilog = _EXAMPLE
    parser.set_defaults(surplus=_SURPLUS)
    parser.add_argument(
        "worker",
        metavar="worker.properties",
        help="worker file: bootstrap.servers, listeners, config.storage.folder, converters, consumer.*",
    )
    parser.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT,…",
        help="Kafka's address; wins over PARQUET_SINK_BOOTSTRAP_SERVERS and the worker file",
    )
    add_hosting(parser, local_master(EXPECTED))
    add_log_format(parser)


def run(args: argparse.Namespace) -> int:
    """Runs until a stop is requested. Raises InvalidConfiguration, SetupError."""
    wrong = options.problems(args.master, args.conf)
    machine = replace(this_machine(), providers={})  # whoever reaches the REST API would read what this user may
    loaded = read_worker(args.worker, bootstrap_servers=args.bootstrap_servers, machine=machine)
    for warning in loaded.warnings:
        log.warning("%s (in %s)", in_log(warning), args.worker)
    if wrong or loaded.problems:
        raise InvalidConfiguration([*wrong, *(f"{problem} (in {args.worker})" for problem in loaded.problems)])
    worker = loaded.worker
    plan = Plan(worker, args.stop_request, master=args.master, spark_conf=dict(args.conf), serves=True)
    if worker.distributed is not None:
        return host(plan, ConfigStore(), {}, [log_lines()])
    if worker.store_folder is None:
        raise InvalidConfiguration(
            [f"Invalid [{FOLDER_KEY}]. It is missing, and there is no HOME; name a folder. (in {args.worker})"]
        )
    folder = Path(worker.store_folder)
    if (args.master or "local").startswith("local"):  # other machines of a cluster need not have such a folder
        worker = hosted(worker, worker.store_folder)
    store = FileConfigStore(folder)
    try:
        log.info("%s in %s", counted(len(store.connectors()), "connector"), worker.store_folder)
        return host(replace(plan, worker=worker), store, {}, [log_lines()])
    finally:
        store.close()
