"""Checks that look at more than one key of a connector file."""

import posixpath

from parquet_sink.config.key import ems
from parquet_sink.config.report import Report, quoted
from parquet_sink.config.values import Values
from parquet_sink.connectors import error_handling, reading
from parquet_sink.connectors.ems import (
    archive_checks,
    parked_checks,
    raw_checks,
    shape_checks,
    target_checks,
    tombstone_checks,
    transform_checks,
)
from parquet_sink.convert import configuration
from parquet_sink.targets.table_map import MAP_KEY, TableMap, parse
from parquet_sink.worker_config.worker import Worker


def check(values: Values, worker: Worker, report: Report) -> None:
    """Every rule that needs two keys, or a key and the machine."""
    reading.check(values, worker, report)
    error_handling.check(values, worker, report)
    parked_checks.check(values, report)
    target_checks.check(values, report)
    archive_checks.check(values, report)
    _tables(values, report)
    if raw_checks.is_raw(values):
        raw_checks.check(values, report)
    else:
        _shaped(values, worker, report)
    _files(values, worker, report)
    _row_group(values, report)
    if "name" not in values.given:
        report.warn("name", "It is missing, so MissingSinkName is taken; name the connector.")


def _shaped(values: Values, worker: Worker, report: Report) -> None:
    """What concerns the way from a record to a row."""
    configuration.check(values, worker.converters, worker.source, worker.machine, report)
    shape_checks.check(values, report)
    tombstone_checks.check(values, worker, report)
    transform_checks.check(values, report)


def _tables(values: Values, report: Report) -> None:
    """What is wrong with the map itself was told when it was read."""
    text = values.text(MAP_KEY)
    tables = TableMap() if text is None else parse(text)
    topics = values.names("topics")
    for topic in topics:
        if (reason := tables.why_unusable(topic)) is not None:
            report.problem(MAP_KEY, reason)
    for rule, why in tables.idle(topics) if topics else ():
        report.warn(MAP_KEY, f"{quoted(str(rule))} is for none of the topics: {why}.")


def _files(values: Values, worker: Worker, report: Report) -> None:
    machine = worker.machine
    tmp_dir = values.text(ems("tmp.dir"))
    if values.flag(ems("inmemfs.enable")):
        if machine.memory_dir is None:
            report.problem(
                ems("inmemfs.enable"), "This machine has no writable memory-backed folder /dev/shm; set false."
            )
        if values.flag(ems("debug.keep.parquet.files")):
            report.warn(ems("debug.keep.parquet.files"), f"It is off, because {ems('inmemfs.enable')} is true.")
        if tmp_dir is not None:
            report.warn(ems("tmp.dir"), f"It has no effect, because {ems('inmemfs.enable')} is true.")
    elif tmp_dir is not None and machine.is_file(posixpath.join(machine.working_dir, tmp_dir)):
        report.problem(ems("tmp.dir"), f"{values.quoted(ems('tmp.dir'))} is a file; name a folder.")
    ca_file = values.text(ems("tls.ca.file"))
    if ca_file is not None and not machine.is_file(posixpath.join(machine.working_dir, ca_file)):
        report.problem(
            ems("tls.ca.file"), f"There is no file {values.quoted(ems('tls.ca.file'))}; name an existing PEM file."
        )


def _row_group(values: Values, report: Report) -> None:
    row_group, file = values.number(ems("parquet.row.group.size.bytes")), values.number(ems("commit.size.bytes"))
    if row_group is not None and file is not None and row_group > file:
        report.warn(
            ems("parquet.row.group.size.bytes"),
            f"{row_group} is more than {ems('commit.size.bytes')} and is lowered to {file}.",
        )
