"""FileStreamSource as a connector class: lines of a file, or of standard input, to a topic."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from parquet_sink.config.key import PREFIX, Key
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.connectors.ems.required import text
from parquet_sink.connectors.file_source.keys import FILE_SOURCE_KEYS
from parquet_sink.connectors.source import checks
from parquet_sink.connectors.source.build import source_settings
from parquet_sink.connectors.worker import Worker
from parquet_sink.convert.keys import PREFIXES
from parquet_sink.pipeline.source_settings import SourceSettings

_TASK: Final = "parquet_sink.sources.file.task:FileTask"


class FileStreamSource:
    """One file, one task, as Kafka Connect's class of that name has it."""

    kind: Literal["source"] = "source"
    keys: Sequence[Key] = FILE_SOURCE_KEYS
    prefixes: Sequence[str] = (PREFIX, *PREFIXES)

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        """As `connectors.connector_class.ConnectorClass` says."""
        checks.check(values, worker, report, stores=values.text("file") is not None)

    def settings(self, values: Values, worker: Worker) -> SourceSettings:
        """As `connectors.connector_class.ConnectorClass` says."""
        name, topic = values.text("file") or "", text(values, "topic")
        made = source_settings(values, worker, task=_TASK, tasks=(), origin=f"file {name}", topics=[topic])
        told = {
            "file": worker.machine.absolute(name),
            "name": name,
            "topic": topic,
            "batch.size": str(values.number("batch.size")),
            "longest.line": str(made.max_request_bytes),
        }
        return replace(made, tasks=(told,))
