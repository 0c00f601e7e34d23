"""FileStreamSource as a connector class: lines of a file, or of standard input, to a topic."""

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from parquet_sink.addons.sources.connector import checks
from parquet_sink.addons.sources.connector.build import source_settings
from parquet_sink.addons.sources.file.connector.keys import FILE_SOURCE_KEYS
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.config.key import PREFIX, Key, ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems.required import absolute, text
from parquet_sink.convert.keys import PREFIXES
from parquet_sink.files import naming
from parquet_sink.worker_config.worker import Worker

_TASK: Final = "parquet_sink.addons.sources.file.task:FileTask"


class FileStreamSource:
    """One file, one task, as Kafka Connect's class of that name has it."""

    kind = "source"
    keys: Sequence[Key] = FILE_SOURCE_KEYS
    prefixes: Sequence[str] = (PREFIX, *PREFIXES)

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        """As `connectors.connector_class.ConnectorClass` says."""
        reads_input = values.text("file") is None
        checks.check(values, worker, report, of_input=reads_input)
        if reads_input and (why := worker.machine.no_standard_input):
            report.problem("file", f"It is not set, so standard input is to be read, and {why}; name a file.")

    def settings(self, values: Values, worker: Worker) -> SourceSettings:
        """As `connectors.connector_class.ConnectorClass` says."""
        name, topic = values.text("file"), text(values, "topic")
        spool = None if name is not None else self._spool(values, worker)
        origin = "standard input" if name is None else f"file {name}"
        made = source_settings(values, worker, task=_TASK, tasks=(), origin=origin, topics=[topic], spool=spool)
        told = {
            "file": spool or worker.machine.absolute(name or ""),
            "name": name or "",
            "topic": topic,
            "batch.size": str(values.number("batch.size")),
            "longest.line": str(made.max_request_bytes),
        }
        return replace(made, tasks=(told,))

    def _spool(self, values: Values, worker: Worker) -> str:
        """Spark's processes have another standard input, so it is copied to a file in the connector's folder."""
        tmp_dir = absolute(values.text(ems("tmp.dir")) or worker.machine.tmp_dir, worker)
        return posixpath.join(naming.connector_folder(tmp_dir, text(values, "name")), naming.INPUT_FILE)
