"""`parquet-sink check`: whether files are right and, with `--connect`, whether what they name answers."""

import argparse
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from parquet_sink.cli.options import add_files, explain_keys
from parquet_sink.config.built_in_providers import BUILT_IN
from parquet_sink.connectors.check import Checked, check_files, format_report, report_fields
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.kafka import native
from parquet_sink.process.native import JSON, is_turned_off, not_built
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.validate.preflight import inspect
from parquet_sink.worker_config.worker import NO_FILE
from parquet_sink.worker_config.worker_file import LoadedWorker

if TYPE_CHECKING:
    from parquet_sink.validate.probe_kafka import Finding


_STATUSES: Final = """\
example:
  parquet-sink check --connect orders.properties

Exit status: 0 all is well, 1 something that --connect tried does not work, 2 a file is wrong."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `check`: the files as for `run`, and whether to try what they name."""
    add_files(parser)
    explain_keys(parser)
    parser.epilog = f"{_STATUSES}\n{parser.epilog}"
    parser.add_argument("--json", action="store_true", help="print one JSON object, in place of words")
    parser.add_argument(
        "--connect",
        action="store_true",
        help="also try brokers, topics, group, dead-letter topic, registry, folders and target; no records are read, "
        "nothing is stored or committed",
    )


def run(args: argparse.Namespace) -> int:
    """0 when all is well, 1 when something that was tried failed, 2 when a file is wrong; all of it is printed."""
    checked = inspect(check_files(args.files, args.worker, bootstrap_servers=args.bootstrap_servers))
    checked = replace(checked, worker=_as_a_worker_reads_it(checked))
    if args.json:
        return _run_as_json(args, checked)
    print(format_report(checked))
    if not is_turned_off():
        _tell_what_is_slower(args.connect)
    if checked.problems:
        return InvalidConfiguration.exit_status
    return _connect(checked) if args.connect else os.EX_OK


def _tell_what_is_slower(connect: bool) -> None:
    if reason := native.why_not() if connect else native.not_there():
        print(f"\nconfluent-kafka reads records, at 1.7 µs of CPU more for each than in C, because {reason}.")
    if reason := not_built(JSON):
        print(f"\nArrow reads JSON, at 1.1 µs of CPU more for a record of 150 bytes than in C, because {reason}.")


def _run_as_json(args: argparse.Namespace, checked: Checked) -> int:
    tried = {} if checked.problems or not args.connect else {one.name: _tried(one) for one in checked.settings()}
    failed = any(finding["health"] == "failed" for findings in tried.values() for finding in findings)
    status = InvalidConfiguration.exit_status if checked.problems else int(failed)
    print(json.dumps({**report_fields(checked, tried), "exit_status": status}, ensure_ascii=False, indent=2))
    return status


def _tried(settings: ConnectorSettings) -> list[dict[str, str]]:
    from parquet_sink.validate.probe import probe

    return [{"health": one.health.name.lower(), "item": one.item, "text": one.text} for one in probe(settings)]


def _as_a_worker_reads_it(checked: Checked) -> LoadedWorker:
    """With a warning where `parquet-sink worker` would have other config providers of this worker file than `run`."""
    loaded = checked.worker
    used = checked.providers_used
    if not used or loaded.worker.machine.providers is not None or loaded.worker.source == NO_FILE:
        return loaded
    warning = (
        f"Warning [config.providers]. It is not set: parquet-sink run has {', '.join(BUILT_IN)} then, and parquet-sink "
        f"worker has none. For a worker write config.providers={','.join(used)} in its file."
    )
    return replace(loaded, warnings=(*loaded.warnings, warning))


def _connect(checked: Checked) -> int:
    from parquet_sink.distributed.probe import probe_connector, probe_worker
    from parquet_sink.validate.probe import probe

    distributed, failed = checked.worker.worker.distributed, False
    if distributed is not None:
        failed |= _told(f"worker of group {distributed.group_id}", probe_worker(distributed))
    for settings in checked.settings():
        findings = probe(settings)
        if distributed is not None:
            findings = chain(findings, probe_connector(settings, distributed))
        failed |= _told(f"connector {settings.name}", findings)
    return int(failed)


def _told(heading: str, findings: Iterable["Finding"]) -> bool:
    """Whether something failed."""
    from parquet_sink.targets.outcome import Health

    print(f"\n{heading}")
    failed = False
    for finding in findings:
        print(finding.line(), flush=True)
        failed |= finding.health is Health.FAILED
    return failed
