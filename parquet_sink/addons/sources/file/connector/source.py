"""FileStreamSource as a connector class: lines of a file, or of standard input, to a topic."""

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from parquet_sink.addons.sources.connector import checks
from parquet_sink.addons.sources.connector.build import source_settings
from parquet_sink.addons.sources.connector.keys import OWN_KEYS, SOURCE_KEYS
from parquet_sink.addons.sources.settings import SourceSettings
from parquet_sink.config.declared import declared, key, keys_of, made
from parquet_sink.config.key import PREFIX, Key, Origin, ems
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.convert.keys import PREFIXES
from parquet_sink.files import naming
from parquet_sink.kafka.settings import TOPIC
from parquet_sink.worker_config.worker import Worker

_TASK: Final = "parquet_sink.addons.sources.file.task:FileTask"


@declared(group="The file", origin=Origin.CONNECT, kw_only=True)
class FileSourceSettings:
    """What is read, and where it goes."""

    file: str | None = key(
        "file",
        "The file whose lines are read, and followed as it grows. It need not be there yet. Relative to the folder in "
        "which the program was started; positions are kept under the name as it is written here.",
        default=None,
        default_text="standard input",
    )
    topic: str = key(
        "topic",
        "The topic that lines are sent to.",
        missing="name the topic that lines are sent to.",
        check=TOPIC,
    )
    batch_size: int = key("batch.size", "Lines that are taken from the file at once, at most.", default=2000, minimum=1)


class FileStreamSource:
    """One file, one task, as Kafka Connect's class of that name has it."""

    kind = "source"
    keys: Sequence[Key] = (*OWN_KEYS, *keys_of(FileSourceSettings), *SOURCE_KEYS)
    prefixes: Sequence[str] = (PREFIX, *PREFIXES)

    def check(self, values: Values, worker: Worker, report: Report) -> None:
        """As `connectors.connector_class.ConnectorClass` says."""
        reads_input = values.text("file") is None
        checks.check(values, worker, report, of_input=reads_input)
        if reads_input and (why := worker.machine.no_standard_input):
            report.problem("file", f"It is not set, so standard input is to be read, and {why}; name a file.")

    def settings(self, values: Values, worker: Worker) -> SourceSettings:
        """As `connectors.connector_class.ConnectorClass` says."""
        ours = made(FileSourceSettings, values, worker.machine)
        name, topic = ours.file, ours.topic
        spool = None if name is not None else self._spool(values, worker)
        origin = "standard input" if name is None else f"file {name}"
        settings = source_settings(values, worker, task=_TASK, tasks=(), origin=origin, topics=[topic], spool=spool)
        told = {
            "file": spool or worker.machine.absolute(name or ""),
            "name": name or "",
            "topic": topic,
            "batch.size": str(ours.batch_size),
            "longest.line": str(settings.max_request_bytes),
        }
        return replace(settings, tasks=(told,))

    def _spool(self, values: Values, worker: Worker) -> str:
        """Spark's processes have another standard input, so it is copied to a file in the connector's folder."""
        tmp_dir = worker.machine.absolute(values.text(ems("tmp.dir")) or worker.machine.tmp_dir)
        return posixpath.join(naming.connector_folder(tmp_dir, str(values.text("name"))), naming.INPUT_FILE)
